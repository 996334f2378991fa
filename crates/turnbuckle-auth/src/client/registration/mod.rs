//! Owns how a client comes to be known at an authorization server, and what it says of itself there
//! (RFC 7591). Does not own asking, or remembering.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::{
    grant::{Grant, RegisteredBy, Registration, TokenAuth},
    metadata::ServerMetadata,
    settings::{ApplicationType, Registered, Settings, Way},
    text::{check_address, is_loopback, object, post, quote, text},
    token::failure,
};
use crate::{AuthError, AuthErrorKind, Scopes};

/// How a client is to be known.
pub(crate) enum Choice {
    /// As this.
    Known(Registration),
    /// By registering itself, unless it did so before.
    Dynamic,
}

/// The first way of the settings that is open.
///
/// # Errors
/// If none is, with what could be done about it; or if what was registered beforehand belongs to
/// another authorization server.
pub(crate) fn choose(
    settings: &Settings,
    server: &ServerMetadata,
    previous: Option<&Grant>,
) -> Result<Choice, AuthError> {
    for way in &settings.order {
        match way {
            RegisteredBy::Beforehand => {
                if let Some(registered) = &settings.registered {
                    let registration = beforehand(settings, registered, server, previous)?;
                    return Ok(Choice::Known(registration));
                }
            }
            RegisteredBy::Document => {
                if let Some(url) = settings.document.as_ref().filter(|_| server.documents) {
                    return document(settings, url, server).map(Choice::Known);
                }
            }
            RegisteredBy::Dynamic => {
                if server.register.is_some() && matches!(settings.way, Way::Person) {
                    return Ok(Choice::Dynamic);
                }
            }
        }
    }
    Err(AuthError::new(AuthErrorKind::Registration, no_way(settings, server)))
}

/// What is registered at one issuer is shown to no other.
pub(crate) fn belongs_elsewhere(known: &str, named: &str) -> AuthError {
    let message = format!(
        "the client was registered beforehand at `{}`, and the server now relies on `{}`: register it \
         there and configure what comes of it, with its issuer",
        quote(known, &[]),
        quote(named, &[])
    );
    AuthError::new(AuthErrorKind::Registration, message)
}

/// Whether what a client registered before can be used again: clients are held to where they said
/// that answers go.
pub(crate) fn reusable(registration: &Registration, redirect_uri: &str, now: u64) -> bool {
    registration.origin == RegisteredBy::Dynamic
        && registration.redirect_uri.as_deref() == Some(redirect_uri)
        && registration.good(now)
}

/// What of these scopes a registration can name. A server that lists its own refuses others, and those
/// that belong to protected servers need not be among them.
pub(crate) fn nameable(server: &ServerMetadata, scopes: &Scopes) -> Scopes {
    match &server.scopes {
        Some(listed) => scopes.iter().filter(|scope| listed.contains(scope)).collect(),
        None => scopes.clone(),
    }
}

/// Whether a client may ask for these: servers hold clients to the scopes of their registration.
pub(crate) fn covers(known: &Registration, server: &ServerMetadata, scopes: &Scopes) -> bool {
    let held_to = known.scopes.as_ref();
    held_to.is_none_or(|held_to| held_to.contains_all(&nameable(server, scopes)))
}

/// The same client with what is configured for it now: secrets are changed from time to time.
pub(crate) fn current(settings: &Settings, grant: &Grant) -> Registration {
    let mut registration = grant.registration.clone();
    if let Some(registered) = &settings.registered
        && registration.origin == RegisteredBy::Beforehand
        && registration.client_id == registered.client_id
        && registered.issuer.as_ref().is_none_or(|issuer| *issuer == grant.issuer)
    {
        registration.secret = registered.secret.clone();
        registration.method = match (registered.method, registration.method) {
            (Some(method), _) => method,
            // RFC 8414 §2: who says nothing knows it, and what else is known is not known here.
            (None, TokenAuth::None) if registered.secret.is_some() => TokenAuth::Basic,
            (None, TokenAuth::Basic | TokenAuth::Post) if registered.secret.is_none() => {
                settings.key.as_ref().map_or(TokenAuth::None, |_| TokenAuth::PrivateKeyJwt)
            }
            (None, method) => method,
        };
    }
    registration
}

/// What a client asks to be known as, and how it asked to prove that.
pub(crate) fn request(
    settings: &Settings,
    server: &ServerMetadata,
    endpoint: &str,
    redirect_uri: &str,
    scopes: &Scopes,
) -> Result<(Request<Bytes>, TokenAuth), AuthError> {
    let method = preferred(server);
    let mut grants = vec!["authorization_code"];
    if server.grants.as_ref().is_none_or(|known| known.iter().any(|grant| grant == "refresh_token"))
    {
        grants.push("refresh_token");
    }
    let application = settings.application.unwrap_or_else(|| application_type(redirect_uri));
    let mut body = json!({
        "client_name": settings.client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": method.name(),
        "application_type": application.name(),
    });
    let scopes = nameable(server, scopes);
    if !scopes.is_empty() {
        body["scope"] = scopes.to_string().into();
    }
    let request = post(endpoint, "application/json", Bytes::from(body.to_string()))?;
    Ok((request, method))
}

/// What the authorization server made of it (RFC 7591 §3.2).
///
/// # Errors
/// If it refused, or if what it made can't be used.
pub(crate) fn read(
    response: &Response<Bytes>,
    asked: TokenAuth,
    redirect_uri: &str,
) -> Result<Registration, AuthError> {
    let status = response.status();
    let Some(body) = object(response.body()) else {
        let message = format!("the registration is answered with {} and no JSON", status.as_u16());
        let kind = match status {
            StatusCode::TOO_MANY_REQUESTS => AuthErrorKind::Unreachable,
            status if status.is_client_error() => AuthErrorKind::Registration,
            _ => AuthErrorKind::Unreachable,
        };
        return Err(AuthError::new(kind, message));
    };
    if !status.is_success() || body.contains_key("error") {
        return Err(refused(failure(status, &body, &[]), status));
    }
    let Some(client_id) = text(&body, "client_id") else {
        return Err(unusable("gave no client_id"));
    };
    let only = |name: &str, needed: &str| match body.get(name).and_then(Value::as_array) {
        Some(given) => given.iter().any(|value| value == needed),
        None => true,
    };
    if let Some(given) = body.get("redirect_uris").and_then(Value::as_array)
        && (given.is_empty() || given.iter().any(|value| value != redirect_uri))
    {
        return Err(unusable("registered other redirect_uris than the one that was asked for"));
    }
    if !only("grant_types", "authorization_code") || !only("response_types", "code") {
        return Err(unusable("registered a client that can't log in by authorization code"));
    }
    let method = match text(&body, "token_endpoint_auth_method") {
        None => asked,
        Some(name) => match TokenAuth::from_name(name) {
            Some(method) if method != TokenAuth::PrivateKeyJwt => method,
            _ => {
                let message = format!("wants clients to authenticate by `{}`", quote(name, &[]));
                return Err(unusable(&message));
            }
        },
    };
    let mut registration = Registration::public(client_id, RegisteredBy::Dynamic);
    registration.method = method;
    registration.redirect_uri = Some(redirect_uri.to_owned());
    registration.scopes = text(&body, "scope").map(|scopes| scopes.split(' ').collect());
    // What is never shown need not be kept.
    if method != TokenAuth::None {
        let Some(secret) = text(&body, "client_secret") else {
            return Err(unusable("wants a secret to be shown, and gave none"));
        };
        registration.secret = Some(crate::Secret::new(secret));
        // RFC 7591 §3.2.1: 0 is never.
        registration.secret_expires_at =
            body.get("client_secret_expires_at").and_then(Value::as_u64).filter(|end| *end != 0);
    }
    Ok(registration)
}

fn beforehand(
    settings: &Settings,
    registered: &Registered,
    server: &ServerMetadata,
    previous: Option<&Grant>,
) -> Result<Registration, AuthError> {
    // Without an issuer the first one that was used is it.
    let first_used = previous
        .filter(|grant| {
            grant.registration.origin == RegisteredBy::Beforehand
                && grant.registration.client_id == registered.client_id
        })
        .map(|grant| &grant.issuer);
    if let Some(issuer) = registered.issuer.as_ref().or(first_used)
        && *issuer != server.issuer
    {
        return Err(belongs_elsewhere(issuer, &server.issuer));
    }
    let mut registration = Registration::public(&*registered.client_id, RegisteredBy::Beforehand);
    registration.secret = registered.secret.clone();
    registration.method = match registered.method {
        Some(method) => method,
        None if registered.secret.is_some() => by_secret(server),
        None if settings.key.is_some() => TokenAuth::PrivateKeyJwt,
        None => TokenAuth::None,
    };
    Ok(registration)
}

fn document(
    settings: &Settings,
    url: &str,
    server: &ServerMetadata,
) -> Result<Registration, AuthError> {
    let parsed = Url::parse(url).ok().filter(|url| url.scheme() == "https" && url.path() != "/");
    if parsed.is_none() || check_address(url).is_err() {
        let message = "the address of a client's document must be https and have a path";
        return Err(AuthError::new(AuthErrorKind::Settings, message));
    }
    let mut registration = Registration::public(url, RegisteredBy::Document);
    if settings.key.is_some() && knows(server, TokenAuth::PrivateKeyJwt) {
        registration.method = TokenAuth::PrivateKeyJwt;
    }
    Ok(registration)
}

/// Clients on people's machines keep no secret well, so none is preferred.
fn preferred(server: &ServerMetadata) -> TokenAuth {
    match &server.methods {
        Some(methods) if methods.contains(&TokenAuth::None) => TokenAuth::None,
        _ => by_secret(server),
    }
}

/// RFC 8414 §2: who says nothing knows `client_secret_basic`.
fn by_secret(server: &ServerMetadata) -> TokenAuth {
    match knows(server, TokenAuth::Post) && !knows(server, TokenAuth::Basic) {
        true => TokenAuth::Post,
        false => TokenAuth::Basic,
    }
}

fn knows(server: &ServerMetadata, method: TokenAuth) -> bool {
    server.methods.as_ref().is_some_and(|methods| methods.contains(&method))
}

/// 2026-07-28 client-registration §Application Type: on a person's machine, answers go to that
/// machine or to a scheme of the application's own.
fn application_type(redirect_uri: &str) -> ApplicationType {
    match Url::parse(redirect_uri) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && !is_loopback(&url) => {
            ApplicationType::Web
        }
        _ => ApplicationType::Native,
    }
}

fn no_way(settings: &Settings, server: &ServerMetadata) -> String {
    let issuer = quote(&server.issuer, &[]);
    if !matches!(settings.way, Way::Person) {
        return format!(
            "without a person a client must be known at `{issuer}` already: configure the \
             client_id that it was registered with beforehand"
        );
    }
    let document = match (&settings.document, server.documents) {
        (Some(_), false) => "it does not understand client documents",
        (_, true) => "it understands client documents, and none is configured",
        (None, false) => "it understands no client documents",
    };
    format!(
        "there is no way to become a client of `{issuer}`: {document}, and it lets no client \
         register itself; register one there beforehand and configure its client_id"
    )
}

fn refused(error: AuthError, status: StatusCode) -> AuthError {
    let kind = match error.kind() {
        AuthErrorKind::Unreachable if !status.is_client_error() => AuthErrorKind::Unreachable,
        AuthErrorKind::Unreachable if status == StatusCode::TOO_MANY_REQUESTS => {
            AuthErrorKind::Unreachable
        }
        _ => AuthErrorKind::Registration,
    };
    let made = AuthError::new(kind, format!("the client could not be registered: {error}"));
    match error.oauth_code() {
        Some(code) => made.with_oauth_code(code),
        None => made,
    }
}

fn unusable(what: &str) -> AuthError {
    let message = format!("the authorization server {what}");
    AuthError::new(AuthErrorKind::Registration, message)
}

#[cfg(test)]
mod tests;
