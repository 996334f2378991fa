//! A client's own cache: decoded results, invalidations, and requests in flight.

use std::{
    any::Any,
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use futures_util::future::{Shared, WeakShared};
use lru::LruCache;
use tokio::sync::watch;
use turnbuckle_types::{LogLevel, Raw, Revision};

use super::{
    ResponseCache,
    key::{CacheTopic, CachedRequest},
    store::BoundedLru,
};
use crate::{
    client::{
        builder::FIRST,
        connection::{Retry, handle::ClientConnection},
        handlers::answer::Answering,
    },
    error::Error,
    rpc::{Abandon, BoxFuture},
};

/// How many uncacheable requests and how many invalidations are remembered one by one.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// A decoded result of any type.
pub(super) type CachedValue = Arc<dyn Any + Send + Sync>;

pub(super) struct Memory {
    results: BoundedLru<CachedRequest, Remembered>,
    /// Requests whose last result was not cacheable: no call waits for the result of another.
    uncacheable: LruCache<CachedRequest, ()>,
    invalidated: LruCache<CacheTopic, CacheInstant>,
    /// The latest invalidation of everything.
    all_invalidated: CacheInstant,
    flights: Vec<FlightEntry>,
    /// The newest connection that was used.
    generation: u64,
    /// The number of moments so far.
    moments: u64,
}

/// A point in time. `order` is unique; `time` compares with entries of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CacheInstant {
    order: u64,
    pub(super) time: SystemTime,
}

/// A result in memory.
pub(super) struct Remembered {
    pub(super) fetched: Fetched,
    pub(super) begun: CacheInstant,
    /// A result teaches its connection about tools; another connection has to read it again.
    pub(super) generation: u64,
    pub(super) until: SystemTime,
}

/// A request for a result that may be cached.
#[derive(Clone)]
pub(super) struct Fetch {
    pub(super) request: CachedRequest,
    pub(super) revision: Revision,
    pub(super) generation: u64,
    pub(super) begun: CacheInstant,
}

/// The options that two calls must have in common to share a request: rounds, retry, abandonment,
/// log level, and whether progress is requested.
pub(super) type SharingKey = (Option<usize>, Retry, Abandon, Option<LogLevel>, bool);

/// The result of a fetch.
#[derive(Clone)]
pub(super) struct Fetched {
    pub(super) value: CachedValue,
    pub(super) raw: Raw,
    /// Whether callers that joined the request may use it. Otherwise it was stale on arrival.
    pub(super) is_shareable: bool,
}

pub(super) type FlightFuture = BoxFuture<'static, Result<Fetched, Arc<Error>>>;

/// A request in flight. Each clone of `outcome` drives it; dropping the last one cancels it.
pub(super) struct SharedFetch {
    pub(super) outcome: Shared<FlightFuture>,
    pub(super) state: Arc<FlightState>,
}

/// A request in flight, and which call has begun it.
pub(super) enum Flight {
    Begun(SharedFetch),
    Joined(SharedFetch),
}

pub(super) struct FlightState {
    /// Changes with each sign of life of the server. Closed when the request has ended.
    pub(super) signs: watch::Receiver<()>,
    /// Stands still while this client answers a question of the request.
    pub(super) clock: Arc<Answering>,
    pub(super) cancel_reason: Arc<OnceLock<String>>,
}

struct FlightEntry {
    fetch: Fetch,
    key: SharingKey,
    outcome: WeakShared<FlightFuture>,
    state: Arc<FlightState>,
}

impl Memory {
    pub(super) fn new(settings: &ResponseCache) -> Memory {
        Memory {
            results: BoundedLru::new(settings.max_entries, settings.max_bytes),
            uncacheable: LruCache::sparse(MAX_REMEMBERED),
            invalidated: LruCache::sparse(MAX_REMEMBERED),
            all_invalidated: CacheInstant { order: 0, time: SystemTime::UNIX_EPOCH },
            flights: Vec::new(),
            generation: FIRST,
            moments: 0,
        }
    }

    /// Returns the moment at which a fetch begins.
    #[cfg(shuttle)]
    pub(super) fn begin(&mut self, time: SystemTime) -> CacheInstant {
        self.moment(time)
    }

    fn moment(&mut self, time: SystemTime) -> CacheInstant {
        self.moments += 1;
        CacheInstant { order: self.moments, time }
    }

    /// Invalidates everything if the connection is a new one: notifications may have been missed.
    pub(super) fn use_connection(&mut self, generation: u64, now: SystemTime) {
        if generation > self.generation {
            self.generation = generation;
            self.invalidate_all(now);
        }
    }

    pub(super) fn invalidate_all(&mut self, now: SystemTime) {
        self.all_invalidated = self.moment(now);
        self.invalidated.clear();
        self.results.clear();
    }

    pub(super) fn invalidate(&mut self, topic: &CacheTopic, now: SystemTime) {
        let moment = self.moment(now);
        // The moment of a topic that is no longer remembered counts for everything.
        match self.invalidated.push(topic.clone(), moment) {
            Some((other, earlier)) if other != *topic => {
                self.all_invalidated = self.all_invalidated.max(earlier);
            }
            _ => {}
        }
        self.results.retain(|request| request.topic() != *topic);
    }

    /// Returns when a topic was last invalidated.
    pub(super) fn invalidated_at(&self, topic: &CacheTopic) -> CacheInstant {
        let own = self.invalidated.peek(topic).copied();
        own.map_or(self.all_invalidated, |own| own.max(self.all_invalidated))
    }

    /// Returns a result that is still fresh.
    pub(super) fn get(
        &mut self,
        request: &CachedRequest,
        generation: u64,
        now: SystemTime,
    ) -> Option<Fetched> {
        let found = self.results.get(request)?;
        if found.generation == generation && now < found.until {
            return Some(found.fetched.clone());
        }
        self.results.remove(request);
        None
    }

    /// Inserts a result, unless it is stale or older than the present one. Returns whether it may be
    /// stored.
    pub(super) fn insert(&mut self, request: &CachedRequest, result: Remembered) -> bool {
        self.uncacheable.pop(request);
        let newer = self.results.peek(request).is_some_and(|present| present.begun > result.begun);
        if newer || self.invalidated_at(&request.topic()) > result.begun {
            return false;
        }
        let bytes = result.fetched.raw.as_str().len();
        self.results.insert(request.clone(), result, bytes);
        true
    }

    /// Marks a request as not cacheable. Returns whether an older result was removed.
    pub(super) fn mark_uncacheable(&mut self, fetch: &Fetch) -> bool {
        self.uncacheable.put(fetch.request.clone(), ());
        let present = self.results.peek(&fetch.request);
        let older = present.is_some_and(|present| present.begun < fetch.begun);
        if older {
            self.results.remove(&fetch.request);
        }
        older
    }

    pub(super) fn is_uncacheable(&self, request: &CachedRequest) -> bool {
        self.uncacheable.contains(request)
    }

    /// Begins a fetch.
    pub(super) fn fetch(
        &mut self,
        request: CachedRequest,
        link: &ClientConnection,
        now: SystemTime,
    ) -> Fetch {
        let (revision, generation) = (link.revision(), link.generation);
        Fetch { request, revision, generation, begun: self.moment(now) }
    }

    /// Returns the same request in flight, if it began after the last invalidation.
    fn flight(&self, request: &CachedRequest, key: &SharingKey) -> Option<SharedFetch> {
        let since = self.invalidated_at(&request.topic());
        let mut flights = self.flights.iter().filter(|entry| {
            entry.fetch.request == *request && entry.key == *key && entry.fetch.begun > since
        });
        flights.find_map(|entry| {
            // A completed one is dropped here; a running one must not be, under the lock.
            let outcome = entry.outcome.upgrade().filter(|outcome| outcome.peek().is_none())?;
            Some(SharedFetch { outcome, state: entry.state.clone() })
        })
    }

    /// Joins the same request in flight, or begins one in the same step.
    pub(super) fn join(
        &mut self,
        fetch: Fetch,
        key: SharingKey,
        begin: impl FnOnce(Fetch) -> SharedFetch,
    ) -> Flight {
        if let Some(flight) = self.flight(&fetch.request, &key) {
            return Flight::Joined(flight);
        }
        let flight = begin(fetch.clone());
        self.add_flight(fetch, key, &flight);
        Flight::Begun(flight)
    }

    fn add_flight(&mut self, fetch: Fetch, key: SharingKey, flight: &SharedFetch) {
        self.flights.retain(|entry| entry.state.signs.has_changed().is_ok());
        if let Some(outcome) = flight.outcome.downgrade() {
            self.flights.push(FlightEntry { fetch, key, outcome, state: flight.state.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use turnbuckle_types::Method;

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn resource(uri: impl Into<String>) -> CacheTopic {
        CacheTopic::Resource(uri.into())
    }

    #[test]
    fn a_fetch_that_began_before_an_invalidation_is_stale() {
        let mut memory = Memory::new(&ResponseCache::new());
        let tools = CacheTopic::List(Method::ListTools);
        let before = memory.moment(NOW);
        assert!(memory.invalidated_at(&tools) < before);
        memory.invalidate(&tools, NOW);
        let after = memory.moment(NOW);
        let at = memory.invalidated_at(&tools);
        assert!(before < at && at < after);
        let prompts = CacheTopic::List(Method::ListPrompts);
        assert!(memory.invalidated_at(&prompts) < before, "another topic");
        memory.invalidate_all(NOW);
        assert!(memory.invalidated_at(&tools) > after);
    }

    #[test]
    fn the_number_of_remembered_invalidations_is_limited() {
        let mut memory = Memory::new(&ResponseCache::new());
        let before = memory.moment(NOW);
        for count in 0..MAX_REMEMBERED.get() {
            memory.invalidate(&resource(format!("a:{count}")), NOW);
        }
        assert!(memory.invalidated_at(&resource("other:")) < before);
        memory.invalidate(&resource("a:more"), NOW);
        assert!(memory.invalidated_at(&resource("a:0")) > before);
        assert!(memory.invalidated_at(&resource("other:")) > before, "on the safe side");
        assert_eq!(memory.invalidated.len(), MAX_REMEMBERED.get());
    }
}
