//! Owns where an issuer's description of itself is, and asking for it. Does not own what is done with
//! what it says.

use bytes::Bytes;
use http::{HeaderValue, Request, header::ACCEPT};
use serde_json::{Map, Value};
use url::Url;

use super::place::is_safe;
use crate::{Addresses, AuthError, AuthErrorKind, Fetch, Rules, jose::strict_object};

/// An issuer is chosen by whoever runs this server, so that it may be in a private network.
pub(super) fn rules() -> Rules {
    Rules {
        limit: 1 << 20,
        timeout: std::time::Duration::from_secs(5),
        addresses: Addresses::AlsoPrivate,
    }
}

/// What the issuer says of itself: RFC 8414 §3.1 first, then OpenID Connect, as the specification
/// orders them. Dropping the future gives it up.
pub(super) async fn metadata(
    fetch: &dyn Fetch,
    issuer: &str,
) -> Result<Map<String, Value>, AuthError> {
    for address in addresses(issuer)? {
        if let Some(document) = ask(fetch, &address).await? {
            return read(issuer, &document);
        }
    }
    Err(unreachable("the issuer has no metadata"))
}

/// An address in that description.
pub(super) fn address<'a>(
    metadata: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, AuthError> {
    metadata.get(name).and_then(Value::as_str).ok_or_else(|| {
        let text = format!("the issuer's metadata has no `{name}`");
        AuthError::new(AuthErrorKind::Metadata, text)
    })
}

/// A document of the issuer's; nothing if there is none there. Dropping the future gives it up.
pub(super) async fn ask(fetch: &dyn Fetch, address: &str) -> Result<Option<Bytes>, AuthError> {
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

pub(super) fn unreachable(text: impl Into<String>) -> AuthError {
    AuthError::new(AuthErrorKind::Unreachable, text)
}

fn addresses(issuer: &str) -> Result<Vec<String>, AuthError> {
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

fn read(issuer: &str, document: &[u8]) -> Result<Map<String, Value>, AuthError> {
    let wrong = |text| AuthError::new(AuthErrorKind::Metadata, text);
    let document =
        strict_object(document).ok_or_else(|| wrong("the issuer's metadata is no JSON object"))?;
    if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err(wrong("the issuer's metadata is that of another issuer"));
    }
    Ok(document)
}
