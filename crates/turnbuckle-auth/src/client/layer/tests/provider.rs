//! A protected server and its authorization servers, as far as the layer's tests need them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tower_service::Service;
use url::Url;

use crate::{
    AuthError, AuthErrorKind, BoxFuture, Clock, Fetch, HandledLogin, LoginRequest, Rules, Scopes,
};

pub(super) const SERVER: &str = "https://mcp.example.com/mcp";
pub(super) const CALLBACK: &str = "https://app.example.com/callback";

/// How the token endpoint behaves.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Mood {
    #[default]
    Well,
    Down,
    Html,
    Refuses(&'static str),
    /// The same with another status.
    Answers(u16, &'static str),
}

#[derive(Default)]
pub(super) struct State {
    /// Which authorization server the protected server names: 1 or 2.
    pub(super) issuer: u8,
    pub(super) mood: Mood,
    /// Access tokens that are good, what for, and from which issuer.
    pub(super) good: HashMap<String, (Scopes, u8)>,
    pub(super) refresh: Option<(String, Scopes)>,
    pub(super) needed: Option<&'static str>,
    pub(super) refuses_all: bool,
    /// Whether a token that is refused is repeated.
    pub(super) repeats: bool,
    /// Nobody needs a token.
    pub(super) open: bool,
    /// What a busy token endpoint says.
    pub(super) retry_after: Option<u32>,
    pub(super) dpop: bool,
    /// What was asked, as `kind` or `path`.
    pub(super) asked: Vec<String>,
    /// Clients shown at each issuer.
    pub(super) clients: Vec<(u8, String)>,
    /// At which issuers a secret was shown.
    pub(super) secrets: Vec<u8>,
    pub(super) scopes: Vec<String>,
    /// The secrets that came in a form.
    pub(super) posted: Vec<String>,
    /// What the protected server was shown.
    pub(super) shown: Vec<Option<String>>,
    pub(super) now: u64,
    /// Of a token, in seconds.
    pub(super) lifetime: u64,
    minted: u32,
}

pub(super) struct Provider {
    state: Mutex<State>,
    /// Token requests pass one by one when this has permits.
    pub(super) tokens: Semaphore,
    /// Logins likewise.
    pub(super) logins: Semaphore,
    refused: watch::Sender<u32>,
}

impl Provider {
    pub(super) fn new() -> Arc<Provider> {
        Arc::new(Provider {
            state: Mutex::new(State {
                issuer: 1,
                now: 1_000_000,
                lifetime: 3600,
                ..State::default()
            }),
            tokens: Semaphore::new(Semaphore::MAX_PERMITS / 2),
            logins: Semaphore::new(Semaphore::MAX_PERMITS / 2),
            refused: watch::Sender::new(0),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn count(&self, kind: &str) -> usize {
        self.state().asked.iter().filter(|asked| *asked == kind).count()
    }

    /// Waits until the protected server has refused that many requests.
    pub(super) async fn refused(&self, times: u32) {
        self.refused.subscribe().wait_for(|refused| *refused >= times).await.unwrap();
    }

    /// Every access token ends; refresh tokens stay.
    pub(super) fn end_tokens(&self) {
        self.state().good.clear();
    }

    /// A person who says yes to everything.
    pub(super) fn login(self: &Arc<Self>) -> HandledLogin {
        let provider = self.clone();
        HandledLogin::new(CALLBACK, move |request: LoginRequest| {
            let provider = provider.clone();
            async move {
                provider.state().asked.push("login".to_owned());
                let Ok(permit) = provider.logins.acquire().await else {
                    return Err(AuthError::new(AuthErrorKind::NotLoggedIn, "nobody is there"));
                };
                permit.forget();
                let url: Url = request.url.parse().unwrap();
                let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
                let mut state = provider.state();
                let issuer = if url.host_str() == Some("auth1.example.com") { 1 } else { 2 };
                state.clients.push((issuer, query["client_id"].clone()));
                let scope = query.get("scope").cloned().unwrap_or_default();
                state.scopes.push(scope.clone());
                let code = scope.replace(' ', "+");
                Ok(format!(
                    "{CALLBACK}?code=code-{code}&state={}&iss=https://auth{issuer}.example.com",
                    query["state"]
                ))
            }
        })
    }

    fn token(&self, issuer: u8, form: &HashMap<String, String>) -> (u16, Value) {
        let mut state = self.state();
        let kind = form["grant_type"].clone();
        state.asked.push(kind.clone());
        if let Some(client) = form.get("client_id") {
            state.clients.push((issuer, client.clone()));
        }
        state.posted.extend(form.get("client_secret").cloned());
        if let Mood::Refuses(error) = state.mood
            && (kind == "refresh_token" || error == "invalid_client")
        {
            // As some do, with what was sent.
            return (400, json!({"error": error, "error_description": form.get("refresh_token")}));
        }
        let scopes: Scopes = match kind.as_str() {
            "refresh_token" => match state.refresh.take() {
                Some((token, scopes)) if token == form["refresh_token"] => scopes,
                _ => return (400, json!({"error": "invalid_grant"})),
            },
            "client_credentials" => Scopes::from_iter(["basic"]),
            _ => form["code"].trim_start_matches("code-").parse().unwrap(),
        };
        state.minted += 1;
        let number = state.minted;
        state.good.insert(format!("access-s3cr3t-{number}"), (scopes.clone(), issuer));
        state.refresh = Some((format!("refresh-s3cr3t-{number}"), scopes.clone()));
        let scheme = if state.dpop { "DPoP" } else { "Bearer" };
        let body = json!({
            "access_token": format!("access-s3cr3t-{number}"), "token_type": scheme,
            "refresh_token": format!("refresh-s3cr3t-{number}"), "expires_in": state.lifetime,
            "scope": scopes.to_string(),
        });
        (200, body)
    }

    fn describe(&self, url: &Url, body: &Bytes) -> (u16, Value) {
        let host = url.host_str().unwrap();
        let issuer = if host == "auth1.example.com" { 1 } else { 2 };
        let named = self.state().issuer;
        match (host, url.path()) {
            ("mcp.example.com", "/.well-known/oauth-protected-resource/mcp") => {
                self.state().asked.push("resource".to_owned());
                let servers = [format!("https://auth{named}.example.com")];
                (200, json!({"resource": SERVER, "authorization_servers": servers}))
            }
            (host, "/.well-known/oauth-authorization-server") => {
                let origin = format!("https://{host}");
                let body = json!({
                    "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                    "authorization_response_iss_parameter_supported": true,
                    "token_endpoint_auth_methods_supported": ["none"],
                    "dpop_signing_alg_values_supported": ["ES256"],
                });
                (200, body)
            }
            (_, "/register") => {
                let mut state = self.state();
                state.asked.push("register".to_owned());
                if state.mood == Mood::Refuses("invalid_client") {
                    state.mood = Mood::Well;
                }
                let count = state.asked.iter().filter(|asked| *asked == "register").count();
                let mut body: Value = serde_json::from_slice(body).unwrap();
                body["client_id"] = json!(format!("client-{issuer}-{count}"));
                (201, body)
            }
            _ => (404, json!({})),
        }
    }
}

impl Fetch for Provider {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        _: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move {
            let url: Url = request.uri().to_string().parse().unwrap();
            let (status, body) = if url.path() == "/token" {
                let issuer = if url.host_str() == Some("auth1.example.com") { 1 } else { 2 };
                if request.headers().contains_key("authorization") {
                    self.state().secrets.push(issuer);
                }
                self.tokens.acquire().await.unwrap().forget();
                let form: HashMap<_, _> =
                    url::form_urlencoded::parse(request.body()).into_owned().collect();
                let mood = self.state().mood;
                match mood {
                    Mood::Down => {
                        return Err(AuthError::new(AuthErrorKind::Unreachable, "it is down"));
                    }
                    Mood::Html => {
                        let page = Bytes::from_static(b"<html>access-s3cr3t</html>");
                        return Ok(Response::builder().status(502).body(page).unwrap());
                    }
                    Mood::Answers(status, error) if form.contains_key("refresh_token") => {
                        self.state().asked.push("refresh_token".to_owned());
                        (status, json!({"error": error}))
                    }
                    Mood::Well | Mood::Refuses(_) | Mood::Answers(..) => self.token(issuer, &form),
                }
            } else {
                self.describe(&url, request.body())
            };
            let mut response = Response::builder().status(status);
            if let Some(seconds) = self.state().retry_after.filter(|_| status == 503) {
                response = response.header("retry-after", seconds);
            }
            let response = response.header("content-type", "application/json");
            Ok(response.body(body.to_string().into()).unwrap())
        })
    }
}

/// The protected server.
#[derive(Clone)]
pub(super) struct Protected(pub(super) Arc<Provider>);

impl Service<Request<Bytes>> for Protected {
    type Response = Response<Bytes>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Response<Bytes>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let shown = request.headers().get("authorization").map(|it| it.to_str().unwrap());
        let mut state = self.0.state();
        state.shown.push(shown.map(str::to_owned));
        let token = shown.and_then(|shown| shown.split_once(' ')).map(|(_, token)| token);
        let good = token.and_then(|token| state.good.get(token)).cloned();
        let good = good.filter(|(_, issuer)| *issuer == state.issuer && !state.refuses_all);
        let proof = request.headers().get("dpop").map(|it| payload(it.to_str().unwrap()));
        let (dpop, needed) = (state.dpop, state.needed);
        let repeated = token.filter(|_| state.repeats).map(str::to_owned);
        let open = state.open;
        drop(state);
        let challenge = match (good, needed) {
            (Some(_), _) if dpop && proof.as_ref().is_none_or(|it| it["nonce"] != "n-1") => {
                "DPoP error=\"use_dpop_nonce\""
            }
            (Some((scopes, _)), Some(needed)) if !scopes.contains(needed) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
                let response = Response::builder().status(403);
                let response = response.header("www-authenticate", challenge);
                return std::future::ready(Ok(response.body(Bytes::new()).unwrap()));
            }
            (good, _) if good.is_some() || open => {
                return std::future::ready(Ok(Response::new(Bytes::from_static(b"done"))));
            }
            _ if dpop => "DPoP scope=\"basic\"",
            _ => "Bearer scope=\"basic\"",
        };
        self.0.refused.send_modify(|refused| *refused += 1);
        let challenge = match repeated {
            Some(token) => format!("{challenge}, error_description=\"what is {token}?\""),
            None => challenge.to_owned(),
        };
        let response = Response::builder().status(401).header("www-authenticate", challenge);
        let response = response.header("dpop-nonce", "n-1");
        std::future::ready(Ok(response.body(Bytes::new()).unwrap()))
    }
}

fn payload(proof: &str) -> Value {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let payload = proof.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

/// The provider's clock.
pub(super) struct Watch(pub(super) Arc<Provider>);

impl Clock for Watch {
    fn now(&self) -> u64 {
        self.0.state().now
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
