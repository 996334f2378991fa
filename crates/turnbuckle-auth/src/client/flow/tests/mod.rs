//! Flows against a provider that is a table: no input, no output, every step by hand.

mod dpop;
mod legacy;
mod machine;
mod person;
mod renew;
mod scopes;
mod trust;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::HeaderMap;
use serde_json::{Value, json};
use url::Url;

use super::*;
use crate::{client::random::SystemRandom, jose::sha256};

pub(super) const SERVER: &str = "https://mcp.example/mcp";
pub(super) const HINT: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
pub(super) const ISSUER: &str = "https://auth.example";
pub(super) const DESCRIBED: &str = "https://auth.example/.well-known/oauth-authorization-server";
pub(super) const REDIRECT: &str = "http://127.0.0.1:7/callback";
pub(super) const NOW: u64 = 1_000_000;

type Pairs = BTreeMap<String, String>;

/// A protected server, its authorization server, a person and a platform.
pub(super) struct Provider {
    /// What is found by address; all else is not.
    documents: BTreeMap<String, Value>,
    /// Addresses that answer with a status and no document.
    broken: BTreeMap<String, u16>,
    registration: (u16, Value),
    /// Answers to requests for tokens; when they are used up, a plain token.
    tokens: VecDeque<(u16, Option<&'static str>, Value)>,
    /// Where logins lead: what is added to `code` and `state`.
    login_adds: String,
    recalled: Option<Registration>,
    identity: Option<&'static str>,
    /// All that was sent.
    sent: Vec<Sent>,
    logins: Vec<Pairs>,
    recalls: Vec<String>,
    identities: Vec<IdentityRequest>,
}

pub(super) struct Sent {
    url: String,
    headers: HeaderMap,
    form: Pairs,
    json: Value,
}

#[derive(Debug)]
struct At(u64);

impl Clock for At {
    fn now(&self) -> u64 {
        self.0
    }
}

impl Provider {
    /// All is described at the best place, and anyone may register.
    pub(super) fn new() -> Provider {
        let mut provider = Provider::empty();
        provider.documents.insert(HINT.into(), resource(SERVER, &[ISSUER]));
        provider.documents.insert(DESCRIBED.into(), described(ISSUER));
        provider
    }

    pub(super) fn empty() -> Provider {
        Provider {
            documents: BTreeMap::new(),
            broken: BTreeMap::new(),
            registration: (201, json!({ "client_id": "dynamic", "client_secret": "hide-dynamic" })),
            tokens: VecDeque::new(),
            login_adds: format!("&iss={}", encoded(ISSUER)),
            recalled: None,
            identity: None,
            sent: Vec::new(),
            logins: Vec::new(),
            recalls: Vec::new(),
            identities: Vec::new(),
        }
    }

    pub(super) fn edit(&mut self, url: &str, name: &str, value: Value) -> &mut Provider {
        let document = self.documents.get_mut(url).unwrap();
        match value {
            Value::Null => {
                document.as_object_mut().unwrap().remove(name);
            }
            value => document[name] = value,
        }
        self
    }

    pub(super) fn authorize(
        &mut self,
        settings: &Settings,
        asked: Asked,
    ) -> Result<Grant, AuthError> {
        let (flow, step) = Flow::authorize(tools(settings), asked);
        self.drive(flow, step)
    }

    pub(super) fn refresh(&mut self, grant: &Grant) -> Result<Grant, AuthError> {
        let (flow, step) = Flow::refresh(tools(&Settings::default()), grant.clone());
        self.drive(flow, step)
    }

    fn drive(&mut self, mut flow: Flow, mut step: Step) -> Result<Grant, AuthError> {
        for _ in 0..20 {
            let printed = format!("{flow:?} {:?} {step:?}", flow.tools);
            assert!(!printed.contains("hide-") && !printed.contains("state="), "{printed}");
            let answer = match step {
                Step::Done(grant) => {
                    assert!(matches!(flow.answer(Answer::Recalled(None)), Step::Failed(_)));
                    return Ok(*grant);
                }
                Step::Failed(error) => {
                    assert!(!format!("{error} {error:?}").contains("hide-"), "{error:?}");
                    assert!(matches!(flow.answer(Answer::Recalled(None)), Step::Failed(_)));
                    return Err(error);
                }
                Step::Send(request) => Answer::Response(self.respond(&request)),
                Step::Recall(issuer) => {
                    self.recalls.push(issuer);
                    Answer::Recalled(self.recalled.clone())
                }
                Step::LogIn(request) => Answer::CalledBack(self.log_in(&request)),
                Step::Identity(request) => {
                    self.identities.push(request);
                    match self.identity {
                        Some(identity) => Answer::Identity(Secret::new(identity)),
                        None => Answer::NotLoggedIn(AuthError::new(
                            AuthErrorKind::NotLoggedIn,
                            "nobody is there",
                        )),
                    }
                }
            };
            step = flow.answer(answer);
        }
        panic!("the flow does not end");
    }

    fn respond(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        let url = request.uri().to_string();
        assert!(!url.contains("hide-"), "{url}");
        assert_eq!(request.headers()["accept"], "application/json");
        let form: Pairs = url::form_urlencoded::parse(request.body()).into_owned().collect();
        let json = serde_json::from_slice(request.body()).unwrap_or_default();
        self.sent.push(Sent { url: url.clone(), headers: request.headers().clone(), form, json });
        let (status, nonce, body) = if let Some(status) = self.broken.get(&url) {
            (*status, None, Value::Null)
        } else if request.method() == "GET" {
            match self.documents.get(&url) {
                Some(document) => (200, None, document.clone()),
                None => (404, None, json!({})),
            }
        } else if url.contains("register") {
            (self.registration.0, None, self.registration.1.clone())
        } else {
            self.check_code();
            self.tokens.pop_front().unwrap_or((200, None, given("hide-token")))
        };
        let mut response = Response::builder().status(status);
        if let Some(nonce) = nonce {
            response = response.header("dpop-nonce", nonce);
        }
        response.body(Bytes::from(body.to_string())).unwrap()
    }

    /// A code is given only to whoever asked for it (RFC 7636 §4.6).
    fn check_code(&self) {
        let form = &self.sent.last().unwrap().form;
        if form["grant_type"] == "authorization_code" {
            let login = self.logins.last().unwrap();
            let challenge = URL_SAFE_NO_PAD.encode(sha256(&form["code_verifier"]));
            assert_eq!(login["code_challenge"], challenge);
            assert_eq!(login["redirect_uri"], form["redirect_uri"]);
            assert_eq!(login.get("resource"), form.get("resource"));
            assert_eq!(form["code"], "hide-code");
        }
    }

    fn log_in(&mut self, request: &LoginRequest) -> String {
        let url = Url::parse(&request.url).unwrap();
        let mut pairs: Pairs = url.query_pairs().into_owned().collect();
        assert_eq!(pairs["response_type"], "code");
        assert_eq!(pairs["code_challenge_method"], "S256");
        assert_eq!(pairs["redirect_uri"], request.redirect_uri);
        let state = encoded(&pairs["state"]);
        pairs.insert("at".into(), request.url.split('?').next().unwrap().to_owned());
        self.logins.push(pairs);
        format!("{}?code=hide-code&state={state}{}", request.redirect_uri, self.login_adds)
    }

    /// The addresses that were asked.
    pub(super) fn urls(&self) -> Vec<&str> {
        self.sent.iter().map(|sent| sent.url.as_str()).collect()
    }

    /// The requests for tokens.
    pub(super) fn token_requests(&self) -> Vec<&Sent> {
        self.sent.iter().filter(|sent| sent.form.contains_key("grant_type")).collect()
    }
}

pub(super) fn tools(settings: &Settings) -> Tools {
    Tools {
        settings: Arc::new(settings.clone()),
        clock: Arc::new(At(NOW)),
        random: Arc::new(SystemRandom),
    }
}

/// As after a 401 that says where the server is described.
pub(super) fn asked() -> Asked {
    let challenge = Challenge { resource_metadata: Some(HINT.into()), ..Challenge::default() };
    Asked { challenge: Some(challenge), redirect_uri: Some(REDIRECT.into()), ..Asked::new(SERVER) }
}

pub(super) fn challenged(scope: &str) -> Asked {
    let mut asked = asked();
    asked.challenge.as_mut().unwrap().scope = Some(scope.parse().unwrap());
    asked
}

pub(super) fn resource(resource: &str, servers: &[&str]) -> Value {
    json!({ "resource": resource, "authorization_servers": servers })
}

pub(super) fn described(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "token_endpoint_auth_methods_supported": ["none"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
    })
}

pub(super) fn given(token: &str) -> Value {
    json!({
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": "hide-refresh",
    })
}

pub(super) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

pub(super) fn basic(id: &str, secret: &str) -> String {
    use base64::engine::general_purpose::STANDARD;
    format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))
}
