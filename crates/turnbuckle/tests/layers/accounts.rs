//! What is told of a request when it has ended: by whom, for how long, and how.

use std::{future::IntoFuture as _, sync::Arc, time::Duration};

use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tracing::{Level, Subscriber};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};
use turnbuckle::{
    Client, Principal, RpcError, Server,
    middleware::{
        Metrics, RequestFinished,
        server::{Audit, BUSY, Concurrency, Next, Request, RequestLog},
    },
    tool,
};

use crate::{
    fields::Fields,
    heard::heard_by,
    support::{LEGACY, Log, MODERN, WAYS, Wire, connect, eventually},
};

async fn done() -> &'static str {
    "done"
}

async fn refuses() -> Result<(), RpcError> {
    Err(RpcError::new(7, "seven"))
}

/// A tool `holds` that says that it has begun, and ends when it is told to.
struct Held {
    begun: mpsc::Receiver<()>,
    end: Arc<Notify>,
}

fn held(server: Server) -> (Held, Server) {
    let (begin, begun) = mpsc::channel(1);
    let end = Arc::new(Notify::new());
    let ended = end.clone();
    let holds = move || {
        let (begin, ended) = (begin.clone(), ended.clone());
        async move {
            begin.send(()).await.unwrap();
            ended.notified().await;
            "done"
        }
    };
    (Held { begun, end }, server.tool(tool("holds", holds)))
}

/// Someone of this name.
async fn connect_someone(server: &Server, name: &str) -> Client {
    let (ours, theirs) = tokio::io::duplex(4096);
    tokio::spawn(server.serve(theirs).principal(Principal::new(name)).into_future());
    Client::builder().revision(MODERN).over(ours).await.unwrap()
}

/// Writes down for how long requests ran.
#[derive(Default)]
struct Latencies(Log);

impl Metrics for Latencies {
    fn finished(&self, finished: &RequestFinished<'_>) {
        let (started, ended) = (&finished.started, finished.outcome);
        self.0.add(format!("{} {ended} after {:?}", started.method, finished.latency));
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_and_audits_say_how_long_a_request_ran() {
    for wire in [Wire::Memory, Wire::Direct] {
        for revision in [MODERN, LEGACY] {
            let (audited, numbers) = (Log::default(), Arc::new(Latencies::default()));
            let told = audited.clone();
            let audit = Audit::new(move |entry| {
                told.add(format!("{} {} after {:?}", entry.method, entry.outcome, entry.latency));
            });
            let (mut held, server) = held(Server::new("test", "1"));
            let server = server.layer(audit).metrics(numbers.clone());
            let client = connect(&server, wire, revision).await;
            for log in [&audited, &numbers.0] {
                log.take();
            }
            let call = || client.call_tool("holds", json!({})).no_timeouts().into_future();
            for (seconds, ended) in [(90, "ok"), (7, "cancelled")] {
                let running = tokio::spawn(call());
                held.begun.recv().await.unwrap();
                tokio::time::advance(Duration::from_secs(seconds)).await;
                match ended {
                    "ok" => held.end.notify_one(),
                    _ => running.abort(),
                }
                let _ = running.await;
                let expected = format!("tools/call {ended} after {seconds}s");
                for log in [&audited, &numbers.0] {
                    eventually(|| log.len() == 1).await;
                    assert_eq!(log.take(), [&*expected], "{wire:?} {revision}");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_audit_says_who_asked() {
    let log = Log::default();
    let audit = |layer: &'static str| {
        let told = log.clone();
        Audit::new(move |entry| {
            told.add(format!("{layer}: {}", entry.principal.unwrap_or("nobody knows")));
        })
    };
    let server = Server::new("test", "1").tool(tool("t", done).layer(audit("tool")));
    for name in ["alice", "bob"] {
        let client = connect_someone(&server, name).await;
        client.call_tool("t", json!({})).await.unwrap();
        assert_eq!(log.take(), [format!("tool: {name}")]);
    }
    for (wire, revision) in WAYS {
        let client = connect(&server, wire, revision).await;
        client.call_tool("t", json!({})).await.unwrap();
        let who = match wire {
            Wire::Memory | Wire::Direct => "local",
            Wire::Http | Wire::Sse => "nobody knows",
        };
        assert_eq!(log.take(), [format!("tool: {who}")], "{wire:?} {revision}");
    }
    // What a layer says of it is known further in.
    let know = tower_layer::layer_fn(|next: Next| {
        tower::ServiceExt::map_request(next, |mut request: Request| {
            request.set_principal(Principal::new("carol"));
            request
        })
    });
    let t = tool("t", done).layer(audit("outer")).layer(know).layer(audit("inner"));
    let server = Server::new("test", "1").tool(t);
    let client = connect_someone(&server, "alice").await;
    client.call_tool("t", json!({})).await.unwrap();
    assert_eq!(log.take(), ["inner: carol", "outer: alice"]);
}

#[tokio::test]
async fn each_principal_has_places_of_their_own() {
    let (mut held, server) = held(Server::new("test", "1").tool(tool("t", done)));
    let server = server.layer(Concurrency::new(1).waiting(0).per_principal());
    let (alice, alice_again, bob) = (
        connect_someone(&server, "alice").await,
        connect_someone(&server, "alice").await,
        connect_someone(&server, "bob").await,
    );
    let running = tokio::spawn(alice.call_tool("holds", json!({})).into_future());
    held.begun.recv().await.unwrap();
    let refused = alice_again.call_tool("t", json!({})).await.unwrap_err();
    assert_eq!(refused.as_rpc().unwrap().code, BUSY);
    assert_eq!(bob.call_tool("t", json!({})).await.unwrap().to_text(), "done");
    held.end.notify_one();
    running.await.unwrap().unwrap();
    assert_eq!(alice_again.call_tool("t", json!({})).await.unwrap().to_text(), "done");
}

/// The lines of [`Trace`], each with its level and the span that it is in.
#[derive(Clone, Default)]
struct Lines(Log);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() != "turnbuckle::middleware" {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let told: Vec<_> = ["method", "name", "principal", "outcome", "code", "milliseconds"]
            .into_iter()
            .map(|key| fields.0.get(key).map_or("-", String::as_str))
            .collect();
        let span = context.event_span(event).map_or("nowhere", |span| span.name());
        self.0.add(format!("{} {} in {span}", event.metadata().level(), told.join(" ")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_trace_is_a_line_for_each_request_that_has_ended() {
    for (trace, level) in [(RequestLog::info(), Level::INFO), (RequestLog::debug(), Level::DEBUG)] {
        let lines = Lines::default();
        let _heard = heard_by(tracing_subscriber::registry().with(lines.clone()));
        let (mut held, server) = held(Server::new("test", "1").layer(trace));
        let server = server.tool(tool("refuses", refuses));
        let client = connect_someone(&server, "alice").await;
        lines.0.take();
        let call = || client.call_tool("holds", json!({})).no_timeouts().into_future();
        for ended in ["ok", "cancelled"] {
            let running = tokio::spawn(call());
            held.begun.recv().await.unwrap();
            tokio::time::advance(Duration::from_millis(250)).await;
            match ended {
                "ok" => held.end.notify_one(),
                _ => running.abort(),
            }
            let _ = running.await;
            eventually(|| lines.0.len() == 1).await;
            let line = format!("{level} tools/call holds alice {ended} - 250.0 in mcp.request");
            assert_eq!(lines.0.take(), [line]);
        }
        client.call_tool("refuses", json!({})).await.unwrap_err();
        client.request("no/such", json!({})).await.unwrap_err();
        let expected = [
            format!("{level} tools/call refuses alice error 7 0.0 in mcp.request"),
            format!("{level} no/such - alice error -32601 0.0 in mcp.request"),
        ];
        assert_eq!(lines.0.take(), expected);
    }
}
