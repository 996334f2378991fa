//! Making proofs.

use serde_json::{Map, Value};

use super::token_digest;
use crate::{
    AuthError, Secret, SigningKey,
    jose::{jwt, random_id},
};

/// The value of the `DPoP` header for one request; never to be used for a second one.
pub(crate) fn proof(
    key: &SigningKey,
    method: &str,
    url: &str,
    access_token: Option<&Secret>,
    nonce: Option<&str>,
    now: u64,
) -> Result<String, AuthError> {
    let mut header = Map::new();
    header.insert("typ".into(), "dpop+jwt".into());
    header.insert("jwk".into(), Value::Object(key.public().to_jwk()));
    let mut claims = Map::new();
    claims.insert("jti".into(), random_id()?.into());
    claims.insert("htm".into(), method.into());
    claims.insert("htu".into(), without_query(url).into());
    claims.insert("iat".into(), now.into());
    if let Some(token) = access_token {
        claims.insert("ath".into(), token_digest(token.expose()).into());
    }
    if let Some(nonce) = nonce {
        claims.insert("nonce".into(), nonce.into());
    }
    Ok(jwt::sign(key, header, &claims)?.expose().to_owned())
}

/// What comes before the query and the fragment.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}
