//! Owns what a server's author decides about asking. Does not own the keys.

use std::{fmt, sync::Arc, time::Duration};

use super::store::StateStore;

/// How requests that wait for answers are treated: see [`Server::asking`](crate::Server::asking).
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{
///     Server,
///     elicit::{Asking, MemoryStates},
/// };
/// let asking = Asking::default()
///     .rounds(3)
///     .expires(Duration::from_secs(120))
///     .single_use(MemoryStates::default());
/// let server = Server::new("shop", "1.0").asking(asking);
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct Asking {
    pub(super) rounds: u32,
    pub(super) lifetime: Duration,
    pub(super) store: Option<Arc<dyn StateStore>>,
}

impl Asking {
    /// How often one request may ask: 8 times unless told otherwise. What is asked at the same time
    /// counts once.
    #[must_use]
    pub fn rounds(mut self, most: u32) -> Asking {
        self.rounds = most;
        self
    }

    /// How long a client may take for its answers, in whole seconds: 10 minutes unless told
    /// otherwise.
    #[must_use]
    pub fn expires(mut self, after: Duration) -> Asking {
        self.lifetime = after;
        self
    }

    /// Lets what a client keeps be used once: the same answers can't be sent again, not even if the
    /// first time failed.
    #[must_use]
    pub fn single_use(mut self, store: impl StateStore) -> Asking {
        self.store = Some(Arc::new(store));
        self
    }
}

impl Default for Asking {
    fn default() -> Asking {
        Asking { rounds: 8, lifetime: Duration::from_secs(600), store: None }
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("rounds", &self.rounds)
            .field("lifetime", &self.lifetime)
            .field("single_use", &self.store.is_some())
            .finish_non_exhaustive()
    }
}
