//! Owns what outlives the requests of a session, and where it is kept.
//! Does not own the session itself: its id carries that.

mod memory;

use std::{
    collections::BTreeSet,
    fmt,
    hash::{Hash, Hasher},
    time::SystemTime,
};

use turnbuckle_types::LogLevel;

pub use memory::MemorySessions;

pub(crate) use crate::store::{StoreError, StoreFuture};

/// Which session it is: random. The client's id of it is another, which can't be made from this.
///
/// ```
/// use turnbuckle::http::SessionId;
/// let session = SessionId::from_bytes([7; 16]);
/// assert_eq!(session.to_string(), "07".repeat(16));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub(crate) [u8; 16]);

/// Without the length, which is always the same.
impl Hash for SessionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl SessionId {
    /// As a store kept it.
    pub fn from_bytes(bytes: [u8; 16]) -> SessionId {
        SessionId(bytes)
    }

    /// As bytes, for a store's key.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({self})")
    }
}

/// What a session has to remember besides its handshake.
///
/// ```
/// use turnbuckle::http::SessionRecord;
/// let mut record = SessionRecord::default();
/// record.subscriptions.insert("note://7".to_owned());
/// assert!(!record.ended);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The client or the server ended it.
    pub ended: bool,
    /// The least severe log messages that the client wants.
    pub log_level: Option<LogLevel>,
    /// The resources whose changes the client wants to hear of.
    pub subscriptions: BTreeSet<String>,
}

/// Keeps the records of sessions. Only what a client changed needs one: a session that was merely
/// opened has none and costs nothing.
///
/// Replicas that share keys and a store serve each other's sessions. What runs is known to the
/// replica that runs it alone: a cancellation, the answer to a question and the GET stream have to
/// reach that one, so that a load balancer has to keep a session at one replica while it is in use.
///
/// A record that is lost costs its session the log level and the subscriptions; one that says that
/// the session has ended should not be lost before its time, because the client's id of it opens
/// it again.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex, time::SystemTime};
/// use turnbuckle::{
///     StoreFuture,
///     http::{SessionId, SessionRecord, SessionStore},
/// };
///
/// /// In place of a database.
/// #[derive(Default)]
/// struct Rows(Mutex<HashMap<[u8; 16], (SessionRecord, SystemTime)>>);
///
/// impl SessionStore for Rows {
///     fn load(&self, session: SessionId) -> StoreFuture<'_, Option<SessionRecord>> {
///         Box::pin(async move {
///             let rows = self.0.lock().unwrap();
///             Ok(rows.get(session.as_bytes()).map(|(record, _)| record.clone()))
///         })
///     }
///
///     fn save(
///         &self,
///         session: SessionId,
///         record: SessionRecord,
///         until: SystemTime,
///     ) -> StoreFuture<'_, ()> {
///         Box::pin(async move {
///             self.0.lock().unwrap().insert(*session.as_bytes(), (record, until));
///             Ok(())
///         })
///     }
/// }
/// # let _ = Rows::default();
/// ```
#[doc(alias = "SessionManager")]
pub trait SessionStore: Send + Sync + 'static {
    /// The record of a session; `None` if it has none.
    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<SessionRecord>>;
    /// Keeps a record, instead of the one before. It may be forgotten after `until`: then the
    /// session itself has expired.
    fn save(
        &self,
        session: SessionId,
        record: SessionRecord,
        until: SystemTime,
    ) -> StoreFuture<'_, ()>;
    /// Returns whether another session may be opened: `true` by default. A store that can't keep the
    /// ends of more sessions returns `false`, because a session whose end is forgotten is open again.
    fn has_room(&self) -> StoreFuture<'_, bool> {
        Box::pin(std::future::ready(Ok(true)))
    }
}
