//! Owns who is told of a server's notifications besides the user's observer: of all connections of
//! a client, in wire order, by the reader. Does not own what each makes of them.

use crate::rpc::Note;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Hears every notification of a server. It is called by the reader: it must not wait, and it runs
/// no user code.
pub(crate) trait Hears: Send + Sync {
    /// A notification came, also one that a call or a stream has used already.
    fn hear(&self, note: &Note);
    /// The server has forgotten what this connection asked for, and may have said something that
    /// nobody heard.
    #[cfg(feature = "http")]
    fn renewed(&self) {}
}

/// Everyone who hears. Nobody is kept alive by it.
#[derive(Default)]
pub(crate) struct Hearers(Mutex<Vec<Weak<dyn Hears>>>);

impl Hearers {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn Hears>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `hearer` is told, until the last who hold it let go.
    pub(crate) fn join(&self, hearer: Weak<dyn Hears>) {
        let mut hearers = self.lock();
        hearers.retain(|one| one.strong_count() > 0);
        hearers.push(hearer);
    }

    pub(crate) fn hear(&self, note: &Note) {
        for hearer in self.present() {
            hearer.hear(note);
        }
    }

    #[cfg(feature = "http")]
    pub(crate) fn renewed(&self) {
        for hearer in self.present() {
            hearer.renewed();
        }
    }

    /// Those who are there; the lock is not held while they are told.
    fn present(&self) -> Vec<Arc<dyn Hears>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl fmt::Debug for Hearers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearers").finish_non_exhaustive()
    }
}
