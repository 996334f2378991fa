use serde_json::{Value, json};
use turnbuckle::types::ClientCapabilities;

use super::*;

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

fn read(text: &str) -> Params {
    Params::of(Raw::from_json(text).unwrap()).unwrap()
}

fn write(text: &str, handshake: Option<&Initialize>, upstream: Revision) -> EncodedParams {
    let params = if text.is_empty() { Params::default() } else { read(text) };
    let meta = params.meta.as_ref().map(|raw| Meta::from_raw(raw).unwrap()).unwrap_or_default();
    let token = meta.progress_token().unwrap();
    let log_level = Some(LogLevel::Info);
    let downstream = if handshake.is_some() { LEGACY } else { MODERN };
    let sender =
        RequestSender { meta: &meta, handshake, log_level, progress_token: token.as_ref() };
    Revisions { downstream, upstream }.translate_params(&params, sender)
}

fn result(method: Option<Method>, result: Raw, upstream: Revision, downstream: Revision) -> Raw {
    Revisions { downstream, upstream }.translate_result(method, result)
}

fn client() -> Initialize {
    Initialize::new("2025-11-25", ClientCapabilities::new(), Implementation::new("near", "1"))
}

#[test]
fn between_legacy_sides_params_are_the_same_bytes() {
    let odd = r#"{ "a" : 1.0e+2, "_meta" : { "x" : 1 }, "b":18446744073709551616}"#;
    assert_eq!(
        write(odd, Some(&client()), LEGACY),
        EncodedParams { text: odd.into(), token_at: None }
    );
    assert_eq!(write("", Some(&client()), LEGACY).text, "");
}

#[test]
fn a_token_is_replaced_where_it_stands() {
    let text = r#"{"_meta":{"x":1.50,"progressToken":"t"},"name":"n"}"#;
    let written = write(text, Some(&client()), LEGACY);
    assert_eq!(written.text, r#"{"_meta":{"x":1.50},"name":"n"}"#);
    assert!(written.text[..written.token_at.unwrap()].ends_with(r#""_meta":{"#));
}

#[test]
fn only_meta_of_one_connection_is_replaced() {
    let version = Meta::PROTOCOL_VERSION;
    let text = format!(
        r#"{{"name":"n","_meta":{{"{version}":"2026-07-28","{}":{{"sampling":{{"y":1.50}}}},"k":2e2}}}}"#,
        Meta::CLIENT_CAPABILITIES
    );
    assert_eq!(write(&text, None, MODERN).text, text, "the same era, the same bytes");
    assert_eq!(write(&text, None, LEGACY).text, r#"{"name":"n","_meta":{"k":2e2}}"#);
    let up = write(r#"{"name":"n"}"#, Some(&client()), MODERN).text;
    let up: Value = serde_json::from_str(&up).unwrap();
    assert_eq!(up["_meta"][version], "2026-07-28");
    assert_eq!(up["_meta"][Meta::CLIENT_INFO]["name"], "near");
    assert_eq!(up["_meta"][Meta::CLIENT_CAPABILITIES], json!({}));
    assert_eq!(up["_meta"][Meta::LOG_LEVEL], "info");
}

#[test]
fn results_change_only_between_the_eras_and_only_where_they_must() {
    let odd = r#"{"content":[],"x":1.50e1,"structuredContent":{"n":123456789012345678901}}"#;
    let raw = || Raw::from_json(odd).unwrap();
    let call = Some(Method::CallTool);
    for revision in [LEGACY, MODERN] {
        assert_eq!(result(call, raw(), revision, revision).as_str(), odd);
    }
    let up = result(call, raw(), LEGACY, MODERN);
    assert_eq!(
        up.as_str(),
        format!("{},\"resultType\":\"complete\"}}", odd.strip_suffix('}').unwrap())
    );
    assert_eq!(result(None, raw(), LEGACY, MODERN).as_str(), odd, "its result is not known");
    let down = result(call, up, MODERN, LEGACY);
    assert!(!down.as_str().contains("resultType"), "{down}");
    assert!(down.as_str().contains(r#"{"n":123456789012345678901}"#), "{down}");
    assert!(down.as_str().contains(r#""x":1.50e1"#), "{down}");
    let bare = Raw::from_json(r#"{"content":[],"structuredContent":1.50,"resultType":"complete"}"#);
    let bare = result(call, bare.unwrap(), MODERN, LEGACY);
    assert_eq!(bare.as_str(), r#"{"content":[],"structuredContent":{"result":1.50}}"#);
    let list =
        result(Some(Method::ListTools), Raw::from_json(r#"{"tools":[]}"#).unwrap(), LEGACY, MODERN);
    let list: Value = list.decode().unwrap();
    assert_eq!(
        list,
        json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
    );
}

#[test]
fn a_subscription_has_the_id_that_its_client_chose() {
    let key = Meta::SUBSCRIPTION_ID;
    let text = format!(r#"{{"uri":"a","_meta":{{"{key}":1000000,"z":1}}}}"#);
    assert_eq!(subscription_id(&read(&text)), Some(1_000_000u64.into()));
    let downstream = with_subscription_id(&text, Some(&"s".into()));
    assert_eq!(downstream, format!(r#"{{"uri":"a","_meta":{{"{key}":"s","z":1}}}}"#));
    assert_eq!(with_subscription_id(&text, None), r#"{"uri":"a","_meta":{"z":1}}"#);
    assert_eq!(with_subscription_id(&format!(r#"{{"_meta":{{"{key}":1}}}}"#), None), "{}");
    assert_eq!(
        with_subscription_id("{}", Some(&7u64.into())),
        format!(r#"{{"_meta":{{"{key}":7}}}}"#)
    );
}

#[test]
fn progress_has_the_token_that_its_client_chose() {
    let params = read(r#"{"progress":1.50,"progressToken":1000001,"x":[ ]}"#);
    let downstream = with_progress_token(&params, &"mine".into());
    assert_eq!(downstream, r#"{"progress":1.50,"progressToken":"mine","x":[ ]}"#);
}

#[test]
fn requests_are_handled_as_both_eras_allow() {
    let handling =
        |downstream, upstream, method| Revisions { downstream, upstream }.handling(Some(method));
    let (set, subscribe, listen) = (Method::SetLevel, Method::Subscribe, Method::Listen);
    let table = [
        (LEGACY, LEGACY, set, Handling::Forward),
        (LEGACY, MODERN, set, Handling::StoreLogLevel),
        (LEGACY, MODERN, subscribe, Handling::Subscribe),
        (LEGACY, MODERN, Method::Unsubscribe, Handling::Unsubscribe),
        (MODERN, LEGACY, listen, Handling::ServeListenStream),
        (MODERN, MODERN, listen, Handling::Forward),
        (MODERN, LEGACY, Method::Discover, Handling::Describe),
        (MODERN, LEGACY, Method::CallTool, Handling::ForwardOrResume),
        (LEGACY, MODERN, Method::CallTool, Handling::Forward),
    ];
    for (downstream, upstream, method, expected) in table {
        assert_eq!(
            handling(downstream, upstream, method),
            expected,
            "{downstream} {upstream} {method}"
        );
    }
    assert_eq!(
        Revisions { downstream: MODERN, upstream: LEGACY }.handling(None),
        Handling::ForwardOrResume
    );
    for (downstream, foreign) in [(MODERN, [set, subscribe]), (LEGACY, [listen, Method::Discover])]
    {
        assert!(foreign.into_iter().all(|method| is_foreign(method, downstream)), "{downstream}");
        assert!(!is_foreign(Method::CallTool, downstream));
    }
    for (downstream, upstream, route, sharing) in [
        (LEGACY, LEGACY, QuestionRoute::Request, Sharing::Own),
        (LEGACY, MODERN, QuestionRoute::Retry, Sharing::Shared),
        (MODERN, LEGACY, QuestionRoute::PendingCall, Sharing::Shared),
        (MODERN, MODERN, QuestionRoute::PassThrough, Sharing::Shared),
    ] {
        let revisions = Revisions { downstream, upstream };
        assert_eq!(
            (revisions.question_route(), revisions.sharing()),
            (route, sharing),
            "{downstream} {upstream}"
        );
    }
}

fn translate(
    downstream: Revision,
    upstream: Revision,
    method: Option<Method>,
    error: Value,
) -> Value {
    let capabilities = ClientCapabilities::new();
    let request = FailedRequest { method, params: r#"{"uri":"a:1"}"#, capabilities: &capabilities };
    let error = serde_json::from_value(error).unwrap();
    match (Revisions { downstream, upstream }).translate_error(request, error) {
        TranslatedError::Error(error) => serde_json::to_value(error).unwrap(),
        TranslatedError::InputRequired(asked) => asked.decode().unwrap(),
    }
}

#[test]
fn an_error_has_the_code_of_the_clients_era() {
    let error = |code: i64, data: Value| json!({"code": code, "message": "m", "data": data});
    let bare = |code: i64| json!({"code": code, "message": "m"});
    let named = json!({"uri": "a:1"});
    let (read, call) = (Some(Method::ReadResource), Some(Method::CallTool));
    let table = [
        (MODERN, LEGACY, read, bare(-32_002), error(-32_602, named.clone())),
        (
            MODERN,
            LEGACY,
            read,
            error(-32_002, json!({"x": 1})),
            error(-32_602, json!({"x": 1, "uri": "a:1"})),
        ),
        (MODERN, LEGACY, read, error(-32_002, json!("x")), error(-32_602, json!("x"))),
        (MODERN, LEGACY, None, bare(-32_002), bare(-32_002)),
        (LEGACY, MODERN, read, error(-32_602, named.clone()), error(-32_002, named.clone())),
        (LEGACY, MODERN, read, bare(-32_602), bare(-32_602)),
        (LEGACY, MODERN, call, error(-32_602, named.clone()), error(-32_602, named.clone())),
        (LEGACY, LEGACY, read, bare(-32_002), bare(-32_002)),
        (MODERN, MODERN, read, error(-32_602, named.clone()), error(-32_602, named)),
        (LEGACY, MODERN, call, bare(-32_021), bare(-32_600)),
        (MODERN, MODERN, call, bare(-32_021), bare(-32_021)),
        (MODERN, LEGACY, call, bare(-32_042), bare(-32_603)),
        (LEGACY, LEGACY, call, bare(-32_042), bare(-32_042)),
    ];
    for (downstream, upstream, method, from, to) in table {
        assert_eq!(
            translate(downstream, upstream, method, from.clone()),
            to,
            "{downstream} {upstream} {from}"
        );
    }
    // The client can do nothing about the connection between the gateway and the server.
    for downstream in [LEGACY, MODERN] {
        for code in [-32_020, -32_022] {
            let translated =
                translate(downstream, MODERN, call, error(code, json!({"supported": []})));
            assert_eq!(
                (&translated["code"], translated.get("data")),
                (&json!(-32_603), None),
                "{downstream} {code}"
            );
        }
    }
}
