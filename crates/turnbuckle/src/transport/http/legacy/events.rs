//! Owns the events that a client may ask for again, and where they are kept.
//! Does not own streams that are open.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;

use super::sessions::{SessionId, StoreFuture};

/// Which stream of which session of which caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamKey {
    /// The session.
    pub session: SessionId,
    /// The stream: random, and unique in its session.
    pub stream: u64,
}

/// An event that was sent, or would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Its place in its stream, counted from 1.
    pub number: u64,
    /// The message.
    pub data: Bytes,
}

/// Keeps the events of streams, so that a client that lost its connection is told what it missed.
///
/// Every call names the session too: what belongs to one can't be read through another.
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

/// Keeps events in memory, so many bytes in all. Beyond that the oldest streams go first.
#[derive(Debug)]
pub struct MemoryEvents {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    streams: HashMap<StreamKey, VecDeque<StoredEvent>>,
    /// In the order in which they began.
    order: VecDeque<StreamKey>,
    bytes: usize,
}

impl MemoryEvents {
    /// Keeps at most so many bytes of events.
    pub fn new(bytes: usize) -> MemoryEvents {
        MemoryEvents { most: bytes, kept: Mutex::default() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> StoreFuture<'static, T>
    where
        T: Send + 'static,
    {
        let value = change(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(std::future::ready(Ok(value)))
    }
}

impl Kept {
    fn remove(&mut self, key: &StreamKey) {
        for event in self.streams.remove(key).into_iter().flatten() {
            self.bytes -= event.data.len();
        }
        self.order.retain(|known| known != key);
    }
}

impl EventStore for MemoryEvents {
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> StoreFuture<'_, ()> {
        self.with(|kept| {
            kept.bytes += event.data.len();
            if !kept.streams.contains_key(stream) {
                kept.order.push_back(stream.clone());
            }
            kept.streams.entry(stream.clone()).or_default().push_back(event);
            while kept.bytes > self.most {
                let Some(first) = kept.order.front().cloned() else { break };
                kept.remove(&first);
            }
        })
    }

    fn after(&self, stream: &StreamKey, number: u64) -> StoreFuture<'_, Vec<StoredEvent>> {
        self.with(|kept| {
            let events = kept.streams.get(stream).into_iter().flatten();
            events.filter(|event| event.number > number).cloned().collect()
        })
    }

    fn forget(&self, stream: &StreamKey) -> StoreFuture<'_, ()> {
        self.with(|kept| kept.remove(stream))
    }

    fn forget_session(&self, session: SessionId) -> StoreFuture<'_, ()> {
        self.with(|kept| {
            let theirs: Vec<_> =
                kept.order.iter().filter(|key| key.session == session).cloned().collect();
            theirs.iter().for_each(|key| kept.remove(key));
        })
    }
}
