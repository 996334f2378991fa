//! Owns what a verifier is: whoever can tell what a token says. Does not own the checks that hold for
//! every token, whoever verified it.

use std::fmt;

use serde_json::{Map, Value};

use crate::{AuthError, BoxFuture, Secret};

/// Tells what a token says, for issuers whose tokens are neither JSON web tokens nor to be
/// introspected. Whatever it says, the audience, the issuer if it is named, the times and the key are
/// checked after it.
///
/// ```
/// use serde_json::{Map, Value, json};
/// use turnbuckle_auth::{BoxFuture, Secret};
/// use turnbuckle_auth::resource_server::{Issuer, ResourceServer, TokenVerifier, Unverified};
///
/// struct OneToken;
/// impl TokenVerifier for OneToken {
///     fn verify<'a>(
///         &'a self,
///         token: &'a Secret,
///     ) -> BoxFuture<'a, Result<Map<String, Value>, Unverified>> {
///         Box::pin(async move {
///             if *token != Secret::new("let-me-in") {
///                 return Err(Unverified::Invalid);
///             }
///             let claims = json!({
///                 "sub": "ann", "aud": "https://mcp.example.com/mcp", "exp": 1_900_000_000,
///             });
///             Ok(claims.as_object().cloned().unwrap_or_default())
///         })
///     }
/// }
///
/// let server = ResourceServer::new("https://mcp.example.com/mcp")
///     .issuer(Issuer::new("https://auth.example.com").verified_by(OneToken));
/// ```
pub trait TokenVerifier: Send + Sync {
    /// What the token says, as an introspection answer would (RFC 7662 §2.2): `sub`, `client_id`,
    /// `scope`, `aud`, `exp`, `cnf`. `exp` has to be there: `null` says that the token does not expire.
    /// Dropping the future gives the check up.
    fn verify<'a>(
        &'a self,
        token: &'a Secret,
    ) -> BoxFuture<'a, Result<Map<String, Value>, Unverified>>;
}

/// Why nothing can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unverified {
    /// The token is not good.
    Invalid,
    /// It can't be told now; another try may help.
    Unavailable(AuthError),
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unverified::Invalid => f.write_str("the token is not good"),
            Unverified::Unavailable(error) => write!(f, "the token can't be verified now: {error}"),
        }
    }
}

impl std::error::Error for Unverified {}
