//! Owns the events that a client may ask for again, and where they are kept.
//! Does not own streams that are open.

mod memory;

use bytes::Bytes;

use crate::transport::http::session::store::{SessionId, StoreFuture};
pub use memory::MemoryEvents;

/// Which stream of which session. A session belongs to one caller, so that a stream does too.
///
/// ```
/// use turnbuckle::http::{SessionId, StreamKey};
/// let session = SessionId::from_bytes([7; 16]);
/// assert_ne!(StreamKey::new(session, 1), StreamKey::new(session, 2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct StreamKey {
    /// The session.
    pub session: SessionId,
    /// The stream: random, and unique in its session.
    pub stream: u64,
}

impl StreamKey {
    /// A stream of a session.
    pub fn new(session: SessionId, stream: u64) -> StreamKey {
        StreamKey { session, stream }
    }
}

/// An event that was sent, or would have been.
///
/// ```
/// use turnbuckle::http::StoredEvent;
/// let event = StoredEvent::new(1, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
/// assert_eq!(event.number, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Its place in its stream, counted from 1.
    pub number: u64,
    /// The message.
    pub data: Bytes,
}

impl StoredEvent {
    /// A message and its place in its stream.
    pub fn new(number: u64, data: impl Into<Bytes>) -> StoredEvent {
        StoredEvent { number, data: data.into() }
    }
}

/// Keeps the events of streams, so that a client that lost its connection is told what it missed.
///
/// Every call names the session too: what belongs to one can't be read through another.
///
/// A store may forget the oldest events of a stream, and whole streams, but none between others:
/// what it gives back is the end of what it was given. The last event of a stream is the answer to
/// its request, and worth the most.
///
/// ```
/// use std::{collections::BTreeMap, sync::Mutex};
/// use turnbuckle::{
///     StoreFuture,
///     http::{EventStore, SessionId, StoredEvent, StreamKey},
/// };
///
/// /// In place of a database: rows in the order of their keys.
/// #[derive(Default)]
/// struct Rows(Mutex<BTreeMap<(SessionId, u64, u64), StoredEvent>>);
///
/// impl EventStore for Rows {
///     fn append(&self, stream: &StreamKey, event: StoredEvent) -> StoreFuture<'_, ()> {
///         let key = (stream.session, stream.stream, event.number);
///         self.0.lock().unwrap().insert(key, event);
///         Box::pin(async { Ok(()) })
///     }
///
///     fn after(&self, stream: &StreamKey, number: u64) -> StoreFuture<'_, Vec<StoredEvent>> {
///         let StreamKey { session, stream, .. } = *stream;
///         let Some(first) = number.checked_add(1) else { return Box::pin(async { Ok(vec![]) }) };
///         let rows = self.0.lock().unwrap();
///         let range = (session, stream, first)..=(session, stream, u64::MAX);
///         let events = rows.range(range).map(|(_, event)| event.clone()).collect();
///         Box::pin(async { Ok(events) })
///     }
///
///     fn forget(&self, stream: &StreamKey) -> StoreFuture<'_, ()> {
///         let StreamKey { session, stream, .. } = *stream;
///         self.0.lock().unwrap().retain(|key, _| (key.0, key.1) != (session, stream));
///         Box::pin(async { Ok(()) })
///     }
///
///     fn forget_session(&self, session: SessionId) -> StoreFuture<'_, ()> {
///         self.0.lock().unwrap().retain(|key, _| key.0 != session);
///         Box::pin(async { Ok(()) })
///     }
/// }
/// # let _ = Rows::default();
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Keeps an event. Numbers of one stream rise.
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> StoreFuture<'_, ()>;
    /// The events after `number`, in order; none if the stream is not known.
    fn after(&self, stream: &StreamKey, number: u64) -> StoreFuture<'_, Vec<StoredEvent>>;
    /// Forgets a stream: its request was cancelled.
    fn forget(&self, stream: &StreamKey) -> StoreFuture<'_, ()>;
    /// Forgets all streams of a session: it has ended.
    fn forget_session(&self, session: SessionId) -> StoreFuture<'_, ()>;
}
