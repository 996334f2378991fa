//! What crosses a gateway, byte for byte.

use serde_json::{Value, json};
use turnbuckle::Revision;

use crate::script::{Between, Script, between, legacy};

const ODD: &str = r#"{ "n": 1.50e+3, "b":[ 1 ,2], "big":123456789012345678901234567890,"u":"\u0041","_meta":{"k":1.0} }"#;

/// The text of a member that ends a message.
fn last<'a>(line: &'a str, member: &str) -> &'a str {
    let at = line.find(&format!("\"{member}\":")).unwrap_or_else(|| panic!("{member}: {line}"));
    line[at + member.len() + 3..].strip_suffix('}').unwrap()
}

#[tokio::test]
async fn the_handshake_is_each_sides_own_with_the_others_facts() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(Revision::V2025_11_25);
    downstream.open(json!({"roots": {"listChanged": true}, "experimental": {"x": {"y": 1}}})).await;
    let mut upstream = dialed.recv().await.unwrap();
    let initialize = upstream.opened(json!({"tools": {}, "experimental": {"z": {"w": 2}}})).await;
    assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(initialize["params"]["clientInfo"], json!({"name": "downstream", "version": "3"}));
    let declared = json!({"roots": {"listChanged": true}, "experimental": {"x": {"y": 1}}});
    assert_eq!(initialize["params"]["capabilities"], declared);
    let answer = downstream.initialized().await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(
        answer["result"]["serverInfo"],
        json!({"name": "script", "version": "1", "acme": 1.5})
    );
    assert_eq!(
        answer["result"]["capabilities"],
        json!({"tools": {}, "experimental": {"z": {"w": 2}}})
    );
    assert_eq!(answer["result"]["instructions"], "Read me.");
}

// req: transport:standalone:raw-relay
#[tokio::test]
async fn requests_results_and_errors_that_nobody_understands_cross_unchanged() {
    let (mut downstream, mut upstream, _rest) = legacy(json!({}), json!({})).await;
    for method in ["acme/odd", "tools/call", "resources/read"] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{ODD}}}"#);
        downstream.say(&request).await;
        let (asked, line) = upstream.next(method).await;
        assert_eq!(last(&line, "params"), ODD);
        let result = r#"{ "z":[ ], "x" : 18446744073709551616.10, "_meta":{ "s":1 }}"#;
        upstream.answer(&asked, result).await;
        let (answer, line) = downstream.next("").await;
        assert_eq!(answer["id"], "x");
        assert_eq!(last(&line, "result"), result);
    }
    downstream.say(r#"{"jsonrpc":"2.0","id":7,"method":"acme/bare"}"#).await;
    let (asked, line) = upstream.next("acme/bare").await;
    assert!(!line.contains("params"), "{line}");
    let error = r#"{"code":-5,"message":"n\u00f6","data":{"d" : 1.0}}"#;
    upstream.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, asked["id"])).await;
    let (answer, line) = downstream.next("").await;
    assert_eq!(answer["error"]["code"], -5);
    assert_eq!(answer["error"]["message"], "nö");
    assert!(line.contains(r#""data":{"d" : 1.0}"#), "{line}");
}

#[tokio::test]
async fn notifications_cross_in_both_directions() {
    let (mut downstream, mut upstream, _rest) = legacy(json!({"roots": {}}), json!({})).await;
    for method in ["acme/news", "notifications/roots/list_changed"] {
        downstream.say(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{ODD}}}"#)).await;
        let (_, line) = upstream.next(method).await;
        assert_eq!(last(&line, "params"), ODD);
    }
    for method in ["acme/news", "notifications/tools/list_changed", "notifications/message"] {
        upstream.say(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{ODD}}}"#)).await;
        let (_, line) = downstream.next(method).await;
        assert_eq!(last(&line, "params"), ODD);
    }
}

#[tokio::test]
async fn progress_has_the_clients_token_and_every_other_byte_of_the_servers() {
    let (mut downstream, mut upstream, _rest) = legacy(json!({}), json!({})).await;
    let params = r#"{"name":"a","_meta":{"x":1.50,"progressToken":"mine"}}"#;
    downstream
        .say(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
        .await;
    let (asked, _) = upstream.next("tools/call").await;
    let token = &asked["params"]["_meta"]["progressToken"];
    assert!(token.is_u64() && asked["params"]["_meta"]["x"] == 1.5, "{asked}");
    let progress = format!(r#"{{"progress":1.50,"progressToken":{token},"acme":[ ]}}"#);
    upstream
        .say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{progress}}}"#
        ))
        .await;
    upstream.answer(&asked, "{}").await;
    let (_, line) = downstream.next("notifications/progress").await;
    assert_eq!(last(&line, "params"), r#"{"progress":1.50,"progressToken":"mine","acme":[ ]}"#);
    downstream.next("").await;
}

#[tokio::test]
async fn a_cancellation_names_the_request_as_the_other_side_knows_it() {
    let (mut downstream, mut upstream, _rest) = legacy(json!({}), json!({})).await;
    downstream.say(r#"{"jsonrpc":"2.0","id":"mine","method":"acme/long"}"#).await;
    let (asked, _) = upstream.next("acme/long").await;
    downstream
        .say(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine"}}"#,
        )
        .await;
    let (cancelled, _) = upstream.next("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
}

#[tokio::test]
async fn questions_and_answers_cross_unchanged_and_so_does_their_end() {
    let (mut downstream, mut upstream, _rest) = legacy(json!({"sampling": {}}), json!({})).await;
    for method in ["sampling/createMessage", "acme/question"] {
        upstream
            .say(&format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{ODD}}}"#))
            .await;
        let (asked, line) = downstream.next(method).await;
        assert_eq!(last(&line, "params"), ODD);
        downstream.answer(&asked, ODD).await;
        let (answer, line) = upstream.next("").await;
        assert_eq!(answer["id"], "q");
        assert_eq!(last(&line, "result"), ODD);
    }
    upstream.say(r#"{"jsonrpc":"2.0","id":"r","method":"acme/question"}"#).await;
    let (asked, _) = downstream.next("acme/question").await;
    upstream
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r"}}"#)
        .await;
    let (cancelled, _) = downstream.next("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"acme":1.50}},"acme/k":2e2}"#;

/// Is a modern server that is asked what it is.
async fn discovered(upstream: &mut Script) {
    let (asked, _) = upstream.next("server/discover").await;
    let result = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#;
    upstream.answer(&asked, result).await;
}

#[tokio::test]
async fn between_modern_sides_envelope_questions_and_state_stay_what_they_are() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(Revision::V2026_07_28);
    let params = format!(r#"{{"name":"a","arguments":{{"n":1.50}},{META}}}"#);
    let say = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
    };
    downstream.say(&say(&params)).await;
    let mut upstream = dialed.recv().await.unwrap();
    discovered(&mut upstream).await;
    let (asked, line) = upstream.next("tools/call").await;
    assert_eq!(last(&line, "params"), params);
    let required = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"acme/q","params":{"p":1.0}}},"requestState":"s\u0041","x":1.0}"#;
    upstream.answer(&asked, required).await;
    let (_, line) = downstream.next("").await;
    assert_eq!(last(&line, "result"), required);
    let retry = format!(
        r#"{{"name":"a","inputResponses":{{"k":{{"r":1.0}}}},"requestState":"s\u0041",{META}}}"#
    );
    downstream.say(&say(&retry)).await;
    let (_, line) = upstream.next("tools/call").await;
    assert_eq!(last(&line, "params"), retry);
}

#[tokio::test]
async fn a_stream_of_a_modern_client_is_subscriptions_on_a_legacy_server() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(Revision::V2025_11_25);
    let listen = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:1"]}},{META}}}}}"#
        )
    };
    downstream.say(&listen("s1")).await;
    let mut upstream = dialed.recv().await.unwrap();
    upstream
        .opened(json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}}))
        .await;
    let (asked, _) = upstream.next("resources/subscribe").await;
    assert_eq!(asked["params"], json!({"uri": "a:1"}));
    upstream.answer(&asked, "{}").await;
    let granted = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1"]});
    let key = "io.modelcontextprotocol/subscriptionId";
    let (told, _) = downstream.next("notifications/subscriptions/acknowledged").await;
    assert_eq!(told["params"]["notifications"], granted);
    assert_eq!(told["params"]["_meta"][key], "s1");
    // Another stream for the same needs no other subscription.
    downstream.say(&listen("s2")).await;
    let (told, _) = downstream.next("notifications/subscriptions/acknowledged").await;
    assert_eq!(told["params"]["_meta"][key], "s2");
    upstream.say(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","acme":1.50}}"#).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let (told, line) = downstream.next("notifications/resources/updated").await;
        assert!(line.contains(r#""acme":1.50"#), "{line}");
        ids.push(told["params"]["_meta"][key].clone());
    }
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, ["s1", "s2"]);
    for (id, ends) in [("s1", None), ("s2", Some("a:1"))] {
        downstream.say(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"{id}"}}}}"#)).await;
        if let Some(uri) = ends {
            let (asked, _) = upstream.next("resources/unsubscribe").await;
            assert_eq!(asked["params"]["uri"], uri);
        }
    }
}

#[tokio::test]
async fn what_only_the_other_era_has_is_not_there() {
    let (mut downstream, _far, _rest) = legacy(json!({}), json!({})).await;
    downstream.say(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#).await;
    let (answer, _) = downstream.next("").await;
    assert_eq!(answer["error"]["code"], -32_601);
    downstream.say(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{{"level":"info",{META}}}}}"#)).await;
    let (answer, _) = downstream.next("").await;
    assert_eq!(answer["error"]["code"], -32_601);
}

fn listen(id: &str, uri: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"{id}","method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["{uri}"]}},{META}}}}}"#
    )
}

fn cancel(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":"{id}"}}}}"#
    )
}

#[tokio::test]
async fn who_listens_anew_never_overtakes_who_has_just_left() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(Revision::V2025_11_25);
    downstream.say(&listen("s1", "a:1")).await;
    let mut upstream = dialed.recv().await.unwrap();
    upstream.opened(json!({"resources": {"subscribe": true}})).await;
    let (asked, _) = upstream.next("resources/subscribe").await;
    // Two listen for what the server then refuses: neither is told that it will hear of it.
    downstream.say(&listen("s2", "a:1")).await;
    upstream
        .say(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32002,"message":"no"}}}}"#,
            asked["id"]
        ))
        .await;
    let (told, _) = downstream.next("notifications/subscriptions/acknowledged").await;
    assert_eq!(told["params"]["notifications"], json!({}));
    let (told, told_line) = downstream.next("notifications/subscriptions/acknowledged").await;
    assert_eq!(told["params"]["notifications"], json!({}), "{told_line}");
    downstream.say(&cancel("s1")).await;
    downstream.say(&cancel("s2")).await;

    downstream.say(&listen("s3", "b:1")).await;
    let (asked, _) = upstream.next("resources/subscribe").await;
    upstream.answer(&asked, "{}").await;
    downstream.next("notifications/subscriptions/acknowledged").await;
    downstream.say(&cancel("s3")).await;
    let (leaving, _) = upstream.next("resources/unsubscribe").await;
    downstream.say(&listen("s4", "b:1")).await;
    upstream.answer(&leaving, "{}").await;
    let (asked, _) = upstream.next("resources/subscribe").await;
    upstream.answer(&asked, "{}").await;
    let (told, _) = downstream.next("notifications/subscriptions/acknowledged").await;
    let granted = json!({"resourceSubscriptions": ["b:1"]});
    assert_eq!(told["params"]["notifications"], granted);
}

#[tokio::test]
async fn a_resource_is_no_part_of_another_whose_name_it_begins_with() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(Revision::V2025_11_25);
    downstream.say(&listen("s1", "a:1")).await;
    let mut upstream = dialed.recv().await.unwrap();
    upstream.opened(json!({"resources": {"subscribe": true}})).await;
    for (id, next) in [("s1", Some("s2")), ("s2", None)] {
        let (asked, _) = upstream.next("resources/subscribe").await;
        upstream.answer(&asked, "{}").await;
        downstream.next("notifications/subscriptions/acknowledged").await;
        if let Some(next) = next {
            assert_eq!(id, "s1");
            downstream.say(&listen(next, "a:10")).await;
        }
    }
    for (uri, hears) in [("a:10", "s2"), ("a:10/x", "s2"), ("a:1/x", "s1")] {
        upstream.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
        ))
        .await;
        let (told, _) = downstream.next("notifications/resources/updated").await;
        assert_eq!(told["params"]["uri"], uri);
        let key = "io.modelcontextprotocol/subscriptionId";
        assert_eq!(told["params"]["_meta"][key], hears, "{uri}");
    }
}

#[tokio::test]
async fn a_modern_client_that_has_no_call_in_flight_is_not_asked() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(Revision::V2025_11_25);
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a",{META}}}}}"#
    );
    downstream.say(&call).await;
    let mut upstream = dialed.recv().await.unwrap();
    upstream.opened(json!({"tools": {}})).await;
    let (asked, _) = upstream.next("tools/call").await;
    upstream.answer(&asked, "{}").await;
    downstream.next("").await;
    upstream.say(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#).await;
    let (answer, line) = upstream.next("").await;
    assert!(answer["id"] == "q" && answer["error"].is_object(), "{line}");
    downstream.say(&call).await;
    upstream.next("tools/call").await;
}

/// A page that has to be visited first is an error in one era, and a question in the other.
#[tokio::test]
async fn pages_to_visit_are_asked_for_in_the_way_of_the_clients_era() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(Revision::V2025_11_25);
    let able = META.replace(r#"{"acme":1.50}"#, r#"{"url":{}}"#);
    let call = |id: u32, meta: &str, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a",{more}{meta}}}}}"#
        )
    };
    let required = |asked: &Value| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32042,"message":"visit","data":{{"elicitations":[{{"mode":"url","elicitationId":"e","url":"https://x.example/","message":"Log in."}}]}}}}}}"#,
            asked["id"]
        )
    };
    downstream.say(&call(1, &able, "")).await;
    let mut upstream = dialed.recv().await.unwrap();
    upstream.opened(json!({"tools": {}})).await;
    let (asked, _) = upstream.next("tools/call").await;
    upstream.say(&required(&asked)).await;
    let (answer, line) = downstream.next("").await;
    assert_eq!(answer["result"]["resultType"], "input_required", "{line}");
    assert_eq!(answer["result"].get("requestState"), None);
    let page = &answer["result"]["inputRequests"]["1"];
    assert_eq!(page["method"], "elicitation/create");
    assert_eq!(page["params"]["url"], "https://x.example/");
    let declined = r#""inputResponses":{"1":{"action":"decline"}},"#;
    downstream.say(&call(2, &able, declined)).await;
    let (answer, _) = downstream.next("").await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("declined"), "{answer}");
    downstream.say(&call(3, &able, r#""inputResponses":{"1":{"action":"accept"}},"#)).await;
    let (asked, line) = upstream.next("tools/call").await;
    assert!(!line.contains("inputResponses"), "{line}");
    upstream.answer(&asked, r#"{"content":[]}"#).await;
    downstream.next("").await;
    // A client that can't show pages is told what it lacks.
    downstream.say(&call(4, META, "")).await;
    let (asked, _) = upstream.next("tools/call").await;
    upstream.say(&required(&asked)).await;
    let (answer, _) = downstream.next("").await;
    assert_eq!(answer["error"]["code"], -32_021, "{answer}");
    let lacks = json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
    assert_eq!(answer["error"]["data"], lacks);
}
