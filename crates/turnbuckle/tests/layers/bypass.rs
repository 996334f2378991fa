//! Nothing gets past a layer of the server.

use serde_json::{Value, json};
use turnbuckle::{
    Revision, Server, prompt, resource,
    server::blocking_tool,
    tool,
    types::{Method, MethodKind},
};

use crate::support::{Guard, LEGACY, Log, MODERN, WAYS, Wire, connect};

/// A server that has something for every method.
fn everything(log: &Log) -> Server {
    let handler = |name: &'static str| {
        let log = log.clone();
        move || {
            let log = log.clone();
            async move {
                log.add(format!("handler of {name}"));
                "done"
            }
        }
    };
    let sync = log.clone();
    let blocking = move || {
        sync.add("handler of blocking");
        "done"
    };
    Server::new("test", "1")
        .tool(tool("t", handler("t")))
        .tool(blocking_tool("blocking", blocking))
        .prompt(prompt("p", handler("p")))
        .resource(resource("test://r", handler("r")))
}

fn params(method: Method) -> Value {
    match method {
        Method::CallTool => json!({"name": "t", "arguments": {}}),
        Method::GetPrompt => json!({"name": "p"}),
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe => {
            json!({"uri": "test://r"})
        }
        Method::Complete => json!({
            "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""},
        }),
        Method::SetLevel => json!({"level": "info"}),
        Method::Listen => json!({"notifications": {}}),
        _ => json!({}),
    }
}

/// The methods that clients send in a revision, and two that nobody knows.
fn methods(revision: Revision) -> Vec<(String, Value)> {
    let requests = Method::ALL.iter().filter(|method| {
        method.row().kind == MethodKind::Request
            && method.sent_by_client(revision)
            && !matches!(method, Method::Initialize | Method::Ping)
    });
    let known = requests.map(|method| (method.as_str().to_owned(), params(*method)));
    let unknown = ["sampling/createMessage", "no/such"].map(|name| (name.to_owned(), json!({})));
    known.chain(unknown).collect()
}

// req: protocol:request-handler:override-builtin
#[tokio::test]
async fn every_method_is_stopped_by_a_layer_that_refuses() {
    for (wire, revision) in WAYS {
        let (log, handled) = (Log::default(), Log::default());
        let server = everything(&handled).layer(Guard::refusing(7, &log));
        let client = connect(&server, wire, revision).await;
        // What opened the connection is not under test.
        log.take();
        let methods = methods(revision);
        assert!(methods.len() > 10);
        for (method, params) in methods {
            let way = format!("{method} over {wire:?} in {revision}");
            let error = client.request(method.clone(), params).await.expect_err(&way);
            assert_eq!(error.as_rpc().map(|error| error.code), Some(7), "{way}: {error}");
            assert_eq!(log.take(), [method], "{way}");
        }
        assert_eq!(handled.take(), [""; 0]);
    }
}

// req: protocol:request-handler:override-builtin
#[tokio::test]
async fn discovery_is_seen_too_and_the_handshake_and_pings_are_not() {
    for wire in [Wire::Memory, Wire::Direct, Wire::Http] {
        let log = Log::default();
        let server = everything(&log).layer(Guard::telling("server", &log));
        let client = connect(&server, wire, LEGACY).await;
        client.ping().await.unwrap();
        assert_eq!(log.take(), [""; 0], "{wire:?}");
        let client = connect(&server, wire, MODERN).await;
        client.discover().await.unwrap();
        assert_eq!(log.take().last().unwrap(), "server: server/discover -", "{wire:?}");
    }
}

#[tokio::test]
async fn what_passes_is_answered_as_without_layers() {
    for (wire, revision) in WAYS {
        let log = Log::default();
        let plain = connect(&everything(&log), wire, revision).await;
        let server = everything(&log).layer(Guard::telling("server", &log));
        let layered = connect(&server, wire, revision).await;
        for (method, params) in methods(revision) {
            if method == "subscriptions/listen" {
                continue;
            }
            let way = format!("{method} over {wire:?} in {revision}");
            let expected = plain.request(method.clone(), params.clone()).await;
            let before = log.take();
            let answered = layered.request(method.clone(), params).await;
            match (expected, answered) {
                (Ok(expected), Ok(answered)) => assert_eq!(expected, answered, "{way}"),
                (Err(expected), Err(answered)) => {
                    assert_eq!(expected.as_rpc(), answered.as_rpc(), "{way}");
                }
                (expected, answered) => panic!("{way}: {expected:?}, {answered:?}"),
            }
            let after = log.take();
            assert_eq!(after.len(), before.len() + 1, "{way}: {after:?}");
            assert!(after[0].starts_with(&format!("server: {method} ")), "{way}: {after:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_of_changes_goes_through_layers_and_lives() {
    let log = Log::default();
    let server = everything(&log).layer(Guard::telling("server", &log));
    for wire in [Wire::Memory, Wire::Direct, Wire::Http] {
        let client = connect(&server, wire, MODERN).await;
        let mut events = client.listen(turnbuckle::subscribe::Filter::new().tools()).await.unwrap();
        server.changes().tools();
        assert!(events.next().await.is_some(), "{wire:?}");
        assert!(log.take().contains(&"server: subscriptions/listen -".to_owned()), "{wire:?}");
    }
}
