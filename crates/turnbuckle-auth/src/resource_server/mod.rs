//! A protected server's side: what it tells of itself, whom it lets in, and how it turns others
//! away.

mod credentials;
mod denied;
mod discovery;
mod exchange;
mod hierarchy;
mod identity;
mod introspect;
mod issuer;
mod keys;
mod metadata;
mod place;
mod verifier;

#[cfg(all(test, feature = "testing"))]
mod tests;

pub use denied::Denied;
pub use exchange::{Caller, ExchangedToken, TokenExchange};
pub use identity::Identity;
pub use introspect::Introspection;
pub use issuer::Issuer;
pub use verifier::{TokenVerifier, Unverified};

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{StatusCode, request::Parts};
use serde_json::{Map, Value};

use self::{
    credentials::{NotShown, Shown},
    hierarchy::Hierarchy,
    issuer::{Trusted, VerifyError},
    keys::Outside,
    place::ResourceLocation,
};
use crate::{
    AuthError, AuthErrorKind, Challenge, Clock, Fetch, Scheme, Scopes, Secret, SystemClock,
    jose::{
        LONGEST_TOKEN,
        dpop::{self, Nonces, Refused, Replays},
        jwt,
    },
};

/// How old a proof may be, in seconds.
const OLDEST_PROOF: u64 = 60;

/// The most proofs that are remembered.
const MOST_PROOFS: usize = 1 << 16;

/// For how many seconds a nonce is good.
const NONCE_GOOD_FOR: u64 = 300;

/// A server that lets in only who brings a token that was made for it.
///
/// The audience of a token is always checked, and so are its issuer and its times. A token that is
/// bound to a key (RFC 9449) is taken only with a proof of that key.
///
/// ```
/// use turnbuckle_auth::resource_server::ResourceServer;
/// let server = ResourceServer::new("https://mcp.example.com/mcp")
///     .issuer("https://auth.example.com")
///     .require(["mcp"].into_iter().collect());
/// assert_eq!(server.metadata_path(), "/.well-known/oauth-protected-resource/mcp");
/// ```
///
/// Clones share what they remember: keys, answers of issuers, proofs that were used.
#[derive(Clone)]
pub struct ResourceServer {
    place: ResourceLocation,
    problem: Option<&'static str>,
    issuers: Vec<Trusted>,
    /// The resource itself first.
    audiences: Vec<String>,
    required: Scopes,
    hierarchy: Hierarchy,
    offered: Scopes,
    name: Option<String>,
    documentation: Option<String>,
    /// In seconds.
    skew: u64,
    bound: Bound,
    replays: Arc<Replays>,
    nonces: Option<Arc<Nonces>>,
    fetch: Option<Arc<dyn Fetch>>,
    /// Certificates in PEM.
    roots: Vec<Vec<u8>>,
    clock: Arc<dyn Clock>,
}

/// Whether tokens must be bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// Those that are get checked.
    IfSo,
    Always,
}

impl ResourceServer {
    /// At this address, which tokens must name exactly like that as their audience.
    pub fn new(resource: impl Into<String>) -> ResourceServer {
        let resource = resource.into();
        let (place, problem) = match ResourceLocation::of(&resource) {
            Ok(place) => (place, None),
            Err(problem) => {
                let [origin, metadata_path] = [String::new(), String::new()];
                (
                    ResourceLocation { resource: resource.clone(), origin, metadata_path },
                    Some(problem),
                )
            }
        };
        ResourceServer {
            place,
            problem,
            issuers: Vec::new(),
            audiences: vec![resource],
            required: Scopes::none(),
            hierarchy: Hierarchy::default(),
            offered: Scopes::none(),
            name: None,
            documentation: None,
            skew: 30,
            bound: Bound::IfSo,
            replays: Arc::new(Replays::new(MOST_PROOFS)),
            nonces: None,
            fetch: None,
            roots: Vec::new(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Takes the tokens of this issuer; of several, each token's own `iss` says which one verifies it,
    /// and no other one does. A token that has none is verified by the one issuer that introspects or
    /// has a verifier of its own; if there are several of these, by none.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<Issuer>) -> ResourceServer {
        self.issuers.push(Trusted::new(issuer.into()));
        self
    }

    /// Takes tokens for this audience too: some authorization servers know no resource indicators, and
    /// write another name into every token.
    #[must_use]
    pub fn also_audience(mut self, audience: impl Into<String>) -> ResourceServer {
        self.audiences.push(audience.into());
        self
    }

    /// Nobody is let in without these.
    #[must_use]
    pub fn require(mut self, scopes: Scopes) -> ResourceServer {
        self.required = scopes;
        self
    }

    /// What nobody is let in without.
    pub fn required(&self) -> &Scopes {
        &self.required
    }

    /// Whoever has `scope` has these too, and what they imply. Else scopes are compared as texts.
    ///
    /// ```
    /// use turnbuckle_auth::resource_server::ResourceServer;
    /// let server = ResourceServer::new("https://mcp.example.com/mcp")
    ///     .issuer("https://auth.example.com")
    ///     .implies("admin", ["files:write"])
    ///     .implies("files:write", ["files:read"]);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn implies<S: Into<String>>(
        mut self,
        scope: impl Into<String>,
        implied: impl IntoIterator<Item = S>,
    ) -> ResourceServer {
        self.hierarchy.add(scope.into(), implied.into_iter().collect());
        self
    }

    /// For how much longer whoever came in may stay: until the token is good no more, clocks that
    /// differ allowed for.
    pub fn time_left(&self, identity: &Identity) -> Option<Duration> {
        let until = identity.expires_at?.saturating_add(self.skew);
        Some(Duration::from_secs(until.saturating_sub(self.clock.now())))
    }

    /// Tells clients that there are these, too.
    #[must_use]
    pub fn offer(mut self, scopes: Scopes) -> ResourceServer {
        self.offered = scopes;
        self
    }

    /// What people call it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> ResourceServer {
        self.name = Some(name.into());
        self
    }

    /// Where developers read about it.
    #[must_use]
    pub fn documentation(mut self, address: impl Into<String>) -> ResourceServer {
        self.documentation = Some(address.into());
        self
    }

    /// By how much clocks of others may differ: 30 seconds unless told.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> ResourceServer {
        self.skew = skew.as_secs();
        self
    }

    /// Takes only tokens that are bound to a key (RFC 9449).
    #[must_use]
    pub fn require_dpop(mut self) -> ResourceServer {
        self.bound = Bound::Always;
        self
    }

    /// Takes only proofs with a nonce of this server, so that none can be made beforehand. Servers that
    /// answer for each other share the secret.
    #[must_use]
    pub fn dpop_nonces(mut self, secret: &Secret) -> ResourceServer {
        self.nonces = Some(Arc::new(Nonces::new(secret, NONCE_GOOD_FOR)));
        self
    }

    /// Asks issuers with this.
    #[must_use]
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> ResourceServer {
        self.fetch = Some(fetch);
        self
    }

    /// Reads the time here.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> ResourceServer {
        self.clock = clock;
        self
    }

    /// Trusts the certificates in this PEM text when issuers are asked, besides the system's: for an
    /// issuer with a certificate of one's own authority. What was given to
    /// [ask with](ResourceServer::fetch) has its own ideas of whom to trust.
    #[must_use]
    pub fn tls_root(mut self, pem: impl Into<Vec<u8>>) -> ResourceServer {
        self.roots.push(pem.into());
        self
    }

    /// What is trusted besides the system's certificates.
    pub fn tls_roots(&self) -> &[Vec<u8>] {
        &self.roots
    }

    /// Asks issuers with what this makes of the [certificates](ResourceServer::tls_roots), unless
    /// something else was given.
    #[must_use]
    pub fn or_fetch(mut self, fetch: impl FnOnce(&[Vec<u8>]) -> Arc<dyn Fetch>) -> ResourceServer {
        let ResourceServer { fetch: given, roots, .. } = &mut self;
        given.get_or_insert_with(|| fetch(roots));
        self
    }

    /// Whether [`fetch`](ResourceServer::fetch) must still be called.
    pub fn needs_fetch(&self) -> bool {
        self.fetch.is_none() && self.issuers.iter().any(Trusted::needs_fetch)
    }

    /// Whether the settings fit together. If they don't, nobody is let in.
    ///
    /// # Errors
    /// If they don't.
    pub fn ready(&self) -> Result<(), AuthError> {
        let twice = |at: usize| {
            self.issuers[..at].iter().any(|before| before.name == self.issuers[at].name)
        };
        let problem = if self.problem.is_some() {
            self.problem
        } else if self.issuers.is_empty() {
            Some("no issuer is trusted, so that nobody can come in")
        } else if (0..self.issuers.len()).any(twice) {
            Some("an issuer is named twice")
        } else if self.needs_fetch() {
            Some("there is nothing to ask issuers with")
        } else {
            self.issuers.iter().find_map(|issuer| issuer.problem)
        };
        problem.map_or(Ok(()), |text| Err(AuthError::new(AuthErrorKind::Settings, text)))
    }

    /// Where [`metadata`](ResourceServer::metadata) must be served (RFC 9728 §3.1).
    pub fn metadata_path(&self) -> &str {
        &self.place.metadata_path
    }

    /// What this server tells of itself, as JSON.
    pub fn metadata(&self) -> Bytes {
        metadata::document(self)
    }

    /// Who comes with this request.
    ///
    /// Dropping the future gives the check up; keys that are being fetched are fetched to the end, for
    /// others may wait for them.
    ///
    /// # Errors
    /// If the request must be turned away.
    pub async fn check(&self, parts: &Parts) -> Result<Identity, Denied> {
        self.admit(parts).await.map(|(identity, _)| identity)
    }

    /// The same, and what a [`TokenExchange`] needs of them.
    ///
    /// # Errors
    /// If the request must be turned away.
    pub async fn admit(&self, parts: &Parts) -> Result<(Identity, Caller), Denied> {
        let (Some(fetch), Ok(())) = (self.fetch_or_none(), self.ready()) else {
            tracing::error!("the settings of the protected server do not fit together");
            return Err(Denied::broken());
        };
        let shown = credentials::shown(&parts.headers).map_err(|reason| match reason {
            NotShown::Nothing => self.denied(StatusCode::UNAUTHORIZED, self.scheme(), None),
            NotShown::Malformed => {
                let error = ("invalid_request", "the request has no one readable token");
                self.denied(StatusCode::BAD_REQUEST, self.scheme(), Some(error))
            }
        })?;
        let outside = Outside { fetch, clock: Arc::clone(&self.clock) };
        let identity = self.identify(parts, &shown, &outside).await?;
        let caller = Caller::new(shown.token, identity.issuer.clone(), outside);
        Ok((identity, caller))
    }

    async fn identify(
        &self,
        parts: &Parts,
        shown: &Shown,
        outside: &Outside,
    ) -> Result<Identity, Denied> {
        let invalid = |text: &str| self.invalid_token(shown.scheme, text);
        if shown.token.expose().len() > LONGEST_TOKEN {
            return Err(invalid("the token is too long"));
        }
        let trusted =
            self.chosen(&shown.token).ok_or_else(|| invalid("the token's issuer is unknown"))?;
        let verified = trusted.verify(&shown.token, &self.audiences, self.skew, outside).await;
        let claims = verified.map_err(|failed| match failed {
            VerifyError::Invalid(text) => invalid(&text),
            VerifyError::Unavailable(error) => {
                tracing::warn!(issuer = trusted.name, %error, "a token can't be verified now");
                Denied::unavailable()
            }
        })?;
        self.check_key(parts, shown, &claims)?;
        let mut identity = Identity::from_claims(&trusted.name, claims)
            .ok_or_else(|| invalid("the token names nobody"))?;
        identity.scopes = self.hierarchy.all(identity.scopes);
        if !identity.scopes.contains_all(&self.required) {
            return Err(self.insufficient_for(shown.scheme, &self.required));
        }
        Ok(identity)
    }

    /// 403 with a challenge from which a client sees what it must ask for.
    pub fn insufficient(&self, needed: &Scopes) -> Denied {
        self.insufficient_for(self.scheme(), needed)
    }

    fn insufficient_for(&self, scheme: Scheme, needed: &Scopes) -> Denied {
        let error = ("insufficient_scope", "the token is not good for this");
        let mut challenge = self.challenge(scheme, Some(error));
        challenge.scope = Some(needed.clone());
        Denied::new(StatusCode::FORBIDDEN, challenge)
    }

    fn fetch_or_none(&self) -> Option<Arc<dyn Fetch>> {
        if self.needs_fetch() {
            return None;
        }
        Some(self.fetch.clone().unwrap_or_else(|| Arc::new(Nobody)))
    }

    /// By what the token says itself; whether that is true is for the one that is chosen to see.
    fn chosen(&self, token: &Secret) -> Option<&Trusted> {
        if let Some(named) = jwt::unverified_issuer(token.expose()) {
            return self.issuers.iter().find(|issuer| issuer.name == named);
        }
        // A token shown to an issuer that is not its own would be a token given away.
        let mut opaque = self.issuers.iter().filter(|issuer| issuer.takes_opaque());
        opaque.next().filter(|_| opaque.next().is_none())
    }

    /// RFC 9449 §7.1: a bound token comes as `DPoP` with a proof of its key, any other as `Bearer`.
    fn check_key(
        &self,
        parts: &Parts,
        shown: &Shown,
        claims: &Map<String, Value>,
    ) -> Result<(), Denied> {
        let bound_to = claims.get("cnf").map(|bound| bound.get("jkt").and_then(Value::as_str));
        let thumbprint = match (shown.scheme, bound_to) {
            (Scheme::Dpop, Some(Some(thumbprint))) => thumbprint,
            (Scheme::Bearer, None) if self.bound == Bound::IfSo => return Ok(()),
            (Scheme::Bearer, Some(Some(_))) => {
                return Err(self.invalid_token(Scheme::Dpop, "the token is bound to a key"));
            }
            // RFC 8705 and others bind to what is not seen here.
            (_, Some(None)) => {
                return Err(
                    self.invalid_token(shown.scheme, "the token is bound in an unknown way")
                );
            }
            (_, None) => {
                return Err(self.invalid_token(Scheme::Dpop, "the token is not bound to a key"));
            }
        };
        let wrong_proof = |code, text: &str| {
            self.denied(StatusCode::UNAUTHORIZED, Scheme::Dpop, Some((code, text)))
        };
        let proof = credentials::proof(&parts.headers)
            .ok_or_else(|| wrong_proof("invalid_dpop_proof", "there must be one DPoP proof"))?;
        // Not from `Host`: whoever sends a request chooses that.
        let url = self.place.url(parts.uri.path());
        let now = self.clock.now();
        let expected = dpop::ExpectedProof {
            method: parts.method.as_str(),
            url: &url,
            access_token: Some(shown.token.expose()),
            thumbprint: Some(thumbprint),
            nonces: self.nonces.as_deref(),
            now,
            oldest: OLDEST_PROOF.saturating_add(self.skew),
            skew: self.skew,
        };
        match (dpop::check(proof, &expected, &self.replays), &self.nonces) {
            (Ok(_), _) => Ok(()),
            (Err(refused @ Refused::Nonce), Some(nonces)) => {
                let denied = wrong_proof("use_dpop_nonce", &refused.to_string());
                Err(denied.with_nonce(nonces.issue(now)))
            }
            (Err(Refused::OtherKey), _) => {
                Err(self.invalid_token(Scheme::Dpop, &Refused::OtherKey.to_string()))
            }
            (Err(refused), _) => Err(wrong_proof("invalid_dpop_proof", &refused.to_string())),
        }
    }

    fn invalid_token(&self, scheme: Scheme, text: &str) -> Denied {
        self.denied(StatusCode::UNAUTHORIZED, scheme, Some(("invalid_token", text)))
    }

    fn denied(&self, status: StatusCode, scheme: Scheme, error: Option<(&str, &str)>) -> Denied {
        Denied::new(status, self.challenge(scheme, error))
    }

    /// RFC 6750 §3.1: no error if there was no credential.
    fn challenge(&self, scheme: Scheme, error: Option<(&str, &str)>) -> Challenge {
        Challenge {
            scheme,
            error: error.map(|(code, _)| code.to_owned()),
            error_description: error.map(|(_, text)| text.to_owned()),
            scope: Some(self.required.clone()).filter(|scopes| !scopes.is_empty()),
            resource_metadata: Some(self.place.metadata_url()),
        }
    }

    fn scheme(&self) -> Scheme {
        match self.bound {
            Bound::IfSo => Scheme::Bearer,
            Bound::Always => Scheme::Dpop,
        }
    }
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers: Vec<&str> = self.issuers.iter().map(|issuer| issuer.name.as_str()).collect();
        f.debug_struct("ResourceServer")
            .field("resource", &self.place.resource)
            .field("issuers", &issuers)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

/// Stands in where no issuer needs to be asked.
struct Nobody;

impl Fetch for Nobody {
    fn fetch<'a>(
        &'a self,
        _: http::Request<Bytes>,
        _: &'a crate::Rules,
    ) -> crate::BoxFuture<'a, Result<http::Response<Bytes>, AuthError>> {
        let text = "there is nothing to ask issuers with";
        Box::pin(async move { Err(AuthError::new(AuthErrorKind::Settings, text)) })
    }
}
