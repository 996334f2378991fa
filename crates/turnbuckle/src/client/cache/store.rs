//! Owns what a store of answers is, and one in memory. Does not own which answers are kept.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use turnbuckle_types::Raw;

use super::{
    key::CacheKey,
    lru::{Bounds, Lru},
};
use crate::store::StoreFuture;

/// Where answers of servers are kept, for several clients or for longer than one lives.
///
/// A store that fails costs no call: the server is asked instead. Whether what it gives is still
/// fresh is looked at by the client. What it was given may be private to a principal, so that it
/// must be as well guarded as what gives access to the server.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
/// use turnbuckle::{CacheEntry, CacheKey, CacheStore, StoreFuture};
///
/// #[derive(Default)]
/// struct Kept(Mutex<HashMap<String, HashMap<String, CacheEntry>>>);
///
/// impl CacheStore for Kept {
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
/// # let _ = Kept::default();
/// ```
pub trait CacheStore: Send + Sync + 'static {
    /// What was put there, if it still is. Dropping the future gives the question up.
    fn get<'a>(&'a self, key: &'a CacheKey) -> StoreFuture<'a, Option<CacheEntry>>;

    /// Keeps an answer in the place of the one before. It may be forgotten at any time, and should
    /// be once its time is over. Dropping the future may or may not keep it.
    fn put<'a>(&'a self, key: &'a CacheKey, entry: CacheEntry) -> StoreFuture<'a, ()>;

    /// Forgets all pages of a group. Dropping the future may or may not forget them.
    fn remove<'a>(&'a self, group: &'a str) -> StoreFuture<'a, ()>;
}

/// An answer that is kept.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use turnbuckle::{CacheEntry, types::Raw};
/// let entry = CacheEntry::new(Raw::empty_object(), SystemTime::now(), Duration::from_secs(60));
/// assert_eq!(entry.result.as_str(), "{}");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CacheEntry {
    /// The result as the server sent it.
    pub result: Raw,
    /// When it came.
    pub received: SystemTime,
    /// For how long it is fresh from then on.
    pub ttl: Duration,
}

impl CacheEntry {
    /// A result that came at a time and is fresh for so long.
    pub fn new(result: Raw, received: SystemTime, ttl: Duration) -> CacheEntry {
        CacheEntry { result, received, ttl }
    }
}

/// Answers kept in memory, up to 1,024 of them and 32 MiB; then what was used longest ago goes.
/// Clones share them.
///
/// Each client has a memory of its own already; this one is for clients that share.
///
/// ```
/// use turnbuckle::{Client, MemoryCache, ResponseCache};
/// let shared = MemoryCache::new();
/// let cache = |user| ResponseCache::new().store(shared.clone()).partition(user);
/// let (one, other) = (Client::builder().cache(cache("alice")), Client::builder().cache(cache("bob")));
/// # let _ = (one, other);
/// ```
#[derive(Clone)]
pub struct MemoryCache(Arc<Mutex<Lru<CacheKey, CacheEntry>>>);

impl MemoryCache {
    /// With the usual bounds.
    pub fn new() -> MemoryCache {
        MemoryCache::bounded(1024, 32 << 20)
    }

    /// With at most so many answers, and so many bytes of them.
    pub fn bounded(entries: usize, bytes: usize) -> MemoryCache {
        MemoryCache(Arc::new(Mutex::new(Lru::new(Bounds { entries, weight: bytes }))))
    }

    /// How many answers are kept.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Lru<CacheKey, CacheEntry>> {
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
