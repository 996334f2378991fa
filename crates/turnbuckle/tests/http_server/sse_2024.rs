//! The transport of 2024-11-05: a stream of events down, a POST a message up.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use http::{Request, Response};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot};
use tower_service::Service;
use turnbuckle::{
    Ctx, Limits, Principal, Server, ToolError,
    http::{HttpBody, SseService},
    server::{RawArgs, Revisions},
    tool,
};

use crate::support::{Fed, Raw, Watch, frame, server, server_with, text};

/// A client of a service.
struct Client {
    service: SseService,
    principal: Option<Principal>,
    endpoint: String,
    body: HttpBody,
    /// What has come and was not looked at.
    read: String,
}

fn request(method: &str, uri: &str, body: &str) -> Request<Fed> {
    let request = Request::builder().method(method).uri(uri).header("host", "localhost");
    let request = request.header("content-type", "application/json");
    request.body(Fed::whole(body.to_owned())).unwrap()
}

async fn ask(service: &SseService, request: Request<Fed>) -> Response<HttpBody> {
    let Ok::<_, Infallible>(response) = service.clone().call(request).await;
    response
}

async fn status(service: &SseService, request: Request<Fed>) -> u16 {
    ask(service, request).await.status().as_u16()
}

/// The message of an event.
fn message(event: &str) -> Value {
    let data = event.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("{event:?}"));
    serde_json::from_str(data).unwrap()
}

fn initialize(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {"roots": {}},
        "clientInfo": {"name": "script", "version": "1"},
    }})
}

fn call(id: u64, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": name, "arguments": arguments, "_meta": {"progressToken": id},
    }})
}

impl Client {
    /// A stream that has been opened, and has said where to post.
    async fn open(service: &SseService, principal: Option<&str>) -> Client {
        let principal = principal.map(Principal::new);
        let mut get = request("GET", "/sse", "");
        if let Some(principal) = &principal {
            get.extensions_mut().insert(principal.clone());
        }
        let response = ask(service, get).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
        let (service, body) = (service.clone(), response.into_body());
        let mut client =
            Client { service, principal, endpoint: String::new(), body, read: String::new() };
        let first = client.event().await;
        let endpoint = first.strip_prefix("event: endpoint\ndata: ").unwrap().to_owned();
        assert!(endpoint.starts_with("/sse?sessionId="), "{endpoint}");
        assert!(endpoint.len() >= "/sse?sessionId=".len() + 22, "{endpoint}");
        Client { endpoint, ..client }
    }

    /// One whose handshake is over.
    async fn ready(service: &SseService) -> Client {
        let mut client = Client::open(service, None).await;
        client.post(&initialize("2024-11-05")).await;
        assert_eq!(client.next().await["result"]["protocolVersion"], "2024-11-05");
        client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn post_text(&mut self, text: &str) -> Response<HttpBody> {
        let mut post = request("POST", &self.endpoint, text);
        if let Some(principal) = &self.principal {
            post.extensions_mut().insert(principal.clone());
        }
        ask(&self.service, post).await
    }

    async fn post(&mut self, message: &Value) {
        let response = self.post_text(&message.to_string()).await;
        assert_eq!(response.status(), 202);
        assert_eq!(text(response.into_body()).await, "");
    }

    /// The next event or comment.
    async fn event(&mut self) -> String {
        self.event_or_end().await.expect("the stream goes on")
    }

    async fn event_or_end(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let event = event.to_owned();
                self.read = rest.to_owned();
                return Some(event);
            }
            let Some(more) = frame(&mut self.body).await else {
                assert_eq!(self.read, "", "it ends between events");
                return None;
            };
            self.read += &more;
        }
    }

    async fn next(&mut self) -> Value {
        message(&self.event().await)
    }

    /// Nothing was said before this is answered.
    async fn ping(&mut self) {
        self.post(&json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"})).await;
        assert_eq!(self.next().await, json!({"jsonrpc": "2.0", "id": "ping", "result": {}}));
    }
}

/// Both of what a cancelled handler tells, in either order.
async fn cancelled(watch: &mut Watch, name: &str) {
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, [format!("{name} dropped"), format!("{name} heard")]);
}

// req: transport:sse
#[tokio::test]
async fn a_whole_conversation() {
    let (server, _watch) = server();
    let changes = server.changes();
    let service = server.sse_service("/sse");
    service.check().unwrap();
    let mut client = Client::ready(&service).await;
    client.ping().await;
    // As some clients write it.
    let list = "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"method\": \"tools/list\"\n}\n";
    assert_eq!(client.post_text(list).await.status(), 202);
    let tools = client.next().await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 5);
    assert!(!tools.to_string().contains("resultType"), "no modern word");

    client.post(&call(2, "count", json!({"n": 3}))).await;
    for step in 1..=3 {
        let note = client.next().await;
        assert_eq!(note["method"], "notifications/progress");
        assert_eq!(
            (&note["params"]["progressToken"], &note["params"]["progress"]),
            (&json!(2), &json!(step))
        );
    }
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(2), &json!("counted"))
    );

    let long = "x\n".repeat(400_000);
    client.post(&call(3, "echo", json!({"text": long}))).await;
    assert_eq!(client.next().await["result"]["content"][0]["text"], long);
    client.post(&call(4, "fail", json!({}))).await;
    assert_eq!(client.next().await["error"]["code"], -32603);
    changes.tools();
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    client.ping().await;
}

#[tokio::test]
async fn any_legacy_revision_may_be_agreed_on_and_the_modern_one_may_not() {
    let (server, _watch) = server();
    let service = server.sse_service("/sse");
    for (asked, given) in [("2025-03-26", "2025-03-26"), ("2026-07-28", "2025-11-25")] {
        let mut client = Client::open(&service, None).await;
        client.post(&initialize(asked)).await;
        assert_eq!(client.next().await["result"]["protocolVersion"], given);
    }
    let mut client = Client::open(&service, None).await;
    client
        .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }}}))
        .await;
    assert_eq!(client.next().await["error"]["code"], -32022);
    let modern = server.clone().revisions(Revisions::Modern).sse_service("/sse");
    assert!(modern.check().unwrap_err().to_string().contains("serves none of them"));
    assert_eq!(status(&modern, request("GET", "/sse", "")).await, 500);
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_says_nothing() {
    let (server, mut watch) = server();
    let mut client = Client::ready(&server.sse_service("/sse")).await;
    client.post(&call(1, "wait", json!({"text": "one"}))).await;
    assert_eq!(watch.next().await, "one started");
    assert_eq!(client.next().await["method"], "notifications/progress");
    client.post(&call(2, "wait", json!({"text": "two"}))).await;
    assert_eq!(watch.next().await, "two started");
    assert_eq!(client.next().await["method"], "notifications/progress");
    let params = json!({"requestId": 1});
    client
        .post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    cancelled(&mut watch, "one").await;
    client.ping().await;
    watch.release();
    assert_eq!(client.next().await["params"]["progress"], 2);
    assert_eq!(client.next().await["id"], 2);
}

async fn ask_roots(ctx: Ctx) -> Result<String, ToolError> {
    let roots = ctx
        .request("roots/list", json!({}))
        .await
        .map_err(|error| ToolError::new(error.to_string()))?;
    Ok(roots.as_str().to_owned())
}

#[tokio::test]
async fn a_server_may_ask_its_client() {
    let (server, _watch) = server();
    let server = server.tool(tool("ask", ask_roots));
    let mut client = Client::ready(&server.sse_service("/sse")).await;
    client.post(&call(1, "ask", json!({}))).await;
    let question = client.next().await;
    assert_eq!(question["method"], "roots/list");
    client.ping().await;
    let id = &question["id"];
    client.post(&json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}})).await;
    let answer = client.next().await;
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["content"][0]["text"], "{\"roots\":[]}");
}

#[tokio::test]
async fn a_session_is_its_principals_alone() {
    let (server, _watch) = server();
    let service = server.sse_service("/sse");
    let mut alice = Client::open(&service, Some("alice")).await;
    let nobody = Client::open(&service, None).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    for (other, uri) in
        [(Some("bob"), &alice.endpoint), (None, &alice.endpoint), (Some("bob"), &nobody.endpoint)]
    {
        let mut post = request("POST", uri, &ping);
        if let Some(other) = other {
            post.extensions_mut().insert(Principal::new(other));
        }
        assert_eq!(status(&service, post).await, 404, "{other:?}");
    }
    alice.ping().await;
    assert_ne!(alice.endpoint, nobody.endpoint);
}

// req: transport:sse:post:session-routing, transport:streamable-http:origin-validation
#[tokio::test]
async fn what_is_not_for_a_session_is_refused() {
    let (server, _watch) = server_with(Limits::default().body_bytes(1000));
    let service = server.sse_service("/sse");
    let mut client = Client::open(&service, None).await;
    let uri = client.endpoint.clone();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(status(&service, request("POST", "/sse", ping)).await, 400);
    assert_eq!(status(&service, request("POST", "/sse?sessionId=", ping)).await, 404);
    assert_eq!(status(&service, request("POST", "/sse?sessionId=abc", ping)).await, 404);
    let cut = &uri[..uri.len() - 1];
    assert_eq!(status(&service, request("POST", cut, ping)).await, 404);
    let response = ask(&service, request("DELETE", &uri, "")).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["allow"]),
        (405, &"GET, POST".parse().unwrap())
    );
    for junk in ["", "junk", "{", "[]", "7"] {
        assert_eq!(status(&service, request("POST", &uri, junk)).await, 400, "{junk:?}");
    }
    let long = format!("{ping}{}", " ".repeat(1000));
    assert_eq!(status(&service, request("POST", &uri, &long)).await, 413);
    for method in ["GET", "POST"] {
        let with = |name: &'static str, value: &str| {
            let mut request = request(method, &uri, ping);
            request.headers_mut().insert(name, value.parse().unwrap());
            request
        };
        assert_eq!(status(&service, with("host", "evil.example")).await, 403);
        assert_eq!(status(&service, with("origin", "https://evil.example")).await, 403);
    }
    let mut form = request("POST", &uri, ping);
    form.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(status(&service, form).await, 415);
    // A request that is wrong but has an id is answered where answers go.
    assert_eq!(client.post_text(r#"{"jsonrpc":"2.0","id":7,"method":5}"#).await.status(), 202);
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)));
    client.ping().await;
}

#[tokio::test]
async fn pages_that_may_call_may_read() {
    let (server, _watch) = server();
    let service = server
        .http_service()
        .public_host("mcp.example.com")
        .cors(["https://app.example.com"])
        .sse_service("/sse");
    let mut get = request("GET", "/sse", "");
    get.headers_mut().insert("host", "mcp.example.com".parse().unwrap());
    get.headers_mut().insert("origin", "https://app.example.com".parse().unwrap());
    let response = ask(&service, get).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example.com");
}

// req: transport:sse:post:session-routing
#[tokio::test]
async fn sessions_are_bounded_and_go_with_their_streams() {
    let (server, mut watch) = server();
    let service = server.sse_service("/sse").sessions(2);
    let (mut one, two) = (Client::ready(&service).await, Client::ready(&service).await);
    let response = ask(&service, request("GET", "/sse", "")).await;
    assert_eq!(response.status(), 503);
    assert!(text(response.into_body()).await.contains("(sessions)"));
    one.post(&call(1, "wait", json!({"text": "one"}))).await;
    assert_eq!(watch.next().await, "one started");
    let endpoint = one.endpoint.clone();
    drop(one);
    cancelled(&mut watch, "one").await;
    assert_eq!(status(&service, request("POST", &endpoint, "{}")).await, 404);
    let mut three = Client::ready(&service).await;
    three.ping().await;
    drop(two);
}

#[tokio::test]
async fn what_runs_in_all_sessions_together_is_bounded() {
    let (server, mut watch) = server_with(Limits::default().http_in_flight(1));
    let service = server.sse_service("/sse");
    let (mut one, mut two) = (Client::ready(&service).await, Client::ready(&service).await);
    one.post(&call(1, "wait", json!({"text": "one"}))).await;
    assert_eq!(watch.next().await, "one started");
    two.post(&call(1, "echo", json!({"text": "a"}))).await;
    let refused = two.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32603)));
    assert!(refused["error"]["message"].as_str().unwrap().contains("(http_in_flight)"));
    two.ping().await;
    drop(one);
    cancelled(&mut watch, "one").await;
    two.post(&call(2, "echo", json!({"text": "a"}))).await;
    assert_eq!(two.next().await["result"]["content"][0]["text"], "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_speak_at_once_are_kept_apart() {
    let (server, _watch) = server();
    let service = server.sse_service("/sse");
    let talks = (0..20).map(|number| {
        let service = service.clone();
        tokio::spawn(async move {
            let mut client = Client::ready(&service).await;
            for id in 1..=20 {
                let text = format!("{number} {id}");
                client.post(&call(id, "echo", json!({"text": text}))).await;
                let answer = client.next().await;
                assert_eq!(
                    (&answer["id"], &answer["result"]["content"][0]["text"]),
                    (&json!(id), &json!(text))
                );
            }
        })
    });
    for talk in talks.collect::<Vec<_>>() {
        talk.await.unwrap();
    }
    // All are gone, and their places are free.
    let service = service.sessions(1);
    Client::ready(&service).await.ping().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_nothing() {
    let (server, mut watch) = server();
    let mut client = Client::ready(&server.sse_service("/sse")).await;
    client.post(&call(1, "count", json!({"n": 5000}))).await;
    // The handler is held up, the session is not.
    client.post(&call(2, "wait", json!({"text": "two"}))).await;
    assert_eq!(watch.next().await, "two started");
    let mut steps = 0;
    loop {
        let message = client.next().await;
        if message["id"] == 1 {
            break;
        }
        if message["params"]["progressToken"] == 1 {
            steps += 1;
            assert_eq!(message["params"]["progress"], steps);
        }
    }
    assert_eq!(steps, 5000);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive() {
    let (server, _watch) = server();
    let service = server.http_service().keep_alive(Duration::from_secs(7)).sse_service("/sse");
    let mut client = Client::ready(&service).await;
    let start = tokio::time::Instant::now();
    assert_eq!(client.event().await, ":");
    assert_eq!(client.event().await, ":");
    assert_eq!(start.elapsed().as_secs(), 14);
    client.ping().await;
}

#[tokio::test]
async fn a_shutdown_ends_idle_streams_and_lets_calls_finish() {
    let (server, mut watch) = server();
    let service = server.sse_service("/sse");
    let (mut idle, mut busy) = (Client::ready(&service).await, Client::ready(&service).await);
    idle.ping().await;
    busy.post(&call(1, "wait", json!({"text": "one"}))).await;
    assert_eq!(watch.next().await, "one started");
    assert_eq!(busy.next().await["method"], "notifications/progress");
    service.shutdown();
    assert_eq!(idle.event_or_end().await, None);
    assert_eq!(status(&service, request("GET", "/sse", "")).await, 503);
    busy.ping().await;
    watch.nothing();
    watch.release();
    assert_eq!(busy.next().await["params"]["progress"], 2);
    assert_eq!(busy.next().await["result"]["content"][0]["text"], "released");
    assert_eq!(busy.event_or_end().await, None);
}

/// A stream on a socket.
struct Wire {
    stream: Raw<TcpStream>,
    address: SocketAddr,
    endpoint: String,
}

impl Wire {
    async fn open(address: SocketAddr) -> Wire {
        let mut stream = Raw::new(TcpStream::connect(address).await.unwrap());
        stream
            .send("GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
            .await;
        let head = stream.head().await;
        assert!(head.starts_with("http/1.1 200") && head.contains("text/event-stream"), "{head}");
        let first = stream.chunk().await.unwrap();
        let endpoint = first.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
        let mut wire = Wire { stream, address, endpoint };
        assert_eq!(wire.post(&initialize("2024-11-05")).await, 202);
        assert!(wire.stream.chunk().await.unwrap().contains("2024-11-05"));
        wire
    }

    async fn post(&self, message: &Value) -> u16 {
        let mut connection = Raw::new(TcpStream::connect(self.address).await.unwrap());
        let text = message.to_string();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.endpoint,
            text.len()
        );
        connection.send(&(head + &text)).await;
        connection.answer().await.status
    }
}

#[tokio::test]
async fn a_connection_that_closes_ends_its_session() {
    let (server, mut watch) = server();
    let bound = server.serve_http("127.0.0.1:0").with_sse("/sse").bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    tokio::spawn(bound.into_future());
    let (one, mut two) = (Wire::open(address).await, Wire::open(address).await);
    assert_eq!(one.post(&call(1, "wait", json!({"text": "one"}))).await, 202);
    assert_eq!(watch.next().await, "one started");
    assert_eq!(two.post(&call(1, "wait", json!({"text": "two"}))).await, 202);
    assert_eq!(watch.next().await, "two started");
    let Wire { stream, endpoint, .. } = one;
    drop(stream);
    cancelled(&mut watch, "one").await;
    watch.nothing();
    let gone =
        Wire { endpoint, stream: Raw::new(TcpStream::connect(address).await.unwrap()), address };
    assert_eq!(gone.post(&initialize("2024-11-05")).await, 404);
    watch.release();
    let mut said = String::new();
    while !said.contains("released") {
        said += &two.stream.chunk().await.unwrap();
    }
    assert_eq!(watch.next().await, "two dropped");
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams_and_says_so() {
    let (server, mut watch) = server();
    let (stop, stopped) = oneshot::channel::<()>();
    let bound = server
        .serve_http("127.0.0.1:0")
        .with_sse("/sse")
        .with_shutdown(async { stopped.await.unwrap_or_default() })
        .deadline(Duration::from_millis(20))
        .bind()
        .await
        .unwrap();
    let address = bound.local_addr().unwrap();
    let ended = tokio::spawn(bound.into_future());
    let (mut idle, mut busy) = (Wire::open(address).await, Wire::open(address).await);
    assert_eq!(busy.post(&call(1, "wait", json!({"text": "one"}))).await, 202);
    assert_eq!(watch.next().await, "one started");
    assert!(busy.stream.chunk().await.unwrap().contains("progress"));
    stop.send(()).unwrap();
    assert_eq!(idle.stream.chunk().await, None);
    idle.stream.ends().await;
    let last = busy.stream.chunk().await.unwrap();
    assert!(last.contains("server is shutting down") && last.contains("\"id\":1"), "{last}");
    assert_eq!(busy.stream.chunk().await, None);
    cancelled(&mut watch, "one").await;
    let report = ended.await.unwrap().unwrap();
    assert_eq!((report.finished, report.cancelled), (0, 1));
}

#[tokio::test]
async fn a_path_that_can_not_be_served_is_refused_before_anything_listens() {
    let server = Server::new("s", "1");
    for (path, why) in
        [("/mcp", "two endpoints"), ("sse", "slash"), ("//x", "host"), ("/a?b", "no more")]
    {
        let error = server.serve_http("127.0.0.1:0").with_sse(path).bind().await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    let modern = server.revisions(Revisions::Modern);
    assert!(modern.serve_http("127.0.0.1:0").with_sse("/sse").bind().await.is_err());
    assert!(modern.serve_http("127.0.0.1:0").bind().await.is_ok());
}

#[tokio::test]
async fn what_is_posted_in_several_lines_is_one_line_to_whoever_hands_it_on() {
    async fn lines(RawArgs(given): RawArgs) -> String {
        given.as_str().lines().count().to_string()
    }
    let service = Server::new("s", "1").tool(tool("lines", lines)).sse_service("/sse");
    let mut client = Client::ready(&service).await;
    let inner = call(77, "lines", json!({}));
    let text = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\
         \"params\":{{\"name\":\"lines\",\"arguments\":{{\"a\":\n{inner}\r\n}}}}}}"
    );
    assert_eq!(client.post_text(&text).await.status(), 202);
    let answer = client.next().await;
    let said = &answer["result"]["content"][0]["text"];
    assert_eq!((&answer["id"], said), (&json!(1), &json!("1")));
    client.ping().await;
}
