use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn shows(text: &str, shown: &str) {
    assert_eq!(json(text), shown);
}

#[test]
fn secrets_are_known_by_their_names() {
    for name in [
        "token",
        "access_token",
        "refreshToken",
        "X-Auth-Token",
        "password",
        "dbPassword",
        "client_secret",
        "Authorization",
        "api_key",
        "apiKey",
        "API-KEY",
        "aws_access_key_id",
        "cookie",
        "Set-Cookie",
        "credentials",
        "private_key",
        "code_verifier",
        "pin",
        "PWD",
        "mcp-session-id",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "progressToken",
        "maxTokens",
        "inputTokens",
        "name",
        "keyboard",
        "code",
        "author",
        "pinned",
        "token_type",
        "cursor",
        "authors",
        "key",
        "requestState",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn members_keep_their_order_and_secrets_go() {
    shows(
        r#"{"z":1,"password":"hunter2","a":[true,null,-1.5e3],"api_key": 77,"b":{}}"#,
        r#"{"z":1,"password":"[redacted]","a":[true,null,-1.5e3],"api_key":"[redacted]","b":{}}"#,
    );
    shows(r#"{"progressToken":3,"maxTokens":5}"#, r#"{"progressToken":3,"maxTokens":5}"#);
}

#[test]
fn all_inside_of_a_secret_is_one() {
    shows(
        r#"{"credentials":{"user":"ada","keys":["a",{"b":"c"}]},"user":"ada"}"#,
        r#"{"credentials":{"user":"[redacted]","keys":["[redacted]",{"b":"[redacted]"}]},"user":"ada"}"#,
    );
}

#[test]
fn the_schema_of_a_secret_is_none() {
    shows(
        r#"{"properties":{"password":{"type":"string","default":"hunter2"},"x":{"default":"y"}}}"#,
        r#"{"properties":{"password":{"type":"string","default":"[redacted]"},"x":{"default":"y"}}}"#,
    );
}

#[test]
fn escapes_and_text_that_is_json_itself_hide_nothing() {
    shows(r#"{"pass\u0077ord":"hunter2"}"#, r#"{"password":"[redacted]"}"#);
    let inner = json!({"token": "hunter2", "n": 1}).to_string();
    let shown = json(&json!({"content": [{"type": "text", "text": inner}]}).to_string());
    assert!(!shown.contains("hunter2") && shown.contains("redacted"), "{shown}");
    assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
}

#[test]
fn a_sealed_state_shows_its_ends_and_a_long_text_its_beginning() {
    let state = format!("abcd{}wxyz", "0".repeat(100));
    let shown = json(&json!({"requestState": state}).to_string());
    assert_eq!(shown, r#"{"requestState":"abcd…wxyz (108 characters)"}"#);
    let shown = json(&json!({"requestState": "short"}).to_string());
    assert_eq!(shown, r#"{"requestState":"[redacted]"}"#);
    let shown = json(&json!("é".repeat(LONGEST)).to_string());
    assert!(shown.len() < LONGEST + 40 && shown.contains("bytes more"), "{shown}");
}

fn values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        ".{0,12}".prop_map(|value| json!(value)),
        Just(json!("Bearer 7h1515453cr37")),
        Just(json!("http://a:7h1515453cr37@b/?token=7h1515453cr37")),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let names = prop_oneof!["[a-z]{1,6}".prop_map(|name| name), Just("properties".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::btree_map(names, inner.clone(), 0..4)
                .prop_map(|members| json!(members)),
            inner.prop_map(|_| json!({"password": "7h1515453cr37"})),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_json_again_and_secrets_are_gone(value in values()) {
        let shown = json(&value.to_string());
        prop_assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{}", shown);
        prop_assert!(!shown.contains("7h1515453cr37"), "{}", shown);
    }

    #[test]
    fn nothing_makes_it_panic(text in ".{0,64}") {
        let _ = (json(&text), super::text(&text));
    }
}
