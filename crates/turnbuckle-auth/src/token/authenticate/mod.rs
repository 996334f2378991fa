//! Owns how a client proves who it is when it asks for a token (RFC 6749 §2.3, RFC 7523 §2.2).
//! Does not own the request that it is part of.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use serde_json::Map;
use zeroize::Zeroizing;

use super::{
    registration::{Registration, TokenAuth},
    text::push_encoded,
};
use crate::{
    AuthError, AuthErrorKind, Secret, SigningKey,
    jose::{jwt, random_id},
};

/// How long an assertion is good, in seconds: long enough for clocks that differ.
const ASSERTION_GOOD_FOR: u64 = 120;

/// A form that is sent, name by name.
pub(crate) type Form = Vec<(&'static str, Secret)>;

/// Adds the proof to the form, or returns what `Authorization` must say.
///
/// # Errors
/// If what is needed for it is not there.
pub(crate) fn authenticate(
    registration: &Registration,
    audience: &str,
    key: Option<&SigningKey>,
    now: u64,
    form: &mut Form,
) -> Result<Option<HeaderValue>, AuthError> {
    let client_id = || ("client_id", Secret::new(registration.client_id.as_str()));
    match registration.method {
        TokenAuth::None => form.push(client_id()),
        TokenAuth::Basic => return basic(&registration.client_id, secret(registration)?).map(Some),
        TokenAuth::Post => {
            form.push(client_id());
            form.push(("client_secret", secret(registration)?.clone()));
        }
        TokenAuth::PrivateKeyJwt => {
            let Some(key) = key else {
                return Err(settings("this client proves who it is by a key, and none is set"));
            };
            form.push(client_id());
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            form.push(("client_assertion_type", Secret::new(kind)));
            let assertion = assertion(&registration.client_id, audience, key, now)?;
            form.push(("client_assertion", assertion));
        }
    }
    Ok(None)
}

/// RFC 6749 §2.3.1: both are encoded before they are joined, so that a colon in them is no harm.
fn basic(client_id: &str, secret: &Secret) -> Result<HeaderValue, AuthError> {
    let mut pair =
        Zeroizing::new(String::with_capacity(3 * (client_id.len() + secret.expose().len()) + 1));
    push_encoded(&mut pair, client_id);
    pair.push(':');
    push_encoded(&mut pair, secret.expose());
    let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| settings("the client's secret can't be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn assertion(
    client_id: &str,
    audience: &str,
    key: &SigningKey,
    now: u64,
) -> Result<Secret, AuthError> {
    let mut header = Map::new();
    header.insert("typ".into(), "JWT".into());
    let mut claims = Map::new();
    claims.insert("iss".into(), client_id.into());
    claims.insert("sub".into(), client_id.into());
    // The issuer and no address: what one server is shown is of no use at another.
    claims.insert("aud".into(), audience.into());
    claims.insert("iat".into(), now.into());
    claims.insert("exp".into(), now.saturating_add(ASSERTION_GOOD_FOR).into());
    claims.insert("jti".into(), random_id()?.into());
    jwt::sign(key, header, &claims)
}

fn secret(registration: &Registration) -> Result<&Secret, AuthError> {
    let missing = || settings("this client proves who it is by a secret, and none is set");
    registration.secret.as_ref().ok_or_else(missing)
}

fn settings(message: &str) -> AuthError {
    AuthError::new(AuthErrorKind::Settings, message)
}

#[cfg(test)]
mod tests;
