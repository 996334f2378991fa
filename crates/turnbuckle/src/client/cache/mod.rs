//! The client's cache of results with a time to live.
//!
//! [`ClientCache`] keeps decoded results in memory ([`memory`]) and, if there is one, in a store that
//! clients share ([`store`]). [`fetch`] runs a call through it.

mod fetch;
mod key;
mod memory;
#[cfg(shuttle)]
pub(crate) mod models;
mod settings;
mod store;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::{Duration, SystemTime},
};

use serde_json::value::RawValue;
use tokio::{sync::mpsc, time::Instant};
use turnbuckle_types::{CacheScope, Method, Raw, ResourceUpdated, Revision};

pub(super) use fetch::{Cacheable, Cached};
pub use key::CacheKey;
pub(super) use key::{IdentityParts, command_parts};
pub use settings::{CacheMode, ResponseCache};
pub use store::{CacheEntry, CacheStore, MemoryCache};

use self::{
    key::{CacheIdentity, CacheTopic},
    memory::{Fetch, Fetched, Memory, Remembered},
};
use crate::{rpc::Note, store::StoreFuture};

/// How long one operation of a store may take. A store is there to save time.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// How many groups may wait for their removal from a store. Entries of further ones stay there until
/// their time to live has passed; this client does not use them.
const MAX_REMOVALS: usize = 1024;

/// The cache of one client, over all of its connections.
pub(crate) struct ClientCache {
    settings: ResponseCache,
    memory: Mutex<Memory>,
    store: OnceLock<SharedStore>,
    /// Both clocks, read together.
    started: (SystemTime, Instant),
}

impl ClientCache {
    pub(super) fn new(settings: ResponseCache) -> ClientCache {
        ClientCache {
            memory: Mutex::new(Memory::new(&settings)),
            settings,
            store: OnceLock::new(),
            started: (SystemTime::now(), Instant::now()),
        }
    }

    /// Sets the server, the principal and the client's capabilities for the keys of the store. The
    /// first call counts. Must be called in a runtime.
    pub(super) fn identify(
        &self,
        server: IdentityParts,
        principal: IdentityParts,
        capabilities: &[u8],
    ) {
        let Some(store) = &self.settings.store else { return };
        self.store.get_or_init(|| {
            let identity = self.settings.identity(server, principal, capabilities);
            SharedStore::new(store.clone(), identity, self.settings.share_public)
        });
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        crate::rpc::lock(&self.memory)
    }

    /// Returns the later of two clocks: one goes on while a machine sleeps, the other is never set
    /// back.
    fn now(&self) -> SystemTime {
        let (wall, steady) = self.started;
        SystemTime::now().max(wall + steady.elapsed())
    }

    /// Invalidates the results that a notification is about. Does not block.
    pub(super) fn handle_notification(&self, note: &Note, revision: Option<Revision>) {
        let topics = topics(note);
        if let Some(revision) = revision.filter(|_| !topics.is_empty()) {
            self.invalidate(&topics, revision);
        }
    }

    /// Invalidates everything in memory, because notifications may have been missed or because the
    /// user has changed.
    pub(super) fn invalidate_all(&self) {
        self.memory().invalidate_all(self.now());
    }

    fn invalidate(&self, topics: &[CacheTopic], revision: Revision) {
        let now = self.now();
        let mut memory = self.memory();
        topics.iter().for_each(|topic| memory.invalidate(topic, now));
        drop(memory);
        if let Some(store) = self.store.get() {
            topics.iter().for_each(|topic| store.remove(revision, topic));
        }
    }

    /// Returns a fresh result from the store, and for how much longer it is fresh.
    async fn read_store(&self, fetch: &Fetch) -> Option<(Raw, Duration)> {
        let store = self.store.get()?;
        for scope in store.scopes {
            let key = store.identity.key(*scope, fetch.revision, &fetch.request);
            let Some(entry) = limit("reading from", store.store.get(&key)).await.flatten() else {
                continue;
            };
            let invalidated = self.memory().invalidated_at(&fetch.request.topic()).time;
            if entry.received >= invalidated
                && let Some(remaining) = self.settings.remaining(&entry, self.now())
            {
                return Some((entry.result, remaining));
            }
        }
        None
    }

    /// Keeps a result in memory. Returns `false` if it has been invalidated.
    fn remember(&self, fetch: &Fetch, fetched: Fetched, ttl: Duration) -> bool {
        // A time that overflows is not cached.
        let Some(until) = self.now().checked_add(ttl) else { return false };
        let (begun, generation) = (fetch.begun, fetch.generation);
        let result = Remembered { fetched, begun, generation, until };
        self.memory().insert(&fetch.request, result)
    }

    /// Keeps a result of the server in memory and in the store.
    async fn keep(&self, fetch: &Fetch, fetched: Fetched, (ttl, scope): (Duration, CacheScope)) {
        let (received, raw) = (self.now(), fetched.raw.clone());
        if !self.remember(fetch, fetched, ttl) {
            return;
        }
        let Some(store) = self.store.get() else { return };
        store.put(fetch, scope, CacheEntry::new(raw, received, ttl)).await;
        // A notification may have removed the entry before it was inserted.
        let topic = fetch.request.topic();
        if self.memory().invalidated_at(&topic) > fetch.begun {
            store.remove(fetch.revision, &topic);
        }
    }

    /// Removes the result before one that must not be cached.
    fn mark_uncacheable(&self, fetch: &Fetch) {
        let removed = self.memory().mark_uncacheable(fetch);
        if let Some(store) = self.store.get().filter(|_| removed) {
            store.remove(fetch.revision, &fetch.request.topic());
        }
    }
}

impl Default for ClientCache {
    fn default() -> ClientCache {
        ClientCache::new(ResponseCache::default())
    }
}

/// A store, and the keys of this client in it.
struct SharedStore {
    store: Arc<dyn CacheStore>,
    identity: CacheIdentity,
    /// Where results are looked for, in this order.
    scopes: &'static [CacheScope],
    removals: mpsc::Sender<String>,
}

impl SharedStore {
    /// Also starts the task that removes groups; it ends with the cache.
    fn new(store: Arc<dyn CacheStore>, identity: CacheIdentity, share_public: bool) -> SharedStore {
        let (removals, mut groups) = mpsc::channel::<String>(MAX_REMOVALS);
        let remover = store.clone();
        tokio::spawn(async move {
            while let Some(group) = groups.recv().await {
                limit("removing from", remover.remove(&group)).await;
            }
        });
        let scopes: &[_] = match share_public {
            true => &[CacheScope::Private, CacheScope::Public],
            false => &[CacheScope::Private],
        };
        SharedStore { store, identity, scopes, removals }
    }

    async fn put(&self, fetch: &Fetch, scope: CacheScope, entry: CacheEntry) {
        let scope = if self.scopes.contains(&scope) { scope } else { CacheScope::Private };
        for other in self.scopes.iter().filter(|other| **other != scope) {
            // Its scope may have changed: there are never two results.
            let group = self.identity.group(*other, fetch.revision, &fetch.request.topic());
            limit("removing from", self.store.remove(&group)).await;
        }
        let key = self.identity.key(scope, fetch.revision, &fetch.request);
        limit("writing to", self.store.put(&key, entry)).await;
    }

    /// Removes a topic from the store, in the background.
    fn remove(&self, revision: Revision, topic: &CacheTopic) {
        for scope in self.scopes {
            let _ = self.removals.try_send(self.identity.group(*scope, revision, topic));
        }
    }
}

impl ResponseCache {
    /// A name in the settings replaces the server's; a partition is added to the headers.
    fn identity(
        &self,
        server: IdentityParts,
        principal: IdentityParts,
        capabilities: &[u8],
    ) -> CacheIdentity {
        let named = |kind: &str, name: &str| vec![kind.as_bytes().to_vec(), name.into()];
        let server = self.server.as_ref().map(|name| named("named", name)).or(server);
        let partition = self.partition.as_ref().map(|name| named("partition", name));
        let principal = match (principal, partition) {
            (Some(seen), Some(partition)) => Some([seen, partition].concat()),
            (seen, partition) => partition.or(seen),
        };
        CacheIdentity::new(server, principal, capabilities)
    }
}

/// Waits for a store; one that fails or takes too long is ignored.
async fn limit<T>(doing: &str, operation: StoreFuture<'_, T>) -> Option<T> {
    match tokio::time::timeout(STORE_TIMEOUT, operation).await {
        Ok(Ok(output)) => Some(output),
        Ok(Err(error)) => {
            tracing::debug!(%error, "{doing} the cache store failed");
            None
        }
        Err(_) => {
            tracing::debug!("{doing} the cache store timed out");
            None
        }
    }
}

/// Returns the topics that a notification invalidates.
fn topics(note: &Note) -> Vec<CacheTopic> {
    // Most notifications are of another kind, such as progress.
    if !note.method.ends_with("/list_changed") && !note.method.ends_with("/updated") {
        return Vec::new();
    }
    let lists = |methods: &[Method]| methods.iter().copied().map(CacheTopic::List).collect();
    match Method::from_name(&note.method) {
        Some(Method::ToolListChanged) => lists(&[Method::ListTools]),
        Some(Method::PromptListChanged) => lists(&[Method::ListPrompts]),
        // Templates have no notification of their own.
        Some(Method::ResourceListChanged) => {
            lists(&[Method::ListResources, Method::ListResourceTemplates])
        }
        Some(Method::ResourceUpdated) => {
            let updated = serde_json::from_str::<ResourceUpdated>(note.params.text());
            updated.map(|updated| resource_topics(&updated.uri)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Returns the resource and those that contain it, each with and without a slash at its end.
fn resource_topics(uri: &str) -> Vec<CacheTopic> {
    let mut topics = vec![CacheTopic::Resource(uri.to_owned())];
    let path = uri.find("://").map_or(0, |scheme| scheme + 3);
    for (slash, _) in uri.match_indices('/').filter(|(at, _)| *at >= path).take(64) {
        topics.extend([slash, slash + 1].map(|end| CacheTopic::Resource(uri[..end].to_owned())));
    }
    topics
}

/// Returns the result without a negative `ttlMs`, which the model does not allow; `None` if it has
/// none.
///
/// 2026-07-28 server/utilities/caching §TTL: it is to be ignored.
pub(crate) fn without_negative_ttl(result: &Raw) -> Option<Raw> {
    let mut members: BTreeMap<String, Box<RawValue>> = result.decode().ok()?;
    let ttl = members.remove("ttlMs")?;
    if !ttl.get().starts_with('-') {
        return None;
    }
    Raw::new(&members).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_notification_invalidates_its_topics() {
        let topics = |method: &str, params: serde_json::Value| {
            topics(&Note::new(method.to_owned(), Some(params.into())))
        };
        let list = |method| CacheTopic::List(method);
        let none = || json!({});
        let tools = topics("notifications/tools/list_changed", none());
        assert_eq!(tools, [list(Method::ListTools)]);
        let prompts = topics("notifications/prompts/list_changed", none());
        assert_eq!(prompts, [list(Method::ListPrompts)]);
        let resources = topics("notifications/resources/list_changed", none());
        assert_eq!(resources, [list(Method::ListResources), list(Method::ListResourceTemplates)]);
        let read = |uri: &str| CacheTopic::Resource(uri.to_owned());
        let updated = |uri: &str| topics("notifications/resources/updated", json!({"uri": uri}));
        assert_eq!(updated("note:7"), [read("note:7")]);
        let parts = ["file:///a/b", "file://", "file:///", "file:///a", "file:///a/"];
        assert_eq!(updated("file:///a/b"), parts.map(read));
        assert_eq!(topics("notifications/progress", json!({"uri": "a"})), []);
        assert_eq!(topics("notifications/resources/updated", none()), []);
    }

    #[test]
    fn a_negative_time_to_live_is_ignored() {
        let without = |text: &str| without_negative_ttl(&Raw::from_json(text).unwrap());
        let sound = without(r#"{"b":[1.50],"ttlMs":-5,"a":{"ttlMs":-1}}"#).unwrap();
        assert_eq!(sound.as_str(), r#"{"a":{"ttlMs":-1},"b":[1.50]}"#);
        for other in [r#"{"ttlMs":5}"#, r#"{"ttlMs":"-5"}"#, "{}", "[]"] {
            assert_eq!(without(other), None, "{other}");
        }
    }
}
