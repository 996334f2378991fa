//! Where someone logs in: discovery, the three ways to be a client, the methods at the token
//! endpoint.

use super::*;
use crate::client::{
    grant::{Endpoints, RegisteredBy, TokenAuth},
    settings::{Pinned, Registered, ResourceParameter},
};

// req: flow:oauth:authorization-code-roundtrip, client-auth:resource-parameter
#[test]
fn all_of_it_from_a_challenge_to_tokens() {
    let mut provider = Provider::new();
    let grant = provider.authorize(&Settings::default(), asked()).unwrap();
    let register = format!("{ISSUER}/register");
    let token = format!("{ISSUER}/token");
    assert_eq!(provider.urls(), [HINT, DESCRIBED, &register, &token]);
    assert_eq!(provider.recalls, [ISSUER]);
    assert_eq!(provider.sent[2].json["application_type"], "native");
    assert_eq!(provider.sent[2].json["token_endpoint_auth_method"], "none");

    let login = &provider.logins[0];
    assert_eq!(login["at"], format!("{ISSUER}/authorize"));
    assert_eq!(login["client_id"], "dynamic");
    assert_eq!(login["resource"], SERVER);
    assert!(!login.contains_key("scope"), "none was asked for");

    let form = &provider.sent[3].form;
    assert_eq!(form["client_id"], "dynamic");
    assert_eq!(form["resource"], SERVER);
    assert!(!form.contains_key("client_secret"));
    assert!(!provider.sent[3].headers.contains_key("authorization"));

    assert_eq!(grant.issuer, ISSUER);
    assert_eq!(grant.resource.as_deref(), Some(SERVER));
    assert_eq!(grant.endpoints.token, token);
    assert_eq!(grant.registration.origin, RegisteredBy::Dynamic);
    let tokens = grant.tokens.unwrap();
    assert_eq!(tokens.access.expose(), "hide-token");
    assert_eq!(tokens.refresh.unwrap().expose(), "hide-refresh");
    assert_eq!(tokens.expires_at, Some(NOW + 3600));
    assert!(grant.proof_key.is_none());
}

// req: client-auth:prm-discovery:fallback-order, client-auth:as-metadata-discovery:priority-order
#[test]
fn documents_are_found_wherever_they_may_be() {
    const ROOT: &str = "https://mcp.example/.well-known/oauth-protected-resource";
    const CUSTOM: &str = "https://mcp.example/custom/location.json";
    const OPENID: &str = "https://auth.example/.well-known/openid-configuration";
    const TENANT: &str = "https://auth.example/tenant1";
    const INSERTED: &str = "https://auth.example/.well-known/oauth-authorization-server/tenant1";
    const INSERTED_OPENID: &str = "https://auth.example/.well-known/openid-configuration/tenant1";
    const APPENDED: &str = "https://auth.example/tenant1/.well-known/openid-configuration";
    // Hint, where the protected server is described and as what; where the other one is and as
    // what; all addresses that are asked.
    type Case<'a> = (Option<&'a str>, &'a str, &'a str, &'a str, &'a str, &'a [&'a str]);
    let origin = "https://mcp.example";
    let cases: [Case<'_>; 5] = [
        (None, HINT, SERVER, OPENID, ISSUER, &[HINT, DESCRIBED, OPENID]),
        (None, ROOT, origin, INSERTED, TENANT, &[HINT, ROOT, INSERTED]),
        (
            Some(CUSTOM),
            CUSTOM,
            SERVER,
            APPENDED,
            TENANT,
            &[CUSTOM, INSERTED, INSERTED_OPENID, APPENDED],
        ),
        // The hint leads nowhere.
        (Some(CUSTOM), ROOT, origin, DESCRIBED, ISSUER, &[CUSTOM, HINT, ROOT, DESCRIBED]),
        (Some(HINT), HINT, SERVER, DESCRIBED, ISSUER, &[HINT, DESCRIBED]),
    ];
    for (hint, at, name, described_at, issuer, expected) in cases {
        let mut provider = Provider::empty();
        provider.documents.insert(at.into(), resource(name, &[issuer]));
        provider.documents.insert(described_at.into(), described(issuer));
        provider.login_adds = format!("&iss={}", encoded(issuer));
        let mut asked = asked();
        asked.challenge.as_mut().unwrap().resource_metadata = hint.map(str::to_owned);
        let grant = provider.authorize(&Settings::default(), asked).unwrap();
        assert_eq!(&provider.urls()[..expected.len()], expected);
        assert_eq!(provider.urls().len(), expected.len() + 2);
        // Byte for byte, without a slash that an address parser would add.
        assert_eq!(grant.resource.as_deref(), Some(name));
        assert_eq!(provider.logins[0]["resource"], name);
        assert_eq!(provider.sent.last().unwrap().form["resource"], name);
        assert_eq!(grant.issuer, issuer);
    }
}

#[test]
fn a_server_that_is_down_is_not_looked_for_elsewhere() {
    for at in [HINT, DESCRIBED] {
        let mut provider = Provider::new();
        provider.broken.insert(at.into(), 503);
        let error = provider.authorize(&Settings::default(), asked()).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable);
        assert_eq!(provider.urls().last(), Some(&at));
    }
    let (mut flow, _) = Flow::authorize(tools(&Settings::default()), asked());
    let gone = AuthError::new(AuthErrorKind::Forbidden, "not there");
    let Step::Failed(error) = flow.answer(Answer::Unreachable(gone.clone())) else { panic!() };
    assert_eq!(error, gone);
}

// req: client-auth:cimd
#[test]
fn a_clients_document_is_its_name() {
    let mut provider = Provider::new();
    provider.edit(DESCRIBED, "client_id_metadata_document_supported", true.into());
    let settings = Settings {
        document: Some("https://client.example/client.json".into()),
        ..Settings::default()
    };
    let grant = provider.authorize(&settings, asked()).unwrap();
    assert_eq!(provider.logins[0]["client_id"], "https://client.example/client.json");
    assert_eq!(provider.sent[2].form["client_id"], "https://client.example/client.json");
    assert_eq!(grant.registration.origin, RegisteredBy::Document);
    assert!(provider.recalls.is_empty());
}

fn registered(issuer: &str) -> Settings {
    let mut registered = Registered::new("known");
    registered.issuer = Some(issuer.into());
    registered.secret = Some(Secret::new("hide-known"));
    Settings { registered: Some(registered), ..Settings::default() }
}

// req: client-auth:pre-registration
#[test]
fn a_client_that_was_registered_beforehand_is_used() {
    let mut provider = Provider::new();
    provider.edit(DESCRIBED, "registration_endpoint", Value::Null);
    provider.edit(DESCRIBED, "token_endpoint_auth_methods_supported", Value::Null);
    let grant = provider.authorize(&registered(ISSUER), asked()).unwrap();
    assert_eq!(provider.logins[0]["client_id"], "known");
    let sent = &provider.sent[2];
    assert_eq!(sent.headers["authorization"], basic("known", "hide-known"));
    assert!(!sent.form.contains_key("client_secret"));
    assert_eq!(grant.registration.method, TokenAuth::Basic);

    let mut provider = Provider::new();
    let error = provider.authorize(&registered("https://other.example"), asked()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Registration);
    assert!(provider.logins.is_empty());
}

#[test]
fn of_several_authorization_servers_the_known_one_is_taken() {
    let second = "https://second.example";
    let described_at = format!("{second}/.well-known/oauth-authorization-server");
    let mut provider = Provider::new();
    provider.documents.insert(HINT.into(), resource(SERVER, &[ISSUER, second]));
    provider.documents.insert(described_at, described(second));
    let first = provider.authorize(&Settings::default(), asked()).unwrap();
    assert_eq!(first.issuer, ISSUER);
    provider.login_adds = format!("&iss={}", encoded(second));
    assert_eq!(provider.authorize(&registered(second), asked()).unwrap().issuer, second);
    let pinned = Some(Pinned { issuer: second.into(), endpoints: None });
    let settings = Settings { pinned, ..Settings::default() };
    assert_eq!(provider.authorize(&settings, asked()).unwrap().issuer, second);
    let previous = Some(Grant { issuer: second.into(), ..first });
    let asked = Asked { previous, ..asked() };
    assert_eq!(provider.authorize(&Settings::default(), asked).unwrap().issuer, second);
}

// req: client-auth:token-endpoint-auth-method
#[test]
fn the_registered_method_is_used() {
    for (method, in_header, in_form) in [
        ("client_secret_basic", true, false),
        ("client_secret_post", false, true),
        ("none", false, false),
    ] {
        let mut provider = Provider::new();
        provider.edit(DESCRIBED, "token_endpoint_auth_methods_supported", json!([method]));
        provider.registration.1["token_endpoint_auth_method"] = method.into();
        provider.authorize(&Settings::default(), asked()).unwrap();
        assert_eq!(provider.sent[2].json["token_endpoint_auth_method"], method);
        let sent = &provider.sent[3];
        let header = sent.headers.get("authorization").map(|value| value.to_str().unwrap());
        let expected = basic("dynamic", "hide-dynamic");
        assert_eq!(header, in_header.then_some(expected.as_str()), "{method}");
        let secret = sent.form.get("client_secret").map(String::as_str);
        assert_eq!(secret, in_form.then_some("hide-dynamic"), "{method}");
    }
}

// req: client-auth:dcr:registration-error-surfaces
#[test]
fn a_registration_that_is_refused_ends_it() {
    let mut provider = Provider::new();
    provider.registration =
        (400, json!({ "error": "invalid_redirect_uri", "error_description": "no loopback" }));
    let error = provider.authorize(&Settings::default(), asked()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Registration);
    assert!(error.to_string().contains("no loopback"));
    assert!(provider.logins.is_empty());
}

#[test]
fn a_registration_is_recalled_for_the_same_redirect() {
    let mut known = Registration::public("earlier", RegisteredBy::Dynamic);
    known.redirect_uri = Some(REDIRECT.into());
    let mut provider = Provider::new();
    provider.recalled = Some(known.clone());
    provider.authorize(&Settings::default(), asked()).unwrap();
    assert_eq!(provider.logins[0]["client_id"], "earlier");
    assert_eq!(provider.sent.len(), 3, "nothing is registered");

    known.redirect_uri = Some("http://127.0.0.1:8/callback".into());
    let mut provider = Provider::new();
    provider.recalled = Some(known);
    provider.authorize(&Settings::default(), asked()).unwrap();
    assert_eq!(provider.logins[0]["client_id"], "dynamic");
}

#[test]
fn without_anyone_to_log_in_it_is_said_what_is_needed() {
    let mut provider = Provider::new();
    let asked = Asked { redirect_uri: None, ..challenged("a") };
    let error = provider.authorize(&Settings::default(), asked.clone()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Required);
    assert_eq!(error.challenge(), asked.challenge.as_ref());
    assert_eq!(provider.sent.len(), 2, "nothing is registered");
    let (mut flow, _) = Flow::authorize(tools(&Settings::default()), super::asked());
    let late = AuthError::new(AuthErrorKind::NotLoggedIn, "too late");
    assert!(matches!(flow.answer(Answer::NotLoggedIn(late)), Step::Failed(_)));
}

#[test]
fn the_resource_can_be_fixed_or_left_out() {
    for (parameter, expected) in [
        (ResourceParameter::Omit, None),
        (ResourceParameter::Fixed("api://x".into()), Some("api://x")),
    ] {
        let mut provider = Provider::new();
        let settings = Settings { resource: parameter, ..Settings::default() };
        let grant = provider.authorize(&settings, asked()).unwrap();
        assert_eq!(grant.resource.as_deref(), expected);
        assert_eq!(provider.logins[0].get("resource").map(String::as_str), expected);
        provider.refresh(&grant).unwrap();
        for sent in provider.token_requests() {
            assert_eq!(sent.form.get("resource").map(String::as_str), expected);
        }
    }
}

// req: client-auth:iss:opt-out
#[test]
fn pinned_endpoints_need_no_description() {
    let mut provider = Provider::empty();
    provider.login_adds = String::new();
    let endpoints = Endpoints {
        authorize: Some("https://auth.example/a?x=1".into()),
        token: "https://auth.example/t".into(),
    };
    let pinned = Pinned { issuer: ISSUER.into(), endpoints: Some(endpoints) };
    let settings = Settings { pinned: Some(pinned), ..registered(ISSUER) };
    let grant = provider.authorize(&settings, Asked { challenge: None, ..asked() }).unwrap();
    assert_eq!(provider.urls().last(), Some(&"https://auth.example/t"));
    assert_eq!(provider.urls().len(), 3, "no authorization server's document is looked for");
    assert_eq!(provider.logins[0]["x"], "1");
    assert_eq!(grant.resource.as_deref(), Some(SERVER));

    // So that a document with a wrong name is no hindrance. An answer with one still is.
    let mut provider = Provider::new();
    provider.edit(DESCRIBED, "issuer", "https://other.example".into());
    let error = provider.authorize(&registered(ISSUER), asked()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Metadata);
    provider.authorize(&settings, asked()).unwrap();
    provider.sent.clear();
    provider.login_adds = format!("&iss={}", encoded("https://other.example"));
    let error = provider.authorize(&settings, asked()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Response);
    assert!(provider.token_requests().is_empty());

    let mut provider = Provider::new();
    provider.documents.insert(HINT.into(), resource(SERVER, &["https://other.example"]));
    let error = provider.authorize(&settings, asked()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Metadata);
}

#[test]
fn on_this_machine_nothing_need_be_encrypted() {
    let (server, issuer) = ("http://localhost:9/mcp", "http://localhost:8");
    let at = "http://localhost:9/.well-known/oauth-protected-resource/mcp";
    let described_at = format!("{issuer}/.well-known/oauth-authorization-server");
    let mut provider = Provider::empty();
    provider.documents.insert(at.into(), resource(server, &[issuer]));
    provider.documents.insert(described_at, described(issuer));
    provider.login_adds = format!("&iss={}", encoded(issuer));
    let asked = Asked { server_url: server.into(), challenge: None, ..asked() };
    let grant = provider.authorize(&Settings::default(), asked).unwrap();
    assert_eq!(grant.issuer, issuer);
    assert_eq!(grant.resource.as_deref(), Some(server));
}
