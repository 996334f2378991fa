//! Owns whose tokens are taken, and who verifies them. Does not own what is checked afterwards.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};
use url::Url;

use super::{
    discovery::unreachable,
    introspect::{Introspection, Introspector},
    keys::{IssuerKeys, Outside},
    place::is_safe,
    verifier::{TokenVerifier, Unverified},
};
use crate::{
    AuthError, Secret,
    jose::jwt::{self, Rejected, TokenRules},
};

/// An authorization server whose tokens are taken.
///
/// ```
/// use turnbuckle_auth::resource_server::{Issuer, ResourceServer};
/// let server = ResourceServer::new("https://mcp.example.com/mcp")
///     .issuer("https://auth.example.com")
///     .issuer(Issuer::new("https://other.example.com").keys_at("https://other.example.com/keys"));
/// ```
#[derive(Clone)]
pub struct Issuer {
    name: String,
    how: Verification,
}

#[derive(Clone)]
enum Verification {
    /// JSON web tokens, with the keys at this address, or where its metadata says.
    Keys(Option<String>),
    Introspection(Introspection),
    Own(Arc<dyn TokenVerifier>),
}

impl Issuer {
    /// By its own string, exactly as its tokens and its metadata spell it. Its tokens are JSON web
    /// tokens, verified with the keys that its metadata points to, unless something else is said.
    pub fn new(name: impl Into<String>) -> Issuer {
        Issuer { name: name.into(), how: Verification::Keys(None) }
    }

    /// Its keys are here; its metadata is not asked for.
    #[must_use]
    pub fn keys_at(mut self, address: impl Into<String>) -> Issuer {
        self.how = Verification::Keys(Some(address.into()));
        self
    }

    /// It is asked about each token.
    #[must_use]
    pub fn introspected(mut self, introspection: Introspection) -> Issuer {
        self.how = Verification::Introspection(introspection);
        self
    }

    /// Someone else knows its tokens.
    #[must_use]
    pub fn verified_by(mut self, verifier: impl TokenVerifier + 'static) -> Issuer {
        self.how = Verification::Own(Arc::new(verifier));
        self
    }

    fn problem(&self) -> Option<&'static str> {
        let (address, text) = match &self.how {
            Verification::Keys(None) => {
                (&self.name, "an issuer must be at https, or at http on this machine")
            }
            Verification::Keys(Some(address)) => {
                (address, "an issuer's keys must be at https, or at http on this machine")
            }
            Verification::Introspection(introspection) => (
                &introspection.endpoint,
                "an introspection endpoint must be at https, or at http on this machine",
            ),
            Verification::Own(_) => return None,
        };
        (!Url::parse(address).is_ok_and(|url| is_safe(&url))).then_some(text)
    }
}

impl From<&str> for Issuer {
    fn from(name: &str) -> Issuer {
        Issuer::new(name)
    }
}

impl From<String> for Issuer {
    fn from(name: String) -> Issuer {
        Issuer::new(name)
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An issuer at work.
#[derive(Clone)]
pub(super) struct Trusted {
    pub(super) name: String,
    /// What is wrong with its settings.
    pub(super) problem: Option<&'static str>,
    verifier: Verifier,
}

#[derive(Clone)]
enum Verifier {
    Keys(Arc<IssuerKeys>),
    Introspection(Arc<Introspector>),
    Own(Arc<dyn TokenVerifier>),
}

/// Why a token is not taken.
pub(super) enum VerifyError {
    /// It is not good, and this is why.
    Invalid(String),
    /// It can't be told now.
    Unavailable(AuthError),
}

/// By how many seconds an issuer's clock may be behind, where it matters whether a token or the keys
/// came first.
const CLOCKS: u64 = 5;

/// `at+jwt` is what RFC 9068 §2.1 demands, and what few write yet.
const ACCESS_TOKEN_TYPES: [&str; 2] = ["at+jwt", "jwt"];

impl Trusted {
    pub(super) fn new(issuer: Issuer) -> Trusted {
        let problem = issuer.problem();
        let verifier = match issuer.how {
            Verification::Keys(given) => {
                Verifier::Keys(Arc::new(IssuerKeys::new(&issuer.name, given)))
            }
            Verification::Introspection(introspection) => {
                Verifier::Introspection(Arc::new(Introspector::new(introspection)))
            }
            Verification::Own(own) => Verifier::Own(own),
        };
        Trusted { name: issuer.name, problem, verifier }
    }

    /// Whether its tokens may be texts that only it understands.
    pub(super) fn takes_opaque(&self) -> bool {
        !matches!(self.verifier, Verifier::Keys(..))
    }

    pub(super) fn needs_fetch(&self) -> bool {
        !matches!(self.verifier, Verifier::Own(_))
    }

    /// What the token says. The audience and the times are right.
    pub(super) async fn verify(
        &self,
        token: &Secret,
        audiences: &[String],
        skew: u64,
        outside: &Outside,
    ) -> Result<Map<String, Value>, VerifyError> {
        let now = outside.clock.now();
        let unverified = |error| match error {
            Unverified::Invalid => VerifyError::Invalid("the token is not good".into()),
            Unverified::Unavailable(error) => VerifyError::Unavailable(error),
        };
        let claims = match &self.verifier {
            Verifier::Keys(keys) => {
                let types = &ACCESS_TOKEN_TYPES;
                let rules = TokenRules { issuer: &self.name, audiences, types, now, skew };
                verify_with_keys(keys, token, &rules, outside).await?
            }
            Verifier::Introspection(introspector) => {
                let answer = introspector.verify(&self.name, token, outside).await;
                answer.map_err(unverified)?
            }
            Verifier::Own(own) => {
                let mut claims = own.verify(token).await.map_err(unverified)?;
                // What was forgotten is not to let anyone in for ever.
                match claims.get("exp") {
                    None => return Err(invalid(Rejected::NoExpiry)),
                    Some(Value::Null) => claims.remove("exp"),
                    Some(_) => None,
                };
                claims
            }
        };
        if claims.get("iss").is_some_and(|issuer| *issuer != self.name) {
            return Err(invalid(Rejected::Issuer));
        }
        jwt::check_audience(&claims, audiences).map_err(invalid)?;
        jwt::check_times(&claims, now, skew).map_err(invalid)?;
        Ok(claims)
    }
}

async fn verify_with_keys(
    keys: &Arc<IssuerKeys>,
    token: &Secret,
    rules: &TokenRules<'_>,
    outside: &Outside,
) -> Result<Map<String, Value>, VerifyError> {
    let known = keys.current(outside).await.map_err(VerifyError::Unavailable)?;
    match jwt::verify(token.expose(), &known, rules) {
        Err(Rejected::UnknownKey) => {}
        verified => return verified.map_err(invalid),
    }
    // The issuer may have changed its keys since.
    let newer = keys.newer_than(Some(&known), outside).await.map_err(VerifyError::Unavailable)?;
    match jwt::verify(token.expose(), &newer.keys, rules) {
        // It may be good: that can't be told now, and another token would not help.
        Err(Rejected::UnknownKey) if keys.is_behind() => {
            Err(VerifyError::Unavailable(unreachable("the issuer's keys can't be fetched")))
        }
        // So may one that is newer than the keys, which anyone can have had fetched just before the
        // issuer changed them. An older one's key would be among them.
        Err(Rejected::UnknownKey)
            if newer.as_of.is_some_and(|as_of| {
                let issued = jwt::unverified_time(token.expose());
                issued.is_none_or(|issued| issued.saturating_add(CLOCKS) >= as_of)
            }) =>
        {
            Err(VerifyError::Unavailable(unreachable(
                "the issuer's keys were fetched a moment ago",
            )))
        }
        verified => verified.map_err(invalid),
    }
}

fn invalid(rejected: Rejected) -> VerifyError {
    VerifyError::Invalid(rejected.to_string())
}
