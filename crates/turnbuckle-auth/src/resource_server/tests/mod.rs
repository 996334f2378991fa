//! Owns what the tests of a protected server share. Does not own the tests.

mod admission;
mod binding;
mod fetching;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{Method, Request, Response, request::Parts};
use serde_json::{Map, Value, json};

use super::{Denied, Identity, ResourceServer};
use crate::{
    AuthError, AuthErrorKind, BoxFuture, Clock, Fetch, Rules, Secret,
    testing::InsecureAuthorizationServer,
};

const RESOURCE: &str = "https://mcp.example.com/mcp";
const ISSUER: &str = "https://auth.example.com";
const START: u64 = 1_800_000_000;

/// A clock that stands until it is moved.
#[derive(Debug)]
struct Hand(AtomicU64);

impl Hand {
    fn new() -> Arc<Hand> {
        Arc::new(Hand(AtomicU64::new(START)))
    }

    fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Finds the server whose issuer an address begins with.
struct Internet(Vec<Arc<InsecureAuthorizationServer>>);

impl Fetch for Internet {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        let address = request.uri().to_string();
        match self.0.iter().find(|server| address.starts_with(server.issuer())) {
            Some(server) => server.fetch(request, rules),
            None => {
                let error = AuthError::new(AuthErrorKind::Unreachable, "no such host");
                Box::pin(async move { Err(error) })
            }
        }
    }
}

/// An issuer, its clock, and a server that trusts it.
struct World {
    clock: Arc<Hand>,
    issuer: Arc<InsecureAuthorizationServer>,
    server: ResourceServer,
}

fn world() -> World {
    world_with(|server| server)
}

fn world_with(more: impl FnOnce(ResourceServer) -> ResourceServer) -> World {
    let clock = Hand::new();
    let issuer = Arc::new(InsecureAuthorizationServer::new(ISSUER).clock(clock.clone()));
    let server = ResourceServer::new(RESOURCE)
        .issuer(ISSUER)
        .clock(clock.clone())
        .fetch(Arc::new(Internet(vec![Arc::clone(&issuer)])));
    World { clock, issuer, server: more(server) }
}

impl World {
    fn token(&self, claims: Value) -> Secret {
        self.issuer.issue(for_us(claims))
    }

    async fn show(&self, token: &Secret) -> Result<Identity, Denied> {
        self.server.check(&bearer(token)).await
    }
}

/// These claims, and the audience.
fn for_us(claims: Value) -> Map<String, Value> {
    let mut all = json!({ "aud": RESOURCE }).as_object().unwrap().clone();
    all.extend(claims.as_object().unwrap().clone());
    all
}

fn bearer(token: &Secret) -> Parts {
    request(&[("authorization", &format!("Bearer {}", token.expose()))])
}

fn request(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(Method::POST).uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// The error of a denial, and that nothing of the token is repeated.
fn refusal(denied: Denied, token: &str) -> (u16, Option<String>) {
    let error = denied.challenge().and_then(|challenge| challenge.error.clone());
    let text = format!("{denied:?}");
    let response = denied.into_response();
    let shown = format!("{text} {response:?}");
    assert!(token.len() < 20 || !shown.contains(&token[..20]), "{shown}");
    assert_eq!(response.headers()["cache-control"], "no-store");
    (response.status().as_u16(), error)
}
