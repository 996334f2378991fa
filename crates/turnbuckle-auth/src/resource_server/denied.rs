//! Owns how a request is turned away (RFC 6750 §3, RFC 9449 §7.1, RFC 9728 §5.1). Does not own why.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE},
};

use crate::{Challenge, Scheme};

/// The request is turned away, and this says how.
///
/// ```
/// use turnbuckle_auth::{Scopes, resource_server::ResourceServer};
/// let server = ResourceServer::new("https://mcp.example.com/mcp").issuer("https://auth.example.com");
/// let denied = server.insufficient(&Scopes::from_iter(["files:write"]));
/// let response = denied.into_response();
/// assert_eq!(response.status(), 403);
/// assert_eq!(
///     response.headers()["www-authenticate"],
///     "Bearer error=\"insufficient_scope\", \
///      error_description=\"the token is not good for this\", scope=\"files:write\", \
///      resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    status: StatusCode,
    challenge: Option<Box<Challenge>>,
    nonce: Option<String>,
}

/// `algs` of a challenge for DPoP (RFC 9449 §7.1).
pub(super) const PROOF_ALGORITHMS: [&str; 5] = ["ES256", "ES384", "EdDSA", "PS256", "RS256"];

impl Denied {
    pub(super) fn new(status: StatusCode, challenge: Challenge) -> Denied {
        Denied { status, challenge: Some(Box::new(challenge)), nonce: None }
    }

    /// It can't be told now whether the token is good. No challenge: another token won't help.
    pub(super) fn unavailable() -> Denied {
        Denied { status: StatusCode::SERVICE_UNAVAILABLE, challenge: None, nonce: None }
    }

    /// The settings are wrong, and nobody is let in.
    pub(super) fn broken() -> Denied {
        Denied { status: StatusCode::INTERNAL_SERVER_ERROR, challenge: None, nonce: None }
    }

    pub(super) fn with_nonce(mut self, nonce: String) -> Denied {
        self.nonce = Some(nonce);
        self
    }

    /// 401, 403, 400 or 503.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What the client is asked for.
    pub fn challenge(&self) -> Option<&Challenge> {
        self.challenge.as_deref()
    }

    /// The whole answer. It repeats nothing of what the request brought.
    pub fn into_response(self) -> Response<Bytes> {
        let challenge = self.challenge.as_deref();
        let error = challenge.and_then(|challenge| challenge.error.as_deref());
        let body = match (error, challenge.and_then(|it| it.error_description.as_deref())) {
            (Some(error), Some(description)) => {
                serde_json::json!({"error": error, "error_description": description}).to_string()
            }
            _ => String::new(),
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if error.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(challenge) = challenge {
            headers.insert(WWW_AUTHENTICATE, written(challenge));
        }
        if let Some(nonce) = self.nonce.and_then(|nonce| HeaderValue::try_from(nonce).ok()) {
            headers.insert(HeaderName::from_static("dpop-nonce"), nonce);
        }
        response
    }
}

fn written(challenge: &Challenge) -> HeaderValue {
    let header = challenge.to_header();
    if challenge.scheme != Scheme::Dpop {
        return header;
    }
    let more = format!("algs=\"{}\"", PROOF_ALGORITHMS.join(" "));
    let text = header.to_str().unwrap_or("DPoP");
    let between = if text.contains('=') { ", " } else { " " };
    HeaderValue::try_from(format!("{text}{between}{more}")).unwrap_or(header)
}
