use super::*;
use crate::{
    Secret, SigningKey,
    client::grant::{Endpoints, Grant},
};

const REDIRECT: &str = "http://127.0.0.1:1/callback";

fn server() -> ServerMetadata {
    let endpoints = Endpoints { authorize: None, token: "https://a/token".into() };
    ServerMetadata::undescribed("https://a".into(), endpoints, Some("https://a/register".into()))
}

fn full() -> (Settings, ServerMetadata) {
    let mut server = server();
    server.documents = true;
    let mut registered = Registered::new("beforehand");
    registered.issuer = Some("https://a".into());
    let settings = Settings {
        registered: Some(registered),
        document: Some("https://c/client.json".into()),
        ..Settings::default()
    };
    (settings, server)
}

fn chosen(settings: &Settings, server: &ServerMetadata) -> Result<Option<Registration>, AuthError> {
    Ok(match choose(settings, server, None)? {
        Choice::Known(registration) => Some(registration),
        Choice::Dynamic => None,
    })
}

// req: client-auth:pre-registration, client-auth:cimd, client-auth:dcr
#[test]
fn the_first_open_way_is_taken() {
    let (mut settings, mut server) = full();
    let known = chosen(&settings, &server).unwrap().unwrap();
    assert_eq!(known.client_id, "beforehand");
    assert_eq!(known.origin, RegisteredBy::Beforehand);

    settings.order = vec![RegisteredBy::Document, RegisteredBy::Beforehand];
    assert_eq!(chosen(&settings, &server).unwrap().unwrap().origin, RegisteredBy::Document);
    settings.order = RegisteredBy::ALL.to_vec();

    settings.registered = None;
    let known = chosen(&settings, &server).unwrap().unwrap();
    assert_eq!(known.client_id, "https://c/client.json");
    assert_eq!(known.method, TokenAuth::None);
    assert!(known.secret.is_none());

    server.documents = false;
    assert!(chosen(&settings, &server).unwrap().is_none());

    server.register = None;
    let error = chosen(&settings, &server).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Registration);
    assert!(error.to_string().contains("configure its client_id"), "{error}");

    let (mut settings, server) = full();
    settings.order = vec![];
    assert!(chosen(&settings, &server).is_err());
}

#[test]
fn without_a_person_no_client_registers_itself() {
    for way in [Way::ClientCredentials, Way::Workload] {
        let settings = Settings { way, ..Settings::default() };
        let error = chosen(&settings, &server()).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Registration);
        assert!(error.to_string().contains("client_id"), "{error}");
    }
}

// req: client-auth:as-binding
#[test]
fn what_was_registered_beforehand_is_used_there_only() {
    let (mut settings, mut server) = full();
    for other in ["https://b", "https://a/", "https://A"] {
        server.issuer = other.into();
        let error = chosen(&settings, &server).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Registration, "{other}");
    }
    // Without an issuer it belongs to the first that it was used at.
    settings.registered.as_mut().unwrap().issuer = None;
    server.issuer = "https://b".into();
    assert!(chosen(&settings, &server).unwrap().is_some());
    let previous = Grant {
        issuer: "https://a".into(),
        resource: None,
        scopes: Scopes::none(),
        registration: Registration::public("beforehand", RegisteredBy::Beforehand),
        tokens: None,
        endpoints: server.endpoints.clone(),
        proof_key: None,
    };
    assert!(choose(&settings, &server, Some(&previous)).is_err());
    server.issuer = "https://a".into();
    assert!(choose(&settings, &server, Some(&previous)).is_ok());
}

// req: client-auth:token-endpoint-auth-method
#[test]
fn the_method_fits_client_and_server() {
    use TokenAuth::*;
    let cases = [
        // secret, key, configured, known there, used
        (false, false, Option::None, Some(vec![Basic]), None),
        (true, false, Option::None, Option::None, Basic),
        (true, false, Option::None, Some(vec![Basic, Post]), Basic),
        (true, false, Option::None, Some(vec![Post, None]), Post),
        (true, false, Option::None, Some(vec![None]), Basic),
        (true, false, Some(Post), Some(vec![Basic]), Post),
        (false, true, Option::None, Option::None, PrivateKeyJwt),
        (true, true, Option::None, Option::None, Basic),
        (true, true, Some(PrivateKeyJwt), Option::None, PrivateKeyJwt),
    ];
    for (secret, key, method, methods, expected) in cases {
        let (mut settings, mut server) = full();
        settings.key = key.then(|| SigningKey::generate().unwrap());
        let registered = settings.registered.as_mut().unwrap();
        registered.secret = secret.then(|| Secret::new("s"));
        registered.method = method;
        server.methods = methods.clone();
        let known = chosen(&settings, &server).unwrap().unwrap();
        assert_eq!(known.method, expected, "{secret} {key} {method:?} {methods:?}");
    }
    let (mut settings, mut server) = full();
    settings.registered = Option::None;
    settings.key = Some(SigningKey::generate().unwrap());
    assert_eq!(chosen(&settings, &server).unwrap().unwrap().method, None);
    server.methods = Some(vec![None, PrivateKeyJwt]);
    assert_eq!(chosen(&settings, &server).unwrap().unwrap().method, PrivateKeyJwt);
}

#[test]
fn the_address_of_a_document_is_checked() {
    for bad in ["http://c/x", "https://c", "https://c/", "x", "https://c/x#y", "https://u@c/x"] {
        let (mut settings, server) = full();
        settings.registered = None;
        settings.document = Some(bad.into());
        assert_eq!(
            chosen(&settings, &server).unwrap_err().kind(),
            AuthErrorKind::Settings,
            "{bad}"
        );
    }
}

fn asked(settings: &Settings, server: &ServerMetadata, redirect: &str, scopes: &str) -> Value {
    let scopes = scopes.parse().unwrap();
    let (request, _) = request(settings, server, "https://a/register", redirect, &scopes).unwrap();
    assert_eq!(request.method(), "POST");
    assert_eq!(request.headers()["content-type"], "application/json");
    assert_eq!(request.headers()["accept"], "application/json");
    serde_json::from_slice(request.body()).unwrap()
}

// req: client-auth:dcr, client-auth:dcr:app-type-heuristic, client-auth:dcr:grant-types-default
#[test]
fn a_client_says_what_it_is() {
    let settings = Settings { client_name: "Name".into(), ..Settings::default() };
    let mut server = server();
    let body = asked(&settings, &server, REDIRECT, "b a");
    let expected = json!({
        "client_name": "Name",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_basic",
        "application_type": "native",
        "scope": "a b",
    });
    assert_eq!(body, expected);
    server.grants = Some(vec!["authorization_code".into()]);
    let body = asked(&settings, &server, REDIRECT, "");
    assert_eq!(body["grant_types"], json!(["authorization_code"]));
    assert!(body.get("scope").is_none());

    for (redirect, expected) in [
        ("http://localhost:1/callback", "native"),
        ("http://[::1]:1/callback", "native"),
        ("app.example:/callback", "native"),
        ("https://app.example/callback", "web"),
    ] {
        let body = asked(&settings, &server, redirect, "");
        assert_eq!(body["application_type"], expected, "{redirect}");
    }
    let settings = Settings { application: Some(ApplicationType::Web), ..settings };
    assert_eq!(asked(&settings, &server, REDIRECT, "")["application_type"], "web");

    use TokenAuth::*;
    for (methods, expected) in [
        (vec![Basic, None], "none"),
        (vec![Post], "client_secret_post"),
        (vec![], "client_secret_basic"),
    ] {
        server.methods = Some(methods);
        let body = asked(&settings, &server, REDIRECT, "");
        assert_eq!(body["token_endpoint_auth_method"], expected);
    }
}

fn answered(status: u16, body: impl ToString, asked: TokenAuth) -> Result<Registration, AuthError> {
    let body = Bytes::from(body.to_string());
    read(&Response::builder().status(status).body(body).unwrap(), asked, REDIRECT)
}

#[test]
fn what_a_server_made_of_it_is_taken() {
    let body = json!({ "client_id": "c", "client_secret": "s", "client_secret_expires_at": 0 });
    let made = answered(201, &body, TokenAuth::Basic).unwrap();
    assert_eq!(made.client_id, "c");
    assert_eq!(made.method, TokenAuth::Basic);
    assert_eq!(made.origin, RegisteredBy::Dynamic);
    assert_eq!(made.redirect_uri.as_deref(), Some(REDIRECT));
    assert_eq!(made.secret.unwrap().expose(), "s");
    assert_eq!(made.secret_expires_at, None);

    let made = answered(200, &body, TokenAuth::None).unwrap();
    assert_eq!(made.method, TokenAuth::None);
    assert!(made.secret.is_none(), "what is never shown is not kept");

    let mut dated = body;
    dated["client_secret_expires_at"] = 77.into();
    assert_eq!(answered(201, dated, TokenAuth::Post).unwrap().secret_expires_at, Some(77));
}

// req: client-auth:dcr:substituted-metadata
#[test]
fn what_a_server_changed_is_tolerated_or_told() {
    let with = |name: &str, value: Value| {
        let mut body = json!({ "client_id": "c", "client_secret": "s" });
        body[name] = value;
        answered(201, body, TokenAuth::None)
    };
    let method = |name: &str| with("token_endpoint_auth_method", name.into());
    assert_eq!(method("client_secret_post").unwrap().method, TokenAuth::Post);
    assert_eq!(method("client_secret_basic").unwrap().method, TokenAuth::Basic);
    assert!(method("private_key_jwt").is_err());
    assert!(method("by_fax").is_err());
    assert!(with("scope", "less".into()).is_ok());
    assert!(with("client_name", "Other".into()).is_ok());
    assert!(with("redirect_uris", json!([REDIRECT])).is_ok());
    for bad in [json!([]), json!(["https://x"]), json!([REDIRECT, "https://x"])] {
        let error = with("redirect_uris", bad).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Registration);
    }
    assert!(with("grant_types", json!(["authorization_code"])).is_ok());
    assert!(with("grant_types", json!(["implicit"])).is_err());
    assert!(with("response_types", json!(["token"])).is_err());
    assert!(with("client_id", Value::Null).is_err());
    assert!(with("client_id", 1.into()).is_err());
    assert!(answered(201, json!({ "client_id": "c" }), TokenAuth::Basic).is_err());
}

// req: client-auth:dcr:registration-error-surfaces
#[test]
fn a_refusal_is_told() {
    let body = json!({ "error": "invalid_redirect_uri", "error_description": "no\nloopback" });
    let error = answered(400, body, TokenAuth::None).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Registration);
    assert_eq!(error.oauth_code(), Some("invalid_redirect_uri"));
    assert!(error.to_string().contains("(noloopback)"), "{error}");
    use AuthErrorKind::{Registration, Unreachable};
    for (status, body, kind) in [
        (403, "<html>", Registration),
        (404, "{}", Registration),
        (401, "{}", Registration),
        (500, "{}", Unreachable),
        (503, "<html>", Unreachable),
        (429, "{}", Unreachable),
        (429, "<html>", Unreachable),
        (200, "<html>", Unreachable),
    ] {
        let error = answered(status, body, TokenAuth::None).unwrap_err();
        assert_eq!(error.kind(), kind, "{status} {body}");
    }
}

#[test]
fn a_registration_is_used_again_for_the_same_redirect_only() {
    let mut known = Registration::public("c", RegisteredBy::Dynamic);
    known.redirect_uri = Some(REDIRECT.into());
    assert!(reusable(&known, REDIRECT, 5));
    assert!(!reusable(&known, "http://127.0.0.1:2/callback", 5));
    known.secret_expires_at = Some(5);
    assert!(!reusable(&known, REDIRECT, 5));
    known.secret_expires_at = None;
    known.origin = RegisteredBy::Beforehand;
    assert!(!reusable(&known, REDIRECT, 5));
}

#[test]
fn only_scopes_that_the_server_lists_are_named() {
    let (settings, mut server) = (Settings::default(), server());
    server.scopes = Some("openid a".parse().unwrap());
    assert_eq!(asked(&settings, &server, REDIRECT, "a b")["scope"], "a");
    assert!(asked(&settings, &server, REDIRECT, "b").get("scope").is_none());
}

#[test]
fn a_registration_is_used_again_for_the_scopes_that_it_names() {
    let (mut server, mut known) = (server(), Registration::public("c", RegisteredBy::Dynamic));
    let [one, two]: [Scopes; 2] = ["a", "a b"].map(|text| text.parse().unwrap());
    assert!(covers(&known, &server, &two), "nothing is said of them");
    known.scopes = Some(one.clone());
    assert!(covers(&known, &server, &one) && !covers(&known, &server, &two));
    // Nobody is held to what no registration can name.
    server.scopes = Some(one);
    assert!(covers(&known, &server, &two));
}
