//! Tokens that are bound to a key.

use super::*;
use crate::{
    Scheme,
    client::settings::{DpopUse, IdentityProvider, Registered, Way},
};

fn provider(algorithms: Value) -> Provider {
    let mut provider = Provider::new();
    provider.edit(DESCRIBED, "dpop_signing_alg_values_supported", algorithms);
    provider
}

fn bound(token: &str) -> (u16, Option<&'static str>, Value) {
    let mut body = given(token);
    body["token_type"] = "DPoP".into();
    (200, None, body)
}

fn wants_nonce(nonce: &'static str) -> (u16, Option<&'static str>, Value) {
    (400, Some(nonce), json!({ "error": "use_dpop_nonce" }))
}

fn demanding() -> Asked {
    let mut asked = asked();
    asked.challenge.as_mut().unwrap().scheme = Scheme::Dpop;
    asked
}

fn part(proof: &str, at: usize) -> Value {
    let part = proof.split('.').nth(at).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn proofs(provider: &Provider) -> Vec<String> {
    let proofs = provider.token_requests().into_iter().map(|sent| {
        assert_eq!(sent.headers.get_all("dpop").iter().count(), 1);
        sent.headers["dpop"].to_str().unwrap().to_owned()
    });
    proofs.collect()
}

#[test]
fn a_token_is_bound_where_the_server_demands_it() {
    let mut provider = provider(json!(["ES256"]));
    provider.tokens.push_back(bound("hide-bound"));
    let grant = provider.authorize(&Settings::default(), demanding()).unwrap();
    let proof = &proofs(&provider)[0];
    let header = part(proof, 0);
    assert_eq!(header["typ"], "dpop+jwt");
    assert_eq!(header["alg"], "ES256");
    assert!(header["jwk"].get("d").is_none());
    let claims = part(proof, 1);
    assert_eq!(claims["htm"], "POST");
    assert_eq!(claims["htu"], "https://auth.example/token");
    assert_eq!(claims["iat"], NOW);
    assert!(claims.get("nonce").is_none() && claims.get("ath").is_none());

    // The key is the grant's, also after it was kept.
    let kept = Grant::from_record(&grant.to_record()).unwrap();
    let key = SigningKey::from_pkcs8(&kept.proof_key.unwrap()).unwrap();
    assert_eq!(provider.logins[0]["dpop_jkt"], key.thumbprint());
    assert_eq!(part(proof, 0)["jwk"]["x"], key.public_jwk()["x"]);
    assert_eq!(grant.tokens.unwrap().scheme, Scheme::Dpop);
}

#[test]
fn a_nonce_is_used_when_it_is_wanted() {
    let mut provider = provider(json!(["ES256"]));
    provider.tokens.extend([wants_nonce("n-1"), bound("hide-bound")]);
    let grant = provider.authorize(&Settings::default(), demanding()).unwrap();
    let [first, second] = &proofs(&provider)[..] else { panic!() };
    assert!(part(first, 1).get("nonce").is_none());
    assert_eq!(part(second, 1)["nonce"], "n-1");
    assert_ne!(part(first, 1)["jti"], part(second, 1)["jti"]);
    assert_eq!(part(first, 0)["jwk"], part(second, 0)["jwk"]);
    assert_eq!(provider.token_requests()[0].form, provider.token_requests()[1].form);

    // When it is renewed too, with the same key.
    provider.tokens.extend([wants_nonce("n-2"), bound("hide-renewed")]);
    let renewed = provider.refresh(&grant).unwrap();
    let renewals = &proofs(&provider)[2..];
    assert_eq!(part(&renewals[1], 1)["nonce"], "n-2");
    assert_eq!(part(&renewals[0], 0)["jwk"], part(first, 0)["jwk"]);
    assert!(renewed.proof_key == grant.proof_key);
}

#[test]
fn a_server_that_is_never_content_is_not_asked_for_ever() {
    let mut provider = provider(json!(["ES256"]));
    provider.tokens.extend([wants_nonce("n-1"), wants_nonce("n-2"), wants_nonce("n-3")]);
    let error = provider.authorize(&Settings::default(), demanding()).unwrap_err();
    assert_eq!(error.oauth_code(), Some("use_dpop_nonce"));
    assert_eq!(provider.token_requests().len(), 2);
}

#[test]
fn a_key_is_used_only_where_it_is_of_use() {
    let with = |dpop| Settings { dpop, ..Settings::default() };
    let es256 = json!(["ES256"]);
    let cases = [
        (DpopUse::Auto, es256.clone(), demanding(), true),
        (DpopUse::Auto, es256.clone(), asked(), false),
        (DpopUse::Auto, Value::Null, demanding(), false),
        (DpopUse::Auto, json!(["RS256"]), demanding(), false),
        (DpopUse::Always, es256.clone(), asked(), true),
        (DpopUse::Always, Value::Null, asked(), true),
        (DpopUse::Never, es256.clone(), demanding(), false),
    ];
    for (dpop, algorithms, asked, expected) in cases {
        let mut provider = provider(algorithms.clone());
        if expected {
            provider.tokens.push_back(bound("hide-bound"));
        }
        let grant = provider.authorize(&with(dpop), asked).unwrap();
        let sent = provider.token_requests()[0];
        assert_eq!(sent.headers.contains_key("dpop"), expected, "{dpop:?} {algorithms}");
        assert_eq!(grant.proof_key.is_some(), expected);
    }
    let mut other = provider(json!(["RS256"]));
    let error = other.authorize(&with(DpopUse::Always), asked()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Metadata);

    let mut described = provider(es256);
    described.edit(HINT, "dpop_bound_access_tokens_required", true.into());
    described.tokens.push_back(bound("hide-bound"));
    assert!(described.authorize(&with(DpopUse::Auto), asked()).unwrap().proof_key.is_some());
}

#[test]
fn a_token_that_is_not_bound_is_not_taken_for_one_that_is() {
    let mut provider = provider(json!(["ES256"]));
    let error = provider.authorize(&Settings::default(), demanding()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Response);
    provider.tokens.push_back(bound("hide-bound"));
    let error = provider.authorize(&Settings::default(), asked()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Response);
}

/// By its own secret, by what an organization says of a person, by what a platform says of a program.
#[test]
fn without_a_person_tokens_are_bound_too_with_the_nonce_that_is_wanted() {
    let organization = IdentityProvider::new("https://idp.example/token", "client-at-idp");
    for way in [Way::ClientCredentials, Way::Enterprise(organization), Way::Workload] {
        let mut registered = Registered::new("service");
        registered.secret = Some(Secret::new("hide-secret"));
        let is_enterprise = matches!(way, Way::Enterprise(_));
        let settings = Settings { way, registered: Some(registered), ..Settings::default() };
        let mut provider = provider(json!(["ES256"]));
        provider.identity = Some("hide-identity");
        if is_enterprise {
            let kind = "urn:ietf:params:oauth:token-type:id-jag";
            let body = json!({ "access_token": "hide-jag", "token_type": "N_A", "issued_token_type": kind });
            provider.tokens.push_back((200, None, body));
        }
        provider.tokens.extend([wants_nonce("n-1"), bound("hide-bound")]);
        let asked = Asked { redirect_uri: None, ..demanding() };
        let grant = provider.authorize(&settings, asked).unwrap();
        assert_eq!(grant.tokens.as_ref().unwrap().scheme, Scheme::Dpop);
        if is_enterprise {
            // What it gives is no access token, so that nothing is bound there.
            let at = provider.sent.iter().position(|sent| sent.form.contains_key("subject_token"));
            assert!(!provider.sent.remove(at.unwrap()).headers.contains_key("dpop"));
        }
        let [first, second] = &proofs(&provider)[..] else { panic!() };
        assert!(part(first, 1).get("nonce").is_none());
        assert_eq!(part(second, 1)["nonce"], "n-1");
        assert_ne!(part(first, 1)["jti"], part(second, 1)["jti"]);
        let key = SigningKey::from_pkcs8(&grant.proof_key.unwrap()).unwrap();
        for proof in [first, second] {
            assert_eq!(part(proof, 0)["jwk"]["x"], key.public_jwk()["x"]);
            assert_eq!(part(proof, 1)["htu"], "https://auth.example/token");
        }
        assert_eq!(provider.token_requests()[0].form, provider.token_requests()[1].form);
    }
}
