//! Keeps events in the memory of one process.

use std::{collections::VecDeque, fmt, time::Duration};

use lru::LruCache;
use tokio::time::Instant;

use super::{EventStore, StoredEvent, StreamKey};
use crate::transport::http::{
    session::{
        expiring::{Expire, ExpiringStore},
        store::{SessionId, StoreFuture},
    },
    timing::{
        EVENT_BYTES, EVENT_BYTES_OF_STREAM, EVENT_RETENTION, EVENT_STREAMS, LONGEST_SWEEP,
        SHORTEST_SWEEP,
    },
};

/// What an event costs besides its message.
const OVERHEAD: usize = 64;

/// Keeps events in memory: 16 MiB in all, 1 MiB of each of 10,000 streams, for 5 minutes after a
/// stream's last event.
///
/// Where a stream has too much, its oldest events go, but never its last one. Where all streams
/// have too much, or there are too many, the one goes whose last event is oldest.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::http::MemoryEvents;
/// let events = MemoryEvents::new(64 << 20).stream_bytes(8 << 20).retention(Duration::from_secs(60));
/// # let _ = events;
/// ```
pub struct MemoryEvents {
    book: ExpiringStore<EventBook>,
}

impl MemoryEvents {
    /// Keeps at most so many bytes of events.
    pub fn new(bytes: usize) -> MemoryEvents {
        let limits = EventLimits {
            bytes,
            stream_bytes: EVENT_BYTES_OF_STREAM,
            streams: EVENT_STREAMS,
            retention: EVENT_RETENTION,
        };
        MemoryEvents { book: ExpiringStore::new(EventBook::new(limits)) }
    }

    /// How many bytes one stream may have. Its last event is kept even if it is longer.
    #[must_use]
    pub fn stream_bytes(self, bytes: usize) -> MemoryEvents {
        self.limited(|limits| limits.stream_bytes = bytes)
    }

    /// How many streams there may be.
    #[must_use]
    pub fn streams(self, streams: usize) -> MemoryEvents {
        self.limited(|limits| limits.streams = streams)
    }

    /// For how long a stream is kept after its last event.
    #[must_use]
    pub fn retention(self, time: Duration) -> MemoryEvents {
        self.limited(|limits| limits.retention = time)
    }

    fn limited(self, change: impl FnOnce(&mut EventLimits)) -> MemoryEvents {
        self.book.with(|book| change(&mut book.limits));
        self
    }

    /// The same as the answer of a store, for which nothing here has to wait.
    fn answer<T>(&self, change: impl FnOnce(&mut EventBook) -> T) -> StoreFuture<'static, T>
    where
        T: Send + 'static,
    {
        Box::pin(std::future::ready(Ok(self.book.with(change))))
    }
}

impl Default for MemoryEvents {
    fn default() -> MemoryEvents {
        MemoryEvents::new(EVENT_BYTES)
    }
}

impl EventStore for MemoryEvents {
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> StoreFuture<'_, ()> {
        self.answer(|book| book.append(stream, event, Instant::now()))
    }

    fn after(&self, stream: &StreamKey, number: u64) -> StoreFuture<'_, Vec<StoredEvent>> {
        self.answer(|book| book.after(stream, number, Instant::now()))
    }

    fn forget(&self, stream: &StreamKey) -> StoreFuture<'_, ()> {
        self.answer(|book| book.forget(stream))
    }

    fn forget_session(&self, session: SessionId) -> StoreFuture<'_, ()> {
        self.answer(|book| book.forget_session(session))
    }
}

impl fmt::Debug for MemoryEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (streams, bytes) = self.book.with(|book| (book.streams.len(), book.bytes));
        f.debug_struct("MemoryEvents")
            .field("streams", &streams)
            .field("bytes", &bytes)
            .finish_non_exhaustive()
    }
}

struct EventLimits {
    bytes: usize,
    stream_bytes: usize,
    streams: usize,
    retention: Duration,
}

/// The streams, ordered by their last event.
struct EventBook {
    limits: EventLimits,
    /// Invariant: none is without an event.
    streams: LruCache<StreamKey, StoredStream>,
    /// The weight of all events.
    bytes: usize,
}

struct StoredStream {
    /// Invariant: their numbers rise.
    events: VecDeque<StoredEvent>,
    bytes: usize,
    last: Instant,
}

impl EventBook {
    fn new(limits: EventLimits) -> EventBook {
        EventBook { limits, streams: LruCache::unbounded(), bytes: 0 }
    }

    fn append(&mut self, key: &StreamKey, event: StoredEvent, now: Instant) {
        self.expire_at(now);
        if weight(&event) > self.limits.bytes {
            // Without its end the stream could not be resumed.
            return self.forget(key);
        }
        let empty = || StoredStream { events: VecDeque::new(), bytes: 0, last: now };
        let stream = self.streams.get_or_insert_mut(key.clone(), empty);
        stream.last = now;
        self.bytes -= stream.bytes;
        // An event out of order would be replayed out of order.
        if stream.events.back().is_none_or(|last| last.number < event.number) {
            stream.push(event, self.limits.stream_bytes);
        }
        self.bytes += stream.bytes;
        while self.bytes > self.limits.bytes || self.streams.len() > self.limits.streams {
            self.forget_oldest();
        }
    }

    fn after(&mut self, key: &StreamKey, number: u64, now: Instant) -> Vec<StoredEvent> {
        self.expire_at(now);
        let Some(StoredStream { events, .. }) = self.streams.peek(key) else { return Vec::new() };
        let begin = events.partition_point(|event| event.number <= number);
        events.range(begin..).cloned().collect()
    }

    fn forget(&mut self, key: &StreamKey) {
        self.bytes -= self.streams.pop(key).map_or(0, |stream| stream.bytes);
    }

    fn forget_oldest(&mut self) {
        self.bytes -= self.streams.pop_lru().map_or(0, |(_, stream)| stream.bytes);
    }

    fn forget_session(&mut self, session: SessionId) {
        let keys = self.streams.iter().map(|(key, _)| key);
        let own: Vec<_> = keys.filter(|key| key.session == session).cloned().collect();
        own.iter().for_each(|key| self.forget(key));
    }

    fn expire_at(&mut self, now: Instant) {
        while let Some((_, stream)) = self.streams.peek_lru()
            && now.saturating_duration_since(stream.last) >= self.limits.retention
        {
            self.forget_oldest();
        }
    }
}

impl Expire for EventBook {
    fn expire(&mut self) {
        self.expire_at(Instant::now());
    }

    fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    fn interval(&self) -> Duration {
        self.limits.retention.clamp(SHORTEST_SWEEP, LONGEST_SWEEP)
    }
}

impl StoredStream {
    fn push(&mut self, event: StoredEvent, most: usize) {
        self.bytes += weight(&event);
        self.events.push_back(event);
        while self.bytes > most && self.events.len() > 1 {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= weight(&oldest);
        }
    }
}

fn weight(event: &StoredEvent) -> usize {
    OVERHEAD + event.data.len()
}

#[cfg(test)]
mod tests;
