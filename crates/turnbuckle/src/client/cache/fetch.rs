//! Runs a call through the cache: a result in memory, the same request in flight, or the server.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, OnceLock},
};

use futures_util::FutureExt as _;
use tokio::{sync::watch, time::Instant};
use turnbuckle_types::{
    CacheScope, DiscoverResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, Meta, Method, Raw, ReadResourceResult, code,
};

use super::{
    CacheMode, ClientCache,
    key::CachedRequest,
    memory::{CachedValue, Fetch, Fetched, Flight, FlightState, SharedFetch, SharingKey},
};
use crate::{
    client::{
        Timeouts,
        call::{Call, CallResponse, DecodeContext, deadlines::Deadlines},
        connection::handle::ClientConnection,
        handlers::answer::Clocks,
    },
    error::{Error, Result},
};

/// The time to live of a result in milliseconds, and who may share it.
type Hint = (Option<u64>, Option<CacheScope>);

/// How a call uses the cache, and the functions of its result type.
pub(crate) struct Cached<T> {
    pub(crate) mode: CacheMode,
    method: Method,
    share: fn(T) -> (Hint, CachedValue),
    unshare: fn(CachedValue) -> Option<T>,
}

impl<T> Clone for Cached<T> {
    fn clone(&self) -> Cached<T> {
        *self
    }
}

impl<T> Copy for Cached<T> {}

/// A result with a time to live.
pub(crate) trait Cacheable: Clone + Send + Sync + 'static {
    const METHOD: Method;
    fn hint(&self) -> Hint;
}

macro_rules! cacheable {
    ($($result:ty: $method:ident,)+) => {
        $(impl Cacheable for $result {
            const METHOD: Method = Method::$method;
            fn hint(&self) -> Hint {
                (self.ttl_ms, self.cache_scope.clone())
            }
        })+
    };
}

cacheable! {
    ListToolsResult: ListTools,
    ListPromptsResult: ListPrompts,
    ListResourcesResult: ListResources,
    ListResourceTemplatesResult: ListResourceTemplates,
    ReadResourceResult: ReadResource,
    DiscoverResult: Discover,
}

impl<T: Cacheable> Cached<T> {
    pub(crate) fn new() -> Cached<T> {
        Cached {
            // A caller of `discover` wants to know whether the server is there.
            mode: match T::METHOD {
                Method::Discover => CacheMode::Refresh,
                _ => CacheMode::Use,
            },
            method: T::METHOD,
            share: |result| (result.hint(), Arc::new(result)),
            unshare: |value| value.downcast::<T>().ok().map(Arc::unwrap_or_clone),
        }
    }
}

impl<T> Cached<T> {
    fn unshare(self, fetched: Fetched) -> Result<(T, Raw)> {
        let other = || Error::protocol("a cached result is of another type");
        Ok(((self.unshare)(fetched.value).ok_or_else(other)?, fetched.raw))
    }
}

/// Where the result of a call comes from.
enum Source {
    Memory(Fetched),
    Flight(Flight),
    /// Its own request.
    Alone(Fetch),
}

impl<T: 'static> Call<T> {
    /// Returns the result and its text. Must be called once.
    pub(crate) async fn send_cached(&mut self, cached: Cached<T>) -> Result<(T, Raw)> {
        // A loop over results in memory must let other tasks run.
        tokio::task::consume_budget().await;
        let (link, cache) =
            (self.request.client.link(), self.request.client.settings().cache.clone());
        if !self.is_cacheable(&link, cached) {
            let sent = Box::pin(self.send()).await;
            return sent.map(|CallResponse { value, raw, .. }| (value, raw));
        }
        match self.source(&cache, &link, cached)? {
            Source::Memory(fetched) => cached.unshare(fetched),
            // Boxed, because most results come from memory and need no memory for a request.
            source => Box::pin(self.send_from(source, &cache, &link, cached)).await,
        }
    }

    /// Returns the result from this source, and its text.
    async fn send_from(
        &mut self,
        source: Source,
        cache: &Arc<ClientCache>,
        link: &Arc<ClientConnection>,
        cached: Cached<T>,
    ) -> Result<(T, Raw)> {
        let timeouts = self.request.timeouts;
        let fetched = match source {
            Source::Memory(fetched) => fetched,
            Source::Flight(Flight::Begun(flight)) => {
                wait(flight, timeouts, link, cached.method).await?
            }
            Source::Flight(Flight::Joined(flight)) => {
                let started = Instant::now();
                let fetched = wait(flight, timeouts, link, cached.method).await?;
                if fetched.is_shareable {
                    fetched
                } else {
                    let waited = started.elapsed();
                    let total = timeouts.total.map(|total| total.saturating_sub(waited));
                    self.request.timeouts.total = total;
                    let request = self.cached_request(link, cached)?;
                    let fetch = cache.memory().fetch(request, link, cache.now());
                    self.fetch(cache, (link, &fetch), cached, false).await?
                }
            }
            Source::Alone(fetch) => {
                let reads = self.reads_cache(cached);
                self.fetch(cache, (link, &fetch), cached, reads).await?
            }
        };
        cached.unshare(fetched)
    }

    fn cached_request(
        &mut self,
        link: &ClientConnection,
        cached: Cached<T>,
    ) -> Result<CachedRequest> {
        let params = self.request.params.text(link.revision())?;
        Ok(CachedRequest { method: cached.method, params })
    }

    /// Returns `true` if the cache applies to this call. Headers and `_meta` may change the result
    /// and are no part of a key.
    fn is_cacheable(&self, link: &ClientConnection, cached: Cached<T>) -> bool {
        let request = &self.request;
        #[cfg(feature = "http")]
        let plain = request.about.headers.is_empty();
        #[cfg(not(feature = "http"))]
        let plain = true;
        let trace = [Meta::TRACEPARENT, Meta::TRACESTATE, Meta::BAGGAGE];
        plain
            && cached.mode != CacheMode::Bypass
            && request.meta.iter().all(|(key, _)| trace.contains(&key))
            && request.client.settings().cache.settings.is_enabled(link.revision())
            // It fails as any other call does.
            && !request.client.supervisor.is_closed()
    }

    /// Returns `true` if the call may use a cached result. A caller that sets an id wants to send it.
    fn reads_cache(&self, cached: Cached<T>) -> bool {
        cached.mode == CacheMode::Use && self.request.id.is_none()
    }

    /// Returns the source of the result, and joins or begins a request in the same step.
    fn source(
        &mut self,
        cache: &Arc<ClientCache>,
        link: &Arc<ClientConnection>,
        cached: Cached<T>,
    ) -> Result<Source> {
        let request = self.cached_request(link, cached)?;
        let (reads, now) = (self.reads_cache(cached), cache.now());
        let mut memory = cache.memory();
        memory.use_connection(link.generation, now);
        if reads && let Some(fetched) = memory.get(&request, link.generation, now) {
            return Ok(Source::Memory(fetched));
        }
        let has_observer = self.request.on_progress.is_some() || self.request.notes.is_some();
        if !reads || has_observer || memory.is_uncacheable(&request) {
            return Ok(Source::Alone(memory.fetch(request, link, now)));
        }
        let (key, fetch) = (self.sharing_key(), memory.fetch(request, link, now));
        let begin = |fetch| self.duplicate().flight(cache.clone(), link.clone(), fetch, cached);
        Ok(Source::Flight(memory.join(fetch, key, begin)))
    }

    fn sharing_key(&self) -> SharingKey {
        let request = &self.request;
        let progress = request.timeouts.idle.is_some();
        (request.rounds, request.retry, request.abandon, request.log_level, progress)
    }

    /// Turns the call into a request that several callers wait for, each with its own timeouts.
    fn flight(
        mut self,
        cache: Arc<ClientCache>,
        link: Arc<ClientConnection>,
        fetch: Fetch,
        cached: Cached<T>,
    ) -> SharedFetch {
        let (sign, signs) = watch::channel(());
        let request = &mut self.request;
        if request.timeouts.idle.is_some() {
            let sign = sign.clone();
            request.on_progress = Some(Arc::new(Mutex::new(move |_| {
                let _ = sign.send(());
            })));
        }
        request.timeouts = Timeouts { idle: None, total: None };
        let clock = request.clock.get_or_insert_default().clone();
        let cancel_reason = Arc::<OnceLock<String>>::default();
        request.cancel_reason = Some(cancel_reason.clone());
        let fetching = async move {
            let fetching = self.fetch(&cache, (&link, &fetch), cached, true);
            let fetched = AssertUnwindSafe(fetching).catch_unwind().await;
            drop(sign);
            let panicked = |_| Err(Error::protocol("the request that callers share panicked"));
            fetched.unwrap_or_else(panicked).map_err(Arc::new)
        };
        let outcome = fetching.boxed().shared();
        SharedFetch { outcome, state: Arc::new(FlightState { signs, clock, cancel_reason }) }
    }

    /// Reads the result from the store or from the server, and caches it.
    async fn fetch(
        &mut self,
        cache: &Arc<ClientCache>,
        (link, fetch): (&ClientConnection, &Fetch),
        cached: Cached<T>,
        reads_store: bool,
    ) -> Result<Fetched> {
        if reads_store && let Some((raw, remaining)) = cache.read_store(fetch).await {
            // An entry that can't be decoded is ignored.
            let decoded = self.decode.decode(&DecodeContext { link, tool: None }, &raw);
            if let Ok((_, value)) = decoded.map(cached.share) {
                let fetched = Fetched { value, raw, is_shareable: true };
                cache.remember(fetch, fetched.clone(), remaining);
                return Ok(fetched);
            }
        }
        let response = self.send().await.map(|response| {
            let CallResponse { value, raw, rounds, revision, generation } = response;
            ((cached.share)(value), raw, rounds, revision, generation)
        });
        let ((hint, value), raw, rounds, revision, generation) =
            response.inspect_err(|error| invalidate_pages(cache, fetch, error))?;
        // 2026-07-28 server/utilities/caching §Cache Key: the result of a retry depends on more than
        // the request. Another revision has another key.
        let is_keyed = rounds == 0 && revision == fetch.revision;
        let term = cache.settings.term(hint, fetch.revision).filter(|_| is_keyed);
        let fetched = Fetched { value, raw, is_shareable: term.is_some() };
        match term {
            Some(term) => {
                let fetch = Fetch { generation, ..fetch.clone() };
                cache.keep(&fetch, fetched.clone(), term).await;
            }
            None => cache.mark_uncacheable(fetch),
        }
        Ok(fetched)
    }
}

/// 2026-07-28 server/utilities/caching §Interaction with Pagination: an invalid cursor invalidates
/// all pages.
fn invalidate_pages(cache: &ClientCache, fetch: &Fetch, error: &Error) {
    let refused = error.as_rpc().is_some_and(|rpc| rpc.code == code::INVALID_PARAMS);
    if refused && fetch.request.is_later_page() {
        cache.invalidate(&[fetch.request.topic()], fetch.revision);
    }
}

/// Waits for a request in flight, within the timeouts of one caller.
async fn wait(
    flight: SharedFetch,
    timeouts: Timeouts,
    link: &ClientConnection,
    method: Method,
) -> Result<Fetched> {
    let SharedFetch { mut outcome, state } = flight;
    let clocks = Clocks { all: &link.answering, own: Some(&state.clock) };
    let now = Instant::now();
    let mut deadlines = Deadlines::new(timeouts, now, clocks.paused(now));
    let mut signs = state.signs.clone();
    let limited = loop {
        tokio::select! {
            // The deadline comes first: progress does not extend one that has passed.
            biased;
            limited = deadlines.limit(clocks, std::pin::Pin::new(&mut outcome)) => break limited,
            Ok(()) = signs.changed() => {
                let now = Instant::now();
                deadlines.sign(now, clocks.paused(now));
            }
        }
    };
    match limited {
        Ok(fetched) => fetched.map_err(|error| error.again()),
        Err(expired) => {
            let reason = expired.reason();
            let error = Error::timeout(method.as_str(), &reason);
            // The last caller cancels the request and says why.
            if outcome.strong_count() == Some(1) {
                let _ = state.cancel_reason.set(reason);
            }
            Err(error)
        }
    }
}
