//! Owns who is let in and who is turned away, and how. Does not own how keys are fetched.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::*;
use crate::{
    Challenge, Scheme, Scopes,
    resource_server::{Issuer, TokenVerifier, Unverified},
    testing::{Endpoint, Fault},
};

// req: hosting:auth:authinfo-propagates
#[tokio::test]
async fn a_token_for_this_server_says_who_comes() {
    let world = world();
    let token = world.token(json!({"sub": "ann", "client_id": "app", "scope": "a b"}));
    let identity = world.show(&token).await.unwrap();
    assert_eq!((identity.issuer.as_str(), identity.subject.as_str()), (ISSUER, "ann"));
    assert_eq!(identity.client_id.as_deref(), Some("app"));
    assert_eq!(identity.scopes.to_string(), "a b");
    assert_eq!(identity.expires_at, Some(START + 3600));
    assert!(!format!("{identity:?}").contains(token.expose()));
    let many = world.token(json!({"aud": ["other", RESOURCE]}));
    assert!(world.show(&many).await.is_ok());
}

// req: hosting:auth:missing-401, hosting:auth:query-token-ignored
#[tokio::test]
async fn without_a_credential_there_is_a_challenge_without_an_error() {
    let world = world_with(|server| server.require(Scopes::from_iter(["mcp"])));
    let token = world.token(json!({"scope": "mcp"}));
    let mut in_query = request(&[]);
    in_query.uri = format!("/mcp?access_token={}", token.expose()).parse().unwrap();
    for parts in [request(&[]), request(&[("authorization", "Basic YTpi")]), in_query] {
        let response = world.server.check(&parts).await.unwrap_err().into_response();
        assert_eq!(response.status(), 401);
        assert!(response.body().is_empty());
        assert_eq!(
            response.headers()["www-authenticate"],
            "Bearer scope=\"mcp\", resource_metadata=\"https://mcp.example.com/.well-known/\
             oauth-protected-resource/mcp\""
        );
    }
    assert_eq!(world.issuer.requests(Endpoint::Keys), 0, "nobody was asked");
}

#[tokio::test]
async fn what_can_not_be_read_is_a_bad_request() {
    let world = world();
    let token = world.token(json!({}));
    let good = format!("Bearer {}", token.expose());
    for headers in [
        &[("authorization", "Bearer")][..],
        &[("authorization", "Bearer a b")],
        &[("authorization", &good), ("authorization", &good)],
    ] {
        let denied = world.server.check(&request(headers)).await.unwrap_err();
        assert_eq!(refusal(denied, token.expose()), (400, Some("invalid_request".into())));
    }
}

// req: hosting:auth:invalid-401, hosting:auth:expired-401, hosting:auth:aud-validation
#[tokio::test]
async fn a_token_that_is_not_right_is_refused() {
    let world = world();
    let stranger = InsecureAuthorizationServer::new(ISSUER).clock(world.clock.clone());
    let wrong = [
        world.token(json!({"exp": START - 30})),
        world.token(json!({"nbf": START + 31})),
        world.token(json!({"iat": START + 31})),
        world.token(json!({"exp": null})),
        world.token(json!({"aud": "https://mcp.example.com/mcp/"})),
        world.token(json!({"aud": "https://mcp.example.com"})),
        world.token(json!({"aud": []})),
        world.token(json!({"aud": null})),
        world.token(json!({"iss": "https://auth.example.com/"})),
        world.token(json!({"iss": "https://evil.example.com"})),
        world.token(json!({"sub": null})),
        world.token(json!({"padding": "x".repeat(17_000)})),
        world.issuer.id_token("app"),
        world.issuer.issue_unsigned(for_us(json!({}))),
        stranger.issue(for_us(json!({}))),
        Secret::new("opaque"),
        Secret::new("a.b.c"),
    ];
    for token in wrong {
        let denied = world.show(&token).await.unwrap_err();
        let said = refusal(denied.clone(), token.expose());
        assert_eq!(said, (401, Some("invalid_token".into())), "{denied:?}");
    }
    assert!(world.show(&world.token(json!({"exp": START - 29}))).await.is_ok(), "clocks differ");
}

// req: hosting:auth:scope-403
#[tokio::test]
async fn a_token_that_is_good_for_less_is_told_what_is_needed() {
    let world = world_with(|server| server.require(Scopes::from_iter(["mcp", "more"])));
    let denied = world.show(&world.token(json!({"scope": "mcp"}))).await.unwrap_err();
    assert_eq!(denied.status(), 403);
    let response = denied.into_response();
    let challenge = Challenge::read(response.headers()).unwrap();
    assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
    assert_eq!(challenge.scope.unwrap().to_string(), "mcp more");
    assert!(challenge.resource_metadata.is_some());
    assert!(world.show(&world.token(json!({"scope": "more x mcp"}))).await.is_ok());
    assert!(world.show(&world.token(json!({"scp": ["more", "mcp"]}))).await.is_ok());
}

#[tokio::test]
async fn a_further_audience_is_taken_where_it_is_configured() {
    let world = world_with(|server| server.also_audience("api://mcp"));
    assert!(world.show(&world.token(json!({"aud": "api://mcp"}))).await.is_ok());
    assert!(world.show(&world.token(json!({}))).await.is_ok());
    assert!(world.show(&world.token(json!({"aud": "api://other"}))).await.is_err());
}

#[tokio::test]
async fn each_issuer_verifies_its_own_tokens_only() {
    let clock = Hand::new();
    let [first, second] = ["https://one.example.com", "https://two.example.com"]
        .map(|issuer| Arc::new(InsecureAuthorizationServer::new(issuer).clock(clock.clone())));
    let server = ResourceServer::new(RESOURCE)
        .issuer(first.issuer())
        .issuer(second.issuer())
        .clock(clock)
        .fetch(Arc::new(Internet(vec![first.clone(), second.clone()])));
    for issuer in [&first, &second] {
        let identity = server.check(&bearer(&issuer.issue(for_us(json!({}))))).await.unwrap();
        assert_eq!(identity.issuer, issuer.issuer());
    }
    let forged = second.issue(for_us(json!({"iss": first.issuer()})));
    let before = second.requests(Endpoint::Keys);
    let denied = server.check(&bearer(&forged)).await.unwrap_err();
    assert_eq!(refusal(denied, forged.expose()), (401, Some("invalid_token".into())));
    assert_eq!(second.requests(Endpoint::Keys), before, "the other one was not asked");
}

struct Fixed(Result<Value, Unverified>);

impl TokenVerifier for Fixed {
    fn verify<'a>(
        &'a self,
        _: &'a Secret,
    ) -> BoxFuture<'a, Result<Map<String, Value>, Unverified>> {
        let answer = self.0.clone().map(|claims| claims.as_object().unwrap().clone());
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn ones_own_verifier_does_not_replace_the_checks_after_it() {
    let unavailable =
        Unverified::Unavailable(AuthError::new(AuthErrorKind::Unreachable, "no database"));
    let with = |more: Value| {
        let mut claims = json!({"sub": "ann", "aud": RESOURCE, "exp": u32::MAX});
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    };
    for (answer, status) in [
        (Ok(with(json!({}))), None),
        (Ok(with(json!({"iss": "own"}))), None),
        (Ok(with(json!({"iss": "another"}))), Some(401)),
        (Ok(with(json!({"exp": 5}))), Some(401)),
        (Ok(with(json!({"exp": "never"}))), Some(401)),
        // It has to be said that it does not expire.
        (Ok(with(json!({"exp": null}))), None),
        (Ok(json!({"sub": "ann", "aud": RESOURCE})), Some(401)),
        (Ok(with(json!({"aud": "other"}))), Some(401)),
        (Ok(with(json!({"aud": null}))), Some(401)),
        (Ok(with(json!({"sub": null}))), Some(401)),
        (Ok(with(json!({"cnf": {"jkt": "x"}}))), Some(401)),
        (Ok(with(json!({"cnf": {"x5t#S256": "x"}}))), Some(401)),
        (Err(Unverified::Invalid), Some(401)),
        (Err(unavailable), Some(503)),
    ] {
        let text = format!("{answer:?}");
        let server =
            ResourceServer::new(RESOURCE).issuer(Issuer::new("own").verified_by(Fixed(answer)));
        let checked = server.check(&bearer(&Secret::new("opaque"))).await;
        assert_eq!(checked.err().map(|denied| denied.status().as_u16()), status, "{text}");
    }
}

#[tokio::test]
async fn an_opaque_token_is_given_to_nobody_if_it_could_be_anybodys() {
    let own = || Fixed(Ok(json!({"sub": "ann", "aud": RESOURCE})));
    let server = ResourceServer::new(RESOURCE)
        .issuer(Issuer::new("one").verified_by(own()))
        .issuer(Issuer::new("two").verified_by(own()));
    assert_eq!(server.check(&bearer(&Secret::new("opaque"))).await.unwrap_err().status(), 401);
}

// req: hosting:auth:metadata-endpoints, hosting:auth:prm:authorization-servers-field
#[test]
fn the_metadata_says_where_to_log_in() {
    let server = ResourceServer::new(RESOURCE)
        .issuer("https://one.example.com/")
        .issuer("https://two.example.com")
        .require(Scopes::from_iter(["mcp"]))
        .offer(Scopes::from_iter(["files"]))
        .name("Files");
    assert_eq!(server.metadata_path(), "/.well-known/oauth-protected-resource/mcp");
    let document: Value = serde_json::from_slice(&server.metadata()).unwrap();
    assert_eq!(document["resource"], RESOURCE);
    let issuers = json!(["https://one.example.com/", "https://two.example.com"]);
    assert_eq!(document["authorization_servers"], issuers);
    assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    assert_eq!(document["scopes_supported"], json!(["files", "mcp"]));
    assert_eq!(document["resource_name"], "Files");
    assert_eq!(document.get("dpop_bound_access_tokens_required"), None);
    let bound: Value = serde_json::from_slice(&server.require_dpop().metadata()).unwrap();
    assert_eq!(bound["dpop_bound_access_tokens_required"], true);
}

#[tokio::test]
async fn with_settings_that_do_not_fit_nobody_is_let_in() {
    let fetch = || Arc::new(Internet(Vec::new()));
    let good = || ResourceServer::new(RESOURCE).fetch(fetch());
    assert!(good().issuer(ISSUER).ready().is_ok());
    for server in [
        good(),
        good().issuer(ISSUER).issuer(ISSUER),
        good().issuer("http://auth.example.com"),
        good().issuer("auth"),
        good().issuer(Issuer::new(ISSUER).keys_at("http://auth.example.com/jwks")),
        ResourceServer::new(RESOURCE).issuer(ISSUER),
        ResourceServer::new("/mcp").fetch(fetch()).issuer(ISSUER),
    ] {
        assert_eq!(server.ready().unwrap_err().kind(), AuthErrorKind::Settings);
        let denied = server.check(&bearer(&Secret::new("x"))).await.unwrap_err();
        assert_eq!(denied.into_response().status(), 500);
    }
}

#[tokio::test]
async fn what_an_issuer_gets_wrong_does_not_let_anyone_in() {
    for (endpoint, fault) in [
        (Endpoint::Metadata, Fault::WrongIssuer("https://evil.example.com".into())),
        (Endpoint::Metadata, Fault::Html),
        (Endpoint::Metadata, Fault::Status(404)),
        (Endpoint::Metadata, Fault::Status(302)),
        (Endpoint::Keys, Fault::Html),
        (Endpoint::Keys, Fault::Status(500)),
    ] {
        let world = world();
        world.issuer.fail(endpoint, fault.clone());
        let token = world.token(json!({}));
        let denied = world.show(&token).await.unwrap_err();
        assert_eq!(refusal(denied, token.expose()), (503, None), "{fault:?}");
    }
}

#[test]
fn a_server_for_bound_tokens_only_says_so() {
    let server = ResourceServer::new(RESOURCE).issuer(ISSUER).require_dpop();
    let denied = server.insufficient(&Scopes::from_iter(["x"]));
    assert_eq!(denied.challenge().unwrap().scheme, Scheme::Dpop);
    let header = denied.into_response().headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert!(
        header.starts_with("DPoP error=")
            && header.ends_with("algs=\"ES256 ES384 EdDSA PS256 RS256\"")
    );
}
