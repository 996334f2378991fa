//! Tokens that are bound to a key.

use http::HeaderValue;
use serde_json::json;

use super::*;
use crate::{Challenge, Scheme, SigningKey, jose::dpop};

struct Bound {
    world: World,
    key: SigningKey,
    token: Secret,
}

fn bound(more: impl FnOnce(ResourceServer) -> ResourceServer) -> Bound {
    let world = world_with(more);
    let key = SigningKey::generate().unwrap();
    let token = world.token(json!({"cnf": {"jkt": key.thumbprint()}}));
    Bound { world, key, token }
}

impl Bound {
    fn proof(&self, nonce: Option<&str>) -> String {
        dpop::proof(&self.key, "POST", RESOURCE, Some(&self.token), nonce, START).unwrap()
    }

    async fn show(
        &self,
        scheme: &str,
        token: &Secret,
        proofs: &[&str],
    ) -> Result<Identity, Denied> {
        let authorization = format!("{scheme} {}", token.expose());
        let mut parts = request(&[("authorization", &authorization), ("host", "evil.example.com")]);
        for proof in proofs {
            parts.headers.append("dpop", HeaderValue::from_str(proof).unwrap());
        }
        self.world.server.check(&parts).await
    }
}

fn said(result: Result<Identity, Denied>) -> (u16, Scheme, String) {
    let denied = result.unwrap_err();
    let status = denied.status().as_u16();
    let challenge = Challenge::read(denied.into_response().headers()).unwrap();
    (status, challenge.scheme, challenge.error.unwrap())
}

#[tokio::test]
async fn a_bound_token_needs_a_fresh_proof_of_its_key() {
    let bound = bound(|server| server);
    let proof = bound.proof(None);
    assert!(bound.show("DPoP", &bound.token, &[&proof]).await.is_ok());
    let wrong = |error: &str| (401, Scheme::Dpop, error.to_owned());
    let again = bound.show("DPoP", &bound.token, &[&proof]).await;
    assert_eq!(said(again), wrong("invalid_dpop_proof"));
    let none = bound.show("DPoP", &bound.token, &[]).await;
    assert_eq!(said(none), wrong("invalid_dpop_proof"));
    let two = bound.show("DPoP", &bound.token, &[&bound.proof(None), &bound.proof(None)]).await;
    assert_eq!(said(two), wrong("invalid_dpop_proof"));
    let as_bearer = bound.show("Bearer", &bound.token, &[&bound.proof(None)]).await;
    assert_eq!(said(as_bearer), wrong("invalid_token"));
    assert!(bound.show("DPoP", &bound.token, &[&bound.proof(None)]).await.is_ok());
}

#[tokio::test]
async fn a_proof_for_something_else_is_no_proof() {
    let bound = bound(|server| server);
    let thief = SigningKey::generate().unwrap();
    let token = Some(&bound.token);
    let other = Secret::new("other");
    let host = "https://evil.example.com/mcp";
    for (proof, error) in [
        (dpop::proof(&thief, "POST", RESOURCE, token, None, START), "invalid_token"),
        (dpop::proof(&bound.key, "GET", RESOURCE, token, None, START), "invalid_dpop_proof"),
        (dpop::proof(&bound.key, "POST", host, token, None, START), "invalid_dpop_proof"),
        (dpop::proof(&bound.key, "POST", RESOURCE, None, None, START), "invalid_dpop_proof"),
        (
            dpop::proof(&bound.key, "POST", RESOURCE, Some(&other), None, START),
            "invalid_dpop_proof",
        ),
        (dpop::proof(&bound.key, "POST", RESOURCE, token, None, START - 91), "invalid_dpop_proof"),
        (dpop::proof(&bound.key, "POST", RESOURCE, token, None, START + 31), "invalid_dpop_proof"),
        (Ok("nonsense".into()), "invalid_dpop_proof"),
    ] {
        let shown = bound.show("DPoP", &bound.token, &[&proof.unwrap()]).await;
        assert_eq!(said(shown), (401, Scheme::Dpop, error.to_owned()));
    }
}

#[tokio::test]
async fn a_token_that_is_not_bound_is_a_bearers() {
    let bound = bound(|server| server);
    let free = bound.world.token(json!({}));
    assert!(bound.show("Bearer", &free, &[]).await.is_ok());
    let proof = dpop::proof(&bound.key, "POST", RESOURCE, Some(&free), None, START).unwrap();
    assert_eq!(said(bound.show("DPoP", &free, &[&proof]).await).2, "invalid_token");
    let elsewhere = bound.world.token(json!({"cnf": {"x5t#S256": "abc"}}));
    assert_eq!(said(bound.show("Bearer", &elsewhere, &[]).await).2, "invalid_token");
}

#[tokio::test]
async fn a_server_can_insist_on_bound_tokens() {
    let bound = bound(ResourceServer::require_dpop);
    let free = bound.world.token(json!({}));
    let shown = said(bound.show("Bearer", &free, &[]).await);
    assert_eq!(shown, (401, Scheme::Dpop, "invalid_token".to_owned()));
    assert!(bound.show("DPoP", &bound.token, &[&bound.proof(None)]).await.is_ok());
    let nothing = bound.world.server.check(&request(&[])).await.unwrap_err();
    assert_eq!(nothing.challenge().unwrap().scheme, Scheme::Dpop);
    assert_eq!(nothing.challenge().unwrap().error, None);
}

#[tokio::test]
async fn a_server_can_demand_its_own_nonces() {
    let bound = bound(|server| server.dpop_nonces(&Secret::new("shared")));
    let denied = bound.show("DPoP", &bound.token, &[&bound.proof(None)]).await.unwrap_err();
    let response = denied.into_response();
    assert_eq!(response.status(), 401);
    let challenge = Challenge::read(response.headers()).unwrap();
    assert_eq!(challenge.error.as_deref(), Some("use_dpop_nonce"));
    let nonce = response.headers()["dpop-nonce"].to_str().unwrap();
    assert!(bound.show("DPoP", &bound.token, &[&bound.proof(Some(nonce))]).await.is_ok());
    let made_up = bound.show("DPoP", &bound.token, &[&bound.proof(Some("x"))]).await;
    assert_eq!(said(made_up).2, "use_dpop_nonce");
}
