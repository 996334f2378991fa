//! Owns what a host can say about keeping answers. Does not own the keeping.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    freshness::{LONGEST, Rules},
    lru::Bounds,
    store::CacheStore,
};

/// How a client keeps the answers of its server, for as long as the server says that they are
/// fresh (`ttlMs`): lists, and resources that were read. Events of the server make them stale
/// before that.
///
/// A client keeps them in its own memory unless told otherwise. A store makes them available to
/// others, under a key that is made of the server, the principal, the revision, and the request.
///
/// The server is its address, or the program with its arguments and variables. The principal is
/// what [`partition`](ResponseCache::partition) names, together with the headers that the client
/// sends with every request. Where one of them can't be told from the outside (a byte stream, a
/// program without a `partition`, an HTTP service of one's own, a port of this machine), nobody
/// else is given what this client has stored.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Client, MemoryCache, ResponseCache};
/// let shared = MemoryCache::new();
/// let builder = Client::builder().cache(
///     ResponseCache::new().store(shared).partition("alice").max_ttl(Duration::from_secs(600)),
/// );
/// # let _ = builder;
/// ```
#[derive(Clone)]
#[must_use = "settings do nothing until a client is made with them"]
pub struct ResponseCache {
    pub(super) rules: Rules,
    pub(super) bounds: Bounds,
    pub(super) store: Option<Arc<dyn CacheStore>>,
    pub(super) partition: Option<String>,
    pub(super) server: Option<String>,
    pub(super) public: Public,
}

/// Who is given what the server says is for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Public {
    Principal,
    Everyone,
}

impl ResponseCache {
    /// As a client has it unless told otherwise.
    pub fn new() -> ResponseCache {
        ResponseCache {
            rules: Rules { default_ttl: Duration::ZERO, max_ttl: LONGEST },
            bounds: Bounds { entries: 256, weight: 16 << 20 },
            store: None,
            partition: None,
            server: None,
            public: Public::Principal,
        }
    }

    /// Nothing is kept, and each call asks for itself.
    pub fn off() -> ResponseCache {
        ResponseCache::new().max_ttl(Duration::ZERO)
    }

    /// Keeps answers in this store, too, so that others find them there. What a client has in its
    /// own memory it uses without another look at the store.
    pub fn store(mut self, store: impl CacheStore) -> ResponseCache {
        self.store = Some(Arc::new(store));
        self
    }

    /// Who this client speaks for: those of another name are never given the same answers. Take it
    /// from what was proved, such as the subject of a token, never from what was merely said.
    pub fn partition(mut self, principal: impl Into<String>) -> ResponseCache {
        self.partition = Some(principal.into());
        self
    }

    /// Under which name the server is known in the store, in the place of its address or command.
    pub fn server(mut self, name: impl Into<String>) -> ResponseCache {
        self.server = Some(name.into());
        self
    }

    /// Shares between all principals of a store what the server says is for everyone
    /// (`cacheScope: "public"`). A server that says so by mistake then shows one what is another's.
    pub fn share_public(mut self) -> ResponseCache {
        self.public = Public::Everyone;
        self
    }

    /// For how long an answer is kept that says nothing about it, as none does in the legacy era:
    /// not at all unless set.
    pub fn default_ttl(mut self, ttl: Duration) -> ResponseCache {
        self.rules.default_ttl = ttl;
        self
    }

    /// The longest time for which any answer is kept, whatever its server says: a day unless set.
    pub fn max_ttl(mut self, ttl: Duration) -> ResponseCache {
        self.rules.max_ttl = ttl;
        self
    }

    /// How many answers the client keeps in its own memory: 256 unless set. What was used longest
    /// ago goes first.
    pub fn max_entries(mut self, entries: usize) -> ResponseCache {
        self.bounds.entries = entries;
        self
    }

    /// How many bytes of answers the client keeps in its own memory, counted as they came: 16 MiB
    /// unless set.
    pub fn max_bytes(mut self, bytes: usize) -> ResponseCache {
        self.bounds.weight = bytes;
        self
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
            .field("rules", &self.rules)
            .field("bounds", &self.bounds)
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// What a call makes of answers that are kept.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use turnbuckle::CacheMode;
/// let tools = client.list_tools().cache(CacheMode::Refresh).await?;
/// # let _ = tools; Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMode {
    /// Uses one that is fresh, and keeps what the server answers otherwise.
    #[default]
    Use,
    /// Asks the server, and keeps what it answers.
    Refresh,
    /// Asks the server, and leaves what is kept as it is.
    Bypass,
}
