//! Events that are told to the client of the request in which they happen.

#![cfg(feature = "logs")]

use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt as _;
use turnbuckle::{
    Client, Ctx, Server, middleware::ForwardLogs, server::blocking_tool, tool, types::Meta,
};

use crate::{
    heard::heard_by,
    support::{LEGACY, Log, MODERN, Wire, connect_as},
};

async fn works() -> &'static str {
    tracing::debug!(target: "shop", "detail");
    tracing::warn!(target: "shop", left = 2, "low");
    tokio::task::yield_now().await;
    tracing::error!(target: "shop", "empty");
    "done"
}

/// A client that writes down the log messages it is sent.
fn listening(log: &Log) -> turnbuckle::ClientBuilder {
    let log = log.clone();
    Client::builder().on_notification(move |method, params| {
        if method == "notifications/message" {
            let params: Value = params.unwrap().decode().unwrap();
            let (level, logger) = (&params["level"], &params["logger"]);
            log.add(format!("{level} {logger} {}", params["data"]));
        }
    })
}

const SAID: [&str; 2] =
    [r#""warning" "shop" {"left":2,"message":"low"}"#, r#""error" "shop" {"message":"empty"}"#];

// req: logging:message:fields, logging:message:filtered, logging:per-request:opt-in, logging:per-request:threshold, tools:call:logging-mid-execution
#[tokio::test]
async fn a_client_is_told_what_it_asked_for_and_before_the_answer() {
    let subscriber = tracing_subscriber::registry().with(ForwardLogs::new());
    let _subscribed = heard_by(subscriber);
    let server = Server::new("test", "1")
        .tool(tool("works", works))
        .tool(tool("cooperative", works).cooperative(std::time::Duration::from_secs(1)))
        .tool(tool("shielded", async |ctx: Ctx| ctx.shielded(works()).await));
    for wire in [Wire::Memory, Wire::Direct, Wire::Http] {
        let log = Log::default();
        let modern = connect_as(listening(&log), &server, wire, MODERN).await;
        let legacy = connect_as(listening(&log), &server, wire, LEGACY).await;
        legacy.request("logging/setLevel", json!({"level": "warning"})).await.unwrap();
        for name in ["works", "cooperative", "shielded"] {
            let call = modern.call_tool(name, json!({}));
            call.meta(Meta::LOG_LEVEL, json!("notice")).await.unwrap();
            assert_eq!(log.take(), SAID, "{name} over {wire:?}");
            legacy.call_tool(name, json!({})).await.unwrap();
            assert_eq!(log.take(), SAID, "{name} over {wire:?}");
            // A modern request that asks for nothing is told nothing.
            modern.call_tool(name, json!({})).await.unwrap();
            assert_eq!(log.take(), [""; 0], "{name} over {wire:?}");
        }
    }
}

#[test]
fn a_sync_handler_is_heard_as_well() {
    // Its thread has no subscriber of its own: this test's is everyone's.
    let subscriber = tracing_subscriber::registry().with(ForwardLogs::new());
    let dispatch = tracing::Dispatch::new(subscriber);
    let threads = dispatch.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let _subscribed = heard_by(dispatch);
        let works = move || {
            tracing::dispatcher::with_default(&threads, || {
                tracing::warn!(target: "shop", left = 2, "low");
                tracing::error!(target: "shop", "empty");
            });
            "done"
        };
        let server = Server::new("test", "1").tool(blocking_tool("works", works));
        let log = Log::default();
        let client = connect_as(listening(&log), &server, Wire::Memory, MODERN).await;
        let call = client.call_tool("works", json!({}));
        call.meta(Meta::LOG_LEVEL, json!("debug")).await.unwrap();
        assert_eq!(log.take(), SAID);
    });
}
