//! What a legacy client is told of, over a wire in memory; the client is a script. And what it may
//! set besides: the level of log messages.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use turnbuckle_types::LogLevel;

use super::*;
use crate::{Ctx, Server, server::Changes, tool};

/// A client that is a script.
struct Script {
    stream: BufReader<DuplexStream>,
    asked: u64,
}

impl Script {
    /// A connection whose handshake is over.
    async fn open(server: &Server, revision: &str) -> Script {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(server.serve(theirs).into_future());
        let mut script = Script { stream: BufReader::new(ours), asked: 0 };
        let hello = json!({
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "script", "version": "1"},
        });
        assert_eq!(script.ask("initialize", hello).await["result"]["protocolVersion"], revision);
        script.write(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        script
    }

    async fn write(&mut self, message: Value) {
        self.stream.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let mut line = String::new();
        let bound = std::time::Duration::from_secs(20);
        let read = tokio::time::timeout(bound, self.stream.read_line(&mut line)).await;
        read.expect("nothing was said").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The answer; nothing may come before it.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.write(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.read().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn subscribe(&mut self, uri: &str) -> Value {
        self.ask("resources/subscribe", json!({"uri": uri})).await
    }

    async fn unsubscribe(&mut self, uri: &str) -> Value {
        self.ask("resources/unsubscribe", json!({"uri": uri})).await
    }

    /// The next thing that is said has to be that this has changed.
    async fn hears_of(&mut self, uri: &str) {
        let note = self.read().await;
        assert_eq!(
            note,
            json!({
                "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri},
            })
        );
    }

    /// Nothing is said before something else is asked for.
    async fn hears_nothing(&mut self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.ask("ping", json!({})).await;
    }
}

fn server() -> (Server, Changes) {
    let server = Server::new("s", "1").offering_everything();
    let changes = server.changes();
    (server, changes)
}

// req: resources:subscribe, resources:unsubscribe, resources:subscribe:updated
// req: resources:unsubscribe:stops-updates, resources:updated-notification, resources:list-changed
#[tokio::test]
async fn a_client_hears_of_what_it_subscribed_to_until_it_unsubscribes() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (server, changes) = server();
        let mut script = Script::open(&server, revision).await;
        let mut other = Script::open(&server, revision).await;
        changes.resource("note://1");
        script.hears_nothing().await;
        assert_eq!(script.subscribe("note://1").await["result"], json!({}));
        assert_eq!(other.subscribe("note://2").await["result"], json!({}));
        changes.resource("note://1");
        script.hears_of("note://1").await;
        changes.resource("note://2");
        other.hears_of("note://2").await;
        script.hears_nothing().await;
        changes.resource("note://1/below");
        script.hears_nothing().await;
        assert_eq!(script.unsubscribe("note://1").await["result"], json!({}));
        changes.resource("note://1");
        script.hears_nothing().await;
        changes.resources();
        let method = "notifications/resources/list_changed";
        assert_eq!(script.read().await, json!({"jsonrpc": "2.0", "method": method}));
    }
}

#[tokio::test]
async fn to_subscribe_twice_is_to_subscribe_once() {
    let (server, changes) = server();
    let mut script = Script::open(&server, "2025-11-25").await;
    script.subscribe("note://1").await;
    assert_eq!(script.subscribe("note://1").await["result"], json!({}));
    changes.resource("note://1");
    script.hears_of("note://1").await;
    script.hears_nothing().await;
    script.unsubscribe("note://1").await;
    assert_eq!(script.unsubscribe("note://1").await["result"], json!({}));
    assert_eq!(script.unsubscribe("note://never").await["result"], json!({}));
    changes.resource("note://1");
    script.hears_nothing().await;
}

// req: resources:subscribe:capability-required
#[tokio::test]
async fn a_server_that_does_not_offer_it_has_no_such_method() {
    let server = Server::new("s", "1");
    let mut script = Script::open(&server, "2025-11-25").await;
    assert_eq!(script.subscribe("note://1").await["error"]["code"], -32601);
    assert_eq!(script.unsubscribe("note://1").await["error"]["code"], -32601);
}

#[tokio::test]
async fn what_is_no_uri_is_refused() {
    let (server, _) = server();
    let mut script = Script::open(&server, "2025-11-25").await;
    for params in [json!({}), json!({"uri": 7}), json!({"uri": "x".repeat(URI_BYTES + 1)})] {
        let answer = script.ask("resources/subscribe", params).await;
        assert_eq!(answer["error"]["code"], -32602);
        assert!(answer["error"]["message"].as_str().unwrap().contains("uri"));
    }
    assert!(script.subscribe(&"x".repeat(URI_BYTES)).await["result"].is_object());
}

#[tokio::test]
async fn subscriptions_are_bounded_and_the_error_names_the_limit() {
    let (server, changes) = server();
    let mut script = Script::open(&server, "2025-11-25").await;
    for number in 0..SUBSCRIPTIONS {
        assert!(script.subscribe(&format!("note://{number}")).await["result"].is_object());
    }
    let refused = script.subscribe("one:more").await;
    assert_eq!(refused["error"]["code"], -32603);
    assert!(refused["error"]["message"].as_str().unwrap().contains("1000"));
    assert!(script.subscribe("note://7").await["result"].is_object(), "it has that one");
    script.unsubscribe("note://7").await;
    assert!(script.subscribe("one:more").await["result"].is_object());
    changes.resource("one:more");
    script.hears_of("one:more").await;
}

#[tokio::test]
async fn a_connection_that_ends_listens_to_nothing() {
    let (server, changes) = server();
    let mut script = Script::open(&server, "2025-11-25").await;
    script.subscribe("note://1").await;
    assert!(!changes.here().is_deserted());
    drop(script);
    while !changes.here().is_deserted() {
        tokio::task::yield_now().await;
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_session_takes_its_subscriptions_along() {
    let (server, changes) = server();
    let app = server.app().unwrap();
    let before: BTreeSet<String> = ["note://1", "note://2"].map(str::to_owned).into();
    let subscriptions = ConnectionSubscriptions::restored(before.clone());
    assert_eq!(subscriptions.uris(), before);
    subscriptions.remove(&app, "note://1".into());
    subscriptions.add(&app, "note://3".into()).unwrap();
    assert_eq!(subscriptions.uris(), ["note://2", "note://3"].map(str::to_owned).into());
    let listener = subscriptions.listener(&app);
    (1..=3).for_each(|number| changes.resource(format!("note://{number}")));
    assert_eq!(listener.take(), Ok(Some(Change::Resource("note://2".into()))));
    assert_eq!(listener.take(), Ok(Some(Change::Resource("note://3".into()))));
    assert_eq!(listener.take(), Ok(None));
}

// req: logging:set-level, logging:set-level:invalid-level, logging:message:filtered
#[tokio::test]
async fn log_messages_are_sent_from_the_level_that_was_set() {
    async fn speak(ctx: Ctx) -> &'static str {
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error] {
            ctx.log(level, "said").await;
        }
        "done"
    }
    let server = Server::new("s", "1").tool(tool("speak", speak));
    let mut script = Script::open(&server, "2025-11-25").await;
    let call = json!({"name": "speak"});
    assert!(script.ask("tools/call", call.clone()).await["result"].is_object(), "nothing unasked");
    let set = |level: Value| json!({"level": level});
    for (level, heard) in [("warning", 2), ("debug", 4), ("emergency", 0), ("error", 1)] {
        assert_eq!(script.ask("logging/setLevel", set(level.into())).await["result"], json!({}));
        let all = ["debug", "info", "warning", "error"];
        let message = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call});
        script.write(message).await;
        for expected in &all[all.len() - heard..] {
            let note = script.read().await;
            assert_eq!(note["method"], "notifications/message");
            assert_eq!(note["params"]["level"], *expected);
        }
        assert_eq!(script.read().await["id"], "c", "{level}");
    }
    for bad in [json!("loud"), json!(7), json!(null), json!("WARNING")] {
        let answer = script.ask("logging/setLevel", set(bad)).await;
        assert_eq!(answer["error"]["code"], -32602);
    }
    assert_eq!(script.ask("logging/setLevel", json!({})).await["error"]["code"], -32602);
}
