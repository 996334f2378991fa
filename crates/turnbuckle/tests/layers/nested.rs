//! What a handler reads of its own server, and work that outlives its request.

use std::{
    future::IntoFuture as _,
    sync::{Arc, Mutex, mpsc as blocking},
    time::Duration,
};

use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle::{
    Client, Ctx, Limits, Principal, RpcError, Server,
    middleware::server::{BUSY, Concurrency, Next, RATE_LIMITED, RateLimit, Request},
    resource,
    server::{Extension, blocking_resource, blocking_tool},
    tool,
};

use crate::support::{Guard, Log, MODERN, WAYS, Wire, connect};

#[derive(Clone)]
struct Tenant(&'static str);

async fn done() -> &'static str {
    "done"
}

async fn reads(ctx: Ctx) -> Result<String, RpcError> {
    let read = ctx.read_resource("demo://part").await?;
    Ok(serde_json::to_string(&read.contents).unwrap())
}

#[tokio::test]
async fn what_a_handler_reads_passes_the_layers_with_what_they_added() {
    async fn part(Extension(Tenant(name)): Extension<Tenant>) -> &'static str {
        name
    }
    let log = Log::default();
    let add = tower_layer::layer_fn(|next: Next| {
        tower::ServiceExt::map_request(next, |mut request: Request| {
            if request.method() == "tools/call" {
                request.insert(Tenant("blue"));
            }
            request
        })
    });
    let server = Server::new("test", "1")
        .layer(Guard::telling("server", &log))
        .layer(add)
        .resource(resource("demo://part", part).layer(Guard::telling("resource", &log)))
        .tool(tool("reads", reads));
    for (wire, revision) in WAYS {
        let client = connect(&server, wire, revision).await;
        log.take();
        let told = client.call_tool("reads", json!({})).await.unwrap();
        assert!(told.to_text().contains("blue"), "{wire:?} {}", told.to_text());
        let passed = [
            "server: tools/call reads",
            "server: resources/read demo://part",
            "resource: resources/read demo://part",
        ];
        assert_eq!(log.take(), passed, "{wire:?}");
    }
}

#[tokio::test]
async fn a_part_hears_that_the_whole_was_given_up() {
    let (begin, mut begun) = mpsc::channel(1);
    let (tell, mut told) = mpsc::channel(1);
    let waits = move |ctx: Ctx| {
        let (begin, tell) = (begin.clone(), tell.clone());
        async move {
            begin.send(()).await.unwrap();
            ctx.cancelled().await;
            assert!(ctx.is_cancelled());
            tell.send(()).await.unwrap();
            "given up"
        }
    };
    let server = Server::new("test", "1")
        .resource(resource("demo://part", waits))
        .tool(tool("reads", reads).cooperative(Duration::from_secs(3_600)));
    let client = connect(&server, Wire::Memory, MODERN).await;
    let call = tokio::spawn(client.call_tool("reads", json!({})).no_timeouts().into_future());
    begun.recv().await.unwrap();
    call.abort();
    let heard = tokio::time::timeout(Duration::from_secs(20), told.recv()).await;
    heard.expect("the part was never told").unwrap();
}

#[tokio::test]
async fn a_part_that_is_given_up_does_not_end_the_whole() {
    let (begin, begun) = mpsc::channel(1);
    let begun = Arc::new(tokio::sync::Mutex::new(begun));
    let waits = move || {
        let begin = begin.clone();
        async move {
            begin.send(()).await.unwrap();
            std::future::pending::<&'static str>().await
        }
    };
    let tries = move |ctx: Ctx| {
        let begun = begun.clone();
        async move {
            let mut begun = begun.lock().await;
            tokio::select! {
                _ = ctx.read_resource("demo://part") => {}
                _ = begun.recv() => {}
            }
            !ctx.is_cancelled()
        }
    };
    let server = Server::new("test", "1")
        .resource(resource("demo://part", waits))
        .tool(tool("tries", tries));
    let client = connect(&server, Wire::Memory, MODERN).await;
    assert_eq!(client.call_tool("tries", json!({})).await.unwrap().to_text(), "true");
}

/// A sync function that says that it has begun, and ends when it is told to.
struct Gate {
    begun: mpsc::Receiver<()>,
    end: blocking::Sender<()>,
}

fn gated() -> (Gate, impl Fn() -> &'static str + Clone + Send + Sync + 'static) {
    let (begin, begun) = mpsc::channel(1);
    let (end, ended) = blocking::channel();
    let ended = Arc::new(Mutex::new(ended));
    let handler = move || {
        begin.blocking_send(()).unwrap();
        ended.lock().unwrap().recv().unwrap();
        "at last"
    };
    (Gate { begun, end }, handler)
}

/// Begins a call, and gives it up.
async fn give_up(client: &Client, name: &str, gate: &mut Gate) {
    let call = tokio::spawn(client.call_tool(name, json!({})).no_timeouts().into_future());
    gate.begun.recv().await.unwrap();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

async fn comes_true(client: &Client) {
    let again = async { while client.call_tool("done", json!({})).await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("there is no room");
}

#[tokio::test]
async fn a_part_that_outlives_its_request_is_counted() {
    let (mut gate, handler) = gated();
    let server = Server::new("test", "1")
        .limits(Limits::default().in_flight(1))
        .resource(blocking_resource("demo://part", handler))
        .tool(tool("reads", reads))
        .tool(tool("done", done));
    let client = connect(&server, Wire::Memory, MODERN).await;
    give_up(&client, "reads", &mut gate).await;
    let error = client.call_tool("done", json!({})).await.unwrap_err();
    assert!(error.as_rpc().unwrap().message.contains("in_flight"), "{error}");
    gate.end.send(()).unwrap();
    comes_true(&client).await;
}

#[tokio::test]
async fn what_goes_on_after_a_cancellation_keeps_its_place() {
    for name in ["holds", "reads"] {
        let (mut gate, handler) = gated();
        let server = Server::new("test", "1")
            .layer(Concurrency::new(1).waiting(0))
            .resource(blocking_resource("demo://part", handler.clone()))
            .tool(blocking_tool("holds", handler))
            .tool(tool("reads", reads))
            .tool(tool("done", done));
        let client = connect(&server, Wire::Memory, MODERN).await;
        give_up(&client, name, &mut gate).await;
        let error = client.call_tool("done", json!({})).await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, BUSY, "{name}");
        gate.end.send(()).unwrap();
        comes_true(&client).await;
    }
}

#[tokio::test]
async fn a_handler_does_not_wait_for_its_own_place() {
    let limit = Concurrency::new(1).waiting(1);
    let server = Server::new("test", "1")
        .layer(limit)
        .resource(resource("demo://part", done))
        .tool(tool("reads", reads));
    let client = connect(&server, Wire::Memory, MODERN).await;
    let call = client.call_tool("reads", json!({})).into_future();
    let told = tokio::time::timeout(Duration::from_secs(20), call).await;
    assert!(told.expect("it waits for itself").unwrap().to_text().contains("done"));
}

#[tokio::test]
async fn a_principal_with_claims_is_one_to_whoever_counts() {
    #[derive(Clone)]
    struct Claims(&'static str);
    async fn who(plain: Principal, full: Principal<Claims>) -> String {
        format!("{} {} {}", plain.name(), full.name(), full.claims().0)
    }
    let limit = || RateLimit::new(1, Duration::from_secs(3_600)).per_principal();
    let calls = async |server: &Server, name: &str| {
        let (ours, theirs) = tokio::io::duplex(4096);
        let of = Principal::new(name).with_claims(Claims("c"));
        tokio::spawn(server.serve(theirs).principal(of).into_future());
        let client = Client::builder().revision(MODERN).over(ours).await.unwrap();
        let told = client.call_tool("who", json!({})).await;
        told.map(|told| told.to_text()).map_err(|error| error.as_rpc().unwrap().code)
    };
    let server = Server::new("test", "1").tool(tool("who", who).layer(limit()));
    assert_eq!(calls(&server, "alice").await.as_deref(), Ok("alice alice c"));
    assert_eq!(calls(&server, "alice").await, Err(RATE_LIMITED));
    assert_eq!(calls(&server, "bob").await.as_deref(), Ok("bob bob c"));

    // A layer knows better.
    let set = tower_layer::layer_fn(|next: Next| {
        tower::ServiceExt::map_request(next, |mut request: Request| {
            request.set_principal(Principal::new("carol").with_claims(Claims("d")));
            request
        })
    });
    let server = Server::new("test", "1").layer(set).tool(tool("who", who).layer(limit()));
    assert_eq!(calls(&server, "alice").await.as_deref(), Ok("carol carol d"));
    assert_eq!(calls(&server, "bob").await, Err(RATE_LIMITED));
}
