//! Owns what happened to the handlers, by key, and the gates they wait at.
//! Does not own the handlers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use turnbuckle::server::Changes;

/// What was done to the handlers of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// Handlers that began.
    pub started: u64,
    /// Handlers that came to their end.
    pub finished: u64,
    /// Handlers whose future was dropped before that.
    pub dropped: u64,
    /// Times that a handler, or work it had moved elsewhere, saw that it was cancelled.
    pub cancelled: u64,
    /// Times that a handler reached the place that its tool speaks of.
    pub reached: u64,
}

/// All that was counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// By key.
    pub keys: BTreeMap<String, Count>,
    /// Handlers that run now.
    pub in_flight: u64,
    /// Listen streams that are open now.
    pub listeners: u64,
    /// The process that serves.
    pub process: u32,
    /// Its resident memory; zero where the system does not tell.
    pub resident_bytes: u64,
}

impl Ledger {
    /// What was counted under `key`.
    pub fn of(&self, key: &str) -> Count {
        self.keys.get(key).copied().unwrap_or_default()
    }
}

/// What the handlers of one server share.
#[derive(Clone, Debug, Default)]
pub struct Fixture(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    keys: Mutex<BTreeMap<String, Entry>>,
    leaving: watch::Sender<bool>,
    changes: OnceLock<Changes>,
}

#[derive(Debug, Default)]
struct Entry {
    count: Count,
    gate: watch::Sender<bool>,
}

impl Fixture {
    /// Counts a handler as started. It counts as dropped unless it says that it finished.
    pub fn start(&self, key: &str) -> Running {
        self.count(key, |count| count.started += 1);
        Running { fixture: self.clone(), key: key.to_owned(), end: End::Dropped }
    }

    /// Changes what is counted under `key`.
    pub fn count(&self, key: &str, change: impl FnOnce(&mut Count)) {
        change(&mut self.keys().entry(key.to_owned()).or_default().count);
    }

    /// Waits until `key` is released.
    pub async fn gate(&self, key: &str) {
        let mut gate = self.keys().entry(key.to_owned()).or_default().gate.subscribe();
        // The sender lives as long as the fixture.
        let _ = gate.wait_for(|open| *open).await;
    }

    /// Whether `key` was released.
    pub fn is_open(&self, key: &str) -> bool {
        *self.keys().entry(key.to_owned()).or_default().gate.borrow()
    }

    /// Lets go everyone who waits at `key`, now or later.
    pub fn release(&self, key: &str) {
        self.keys().entry(key.to_owned()).or_default().gate.send_replace(true);
    }

    /// Asks the server to shut down in good order.
    pub fn leave(&self) {
        self.0.leaving.send_replace(true);
    }

    /// Resolves when the server was asked to shut down.
    pub fn leaving(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut leaving = self.0.leaving.subscribe();
        let fixture = self.clone();
        async move {
            let _ = leaving.wait_for(|leaving| *leaving).await;
            drop(fixture);
        }
    }

    /// What was counted so far.
    pub fn ledger(&self) -> Ledger {
        let keys: BTreeMap<String, Count> =
            self.keys().iter().map(|(key, entry)| (key.clone(), entry.count)).collect();
        Ledger {
            in_flight: keys.values().map(|c| c.started - c.finished - c.dropped).sum(),
            keys,
            listeners: self.0.changes.get().map_or(0, |changes| changes.listeners() as u64),
            process: std::process::id(),
            resident_bytes: resident_bytes(),
        }
    }

    /// What was counted under `key`.
    pub fn of(&self, key: &str) -> Count {
        self.ledger().of(key)
    }

    /// Tells listeners that the tools have changed.
    pub fn touch(&self) {
        if let Some(changes) = self.0.changes.get() {
            changes.tools();
        }
    }

    pub(crate) fn watches(&self, changes: Changes) {
        // A fixture belongs to one server; a second is given the changes of the first.
        let _ = self.0.changes.set(changes);
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by a handler while it runs.
#[derive(Debug)]
pub struct Running {
    fixture: Fixture,
    key: String,
    end: End,
}

#[derive(Debug)]
enum End {
    Finished,
    Dropped,
}

impl Running {
    /// The handler came to its end.
    pub fn finish(mut self) {
        self.end = End::Finished;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.fixture.count(&self.key, |count| match self.end {
            End::Finished => count.finished += 1,
            End::Dropped => count.dropped += 1,
        });
    }
}

/// Resident memory of this process, as Linux tells it.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}
