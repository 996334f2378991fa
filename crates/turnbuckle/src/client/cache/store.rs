//! The trait of a store, a store in memory, and the map that it is made of.

use std::{
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use lru::LruCache;
use turnbuckle_types::Raw;

use super::key::CacheKey;
use crate::store::StoreFuture;

/// Stores results of servers for several clients, or for longer than one client lives.
///
/// A store that fails or takes longer than two seconds is ignored: the client sends the request. The
/// client checks whether an entry is still fresh. Entries may be private to a principal: protect the
/// store like the credentials for the server.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
/// use turnbuckle::{
///     StoreFuture,
///     cache::{CacheEntry, CacheKey, CacheStore},
/// };
///
/// #[derive(Default)]
/// struct Store(Mutex<HashMap<String, HashMap<String, CacheEntry>>>);
///
/// impl CacheStore for Store {
///     fn get<'a>(&'a self, key: &'a CacheKey) -> StoreFuture<'a, Option<CacheEntry>> {
///         let all = self.0.lock().unwrap();
///         let found = all.get(key.group()).and_then(|pages| pages.get(key.page())).cloned();
///         Box::pin(async { Ok(found) })
///     }
///
///     fn put<'a>(&'a self, key: &'a CacheKey, entry: CacheEntry) -> StoreFuture<'a, ()> {
///         let mut all = self.0.lock().unwrap();
///         all.entry(key.group().into()).or_default().insert(key.page().into(), entry);
///         Box::pin(async { Ok(()) })
///     }
///
///     fn remove<'a>(&'a self, group: &'a str) -> StoreFuture<'a, ()> {
///         self.0.lock().unwrap().remove(group);
///         Box::pin(async { Ok(()) })
///     }
/// }
/// # let _ = Store::default();
/// ```
pub trait CacheStore: Send + Sync + 'static {
    /// Returns an entry, if the store has it. Dropping the future cancels the lookup.
    fn get<'a>(&'a self, key: &'a CacheKey) -> StoreFuture<'a, Option<CacheEntry>>;

    /// Inserts or replaces an entry. A store may remove it at any time, and should once its time to
    /// live has passed. Dropping the future may or may not insert it.
    fn put<'a>(&'a self, key: &'a CacheKey, entry: CacheEntry) -> StoreFuture<'a, ()>;

    /// Removes all entries of a group. Dropping the future may or may not remove them.
    fn remove<'a>(&'a self, group: &'a str) -> StoreFuture<'a, ()>;
}

/// A cached result.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use turnbuckle::{cache::CacheEntry, types::Raw};
/// let entry = CacheEntry::new(Raw::empty_object(), SystemTime::now(), Duration::from_secs(60));
/// assert_eq!(entry.result.as_str(), "{}");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CacheEntry {
    /// The result as the server sent it.
    pub result: Raw,
    /// When the client received it.
    pub received: SystemTime,
    /// How long it is fresh from then on.
    pub ttl: Duration,
}

impl CacheEntry {
    /// Creates an entry.
    pub fn new(result: Raw, received: SystemTime, ttl: Duration) -> CacheEntry {
        CacheEntry { result, received, ttl }
    }
}

/// A store in memory for clients that share results. Clones share their entries. A client alone
/// needs none: it has a cache of its own.
///
/// It holds up to 1,024 entries and 32 MiB, then removes the least recently used entry.
///
/// ```
/// use turnbuckle::{
///     Client,
///     cache::{MemoryCache, ResponseCache},
/// };
/// let shared = MemoryCache::new();
/// let cache = |user| ResponseCache::new().store(shared.clone()).partition(user);
/// let (one, other) = (Client::builder().cache(cache("alice")), Client::builder().cache(cache("bob")));
/// # let _ = (one, other);
/// ```
#[derive(Clone)]
pub struct MemoryCache(Arc<Mutex<BoundedLru<CacheKey, CacheEntry>>>);

impl MemoryCache {
    /// Creates an empty store with the default limits.
    pub fn new() -> MemoryCache {
        MemoryCache::bounded(1024, 32 << 20)
    }

    /// Creates an empty store with at most so many entries and bytes.
    pub fn bounded(entries: usize, bytes: usize) -> MemoryCache {
        MemoryCache(Arc::new(Mutex::new(BoundedLru::new(entries, bytes))))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns `true` if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BoundedLru<CacheKey, CacheEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CacheStore for MemoryCache {
    fn get<'a>(&'a self, key: &'a CacheKey) -> StoreFuture<'a, Option<CacheEntry>> {
        let found = self.lock().get(key).cloned();
        Box::pin(async { Ok(found) })
    }

    fn put<'a>(&'a self, key: &'a CacheKey, entry: CacheEntry) -> StoreFuture<'a, ()> {
        let bytes = entry.result.as_str().len();
        self.lock().insert(key.clone(), entry, bytes);
        Box::pin(async { Ok(()) })
    }

    fn remove<'a>(&'a self, group: &'a str) -> StoreFuture<'a, ()> {
        self.lock().retain(|key| key.group() != group);
        Box::pin(async { Ok(()) })
    }
}

impl Default for MemoryCache {
    fn default() -> MemoryCache {
        MemoryCache::new()
    }
}

impl fmt::Debug for MemoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCache").field("entries", &self.len()).finish()
    }
}

/// A least-recently-used map that is limited in entries and in bytes.
pub(super) struct BoundedLru<K: Hash + Eq, V> {
    entries: LruCache<K, (V, usize)>,
    /// Invariant: the sum of the bytes of all entries.
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

impl<K: Hash + Eq, V> BoundedLru<K, V> {
    pub(super) fn new(max_entries: usize, max_bytes: usize) -> BoundedLru<K, V> {
        BoundedLru { entries: LruCache::unbounded(), bytes: 0, max_entries, max_bytes }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// Returns an entry and does not count it as used.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.peek(key).map(|(value, _)| value)
    }

    /// Inserts an entry, unless it alone exceeds the limits.
    pub(super) fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        if bytes > self.max_bytes || self.max_entries == 0 {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes + bytes > self.max_bytes {
            let Some((_, (_, removed))) = self.entries.pop_lru() else { break };
            self.bytes -= removed;
        }
        self.bytes += bytes;
        self.entries.put(key, (value, bytes));
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Some((_, bytes)) = self.entries.pop(key) {
            self.bytes -= bytes;
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.entries.retain(|key, (_, bytes)| {
            let kept = keep(key);
            if !kept {
                self.bytes -= *bytes;
            }
            kept
        });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_removed_first() {
        let mut lru = BoundedLru::new(2, 10);
        lru.insert("a", 1, 1);
        lru.insert("b", 2, 1);
        assert_eq!(lru.get(&"a"), Some(&1));
        lru.insert("c", 3, 1);
        assert_eq!((lru.peek(&"a"), lru.peek(&"b"), lru.peek(&"c")), (Some(&1), None, Some(&3)));
        lru.insert("d", 4, 10);
        assert_eq!((lru.len(), lru.peek(&"d")), (1, Some(&4)), "bytes are limited, too");
        lru.insert("d", 5, 11);
        assert_eq!(lru.len(), 0, "too large, and the entry that it replaces is gone");
        lru.insert("e", 6, 10);
        lru.retain(|_| false);
        lru.insert("f", 7, 10);
        assert_eq!(lru.peek(&"f"), Some(&7), "a removed entry has no bytes");
    }
}
