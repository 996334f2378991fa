use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::token::registration::{RegisteredBy, TokenAuth};

const KEYS: ClientKeys<'static> = ClientKeys { client: None, proof: None, nonce: None, now: 1_000 };

fn request() -> TokenRequest {
    let mut registration = Registration::public("client", RegisteredBy::Dynamic);
    registration.method = TokenAuth::Basic;
    registration.secret = Some(Secret::new("hide-secret"));
    TokenRequest::new("https://a/token?t=1", "https://a", &registration, "refresh_token")
        .with("refresh_token", "hide-refresh")
        .with_resource(Some("https://h"))
        .with_scopes(&Scopes::none())
}

fn response(status: u16, body: impl ToString) -> Response<Bytes> {
    Response::builder().status(status).body(Bytes::from(body.to_string())).unwrap()
}

fn tokens(body: Value) -> Result<Tokens, AuthError> {
    request().read(&response(200, body))?.into_tokens(Scheme::Bearer, 1_000, None)
}

#[test]
fn a_request_has_its_secrets_in_body_and_headers_only() {
    let sent = request().build(KEYS).unwrap();
    assert_eq!(sent.method(), "POST");
    assert_eq!(sent.uri(), "https://a/token?t=1");
    assert_eq!(sent.headers()["accept"], "application/json");
    assert_eq!(sent.headers()["content-type"], "application/x-www-form-urlencoded");
    assert!(sent.headers()["authorization"].is_sensitive());
    assert!(!sent.headers().contains_key("dpop"));
    let form: BTreeMap<String, String> =
        url::form_urlencoded::parse(sent.body()).into_owned().collect();
    let expected = [
        ("grant_type", "refresh_token"),
        ("refresh_token", "hide-refresh"),
        ("resource", "https://h"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(form, BTreeMap::from(expected));
}

#[test]
fn each_proof_is_a_new_one() {
    let key = SigningKey::generate().unwrap();
    let keys = ClientKeys { proof: Some(&key), nonce: Some("n"), ..KEYS };
    let proof = || {
        let sent = request().build(keys).unwrap();
        assert_eq!(sent.headers().get_all(DPOP).iter().count(), 1);
        sent.headers()[DPOP].to_str().unwrap().to_owned()
    };
    let claims = |proof: String| -> Value {
        use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
        let part = proof.split('.').nth(1).unwrap().to_owned();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let [first, second] = [claims(proof()), claims(proof())];
    assert_ne!(first["jti"], second["jti"]);
    assert_eq!(first["htm"], "POST");
    assert_eq!(first["htu"], "https://a/token");
    assert_eq!(first["nonce"], "n");
    assert_eq!(first["iat"], 1_000);
}

#[test]
fn answers_are_read() {
    let given = tokens(json!({
        "access_token": "t", "token_type": "bEARER", "expires_in": 60, "refresh_token": "r",
        "scope": "b a", "other": {},
    }))
    .unwrap();
    assert_eq!(given.access.expose(), "t");
    assert_eq!(given.scheme, Scheme::Bearer);
    assert_eq!(given.refresh.unwrap().expose(), "r");
    assert_eq!(given.expires_at, Some(1_060));
    assert_eq!(given.granted.unwrap().to_string(), "a b");

    let bare = tokens(json!({ "access_token": "t", "token_type": "Bearer" })).unwrap();
    assert!(bare.refresh.is_none() && bare.expires_at.is_none() && bare.granted.is_none());

    for (expires_in, expected) in [
        (json!("60"), Some(1_060)),
        (json!(" 60 "), Some(1_060)),
        (json!(60.9), Some(1_060)),
        (json!(0), Some(1_000)),
        (json!(u64::MAX), Some(u64::MAX)),
        (json!(-1), None),
        (json!("soon"), None),
        (json!([60]), None),
        (Value::Null, None),
    ] {
        let body = json!({ "access_token": "t", "token_type": "Bearer", "expires_in": expires_in });
        assert_eq!(tokens(body).unwrap().expires_at, expected, "{expires_in}");
    }
}

#[test]
fn a_token_that_was_not_asked_for_is_not_taken() {
    for kind in ["DPoP", "mac", "N_A"] {
        let error = tokens(json!({ "access_token": "t", "token_type": kind })).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Response, "{kind}");
    }
    let given =
        request().read(&response(200, json!({ "access_token": "t", "token_type": "Bearer" })));
    let error = given.ok().unwrap().into_tokens(Scheme::Dpop, 1_000, None).unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Response);
    for body in [
        json!({}),
        json!({ "access_token": "t" }),
        json!({ "token_type": "Bearer" }),
        json!({ "access_token": "", "token_type": "Bearer" }),
        json!({ "access_token": 1, "token_type": "Bearer" }),
        json!({ "access_token": "a b", "token_type": "Bearer" }),
        json!({ "access_token": "a\r\nX: y", "token_type": "Bearer" }),
        json!({ "access_token": "t".repeat(16 * 1024 + 1), "token_type": "Bearer" }),
    ] {
        let error = tokens(body.clone()).unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable, "{body}");
    }
}

#[test]
fn an_answer_with_two_tokens_is_not_taken() {
    let body = r#"{"access_token":"a","token_type":"Bearer","access_token":"b"}"#;
    assert!(request().read(&response(200, body)).is_err());
}

// req: client-auth:refresh:rotation-handling
#[test]
fn the_old_refresh_token_stays_unless_there_is_a_new_one() {
    let old = || Some(Secret::new("old"));
    for (new, expected) in [(None, "old"), (Some("new"), "new")] {
        let body = json!({ "access_token": "t", "token_type": "Bearer", "refresh_token": new });
        let given = request().read(&response(200, body)).ok().unwrap();
        let tokens = given.into_tokens(Scheme::Bearer, 0, old()).unwrap();
        assert_eq!(tokens.refresh.unwrap().expose(), expected);
    }
}

#[test]
fn errors_say_what_is_lost() {
    let error = |status, body: &str| request().read(&response(status, body)).err().unwrap();
    use AuthErrorKind::*;
    for (status, body, kind, code) in [
        (400, r#"{"error":"invalid_grant"}"#, Expired, Some("invalid_grant")),
        (401, r#"{"error":"invalid_client"}"#, Refused, Some("invalid_client")),
        (400, r#"{"error":"unauthorized_client"}"#, Refused, Some("unauthorized_client")),
        (400, r#"{"error":"invalid_scope"}"#, Scope, Some("invalid_scope")),
        (200, r#"{"error":"invalid_grant"}"#, Expired, Some("invalid_grant")),
        (
            400,
            r#"{"error":"temporarily_unavailable"}"#,
            Unreachable,
            Some("temporarily_unavailable"),
        ),
        // Whatever a server says while it is broken, nothing is lost by it.
        (503, r#"{"error":"invalid_grant"}"#, Unreachable, Some("invalid_grant")),
        (429, r#"{"error":"invalid_grant"}"#, Unreachable, Some("invalid_grant")),
        (500, "<html>", Unreachable, None),
        (400, "<html>invalid_grant</html>", Unreachable, None),
        (200, "<html>", Unreachable, None),
        (400, "{}", Unreachable, None),
        (400, r#"{"error":{"code":1}}"#, Unreachable, None),
        (302, "", Unreachable, None),
    ] {
        let error = error(status, body);
        assert_eq!((error.kind(), error.oauth_code()), (kind, code), "{status} {body}");
    }
}

#[test]
fn errors_never_repeat_what_was_shown() {
    let body = json!({
        "error": "invalid_grant",
        "error_description": "refresh token hide-refresh\nof hide-secret \u{1b}is used up",
    });
    let error = request().read(&response(400, body)).err().unwrap();
    let text = format!("{error} {error:?}");
    assert!(!text.contains("hide-"), "{text}");
    let expected =
        "the authorization server refused: invalid_grant (refresh token …of … is used up)";
    assert_eq!(error.to_string(), expected);
    let long = json!({ "error": "e".repeat(500), "error_description": "d".repeat(500) });
    assert!(request().read(&response(400, long)).err().unwrap().to_string().len() < 500);
}

#[test]
fn a_nonce_is_told_from_other_refusals() {
    let answer = |status: u16, error: &str, nonce: &str| {
        let mut answer = response(status, json!({ "error": error }));
        answer.headers_mut().insert(DPOP_NONCE, nonce.parse().unwrap());
        nonce_wanted(&answer)
    };
    assert_eq!(answer(400, "use_dpop_nonce", "n").as_deref(), Some("n"));
    assert_eq!(answer(401, "use_dpop_nonce", "n").as_deref(), Some("n"));
    assert_eq!(answer(400, "invalid_grant", "n"), None);
    assert_eq!(answer(200, "use_dpop_nonce", "n"), None);
    assert_eq!(answer(400, "use_dpop_nonce", ""), None);
    assert_eq!(answer(400, "use_dpop_nonce", &"n".repeat(1025)), None);
    assert_eq!(nonce_wanted(&response(400, json!({ "error": "use_dpop_nonce" }))), None);
}

#[test]
fn what_is_spent_is_what_is_said_to_have_expired() {
    let answer = |status: u16, body: &'static str| {
        Response::builder().status(status).body(Bytes::from_static(body.as_bytes())).unwrap()
    };
    let refusal = r#"{"error": "invalid_grant"}"#;
    for (status, is_spent) in [(400, true), (401, true), (200, true), (429, false), (503, false)] {
        assert_eq!(spent(&answer(status, refusal)), is_spent, "{status}");
    }
    assert!(!spent(&answer(400, r#"{"error": "invalid_client"}"#)));
    assert!(!spent(&answer(400, "invalid_grant")));
    assert!(!spent(&answer(200, r#"{"access_token": "a", "token_type": "Bearer"}"#)));
}
