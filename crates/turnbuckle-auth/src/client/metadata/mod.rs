//! Owns what servers say of themselves: where it is found, what of it is believed (RFC 9728, RFC
//! 8414, OpenID Connect Discovery). Does not own asking for it.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Map, Value};
use url::Url;

use super::{
    grant::{Endpoints, TokenAuth},
    text::{Object, check_address, object, quote, text, without_secrets},
};
use crate::{AuthError, AuthErrorKind, Scopes};

const MOST_SCOPES: usize = 64;
const MOST_SERVERS: usize = 16;
const MOST_NAMES: usize = 64;

/// What a protected server says of itself.
#[derive(Clone, Debug)]
pub(crate) struct ResourceMetadata {
    /// Its own string; sent on unchanged.
    pub(crate) resource: String,
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes: Option<Scopes>,
    pub(crate) dpop_required: bool,
}

/// What an authorization server says of itself.
#[derive(Clone, Debug)]
pub(crate) struct ServerMetadata {
    /// Its own string.
    pub(crate) issuer: String,
    pub(crate) endpoints: Endpoints,
    pub(crate) register: Option<String>,
    pub(crate) scopes: Option<Scopes>,
    /// Whether a code is safe there from whoever steals it (RFC 7636).
    pub(crate) s256: bool,
    pub(crate) methods: Option<Vec<TokenAuth>>,
    pub(crate) grants: Option<Vec<String>>,
    /// Whether every answer to a login says who sent it (RFC 9207).
    pub(crate) names_itself: bool,
    /// Whether a client's name may be the address of its document.
    pub(crate) documents: bool,
    pub(crate) dpop: DpopKnown,
}

/// What an authorization server says of tokens that are bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DpopKnown {
    /// It says nothing.
    Unsaid,
    /// It knows the algorithm that this crate uses for it.
    Es256,
    /// It knows only others.
    Others,
}

/// The document in an answer, or nothing if there is none at that place.
///
/// # Errors
/// If a later try could find one: then it must not be looked for elsewhere.
pub(crate) fn document(response: &Response<Bytes>, url: &str) -> Result<Option<Object>, AuthError> {
    let status = response.status();
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        let message = format!("`{}` answers {}", without_secrets(url), status.as_u16());
        return Err(AuthError::new(AuthErrorKind::Unreachable, message));
    }
    // Sites answer with a page where they have nothing, and some with status 200.
    Ok(if status == StatusCode::OK { object(response.body()) } else { None })
}

/// Where a protected server's document may be, the best place first.
pub(crate) fn resource_metadata_urls(server: &Url, hint: Option<&str>) -> Vec<String> {
    const NAME: &str = "/.well-known/oauth-protected-resource";
    let origin = server.origin().ascii_serialization();
    let path = server.path().trim_end_matches('/');
    let mut urls: Vec<String> = hint.map(str::to_owned).into_iter().collect();
    for url in [format!("{origin}{NAME}{path}"), format!("{origin}{NAME}")] {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// Where an authorization server's document may be, in the order of the specification.
///
/// # Errors
/// If that can't be the name of one.
pub(crate) fn server_metadata_urls(issuer: &str) -> Result<Vec<String>, AuthError> {
    check_address(issuer)?;
    if issuer.contains('?') {
        return Err(wrong(format!(
            "`{}` has a query, so it is no issuer",
            without_secrets(issuer)
        )));
    }
    // By hand: an address parser would change the string.
    let issuer = issuer.trim_end_matches('/');
    let host = issuer.find("://").map_or(0, |at| at + 3);
    let path = issuer[host..].find('/').map_or(issuer.len(), |at| host + at);
    let (origin, path) = issuer.split_at(path);
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{issuer}/.well-known/openid-configuration"));
    }
    Ok(urls)
}

impl ResourceMetadata {
    /// Nothing if it is not such a document at all.
    ///
    /// # Errors
    /// If it is one, and leaves out what it must say.
    pub(crate) fn read(
        document: &Map<String, Value>,
    ) -> Result<Option<ResourceMetadata>, AuthError> {
        let authorization_servers = texts(document, "authorization_servers", MOST_SERVERS);
        let resource = match (text(document, "resource"), &authorization_servers) {
            (Some(resource), _) => resource.to_owned(),
            (None, Some(_)) => return Err(wrong("the server's metadata names no resource")),
            (None, None) => return Ok(None),
        };
        Ok(Some(ResourceMetadata {
            resource,
            authorization_servers: authorization_servers.unwrap_or_default(),
            scopes: scopes(document),
            dpop_required: flag(document, "dpop_bound_access_tokens_required"),
        }))
    }

    /// Whether it is about that server: of its origin, at its path or above it (RFC 9728 §3.3 asks
    /// for the path itself; servers with one document for all of their paths exist).
    pub(crate) fn is_about(&self, server: &Url) -> bool {
        let Ok(resource) = Url::parse(&self.resource) else { return false };
        if resource.fragment().is_some()
            || !resource.username().is_empty()
            || resource.password().is_some()
            || !matches!(resource.scheme(), "https" | "http")
            || resource.origin() != server.origin()
            || resource.query().is_some_and(|query| server.query() != Some(query))
        {
            return false;
        }
        let path = resource.path().trim_end_matches('/');
        match server.path().strip_prefix(path) {
            Some(below) => below.is_empty() || below.starts_with('/'),
            None => false,
        }
    }
}

impl ServerMetadata {
    /// Nothing if it is not such a document at all.
    ///
    /// # Errors
    /// If it is of another issuer than one of `issuers`, or can't be used.
    pub(crate) fn read(
        document: &Map<String, Value>,
        issuers: &[String],
    ) -> Result<Option<ServerMetadata>, AuthError> {
        let Some(issuer) = text(document, "issuer") else { return Ok(None) };
        if !issuers.iter().any(|expected| expected == issuer) {
            let expected = issuers.first().map(String::as_str).unwrap_or_default();
            let message = format!(
                "the authorization server `{}` says that it is `{}`: none of what it says is used",
                quote(expected, &[]),
                quote(issuer, &[])
            );
            return Err(wrong(message));
        }
        let endpoint = |name: &str| endpoint(document, name, issuer);
        let Some(token) = endpoint("token_endpoint")? else {
            return Err(wrong("the authorization server names no token endpoint"));
        };
        let methods = texts(document, "token_endpoint_auth_methods_supported", MOST_NAMES);
        let challenges = texts(document, "code_challenge_methods_supported", MOST_NAMES);
        let dpop = match texts(document, "dpop_signing_alg_values_supported", MOST_NAMES) {
            None => DpopKnown::Unsaid,
            Some(names) if names.iter().any(|name| name == "ES256") => DpopKnown::Es256,
            Some(_) => DpopKnown::Others,
        };
        Ok(Some(ServerMetadata {
            issuer: issuer.to_owned(),
            endpoints: Endpoints { authorize: endpoint("authorization_endpoint")?, token },
            register: endpoint("registration_endpoint")?,
            scopes: scopes(document),
            s256: challenges.is_some_and(|names| names.iter().any(|name| name == "S256")),
            methods: methods
                .map(|names| names.iter().filter_map(|name| TokenAuth::from_name(name)).collect()),
            grants: texts(document, "grant_types_supported", MOST_NAMES),
            names_itself: flag(document, "authorization_response_iss_parameter_supported"),
            documents: flag(document, "client_id_metadata_document_supported"),
            dpop,
        }))
    }

    /// Of one that has no document. PKCE is used anyway: who doesn't know it ignores it.
    pub(crate) fn undescribed(
        issuer: String,
        endpoints: Endpoints,
        register: Option<String>,
    ) -> ServerMetadata {
        ServerMetadata {
            issuer,
            endpoints,
            register,
            scopes: None,
            s256: true,
            methods: None,
            grants: None,
            names_itself: false,
            documents: false,
            dpop: DpopKnown::Unsaid,
        }
    }

    /// Of a protected server that is its own authorization server and has no document, which the
    /// revision 2025-03-26 allows.
    pub(crate) fn by_convention(origin: &str) -> ServerMetadata {
        let endpoints = Endpoints {
            authorize: Some(format!("{origin}/authorize")),
            token: format!("{origin}/token"),
        };
        let mut server =
            Self::undescribed(origin.to_owned(), endpoints, Some(format!("{origin}/register")));
        // That revision knows public clients first.
        server.methods = Some(vec![TokenAuth::None]);
        server
    }
}

fn endpoint(
    document: &Map<String, Value>,
    name: &str,
    issuer: &str,
) -> Result<Option<String>, AuthError> {
    let Some(url) = text(document, name) else { return Ok(None) };
    check_address(url)?;
    // Only a server on this machine may lead to where nothing is encrypted.
    let encrypted = |url: &str| Url::parse(url).is_ok_and(|url| url.scheme() == "https");
    if encrypted(issuer) && !encrypted(url) {
        let message = format!("`{}` is not https, and its issuer is", without_secrets(url));
        return Err(AuthError::new(AuthErrorKind::Forbidden, message));
    }
    Ok(Some(url.to_owned()))
}

fn scopes(document: &Map<String, Value>) -> Option<Scopes> {
    texts(document, "scopes_supported", MOST_SCOPES).map(Scopes::from_iter)
}

fn texts(document: &Map<String, Value>, name: &str, most: usize) -> Option<Vec<String>> {
    let values = document.get(name)?.as_array()?;
    Some(values.iter().filter_map(Value::as_str).take(most).map(str::to_owned).collect())
}

fn flag(document: &Map<String, Value>, name: &str) -> bool {
    document.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn wrong(message: impl Into<String>) -> AuthError {
    AuthError::new(AuthErrorKind::Metadata, message)
}

#[cfg(test)]
mod tests;
