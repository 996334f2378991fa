//! What a server makes of messages that are not as they should be, and of ids: a client that is
//! a script sends them. The letters are those of the measurements in the list of pain points.

use serde_json::{Value, json};
use turnbuckle::{Limits, types::Era};
use turnbuckle_contract::SECRET;

use crate::{
    raw::{Served, in_both_eras, initialize, opened, opened_with, request, served},
    rig::{eventually, virtually},
};

in_both_eras! {
    a10_pain_a_a_panic_is_answered_with_its_id_and_nothing_else,
    a10_a_panic_after_waiting_is_answered_too,
    a11_pain_b_an_id_in_flight_is_refused_and_the_first_is_not_disturbed,
    a11_text_and_number_are_one_id_in_flight,
    a11_an_id_is_free_again_after_its_answer,
    a12a_an_unknown_id_is_left_out_and_never_null,
    law01_every_request_gets_exactly_one_answer,
    law02_ids_are_echoed_byte_for_byte,
    law02_progress_tokens_are_echoed_byte_for_byte,
    law07_pain_c_a_tool_name_of_the_wrong_type_is_named,
    law07_pain_d_a_broken_request_is_refused_with_its_id,
    law07_pain_d6_a_line_that_is_not_text_costs_that_line,
    law07_junk_costs_one_line_each,
    // req: tools:call:unknown-name, protocol:error:method-not-found
    law07_unknown_methods_and_tools,
    law07_answers_that_nobody_asked_for_are_ignored,
    // req: protocol:notifications:no-response
    law07_notifications_are_never_answered,
    // req: logging:per-request:opt-in, logging:per-request:threshold, logging:message:filtered
    law07_log_messages_are_sent_only_as_they_were_asked_for,
    law08_a_line_over_the_limit_names_the_limit,
    law08_a_line_at_the_limit_is_served,
    law08_a_message_that_nests_too_deep_names_the_limit,
    law08_a_message_that_nests_too_deep_is_refused_with_its_id,
    law08_one_request_too_many_is_refused_with_its_id,
    law08_junk_is_not_answered_without_end,
}

/// The error of an answer, whose id must be this.
fn error_of(answer: &Value, id: impl Into<Value>) -> i64 {
    assert_eq!(answer["id"], id.into(), "{answer}");
    assert!(answer.get("result").is_none(), "{answer}");
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("not an error: {answer}"))
}

fn message_of(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

async fn a10_pain_a_a_panic_is_answered_with_its_id_and_nothing_else(era: Era) {
    let mut served = opened(era).await;
    for tool in ["panic", "panic_blocking", "broken"] {
        let call = served.tool(tool, tool, json!({}));
        served.peer.say(call).await;
        let line = served.peer.line().await.unwrap();
        assert!(!line.contains(SECRET) && !line.contains("hunter2"), "{line}");
        assert_eq!(error_of(&serde_json::from_str(&line).unwrap(), tool), -32603);
    }
    served.alive().await;
    served.peer.quiet().await;
}

async fn a10_a_panic_after_waiting_is_answered_too(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "panic_later", "k").await;
    served.fixture.release("k");
    assert_eq!(error_of(&served.peer.read().await, 1), -32603);
    served.alive().await;
}

async fn a11_pain_b_an_id_in_flight_is_refused_and_the_first_is_not_disturbed(era: Era) {
    let mut served = opened(era).await;
    served.hold(9, "hold", "first").await;
    let second = served.tool(9, "hold", json!({"key": "second"}));
    let refused = served.peer.ask(second).await;
    assert_eq!(error_of(&refused, 9), -32600);
    assert!(message_of(&refused).contains('9'), "{refused}");
    assert_eq!(served.fixture.of("second").started, 0);
    assert_eq!(served.fixture.of("first").dropped, 0);
    served.fixture.release("first");
    let first = served.peer.read().await;
    assert_eq!(
        (&first["id"], &first["result"]["content"][0]["text"]),
        (&json!(9), &json!("first"))
    );
    served.peer.quiet().await;
}

async fn a11_text_and_number_are_one_id_in_flight(era: Era) {
    let mut served = opened(era).await;
    served.hold("7", "hold", "text").await;
    let number = served.tool(7, "echo", json!({"text": "x"}));
    assert_eq!(error_of(&served.peer.ask(number).await, 7), -32600);
    let other = served.tool("07", "echo", json!({"text": "other"}));
    let other = served.peer.ask(other).await;
    assert_eq!(other["result"]["content"][0]["text"], "other");
    served.fixture.release("text");
    assert_eq!(served.peer.read().await["id"], "7");
}

async fn a11_an_id_is_free_again_after_its_answer(era: Era) {
    let mut served = opened(era).await;
    for tool in ["echo", "fail"] {
        for _ in 0..3 {
            let call = served.tool(1, tool, json!({"text": "again"}));
            let answer = served.peer.ask(call).await;
            assert_eq!(answer["result"]["content"][0]["text"], "again");
        }
    }
}

async fn a12a_an_unknown_id_is_left_out_and_never_null(era: Era) {
    let mut served = opened(era).await;
    for line in [
        "junk",
        "[]",
        "5",
        "null",
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"tools/list"}"#,
    ] {
        served.peer.say(line).await;
        let answer = served.peer.read().await;
        assert!(answer.get("id").is_none(), "{line} gave {answer}");
        assert!(answer["error"]["code"].is_i64(), "{line} gave {answer}");
    }
    served.alive().await;
}

async fn law01_every_request_gets_exactly_one_answer(era: Era) {
    let mut served = opened(era).await;
    let tools = ["echo", "fail", "panic", "broken", "refuse", "nope", "progress", "add"];
    for id in 0..400 {
        let tool = tools[id % tools.len()];
        let arguments = json!({"text": "t", "n": 2, "a": 1, "b": 2});
        let call = served.tool(id, tool, arguments);
        served.peer.say(call).await;
    }
    let mut seen = vec![0; 400];
    for answer in served.peer.lull().await {
        seen[answer["id"].as_u64().unwrap() as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count == 1), "{seen:?}");
}

async fn law02_ids_are_echoed_byte_for_byte(era: Era) {
    let mut served = opened(era).await;
    for token in [
        "7",
        r#""7""#,
        r#""07""#,
        r#""""#,
        "0",
        "-1",
        "18446744073709551615",
        "-9223372036854775808",
        r#""é \u00e9 \/ \n""#,
        r#""a\u0062c""#,
        r#""🦀""#,
    ] {
        let call = served.tool("@", "echo", json!({"text": "x"})).to_string();
        served.peer.say(call.replace(r#""id":"@""#, &format!(r#""id":{token}"#))).await;
        let line = served.peer.line().await.unwrap();
        assert!(line.contains(&format!(r#""id":{token},"#)), "{token} came back as {line}");
        // An error echoes it too.
        served.peer.say(format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"unheard/of"}}"#)).await;
        let line = served.peer.line().await.unwrap();
        assert!(line.contains(&format!(r#""id":{token},"#)), "{token} came back as {line}");
    }
}

async fn law02_progress_tokens_are_echoed_byte_for_byte(era: Era) {
    let mut served = opened(era).await;
    for token in ["7", r#""7""#, r#""a\u0062c""#, "0"] {
        let params =
            json!({"name": "progress", "arguments": {"n": 1}, "_meta": {"progressToken": "@"}});
        let call = served.request(1, "tools/call", params).to_string();
        let call = call.replace(r#""progressToken":"@""#, &format!(r#""progressToken":{token}"#));
        served.peer.say(call).await;
        let line = served.peer.line().await.unwrap();
        assert!(
            line.contains(&format!(r#""progressToken":{token}"#)),
            "{token} came back as {line}"
        );
        assert_eq!(served.peer.read().await["id"], 1);
    }
}

async fn law07_pain_c_a_tool_name_of_the_wrong_type_is_named(era: Era) {
    let mut served = opened(era).await;
    for (params, named) in [
        (json!({"name": 5, "arguments": {}}), "name"),
        (json!({"name": null}), "name"),
        (json!({"arguments": {}}), "name"),
        (json!({"name": "echo", "arguments": [1]}), "arguments"),
        (json!({"name": "echo", "arguments": "x"}), "arguments"),
    ] {
        let call = served.request(3, "tools/call", params.clone());
        let answer = served.peer.ask(call).await;
        assert_eq!(error_of(&answer, 3), -32602, "{params}");
        assert!(message_of(&answer).contains(named), "{params}: {answer}");
    }
    // Wrong arguments are for the model to read, with their path.
    let call = served.tool(4, "add", json!({"a": 1, "b": "two"}));
    let told = served.peer.ask(call).await;
    assert_eq!(told["result"]["isError"], true, "{told}");
    assert!(told["result"]["content"][0]["text"].as_str().unwrap().contains('b'), "{told}");
}

async fn law07_pain_d_a_broken_request_is_refused_with_its_id(era: Era) {
    let mut served = opened(era).await;
    for line in [
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":[1]}"#,
        r#"{"params":[1],"method":"tools/list","id":5,"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":"text"}"#,
        r#"{"jsonrpc":"1.0","id":5,"method":"tools/list"}"#,
        r#"{"jsonrpc":2.0,"id":5,"method":"tools/list"}"#,
        r#"{"id":5,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":null}"#,
        r#"{"jsonrpc":"2.0","id":5}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{},"params":{}}"#,
    ] {
        served.peer.say(line).await;
        assert_eq!(error_of(&served.peer.read().await, 5), -32600, "{line}");
    }
    // The largest integer is an id like any other.
    let largest = served.tool(u64::MAX, "echo", json!({"text": "largest"}));
    assert_eq!(served.peer.ask(largest).await["result"]["content"][0]["text"], "largest");
    // Twice the same name in `_meta`: which one was meant?
    let twice = served.request(6, "tools/list", json!({"_meta": {"@": 1}})).to_string();
    served.peer.say(twice.replace(r#""@":1"#, r#""a/b":1,"a/b":2"#)).await;
    let code = error_of(&served.peer.read().await, 6);
    assert!([-32600, -32602].contains(&code), "{code}");
    served.alive().await;
}

async fn law07_pain_d6_a_line_that_is_not_text_costs_that_line(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "hold", "k").await;
    served.peer.bytes(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\xff\"}\n").await;
    assert_eq!(served.peer.read().await["error"]["code"], -32700);
    served.alive().await;
    served.fixture.release("k");
    assert_eq!(served.peer.read().await["id"], 1);
}

async fn law07_junk_costs_one_line_each(era: Era) {
    let mut served = opened(era).await;
    for (line, code) in [
        ("what is this", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("}{", -32700),
        ("\"text\"", -32600),
        ("5", -32600),
        ("true", -32600),
        ("{}", -32600),
        ("[]", -32600),
    ] {
        served.peer.say(line).await;
        let answer = served.peer.read().await;
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    // Empty lines and another system's line ends are no messages.
    served.peer.bytes(b"\n\r\n   \n").await;
    let call = served.tool("crlf", "echo", json!({"text": "x"}));
    served.peer.bytes(format!("{call}\r\n").as_bytes()).await;
    assert_eq!(served.peer.read().await["id"], "crlf");
    served.peer.quiet().await;
}

async fn law07_unknown_methods_and_tools(era: Era) {
    let mut served = opened(era).await;
    for method in ["unheard/of", "notifications/cancelled", "", "tools/Call", "roots/list"] {
        let call = served.request(1, method, json!({}));
        assert_eq!(error_of(&served.peer.ask(call).await, 1), -32601, "{method}");
    }
    let call = served.tool(2, "nope", json!({}));
    let answer = served.peer.ask(call).await;
    assert_eq!(error_of(&answer, 2), -32602);
    assert!(message_of(&answer).contains("nope"), "{answer}");
}

async fn law07_answers_that_nobody_asked_for_are_ignored(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "hold", "k").await;
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","error":"what"}"#,
    ] {
        served.peer.say(line).await;
    }
    served.peer.quiet().await;
    assert_eq!(served.fixture.of("k").dropped, 0);
    served.fixture.release("k");
    assert_eq!(served.peer.read().await["id"], 1);
}

async fn law07_notifications_are_never_answered(era: Era) {
    let mut served = opened(era).await;
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/unheard/of"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"panic"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{}}"#,
    ] {
        served.peer.say(line).await;
    }
    served.peer.quiet().await;
    served.alive().await;
}

async fn law07_log_messages_are_sent_only_as_they_were_asked_for(era: Era) {
    let mut served = opened(era).await;
    let call = served.tool(1, "log", json!({"text": "a word"}));
    assert!(served.peer.ask(call.clone()).await["result"].is_object(), "nobody had asked");
    for (level, wanted) in [("error", false), ("info", true), ("debug", true)] {
        let mut call = call.clone();
        match era {
            Era::Legacy => {
                let request = served.request(2, "logging/setLevel", json!({"level": level}));
                assert!(served.peer.ask(request).await["result"].is_object());
            }
            Era::Modern => {
                call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
            }
        }
        served.peer.say(call).await;
        if wanted {
            let note = served.peer.read().await;
            assert_eq!(note["method"], "notifications/message", "{level}");
            assert_eq!(note["params"], json!({"level": "info", "data": "a word"}), "{level}");
        }
        assert!(served.peer.read().await["result"].is_object(), "{level}");
    }
}

async fn law08_a_line_over_the_limit_names_the_limit(era: Era) {
    let mut served = opened_with(era, Limits::default().line_bytes(2000), 1 << 20).await;
    served.hold(1, "hold", "k").await;
    let call = served.tool(2, "echo", json!({"text": "x".repeat(100_000)}));
    served.peer.say(call).await;
    let answer = served.peer.read().await;
    error_of(&answer, 2);
    assert!(message_of(&answer).contains("2000"), "{answer}");
    // Where the id comes last it is never seen.
    served
        .peer
        .say(format!(r#"{{"method":"tools/list","x":"{}","id":3}}"#, "x".repeat(9_000)))
        .await;
    let answer = served.peer.read().await;
    assert!(answer.get("id").is_none() && message_of(&answer).contains("2000"), "{answer}");
    served.alive().await;
    served.fixture.release("k");
    assert_eq!(served.peer.read().await["id"], 1);
}

async fn law08_a_line_at_the_limit_is_served(era: Era) {
    let frame = request(era, 2, "tools/call", json!({"name": "echo", "arguments": {"text": ""}}));
    let text = "x".repeat(2000 - frame.to_string().len() - 1);
    let mut served = opened_with(era, Limits::default().line_bytes(2000), 1 << 20).await;
    let call = served.tool(2, "echo", json!({"text": text}));
    assert_eq!(call.to_string().len(), 1999, "with its end, the line is as long as allowed");
    assert_eq!(served.peer.ask(call).await["result"]["content"][0]["text"], text);
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// A call whose argument nests this deep.
fn deep_call(served: &Served, levels: usize) -> String {
    let call = served.tool(5, "echo", json!({"text": "x", "deep": "@"})).to_string();
    call.replace(r#""@""#, &nested(levels))
}

async fn law08_a_message_that_nests_too_deep_names_the_limit(era: Era) {
    let mut served = opened_with(era, Limits::default().json_depth(40), 1 << 20).await;
    for levels in [60, 5_000, 200_000] {
        let call = deep_call(&served, levels);
        served.peer.say(call).await;
        let answer = served.peer.read().await;
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(message_of(&answer).contains("40"), "{answer}");
    }
    let call = deep_call(&served, 30);
    served.peer.say(call).await;
    assert!(served.peer.read().await["result"].is_object());
    served.alive().await;
}

/// The id stands before the depths, where anyone can read it.
async fn law08_a_message_that_nests_too_deep_is_refused_with_its_id(era: Era) {
    let mut served = opened_with(era, Limits::default().json_depth(40), 1 << 20).await;
    let call = deep_call(&served, 60);
    assert!(call.starts_with(r#"{"id":5,"#), "{call}");
    served.peer.say(call).await;
    assert_eq!(error_of(&served.peer.read().await, 5), -32600);
}

async fn law08_one_request_too_many_is_refused_with_its_id(era: Era) {
    let mut served = opened_with(era, Limits::default().in_flight(3), 1 << 20).await;
    for id in 0..3 {
        served.hold(id, "hold", "k").await;
    }
    let one_more = served.tool(3, "echo", json!({"text": "x"}));
    let answer = served.peer.ask(one_more).await;
    error_of(&answer, 3);
    assert!(
        message_of(&answer).contains('3') && message_of(&answer).contains("in flight"),
        "{answer}"
    );
    served.fixture.release("k");
    let mut answered: Vec<u64> = Vec::new();
    for _ in 0..3 {
        answered.push(served.peer.read().await["id"].as_u64().unwrap());
    }
    answered.sort();
    assert_eq!(answered, [0, 1, 2]);
    served.alive().await;
}

async fn law08_junk_is_not_answered_without_end(era: Era) {
    let mut served = opened_with(era, Limits::default(), 4096).await;
    // The client does not read, so what the server says about it piles up.
    let mut junk = Vec::new();
    for _ in 0..2_000 {
        junk.extend_from_slice(b"junk\n");
    }
    served.peer.bytes(&junk).await;
    let call = served.tool("after", "echo", json!({"text": "x"}));
    served.peer.say(call).await;
    let said = served.peer.lull().await;
    assert!(said.len() < 1_000, "{} errors for 2,000 lines of junk", said.len());
    assert_eq!(said.last().unwrap()["id"], "after");
}

// req: lifecycle:requests-before-initialized, ping:client-to-server
#[tokio::test(start_paused = true)]
async fn law07_a_request_before_initialize_is_refused_and_the_connection_lives() {
    virtually(async {
        let mut served = served(Era::Legacy, Limits::default(), 1 << 20);
        for method in ["tools/list", "tools/call", "logging/setLevel", "unheard/of"] {
            let request = served.request(1, method, json!({"name": "echo"}));
            assert!(error_of(&served.peer.ask(request).await, 1) < 0, "{method}");
        }
        let ping = served.request(2, "ping", json!({}));
        assert_eq!(served.peer.ask(ping).await["result"], json!({}));
        served.peer.say("junk").await;
        assert_eq!(served.peer.read().await["error"]["code"], -32700);
        served.initialize("2025-11-25").await;
        served.alive().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn law07_a_second_initialize_is_refused_and_changes_nothing() {
    virtually(async {
        let mut served = opened(Era::Legacy).await;
        served.hold(1, "hold", "k").await;
        let again = served.peer.ask(initialize("2024-11-05")).await;
        assert!(again["error"]["code"].is_i64(), "{again}");
        served.fixture.release("k");
        assert_eq!(served.peer.read().await["id"], 1);
        eventually(|| served.fixture.of("k").finished == 1).await;
        served.alive().await;
    })
    .await;
}
