use std::collections::BTreeMap;

use url::Url;

use super::*;
use crate::client::{
    grant::{Endpoints, RegisteredBy, Registration},
    random::SystemRandom,
};

const ISSUER: &str = "https://a/t";

fn server() -> ServerMetadata {
    let endpoints = Endpoints { authorize: None, token: "https://a/token".into() };
    ServerMetadata::undescribed(ISSUER.into(), endpoints, None)
}

fn attempt(names_itself: bool) -> Attempt {
    let mut server = server();
    server.names_itself = names_itself;
    Attempt::new(&server, "http://127.0.0.1:1/callback", &SystemRandom).unwrap()
}

fn grant(scopes: &str, resource: Option<&str>) -> Grant {
    Grant {
        issuer: ISSUER.into(),
        resource: resource.map(str::to_owned),
        scopes: scopes.parse().unwrap(),
        registration: Registration::public("client 1", RegisteredBy::Dynamic),
        tokens: None,
        endpoints: server().endpoints,
        proof_key: None,
    }
}

fn query(url: &str) -> BTreeMap<String, String> {
    Url::parse(url).unwrap().query_pairs().into_owned().collect()
}

// req: client-auth:pkce:s256, client-auth:resource-parameter
#[test]
fn a_person_is_sent_with_all_that_is_needed() {
    let attempt = attempt(false);
    let url = attempt.url("https://a/authorize?p=1", &grant("b a", Some("https://h")), None);
    assert!(url.starts_with("https://a/authorize?p=1&response_type=code&"), "{url}");
    let sent = query(&url);
    assert_eq!(sent["client_id"], "client 1");
    assert_eq!(sent["redirect_uri"], "http://127.0.0.1:1/callback");
    assert_eq!(sent["scope"], "a b");
    assert_eq!(sent["resource"], "https://h");
    assert_eq!(sent["code_challenge_method"], "S256");
    assert_eq!(sent["code_challenge"], attempt.challenge());
    assert_eq!(sent["state"], attempt.state.expose());
    assert!(!sent.contains_key("prompt") && !sent.contains_key("dpop_jkt"));
    assert!(!url.contains(attempt.verifier.expose()));

    let url = attempt.url("https://a/authorize", &grant("", None), Some("thumb"));
    let sent = query(&url);
    assert_eq!(sent["dpop_jkt"], "thumb");
    assert!(!sent.contains_key("scope") && !sent.contains_key("resource"));
}

// req: client-auth:authorize:offline-access-consent
#[test]
fn tokens_that_outlive_a_login_need_consent() {
    let url = attempt(false).url("https://a/authorize", &grant("offline_access", None), None);
    assert_eq!(query(&url)["prompt"], "consent");
}

#[test]
fn the_challenge_is_that_of_the_rfc() {
    // RFC 7636 appendix B.
    let mut attempt = attempt(false);
    attempt.verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
    assert_eq!(attempt.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

#[test]
fn no_two_logins_share_anything() {
    let [first, second] = [attempt(false), attempt(false)];
    assert!(first.state != second.state && first.verifier != second.verifier);
    assert!(first.state != first.verifier);
    assert_eq!(first.verifier.expose().len(), 43);
    assert_eq!(first.state.expose().len(), 43);
}

// req: client-auth:authorization-response:iss-verify, client-auth:iss:match, client-auth:iss:mismatch-reject
// req: client-auth:iss:supported-missing-reject, client-auth:iss:unadvertised-proceed
// req: client-auth:iss:no-normalize
#[test]
fn the_issuer_of_an_answer_is_checked() {
    let own = "&iss=https%3A%2F%2Fa%2Ft";
    let wrong = [
        "&iss=https%3A%2F%2Fa%2Ft%2F",
        "&iss=https%3A%2F%2FA%2Ft",
        "&iss=HTTPS%3A%2F%2Fa%2Ft",
        "&iss=https%3A%2F%2Fa%3A443%2Ft",
        "&iss=https%3A%2F%2Fa%2F%2574",
        "&iss=",
        "&iss=x",
    ];
    for names_itself in [true, false] {
        let attempt = attempt(names_itself);
        let read =
            |iss: &str| attempt.read(&format!("code=c&state={}{iss}", attempt.state.expose()));
        assert!(read(own).is_ok());
        assert_eq!(read("").is_ok(), !names_itself);
        for iss in wrong {
            let error = read(iss).err().unwrap();
            assert_eq!(error.kind(), AuthErrorKind::Response, "{names_itself} {iss}");
        }
    }
}

// req: client-auth:state:verify
#[test]
fn only_the_answer_to_this_login_is_taken() {
    let attempt = attempt(false);
    let state = attempt.state.expose();
    for good in [
        format!("http://127.0.0.1:1/callback?code=c&state={state}"),
        format!("http://127.0.0.1:1/callback?code=c&state={state}#x"),
        format!("https://h/callback?own=1&code=c&state={state}"),
        format!("app:/callback?state={state}&code=c"),
        format!("?code=c&state={state}"),
        format!("code=c&state={state}"),
        format!("state={state}&code=c&iss=https://a/t&other=a?b=c"),
        format!("/callback?code=c&state={state}"),
    ] {
        assert_eq!(attempt.read(&good).ok().unwrap().expose(), "c", "{good}");
    }
    for bad in [
        String::new(),
        "code=c".to_owned(),
        "code=c&state=".to_owned(),
        "code=c&state=other".to_owned(),
        format!("code=c&state={state}x"),
        format!("state={state}"),
        format!("code=&state={state}"),
        format!("code=c&code=d&state={state}"),
        format!("code=c&state={state}&state={state}"),
        format!("http://127.0.0.1:1/callback#code=c&state={state}"),
        format!("code=c&state={state}&x={}", "y".repeat(17 * 1024)),
    ] {
        let error = attempt.read(&bad).err().unwrap();
        assert_eq!(error.kind(), AuthErrorKind::Response, "{bad}");
        assert!(!error.to_string().contains(state));
    }
}

// req: client-auth:authorize:error-surfaces, client-auth:iss:mismatch-reject
#[test]
fn a_refusal_is_told_once_it_is_known_whose_it_is() {
    let attempt = attempt(true);
    let state = attempt.state.expose();
    let own = "iss=https%3A%2F%2Fa%2Ft";
    let said = format!("error=access_denied&error_description=No%0Away+{state}&state={state}");
    let error = attempt.read(&format!("{said}&{own}")).err().unwrap();
    assert_eq!(error.kind(), AuthErrorKind::Refused);
    assert_eq!(error.oauth_code(), Some("access_denied"));
    assert_eq!(error.to_string(), "the login was refused: access_denied (Noway …)");
    for (code, kind) in [
        ("invalid_scope", AuthErrorKind::Scope),
        ("temporarily_unavailable", AuthErrorKind::Unreachable),
        ("anything", AuthErrorKind::Refused),
    ] {
        let answer = format!("error={code}&state={state}&{own}");
        assert_eq!(attempt.read(&answer).err().unwrap().kind(), kind, "{code}");
    }
    for other in [said.clone(), format!("{said}&iss=https%3A%2F%2Fevil.example")] {
        let error = attempt.read(&other).err().unwrap();
        assert_eq!(error.kind(), AuthErrorKind::Response);
        assert_eq!(error.oauth_code(), None);
        assert!(!error.to_string().contains("access_denied"), "{error}");
    }
}
