//! Streams of a server that offers everything one can listen to; their client is a script.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::*;
use crate::Server;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

// req: subscriptions:listen:honored-filter-narrows-to-advertised
#[test]
fn what_is_granted_is_what_is_asked_for_and_advertised() {
    let plain = App::new(&Server::new("s", "1")).unwrap();
    let full = Server::new("s", "1").offering_everything().app().unwrap();
    let is_note = |uri: &str| uri != "nowhere:1";
    let asked = |value: Value| serde_json::from_value::<SubscriptionFilter>(value).unwrap();
    let granted = |value: Value, app: &App| {
        serde_json::to_value(granted(asked(value), app.capabilities(), is_note).unwrap()).unwrap()
    };
    let everything = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["a:1"],
    });
    assert_eq!(granted(everything.clone(), &plain), json!({}));
    assert_eq!(granted(everything.clone(), &full), everything);
    let little = json!({"toolsListChanged": false, "resourceSubscriptions": []});
    assert_eq!(granted(little, &full), json!({}));
    let twice = json!({"resourceSubscriptions": ["a:1", "nowhere:1", "b:2", "a:1"]});
    assert_eq!(granted(twice, &full), json!({"resourceSubscriptions": ["a:1", "b:2"]}));
}

#[test]
fn a_stream_may_not_name_resources_without_end() {
    let full = Server::new("s", "1").offering_everything().app().unwrap();
    let mut asked = SubscriptionFilter::new();
    let mut uris: Vec<String> = (0..WATCHED).map(|number| format!("note://{number}")).collect();
    asked.resource_subscriptions = Some(uris.clone());
    assert!(granted(asked.clone(), full.capabilities(), |_| true).is_ok());
    uris.push("one:more".into());
    asked.resource_subscriptions = Some(uris);
    let error = granted(asked, full.capabilities(), |_| true).unwrap_err();
    assert!(error.message.contains("4096"), "{}", error.message);
}

/// A client that is a script.
struct Script(BufReader<DuplexStream>);

impl Script {
    async fn say(&mut self, id: Value, params: Value) {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let method = "subscriptions/listen";
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.0.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let mut line = String::new();
        let bound = std::time::Duration::from_secs(20);
        let read = tokio::time::timeout(bound, self.0.read_line(&mut line)).await;
        read.expect("nothing was said").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

fn scripted(server: &Server, room: usize) -> Script {
    let (ours, theirs) = tokio::io::duplex(room);
    tokio::spawn(server.serve(theirs).into_future());
    Script(BufReader::new(ours))
}

#[tokio::test(start_paused = true)]
async fn what_a_client_does_not_read_is_told_once() {
    let server = Server::new("s", "1").offering_everything();
    let changes = server.changes();
    // Too narrow for a line: whatever is written waits to be read.
    let mut script = scripted(&server, 16);
    script.say(json!(1), json!({"notifications": {"toolsListChanged": true}})).await;
    let first = script.read().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    for _ in 0..1_000 {
        changes.tools();
        tokio::task::yield_now().await;
    }
    let mut told = 0;
    let second = std::time::Duration::from_secs(1);
    while let Ok(changed) = tokio::time::timeout(second, script.read()).await {
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"]["_meta"][SUBSCRIPTION], 1);
        told += 1;
    }
    // One is being written, one may wait to be, one waits to be told.
    assert!((1..=3).contains(&told), "{told}");
}

/// The error, and the frame without which a stream on this wire must not be ended.
#[tokio::test(start_paused = true)]
async fn a_stream_that_fell_behind_is_ended_by_an_error_and_its_name() {
    let server = Server::new("s", "1").offering_everything();
    let changes = server.changes();
    let mut script = scripted(&server, 1 << 20);
    let uris: Vec<String> = (0..=BACKLOG).map(|number| format!("note://{number}")).collect();
    script.say(json!("7"), json!({"notifications": {"resourceSubscriptions": uris}})).await;
    script.read().await;
    uris.into_iter().for_each(|uri| changes.resource(uri));
    let error = script.read().await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!("7"), &json!(-32603)));
    let cancelled = script.read().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], "7");
}

#[tokio::test]
async fn a_change_between_the_request_and_its_acknowledgement_is_told_after_it() {
    let server = Server::new("s", "1").offering_everything();
    let changes = server.changes();
    // Too narrow for a line: the acknowledgement can't be sent before it is read.
    let mut script = scripted(&server, 16);
    script.say(json!(1), json!({"notifications": {"toolsListChanged": true}})).await;
    while changes.listeners() == 0 {
        tokio::task::yield_now().await;
    }
    changes.tools();
    assert_eq!(script.read().await["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(script.read().await["method"], "notifications/tools/list_changed");
}

/// What an idle stream costs: its task's future and its mailbox.
#[test]
fn an_idle_stream_is_small() {
    let stream = ListenStream::run as fn(ListenStream, SubscriptionFilter) -> _;
    let size = size_of_output(&stream);
    assert!(size <= 512, "{size} bytes");
    fn size_of_output<A, B, F>(_: &fn(A, B) -> F) -> usize {
        size_of::<F>()
    }
}
