//! Owns the news that something a server offers has changed.
//! Does not own who hears of it: each listen stream looks for itself.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells every client that listens that a list has changed.
///
/// Changes that come faster than a client reads are told once.
///
/// ```
/// use turnbuckle::Server;
/// let server = Server::new("demo", "1.0");
/// let changes = server.changes();
/// changes.tools();
/// ```
#[derive(Clone, Debug)]
pub struct Changes(Arc<watch::Sender<u64>>);

impl Default for Changes {
    fn default() -> Changes {
        Changes(Arc::new(watch::Sender::new(0)))
    }
}

impl Changes {
    /// The list of tools has changed.
    pub fn tools(&self) {
        self.0.send_modify(|version| *version += 1);
    }

    /// How many streams listen now.
    pub fn listeners(&self) -> usize {
        self.0.receiver_count()
    }

    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
