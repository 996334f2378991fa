//! What whoever counts requests is told.

use std::{
    future::IntoFuture as _,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
};

use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle::{
    RpcError, Server, ToolError,
    middleware::{Metrics, RequestFinished, RequestOutcome, RequestStarted},
    prompt,
    server::blocking_tool,
    tool,
};

use crate::support::{LEGACY, Log, MODERN, WAYS, Wire, connect, eventually};

#[derive(Default)]
struct Numbers {
    in_flight: AtomicI64,
    finished: Log,
}

impl Metrics for Numbers {
    fn started(&self, _: &RequestStarted<'_>) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    fn finished(&self, finished: &RequestFinished<'_>) {
        self.in_flight.fetch_sub(1, Relaxed);
        let RequestStarted { method, name, .. } = finished.started;
        self.finished.add(format!("{method} {} {}", name.unwrap_or("-"), finished.outcome));
    }
}

async fn done() -> &'static str {
    "done"
}

async fn fails() -> Result<(), ToolError> {
    Err("no".into())
}

async fn refuses() -> Result<(), RpcError> {
    Err(RpcError::new(7, "seven"))
}

async fn panics() {
    panic!("on purpose")
}

fn blocking_panics() {
    panic!("on purpose")
}

#[tokio::test]
async fn every_request_is_finished_once_with_how_it_ended() {
    for (wire, revision) in WAYS {
        let numbers = Arc::new(Numbers::default());
        let server = Server::new("test", "1")
            .tool(tool("t", done))
            .tool(tool("fails", fails))
            .tool(tool("refuses", refuses))
            .tool(tool("panics", panics))
            .tool(blocking_tool("blocking", blocking_panics))
            .prompt(prompt("p", done))
            .metrics(numbers.clone());
        let client = connect(&server, wire, revision).await;
        numbers.finished.take();
        for name in ["t", "fails", "refuses", "panics", "blocking", "made up"] {
            let _ = client.call_tool(name, json!({})).await;
        }
        client.request("tools/list", json!({})).await.unwrap();
        client.request("prompts/get", json!({"name": "p"})).await.unwrap();
        client.request("no/such", json!({})).await.unwrap_err();
        assert_eq!(
            numbers.finished.take(),
            [
                "tools/call t ok",
                "tools/call fails tool_error",
                "tools/call refuses error 7",
                "tools/call panics panicked",
                "tools/call blocking panicked",
                "tools/call - error -32602",
                "tools/list - ok",
                "prompts/get p ok",
                "_OTHER - error -32601",
            ],
            "{wire:?} {revision}"
        );
        assert_eq!(numbers.in_flight.load(Relaxed), 0);
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_counts_as_cancelled() {
    for (wire, revision) in WAYS {
        let numbers = Arc::new(Numbers::default());
        let (begin, mut begun) = mpsc::channel(1);
        let holds = move || {
            let begin = begin.clone();
            async move {
                begin.send(()).await.unwrap();
                std::future::pending::<()>().await;
            }
        };
        let server = Server::new("test", "1").tool(tool("holds", holds)).metrics(numbers.clone());
        let client = connect(&server, wire, revision).await;
        numbers.finished.take();
        let call = tokio::spawn(client.call_tool("holds", json!({})).no_timeouts().into_future());
        begun.recv().await.unwrap();
        assert_eq!(numbers.in_flight.load(Relaxed), 1, "{wire:?}");
        call.abort();
        eventually(|| numbers.in_flight.load(Relaxed) == 0).await;
        let cancelled = format!("tools/call holds {}", RequestOutcome::Cancelled);
        assert_eq!(numbers.finished.take(), [cancelled], "{wire:?} {revision}");
    }
}

#[tokio::test]
async fn bytes_are_those_of_params_and_result() {
    #[derive(Default)]
    struct Bytes(Log);
    impl Metrics for Bytes {
        fn finished(&self, finished: &RequestFinished<'_>) {
            self.0.add(format!("{} {}", finished.started.bytes_in, finished.bytes_out));
        }
    }
    let bytes = Arc::new(Bytes::default());
    let server = Server::new("test", "1").tool(tool("t", done)).metrics(bytes.clone());
    let client = connect(&server, Wire::Memory, LEGACY).await;
    let params = json!({"name": "t", "arguments": {}});
    // Without clocks there is no progress token.
    let result = client.request("tools/call", params.clone()).no_timeouts().await.unwrap();
    let expected = format!("{} {}", params.to_string().len(), result.as_str().len());
    assert_eq!(bytes.0.take(), [expected]);
    let client = connect(&server, Wire::Memory, MODERN).await;
    bytes.0.take();
    client.request("tools/call", json!({"name": "nope"})).await.unwrap_err();
    assert!(bytes.0.take()[0].ends_with(" 0"));
}
