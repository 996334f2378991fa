//! Owns an issuer's keys: fetched by one at a time, kept for a while, fetched again when a token names
//! an unknown one, but not more often than that. Does not own verifying with them.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http::{HeaderValue, Request, header::ACCEPT};
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use url::Url;

use super::place::is_safe;
use crate::{
    Addresses, AuthError, AuthErrorKind, Clock, Fetch, Rules,
    jose::{KeySet, strict_object},
};

/// How long keys are used before they are fetched again, in seconds.
const KEPT: u64 = 3600;

/// How long after an attempt there is no other one, whatever tokens name: nobody can make this server
/// ask the issuer more often.
const BETWEEN_ATTEMPTS: u64 = 30;

/// The same while there are no keys at all, and nobody can come in.
const BETWEEN_FIRST_ATTEMPTS: u64 = 3;

/// What asking the issuer needs.
#[derive(Clone)]
pub(super) struct Outside {
    pub(super) fetch: Arc<dyn Fetch>,
    pub(super) clock: Arc<dyn Clock>,
}

/// One issuer's keys.
pub(super) struct Keys {
    issuer: String,
    /// Where they are; nothing is where the issuer's metadata says.
    given: Option<String>,
    latest: RwLock<Option<Latest>>,
    /// Held by whoever asks the issuer: when the last attempt was.
    attempt: Arc<Mutex<Option<u64>>>,
}

#[derive(Clone)]
struct Latest {
    keys: Arc<KeySet>,
    since: u64,
}

impl Keys {
    pub(super) fn new(issuer: &str, given: Option<String>) -> Keys {
        Keys {
            issuer: issuer.to_owned(),
            given,
            latest: RwLock::default(),
            attempt: Arc::default(),
        }
    }

    /// The keys as they are known. Dropping the future leaves a fetch that began to itself: others may
    /// wait for it.
    pub(super) async fn current(
        self: &Arc<Self>,
        outside: &Outside,
    ) -> Result<Arc<KeySet>, AuthError> {
        match self.latest() {
            Some(latest) if latest.is_fresh(outside.clock.now()) => Ok(latest.keys),
            latest => self.newer_than(latest.map(|latest| latest.keys).as_ref(), outside).await,
        }
    }

    /// Other keys than `seen`, in which a token's was missing; the same ones if there are no others, or
    /// if the issuer was asked a moment ago.
    pub(super) async fn newer_than(
        self: &Arc<Self>,
        seen: Option<&Arc<KeySet>>,
        outside: &Outside,
    ) -> Result<Arc<KeySet>, AuthError> {
        let attempt = Arc::clone(&self.attempt).lock_owned().await;
        let latest = self.latest();
        let now = outside.clock.now();
        if let Some(latest) = &latest {
            let is_other = seen.is_none_or(|seen| !Arc::ptr_eq(seen, &latest.keys));
            if is_other && latest.is_fresh(now) {
                return Ok(Arc::clone(&latest.keys));
            }
        }
        let between = if latest.is_some() { BETWEEN_ATTEMPTS } else { BETWEEN_FIRST_ATTEMPTS };
        if attempt.is_some_and(|last| now.saturating_sub(last) < between) {
            let none = || unreachable("the issuer's keys could not be fetched a moment ago");
            return latest.map(|latest| latest.keys).ok_or_else(none);
        }
        // A task of its own: whoever asks and leaves must not make the others begin again.
        let fetched = tokio::spawn(Arc::clone(self).fetch(attempt, outside.clone())).await;
        let fetched = fetched.unwrap_or_else(|_| Err(unreachable("fetching keys was given up")));
        match (fetched, latest) {
            (Ok(keys), _) => Ok(keys),
            (Err(error), Some(latest)) => {
                tracing::warn!(issuer = self.issuer, %error, "the issuer's earlier keys stay in use");
                Ok(latest.keys)
            }
            (Err(error), None) => Err(error),
        }
    }

    fn latest(&self) -> Option<Latest> {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(
        self: Arc<Self>,
        mut attempt: OwnedMutexGuard<Option<u64>>,
        outside: Outside,
    ) -> Result<Arc<KeySet>, AuthError> {
        let fetched = self.ask(&*outside.fetch).await;
        let now = outside.clock.now();
        *attempt = Some(now);
        let keys = Arc::new(fetched?);
        let latest = Latest { keys: Arc::clone(&keys), since: now };
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(latest);
        Ok(keys)
    }

    async fn ask(&self, fetch: &dyn Fetch) -> Result<KeySet, AuthError> {
        let address = match &self.given {
            Some(address) => address.clone(),
            None => self.discover(fetch).await?,
        };
        match ask(fetch, &address).await? {
            Some(document) => KeySet::read(&document),
            None => Err(unreachable("the issuer has no key set where it says")),
        }
    }

    /// RFC 8414 §3.1 first, then OpenID Connect, as the specification orders them.
    async fn discover(&self, fetch: &dyn Fetch) -> Result<String, AuthError> {
        for address in metadata_addresses(&self.issuer)? {
            if let Some(document) = ask(fetch, &address).await? {
                return key_set_address(&self.issuer, &document);
            }
        }
        Err(unreachable("the issuer has no metadata"))
    }
}

impl Latest {
    fn is_fresh(&self, now: u64) -> bool {
        now.saturating_sub(self.since) < KEPT
    }
}

/// An issuer is chosen by whoever runs this server, so that it may be in a private network.
pub(super) fn rules() -> Rules {
    Rules {
        limit: 1 << 20,
        timeout: std::time::Duration::from_secs(5),
        addresses: Addresses::AlsoPrivate,
    }
}

/// Nothing if there is none there.
async fn ask(fetch: &dyn Fetch, address: &str) -> Result<Option<Bytes>, AuthError> {
    if !Url::parse(address).is_ok_and(|url| is_safe(&url)) {
        let text = "the issuer's metadata or keys are not at https";
        return Err(AuthError::new(AuthErrorKind::Forbidden, text));
    }
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = address.parse().map_err(|_| unreachable("an address can't be asked"))?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let response = fetch.fetch(request, &rules()).await?;
    match response.status().as_u16() {
        200 => Ok(Some(response.into_body())),
        400..500 => Ok(None),
        status => Err(unreachable(format!("the issuer answered {status}"))),
    }
}

fn metadata_addresses(issuer: &str) -> Result<Vec<String>, AuthError> {
    let wrong = || AuthError::new(AuthErrorKind::Settings, "an issuer is no address");
    let host = issuer.find("://").ok_or_else(wrong)? + 3;
    let path = issuer[host..].find('/').map_or(issuer.len(), |at| host + at);
    let (origin, path) = issuer.split_at(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut addresses = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        addresses.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    Ok(addresses)
}

fn key_set_address(issuer: &str, document: &[u8]) -> Result<String, AuthError> {
    let wrong = |text| AuthError::new(AuthErrorKind::Metadata, text);
    let document =
        strict_object(document).ok_or_else(|| wrong("the issuer's metadata is no JSON object"))?;
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    if text("issuer") != Some(issuer) {
        return Err(wrong("the issuer's metadata is that of another issuer"));
    }
    let address =
        text("jwks_uri").ok_or_else(|| wrong("the issuer's metadata has no `jwks_uri`"))?;
    Ok(address.to_owned())
}

fn unreachable(text: impl Into<String>) -> AuthError {
    AuthError::new(AuthErrorKind::Unreachable, text)
}
