//! What is not believed: other resources, other issuers, answers that are not to this login.

use super::*;

fn fails(provider: &mut Provider, kind: AuthErrorKind) -> AuthError {
    let error = provider.authorize(&Settings::default(), asked()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error
}

// req: client-auth:prm-resource-mismatch
#[test]
fn a_description_of_another_server_is_refused() {
    let mut provider = Provider::new();
    provider.edit(HINT, "resource", "https://evil.example.com/mcp".into());
    fails(&mut provider, AuthErrorKind::Metadata);
    assert_eq!(provider.urls(), [HINT]);
}

#[test]
fn a_description_must_name_an_authorization_server() {
    for servers in [json!([]), Value::Null] {
        let mut provider = Provider::new();
        provider.edit(HINT, "authorization_servers", servers);
        fails(&mut provider, AuthErrorKind::Metadata);
        assert_eq!(provider.urls(), [HINT]);
    }
}

// req: client-auth:as-metadata-discovery:issuer-validation
#[test]
fn a_description_of_another_issuer_is_refused() {
    for issuer in ["https://attacker.example.com", "https://auth.example/"] {
        let mut provider = Provider::new();
        provider.edit(DESCRIBED, "issuer", issuer.into());
        fails(&mut provider, AuthErrorKind::Metadata);
        assert_eq!(provider.urls(), [HINT, DESCRIBED]);
        assert!(provider.logins.is_empty());
    }
}

#[test]
fn a_named_authorization_server_must_describe_itself() {
    let mut provider = Provider::new();
    provider.documents.remove(DESCRIBED);
    fails(&mut provider, AuthErrorKind::Metadata);
    assert!(provider.logins.is_empty());
}

#[test]
fn unsafe_addresses_are_not_asked() {
    let mut provider = Provider::new();
    let mut asked = asked();
    asked.challenge.as_mut().unwrap().resource_metadata = Some("http://mcp.example/x".into());
    let error = provider.authorize(&Settings::default(), asked).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Forbidden);
    assert!(provider.sent.is_empty());

    let mut provider = Provider::new();
    provider.documents.insert(HINT.into(), resource(SERVER, &["http://auth.example"]));
    fails(&mut provider, AuthErrorKind::Forbidden);
    assert_eq!(provider.urls(), [HINT]);

    let mut provider = Provider::new();
    provider.edit(DESCRIBED, "authorization_endpoint", "javascript:alert(1)".into());
    fails(&mut provider, AuthErrorKind::Forbidden);
    assert!(provider.logins.is_empty());
}

// req: client-auth:pkce:refuse-if-unsupported
#[test]
fn without_s256_nobody_is_sent_to_log_in() {
    for methods in [Value::Null, json!([]), json!(["plain"])] {
        let mut provider = Provider::new();
        provider.edit(DESCRIBED, "code_challenge_methods_supported", methods);
        fails(&mut provider, AuthErrorKind::Metadata);
        assert!(provider.logins.is_empty());
        assert_eq!(provider.urls(), [HINT, DESCRIBED], "nothing is registered");
    }
}

// req: client-auth:authorization-response:iss-verify, client-auth:iss:match, client-auth:iss:mismatch-reject
// req: client-auth:iss:supported-missing-reject, client-auth:iss:unadvertised-proceed
// req: client-auth:iss:no-normalize
#[test]
fn the_issuer_of_the_answer_decides() {
    let own = format!("&iss={}", encoded(ISSUER));
    let slash = format!("&iss={}", encoded("https://auth.example/"));
    let evil = format!("&iss={}", encoded("https://evil.example.com"));
    let cases = [
        (true, own.as_str(), true),
        (true, "", false),
        (true, &evil, false),
        (true, &slash, false),
        (false, "", true),
        (false, &own, true),
        (false, &evil, false),
        (false, &slash, false),
    ];
    for (says, adds, expected) in cases {
        let mut provider = Provider::new();
        let says = if says { true.into() } else { Value::Null };
        provider.edit(DESCRIBED, "authorization_response_iss_parameter_supported", says);
        provider.login_adds = adds.to_owned();
        let result = provider.authorize(&Settings::default(), asked());
        assert_eq!(provider.logins.len(), 1);
        assert_eq!(provider.token_requests().len(), usize::from(expected), "{adds}");
        match result {
            Ok(_) => assert!(expected),
            Err(error) => assert_eq!(error.kind(), AuthErrorKind::Response),
        }
    }
}

// req: client-auth:state:verify
#[test]
fn an_answer_to_another_login_buys_nothing() {
    let (mut flow, mut step) = Flow::authorize(tools(&Settings::default()), asked());
    let mut provider = Provider::new();
    loop {
        let answer = match step {
            Step::Send(request) => Answer::Response(provider.respond(&request)),
            Step::Recall(_) => Answer::Recalled(None),
            Step::LogIn(_) => break,
            other => panic!("{other:?}"),
        };
        assert!(flow.registration().is_none());
        step = flow.answer(answer);
    }
    let (issuer, registration) = flow.registration().unwrap();
    assert_eq!((issuer, registration.client_id.as_str()), (ISSUER, "dynamic"));
    let forged = format!("{REDIRECT}?code=hide-code&state=forged&iss={}", encoded(ISSUER));
    let Step::Failed(error) = flow.answer(Answer::CalledBack(forged)) else { panic!() };
    assert_eq!(error.kind(), AuthErrorKind::Response);
    assert!(provider.token_requests().is_empty());
}

// req: client-auth:authorize:error-surfaces
#[test]
fn who_says_no_is_heard() {
    let mut provider = Provider::new();
    provider.login_adds =
        format!("&error=access_denied&error_description=Not+you&iss={}", encoded(ISSUER));
    let error = fails(&mut provider, AuthErrorKind::Refused);
    assert_eq!(error.oauth_code(), Some("access_denied"));
    assert!(error.to_string().contains("Not you"));
    assert!(provider.token_requests().is_empty());
}

#[test]
fn a_code_that_is_refused_is_not_tried_again() {
    let refusal = json!({ "error": "invalid_grant", "error_description": "hide-code was used" });
    for (status, body, kind) in [
        (400, refusal, AuthErrorKind::Expired),
        (500, json!({}), AuthErrorKind::Unreachable),
        (200, json!("<html>"), AuthErrorKind::Unreachable),
    ] {
        let mut provider = Provider::new();
        provider.tokens.push_back((status, None, body));
        fails(&mut provider, kind);
        assert_eq!(provider.token_requests().len(), 1);
    }
}

#[test]
fn an_answer_out_of_order_ends_it() {
    for answer in [
        Answer::Recalled(None),
        Answer::CalledBack("code=x".into()),
        Answer::Identity(Secret::new("hide-identity")),
    ] {
        assert!(!format!("{answer:?}").contains("hide-"));
        let (mut flow, _) = Flow::authorize(tools(&Settings::default()), asked());
        assert!(matches!(flow.answer(answer), Step::Failed(_)));
    }
    let (_, step) = Flow::authorize(tools(&Settings::default()), Asked::new("no address"));
    assert!(matches!(step, Step::Failed(_)));
}
