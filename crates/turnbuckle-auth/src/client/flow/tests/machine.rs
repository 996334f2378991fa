//! Where nobody logs in.

use super::*;
use crate::client::{
    grant::TokenAuth,
    settings::{IdentityProvider, Registered, Way},
};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const IDP: &str = "https://idp.example/token";

fn settings(way: Way, secret: Option<&str>) -> Settings {
    let mut registered = Registered::new("service");
    registered.secret = secret.map(Secret::new);
    Settings { way, registered: Some(registered), ..Settings::default() }
}

fn unattended() -> Asked {
    Asked { redirect_uri: None, ..challenged("a") }
}

fn provider() -> Provider {
    let mut provider = Provider::new();
    provider.edit(DESCRIBED, "token_endpoint_auth_methods_supported", Value::Null);
    // What only people need is not asked for.
    provider.edit(DESCRIBED, "code_challenge_methods_supported", Value::Null);
    provider.edit(DESCRIBED, "authorization_endpoint", Value::Null);
    provider.edit(DESCRIBED, "scopes_supported", json!(["offline_access"]));
    provider
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

// req: client-auth:client-credentials
#[test]
fn a_client_asks_by_its_secret() {
    let mut provider = provider();
    let settings = settings(Way::ClientCredentials, Some("hide-s:1"));
    let grant = provider.authorize(&settings, unattended()).unwrap();
    assert_eq!(provider.urls(), [HINT, DESCRIBED, "https://auth.example/token"]);
    let sent = &provider.sent[2];
    assert_eq!(sent.headers["authorization"], basic("service", "hide-s%3A1"));
    let expected = [("grant_type", "client_credentials"), ("resource", SERVER), ("scope", "a")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(sent.form, Pairs::from(expected));
    assert_eq!(grant.tokens.unwrap().access.expose(), "hide-token");
    assert!(provider.logins.is_empty() && provider.recalls.is_empty());
}

// req: client-auth:client-credentials, client-auth:private-key-jwt
#[test]
fn a_client_asks_by_its_signature() {
    let mut provider = provider();
    let key = SigningKey::generate().unwrap();
    let settings = Settings { key: Some(key.clone()), ..settings(Way::ClientCredentials, None) };
    let grant = provider.authorize(&settings, unattended()).unwrap();
    assert_eq!(grant.registration.method, TokenAuth::PrivateKeyJwt);
    let sent = &provider.sent[2];
    assert!(!sent.headers.contains_key("authorization"));
    assert_eq!(sent.form["grant_type"], "client_credentials");
    assert_eq!(
        sent.form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    let assertion = &sent.form["client_assertion"];
    let claims = claims(assertion);
    assert_eq!(claims["iss"], "service");
    assert_eq!(claims["sub"], "service");
    assert_eq!(claims["aud"], ISSUER);
    assert!(claims["exp"].as_u64().unwrap() > NOW);
    #[cfg(feature = "server")]
    {
        let keys = crate::jose::KeySet::of([key.public_jwk()]);
        assert!(crate::jose::jwt::open(assertion, &keys).is_ok());
    }
}

fn enterprise() -> Settings {
    let idp = IdentityProvider::new(IDP, "client-at-idp");
    settings(Way::Enterprise(idp), Some("hide-secret"))
}

fn exchanged(kind: &str) -> (u16, Option<&'static str>, Value) {
    let body = json!({
        "access_token": "hide-jag", "token_type": "N_A", "issued_token_type": kind,
        "expires_in": 300,
    });
    (200, None, body)
}

// req: client-auth:identity-assertion, client-auth:identity-assertion:assertion-callback
#[test]
fn an_organization_answers_for_a_person() {
    let mut provider = provider();
    provider.identity = Some("hide-id-token");
    provider.tokens.push_back(exchanged("urn:ietf:params:oauth:token-type:id-jag"));
    let grant = provider.authorize(&enterprise(), unattended()).unwrap();
    assert_eq!(provider.urls(), [HINT, DESCRIBED, IDP, "https://auth.example/token"]);

    let identity = &provider.identities[0];
    assert_eq!(identity.kind, IdentityKind::Enterprise);
    assert_eq!(identity.audience, ISSUER);
    assert_eq!(identity.resource.as_deref(), Some(SERVER));

    let exchange = &provider.sent[2];
    let expected = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("audience", ISSUER),
        ("resource", SERVER),
        ("scope", "a"),
        ("subject_token", "hide-id-token"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "client-at-idp"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(exchange.form, Pairs::from(expected));
    assert!(!exchange.headers.contains_key("authorization"), "that secret is for another");

    let sent = &provider.sent[3];
    assert_eq!(sent.form["grant_type"], JWT_BEARER);
    assert_eq!(sent.form["assertion"], "hide-jag");
    assert_eq!(sent.form["resource"], SERVER);
    assert_eq!(sent.headers["authorization"], basic("service", "hide-secret"));
    assert_eq!(grant.issuer, ISSUER);
    assert_eq!(grant.tokens.unwrap().access.expose(), "hide-token");
}

#[test]
fn a_client_may_have_to_say_who_it_is_to_the_organization_too() {
    let mut provider = provider();
    provider.identity = Some("hide-id-token");
    provider.tokens.push_back(exchanged("urn:ietf:params:oauth:token-type:id-jag"));
    let mut settings = enterprise();
    let Way::Enterprise(idp) = &mut settings.way else { panic!() };
    idp.secret = Some(Secret::new("hide-idp"));
    idp.method = TokenAuth::Basic;
    provider.authorize(&settings, unattended()).unwrap();
    assert_eq!(provider.sent[2].headers["authorization"], basic("client-at-idp", "hide-idp"));
}

#[test]
fn what_the_organization_refuses_is_not_tried_otherwise() {
    let denied = json!({ "error": "access_denied", "error_description": "hide-id-token: no" });
    for (answer, kind) in [
        (exchanged("urn:ietf:params:oauth:token-type:access_token"), AuthErrorKind::Response),
        ((400, None, denied), AuthErrorKind::Refused),
        ((503, None, json!({})), AuthErrorKind::Unreachable),
    ] {
        let mut provider = provider();
        provider.identity = Some("hide-id-token");
        provider.tokens.push_back(answer);
        let error = provider.authorize(&enterprise(), unattended()).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert_eq!(provider.token_requests().len(), 1);
    }
    let mut provider = provider();
    let error = provider.authorize(&enterprise(), unattended()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NotLoggedIn);
    assert!(provider.token_requests().is_empty());

    let mut settings = enterprise();
    settings.way = Way::Enterprise(IdentityProvider::new("http://idp.example/token", "x"));
    provider.identity = Some("hide-id-token");
    let error = provider.authorize(&settings, unattended()).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Forbidden);
}

// req: client-auth:identity-assertion:invalid-assertion, client-auth:identity-assertion:disabled-rejected
#[test]
fn what_the_authorization_server_refuses_is_not_tried_otherwise() {
    for (code, kind) in [
        ("invalid_grant", AuthErrorKind::Expired),
        ("unsupported_grant_type", AuthErrorKind::Refused),
        ("unauthorized_client", AuthErrorKind::Refused),
    ] {
        let mut provider = provider();
        provider.identity = Some("hide-id-token");
        provider.tokens.push_back(exchanged("urn:ietf:params:oauth:token-type:id-jag"));
        let body = json!({ "error": code, "error_description": "not by hide-jag" });
        provider.tokens.push_back((400, None, body));
        let error = provider.authorize(&enterprise(), unattended()).unwrap_err();
        assert_eq!((error.kind(), error.oauth_code()), (kind, Some(code)));
        assert!(error.to_string().contains("not by …"), "{error}");
        assert_eq!(provider.token_requests().len(), 2);
        assert!(provider.logins.is_empty());
    }
}

#[test]
fn a_platform_answers_for_a_program() {
    let mut provider = provider();
    provider.identity = Some("hide-workload");
    let grant = provider.authorize(&settings(Way::Workload, None), unattended()).unwrap();
    assert_eq!(provider.identities[0].kind, IdentityKind::Workload);
    assert_eq!(provider.identities[0].audience, ISSUER);
    let sent = &provider.sent[2];
    let expected = [
        ("grant_type", JWT_BEARER),
        ("assertion", "hide-workload"),
        ("client_id", "service"),
        ("resource", SERVER),
        ("scope", "a"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(sent.form, Pairs::from(expected));
    assert!(!sent.headers.contains_key("authorization"));
    assert_eq!(grant.tokens.unwrap().access.expose(), "hide-token");

    // Refused: no other way is tried.
    let body = json!({ "error": "invalid_grant", "error_description": "hide-workload" });
    provider.tokens.push_back((400, None, body));
    provider.sent.clear();
    let asked = Asked { previous: None, renewal: Renewal::Refresh, ..unattended() };
    let error = provider.authorize(&settings(Way::Workload, None), asked).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Expired);
    assert_eq!(provider.token_requests().len(), 1);
}

#[test]
fn a_client_that_nobody_knows_gets_nothing() {
    for way in [Way::ClientCredentials, Way::Workload] {
        let mut provider = provider();
        let settings = Settings { way, ..Settings::default() };
        let error = provider.authorize(&settings, unattended()).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Registration);
        assert!(provider.token_requests().is_empty());
    }
}

// req: client-auth:identity-assertion:issuer-pinning, client-auth:as-migration:m2m-expected-issuer
#[test]
fn a_secret_is_shown_to_its_own_issuer_only() {
    for way in [Way::ClientCredentials, enterprise().way] {
        let mut provider = provider();
        provider.identity = Some("hide-id-token");
        let mut settings = settings(way, Some("hide-secret"));
        settings.registered.as_mut().unwrap().issuer = Some("https://first.example".into());
        let error = provider.authorize(&settings, unattended()).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Registration);
        assert!(provider.token_requests().is_empty() && provider.identities.is_empty());
    }
}
