//! An authorization server for tests: it asks nobody for a password, lets everyone in, and keeps
//! everything in memory.

mod authorize;
mod clients;
mod faults;
mod grants;
mod listen;
mod metadata;
mod register;
mod reply;
mod state;
mod token;

#[cfg(test)]
mod tests;

pub use clients::InsecureClient;
pub use faults::{Endpoint, Fault};
pub use listen::{InsecureListener, InsecureServing};

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use self::state::State;
use crate::{
    AuthError, BoxFuture, Clock, Fetch, Rules, Scopes, Secret, SigningKey, SystemClock,
    jose::{
        KeySet,
        dpop::{self, Nonces},
    },
};

/// A proof of a key (RFC 9449) for one request with a token that is bound to it, made now: the value
/// of its `DPoP` header.
///
/// # Errors
/// If nothing can be signed with the key.
pub fn dpop_proof(
    key: &SigningKey,
    method: &str,
    url: &str,
    token: &Secret,
    nonce: Option<&str>,
) -> Result<String, AuthError> {
    dpop::proof(key, method, url, Some(token), nonce, SystemClock.now())
}

/// An authorization server for tests, as one function from requests to responses.
///
/// It is strict where the specification is (PKCE with S256, codes that are good once, exact redirect
/// addresses, rotating refresh tokens), and it lets in whoever asks: **never deploy it**.
///
/// ```
/// use bytes::Bytes;
/// use turnbuckle_auth::testing::{Endpoint, InsecureAuthorizationServer};
///
/// let server = InsecureAuthorizationServer::new("https://auth.example.com");
/// let address = "https://auth.example.com/.well-known/oauth-authorization-server";
/// let response = server.handle(http::Request::get(address).body(Bytes::new()).unwrap());
/// assert_eq!(response.status(), 200);
/// assert_eq!(server.requests(Endpoint::Metadata), 1);
/// ```
pub struct InsecureAuthorizationServer {
    issuer: String,
    settings: Settings,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Told whenever something came, or went wrong, or was healed.
    changed: Notify,
}

struct Settings {
    scopes: Option<Scopes>,
    /// In seconds.
    access_lifetime: u64,
    subject: String,
    nonces: Option<Nonces>,
    /// Whose assertions are believed.
    trusted: Vec<(String, KeySet)>,
}

impl InsecureAuthorizationServer {
    /// With this as its issuer, and its endpoints beneath it.
    pub fn new(issuer: impl Into<String>) -> InsecureAuthorizationServer {
        InsecureAuthorizationServer {
            issuer: issuer.into(),
            settings: Settings {
                scopes: None,
                access_lifetime: 3600,
                subject: "someone".into(),
                nonces: None,
                trusted: Vec::new(),
            },
            clock: Arc::new(SystemClock),
            state: Mutex::new(State::new()),
            changed: Notify::new(),
        }
    }

    /// Reads the time here.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> InsecureAuthorizationServer {
        self.clock = clock;
        self
    }

    /// Knows this client beforehand.
    #[must_use]
    pub fn client(self, client: InsecureClient) -> InsecureAuthorizationServer {
        self.lock().clients.insert(client.client_id.clone(), client);
        self
    }

    /// Says that there are these scopes, and refuses others.
    #[must_use]
    pub fn scopes(mut self, scopes: Scopes) -> InsecureAuthorizationServer {
        self.settings.scopes = Some(scopes);
        self
    }

    /// Who is logged in.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> InsecureAuthorizationServer {
        self.settings.subject = subject.into();
        self
    }

    /// For how many seconds access tokens are good: an hour unless told.
    #[must_use]
    pub fn access_lifetime(mut self, seconds: u64) -> InsecureAuthorizationServer {
        self.settings.access_lifetime = seconds;
        self
    }

    /// Demands a nonce in each proof (RFC 9449 §8).
    #[must_use]
    pub fn demand_nonce(mut self) -> InsecureAuthorizationServer {
        self.settings.nonces = Some(Nonces::new(&Secret::new("insecure"), 300));
        self
    }

    /// Believes assertions of another issuer (RFC 7523), signed with one of these keys.
    #[must_use]
    pub fn trust(
        mut self,
        issuer: impl Into<String>,
        keys: impl IntoIterator<Item = Map<String, Value>>,
    ) -> InsecureAuthorizationServer {
        self.settings.trusted.push((issuer.into(), KeySet::of(keys)));
        self
    }

    /// Its issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Answers one request. Only the path of its address is looked at, not the host.
    pub fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        match self.arrived(&request) {
            Some(endpoint) => self.answer(endpoint, &request),
            None => reply::empty(404),
        }
    }

    /// The same, when nothing is held that was asked for.
    async fn handle_when_healed(&self, request: Request<Bytes>) -> Response<Bytes> {
        let Some(endpoint) = self.arrived(&request) else { return reply::empty(404) };
        self.until(|state| state.faults.get(&endpoint) != Some(&Fault::Held)).await;
        self.answer(endpoint, &request)
    }

    /// Notes that something came.
    fn arrived(&self, request: &Request<Bytes>) -> Option<Endpoint> {
        let endpoint = self.endpoint(request.uri().path())?;
        *self.lock().requests.entry(endpoint).or_default() += 1;
        self.changed.notify_waiters();
        Some(endpoint)
    }

    fn answer(&self, endpoint: Endpoint, request: &Request<Bytes>) -> Response<Bytes> {
        let fault = self.lock().faults.get(&endpoint).cloned();
        match &fault {
            Some(Fault::Html) => return reply::html(),
            Some(Fault::Status(status)) => return reply::empty(*status),
            Some(Fault::Held) => return reply::empty(504),
            Some(Fault::Oversized(bytes)) => return reply::oversized(*bytes),
            Some(Fault::Redirect(to)) => return reply::moved(to),
            Some(Fault::Error(code)) => return reply::error(code),
            _ => {}
        }
        let wanted = match endpoint {
            Endpoint::Metadata | Endpoint::Keys => &["GET"][..],
            Endpoint::Authorize => &["GET", "POST"],
            _ => &["POST"],
        };
        if !wanted.contains(&request.method().as_str()) {
            return reply::empty(405);
        }
        match endpoint {
            Endpoint::Metadata => self.metadata(fault),
            Endpoint::Keys => self.key_set(),
            Endpoint::Register => self.register(request),
            Endpoint::Authorize => self.authorize(request, fault),
            Endpoint::Token => self.token(request),
            Endpoint::Introspect => self.introspect(request),
            Endpoint::Revoke => self.revoke(request),
        }
    }

    /// How many requests came here, those that were answered with a fault among them.
    pub fn requests(&self, endpoint: Endpoint) -> usize {
        self.lock().requests.get(&endpoint).copied().unwrap_or(0)
    }

    /// Waits until so many requests came here, those that are not answered yet among them. Dropping
    /// the future changes nothing.
    pub async fn requested(&self, endpoint: Endpoint, times: usize) {
        self.until(|state| state.requests.get(&endpoint).is_some_and(|came| *came >= times)).await;
    }

    /// From now on this goes wrong here.
    pub fn fail(&self, endpoint: Endpoint, fault: Fault) {
        self.lock().faults.insert(endpoint, fault);
        self.changed.notify_waiters();
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.lock().faults.clear();
        self.changed.notify_waiters();
    }

    /// Knows no client any more, whoever it was.
    pub fn forget_clients(&self) {
        self.lock().clients.clear();
    }

    /// All that it gave out or was shown, and that nobody else should see: codes, tokens, the secrets
    /// of clients, states and verifiers. For tests that look for them where they must not be.
    pub fn secrets(&self) -> Vec<Secret> {
        self.lock().secrets()
    }

    /// Signs with another key from now on, and publishes only that one.
    pub fn rotate_keys(&self) {
        self.lock().rotate_keys();
    }

    /// An access token with these claims; what is not claimed is as in any other one. It can be
    /// exchanged, but is not known to introspection.
    pub fn issue(&self, claims: Map<String, Value>) -> Secret {
        let now = self.clock.now();
        let mut all = self.claims(&self.settings.subject, now);
        all.extend(claims);
        let mut state = self.lock();
        let token = state.sign("at+jwt", &all);
        state.issued.insert(token.expose().to_owned(), all);
        token
    }

    /// The same, not signed at all (`alg` is `none`).
    pub fn issue_unsigned(&self, claims: Map<String, Value>) -> Secret {
        let mut all = self.claims(&self.settings.subject, self.clock.now());
        all.extend(claims);
        unsigned(&all)
    }

    /// An ID token for this client, to be exchanged.
    pub fn id_token(&self, client_id: &str) -> Secret {
        let mut claims = self.claims(&self.settings.subject, self.clock.now());
        claims.insert("aud".into(), client_id.into());
        self.lock().sign("JWT", &claims)
    }

    /// Its public key as of now.
    pub fn public_key(&self) -> Map<String, Value> {
        self.lock().key.public_jwk()
    }

    fn claims(&self, subject: &str, now: u64) -> Map<String, Value> {
        let mut claims = Map::new();
        claims.insert("iss".into(), self.issuer.as_str().into());
        claims.insert("aud".into(), self.issuer.as_str().into());
        claims.insert("sub".into(), subject.into());
        claims.insert("iat".into(), now.into());
        claims.insert("exp".into(), (now + self.settings.access_lifetime).into());
        claims
    }

    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        let own = self.path();
        for place in [
            format!("/.well-known/oauth-authorization-server{own}"),
            format!("/.well-known/openid-configuration{own}"),
            format!("{own}/.well-known/openid-configuration"),
        ] {
            if place == path {
                return Some(Endpoint::Metadata);
            }
        }
        let rest = path.strip_prefix(&own)?;
        Endpoint::ALL.into_iter().find(|endpoint| endpoint.path() == Some(rest))
    }

    /// The path of the issuer, without a slash at its end.
    fn path(&self) -> String {
        let path = url::Url::parse(&self.issuer).map(|url| url.path().to_owned());
        path.unwrap_or_default().trim_end_matches('/').to_owned()
    }

    fn address(&self, endpoint: Endpoint) -> String {
        let base = self.issuer.trim_end_matches('/');
        format!("{base}{}", endpoint.path().unwrap_or_default())
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before looking, so that nothing is missed in between.
            changed.as_mut().enable();
            if is_so(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unsigned(claims: &Map<String, Value>) -> Secret {
    let header = crate::jose::encode(r#"{"alg":"none","typ":"at+jwt"}"#);
    let claims = crate::jose::encode(Value::Object(claims.clone()).to_string());
    Secret::new(format!("{header}.{claims}."))
}

/// Without a network in between.
impl Fetch for InsecureAuthorizationServer {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        _: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move { Ok(self.handle_when_healed(request).await) })
    }
}

impl fmt::Debug for InsecureAuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsecureAuthorizationServer")
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}
