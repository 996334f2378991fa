//! Owns how many authorizations are at work, so that whoever ends a process can wait for them. Does
//! not own them.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

/// Those of one server, and with them those of everything that was made of the same
/// [`Auth`](crate::Auth).
#[derive(Debug)]
pub(crate) struct Flights {
    own: Counter,
    all: Counter,
}

#[derive(Clone, Debug)]
pub(crate) struct Counter(Arc<watch::Sender<usize>>);

impl Flights {
    pub(crate) fn among(all: &Counter) -> Flights {
        Flights { own: Counter::default(), all: all.clone() }
    }

    /// One more, until what this returns is dropped.
    pub(crate) fn begin(&self) -> AtWork {
        AtWork([&self.own, &self.all].map(Counter::more))
    }

    /// One less, until what this returns is dropped: a person is waited for, here or in another process,
    /// and would be for long.
    pub(crate) fn aside(&self) -> Aside {
        Aside([&self.own, &self.all].map(Counter::less))
    }

    pub(crate) async fn settled(&self, limit: Duration) -> bool {
        self.own.settled(limit).await
    }
}

impl Counter {
    /// Whether nothing is at work, waited for until it is so.
    pub(crate) async fn settled(&self, limit: Duration) -> bool {
        let mut count = self.0.subscribe();
        let settled = tokio::time::timeout(limit, count.wait_for(|count| *count == 0)).await;
        settled.is_ok()
    }

    fn more(&self) -> More {
        self.0.send_modify(|count| *count += 1);
        More(self.clone())
    }

    fn less(&self) -> Less {
        self.0.send_modify(|count| *count -= 1);
        Less(self.clone())
    }
}

impl Default for Counter {
    fn default() -> Counter {
        Counter(Arc::new(watch::Sender::new(0)))
    }
}

/// Something is at work.
#[expect(dead_code, reason = "held for what its drop does")]
pub(crate) struct AtWork([More; 2]);

/// Something waits for a person.
#[expect(dead_code, reason = "held for what its drop does")]
pub(crate) struct Aside([Less; 2]);

struct More(Counter);

impl Drop for More {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

struct Less(Counter);

impl Drop for Less {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count += 1);
    }
}
