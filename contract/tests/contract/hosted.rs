//! A client and a server over HTTP, hosted in every way that there is.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use turnbuckle::{
    Client, ClientBuilder, Ctx, Server, State,
    http::ServingHttp,
    server::RawArgs,
    tool,
    types::{Era, LogLevel},
};
use turnbuckle_contract::{Fixture, server};

use crate::rig::{eventually, pinned, within};

/// Serves at an address of this machine; returns it.
async fn serve(serving: ServingHttp) -> String {
    let bound = serving.bind().await.unwrap();
    let url = bound.url();
    tokio::spawn(bound.into_future());
    url
}

async fn connect(builder: ClientBuilder, era: Era, url: &str) -> Client {
    builder.revision(pinned(era)).no_proxy().connect(url).await.unwrap()
}

async fn echo(client: &Client, text: &str) -> String {
    client.call_tool("echo", json!({"text": text})).await.unwrap().to_text()
}

/// A list, results, an error of a tool, one of the protocol, and many calls at once.
async fn converse(client: &Client) {
    let tools = client.tools().all().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "echo"));
    let failed = client.call_tool("fail", json!({"text": "no"})).await.unwrap();
    assert_eq!((failed.is_error, &*failed.to_text()), (Some(true), "no"));
    let refused = client.call_tool("refuse", ()).await.unwrap_err();
    assert_eq!(refused.as_rpc().unwrap().code, -32099);
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { echo(&client, &number.to_string()).await })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), number.to_string());
    }
}

// req: transport:streamable-http:json-response, hosting:http:json-response-mode
#[tokio::test]
async fn json_alone_carries_a_conversation() {
    within(async {
        let fixture = Fixture::default();
        let service = server(&fixture, Default::default()).http_service().json_only();
        let url = serve(service.serve("127.0.0.1:0")).await;
        for era in [Era::Legacy, Era::Modern] {
            let client = connect(Client::builder(), era, &url).await;
            converse(&client).await;
            // What takes its time is JSON too.
            let held = client.call_tool("hold", json!({"key": "k"})).no_timeouts();
            let held = tokio::spawn(held.into_future());
            eventually(|| fixture.of("k").started > 0).await;
            fixture.release("k");
            assert_eq!(held.await.unwrap().unwrap().to_text(), "k");
        }
    })
    .await;
}

// req: transport:streamable-http:stateless, hosting:stateless:concurrent-clients
#[tokio::test]
async fn a_conversation_needs_no_session() {
    within(async {
        let fixture = Fixture::default();
        let service = server(&fixture, Default::default()).http_service().without_sessions();
        let url = serve(service.serve("127.0.0.1:0")).await;
        for era in [Era::Legacy, Era::Modern] {
            let clients = [
                connect(Client::builder(), era, &url).await,
                connect(Client::builder(), era, &url).await,
            ];
            tokio::join!(converse(&clients[0]), converse(&clients[1]));
        }
    })
    .await;
}

// req: flow:compat:dual-transport-server, transport:sse, transport:streamable-http:stateful
#[tokio::test]
async fn one_server_has_both_wires_of_the_legacy_era() {
    within(async {
        let fixture = Fixture::default();
        let serving = server(&fixture, Default::default()).serve_http("127.0.0.1:0");
        let url = serve(serving.with_sse("/sse")).await;
        let new = connect(Client::builder(), Era::Legacy, &url).await;
        let old = connect(Client::builder(), Era::Legacy, &url.replace("/mcp", "/sse")).await;
        tokio::join!(converse(&new), converse(&old));
        // It is one server.
        let held = old.call_tool("hold", json!({"key": "k"})).no_timeouts();
        let held = tokio::spawn(held.into_future());
        eventually(|| fixture.of("k").started == 1).await;
        new.call_tool("release", json!({"key": "k"})).await.unwrap();
        assert_eq!(held.await.unwrap().unwrap().to_text(), "k");
    })
    .await;
}

/// A client that keeps what it is told.
async fn hearing(url: &str) -> (Client, Arc<Mutex<Vec<Value>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let builder = Client::builder().on_notification({
        let heard = heard.clone();
        move |_, params| heard.lock().unwrap().push(params.unwrap().decode().unwrap())
    });
    (connect(builder, Era::Legacy, url).await, heard)
}

// req: flow:multi-client:stateful-isolation, hosting:session:isolation
// req: flow:session:terminate-then-reconnect
#[tokio::test]
async fn clients_hear_of_their_own_calls_and_settings() {
    within(async {
        let fixture = Fixture::default();
        let url = serve(server(&fixture, Default::default()).serve_http("127.0.0.1:0")).await;
        let ((one, heard), (two, other)) = (hearing(&url).await, hearing(&url).await);
        one.set_log_level(LogLevel::Debug).await.unwrap();
        two.set_log_level(LogLevel::Error).await.unwrap();
        for client in [&one, &two] {
            client.call_tool("log", json!({"text": "said"})).await.unwrap();
        }
        two.call_tool("progress", json!({"n": 2})).on_progress(|_| ()).await.unwrap();
        let heard = heard.lock().unwrap().clone();
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0]["data"], "said");
        let other = other.lock().unwrap().clone();
        assert_eq!(other.len(), 2, "{other:?}");
        assert!(other.iter().all(|note| note.get("progress").is_some()), "{other:?}");
        // The end of one session is not that of another, and the next client opens its own.
        one.close().await;
        assert_eq!(echo(&two, "still there").await, "still there");
        let (again, heard) = hearing(&url).await;
        again.call_tool("log", json!({"text": "said"})).await.unwrap();
        assert_eq!(echo(&again, "back").await, "back");
        assert!(heard.lock().unwrap().iter().all(|note| note["level"] != "debug"));
    })
    .await;
}

/// Says something, lets its connection go, says more when it may, and answers.
async fn let_go(ctx: Ctx, State(gate): State<Arc<Semaphore>>) -> &'static str {
    ctx.progress(1).await;
    ctx.close_stream();
    gate.acquire().await.unwrap().forget();
    ctx.progress(2).await;
    "taken up"
}

// req: flow:resume:tool-call-resumption-token, transport:streamable-http:resumability
// req: client-transport:http:resume-stream-api
#[tokio::test]
async fn a_call_whose_stream_breaks_off_goes_on() {
    within(async {
        let gate = Arc::new(Semaphore::new(0));
        let server = Server::new("s", "1").state(gate.clone()).tool(tool("let_go", let_go));
        let service = server.http_service().retry(Duration::from_millis(1));
        let url = serve(service.serve("127.0.0.1:0")).await;
        let client = connect(Client::builder(), Era::Legacy, &url).await;
        let (told, mut steps) = mpsc::channel(8);
        let call = client.call_tool("let_go", ()).no_timeouts();
        let call = call.on_progress(move |step| told.try_send(step.progress).unwrap());
        let call = tokio::spawn(call.into_future());
        assert_eq!(steps.recv().await, Some(1.0));
        gate.add_permits(1);
        assert_eq!(call.await.unwrap().unwrap().to_text(), "taken up");
        assert_eq!((steps.recv().await, steps.recv().await), (Some(2.0), None));
    })
    .await;
}

// req: sep-2243:param-header:roundtrip, client-transport:http:custom-param-headers
#[tokio::test]
async fn a_server_takes_the_arguments_that_its_client_repeats() {
    within(async {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": "integer", "x-mcp-header": "Limit"},
        }});
        let echo = async |_: RawArgs, ctx: Ctx| {
            let said = |name| ctx.header(name).unwrap_or("nothing").to_owned();
            format!("{} {}", said("mcp-param-region"), said("mcp-param-limit"))
        };
        let server = Server::new("s", "1").tool(tool("where", echo).input_schema(schema));
        let url = serve(server.serve_http("127.0.0.1:0")).await;
        let arguments = json!({"region": "zürich", "limit": 7});
        let listed = connect(Client::builder(), Era::Modern, &url).await;
        listed.tools().all().await.unwrap();
        // One that never listed it is told, lists, and calls again.
        let unlisted = connect(Client::builder(), Era::Modern, &url).await;
        for client in [listed, unlisted] {
            let told = client.call_tool("where", &arguments).await.unwrap().to_text();
            assert_eq!(told, "=?base64?esO8cmljaA==?= 7");
        }
    })
    .await;
}
