//! Requests for tokens and the answers to them.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use serde_json::{Map, Value};

use super::{
    authenticate::{Form, authenticate},
    registration::{Registration, Tokens},
    text::{object, post_form, quote, text},
};
use crate::{AuthError, AuthErrorKind, Scheme, Scopes, Secret, SigningKey, jose::dpop};

const DPOP: HeaderName = HeaderName::from_static("dpop");
#[cfg(feature = "client")]
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
const LONGEST_TOKEN: usize = 16 * 1024;
#[cfg(feature = "client")]
const LONGEST_NONCE: usize = 1024;
const MOST_SCOPES: usize = 64;

/// One request for a token. It can be sent again: then with new proofs.
pub(crate) struct TokenRequest {
    endpoint: String,
    /// For whom assertions are made.
    audience: String,
    registration: Registration,
    form: Form,
}

/// What a client signs with.
#[derive(Clone, Copy)]
pub(crate) struct ClientKeys<'a> {
    /// To say who it is.
    pub(crate) client: Option<&'a SigningKey>,
    /// To bind tokens to.
    pub(crate) proof: Option<&'a SigningKey>,
    /// What the server wants to find in a proof.
    pub(crate) nonce: Option<&'a str>,
    pub(crate) now: u64,
}

/// What an authorization server answered.
pub(crate) struct Given {
    pub(crate) access: Secret,
    pub(crate) kind: String,
    refresh: Option<Secret>,
    expires_in: Option<u64>,
    granted: Option<Scopes>,
    /// What it is, where something other than an access token was asked for (RFC 8693 §2.2.1).
    pub(crate) issued: Option<String>,
}

impl TokenRequest {
    pub(crate) fn new(
        endpoint: &str,
        audience: &str,
        registration: &Registration,
        grant_type: &str,
    ) -> TokenRequest {
        TokenRequest {
            endpoint: endpoint.to_owned(),
            audience: audience.to_owned(),
            registration: registration.clone(),
            form: vec![("grant_type", Secret::new(grant_type))],
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> TokenRequest {
        self.form.push((name, Secret::new(value)));
        self
    }

    #[cfg(feature = "client")]
    pub(crate) fn with_resource(self, resource: Option<&str>) -> TokenRequest {
        match resource {
            Some(resource) => self.with("resource", resource),
            None => self,
        }
    }

    pub(crate) fn with_scopes(self, scopes: &Scopes) -> TokenRequest {
        if scopes.is_empty() { self } else { self.with("scope", &scopes.to_string()) }
    }

    pub(crate) fn build(&self, keys: ClientKeys<'_>) -> Result<Request<Bytes>, AuthError> {
        let mut pairs = self.form.clone();
        let authorization =
            authenticate(&self.registration, &self.audience, keys.client, keys.now, &mut pairs)?;
        let mut request = post_form(&self.endpoint, &pairs)?;
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        if let Some(key) = keys.proof {
            let proof = dpop::proof(key, "POST", &self.endpoint, None, keys.nonce, keys.now)?;
            // A signed token in base64url is always fit for a header.
            if let Ok(mut proof) = HeaderValue::from_str(&proof) {
                proof.set_sensitive(true);
                request.headers_mut().insert(DPOP, proof);
            }
        }
        Ok(request)
    }

    /// The answer, with nothing that was shown in what is said of it.
    pub(crate) fn read(&self, response: &Response<Bytes>) -> Result<Given, AuthError> {
        const SHOWN: [&str; 6] = [
            "code",
            "code_verifier",
            "refresh_token",
            "assertion",
            "subject_token",
            "client_assertion",
        ];
        let shown = self.form.iter().filter(|(name, _)| SHOWN.contains(name));
        let mut hidden: Vec<Secret> = shown.map(|(_, value)| value.clone()).collect();
        hidden.extend(self.registration.secret.clone());
        read(response, &hidden)
    }
}

impl Given {
    /// As tokens that are shown by `scheme`, which is what was asked for.
    ///
    /// # Errors
    /// If they are of another kind: showing them would give away more than was meant, or be refused.
    pub(crate) fn into_tokens(
        self,
        scheme: Scheme,
        now: u64,
        earlier_refresh: Option<Secret>,
    ) -> Result<Tokens, AuthError> {
        if Scheme::from_name(&self.kind) != Some(scheme) {
            let kind = quote(&self.kind, std::slice::from_ref(&self.access));
            let asked = scheme.name();
            let message = format!("a token of the type {asked} was asked for, and `{kind}` given");
            return Err(AuthError::new(AuthErrorKind::Response, message));
        }
        Ok(Tokens {
            access: self.access,
            scheme,
            // RFC 6749 §6: no new one means that the old one stays good.
            refresh: self.refresh.or(earlier_refresh),
            expires_at: self.expires_in.map(|seconds| now.saturating_add(seconds)),
            granted: self.granted,
        })
    }
}

/// Whether what was shown will never be good again (RFC 6749 §5.2), if that is what it answers.
#[cfg(feature = "client")]
pub(crate) fn spent(response: &Response<Bytes>) -> bool {
    read(response, &[]).is_err_and(|error| error.kind() == AuthErrorKind::Expired)
}

/// The nonce that the server wants in the proof (RFC 9449 §8), if that is what it answers.
#[cfg(feature = "client")]
pub(crate) fn nonce_wanted(response: &Response<Bytes>) -> Option<String> {
    if !matches!(response.status(), StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED) {
        return None;
    }
    let body = object(response.body())?;
    if text(&body, "error") != Some("use_dpop_nonce") {
        return None;
    }
    let nonce = response.headers().get(DPOP_NONCE)?.to_str().ok()?;
    (!nonce.is_empty() && nonce.len() <= LONGEST_NONCE).then(|| nonce.to_owned())
}

fn read(response: &Response<Bytes>, hidden: &[Secret]) -> Result<Given, AuthError> {
    let status = response.status();
    let Some(body) = object(response.body()) else {
        let message = format!(
            "the authorization server answers {} and something else than JSON",
            status.as_u16()
        );
        return Err(AuthError::new(AuthErrorKind::Unreachable, message));
    };
    // Some send errors with status 200.
    if body.contains_key("error") || !status.is_success() {
        return Err(failure(status, &body, hidden));
    }
    let nonsense = |what: &str| {
        let message = format!("the authorization server's answer has no {what}");
        Err(AuthError::new(AuthErrorKind::Unreachable, message))
    };
    let Some(access) = token(&body, "access_token") else { return nonsense("usable token") };
    let Some(kind) = text(&body, "token_type") else { return nonsense("type of the token") };
    Ok(Given {
        access,
        kind: kind.to_owned(),
        refresh: token(&body, "refresh_token"),
        expires_in: seconds(body.get("expires_in")),
        granted: text(&body, "scope").map(|scopes| scopes.split(' ').take(MOST_SCOPES).collect()),
        issued: text(&body, "issued_token_type").map(str::to_owned),
    })
}

/// What an error of RFC 6749 §5.2 means for what the client has.
pub(crate) fn failure(
    status: StatusCode,
    body: &Map<String, Value>,
    hidden: &[Secret],
) -> AuthError {
    let Some(code) = text(body, "error").map(|code| quote(code, hidden)) else {
        let message = format!("the authorization server answers {}", status.as_u16());
        return AuthError::new(AuthErrorKind::Unreachable, message);
    };
    let kind = match code.as_str() {
        _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            AuthErrorKind::Unreachable
        }
        "invalid_grant" => AuthErrorKind::Expired,
        "invalid_scope" => AuthErrorKind::Scope,
        "server_error" | "temporarily_unavailable" | "slow_down" => AuthErrorKind::Unreachable,
        _ => AuthErrorKind::Refused,
    };
    let said = text(body, "error_description").map(|said| quote(said, hidden));
    let message = match said {
        Some(said) => format!("the authorization server refused: {code} ({said})"),
        None => format!("the authorization server refused: {code}"),
    };
    AuthError::new(kind, message).with_oauth_code(code)
}

/// A token that fits into a header.
fn token(body: &Map<String, Value>, name: &str) -> Option<Secret> {
    let token = text(body, name)?;
    let fits = token.len() <= LONGEST_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| Secret::new(token))
}

/// A number, or one written as a text.
fn seconds(value: Option<&Value>) -> Option<u64> {
    let whole = |number: f64| (number.is_finite() && number >= 0.0).then_some(number as u64);
    match value? {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(all(test, feature = "client"))]
mod tests;
