//! The discovery result of a connection, and the results of earlier connections in this process.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::IpAddr,
};

use super::findings::Findings;
use crate::{
    client::{Client, connection::handle::ClientConnection},
    transport::http::client::origin,
};
use http::{HeaderMap, Uri};
use serde::{Deserialize, Serialize};
use turnbuckle_types::{DiscoverResult, Raw, Revision};

/// The revision of a server and its answer to `server/discover`, if it gave one. It can be saved and
/// given to a later connection, see [`ClientBuilder::discovery`](crate::ClientBuilder::discovery).
///
/// ```
/// use turnbuckle::client::Discovery;
/// let saved = r#"{"revision":"2026-07-28"}"#;
/// let discovery: Discovery = serde_json::from_str(saved).unwrap();
/// assert_eq!(serde_json::to_string(&discovery).unwrap(), saved);
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Discovery {
    #[serde(serialize_with = "name", deserialize_with = "parsed")]
    pub(crate) revision: Revision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    discovered: Option<Raw>,
}

fn name<S: serde::Serializer>(revision: &Revision, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(revision.as_str())
}

fn parsed<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Revision, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(|_| {
        serde::de::Error::custom(format!("`{name}` is not a revision of the protocol"))
    })
}

impl Discovery {
    pub(crate) fn discovered(&self) -> Option<DiscoverResult> {
        self.discovered.as_ref()?.decode().ok()
    }
}

impl Client {
    /// Returns what this connection has learned about its server, for a later connection.
    pub fn discovery(&self) -> Discovery {
        self.0.link().discovery()
    }
}

impl ClientConnection {
    pub(crate) fn discovery(&self) -> Discovery {
        Discovery { revision: self.revision(), discovered: self.server.discovered.clone() }
    }
}

/// Identifies a server and the caller.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct DiscoveryKey {
    origin: (String, String, u16),
    /// One origin may have many servers.
    path: String,
    /// The hash of the headers, which identify the caller.
    headers: u64,
}

impl DiscoveryKey {
    /// Returns `None` for this machine, whose ports change hands.
    pub(crate) fn new(address: &Uri, headers: &HeaderMap) -> Option<DiscoveryKey> {
        let origin = origin(address);
        let host = origin.1.trim_matches(['[', ']']);
        let local = host == "localhost"
            || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let mut hasher = DefaultHasher::new();
        for (name, value) in headers {
            (name, value.as_bytes()).hash(&mut hasher);
        }
        let path = address.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        (!local).then(|| DiscoveryKey { origin, path, headers: hasher.finish() })
    }
}

/// The results of earlier connections.
pub(crate) static DISCOVERED: Findings<DiscoveryKey, Discovery> = Findings::new();

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").field("revision", &self.revision).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &'static str, authorization: Option<&'static str>) -> Option<DiscoveryKey> {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert("authorization", value.parse().unwrap());
        }
        DiscoveryKey::new(&Uri::from_static(address), &headers)
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
}
