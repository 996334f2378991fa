//! Servers of the revision 2025-03-26, which describe themselves at their root or not at all.

use super::*;

const ORIGIN: &str = "https://mcp.example";
const ROOT: &str = "https://mcp.example/.well-known/oauth-protected-resource";
const AT_ORIGIN: &str = "https://mcp.example/.well-known/oauth-authorization-server";
const OPENID: &str = "https://mcp.example/.well-known/openid-configuration";

fn legacy() -> (Provider, Asked) {
    let mut provider = Provider::empty();
    provider.login_adds = String::new();
    (provider, Asked { challenge: None, ..asked() })
}

// req: client-auth:prm-discovery:no-prm-fallback
#[test]
fn a_server_may_be_its_own_authorization_server() {
    for issuer in [ORIGIN, "https://mcp.example/"] {
        let (mut provider, asked) = legacy();
        let mut document = described(issuer);
        document["authorization_endpoint"] = "https://mcp.example/oauth/authorize".into();
        document["token_endpoint"] = "https://mcp.example/oauth/token".into();
        document["registration_endpoint"] = "https://mcp.example/oauth/register".into();
        document["authorization_response_iss_parameter_supported"] = false.into();
        provider.documents.insert(AT_ORIGIN.into(), document);
        let grant = provider.authorize(&Settings::default(), asked).unwrap();
        let expected = [
            HINT,
            ROOT,
            AT_ORIGIN,
            "https://mcp.example/oauth/register",
            "https://mcp.example/oauth/token",
        ];
        assert_eq!(provider.urls(), expected);
        assert_eq!(grant.issuer, issuer);
        assert_eq!(grant.resource.as_deref(), Some(SERVER));
    }
    let (mut provider, asked) = legacy();
    provider.documents.insert(AT_ORIGIN.into(), described("https://other.example"));
    let error = provider.authorize(&Settings::default(), asked).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Metadata);
    assert!(provider.logins.is_empty());
}

// req: client-auth:prm-discovery:no-prm-fallback
#[test]
fn without_any_description_there_is_a_convention() {
    let (mut provider, asked) = legacy();
    let grant = provider.authorize(&Settings::default(), asked).unwrap();
    let expected = [
        HINT,
        ROOT,
        AT_ORIGIN,
        OPENID,
        "https://mcp.example/register",
        "https://mcp.example/token",
    ];
    assert_eq!(provider.urls(), expected);
    assert_eq!(provider.logins[0]["at"], "https://mcp.example/authorize");
    assert_eq!(provider.logins[0]["code_challenge_method"], "S256");
    assert_eq!(provider.logins[0]["resource"], SERVER);
    assert_eq!(grant.issuer, ORIGIN);

    // An answer that says that it is from elsewhere is refused here too.
    let (mut provider, asked) = legacy();
    provider.login_adds = format!("&iss={}", encoded("https://evil.example"));
    let error = provider.authorize(&Settings::default(), asked).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Response);
}

#[test]
fn a_server_that_is_down_is_not_taken_for_an_old_one() {
    for at in [HINT, ROOT, AT_ORIGIN, OPENID] {
        let (mut provider, asked) = legacy();
        provider.broken.insert(at.into(), 502);
        let error = provider.authorize(&Settings::default(), asked).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable, "{at}");
        assert!(provider.logins.is_empty());
    }
}

#[test]
fn the_address_of_the_server_stands_for_the_resource() {
    for (server, expected) in [
        ("https://mcp.example", "https://mcp.example"),
        ("https://mcp.example/", "https://mcp.example"),
        ("https://mcp.example/mcp?key=hide-key#x", "https://mcp.example/mcp"),
        ("https://me:hide-word@mcp.example/mcp", "https://mcp.example/mcp"),
        ("http://localhost:8080/mcp", "http://localhost:8080/mcp"),
    ] {
        let (mut provider, asked) = legacy();
        let asked = Asked { server_url: server.into(), ..asked };
        assert!(!format!("{asked:?}").contains("hide-"));
        let (mut flow, mut step) = Flow::authorize(tools(&Settings::default()), asked);
        let login = loop {
            let answer = match step {
                Step::Send(request) => Answer::Response(provider.respond(&request)),
                Step::Recall(_) => Answer::Recalled(None),
                Step::LogIn(request) => break request,
                other => panic!("{other:?}"),
            };
            step = flow.answer(answer);
        };
        let url = Url::parse(&login.url).unwrap();
        let pairs: Pairs = url.query_pairs().into_owned().collect();
        assert_eq!(pairs["resource"], expected);
        assert!(!login.url.contains("hide-") && !format!("{flow:?}").contains("hide-"));
    }
}
