//! Owns the way of a call whose answer may be kept: what is at hand, what others are fetching
//! already, or the server. Does not own keeping, nor the wire.

use std::sync::{Arc, Mutex};

use tokio::{sync::watch, time::Instant};
use turnbuckle_types::{
    CacheScope, DiscoverResult, Encode, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, Meta, Method, Raw, ReadResourceResult, Revision, code,
};

use super::{
    CacheMode, Caching, Fetch,
    flight::{Fetched, Flight, Sharing, Value},
    freshness::Hint,
    key::Request,
    memory::{Likeness, Signs},
};
use crate::{
    client::{
        Timeouts,
        answer::Clocks,
        call::{Answer, Call, Told},
        clock::Deadlines,
        link::Link,
    },
    error::{Error, Result},
};

/// What is done with a result that may be kept, and how it is asked for.
pub(crate) struct Kept<T> {
    pub(crate) mode: CacheMode,
    method: Method,
    hint: fn(&T) -> Hint,
    text: fn(&T, Revision) -> Raw,
    share: fn(T) -> Value,
    unshare: fn(Value) -> Option<T>,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Kept<T> {
        *self
    }
}

impl<T> Copy for Kept<T> {}

/// A result that says for how long it may be kept.
pub(crate) trait Cacheable: Encode + Clone + Send + Sync + 'static {
    const METHOD: Method;
    fn hint(&self) -> (Option<u64>, Option<CacheScope>);
}

macro_rules! cacheable {
    ($($result:ty: $method:ident,)+) => {
        $(impl Cacheable for $result {
            const METHOD: Method = Method::$method;
            fn hint(&self) -> (Option<u64>, Option<CacheScope>) {
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

impl<T: Cacheable> Kept<T> {
    pub(crate) fn new() -> Kept<T> {
        Kept {
            // Who asks for this wants to know whether the server is there.
            mode: match T::METHOD {
                Method::Discover => CacheMode::Refresh,
                _ => CacheMode::Use,
            },
            method: T::METHOD,
            hint: |result| {
                let (ttl_ms, scope) = result.hint();
                Hint { ttl_ms, scope }
            },
            text: |result, revision| Raw::at(result, revision),
            share: |result| Arc::new(result),
            unshare: |value| value.downcast::<T>().ok().map(Arc::unwrap_or_clone),
        }
    }
}

impl<T> Kept<T> {
    /// The text of a result whose own was not kept.
    pub(crate) fn written(self, result: &T, revision: Revision) -> Raw {
        (self.text)(result, revision)
    }
}

/// Whether the store is looked at before the server is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Store,
    Nowhere,
}

/// How a call comes to its answer.
enum Way<T> {
    /// It is at hand.
    Done(Value),
    /// With a fetch that it has begun and that others may join.
    Lead(Arc<Flight>),
    /// With a fetch that another has begun.
    Follow(Arc<Flight>, Call<T>),
    Alone(Call<T>, Fetch, Look),
}

impl<T: 'static> Call<T> {
    /// What is at hand for this call, where it may be given that: nothing is begun for it.
    pub(crate) async fn at_hand(&mut self, kept: Kept<T>) -> Result<Option<T>> {
        // Answers at hand cost no waiting; who takes one after the other must let others run.
        tokio::task::consume_budget().await;
        let link = self.client.link();
        let is_kept = self.is_kept(&self.client.settings().cache, &link, kept);
        if !is_kept || self.look(kept) != Look::Store {
            return Ok(None);
        }
        let request = Request { method: kept.method, params: self.params.text(link.revision())? };
        let cache = &self.client.settings().cache;
        let mut memory = cache.memory();
        memory.on(link.generation, || cache.now());
        let value = memory.recall(&request, link.generation);
        drop(memory);
        value.map(|value| unshared(value, kept)).transpose()
    }

    /// Makes a call whose answer may be kept: what it is made into, and its text, unless it was at
    /// hand without that.
    pub(crate) async fn run_kept(self, kept: Kept<T>) -> Result<(T, Option<Raw>)> {
        // Answers at hand cost no waiting; who takes one after the other must let others run.
        tokio::task::consume_budget().await;
        let link = self.client.link();
        let cache = self.client.settings().cache.clone();
        if !self.is_kept(&cache, &link, kept) {
            let Answer { value, raw, .. } = self.wire().await?;
            return Ok((value, Some(raw)));
        }
        let timeouts = self.timeouts;
        let (call, fetch, look) = match self.way(&cache, &link, kept)? {
            Way::Done(value) => return Ok((unshared(value, kept)?, None)),
            Way::Lead(flight) => {
                let fetched = wait(flight, timeouts, &link, kept.method).await?;
                return fetched.unshared(kept);
            }
            Way::Follow(flight, mut call) => {
                let started = Instant::now();
                let fetched = wait(flight, timeouts, &link, kept.method).await?;
                if fetched.sharing == Sharing::Allowed {
                    return fetched.unshared(kept);
                }
                let waited = started.elapsed();
                call.timeouts.total = timeouts.total.map(|total| total.saturating_sub(waited));
                let (params, _) = call.params.take(link.revision())?;
                let fetch = cache.fetch(Request { method: kept.method, params }, &link);
                (call, fetch, Look::Nowhere)
            }
            Way::Alone(call, fetch, look) => (call, fetch, look),
        };
        let fetched = fetched(call, &cache, (&link, &fetch), kept, look).await?;
        fetched.unshared(kept)
    }

    /// Whether the cache has to do with this call.
    fn is_kept(&self, cache: &Caching, link: &Link, kept: Kept<T>) -> bool {
        // What they say may change the answer, and is no part of any key.
        #[cfg(feature = "http")]
        let plain = self.about.headers.is_empty();
        #[cfg(not(feature = "http"))]
        let plain = true;
        plain
            && kept.mode != CacheMode::Bypass
            && self.meta.iter().all(|(key, _)| is_plain(key))
            && cache.settings.rules.may_keep(link.revision())
            // It fails as any other call does.
            && !self.client.supervisor.is_closed()
    }

    fn look(&self, kept: Kept<T>) -> Look {
        match kept.mode {
            // Who chose an id wants to see it on the wire.
            CacheMode::Use if self.id.is_none() => Look::Store,
            _ => Look::Nowhere,
        }
    }

    /// Decides, and joins or begins a fetch in the same step.
    fn way(mut self, cache: &Arc<Caching>, link: &Arc<Link>, kept: Kept<T>) -> Result<Way<T>> {
        let (params, _) = self.params.take(link.revision())?;
        let request = Request { method: kept.method, params };
        let mut memory = cache.memory();
        memory.on(link.generation, || cache.now());
        let look = self.look(kept);
        if look == Look::Store
            && let Some(value) = memory.recall(&request, link.generation)
        {
            return Ok(Way::Done(value));
        }
        let is_watched = self.on_progress.is_some() || self.outlet.is_some();
        let is_alone = look == Look::Nowhere || is_watched;
        if is_alone || memory.is_unkept(&request) {
            let fetch = memory.fetch(request, link);
            return Ok(Way::Alone(self, fetch, look));
        }
        let likeness = self.likeness();
        if let Some(flight) = memory.aboard(&request, &likeness) {
            return Ok(Way::Follow(flight, self));
        }
        let fetch = memory.fetch(request.clone(), link);
        let begun = fetch.begun;
        let flight = Arc::new(self.flight(cache, link.clone(), fetch, kept));
        memory.board(request, begun, likeness, &flight);
        Ok(Way::Lead(flight))
    }

    fn likeness(&self) -> Likeness {
        Likeness {
            rounds: self.rounds,
            retry: self.retry,
            abandon: self.abandon,
            log_level: self.log_level,
            signs: if self.timeouts.idle.is_some() { Signs::Wanted } else { Signs::Unwanted },
        }
    }

    /// This call, for all who wait for it: each of them has clocks of its own.
    fn flight(
        mut self,
        cache: &Arc<Caching>,
        link: Arc<Link>,
        fetch: Fetch,
        kept: Kept<T>,
    ) -> Flight {
        let aboard = Aboard { cache: cache.clone(), fetch };
        let signs_wanted = self.timeouts.idle.is_some();
        self.timeouts = Timeouts { idle: None, total: None };
        let clock = self.clock.get_or_insert_default().clone();
        let flight = Flight::new(move |signs: watch::Sender<()>, why| {
            if signs_wanted {
                self.on_progress = Some(Arc::new(Mutex::new(move |_| {
                    let _ = signs.send(());
                })));
            }
            self.why = Some(why);
            Box::pin(async move {
                let of = (&*link, &aboard.fetch);
                fetched(self, &aboard.cache, of, kept, Look::Store).await
            })
        });
        flight.timed_by(clock)
    }
}

/// Whether what is written under this key has no part in what is answered: it says only in which
/// trace a request is made.
fn is_plain(key: &str) -> bool {
    matches!(key, Meta::TRACEPARENT | Meta::TRACESTATE | Meta::BAGGAGE)
}

/// A fetch that others may join, until it has ended or nobody waits for it any more.
struct Aboard {
    cache: Arc<Caching>,
    fetch: Fetch,
}

impl Drop for Aboard {
    fn drop(&mut self) {
        self.cache.memory().landed(&self.fetch.request, self.fetch.begun);
    }
}

/// Fetches an answer: from the store, or from the server, and then it is kept as it may be.
async fn fetched<T: 'static>(
    call: Call<T>,
    cache: &Arc<Caching>,
    (link, fetch): (&Link, &Fetch),
    kept: Kept<T>,
    look: Look,
) -> Result<Fetched> {
    if look == Look::Store
        && let Some((raw, left)) = cache.stored(fetch).await
    {
        let bytes = raw.as_str().len();
        // What can't be read is no answer. What can teaches this connection what it says.
        if let Ok(value) = call.decode.decode(&Told { link, tool: None }, &raw).map(kept.share) {
            cache.remember(fetch, value.clone(), bytes, left);
            return Ok(Fetched { value, raw, sharing: Sharing::Allowed });
        }
    }
    let shared = |answer: Answer<T>| {
        let hint = (kept.hint)(&answer.value);
        let Answer { value, raw, rounds, revision, generation } = answer;
        (hint, Answer { value: (kept.share)(value), raw, rounds, revision, generation })
    };
    let answer = call.wire().await.map(shared);
    let (hint, Answer { value, raw, rounds, revision, generation }) =
        answer.inspect_err(|error| forget_pages(cache, fetch, error))?;
    // 2026-07-28 server/utilities/caching §Cache Key: what came of a retry depends on more than
    // the request says. What another connection said may be about another request.
    let same = rounds == 0 && revision == fetch.revision;
    let term = cache.settings.rules.term(hint, fetch.revision).filter(|_| same);
    match term {
        Some(term) => {
            let fetch = Fetch { request: fetch.request.clone(), generation, ..*fetch };
            cache.keep(&fetch, (value.clone(), raw.clone()), term).await;
            Ok(Fetched { value, raw, sharing: Sharing::Allowed })
        }
        None => {
            cache.outdate(fetch);
            Ok(Fetched { value, raw, sharing: Sharing::Leader })
        }
    }
}

/// 2026-07-28 server/utilities/caching §Interaction with Pagination: a cursor that is refused
/// takes all pages with it.
fn forget_pages(cache: &Arc<Caching>, fetch: &Fetch, error: &Error) {
    let refused = error.as_rpc().is_some_and(|rpc| rpc.code == code::INVALID_PARAMS);
    if refused && fetch.request.is_later_page() {
        cache.evict(&[fetch.request.topic()], fetch.revision);
    }
}

impl Fetched {
    fn unshared<T>(self, kept: Kept<T>) -> Result<(T, Option<Raw>)> {
        Ok((unshared(self.value, kept)?, Some(self.raw)))
    }
}

fn unshared<T>(value: Value, kept: Kept<T>) -> Result<T> {
    let other = || Error::protocol("an answer that is kept is of another kind");
    (kept.unshare)(value).ok_or_else(other)
}

/// Waits for a fetch for as long as one call may take.
async fn wait(
    flight: Arc<Flight>,
    timeouts: Timeouts,
    link: &Link,
    method: Method,
) -> Result<Fetched> {
    let (all, own) = (link.answering.clone(), flight.clock());
    let clocks = Clocks { all: &all, own: Some(&own) };
    let now = Instant::now();
    let mut deadlines = Deadlines::new(timeouts, now, clocks.paused(now));
    let (mut signs, mut outcome) = (flight.signs(), flight.outcome());
    // From here on only those who wait hold it.
    drop(flight);
    loop {
        let Some(deadline) = deadlines.next(clocks.paused(Instant::now())) else {
            return outcome.await;
        };
        tokio::select! {
            biased;
            fetched = &mut outcome => return fetched,
            Ok(()) = signs.changed() => {
                let now = Instant::now();
                // Progress is no excuse for a call whose time is up.
                if now < deadline {
                    deadlines.sign(now, clocks.paused(now));
                    continue;
                }
            }
            () = tokio::time::sleep_until(deadline) => {}
        }
        // While this side answers a question the clocks stand still.
        tokio::select! {
            biased;
            fetched = &mut outcome => return fetched,
            () = clocks.over() => {}
        }
        let now = Instant::now();
        if let Some(clock) = deadlines.ran_out(now, clocks.paused(now)) {
            let reason = clock.reason();
            let error = Error::timeout(method.as_str(), &reason);
            outcome.leave(reason);
            return Err(error);
        }
    }
}
