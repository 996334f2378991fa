//! Asking the authorization server what a token says (RFC 7662), and remembering it for a moment.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use serde_json::{Map, Value};
use tokio::{sync::Semaphore, time::timeout};

use super::{discovery::rules_for_chosen, keys::Outside, verifier::Unverified};
use crate::{
    AuthError, AuthErrorKind, Secret, SigningKey, jose,
    token::{
        authenticate::authenticate,
        registration::{RegisteredBy, Registration, TokenAuth},
        text::post_form,
    },
};

/// For how many seconds an answer is used again.
const KEPT: u64 = 15;

/// The most answers that are remembered.
const MOST_KEPT: usize = 1024;

/// The most tokens that are asked about at once, and how long another one waits for its turn.
const AT_ONCE: usize = 32;
const TURN: Duration = Duration::from_secs(5);

/// What some servers say of a token that they do not introspect, because it says everything itself.
const UNSUPPORTED: &str = "unsupported_token_type";

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
    /// Who this server is there.
    client: Registration,
    key: Option<SigningKey>,
}

impl Introspection {
    /// With a secret in the header.
    pub fn basic(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: Secret,
    ) -> Introspection {
        Introspection::by(endpoint, client_id, TokenAuth::Basic).with_secret(secret)
    }

    /// With a secret in the body.
    pub fn post(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        secret: Secret,
    ) -> Introspection {
        Introspection::by(endpoint, client_id, TokenAuth::Post).with_secret(secret)
    }

    /// With a signed assertion (RFC 7523).
    pub fn signed(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        key: SigningKey,
    ) -> Introspection {
        let signed = Introspection::by(endpoint, client_id, TokenAuth::PrivateKeyJwt);
        Introspection { key: Some(key), ..signed }
    }

    fn by(
        endpoint: impl Into<String>,
        client_id: impl Into<String>,
        method: TokenAuth,
    ) -> Introspection {
        let mut client = Registration::public(client_id, RegisteredBy::Beforehand);
        client.method = method;
        Introspection { endpoint: endpoint.into(), client, key: None }
    }

    fn with_secret(mut self, secret: Secret) -> Introspection {
        self.client.secret = Some(secret);
        self
    }

    fn request(&self, issuer: &str, token: &Secret, now: u64) -> Result<Request<Bytes>, AuthError> {
        let hint = Secret::new("access_token");
        let mut form = vec![("token", token.clone()), ("token_type_hint", hint)];
        let Introspection { endpoint, client, key } = self;
        let shown = authenticate(client, issuer, key.as_ref(), now, &mut form)?;
        let mut request = post_form(endpoint, &form)?;
        request.headers_mut().extend(shown.map(|shown| (AUTHORIZATION, shown)));
        Ok(request)
    }
}

/// Without its credential.
impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection")
            .field("endpoint", &self.endpoint)
            .field("client_id", &self.client.client_id)
            .finish_non_exhaustive()
    }
}

/// What one issuer answered a moment ago.
pub(super) struct Introspector {
    introspection: Introspection,
    /// By the digest of the token, so that no token stays in memory. Invariant: at most [`MOST_KEPT`].
    answers: Mutex<HashMap<[u8; 32], IntrospectionRecord>>,
    /// The same of those that are not active: strangers can show any number of them.
    refused: Mutex<HashMap<[u8; 32], IntrospectionRecord>>,
    /// Whoever comes with a token that nobody knows has it asked about, so there is a bound to that.
    asking: Semaphore,
}

#[derive(Clone)]
struct IntrospectionRecord {
    until: u64,
    /// Nothing if the token is not active.
    claims: Option<Map<String, Value>>,
}

impl Introspector {
    pub(super) fn new(introspection: Introspection) -> Introspector {
        Introspector {
            introspection,
            answers: Mutex::default(),
            refused: Mutex::default(),
            asking: Semaphore::new(AT_ONCE),
        }
    }

    pub(super) async fn verify(
        &self,
        issuer: &str,
        token: &Secret,
        outside: &Outside,
    ) -> Result<Map<String, Value>, Unverified> {
        let mut digest = [0; 32];
        digest.copy_from_slice(jose::sha256(token.expose()).as_ref());
        if let Some(known) = self.known(&digest, outside.clock.now()) {
            return known.claims.ok_or(Unverified::Invalid);
        }
        let Ok(Ok(_place)) = timeout(TURN, self.asking.acquire()).await else {
            let busy = "too many tokens are being introspected";
            return Err(Unverified::Unavailable(AuthError::new(AuthErrorKind::Unreachable, busy)));
        };
        // Somebody else may have asked meanwhile.
        let now = outside.clock.now();
        if let Some(known) = self.known(&digest, now) {
            return known.claims.ok_or(Unverified::Invalid);
        }
        let claims = self.ask(issuer, token, outside).await.map_err(Unverified::Unavailable)?;
        self.remember(
            digest,
            IntrospectionRecord { until: now.saturating_add(KEPT), claims: claims.clone() },
            now,
        );
        claims.ok_or(Unverified::Invalid)
    }

    fn known(&self, digest: &[u8; 32], now: u64) -> Option<IntrospectionRecord> {
        // Clocks are set back, and what they said before means nothing then.
        let is_good =
            |answer: &&IntrospectionRecord| now < answer.until && answer.until - now <= KEPT;
        [&self.answers, &self.refused].into_iter().find_map(|answers| {
            let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.get(digest).filter(is_good).cloned()
        })
    }

    fn remember(&self, digest: [u8; 32], answer: IntrospectionRecord, now: u64) {
        let answers = if answer.claims.is_some() { &self.answers } else { &self.refused };
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
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
        let rules = rules_for_chosen(&self.introspection.endpoint)?;
        let request = self.introspection.request(issuer, token, outside.clock.now())?;
        let response = outside.fetch.fetch(request, &rules).await?;
        let wrong = |text: String| AuthError::new(AuthErrorKind::Unreachable, text);
        if response.status() == 400 && error_code(response.body()) == Some(UNSUPPORTED.into()) {
            return Ok(None);
        }
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

fn error_code(body: &[u8]) -> Option<Value> {
    jose::strict_object(body)?.remove("error")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{BoxFuture, Fetch, Rules, SystemClock};

    /// Refuses everything with this.
    struct Refusing(&'static str);

    impl Fetch for Refusing {
        fn fetch<'a>(
            &'a self,
            _: Request<Bytes>,
            _: &'a Rules,
        ) -> BoxFuture<'a, Result<http::Response<Bytes>, AuthError>> {
            let mut response = http::Response::new(Bytes::from_static(self.0.as_bytes()));
            *response.status_mut() = http::StatusCode::BAD_REQUEST;
            Box::pin(async move { Ok(response) })
        }
    }

    #[tokio::test]
    async fn a_token_that_is_not_introspected_is_not_good() {
        for (answer, is_invalid) in [
            (r#"{"error": "unsupported_token_type"}"#, true),
            (r#"{"error": "invalid_request"}"#, false),
            ("unsupported_token_type", false),
        ] {
            let introspection = Introspection::post("https://a/i", "me", Secret::new("s"));
            let (fetch, clock) = (Arc::new(Refusing(answer)), Arc::new(SystemClock));
            let outside = Outside { fetch, clock };
            let asked = Introspector::new(introspection);
            let refused = asked.verify("https://a", &Secret::new("e.e.e"), &outside).await;
            let invalid = matches!(refused, Err(Unverified::Invalid));
            assert_eq!(invalid, is_invalid, "{answer}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let introspection = Introspection::post("https://a/i", "me", Secret::new("s"));
        let introspector = Introspector::new(introspection);
        for number in 0..MOST_KEPT + 10 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            let answer = IntrospectionRecord { until: 1000 + number as u64, claims: None };
            introspector.remember(digest, answer, 0);
        }
        assert_eq!(introspector.refused.lock().unwrap().len(), MOST_KEPT);
        assert!(!introspector.refused.lock().unwrap().contains_key(&[0; 32]), "the first went");
        assert!(
            introspector.answers.lock().unwrap().is_empty(),
            "others have a place of their own"
        );
    }
}
