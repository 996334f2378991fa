//! Owns what an earlier connection found out about a server, and its memory.
//! Does not own finding out: the negotiation does that.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::IpAddr,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderMap, Uri};
use serde::{Deserialize, Serialize};
use turnbuckle_types::{DiscoverResult, Raw, Revision};

use super::{Client, link::Link};
use crate::transport::http::client::origin;

/// How long a finding is remembered.
const FRESH: Duration = Duration::from_secs(3600);
/// How many are.
const MOST: usize = 256;

/// What a connection found out about its server: the revision that it speaks, and what it said
/// about itself. It can be kept, also in a file, and given to a later connection
/// ([`ClientBuilder::discovery`](crate::ClientBuilder::discovery)).
///
/// ```
/// use turnbuckle::Discovery;
/// let kept = r#"{"revision":"2026-07-28"}"#;
/// let prior: Discovery = serde_json::from_str(kept).unwrap();
/// assert_eq!(serde_json::to_string(&prior).unwrap(), kept);
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Discovery {
    #[serde(serialize_with = "name", deserialize_with = "parsed")]
    pub(super) revision: Revision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    discovered: Option<Raw>,
}

fn name<S: serde::Serializer>(revision: &Revision, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(revision.as_str())
}

fn parsed<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Revision, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(|_| serde::de::Error::custom(format!("`{name}` is no revision")))
}

impl Discovery {
    pub(super) fn discovered(&self) -> Option<DiscoverResult> {
        self.discovered.as_ref()?.decode().ok()
    }
}

impl Client {
    /// What this connection found out about its server.
    pub fn discovery(&self) -> Discovery {
        self.0.link().discovery()
    }
}

impl Link {
    pub(super) fn discovery(&self) -> Discovery {
        Discovery { revision: self.revision(), discovered: self.server.discovered.clone() }
    }
}

/// Under which a finding is kept.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    origin: (String, String, u16),
    /// One origin may have many servers.
    path: String,
    /// Of the headers, which say who asks.
    asker: u64,
}

impl Key {
    /// `None` for this machine.
    pub(super) fn new(address: &Uri, headers: &HeaderMap) -> Option<Key> {
        let origin = origin(address);
        let host = origin.1.trim_matches(['[', ']']);
        let local = host == "localhost"
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let mut hasher = DefaultHasher::new();
        for (name, value) in headers {
            (name, value.as_bytes()).hash(&mut hasher);
        }
        let path = address.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        (!local).then(|| Key { origin, path, asker: hasher.finish() })
    }
}

type Memory = HashMap<Key, (Discovery, Instant)>;

fn memory() -> MutexGuard<'static, Memory> {
    static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(Mutex::default);
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn recall(key: &Key) -> Option<Discovery> {
    let memory = memory();
    let (prior, since) = memory.get(key)?;
    (since.elapsed() < FRESH).then(|| prior.clone())
}

/// Forgets a finding that has turned out to be wrong.
pub(super) fn forget(key: &Key) {
    memory().remove(key);
}

pub(super) fn remember(key: Key, prior: Discovery) {
    let mut memory = memory();
    if memory.len() >= MOST {
        memory.retain(|_, (_, since)| since.elapsed() < FRESH);
    }
    if memory.len() < MOST {
        memory.insert(key, (prior, Instant::now()));
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").field("revision", &self.revision).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &'static str, authorization: Option<&'static str>) -> Option<Key> {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert("authorization", value.parse().unwrap());
        }
        Key::new(&Uri::from_static(address), &headers)
    }

    #[test]
    fn a_finding_belongs_to_an_address_and_to_who_asked() {
        let anonymous = key("https://one.test/a", None);
        assert!(anonymous == key("https://one.test:443/a", None));
        assert!(anonymous != key("https://one.test/b", None));
        assert!(anonymous != key("https://one.test/a?key=1", None));
        assert!(anonymous != key("https://one.test/a", Some("Bearer 1")));
        assert!(anonymous != key("http://one.test/a", None));
        for local in ["http://localhost:1/", "http://127.0.0.1:1/", "http://[::1]:1/"] {
            assert!(key(local, None).is_none(), "{local}");
        }
    }

    #[test]
    fn what_was_remembered_is_recalled() {
        let key = key("https://recalled.test/", None).unwrap();
        assert_eq!(recall(&key), None);
        let prior = Discovery { revision: Revision::LATEST, discovered: None };
        remember(key.clone(), prior.clone());
        assert_eq!(recall(&key), Some(prior));
        forget(&key);
        assert_eq!(recall(&key), None);
    }
}
