//! Owns: what the `stats` tool and `GET /stats` tell. Does not own: when anything is counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) static STARTED: Counter = Counter::new();
pub(crate) static RELEASED: Counter = Counter::new();
pub(crate) static LISTENERS: Counter = Counter::new();
/// Slow calls that ended because their connection closed.
pub(crate) static BY_CLOSE: Counter = Counter::new();
/// Slow calls that ended by a cancellation that named them.
pub(crate) static BY_NOTIFICATION: Counter = Counter::new();
/// Lists of tools that were asked for.
pub(crate) static LISTS: Counter = Counter::new();
/// Cancellations that arrived, whether they named a live call or not.
pub(crate) static CANCEL_NOTES: Counter = Counter::new();

pub(crate) struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn up(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(crate) fn down(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

pub(crate) fn report() -> String {
    format!(
        r#"{{"started":{},"released":{},"listeners":{},"by_close":{},"by_notification":{},"cancel_notes":{},"lists":{}}}"#,
        STARTED.value(),
        RELEASED.value(),
        LISTENERS.value(),
        BY_CLOSE.value(),
        BY_NOTIFICATION.value(),
        CANCEL_NOTES.value(),
        LISTS.value(),
    )
}
