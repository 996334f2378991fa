//! Owns what outlives the requests of a session, and where it is kept.
//! Does not own the session itself: its id carries that.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use turnbuckle_types::LogLevel;

/// What a store answers, some time later.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store could not answer.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// Which session it is: random, and never what the client sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) [u8; 16]);

impl SessionId {
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

/// Who sends a request, as whoever stands before the server found out: an extension of the HTTP
/// request. A session answers only to the one that opened it.
///
/// ```
/// use turnbuckle::Principal;
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Principal::new("alice"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(String);

impl Principal {
    /// By a name that is theirs alone and stays the same: the subject of a token, not the token.
    pub fn new(name: impl Into<String>) -> Principal {
        Principal(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// What a session has to remember besides its handshake.
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
}

/// Keeps records in memory, so many of them. Beyond that those go first that expire first.
#[derive(Debug)]
pub struct MemorySessions {
    most: usize,
    records: Mutex<HashMap<SessionId, (SystemTime, SessionRecord)>>,
}

impl MemorySessions {
    /// Keeps at most so many records.
    pub fn new(most: usize) -> MemorySessions {
        MemorySessions { most, records: Mutex::default() }
    }
}

impl SessionStore for MemorySessions {
    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<SessionRecord>> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let record = records.get(&session).map(|(_, record)| record.clone());
        Box::pin(std::future::ready(Ok(record)))
    }

    fn save(
        &self,
        session: SessionId,
        record: SessionRecord,
        until: SystemTime,
    ) -> StoreFuture<'_, ()> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.insert(session, (until, record));
        if records.len() > self.most {
            let now = SystemTime::now();
            records.retain(|_, (until, _)| *until > now);
        }
        if records.len() > self.most
            && let Some(first) =
                records.iter().min_by_key(|(_, (until, _))| *until).map(|(id, _)| *id)
        {
            records.remove(&first);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
