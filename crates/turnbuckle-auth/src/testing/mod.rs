//! Owns an authorization server for tests: it asks nobody for a password, lets everyone in, and keeps
//! everything in memory. Does not own anything that could be deployed.

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

use self::state::State;
use crate::{
    AuthError, BoxFuture, Clock, Fetch, Rules, Scopes, Secret, SystemClock,
    jose::{KeySet, dpop::Nonces},
};

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
        let path = request.uri().path();
        let Some(endpoint) = self.endpoint(path) else { return reply::empty(404) };
        let fault = {
            let mut state = self.lock();
            *state.requests.entry(endpoint).or_default() += 1;
            state.faults.get(&endpoint).cloned()
        };
        match fault {
            Some(Fault::Html) => return reply::html(),
            Some(Fault::Status(status)) => return reply::empty(status),
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
            Endpoint::Register => self.register(&request),
            Endpoint::Authorize => self.authorize(&request, fault),
            Endpoint::Token => self.token(&request),
            Endpoint::Introspect => self.introspect(&request),
            Endpoint::Revoke => self.revoke(&request),
        }
    }

    /// How many requests came here, those that were answered with a fault among them.
    pub fn requests(&self, endpoint: Endpoint) -> usize {
        self.lock().requests.get(&endpoint).copied().unwrap_or(0)
    }

    /// From now on this goes wrong here.
    pub fn fail(&self, endpoint: Endpoint, fault: Fault) {
        self.lock().faults.insert(endpoint, fault);
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.lock().faults.clear();
    }

    /// Signs with another key from now on, and publishes only that one.
    pub fn rotate_keys(&self) {
        self.lock().rotate_keys();
    }

    /// An access token with these claims; what is not claimed is as in any other one.
    pub fn issue(&self, claims: Map<String, Value>) -> Secret {
        let now = self.clock.now();
        let mut all = self.claims(&self.settings.subject, now);
        all.extend(claims);
        self.lock().sign("at+jwt", &all)
    }

    /// The same, not signed at all (`alg` is `none`).
    pub fn issue_unsigned(&self, claims: Map<String, Value>) -> Secret {
        let mut all = self.claims(&self.settings.subject, self.clock.now());
        all.extend(claims);
        let header = crate::jose::encode(r#"{"alg":"none","typ":"at+jwt"}"#);
        let claims = crate::jose::encode(Value::Object(all).to_string());
        Secret::new(format!("{header}.{claims}."))
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without a network in between.
impl Fetch for InsecureAuthorizationServer {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        _: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move { Ok(self.handle(request)) })
    }
}

impl fmt::Debug for InsecureAuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsecureAuthorizationServer")
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}
