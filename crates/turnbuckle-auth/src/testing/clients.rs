//! Owns which clients there are and how each proves who it is. Does not own what it asks for.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, header::AUTHORIZATION};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::{Endpoint, InsecureAuthorizationServer, reply::Problem};
use crate::jose::{
    KeySet,
    jwt::{self, TokenRules},
};

/// A client that the server knows.
///
/// ```
/// use turnbuckle_auth::testing::{InsecureAuthorizationServer, InsecureClient};
/// let server = InsecureAuthorizationServer::new("https://auth.example.com")
///     .client(InsecureClient::basic("machine", "s3cr3t"))
///     .client(InsecureClient::public("app", ["http://127.0.0.1:8080/callback"]));
/// ```
#[derive(Clone, Debug)]
pub struct InsecureClient {
    pub(super) client_id: String,
    pub(super) redirect_uris: Vec<String>,
    pub(super) proves: Proves,
    pub(super) refreshes: bool,
    /// Its name at other servers, where that is another.
    pub(super) elsewhere: Option<String>,
}

/// How a client proves who it is.
#[derive(Clone, Debug)]
pub(super) enum Proves {
    Nothing,
    Basic(String),
    Post(String),
    Signed(KeySet),
}

impl InsecureClient {
    /// One without a secret, for people.
    pub fn public<S: Into<String>>(
        client_id: impl Into<String>,
        redirect_uris: impl IntoIterator<Item = S>,
    ) -> InsecureClient {
        let mut client = InsecureClient::new(client_id, Proves::Nothing);
        client.redirect_uris = redirect_uris.into_iter().map(Into::into).collect();
        client
    }

    /// One with a secret in the header.
    pub fn basic(client_id: impl Into<String>, secret: impl Into<String>) -> InsecureClient {
        InsecureClient::new(client_id, Proves::Basic(secret.into()))
    }

    /// One with a secret in the body.
    pub fn post(client_id: impl Into<String>, secret: impl Into<String>) -> InsecureClient {
        InsecureClient::new(client_id, Proves::Post(secret.into()))
    }

    /// One that signs assertions with one of these keys.
    pub fn signed(
        client_id: impl Into<String>,
        keys: impl IntoIterator<Item = Map<String, Value>>,
    ) -> InsecureClient {
        InsecureClient::new(client_id, Proves::Signed(KeySet::of(keys)))
    }

    /// May send people back here, too.
    #[must_use]
    pub fn redirect(mut self, redirect_uri: impl Into<String>) -> InsecureClient {
        self.redirect_uris.push(redirect_uri.into());
        self
    }

    /// Other servers know it by this name: assertions for them are made out to it.
    #[must_use]
    pub fn elsewhere(mut self, client_id: impl Into<String>) -> InsecureClient {
        self.elsewhere = Some(client_id.into());
        self
    }

    pub(super) fn secret(&self) -> Option<&String> {
        match &self.proves {
            Proves::Basic(secret) | Proves::Post(secret) => Some(secret),
            Proves::Nothing | Proves::Signed(_) => None,
        }
    }

    pub(super) fn new(client_id: impl Into<String>, proves: Proves) -> InsecureClient {
        let client_id = client_id.into();
        InsecureClient {
            client_id,
            redirect_uris: Vec::new(),
            proves,
            refreshes: true,
            elsewhere: None,
        }
    }
}

/// The fields of a form or a query; one that comes twice is a mistake (RFC 6749 §3.1, §3.2).
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    pub(super) fn read(bytes: &[u8]) -> Result<FormFields, Problem> {
        let fields: Vec<(String, String)> = form_urlencoded::parse(bytes).into_owned().collect();
        // RFC 8707 §2: only `resource` may.
        let twice = |at: usize| {
            fields[at].0 != "resource" && fields[..at].iter().any(|(name, _)| *name == fields[at].0)
        };
        if (0..fields.len()).any(twice) {
            return Err(Problem::new("invalid_request", "a parameter comes twice"));
        }
        Ok(FormFields(fields))
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn needed(&self, name: &str) -> Result<&str, Problem> {
        let missing = || Problem::new("invalid_request", format!("there is no `{name}`"));
        self.field(name).ok_or_else(missing)
    }

    /// At most one, an address without a fragment (RFC 8707 §2).
    pub(super) fn resource(&self) -> Result<Option<String>, Problem> {
        let mut all = self.0.iter().filter(|(name, _)| name == "resource");
        let Some((_, resource)) = all.next() else { return Ok(None) };
        let is_address = url::Url::parse(resource).is_ok_and(|url| url.fragment().is_none());
        if !is_address || all.next().is_some() {
            return Err(Problem::new("invalid_target", "`resource` must be one address"));
        }
        Ok(Some(resource.clone()))
    }
}

impl InsecureAuthorizationServer {
    /// Who sends this; exactly as that client was registered to prove it. Nobody, if it does not say.
    pub(super) fn authenticated(
        &self,
        request: &Request<Bytes>,
        form: &FormFields,
    ) -> Result<Option<InsecureClient>, Problem> {
        let wrong =
            || Problem::new("invalid_client", "the client is not who it says").with_status(401);
        let basic = match request.headers().get(AUTHORIZATION) {
            Some(header) => Some(basic(header.as_bytes()).ok_or_else(wrong)?),
            None => None,
        };
        let claimed = basic.as_ref().map(|(id, _)| id.as_str()).or_else(|| form.field("client_id"));
        let assertion = form.field("client_assertion");
        let signer = assertion.and_then(jwt::unverified_issuer);
        let Some(client_id) = claimed.or(signer.as_deref()) else { return Ok(None) };
        let client = self.lock().clients.get(client_id).cloned().ok_or_else(wrong)?;
        let posted = form.field("client_secret");
        let is_proven = match &client.proves {
            Proves::Nothing => basic.is_none() && posted.is_none() && assertion.is_none(),
            Proves::Basic(secret) => {
                basic.as_ref().is_some_and(|(_, shown)| shown == secret)
                    && posted.is_none()
                    && assertion.is_none()
            }
            Proves::Post(secret) => {
                basic.is_none() && assertion.is_none() && posted == Some(secret.as_str())
            }
            Proves::Signed(keys) => {
                let is_kind = form.field("client_assertion_type") == Some(ASSERTION);
                let believed = |assertion| self.believes(assertion, client_id, keys);
                basic.is_none() && posted.is_none() && is_kind && assertion.is_some_and(believed)
            }
        };
        if is_proven { Ok(Some(client)) } else { Err(wrong()) }
    }

    /// RFC 7523 §3; each assertion once.
    fn believes(&self, assertion: &str, client_id: &str, keys: &KeySet) -> bool {
        let audiences = [self.issuer.clone(), self.address(Endpoint::Token)];
        let rules = TokenRules {
            issuer: client_id,
            audiences: &audiences,
            types: &["jwt", "client-authentication+jwt"],
            now: self.clock.now(),
            skew: 5,
        };
        let Ok(claims) = jwt::verify(assertion, keys, &rules) else { return false };
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_new = |id: &str| self.lock().assertions.insert(format!("{client_id} {id}"));
        text("sub") == Some(client_id) && text("jti").is_none_or(is_new)
    }
}

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// RFC 6749 §2.3.1: both are form-encoded inside.
fn basic(header: &[u8]) -> Option<(String, String)> {
    let (scheme, pair) = std::str::from_utf8(header).ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(pair.trim()).ok()?).ok()?;
    let (id, secret) = pair.split_once(':')?;
    let plain = |text: &str| {
        let mut fields = form_urlencoded::parse(text.as_bytes());
        fields.next().map(|(name, _)| name.into_owned()).unwrap_or_default()
    };
    Some((plain(id), plain(secret)))
}
