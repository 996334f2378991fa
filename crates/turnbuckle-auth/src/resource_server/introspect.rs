//! Owns asking the authorization server what a token says (RFC 7662), and remembering it for a moment.
//! Does not own the checks that hold for every token.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::{
    keys::{Outside, rules},
    verifier::Unverified,
};
use crate::{
    AuthError, AuthErrorKind, Secret, SigningKey,
    jose::{self, jwt},
};

/// For how many seconds an answer is used again.
const KEPT: u64 = 15;

/// The most answers that are remembered.
const MOST_KEPT: usize = 1024;

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Where tokens are introspected, and as whom (RFC 7662 §2.1).
///
/// ```
/// use turnbuckle_auth::{Secret, resource_server::{Introspection, Issuer, ResourceServer}};
/// let introspection = Introspection::basic(
///     "https://auth.example.com/introspect",
///     "mcp-server",
///     Secret::new("s3cr3t"),
/// );
/// let server = ResourceServer::new("https://mcp.example.com/mcp")
///     .issuer(Issuer::new("https://auth.example.com").introspected(introspection));
/// ```
#[derive(Clone)]
pub struct Introspection {
    pub(super) endpoint: String,
    client_id: String,
    credential: Credential,
}

#[derive(Clone)]
enum Credential {
    Basic(Secret),
    Post(Secret),
    Signed(SigningKey),
}

impl Introspection {
    /// With a secret in the header.
    pub fn basic(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: Secret,
    ) -> Introspection {
        Introspection::new(endpoint, client_id, Credential::Basic(secret))
    }

    /// With a secret in the body.
    pub fn post(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: Secret,
    ) -> Introspection {
        Introspection::new(endpoint, client_id, Credential::Post(secret))
    }

    /// With a signed assertion (RFC 7523).
    pub fn signed(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        key: SigningKey,
    ) -> Introspection {
        Introspection::new(endpoint, client_id, Credential::Signed(key))
    }

    fn new(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        credential: Credential,
    ) -> Introspection {
        Introspection { endpoint: endpoint.into(), client_id: client_id.into(), credential }
    }

    fn request(&self, issuer: &str, token: &Secret, now: u64) -> Result<Request<Bytes>, AuthError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token.expose()).append_pair("token_type_hint", "access_token");
        let mut authorization = None;
        match &self.credential {
            Credential::Basic(secret) => {
                // RFC 6749 §2.3.1: both are form-encoded first.
                let [id, secret] = [self.client_id.as_str(), secret.expose()].map(|text| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                });
                let pair = STANDARD.encode(format!("{id}:{secret}"));
                let mut header = HeaderValue::try_from(format!("Basic {pair}"))
                    .map_err(|_| AuthError::new(AuthErrorKind::Settings, "no header of that"))?;
                header.set_sensitive(true);
                authorization = Some(header);
            }
            Credential::Post(secret) => {
                form.append_pair("client_id", &self.client_id)
                    .append_pair("client_secret", secret.expose());
            }
            Credential::Signed(key) => {
                let assertion = assertion(key, &self.client_id, issuer, now)?;
                form.append_pair("client_id", &self.client_id)
                    .append_pair("client_assertion_type", ASSERTION)
                    .append_pair("client_assertion", assertion.expose());
            }
        }
        let mut request = Request::new(Bytes::from(form.finish()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.parse().map_err(|_| {
            AuthError::new(AuthErrorKind::Settings, "the introspection endpoint is no address")
        })?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
        headers.extend(authorization.map(|header| (AUTHORIZATION, header)));
        Ok(request)
    }
}

/// Without its credential.
impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection")
            .field("endpoint", &self.endpoint)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// What one issuer answered a moment ago.
pub(super) struct Introspector {
    introspection: Introspection,
    /// By the digest of the token, so that no token stays in memory. Invariant: at most [`MOST_KEPT`].
    answers: Mutex<HashMap<[u8; 32], Answer>>,
}

#[derive(Clone)]
struct Answer {
    until: u64,
    /// Nothing if the token is not active.
    claims: Option<Map<String, Value>>,
}

impl Introspector {
    pub(super) fn new(introspection: Introspection) -> Introspector {
        Introspector { introspection, answers: Mutex::default() }
    }

    pub(super) async fn verify(
        &self,
        issuer: &str,
        token: &Secret,
        outside: &Outside,
    ) -> Result<Map<String, Value>, Unverified> {
        let mut digest = [0; 32];
        digest.copy_from_slice(jose::sha256(token.expose()).as_ref());
        let now = outside.clock.now();
        if let Some(known) = self.known(&digest, now) {
            return known.claims.ok_or(Unverified::Invalid);
        }
        let claims = self.ask(issuer, token, outside).await.map_err(Unverified::Unavailable)?;
        self.remember(
            digest,
            Answer { until: now.saturating_add(KEPT), claims: claims.clone() },
            now,
        );
        claims.ok_or(Unverified::Invalid)
    }

    fn known(&self, digest: &[u8; 32], now: u64) -> Option<Answer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(digest).filter(|answer| now < answer.until).cloned()
    }

    fn remember(&self, digest: [u8; 32], answer: Answer, now: u64) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST_KEPT {
            answers.retain(|_, answer| now < answer.until);
        }
        if answers.len() >= MOST_KEPT {
            let first = answers.iter().min_by_key(|(_, answer)| answer.until);
            if let Some(first) = first.map(|(digest, _)| *digest) {
                answers.remove(&first);
            }
        }
        answers.insert(digest, answer);
    }

    /// What is said of the token; nothing if it is not active, or not from this issuer.
    async fn ask(
        &self,
        issuer: &str,
        token: &Secret,
        outside: &Outside,
    ) -> Result<Option<Map<String, Value>>, AuthError> {
        let request = self.introspection.request(issuer, token, outside.clock.now())?;
        let response = outside.fetch.fetch(request, &rules()).await?;
        let wrong = |text: String| AuthError::new(AuthErrorKind::Unreachable, text);
        if response.status() != 200 {
            // 401 among them: it is this server that is not known there, not whoever came.
            let status = response.status().as_u16();
            return Err(wrong(format!("the introspection endpoint answered {status}")));
        }
        let answer = jose::strict_object(response.body())
            .ok_or_else(|| wrong("the introspection endpoint answered no JSON object".into()))?;
        let is_ours = answer.get("iss").is_none_or(|named| named == issuer);
        let is_active = answer.get("active") == Some(&Value::Bool(true));
        Ok((is_active && is_ours).then_some(answer))
    }
}

/// RFC 7523 §3.
fn assertion(
    key: &SigningKey,
    client_id: &str,
    audience: &str,
    now: u64,
) -> Result<Secret, AuthError> {
    let mut claims = Map::new();
    claims.insert("iss".into(), client_id.into());
    claims.insert("sub".into(), client_id.into());
    claims.insert("aud".into(), audience.into());
    claims.insert("jti".into(), jose::random_id()?.into());
    claims.insert("iat".into(), now.into());
    claims.insert("exp".into(), now.saturating_add(60).into());
    jwt::sign(key, Map::new(), &claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let introspection = Introspection::post("https://a/i", "me", Secret::new("s"));
        let introspector = Introspector::new(introspection);
        for number in 0..MOST_KEPT + 10 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            let answer = Answer { until: 1000 + number as u64, claims: None };
            introspector.remember(digest, answer, 0);
        }
        assert_eq!(introspector.answers.lock().unwrap().len(), MOST_KEPT);
        assert!(introspector.known(&[0; 32], 0).is_none(), "the first went");
    }
}
