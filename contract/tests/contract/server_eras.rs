//! Two eras on one stream, and what each must never hear of the other. Batches, which one
//! revision has.

use serde_json::{Value, json};
use turnbuckle::{
    Limits, Revision,
    types::{Era, Method},
};

use crate::{
    raw::{Served, cancelled, opened, request, served},
    rig::{eventually, virtually},
};

/// Words that a legacy peer has never heard.
const MODERN_WORDS: [&str; 9] = [
    "io.modelcontextprotocol/",
    "resultType",
    "ttlMs",
    "cacheScope",
    "server/discover",
    "subscriptions/",
    "supportedVersions",
    "input_required",
    "2026-07-28",
];

// req: lifecycle:stateless:no-initialize, lifecycle:version:match
#[tokio::test(start_paused = true)]
async fn law07_both_eras_are_served_on_one_stream() {
    virtually(async {
        let mut served = served(Era::Legacy, Limits::default(), 1 << 20);
        let modern = |id: u64, tool: &str, arguments: Value| {
            request(Era::Modern, id, "tools/call", json!({"name": tool, "arguments": arguments}))
        };
        // Modern requests need no opening, before and after there was one.
        let answer = served.peer.ask(modern(1, "identity", json!({}))).await;
        assert_eq!(answer["result"]["structuredContent"]["revision"], "2026-07-28");
        let early = served.tool(2, "identity", json!({}));
        assert!(served.peer.ask(early).await["error"]["code"].is_i64());
        served.initialize("2025-06-18").await;
        for id in 3..23 {
            let (call, revision) = if id % 2 == 0 {
                (served.tool(id, "identity", json!({})), "2025-06-18")
            } else {
                (modern(id, "identity", json!({})), "2026-07-28")
            };
            let answer = served.peer.ask(call).await;
            assert_eq!(answer["result"]["structuredContent"]["revision"], revision, "{answer}");
            assert_eq!(answer["result"].get("resultType").is_some(), id % 2 == 1, "{answer}");
        }
        // They share one space of ids.
        served.hold(99, "hold", "k").await;
        let clash = served.peer.ask(modern(99, "echo", json!({"text": "x"}))).await;
        assert_eq!(clash["error"]["code"], -32600);
        served.fixture.release("k");
        assert_eq!(served.peer.read().await["id"], 99);
    })
    .await;
}

// req: lifecycle:stateless:unpinned-legacy-wire
#[tokio::test(start_paused = true)]
async fn law07_a_legacy_client_never_hears_a_modern_word() {
    virtually(async {
        for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
            let mut served = served(Era::Legacy, Limits::default(), 1 << 20);
            let mut said = vec![served.peer.ask(crate::raw::initialize(revision.as_str())).await];
            served.peer.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
            say_everything(&mut served).await;
            said.extend(served.peer.lull().await);
            assert!(said.len() > 15, "{}", said.len());
            for frame in &said {
                let text = frame.to_string();
                for word in MODERN_WORDS {
                    assert!(!text.contains(word), "{revision}: `{word}` in {text}");
                }
            }
        }
    })
    .await;
}

/// Everything that a legacy client could ask of the fixture.
async fn say_everything(served: &mut Served) {
    let level = served.request("level", "logging/setLevel", json!({"level": "debug"}));
    served.peer.say(level).await;
    for (id, method) in
        ["ping", "tools/list", "unheard/of", "resources/list"].into_iter().enumerate()
    {
        let request = served.request(id, method, json!({}));
        served.peer.say(request).await;
    }
    let calls = [
        ("echo", json!({"text": "t"})),
        ("add", json!({"a": 1, "b": 2})),
        ("add", json!({"a": "one"})),
        ("fail", json!({"text": "t"})),
        ("panic", json!({})),
        ("refuse", json!({})),
        ("log", json!({"text": "t"})),
        ("nope", json!({})),
        ("report", json!({})),
    ];
    for (name, arguments) in calls {
        let call = served.tool(name, name, arguments);
        served.peer.say(call).await;
    }
    let params = json!({"name": "progress", "arguments": {"n": 2}, "_meta": {"progressToken": 1}});
    let call = served.request("progress", "tools/call", params);
    served.peer.say(call).await;
    served.peer.say("junk").await;
    served.fixture.touch();
}

// req: lifecycle:stateless:no-initialize
#[tokio::test(start_paused = true)]
async fn law07_methods_of_the_other_era_are_unknown() {
    virtually(async {
        let mut modern = opened(Era::Modern).await;
        for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
            let request = modern.request(1, method, json!({"level": "info"}));
            let answer = modern.peer.ask(request).await;
            assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        }
        let mut legacy = opened(Era::Legacy).await;
        for method in [Method::Discover, Method::Listen] {
            let request = legacy.request(1, method.as_str(), json!({}));
            let answer = legacy.peer.ask(request).await;
            assert!(answer["error"]["code"].is_i64(), "{method}: {answer}");
        }
        legacy.alive().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn law07_a_version_that_is_not_served_is_refused_with_those_that_are() {
    virtually(async {
        let mut served = opened(Era::Modern).await;
        for version in ["1900-01-01", "2025-11-25", "", "2026-07-29"] {
            let mut call = served.tool(1, "echo", json!({"text": "x"}));
            call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
            let answer = served.peer.ask(call).await;
            assert_eq!(answer["error"]["code"], -32022, "{answer}");
            assert_eq!(answer["error"]["data"]["requested"], version);
            let supported = answer["error"]["data"]["supported"].as_array().unwrap();
            assert!(supported.contains(&json!("2026-07-28")), "{answer}");
        }
        let mut call = served.tool(1, "echo", json!({"text": "x"}));
        let meta = call["params"]["_meta"].as_object_mut().unwrap();
        meta.remove("io.modelcontextprotocol/clientCapabilities");
        let answer = served.peer.ask(call).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        served.alive().await;
    })
    .await;
}

fn batch(items: &[Value]) -> String {
    Value::from(items.to_vec()).to_string()
}

#[tokio::test(start_paused = true)]
async fn law07_batches_are_refused_where_the_revision_lacks_them() {
    virtually(async {
        for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
            let mut served = served(Era::Legacy, Limits::default(), 1 << 20);
            served.initialize(version).await;
            let call = served.tool(1, "hold", json!({"key": "k"}));
            served.peer.say(batch(&[call])).await;
            let answer = served.peer.read().await;
            assert_eq!(answer["error"]["code"], -32600, "{version}: {answer}");
            assert_eq!(served.fixture.of("k").started, 0);
            served.alive().await;
        }
        let mut modern = opened(Era::Modern).await;
        let call = modern.tool(1, "echo", json!({"text": "x"}));
        modern.peer.say(batch(&[call])).await;
        assert_eq!(modern.peer.read().await["error"]["code"], -32600);
        modern.alive().await;
    })
    .await;
}

async fn batching() -> Served {
    let mut served = served(Era::Legacy, Limits::default(), 1 << 20);
    served.initialize("2025-03-26").await;
    served
}

#[tokio::test(start_paused = true)]
async fn law01_a_batch_is_answered_with_one_array() {
    virtually(async {
        let mut served = batching().await;
        served
            .peer
            .say(batch(&[
                served.tool(1, "echo", json!({"text": "one"})),
                json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
                json!({"jsonrpc": "2.0", "id": 2, "method": "unheard/of"}),
                json!({"jsonrpc": "2.0", "id": 3, "method": 5}),
                json!(7),
                served.tool(4, "panic", json!({})),
                json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}),
            ]))
            .await;
        let answers = served.peer.read().await;
        let answers = answers.as_array().expect("one array");
        let code = |id: u64| {
            let found: Vec<&Value> = answers.iter().filter(|answer| answer["id"] == id).collect();
            assert_eq!(found.len(), 1, "{id} in {answers:?}");
            found[0]["error"]["code"].as_i64()
        };
        assert_eq!(answers.len(), 6, "{answers:?}");
        assert_eq!(
            [1, 2, 3, 4, 5].map(code),
            [None, Some(-32601), Some(-32600), Some(-32603), None]
        );
        // Notifications alone are answered with nothing, and an empty batch is an error.
        served
            .peer
            .say(batch(&[json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]))
            .await;
        served.peer.quiet().await;
        served.peer.say("[]").await;
        assert_eq!(served.peer.read().await["error"]["code"], -32600);
        served.alive().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b17_a_cancelled_member_of_a_batch_is_missing_from_its_answer() {
    virtually(async {
        let mut served = batching().await;
        let held = ["a", "b"].map(|key| served.tool(key, "hold", json!({"key": key})));
        served.peer.say(batch(&held)).await;
        let fixture = served.fixture.clone();
        eventually(|| fixture.of("a").started == 1 && fixture.of("b").started == 1).await;
        served.peer.quiet().await;
        served.peer.say(cancelled("a")).await;
        eventually(|| fixture.of("a").dropped == 1).await;
        served.peer.quiet().await;
        fixture.release("b");
        let answers = served.peer.read().await;
        assert_eq!((answers.as_array().unwrap().len(), &answers[0]["id"]), (1, &json!("b")));
        // All of them cancelled: nothing is said.
        served.peer.say(batch(&[served.tool("c", "hold", json!({"key": "c"}))])).await;
        eventually(|| fixture.of("c").started == 1).await;
        served.peer.say(cancelled("c")).await;
        served.peer.quiet().await;
        served.alive().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a11_an_id_twice_in_one_batch_is_refused_once() {
    virtually(async {
        let mut served = batching().await;
        let held = served.tool(1, "hold", json!({"key": "k"}));
        served.peer.say(batch(&[held.clone(), held])).await;
        let fixture = served.fixture.clone();
        eventually(|| fixture.of("k").started == 1).await;
        fixture.release("k");
        let answers = served.peer.read().await;
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 2, "{answers:?}");
        let refused = answers.iter().filter(|answer| answer["error"]["code"] == -32600).count();
        assert_eq!(refused, 1, "{answers:?}");
        assert_eq!(fixture.of("k").started, 1);
        served.alive().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a12_a_shutdown_answers_a_batch_with_one_array() {
    virtually(async {
        let mut served = batching().await;
        let held = served.tool(1, "hold", json!({"key": "k"}));
        let done = served.tool(2, "echo", json!({"text": "x"}));
        served.peer.say(batch(&[held, done])).await;
        let fixture = served.fixture.clone();
        eventually(|| fixture.of("k").started == 1).await;
        served.peer.quiet().await;
        fixture.leave();
        let said = served.peer.rest().await;
        let [Value::Array(answers)] = &said[..] else { panic!("{said:?}") };
        let shut = answers.iter().filter(|answer| answer["error"]["code"] == -32603).count();
        assert_eq!((answers.len(), shut), (2, 1), "{answers:?}");
    })
    .await;
}
