//! The tests of the server for tests: what it refuses, it refuses.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::{Url, form_urlencoded};

use super::*;
use crate::{
    SigningKey,
    jose::{dpop, encode, jwt, sha256},
};

const ISSUER: &str = "https://auth.example.com/tenant";
const BACK: &str = "http://127.0.0.1:8080/callback";
const RESOURCE: &str = "https://mcp.example.com/mcp";
const VERIFIER: &str = "0123456789012345678901234567890123456789012";
const START: u64 = 1_800_000_000;

#[derive(Debug)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn hand() -> Arc<Hand> {
    Arc::new(Hand(AtomicU64::new(START)))
}

fn server() -> InsecureAuthorizationServer {
    InsecureAuthorizationServer::new(ISSUER)
        .clock(hand())
        .client(InsecureClient::public("app", [BACK]))
        .client(InsecureClient::basic("machine", "s3:cr%t"))
}

fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn post(server: &InsecureAuthorizationServer, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
    answer(server.handle(Request::post(path).body(Bytes::from(form(fields))).unwrap()))
}

fn answer(response: Response<Bytes>) -> (u16, Value) {
    assert_eq!(response.headers()["cache-control"], "no-store");
    let body = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
    (response.status().as_u16(), body)
}

fn error(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["error"].as_str().unwrap_or("none"))
}

/// Without some of the fields, or with others.
fn asking<'a>(
    challenge: &'a str,
    change: &[(&'a str, Option<&'a str>)],
) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", "app"),
        ("redirect_uri", BACK),
        ("state", "s t"),
        ("code_challenge", challenge),
        ("code_challenge_method", "S256"),
        ("resource", RESOURCE),
        ("scope", "a b"),
    ];
    for (name, value) in change {
        fields.retain(|(known, _)| known != name);
        fields.extend(value.map(|value| (*name, value)));
    }
    fields
}

/// Where the browser is sent.
fn authorize(
    server: &InsecureAuthorizationServer,
    change: &[(&str, Option<&str>)],
) -> Result<Map<String, Value>, u16> {
    let challenge = encode(sha256(VERIFIER));
    let query = form(&asking(&challenge, change));
    let request = Request::get(format!("/tenant/authorize?{query}")).body(Bytes::new()).unwrap();
    let response = server.handle(request);
    let Some(to) = response.headers().get("location") else {
        return Err(response.status().as_u16());
    };
    let url = Url::parse(to.to_str().unwrap()).unwrap();
    assert!(url.as_str().starts_with(BACK));
    Ok(url
        .query_pairs()
        .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
        .collect())
}

fn code(server: &InsecureAuthorizationServer) -> String {
    authorize(server, &[]).unwrap()["code"].as_str().unwrap().to_owned()
}

fn redeem(server: &InsecureAuthorizationServer, code: &str, change: (&str, &str)) -> (u16, Value) {
    let mut fields = vec![
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", code),
        ("redirect_uri", BACK),
        ("code_verifier", VERIFIER),
        ("resource", RESOURCE),
    ];
    fields.retain(|(name, _)| *name != change.0);
    fields.extend(Some(change).filter(|(_, value)| !value.is_empty()));
    post(server, "/tenant/token", &fields)
}

fn refresh(server: &InsecureAuthorizationServer, token: &Value) -> (u16, Value) {
    let token = token["refresh_token"].as_str().unwrap();
    let fields = [("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)];
    post(server, "/tenant/token", &fields)
}

fn claims(server: &InsecureAuthorizationServer, answer: &Value) -> Map<String, Value> {
    let audiences = [RESOURCE.to_owned()];
    let types = &["at+jwt"];
    let rules =
        jwt::TokenRules { issuer: ISSUER, audiences: &audiences, types, now: START, skew: 0 };
    let token = answer["access_token"].as_str().unwrap();
    jwt::verify(token, &KeySet::of([server.public_key()]), &rules).unwrap()
}

// req: hosting:auth:as:token-cache-headers
#[test]
fn a_login_gives_a_token_for_the_resource() {
    let server = server();
    let back = authorize(&server, &[]).unwrap();
    assert_eq!((&back["state"], &back["iss"]), (&json!("s t"), &json!(ISSUER)));
    let (status, answer) = redeem(&server, back["code"].as_str().unwrap(), ("", ""));
    assert_eq!(status, 200);
    assert_eq!((&answer["token_type"], &answer["expires_in"]), (&json!("Bearer"), &json!(3600)));
    let claims = claims(&server, &answer);
    assert_eq!((&claims["aud"], &claims["scope"]), (&json!(RESOURCE), &json!("a b")));
    assert_eq!((&claims["sub"], &claims["client_id"]), (&json!("someone"), &json!("app")));
    assert_eq!(server.requests(Endpoint::Token), 1);
}

// req: hosting:auth:metadata-endpoints, client-auth:identity-assertion:metadata-advertised
#[test]
fn what_it_can_do_is_said_where_it_is_looked_for() {
    let plain = server();
    let idp = InsecureAuthorizationServer::new("https://idp.example.com");
    let trusting = server().trust(idp.issuer(), [idp.public_key()]);
    for path in [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ] {
        let said = |server: &InsecureAuthorizationServer| {
            answer(server.handle(Request::get(path).body(Bytes::new()).unwrap())).1
        };
        let (document, more) = (said(&plain), said(&trusting));
        for name in ["authorization", "token", "registration", "introspection", "revocation"] {
            let endpoint = document[format!("{name}_endpoint")].as_str().unwrap();
            let path = endpoint.strip_prefix("https://auth.example.com").unwrap();
            let post = Request::post(path).body(Bytes::new()).unwrap();
            assert_ne!(plain.handle(post).status(), 404, "{endpoint}");
        }
        assert_eq!(document["issuer"], ISSUER);
        let grants = more["grant_types_supported"].as_array().unwrap();
        assert!(grants.contains(&json!("urn:ietf:params:oauth:grant-type:jwt-bearer")));
        let profiles = "authorization_grant_profiles_supported";
        assert_eq!(more[profiles], json!(["urn:ietf:params:oauth:grant-profile:id-jag"]));
        assert_eq!(document.get(profiles), None);
    }
}

// req: hosting:auth:as:authorize-requires-pkce
#[test]
fn who_asks_wrongly_is_sent_back_with_an_error() {
    let server = server().scopes(Scopes::from_iter(["a", "b"]));
    for (change, expected) in [
        (("code_challenge", None), "invalid_request"),
        (("code_challenge", Some("short")), "invalid_request"),
        (("code_challenge_method", None), "invalid_request"),
        (("code_challenge_method", Some("plain")), "invalid_request"),
        (("response_type", Some("token")), "unsupported_response_type"),
        (("resource", Some("no address")), "invalid_target"),
        (("scope", Some("c")), "invalid_scope"),
    ] {
        let back = authorize(&server, &[change]).unwrap();
        assert_eq!(back["error"], expected, "{change:?}");
        assert_eq!(back["iss"], ISSUER);
        assert!(!back.contains_key("code"));
    }
}

// req: hosting:auth:as:redirect-uri-binding
#[test]
fn nobody_is_sent_to_another_address() {
    let server = server();
    for change in [
        ("redirect_uri", Some("http://127.0.0.1:8080/callback/")),
        ("redirect_uri", Some("http://127.0.0.1:8081/callback")),
        ("redirect_uri", Some("https://evil.example.com")),
        ("redirect_uri", None),
        ("client_id", Some("nobody")),
        ("client_id", None),
    ] {
        assert_eq!(authorize(&server, &[change]), Err(400), "{change:?}");
    }
    let given = redeem(&server, &code(&server), ("redirect_uri", "http://127.0.0.1:8080/other"));
    assert_eq!(error(&given), (400, "invalid_grant"));
}

// req: hosting:auth:as:verifier-mismatch, hosting:auth:as:code-single-use
#[test]
fn a_code_is_good_once_and_for_whoever_asked() {
    let server = server();
    for change in [
        ("code_verifier", "9123456789012345678901234567890123456789012"),
        ("code_verifier", "short"),
        ("code", "code-0"),
    ] {
        let given = redeem(&server, &code(&server), change);
        assert_eq!(error(&given), (400, "invalid_grant"), "{change:?}");
    }
    let given = redeem(&server, &code(&server), ("code_verifier", ""));
    assert_eq!(error(&given), (400, "invalid_request"));
    let given = redeem(&server, &code(&server), ("resource", "https://other.example.com"));
    assert_eq!(error(&given), (400, "invalid_target"));
    let code = code(&server);
    let (status, tokens) = redeem(&server, &code, ("", ""));
    assert_eq!(status, 200);
    assert_eq!(error(&redeem(&server, &code, ("", ""))), (400, "invalid_grant"));
    assert_eq!(error(&refresh(&server, &tokens)), (400, "invalid_grant"), "what it gave is gone");
}

#[test]
fn a_code_expires() {
    let clock = hand();
    let server = server().clock(clock.clone());
    let code = code(&server);
    clock.0.fetch_add(60, Ordering::SeqCst);
    assert_eq!(error(&redeem(&server, &code, ("", ""))), (400, "invalid_grant"));
}

#[test]
fn a_refresh_token_is_good_once_and_used_twice_ends_all() {
    let server = server();
    let (_, first) = redeem(&server, &code(&server), ("", ""));
    let (status, second) = refresh(&server, &first);
    assert_eq!(status, 200);
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    assert_eq!(claims(&server, &second)["scope"], "a b");
    assert_eq!(error(&refresh(&server, &first)), (400, "invalid_grant"));
    assert_eq!(error(&refresh(&server, &second)), (400, "invalid_grant"));
}

// req: hosting:auth:as:register-echo
#[test]
fn registration_repeats_all_and_gives_a_client() {
    let server = server();
    let asked = json!({"redirect_uris": [BACK], "client_name": "Ä", "custom": {"deep": [1]},
        "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none"});
    let register = |asked: &Value| {
        let body = Bytes::from(asked.to_string());
        answer(server.handle(Request::post("/tenant/register").body(body).unwrap()))
    };
    let (status, given) = register(&asked);
    assert_eq!(status, 201);
    for (name, value) in asked.as_object().unwrap() {
        assert_eq!(given[name], *value);
    }
    assert_eq!(given.get("client_secret"), None);
    let client_id = given["client_id"].as_str().unwrap();
    assert!(authorize(&server, &[("client_id", Some(client_id))]).unwrap().contains_key("code"));
    let (_, secret) = register(&json!({"redirect_uris": [BACK]}));
    assert_eq!(secret["token_endpoint_auth_method"], "client_secret_basic");
    assert!(secret["client_secret"].is_string());
    assert_eq!(secret["client_secret_expires_at"], 0);
}

// req: hosting:auth:as:register-error-response, hosting:auth:as:redirect-uri-scheme
#[test]
fn registration_refuses_with_the_codes_of_the_rfc() {
    let server = server();
    for (asked, code) in [
        (json!({"redirect_uris": ["http://example.com/"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": ["https://example.com/#x"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": "https://example.com/"}), "invalid_redirect_uri"),
        (json!({"redirect_uris": []}), "invalid_redirect_uri"),
        (json!({}), "invalid_redirect_uri"),
        (json!([]), "invalid_client_metadata"),
        (json!({"redirect_uris": [BACK], "grant_types": 1}), "invalid_client_metadata"),
        (
            json!({"redirect_uris": [BACK], "token_endpoint_auth_method": "x"}),
            "invalid_client_metadata",
        ),
    ] {
        let body = Bytes::from(asked.to_string());
        let given = answer(server.handle(Request::post("/tenant/register").body(body).unwrap()));
        assert_eq!(error(&given), (400, code), "{asked}");
    }
}

fn with_basic(
    server: &InsecureAuthorizationServer,
    path: &str,
    pair: &str,
    fields: &[(&str, &str)],
) -> (u16, Value) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let header = format!("Basic {}", STANDARD.encode(pair));
    let request = Request::post(path).header("authorization", header);
    answer(server.handle(request.body(Bytes::from(form(fields))).unwrap()))
}

#[test]
fn machines_prove_who_they_are_as_they_were_registered() {
    let key = SigningKey::generate().unwrap();
    let server = server()
        .client(InsecureClient::post("poster", "s"))
        .client(InsecureClient::signed("signer", [key.public_jwk()]));
    let wanted = [("grant_type", "client_credentials"), ("resource", RESOURCE)];
    let basic = |pair| with_basic(&server, "/tenant/token", pair, &wanted);
    let (status, given) = basic("machine:s3%3Acr%25t");
    assert_eq!((status, given.get("refresh_token")), (200, None));
    assert_eq!(claims(&server, &given)["sub"], "machine");
    assert_eq!(error(&basic("machine:wrong")), (401, "invalid_client"));
    assert_eq!(error(&basic("poster:s")), (401, "invalid_client"), "not as it was registered");
    let more =
        |fields: &[(&str, &str)]| post(&server, "/tenant/token", &[&wanted[..], fields].concat());
    assert_eq!(more(&[("client_id", "poster"), ("client_secret", "s")]).0, 200);
    assert_eq!(error(&more(&[("client_id", "app")])), (400, "unauthorized_client"));
    assert_eq!(error(&more(&[])), (401, "invalid_client"));
    let assertion = |change: Value| {
        let mut claims = json!({"iss": "signer", "sub": "signer", "aud": ISSUER, "exp": START + 60,
            "jti": "1"});
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        jwt::sign(&key, Map::new(), claims.as_object().unwrap()).unwrap()
    };
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    let signed = |assertion: Secret| {
        more(&[("client_assertion_type", kind), ("client_assertion", assertion.expose())])
    };
    assert_eq!(signed(assertion(json!({}))).0, 200);
    assert_eq!(error(&signed(assertion(json!({})))), (401, "invalid_client"), "once");
    for wrong in [
        json!({"jti": "2", "aud": "x"}),
        json!({"jti": "3", "sub": "app"}),
        json!({"jti": "4", "exp": START - 60}),
        json!({"jti": "5", "exp": null}),
    ] {
        assert_eq!(error(&signed(assertion(wrong.clone()))), (401, "invalid_client"), "{wrong}");
    }
    assert_eq!(signed(assertion(json!({"jti": "6"}))).0, 200);
}

#[test]
fn an_identity_of_elsewhere_becomes_a_token_here() {
    let idp = InsecureAuthorizationServer::new("https://idp.example.com")
        .clock(hand())
        .subject("ann")
        .client(InsecureClient::public("app-at-idp", [BACK]).elsewhere("machine"));
    let server = server().trust(idp.issuer(), [idp.public_key()]);
    let id_token = idp.id_token("app-at-idp");
    let exchange = |audience| {
        post(
            &idp,
            "/token",
            &[
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("client_id", "app-at-idp"),
                ("subject_token", id_token.expose()),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
                ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
                ("audience", audience),
                ("resource", RESOURCE),
                ("scope", "a"),
            ],
        )
    };
    let redeem = |assertion: &Value| {
        with_basic(
            &server,
            "/tenant/token",
            "machine:s3%3Acr%25t",
            &[
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", assertion["access_token"].as_str().unwrap()),
            ],
        )
    };
    let (status, assertion) = exchange(ISSUER);
    assert_eq!((status, &assertion["token_type"]), (200, &json!("N_A")));
    let (status, given) = redeem(&assertion);
    assert_eq!(status, 200);
    let claims = claims(&server, &given);
    assert_eq!((&claims["sub"], &claims["scope"]), (&json!("ann"), &json!("a")));
    assert_eq!(error(&redeem(&exchange("https://else.example.com").1)), (400, "invalid_grant"));
    idp.rotate_keys();
    assert_eq!(error(&exchange(ISSUER)), (400, "invalid_grant"), "the ID token is of an old key");
}

#[test]
fn a_token_is_exchanged_to_go_on() {
    let server = server();
    let (_, first) = redeem(&server, &code(&server), ("", ""));
    let exchange = |scope| {
        with_basic(
            &server,
            "/tenant/token",
            "machine:s3%3Acr%25t",
            &[
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("subject_token", first["access_token"].as_str().unwrap()),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
                ("resource", RESOURCE),
                ("scope", scope),
            ],
        )
    };
    let (status, second) = exchange("a");
    assert_eq!(status, 200);
    let claims = claims(&server, &second);
    assert_eq!((&claims["sub"], &claims["client_id"]), (&json!("someone"), &json!("machine")));
    assert_eq!(error(&exchange("more")), (400, "invalid_scope"));
}

#[test]
fn proofs_bind_tokens_and_nonces_are_demanded() {
    let server = server().demand_nonce();
    let key = SigningKey::generate().unwrap();
    let ask = |key: &SigningKey, fields: &[(&str, &str)], nonce: Option<&str>| {
        let address = "https://auth.example.com/tenant/token";
        let proof = dpop::proof(key, "POST", address, None, nonce, START).unwrap();
        let request = Request::post("/tenant/token").header("dpop", proof);
        server.handle(request.body(Bytes::from(form(fields))).unwrap())
    };
    let code = code(&server);
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("code", &code),
        ("redirect_uri", BACK),
        ("code_verifier", VERIFIER),
    ];
    let first = ask(&key, &fields, None);
    let nonce = first.headers()["dpop-nonce"].to_str().unwrap().to_owned();
    assert_eq!(error(&answer(first)), (400, "use_dpop_nonce"));
    let (status, given) = answer(ask(&key, &fields, Some(&nonce)));
    assert_eq!((status, &given["token_type"]), (200, &json!("DPoP")), "the code was not used up");
    assert_eq!(claims(&server, &given)["cnf"], json!({"jkt": key.thumbprint()}));
    let token = given["refresh_token"].as_str().unwrap();
    let fields = [("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)];
    let thief = SigningKey::generate().unwrap();
    let stolen = answer(ask(&thief, &fields, Some(&nonce)));
    assert_eq!(error(&stolen), (400, "invalid_grant"));
    assert_eq!(answer(ask(&key, &fields, Some(&nonce))).0, 200);
}

#[test]
fn tokens_are_explained_and_revoked() {
    let server = server();
    let (_, given) = redeem(&server, &code(&server), ("", ""));
    let token = given["access_token"].as_str().unwrap();
    let explain =
        || with_basic(&server, "/tenant/introspect", "machine:s3%3Acr%25t", &[("token", token)]);
    let (_, explained) = explain();
    assert_eq!((&explained["active"], &explained["aud"]), (&json!(true), &json!(RESOURCE)));
    let nobody = post(&server, "/tenant/introspect", &[("token", token), ("client_id", "app")]);
    assert_eq!(nobody.0, 401, "anyone could ask");
    let refresh_token = given["refresh_token"].as_str().unwrap();
    let revoke = |client| {
        post(&server, "/tenant/revoke", &[("client_id", client), ("token", refresh_token)]).0
    };
    assert_eq!(revoke("app"), 200);
    assert_eq!(explain().1, json!({"active": false}));
    assert_eq!(error(&refresh(&server, &given)), (400, "invalid_grant"));
}

#[test]
fn faults_are_switched_on_and_off() {
    let server = server();
    let metadata = || {
        let path = "/.well-known/oauth-authorization-server/tenant";
        server.handle(Request::get(path).body(Bytes::new()).unwrap())
    };
    assert_eq!(answer(metadata()).1["issuer"], ISSUER);
    server.fail(Endpoint::Metadata, Fault::WrongIssuer("https://evil.example.com".into()));
    assert_eq!(answer(metadata()).1["issuer"], "https://evil.example.com");
    server.fail(Endpoint::Metadata, Fault::Html);
    assert_eq!(metadata().headers()["content-type"], "text/html");
    server.fail(Endpoint::Metadata, Fault::Status(500));
    assert_eq!(metadata().status(), 500);
    for (fault, name, value) in [
        (Fault::WrongIssuer("x".into()), "iss", Some(json!("x"))),
        (Fault::NoIssuer, "iss", None),
        (Fault::WrongState, "state", Some(json!("another"))),
        (Fault::Denied, "error", Some(json!("access_denied"))),
    ] {
        server.fail(Endpoint::Authorize, fault.clone());
        assert_eq!(authorize(&server, &[]).unwrap().get(name), value.as_ref(), "{fault:?}");
    }
    server.heal();
    assert_eq!(metadata().status(), 200);
    assert_eq!(server.requests(Endpoint::Metadata), 5);
    let get = Request::get("/tenant/token").body(Bytes::new()).unwrap();
    assert_eq!(server.handle(get).status(), 405);
    let elsewhere = Request::get("/token").body(Bytes::new()).unwrap();
    assert_eq!(server.handle(elsewhere).status(), 404);
}

#[test]
fn answers_can_be_replaced_by_what_no_client_wants() {
    let server = server();
    let path = "/.well-known/oauth-authorization-server/tenant";
    let metadata = |fault: Fault| {
        server.fail(Endpoint::Metadata, fault);
        server.handle(Request::get(path).body(Bytes::new()).unwrap())
    };
    assert_eq!(metadata(Fault::Oversized(5)).body(), "     ");
    let moved = metadata(Fault::Redirect("https://b.example/x".into()));
    assert_eq!(
        (moved.status(), &moved.headers()["location"]),
        (307.try_into().unwrap(), &"https://b.example/x".parse().unwrap())
    );
    assert_eq!(
        error(&answer(metadata(Fault::Error("invalid_grant".into())))),
        (400, "invalid_grant")
    );
    assert_eq!(
        error(&answer(metadata(Fault::Error("invalid_client".into())))),
        (401, "invalid_client")
    );
    assert_eq!(metadata(Fault::Held).status(), 504);
    let said = answer(metadata(Fault::Says("token_endpoint".into(), json!("x")))).1;
    assert_eq!((&said["token_endpoint"], &said["issuer"]), (&json!("x"), &json!(ISSUER)));
    let said = answer(metadata(Fault::Says("token_endpoint".into(), Value::Null))).1;
    assert_eq!(said.get("token_endpoint"), None);
}

#[test]
fn tokens_can_be_no_good() {
    let server = server();
    let other = json!({"sub": "other"}).as_object().unwrap().clone();
    server.fail(Endpoint::Token, Fault::Claims(other));
    let (_, given) = redeem(&server, &code(&server), ("", ""));
    assert_eq!(claims(&server, &given)["sub"], "other");
    server.fail(Endpoint::Token, Fault::Unsigned);
    let (_, given) = redeem(&server, &code(&server), ("", ""));
    let token = given["access_token"].as_str().unwrap();
    assert!(token.ends_with('.'), "{token}");
    let secrets = server.secrets();
    for secret in [token, given["refresh_token"].as_str().unwrap(), VERIFIER, "s3:cr%t"] {
        assert!(secrets.iter().any(|known| known.expose() == secret), "{secret}");
    }
    server.forget_clients();
    assert_eq!(error(&refresh(&server, &given)), (401, "invalid_client"));
}

#[tokio::test]
async fn what_is_held_is_answered_when_it_is_healed() {
    let server = Arc::new(server());
    server.fail(Endpoint::Token, Fault::Held);
    let asking = tokio::spawn({
        let server = server.clone();
        async move {
            let request = Request::post("/tenant/token").body(Bytes::new()).unwrap();
            crate::Fetch::fetch(&server, request, &crate::Rules::default()).await
        }
    });
    server.requested(Endpoint::Token, 1).await;
    assert!(!asking.is_finished());
    server.heal();
    assert_eq!(asking.await.unwrap().unwrap().status(), 400);
    assert_eq!(server.requests(Endpoint::Token), 1);
}

#[test]
fn a_parameter_that_comes_twice_is_refused() {
    let twice = [("grant_type", "client_credentials"), ("grant_type", "client_credentials")];
    assert_eq!(error(&post(&server(), "/tenant/token", &twice)), (400, "invalid_request"));
}

#[tokio::test]
async fn it_can_be_reached_over_a_connection() {
    let listener = InsecureListener::bind().await.unwrap();
    let address = listener.origin().strip_prefix("http://").unwrap().to_owned();
    let server = Arc::new(InsecureAuthorizationServer::new(listener.origin()));
    let serving = listener.serve(server.clone());
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let body = form(&[("grant_type", "x")]);
    let request = format!(
        "POST /token HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(response.contains("unsupported_grant_type"), "{response}");
    assert_eq!(server.requests(Endpoint::Token), 1);
    let mut waiting = tokio::net::TcpStream::connect(&address).await.unwrap();
    drop(serving);
    assert_eq!(waiting.read(&mut [0]).await.unwrap_or(0), 0, "it ends with its guard");
}
