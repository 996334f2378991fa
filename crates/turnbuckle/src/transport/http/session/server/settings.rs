//! The settings of an HTTP service for sessions.

use super::super::{
    super::{
        server::HttpService,
        timing::{RETRY, SESSION_LIFETIME},
    },
    events::{EventStore, MemoryEvents},
};
use crate::{
    protocol::sealed::KeyRing,
    transport::http::session::{
        id::SessionIds,
        store::{MemorySessions, SessionStore},
    },
};
use std::{sync::Arc, time::Duration};

/// The settings of sessions.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(super) ids: Arc<SessionIds>,
    pub(super) sessions: Arc<dyn SessionStore>,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) lifetime: Duration,
    pub(super) retry: Duration,
    answers: Answers,
    keeping: Keeping,
}

/// What answers look like.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    Events,
    Json,
}

/// Whether there are sessions.
#[derive(Clone, Copy, PartialEq)]
enum Keeping {
    Sessions,
    Nothing,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ids: Arc::new(SessionIds::new(KeyRing::random())),
            sessions: Arc::new(MemorySessions::default()),
            events: Arc::new(MemoryEvents::default()),
            lifetime: SESSION_LIFETIME,
            retry: RETRY,
            answers: Answers::Events,
            keeping: Keeping::Sessions,
        }
    }
}

impl Settings {
    pub(super) fn answers_json(&self) -> bool {
        self.answers == Answers::Json
    }

    pub(super) fn keeps_sessions(&self) -> bool {
        self.keeping == Keeping::Sessions
    }
}

/// The legacy era (2024-11-05 to 2025-11-25), which has sessions. The modern one needs none of
/// this.
impl HttpService {
    /// The keys that seal session ids: a random one unless they are set. Replicas that share keys
    /// and [stores](HttpService::session_store) serve each other's sessions.
    ///
    /// ```
    /// use turnbuckle::{Server, server::KeyRing};
    /// // From a secret store, in practice.
    /// let keys = KeyRing::new([7; 32]).and_accept([3; 32]);
    /// let service = Server::new("demo", "1.0").http_service().session_keys(keys);
    /// # let _ = service;
    /// ```
    #[must_use]
    pub fn session_keys(self, keys: KeyRing) -> HttpService {
        self.legacy(|settings| settings.ids = Arc::new(SessionIds::new(keys)))
    }

    /// Where the records of sessions are kept: in memory, 10,000 of them, unless it is set.
    ///
    /// ```
    /// use turnbuckle::{Server, http::MemorySessions};
    /// let service =
    ///     Server::new("demo", "1.0").http_service().session_store(MemorySessions::new(100));
    /// # let _ = service;
    /// ```
    #[must_use]
    pub fn session_store(self, store: impl SessionStore) -> HttpService {
        self.legacy(|settings| settings.sessions = Arc::new(store))
    }

    /// Where events are kept for clients that lost their connection: in memory, 16 MiB of them,
    /// unless it is set.
    ///
    /// ```
    /// use turnbuckle::{Server, http::MemoryEvents};
    /// let service =
    ///     Server::new("demo", "1.0").http_service().event_store(MemoryEvents::new(1 << 20));
    /// # let _ = service;
    /// ```
    #[must_use]
    pub fn event_store(self, store: impl EventStore) -> HttpService {
        self.legacy(|settings| settings.events = Arc::new(store))
    }

    /// How long a session is good for after it was opened: 24 h. Then its client is told to open
    /// another one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use turnbuckle::Server;
    /// let service =
    ///     Server::new("demo", "1.0").http_service().session_lifetime(Duration::from_secs(3600));
    /// # let _ = service;
    /// ```
    #[must_use]
    pub fn session_lifetime(self, lifetime: Duration) -> HttpService {
        self.legacy(|settings| settings.lifetime = lifetime)
    }

    /// How long clients are told to wait before they come back for a stream that a handler
    /// [closed](crate::Ctx::close_stream): 500 ms. They are told when it is closed, and not before:
    /// whoever loses a stream otherwise looks at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use turnbuckle::Server;
    /// let service = Server::new("demo", "1.0").http_service().retry(Duration::from_secs(2));
    /// # let _ = service;
    /// ```
    #[must_use]
    pub fn retry(self, wait: Duration) -> HttpService {
        self.legacy(|settings| settings.retry = wait)
    }

    /// Answers requests of sessions with JSON, never with a stream. Progress and log messages are
    /// dropped then, and a handler that asks its client something is refused at once.
    ///
    /// ```
    /// use turnbuckle::Server;
    /// let service = Server::new("demo", "1.0").http_service().json_only();
    /// # let _ = service;
    /// ```
    #[must_use]
    pub fn json_only(self) -> HttpService {
        self.legacy(|settings| settings.answers = Answers::Json)
    }

    /// Serves legacy clients without sessions: each request for itself, in the revision that its
    /// header declares, so that any replica can. Nothing is remembered: no log level, no GET
    /// stream, nothing to resume, no cancellation but by closing the connection; a handler that
    /// asks its client something is refused at once.
    ///
    /// ```
    /// use turnbuckle::Server;
    /// let service = Server::new("demo", "1.0").http_service().without_sessions();
    /// # let _ = service;
    /// ```
    #[must_use]
    pub fn without_sessions(self) -> HttpService {
        self.legacy(|settings| settings.keeping = Keeping::Nothing)
    }

    /// How many sessions are in use at the moment: something runs in them, or a stream of theirs is
    /// open or can still be taken up. One that was merely opened is not.
    pub fn sessions_in_use(&self) -> usize {
        self.live_sessions()
    }
}
