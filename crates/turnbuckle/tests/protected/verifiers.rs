//! Each way to verify a token, with an issuer that is asked over sockets, and what happens when the
//! issuer changes its keys, or is not there.

use serde_json::{Value, json};
use turnbuckle::auth::{
    Scheme, Scopes, Secret, SigningKey,
    resource_server::{Introspection, Issuer},
    testing::{Endpoint, Fault, dpop_proof},
};

use crate::support::{Answer, Ask, Plan, World, call, server, world};

async fn show(world: &World, token: &Secret) -> Answer {
    let (method, params) = call("who");
    world.ask(&Ask::modern(method, params).bearer(token)).await
}

#[tokio::test]
async fn keys_that_change_in_flight_are_found_and_old_tokens_end() {
    let world = world().await;
    let old = world.token("ann", "a");
    assert_eq!(show(&world, &old).await.said(), "ann None a");
    world.auth.rotate_keys();
    // Nobody can make the server ask all the time.
    world.clock.advance(30);
    let new = world.token("ann", "b");
    let asked = world.auth.requests(Endpoint::Keys);
    let (first, second) = tokio::join!(show(&world, &new), show(&world, &new));
    assert_eq!((first.said(), second.said()), ("ann None b".into(), "ann None b".into()));
    assert_eq!(world.auth.requests(Endpoint::Keys), asked + 1);
    assert_eq!(show(&world, &old).await.status, 401);
}

#[tokio::test]
async fn an_issuer_that_is_not_there_is_no_reason_to_ask_for_another_token() {
    for fault in [Fault::Html, Fault::Status(500)] {
        let world = world().await;
        let token = world.token("ann", "a");
        world.auth.fail(Endpoint::Keys, fault);
        let answer = show(&world, &token).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (503, None));
        world.auth.heal();
        world.clock.advance(3);
        assert_eq!(show(&world, &token).await.said(), "ann None a");
    }
    let mut world = world().await;
    let token = world.token("ann", "a");
    world.stop_issuer();
    assert_eq!(show(&world, &token).await.status, 503);
}

#[tokio::test]
async fn keys_that_are_known_are_enough_while_the_issuer_is_away() {
    let mut world = world().await;
    assert_eq!(show(&world, &world.token("ann", "a")).await.status, 200);
    world.stop_issuer();
    world.clock.advance(3600);
    assert_eq!(show(&world, &world.token("ann", "b")).await.said(), "ann None b");
}

/// What the token endpoint gives a machine.
fn given(world: &World, proof: Option<&str>) -> Secret {
    let body = format!(
        "grant_type=client_credentials&client_id=machine&scope=a&resource={}",
        world.resource.replace(':', "%3A").replace('/', "%2F")
    );
    let mut request = http::Request::post(format!("{}/token", world.auth.issuer()))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("authorization", "Basic bWFjaGluZTpzM2NyM3Q=");
    if let Some(proof) = proof {
        request = request.header("dpop", proof);
    }
    let response = world.auth.handle(request.body(body.into()).unwrap());
    let answer: Value = serde_json::from_slice(response.body()).unwrap();
    Secret::new(answer["access_token"].as_str().unwrap_or_else(|| panic!("{answer}")))
}

fn revoke(world: &World, token: &Secret) {
    let request = http::Request::post(format!("{}/revoke", world.auth.issuer()))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("authorization", "Basic bWFjaGluZTpzM2NyM3Q=")
        .body(format!("client_id=machine&token={}", token.expose()).into());
    assert_eq!(world.auth.handle(request.unwrap()).status(), 200);
}

fn introspected(issuer: &str) -> Issuer {
    let endpoint = format!("{issuer}/introspect");
    let introspection = Introspection::basic(endpoint, "machine", Secret::new("s3cr3t"));
    Issuer::new(issuer).introspected(introspection)
}

// req: hosting:auth:invalid-401
#[tokio::test]
async fn an_issuer_can_be_asked_about_each_token() {
    let plan = Plan { issuer: introspected, ..Plan::of(server()) };
    let world = plan.start().await;
    let token = given(&world, None);
    for _ in 0..3 {
        assert_eq!(show(&world, &token).await.said(), "machine Some(\"machine\") a");
    }
    assert_eq!(world.auth.requests(Endpoint::Introspect), 1);
    // Signed by the issuer, but not known to it.
    assert_eq!(show(&world, &world.token("ann", "a")).await.status, 401);
    revoke(&world, &token);
    world.clock.advance(15);
    let answer = show(&world, &token).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.challenge().error.as_deref(), Some("invalid_token"));
    world.auth.fail(Endpoint::Introspect, Fault::Status(500));
    assert_eq!(show(&world, &given(&world, None)).await.status, 503);
}

fn bound(token: &Secret, scheme: &str, proof: Option<&str>) -> Ask {
    let (method, params) = call("who");
    let ask = Ask::modern(method, params)
        .header("authorization", &format!("{scheme} {}", token.expose()));
    match proof {
        Some(proof) => ask.header("dpop", proof),
        None => ask,
    }
}

#[tokio::test]
async fn a_token_that_is_bound_to_a_key_is_taken_with_a_proof_of_it_once() {
    let world = world().await;
    let (key, thief) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let token = world.issue(json!({"sub": "ann", "cnf": {"jkt": key.thumbprint()}}));
    let proof = |key: &SigningKey, method: &str, address: &str| {
        dpop_proof(key, method, address, &token, None).unwrap()
    };
    let good = proof(&key, "POST", &world.resource);
    assert_eq!(world.ask(&bound(&token, "DPoP", Some(&good))).await.said(), "ann None ");
    let elsewhere = format!("{}/elsewhere", world.resource);
    for (scheme, proof) in [
        ("DPoP", Some(good)),
        ("DPoP", None),
        ("DPoP", Some(proof(&key, "GET", &world.resource))),
        ("DPoP", Some(proof(&key, "POST", &elsewhere))),
        ("DPoP", Some(proof(&thief, "POST", &world.resource))),
        ("Bearer", Some(proof(&key, "POST", &world.resource))),
        ("Bearer", None),
    ] {
        let answer = world.ask(&bound(&token, scheme, proof.as_deref())).await;
        assert_eq!((answer.status, answer.challenge().scheme), (401, Scheme::Dpop), "{answer:?}");
        assert!(answer.challenge().error.is_some());
    }
    // Those of others are not disturbed.
    assert_eq!(show(&world, &world.token("bob", "a")).await.said(), "bob None a");
}

#[tokio::test]
async fn proofs_can_be_made_to_need_a_nonce_and_tokens_a_key() {
    let mut plan = Plan::of(server());
    plan.resource =
        |resource| resource.require_dpop().dpop_nonces(&Secret::new("n")).require(Scopes::none());
    let world = plan.start().await;
    let answer = show(&world, &world.token("ann", "a")).await;
    assert_eq!((answer.status, answer.challenge().scheme), (401, Scheme::Dpop));
    let key = SigningKey::generate().unwrap();
    let token = world.issue(json!({"sub": "ann", "cnf": {"jkt": key.thumbprint()}}));
    let proof =
        |nonce: Option<&str>| dpop_proof(&key, "POST", &world.resource, &token, nonce).unwrap();
    let answer = world.ask(&bound(&token, "DPoP", Some(&proof(None)))).await;
    assert_eq!(answer.challenge().error.as_deref(), Some("use_dpop_nonce"));
    let nonce = answer.header("dpop-nonce").unwrap();
    let answer = world.ask(&bound(&token, "DPoP", Some(&proof(Some(&nonce))))).await;
    assert_eq!(answer.said(), "ann None ");
}
