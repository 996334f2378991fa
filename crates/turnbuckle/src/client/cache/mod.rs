//! Keeps the answers of a server for as long as it says that they are fresh.
//!
//! Owns: which answers are kept, where, and when they are stale. Does not own: asking the server
//! (`call` does), nor the events that make answers stale.

mod evicted;
mod fetch;
mod flight;
mod freshness;
mod key;
mod lru;
mod memory;
mod settings;
mod store;

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;
use turnbuckle_types::{Raw, Revision};

pub(super) use fetch::{Cacheable, Kept};
pub(super) use freshness::without_negative_ttl;
pub use key::CacheKey;
pub(super) use key::Known;
pub use settings::{CacheMode, ResponseCache};
pub use store::{CacheEntry, CacheStore, MemoryCache};

use self::{
    evicted::Order,
    flight::Value,
    freshness::{Audience, Term},
    key::{Identity, Request, Topic},
    memory::{Memory, Remembered},
    settings::Public,
};
use super::link::Link;
use crate::{dispatch::Note, store::StoreFuture};

/// How long a store may take for anything. It is there to save time.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many groups may wait to be removed from a store. What is more than that is left to its time;
/// this client does not use it.
const MOST_REMOVALS: usize = 1024;

/// The answers that one client keeps, over all of its connections.
pub(super) struct Caching {
    settings: ResponseCache,
    memory: Mutex<Memory>,
    identity: OnceLock<Identity>,
    removals: Mutex<Removals>,
    /// When both clocks were looked at together.
    started: (SystemTime, Instant),
}

/// What is to be removed from the store.
#[derive(Default)]
struct Removals {
    groups: Vec<String>,
    /// Whether someone is at it.
    is_running: bool,
}

/// What a fetch is about.
struct Fetch {
    request: Request,
    revision: Revision,
    generation: u64,
    begun: Order,
}

impl Caching {
    pub(super) fn new(settings: ResponseCache) -> Caching {
        Caching {
            memory: Mutex::new(Memory::new(settings.bounds)),
            settings,
            identity: OnceLock::new(),
            removals: Mutex::default(),
            started: (SystemTime::now(), Instant::now()),
        }
    }

    /// Says whose answers these are, before there is any. `server` and `principal` are what can be
    /// told from the outside, `able` is what this client declares: a server may go by it.
    pub(super) fn identify(&self, server: Known, principal: Known, able: Vec<u8>) {
        if self.settings.store.is_some() {
            let _ = self.identity.set(self.settings.identity(server, principal, able));
        }
    }

    fn identity(&self) -> &Identity {
        let nothing = || self.settings.identity(Known::Nothing, Known::Nothing, Vec::new());
        self.identity.get_or_init(nothing)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch(&self, request: Request, link: &Link) -> Fetch {
        self.memory().fetch(request, link)
    }

    fn removals(&self) -> MutexGuard<'_, Removals> {
        self.removals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The later of two clocks: one goes on while a machine sleeps, the other is never set back.
    fn now(&self) -> SystemTime {
        let (wall, steady) = self.started;
        SystemTime::now().max(wall + steady.elapsed())
    }

    /// Hears a notification of the server. It is called by the reader and does not wait.
    pub(super) fn heard(self: &Arc<Self>, note: &Note, revision: Option<Revision>) {
        let topics = evicted::by(note);
        if let Some(revision) = revision.filter(|_| !topics.is_empty()) {
            self.evict(&topics, revision);
        }
    }

    /// Something may have been said that nobody heard: whatever is kept may be stale.
    pub(super) fn missed(&self) {
        self.memory().missed(self.now());
    }

    /// From now on somebody else may be asking: what was kept is not for them.
    #[cfg(all(feature = "auth", feature = "http"))]
    pub(super) fn forget_all(&self) {
        let now = self.now();
        self.memory().forget_all(now);
    }

    fn evict(self: &Arc<Self>, topics: &[Topic], revision: Revision) {
        let now = self.now();
        let mut memory = self.memory();
        topics.iter().for_each(|topic| memory.evict(topic, now));
        drop(memory);
        let groups = topics.iter().flat_map(|topic| {
            self.audiences().into_iter().map(|to| self.identity().group(to, revision, topic))
        });
        if self.settings.store.is_some() {
            self.remove(groups.collect());
        }
    }

    /// In which order the store is looked through.
    fn audiences(&self) -> Vec<Audience> {
        match self.settings.public {
            Public::Principal => vec![Audience::Principal],
            Public::Everyone => vec![Audience::Principal, Audience::Everyone],
        }
    }

    /// Removes groups from the store, at some time soon.
    fn remove(self: &Arc<Self>, groups: Vec<String>) {
        let mut removals = self.removals();
        for group in groups {
            if removals.groups.len() < MOST_REMOVALS && !removals.groups.contains(&group) {
                removals.groups.push(group);
            }
        }
        let runtime = tokio::runtime::Handle::try_current();
        if let Ok(runtime) = runtime
            && !mem::replace(&mut removals.is_running, true)
        {
            runtime.spawn(self.clone().removing());
        }
    }

    async fn removing(self: Arc<Self>) {
        loop {
            let groups = {
                let mut removals = self.removals();
                removals.is_running = !removals.groups.is_empty();
                mem::take(&mut removals.groups)
            };
            let Some(store) = self.settings.store.as_ref().filter(|_| !groups.is_empty()) else {
                return;
            };
            for group in &groups {
                patiently("removing from", store.remove(group)).await;
            }
        }
    }

    /// What the store has for a request: its result, and for how much longer it is fresh.
    async fn stored(&self, fetch: &Fetch) -> Option<(Raw, Duration)> {
        let store = self.settings.store.as_ref()?;
        for audience in self.audiences() {
            let key = self.identity().key(audience, fetch.revision, &fetch.request);
            let Some(entry) = patiently("reading from", store.get(&key)).await.flatten() else {
                continue;
            };
            let since = self.memory().evicted.since(&fetch.request.topic());
            let left = self.settings.rules.left(entry.received, entry.ttl, self.now());
            if let Some(left) = left.filter(|_| entry.received >= since.time) {
                return Some((entry.result, left));
            }
        }
        None
    }

    /// Keeps an answer in this client's memory, unless something has made it stale meanwhile.
    fn remember(&self, fetch: &Fetch, value: Value, bytes: usize, ttl: Duration) -> bool {
        let (wall, steady) = (SystemTime::now(), Instant::now());
        // A time too long to be told is not kept.
        let (Some(until), Some(until_wall)) = (steady.checked_add(ttl), wall.checked_add(ttl))
        else {
            return false;
        };
        let remembered = Remembered {
            value,
            begun: fetch.begun,
            generation: fetch.generation,
            until: (until, until_wall),
        };
        self.memory().remember(&fetch.request, remembered, bytes)
    }

    /// Keeps what a server has just answered, as it may be.
    async fn keep(self: &Arc<Self>, fetch: &Fetch, (value, raw): (Value, Raw), term: Term) {
        let received = self.now();
        if !self.remember(fetch, value, raw.as_str().len(), term.ttl) {
            return;
        }
        let Some(store) = &self.settings.store else { return };
        let audience = match self.settings.public {
            Public::Everyone => term.audience,
            Public::Principal => Audience::Principal,
        };
        let (identity, topic) = (self.identity(), fetch.request.topic());
        for other in self.audiences().into_iter().filter(|other| *other != audience) {
            // It was for others once: never two that differ.
            let group = identity.group(other, fetch.revision, &topic);
            patiently("removing from", store.remove(&group)).await;
        }
        let key = identity.key(audience, fetch.revision, &fetch.request);
        let entry = CacheEntry::new(raw, received, term.ttl);
        patiently("writing to", store.put(&key, entry)).await;
        // What an event has made stale meanwhile may have been removed before it was there.
        if self.memory().evicted.since(&topic).order > fetch.begun {
            self.remove(vec![key.group().to_owned()]);
        }
    }

    /// A newer answer came that must not be kept: neither may the one before.
    fn outdate(self: &Arc<Self>, fetch: &Fetch) {
        let had = self.memory().outdate(&fetch.request, fetch.begun);
        if had && self.settings.store.is_some() {
            let topic = fetch.request.topic();
            let groups = self.audiences().into_iter();
            let groups = groups.map(|to| self.identity().group(to, fetch.revision, &topic));
            self.remove(groups.collect());
        }
    }
}

impl Default for Caching {
    fn default() -> Caching {
        Caching::new(ResponseCache::default())
    }
}

impl ResponseCache {
    /// A name that a user gives counts for more than what can be seen; headers always count.
    fn identity(&self, server: Known, principal: Known, able: Vec<u8>) -> Identity {
        let named = |kind: &str, name: &str| vec![kind.as_bytes().to_vec(), name.into()];
        let server = match &self.server {
            Some(name) => Known::Parts(named("named", name)),
            None => server,
        };
        let principal = match (&self.partition, principal) {
            (Some(name), Known::Parts(mut parts)) => {
                parts.extend(named("partition", name));
                Known::Parts(parts)
            }
            (Some(name), Known::Nothing) => Known::Parts(named("partition", name)),
            (None, seen) => seen,
        };
        Identity::new(&server, &principal, &able)
    }
}

/// What a store says in time. One that fails costs nothing but what it would have saved.
async fn patiently<T>(doing: &str, asked: StoreFuture<'_, T>) -> Option<T> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "{doing} the store of answers failed");
            None
        }
        Err(_) => {
            tracing::debug!("{doing} the store of answers took too long");
            None
        }
    }
}
