//! Owns when and how often issuers are asked. Does not own what their answers are worth.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::sync::Semaphore;

use super::*;
use crate::{
    Addresses,
    resource_server::{Introspection, Issuer},
    testing::{Endpoint, Fault, InsecureClient},
};

#[tokio::test]
async fn keys_that_changed_are_fetched_once() {
    let world = world();
    assert!(world.show(&world.token(json!({}))).await.is_ok());
    world.clock.advance(60);
    world.issuer.rotate_keys();
    assert!(world.show(&world.token(json!({}))).await.is_ok());
    assert!(world.show(&world.token(json!({}))).await.is_ok());
    assert_eq!(world.issuer.requests(Endpoint::Keys), 2);
}

#[tokio::test]
async fn unknown_keys_do_not_make_this_server_ask_again_and_again() {
    let world = world();
    let stranger = InsecureAuthorizationServer::new(ISSUER).clock(world.clock.clone());
    assert!(world.show(&world.token(json!({}))).await.is_ok());
    let ask = async || {
        for _ in 0..20 {
            stranger.rotate_keys();
            let forged = stranger.issue(for_us(json!({ "iat": START - 6 })));
            assert_eq!(world.show(&forged).await.unwrap_err().status(), 401);
        }
        world.issuer.requests(Endpoint::Keys)
    };
    assert_eq!(ask().await, 1, "they were fetched a moment ago");
    world.clock.advance(30);
    assert_eq!(ask().await, 2);
    assert_eq!(ask().await, 2);
}

#[tokio::test]
async fn who_has_keys_fetched_costs_nobody_a_good_token() {
    let world = world();
    let old = world.token(json!({}));
    assert!(world.show(&old).await.is_ok());
    world.clock.advance(60);
    let stranger = InsecureAuthorizationServer::new(ISSUER).clock(world.clock.clone());
    // Its keys have names of their own.
    (0..5).for_each(|_| stranger.rotate_keys());
    let forge = || stranger.issue(for_us(json!({})));
    assert_eq!(world.show(&forge()).await.unwrap_err().status(), 401, "the issuer was asked");
    world.clock.advance(1);
    world.issuer.rotate_keys();
    let good = world.token(json!({}));
    // It can't be told from a forged one, and must not be thrown away for that.
    for token in [&good, &forge()] {
        let denied = world.show(token).await.unwrap_err();
        assert_eq!((denied.status().as_u16(), denied.challenge()), (503, None));
    }
    assert!(world.show(&old).await.is_ok());
    assert_eq!(world.issuer.requests(Endpoint::Keys), 2);
    world.clock.advance(29);
    assert!(world.show(&good).await.is_ok());
    assert_eq!(world.issuer.requests(Endpoint::Keys), 3);
}

#[tokio::test]
async fn keys_are_used_for_an_hour_and_longer_while_the_issuer_is_down() {
    let world = world();
    let show = async || world.show(&world.token(json!({}))).await;
    assert!(show().await.is_ok());
    world.clock.advance(3599);
    assert!(show().await.is_ok());
    assert_eq!(world.issuer.requests(Endpoint::Keys), 1);
    world.issuer.fail(Endpoint::Keys, Fault::Status(500));
    world.clock.advance(1);
    for _ in 0..5 {
        assert!(show().await.is_ok());
    }
    assert_eq!(world.issuer.requests(Endpoint::Keys), 2, "not asked for each request");
    world.issuer.heal();
    world.clock.advance(30);
    assert!(show().await.is_ok());
    assert_eq!(world.issuer.requests(Endpoint::Keys), 3);
}

#[tokio::test]
async fn keys_that_changed_and_can_not_be_fetched_are_nobodys_fault() {
    let world = world();
    let old = world.token(json!({}));
    assert!(world.show(&old).await.is_ok());
    world.clock.advance(60);
    world.issuer.rotate_keys();
    world.issuer.fail(Endpoint::Keys, Fault::Status(500));
    assert_eq!(world.show(&world.token(json!({}))).await.unwrap_err().status(), 503);
    assert!(world.show(&old).await.is_ok());
    world.issuer.heal();
    world.clock.advance(30);
    assert!(world.show(&world.token(json!({}))).await.is_ok());
}

#[tokio::test]
async fn a_clock_that_is_set_back_keeps_no_keys() {
    let world = world();
    world.clock.advance(100_000);
    assert!(world.show(&world.token(json!({}))).await.is_ok());
    world.clock.0.fetch_sub(100_000, Ordering::SeqCst);
    world.issuer.rotate_keys();
    assert!(world.show(&world.token(json!({}))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_slow_issuer_costs_nobody_whose_key_is_known() {
    let clock = Hand::new();
    let provider = InsecureAuthorizationServer::new(ISSUER).clock(clock.clone());
    let (gated, server, provider) = gating(Arc::new(provider));
    let server = ResourceServer::clone(&server).clock(clock.clone());
    let token = provider.issue(for_us(json!({ "exp": START + 10_000 })));
    gated.gate.add_permits(2);
    assert!(server.check(&bearer(&token)).await.is_ok());
    clock.advance(3600);
    let asked = tokio::time::Instant::now();
    assert!(server.check(&bearer(&token)).await.is_ok());
    assert!(asked.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn an_issuer_that_is_down_at_first_can_come_up() {
    let world = world();
    world.issuer.fail(Endpoint::Metadata, Fault::Status(503));
    let token = world.token(json!({}));
    for _ in 0..5 {
        assert_eq!(world.show(&token).await.unwrap_err().status(), 503);
    }
    assert_eq!(world.issuer.requests(Endpoint::Metadata), 1);
    world.issuer.heal();
    world.clock.advance(3);
    assert!(world.show(&token).await.is_ok());
}

#[tokio::test]
async fn keys_at_a_given_place_need_no_metadata() {
    let clock = Hand::new();
    let issuer = Arc::new(InsecureAuthorizationServer::new(ISSUER).clock(clock.clone()));
    let server = ResourceServer::new(RESOURCE)
        .issuer(Issuer::new(ISSUER).keys_at("https://auth.example.com/jwks"))
        .clock(clock)
        .fetch(issuer.clone());
    assert!(server.check(&bearer(&issuer.issue(for_us(json!({}))))).await.is_ok());
    assert_eq!(issuer.requests(Endpoint::Metadata), 0);
}

#[tokio::test]
async fn an_issuer_with_a_path_is_found() {
    for (issuer, metadata) in [
        ("https://auth.example.com/tenant", "/.well-known/oauth-authorization-server/tenant"),
        ("https://auth.example.com/tenant/", "/.well-known/openid-configuration/tenant"),
        ("https://auth.example.com/tenant", "/tenant/.well-known/openid-configuration"),
    ] {
        let provider = Arc::new(InsecureAuthorizationServer::new(issuer));
        let only = Only { provider: provider.clone(), metadata };
        let server = ResourceServer::new(RESOURCE).issuer(issuer).fetch(Arc::new(only));
        let token = provider.issue(for_us(json!({})));
        assert!(server.check(&bearer(&token)).await.is_ok(), "{metadata}");
    }
}

/// Has its metadata at one place only.
struct Only {
    provider: Arc<InsecureAuthorizationServer>,
    metadata: &'static str,
}

impl Fetch for Only {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        let path = request.uri().path();
        if path.contains("/.well-known/") && path != self.metadata {
            let gone = Response::builder().status(404).body(Bytes::new()).unwrap();
            return Box::pin(async move { Ok(gone) });
        }
        self.provider.fetch(request, rules)
    }
}

/// Answers when it is let.
struct Gated {
    provider: Arc<InsecureAuthorizationServer>,
    arrived: Semaphore,
    gate: Semaphore,
}

impl Fetch for Gated {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        Box::pin(async move {
            self.arrived.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
            self.provider.fetch(request, rules).await
        })
    }
}

fn gated() -> (Arc<Gated>, Arc<ResourceServer>, Arc<InsecureAuthorizationServer>) {
    gating(Arc::new(InsecureAuthorizationServer::new(ISSUER)))
}

fn gating(
    provider: Arc<InsecureAuthorizationServer>,
) -> (Arc<Gated>, Arc<ResourceServer>, Arc<InsecureAuthorizationServer>) {
    let [arrived, gate] = [Semaphore::new(0), Semaphore::new(0)];
    let gated = Arc::new(Gated { provider: provider.clone(), arrived, gate });
    let server = Arc::new(ResourceServer::new(RESOURCE).issuer(ISSUER).fetch(gated.clone()));
    (gated, server, provider)
}

#[tokio::test]
async fn eight_requests_at_once_ask_once() {
    let (gated, server, provider) = gated();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (server, token) = (server.clone(), provider.issue(for_us(json!({}))));
        tasks.spawn(async move { server.check(&bearer(&token)).await.is_ok() });
    }
    gated.arrived.acquire().await.unwrap().forget();
    gated.gate.add_permits(100);
    assert_eq!(tasks.join_all().await, [true; 8]);
    assert_eq!(provider.requests(Endpoint::Metadata), 1);
    assert_eq!(provider.requests(Endpoint::Keys), 1);
}

#[tokio::test]
async fn a_request_that_goes_away_does_not_take_the_keys_with_it() {
    let (gated, server, provider) = gated();
    let token = provider.issue(for_us(json!({})));
    let first = tokio::spawn({
        let (server, token) = (server.clone(), token.clone());
        async move { server.check(&bearer(&token)).await.is_ok() }
    });
    gated.arrived.acquire().await.unwrap().forget();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    gated.gate.add_permits(100);
    assert!(server.check(&bearer(&token)).await.is_ok());
    assert_eq!(provider.requests(Endpoint::Keys), 1, "the fetch that had begun was used");
}

/// A provider that introspects, and a token that it gave.
fn introspected(client: InsecureClient, introspection: Introspection) -> (World, Secret) {
    let clock = Hand::new();
    let provider = InsecureAuthorizationServer::new(ISSUER)
        .clock(clock.clone())
        .client(client)
        .client(InsecureClient::post("app", "app-secret"));
    let issuer = Arc::new(provider);
    let body = format!(
        "grant_type=client_credentials&client_id=app&client_secret=app-secret&scope=a&resource={RESOURCE}"
    );
    let asked = Request::post("/token").body(Bytes::from(body)).unwrap();
    let answer: Value = serde_json::from_slice(issuer.handle(asked).body()).unwrap();
    let token = Secret::new(answer["access_token"].as_str().unwrap());
    let server = ResourceServer::new(RESOURCE)
        .issuer(Issuer::new(ISSUER).introspected(introspection))
        .clock(clock.clone())
        .fetch(issuer.clone());
    (World { clock, issuer, server }, token)
}

const INTROSPECT: &str = "https://auth.example.com/introspect";

#[tokio::test]
async fn introspection_as_whoever_this_server_is() {
    let key = crate::SigningKey::generate().unwrap();
    let secret = || Secret::new("s:e c%");
    for (client, introspection) in [
        (InsecureClient::basic("me", "s:e c%"), Introspection::basic(INTROSPECT, "me", secret())),
        (InsecureClient::post("me", "s:e c%"), Introspection::post(INTROSPECT, "me", secret())),
        (
            InsecureClient::signed("me", [key.public_jwk()]),
            Introspection::signed(INTROSPECT, "me", key.clone()),
        ),
    ] {
        let shown = format!("{introspection:?}");
        assert!(!shown.contains("s:e"), "{shown}");
        let (world, token) = introspected(client, introspection);
        let identity = world.show(&token).await.unwrap();
        assert_eq!(identity.subject, "app");
        assert_eq!(identity.scopes.to_string(), "a");
        let denied = world.show(&Secret::new("unknown")).await.unwrap_err();
        assert_eq!(refusal(denied, "unknown"), (401, Some("invalid_token".into())));
    }
}

#[tokio::test]
async fn what_introspection_said_is_remembered_for_a_moment() {
    let client = InsecureClient::post("me", "s");
    let (world, token) =
        introspected(client, Introspection::post(INTROSPECT, "me", Secret::new("s")));
    for _ in 0..3 {
        assert!(world.show(&token).await.is_ok());
        assert!(world.show(&Secret::new("unknown")).await.is_err());
    }
    assert_eq!(world.issuer.requests(Endpoint::Introspect), 2);
    let body = format!("client_id=app&client_secret=app-secret&token={}", token.expose());
    world.issuer.handle(Request::post("/revoke").body(Bytes::from(body)).unwrap());
    world.clock.advance(15);
    assert_eq!(world.show(&token).await.unwrap_err().status(), 401, "it was revoked");
    assert_eq!(world.issuer.requests(Endpoint::Introspect), 3);
}

#[tokio::test]
async fn introspection_that_fails_is_not_the_tokens_fault() {
    let client = InsecureClient::post("me", "s");
    let (world, token) =
        introspected(client, Introspection::post(INTROSPECT, "me", Secret::new("wrong")));
    assert_eq!(world.show(&token).await.unwrap_err().status(), 503);
    let client = InsecureClient::post("me", "s");
    let (world, token) =
        introspected(client, Introspection::post(INTROSPECT, "me", Secret::new("s")));
    for fault in [Fault::Html, Fault::Status(500), Fault::Status(404)] {
        world.issuer.fail(Endpoint::Introspect, fault);
        assert_eq!(world.show(&token).await.unwrap_err().status(), 503);
    }
    world.issuer.heal();
    assert!(world.show(&token).await.is_ok(), "a failure is not remembered");
}

#[tokio::test]
async fn a_token_of_another_issuer_is_not_given_away_however_it_is_signed() {
    let introspection = Introspection::post(INTROSPECT, "me", Secret::new("s"));
    let (mut world, _) = introspected(InsecureClient::post("me", "s"), introspection);
    world.server = world.server.issuer("https://other.example.com");
    for header in [r#"{"alg":"HS256"}"#, r#"{"alg":"ES512"}"#, "{}", "no JSON"] {
        let claims = json!({"iss": "https://other.example.com", "aud": RESOURCE}).to_string();
        let token = format!("{}.{}.AAAA", crate::jose::encode(header), crate::jose::encode(claims));
        assert!(world.show(&Secret::new(token)).await.is_err());
    }
    assert_eq!(world.issuer.requests(Endpoint::Introspect), 0);
}

/// Answers everything with this.
struct Says(String);

impl Fetch for Says {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        _: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        assert_eq!(request.uri(), INTROSPECT);
        let response = Response::new(Bytes::from(self.0.clone()));
        Box::pin(async move { Ok(response) })
    }
}

#[tokio::test]
async fn only_an_active_token_of_this_issuer_for_this_server_is_taken() {
    let claims = json!({"active": true, "sub": "ann", "aud": RESOURCE, "exp": START + 60});
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        claims.to_string()
    };
    for (answer, status) in [
        (claims.to_string(), None),
        (with("iss", json!(ISSUER)), None),
        (with("active", json!(false)), Some(401)),
        (with("active", json!("true")), Some(401)),
        (with("active", json!(1)), Some(401)),
        (with("active", Value::Null), Some(401)),
        (with("iss", json!("https://auth.example.com/")), Some(401)),
        (with("aud", json!("https://other.example.com")), Some(401)),
        (with("aud", Value::Null), Some(401)),
        (with("exp", json!(START - 30)), Some(401)),
        // RFC 7662 §2.2: it may be left out, and counts if it is there.
        (claims.to_string().replace(&format!(",\"exp\":{}", START + 60), ""), None),
        (with("exp", Value::Null), Some(401)),
        (with("nbf", json!(START + 31)), Some(401)),
        (claims.to_string().replacen('{', r#"{"active":false,"#, 1), Some(503)),
    ] {
        let introspection = Introspection::post(INTROSPECT, "me", Secret::new("s"));
        let server = ResourceServer::new(RESOURCE)
            .issuer(Issuer::new(ISSUER).introspected(introspection))
            .clock(Hand::new())
            .fetch(Arc::new(Says(answer.clone())));
        let checked = server.check(&bearer(&Secret::new("opaque"))).await;
        assert_eq!(checked.err().map(|denied| denied.status().as_u16()), status, "{answer}");
    }
}

/// An issuer that says where its keys are, and hears where connections may go.
struct Pointing {
    issuer: &'static str,
    to: &'static str,
    asked: Mutex<Vec<(String, Addresses)>>,
}

impl Fetch for Pointing {
    fn fetch<'a>(
        &'a self,
        request: Request<Bytes>,
        rules: &'a Rules,
    ) -> BoxFuture<'a, Result<Response<Bytes>, AuthError>> {
        let address = request.uri().to_string();
        let document = if address.contains("/.well-known/") {
            json!({ "issuer": self.issuer, "jwks_uri": self.to })
        } else {
            json!({ "active": false, "keys": [] })
        };
        self.asked.lock().unwrap().push((address, rules.addresses));
        Box::pin(async move { Ok(Response::new(Bytes::from(document.to_string()))) })
    }
}

#[tokio::test]
async fn an_issuer_leads_to_nothing_more_private_than_itself() {
    use Addresses::{AlsoPrivate, Public};
    const LOCAL: &str = "http://127.0.0.1:9";
    for (issuer, to, allowed) in [
        (ISSUER, "https://auth.example.com/keys", Some(AlsoPrivate)),
        (ISSUER, "https://keys.example.com/keys", Some(Public)),
        (ISSUER, "http://127.0.0.1/keys", None),
        (ISSUER, "https://localhost/keys", None),
        (ISSUER, "https://10.0.0.1/keys", None),
        (ISSUER, "https://[::ffff:10.0.0.1]/keys", None),
        (ISSUER, "https://169.254.169.254/keys", None),
        (ISSUER, "https://user:word@keys.example.com/keys", None),
        (LOCAL, "https://10.0.0.1/keys", Some(AlsoPrivate)),
        (LOCAL, "http://127.0.0.1:9/keys", Some(AlsoPrivate)),
        (LOCAL, "https://169.254.169.254/keys", None),
    ] {
        let pointing = Arc::new(Pointing { issuer, to, asked: Mutex::default() });
        let server = ResourceServer::new(RESOURCE).issuer(issuer).fetch(pointing.clone());
        let token = InsecureAuthorizationServer::new(issuer).issue(for_us(json!({})));
        assert!(server.check(&bearer(&token)).await.is_err());
        let asked = pointing.asked.lock().unwrap();
        assert_eq!(asked[0].1, AlsoPrivate, "the issuer itself was chosen");
        let keys = asked.get(1).map(|(address, addresses)| (address.as_str(), *addresses));
        assert_eq!(keys, allowed.map(|addresses| (to, addresses)), "{issuer}");
    }
}

#[tokio::test]
async fn what_the_configuration_names_may_be_anywhere_but_at_a_metadata_service() {
    for (place, is_asked) in [
        ("https://10.0.0.1/x", true),
        ("http://127.0.0.1:9/x", true),
        ("https://169.254.169.254/x", false),
        ("https://[fd00:ec2::254]/x", false),
    ] {
        let introspection = Introspection::post(place, "me", Secret::new("s"));
        for issuer in
            [Issuer::new(ISSUER).keys_at(place), Issuer::new(ISSUER).introspected(introspection)]
        {
            let pointing = Pointing { issuer: ISSUER, to: place, asked: Mutex::default() };
            let pointing = Arc::new(pointing);
            let server = ResourceServer::new(RESOURCE).issuer(issuer).fetch(pointing.clone());
            let token = InsecureAuthorizationServer::new(ISSUER).issue(for_us(json!({})));
            assert!(server.check(&bearer(&token)).await.is_err());
            let asked = pointing.asked.lock().unwrap().clone();
            let expected = (place.to_owned(), Addresses::AlsoPrivate);
            assert_eq!(asked, if is_asked { vec![expected] } else { Vec::new() });
        }
    }
}
