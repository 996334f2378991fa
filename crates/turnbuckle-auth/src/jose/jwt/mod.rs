//! Signing JSON web tokens.

#[cfg(feature = "server")]
mod verify;

#[cfg(all(test, feature = "server"))]
pub(crate) use verify::open;
#[cfg(feature = "server")]
pub(crate) use verify::{
    Rejected, Token, TokenRules, check_audience, check_times, unverified_issuer, unverified_time,
    verify,
};

use serde_json::{Map, Value};

use super::{SigningKey, encode};
use crate::{AuthError, Secret};

/// Signs `claims`. The header is `header`, and `alg`, and `kid` if the key has a name and the header
/// does not carry the key itself.
pub(crate) fn sign(
    key: &SigningKey,
    mut header: Map<String, Value>,
    claims: &Map<String, Value>,
) -> Result<Secret, AuthError> {
    header.insert("alg".into(), key.algorithm().name().into());
    if let Some(key_id) = key.key_id()
        && !header.contains_key("jwk")
    {
        header.insert("kid".into(), key_id.into());
    }
    let header = Value::Object(header).to_string();
    let claims = serde_json::to_vec(claims).unwrap_or_default();
    let mut token = format!("{}.{}", encode(header), encode(claims));
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    token.push_str(&encode(signature));
    Ok(Secret::new(token))
}
