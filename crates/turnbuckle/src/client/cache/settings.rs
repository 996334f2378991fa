//! The settings of a client's cache, and the time for which they keep a result.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use turnbuckle_types::{CacheScope, Revision};

use super::store::{CacheEntry, CacheStore};

/// The default of [`ResponseCache::max_ttl`].
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// How far the clocks of clients that share a store may differ.
const SKEW: Duration = Duration::from_secs(1);

/// How a client caches results of its server: lists, and resources that were read.
///
/// A result is used for as long as the server says (`ttlMs`). The server's notifications
/// invalidate it before that.
///
/// Results are cached in the client's own memory. A [`store`](ResponseCache::store) shares them with
/// other clients. Its keys are made of the server, the principal, the revision and the request:
///
/// - The server is its address, or the program with its arguments and variables.
/// - The principal is the [`partition`](ResponseCache::partition), together with the headers that
///   the client sends with every request.
///
/// Where one of them is not known (a byte stream, a program without a `partition`, a custom HTTP
/// service, a port of this machine), the client uses the store but shares nothing with others.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{
///     Client,
///     cache::{MemoryCache, ResponseCache},
/// };
/// let shared = MemoryCache::new();
/// let builder = Client::builder().cache(
///     ResponseCache::new().store(shared).partition("alice").max_ttl(Duration::from_secs(600)),
/// );
/// # let _ = builder;
/// ```
#[derive(Clone)]
#[must_use = "settings do nothing until they are given to `ClientBuilder::cache`"]
pub struct ResponseCache {
    default_ttl: Duration,
    max_ttl: Duration,
    pub(super) max_entries: usize,
    pub(super) max_bytes: usize,
    pub(super) store: Option<Arc<dyn CacheStore>>,
    pub(super) partition: Option<String>,
    pub(super) server: Option<String>,
    pub(super) share_public: bool,
}

impl ResponseCache {
    /// Creates the default settings.
    pub fn new() -> ResponseCache {
        ResponseCache {
            default_ttl: Duration::ZERO,
            max_ttl: MAX_TTL,
            max_entries: 256,
            max_bytes: 16 << 20,
            store: None,
            partition: None,
            server: None,
            share_public: false,
        }
    }

    /// Disables the cache: each call sends its own request.
    pub fn off() -> ResponseCache {
        ResponseCache::new().max_ttl(Duration::ZERO)
    }

    /// Sets a store that shares results with other clients. The client looks in its own memory
    /// first.
    pub fn store(mut self, store: impl CacheStore) -> ResponseCache {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the principal that this client acts for. Clients with different principals never share
    /// private results. Use an authenticated name, such as the subject of a verified token.
    pub fn partition(mut self, principal: impl Into<String>) -> ResponseCache {
        self.partition = Some(principal.into());
        self
    }

    /// Sets the server's name in the store, instead of its address or command.
    pub fn server(mut self, name: impl Into<String>) -> ResponseCache {
        self.server = Some(name.into());
        self
    }

    /// Shares public results (`cacheScope: "public"`) between all principals of a store. A server
    /// that declares a private result public by mistake then discloses it to others.
    pub fn share_public(mut self) -> ResponseCache {
        self.share_public = true;
        self
    }

    /// Sets how long a result without a time to live is used. Legacy servers never send one.
    /// Defaults to zero: such a result is not cached.
    pub fn default_ttl(mut self, ttl: Duration) -> ResponseCache {
        self.default_ttl = ttl;
        self
    }

    /// Sets the longest time to live of any result. Defaults to one day.
    pub fn max_ttl(mut self, ttl: Duration) -> ResponseCache {
        self.max_ttl = ttl;
        self
    }

    /// Sets how many results the client keeps in its own memory. The least recently used one is
    /// removed first. Defaults to 256.
    pub fn max_entries(mut self, entries: usize) -> ResponseCache {
        self.max_entries = entries;
        self
    }

    /// Sets how many bytes of results, counted as received, the client keeps in its own memory.
    /// Defaults to 16 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> ResponseCache {
        self.max_bytes = bytes;
        self
    }

    /// Returns `false` if no result of this revision is ever cached.
    pub(super) fn is_enabled(&self, revision: Revision) -> bool {
        !self.max_ttl.is_zero() && (revision.has_cache_hints() || !self.default_ttl.is_zero())
    }

    /// Returns how long a result is used, and by whom; `None` if it is not cached.
    pub(super) fn term(
        &self,
        (ttl_ms, scope): (Option<u64>, Option<CacheScope>),
        revision: Revision,
    ) -> Option<(Duration, CacheScope)> {
        // Legacy revisions do not define these members.
        let (ttl_ms, scope) =
            if revision.has_cache_hints() { (ttl_ms, scope) } else { (None, None) };
        let ttl = ttl_ms.map_or(self.default_ttl, Duration::from_millis).min(self.max_ttl);
        (!ttl.is_zero()).then(|| (ttl, scope.unwrap_or(CacheScope::Private)))
    }

    /// Returns for how much longer an entry of a store is fresh; `None` if it is stale. An entry
    /// from the future is not trusted.
    pub(super) fn remaining(&self, entry: &CacheEntry, now: SystemTime) -> Option<Duration> {
        let age = match now.duration_since(entry.received) {
            Ok(age) => age,
            Err(ahead) if ahead.duration() <= SKEW => Duration::ZERO,
            Err(_) => return None,
        };
        // 2026-07-28 server/utilities/caching §Freshness Calculation: now < t_received + ttlMs.
        entry.ttl.min(self.max_ttl).checked_sub(age).filter(|left| !left.is_zero())
    }
}

impl Default for ResponseCache {
    fn default() -> ResponseCache {
        ResponseCache::new()
    }
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache")
            .field("default_ttl", &self.default_ttl)
            .field("max_ttl", &self.max_ttl)
            .field("share_public", &self.share_public)
            .finish_non_exhaustive()
    }
}

/// How a call uses cached results.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use turnbuckle::cache::CacheMode;
/// let tools = client.list_tools().cache(CacheMode::Refresh).await?;
/// # let _ = tools; Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMode {
    /// Uses a fresh result. Otherwise sends the request and caches its result.
    #[default]
    Use,
    /// Sends the request and caches its result.
    Refresh,
    /// Sends the request and leaves the cache as it is.
    Bypass,
}

#[cfg(test)]
mod tests {
    use turnbuckle_types::Raw;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_server_sets_time_to_live_and_scope() {
        use CacheScope::{Private, Public};
        let modern = Revision::V2026_07_28;
        for (ttl_ms, scope, expected) in [
            (Some(1), Some(Public), Some((Duration::from_millis(1), Public))),
            (Some(1), Some(Private), Some((Duration::from_millis(1), Private))),
            (Some(1), None, Some((Duration::from_millis(1), Private))),
            (Some(u64::MAX), Some(Private), Some((MAX_TTL, Private))),
            (Some(0), Some(Public), None),
            (None, Some(Public), None),
            (None, None, None),
        ] {
            let term = ResponseCache::new().term((ttl_ms, scope), modern);
            assert_eq!(term, expected, "{ttl_ms:?} {scope:?}");
        }
    }

    #[test]
    fn the_hints_of_a_legacy_server_are_ignored() {
        let (legacy, defaults) = (Revision::V2025_11_25, ResponseCache::new());
        let hint = (Some(60_000), Some(CacheScope::Public));
        assert_eq!(defaults.term(hint, legacy), None);
        assert!(!defaults.is_enabled(legacy) && defaults.is_enabled(Revision::V2026_07_28));
        let second = defaults.default_ttl(SECOND);
        assert!(second.is_enabled(legacy));
        assert_eq!(second.term(hint, legacy), Some((SECOND, CacheScope::Private)));
    }

    #[test]
    fn the_default_applies_where_the_server_says_nothing() {
        let settings = ResponseCache::new().default_ttl(SECOND).max_ttl(2 * SECOND);
        let ttl = |ttl_ms| settings.term((ttl_ms, None), Revision::LATEST).map(|(ttl, _)| ttl);
        assert_eq!(ttl(None), Some(SECOND));
        assert_eq!(ttl(Some(0)), None, "zero is a value");
        assert_eq!(ttl(Some(3000)), Some(2 * SECOND));
    }

    #[test]
    fn an_entry_is_fresh_until_its_time_to_live_has_passed() {
        let then = SystemTime::UNIX_EPOCH + 1_000_000 * SECOND;
        let entry = |ttl| CacheEntry::new(Raw::null(), then, ttl);
        let remaining = |now| ResponseCache::new().remaining(&entry(10 * SECOND), now);
        assert_eq!(remaining(then), Some(10 * SECOND));
        assert_eq!(remaining(then + 9 * SECOND), Some(SECOND));
        assert_eq!(remaining(then + 10 * SECOND), None);
        assert_eq!(remaining(then + 11 * SECOND), None);
        assert_eq!(remaining(then - SECOND), Some(10 * SECOND), "clocks may differ a little");
        assert_eq!(remaining(then - 2 * SECOND), None);
        let long = ResponseCache::new().remaining(&entry(2 * MAX_TTL), then + MAX_TTL);
        assert_eq!(long, None, "the client's limit applies to a store, too");
    }
}
