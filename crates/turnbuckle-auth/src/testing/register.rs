//! Dynamic registration (RFC 7591).

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value};
use url::{Host, Url};

use super::{
    InsecureAuthorizationServer, InsecureClient,
    clients::Proves,
    reply::{self, Problem},
};
use crate::jose::{KeySet, strict_object};

impl InsecureAuthorizationServer {
    pub(super) fn register(&self, request: &Request<Bytes>) -> Response<Bytes> {
        match self.registered(request.body()) {
            Ok(document) => reply::json(201, &Value::Object(document)),
            Err(problem) => problem.into_response(),
        }
    }

    /// All that was asked for, and what was given.
    fn registered(&self, body: &[u8]) -> Result<Map<String, Value>, Problem> {
        let wrong = |text: &str| Problem::new("invalid_client_metadata", text);
        let mut document = strict_object(body).ok_or_else(|| wrong("not a JSON object"))?;
        let redirect_uris = redirect_uris(&document)?;
        let grants = match document.get("grant_types") {
            None => vec!["authorization_code".to_owned()],
            Some(list) => texts(list).ok_or_else(|| wrong("`grant_types` is no list of texts"))?,
        };
        let grants_code = grants.iter().any(|grant| grant == "authorization_code");
        if grants_code && redirect_uris.is_empty() {
            let text = "a client for people has a redirect address";
            return Err(Problem::new("invalid_redirect_uri", text));
        }
        let mut state = self.lock();
        let number = state.next();
        let secret = format!("secret-{number}");
        let method = match document.get("token_endpoint_auth_method") {
            None => "client_secret_basic",
            Some(method) => method.as_str().unwrap_or_default(),
        };
        let proves = match method {
            "none" => Proves::Nothing,
            "client_secret_basic" => Proves::Basic(secret.clone()),
            "client_secret_post" => Proves::Post(secret.clone()),
            "private_key_jwt" => {
                let keys =
                    document.get("jwks").map(|keys| KeySet::read(keys.to_string().as_bytes()));
                let keys = keys.and_then(Result::ok).ok_or_else(|| wrong("there is no `jwks`"))?;
                Proves::Signed(keys)
            }
            _ => return Err(wrong("no such `token_endpoint_auth_method`")),
        };
        let client_id = format!("client-{number}");
        document.insert("token_endpoint_auth_method".into(), method.to_owned().into());
        document.insert("client_id".into(), client_id.as_str().into());
        document.insert("client_id_issued_at".into(), self.clock.now().into());
        if matches!(proves, Proves::Basic(_) | Proves::Post(_)) {
            document.insert("client_secret".into(), secret.into());
            document.insert("client_secret_expires_at".into(), 0.into());
        }
        let mut client = InsecureClient::new(client_id.as_str(), proves);
        client.redirect_uris = redirect_uris;
        client.refreshes = grants.iter().any(|grant| grant == "refresh_token");
        state.clients.insert(client_id, client);
        Ok(document)
    }
}

fn redirect_uris(document: &Map<String, Value>) -> Result<Vec<String>, Problem> {
    let wrong = |text: &str| Problem::new("invalid_redirect_uri", text);
    let Some(list) = document.get("redirect_uris") else { return Ok(Vec::new()) };
    let list = texts(list).ok_or_else(|| wrong("`redirect_uris` is no list of texts"))?;
    if !list.iter().all(|uri| may_redirect(uri)) {
        return Err(wrong("a redirect address must be at https, or at http on this machine"));
    }
    Ok(list)
}

/// OAuth 2.1 §2.3.1, RFC 8252 §7.3.
fn may_redirect(uri: &str) -> bool {
    let Ok(url) = Url::parse(uri) else { return false };
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback);
    is_safe && url.fragment().is_none()
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
