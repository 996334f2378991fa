//! Owns where an issuer's description of itself is, and asking for it. Does not own what is done with
//! what it says.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, header::ACCEPT};
use serde_json::{Map, Value};
use url::Url;

use super::place::is_safe;
use crate::{
    Addresses, AuthError, AuthErrorKind, Fetch, Origin, Rules, jose::strict_object, may_ask,
};

/// For an address that the configuration names: whoever runs this server chose it, and it may be in a
/// private network. It is no metadata service of a cloud even so.
pub(super) fn rules_for_chosen(address: &str) -> Result<Rules, AuthError> {
    let chosen = Origin::of(address)?.with_private_addresses();
    may_ask(address, &chosen)?;
    Ok(rules(chosen.addresses()))
}

/// For an address that an issuer's description names: no more private than the issuer itself, by its text
/// and by the number that a name turns out to be. The issuer's own origin is as chosen as the issuer.
pub(super) fn rules_for_named(address: &str, issuer: &str) -> Result<Rules, AuthError> {
    let from = Origin::of(issuer)?;
    if Origin::of(address)?.as_str() == from.as_str() {
        return rules_for_chosen(address);
    }
    may_ask(address, &from)?;
    Ok(rules(from.addresses()))
}

fn rules(addresses: Addresses) -> Rules {
    Rules { limit: 1 << 20, timeout: Duration::from_secs(5), addresses }
}

/// What the issuer says of itself: RFC 8414 §3.1 first, then OpenID Connect, as the specification
/// orders them. Dropping the future gives it up.
pub(super) async fn metadata(
    fetch: &dyn Fetch,
    issuer: &str,
) -> Result<Map<String, Value>, AuthError> {
    for address in addresses(issuer)? {
        if let Some(document) = ask(fetch, &address, &rules_for_chosen(&address)?).await? {
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
pub(super) async fn ask(
    fetch: &dyn Fetch,
    address: &str,
    rules: &Rules,
) -> Result<Option<Bytes>, AuthError> {
    if !Url::parse(address).is_ok_and(|url| is_safe(&url)) {
        let text = "the issuer's metadata or keys are not at https";
        return Err(AuthError::new(AuthErrorKind::Forbidden, text));
    }
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = address.parse().map_err(|_| unreachable("an address can't be asked"))?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let response = fetch.fetch(request, rules).await?;
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
