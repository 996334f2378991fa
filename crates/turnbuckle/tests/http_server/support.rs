//! A server whose handlers tell what becomes of them, and clients that write bytes by hand.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{Semaphore, mpsc},
};
use tower_service::Service;
use turnbuckle::{
    Args, Ctx, Limits, Server, State,
    http::{HttpBody, HttpService},
    tool,
};

/// What handlers tell, and what lets those that wait go on.
#[derive(Clone)]
struct Probe {
    events: mpsc::Sender<String>,
    gate: Arc<Semaphore>,
}

/// The test's end of it.
pub(crate) struct Watch {
    events: mpsc::Receiver<String>,
    gate: Arc<Semaphore>,
}

impl Watch {
    pub(crate) async fn next(&mut self) -> String {
        self.events.recv().await.expect("the server lives")
    }

    pub(crate) fn nothing(&mut self) {
        assert!(self.events.try_recv().is_err());
    }

    /// Lets one handler that waits go on.
    pub(crate) fn release(&self) {
        self.gate.add_permits(1);
    }
}

struct Dropped(Probe, String);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.events.try_send(format!("{} dropped", self.1));
    }
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: u64,
}

async fn echo(Args(echo): Args<Text>) -> String {
    echo.text
}

async fn count(Args(count): Args<Count>, ctx: Ctx) -> &'static str {
    for step in 1..=count.n {
        ctx.progress(step).total(count.n).await;
    }
    "counted"
}

async fn wait(Args(name): Args<Text>, State(probe): State<Probe>, ctx: Ctx) -> &'static str {
    let (elsewhere, events) = (ctx.clone(), probe.events.clone());
    let heard = format!("{} heard", name.text);
    tokio::spawn(async move {
        elsewhere.cancelled().await;
        let _ = events.try_send(heard);
    });
    let _dropped = Dropped(probe.clone(), name.text.clone());
    ctx.progress(1).await;
    let _ = probe.events.try_send(format!("{} started", name.text));
    probe.gate.acquire().await.expect("the gate stays").forget();
    ctx.progress(2).await;
    "released"
}

async fn fail() -> &'static str {
    panic!("secret")
}

async fn fail_later(ctx: Ctx) -> &'static str {
    ctx.progress(1).await;
    tokio::task::yield_now().await;
    panic!("secret")
}

pub(crate) fn server_with(limits: Limits) -> (Server, Watch) {
    let (events, receiver) = mpsc::channel(256);
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::new("test", "1.0")
        .limits(limits)
        .state(Probe { events, gate: gate.clone() })
        .tool(tool("echo", echo))
        .tool(tool("count", count))
        .tool(tool("wait", wait))
        .tool(tool("fail", fail))
        .tool(tool("fail_later", fail_later));
    (server, Watch { events: receiver, gate })
}

pub(crate) fn server() -> (Server, Watch) {
    server_with(Limits::default())
}

/// Whether a call asks for progress.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Progress {
    Wanted,
    Unwanted,
}

/// The body and the method of a message.
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) method: &'static str,
    pub(crate) name: Option<&'static str>,
}

pub(crate) fn message(id: Value, method: &'static str, mut params: Value) -> Message {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    Message { text: text.to_string(), method, name: None }
}

pub(crate) fn call(id: Value, name: &'static str, arguments: Value, progress: Progress) -> Message {
    let mut params = json!({"name": name, "arguments": arguments});
    if progress == Progress::Wanted {
        params["_meta"]["progressToken"] = json!("t");
    }
    Message { name: Some(name), ..message(id, "tools/call", params) }
}

pub(crate) fn listen(id: Value) -> Message {
    message(id, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
}

impl Message {
    pub(crate) fn headers(&self) -> Vec<(&'static str, &str)> {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", self.method),
        ];
        headers.extend(self.name.map(|name| ("mcp-name", name)));
        headers
    }

    /// As a request to the service.
    pub(crate) fn request(&self) -> Request<Fed> {
        self.request_with(Fed::whole(self.text.clone()))
    }

    pub(crate) fn request_with<B>(&self, body: B) -> Request<B> {
        let mut request = Request::post("/mcp").header("host", "localhost");
        for (name, value) in self.headers() {
            request = request.header(name, value);
        }
        request.body(body).unwrap()
    }

    /// As bytes of HTTP/1.1.
    pub(crate) fn bytes(&self) -> String {
        let mut head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\n".to_owned();
        for (name, value) in self.headers() {
            head += &format!("{name}: {value}\r\n");
        }
        format!("{head}content-length: {}\r\n\r\n{}", self.text.len(), self.text)
    }
}

/// A body that arrives as the test sends it.
pub(crate) struct Fed(mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl Fed {
    pub(crate) fn new() -> (mpsc::Sender<Result<Bytes, std::io::Error>>, Fed) {
        let (sender, receiver) = mpsc::channel(64);
        (sender, Fed(receiver))
    }

    pub(crate) fn whole(text: impl Into<Bytes>) -> Fed {
        let (sender, body) = Fed::new();
        sender.try_send(Ok(text.into())).unwrap();
        body
    }
}

impl Body for Fed {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(context).map(|frame| frame.map(|frame| frame.map(Frame::data)))
    }
}

/// One request to the service.
pub(crate) async fn ask<B>(service: &HttpService, request: Request<B>) -> Response<HttpBody>
where
    B: Body + Send + 'static,
{
    let Ok::<_, Infallible>(response) = service.clone().call(request).await;
    response
}

pub(crate) async fn frame(body: &mut HttpBody) -> Option<String> {
    let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    let Ok(frame) = frame;
    Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
}

pub(crate) async fn text(mut body: HttpBody) -> String {
    let mut text = String::new();
    while let Some(frame) = frame(&mut body).await {
        text += &frame;
    }
    text
}

/// The messages of an event stream; nothing else may be in it.
pub(crate) fn events(text: &str) -> Vec<Value> {
    let (events, rest) = text.rsplit_once("\n\n").expect("whole events");
    assert_eq!(rest, "");
    events
        .split("\n\n")
        .filter(|event| *event != ":")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

/// A connection on which bytes are written by hand.
pub(crate) struct Raw<S> {
    stream: S,
    read: Vec<u8>,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub(crate) fn new(stream: S) -> Raw<S> {
        Raw { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &str) {
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, message: &Message) -> Answer {
        self.send(&message.bytes()).await;
        self.answer().await
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let status = head[9..12].parse().unwrap();
        let mut body = String::new();
        if head.contains("transfer-encoding: chunked") {
            while let Some(chunk) = self.chunk().await {
                body += &chunk;
            }
        } else if let Some((_, length)) = head.split_once("content-length: ") {
            let length = length.split("\r\n").next().unwrap().parse().unwrap();
            body = self.take(length).await;
        }
        Answer { status, head, body }
    }

    pub(crate) async fn head(&mut self) -> String {
        self.raw_head().await.to_ascii_lowercase()
    }

    /// The head as it came.
    pub(crate) async fn raw_head(&mut self) -> String {
        self.until("\r\n\r\n").await
    }

    /// The next chunk of a streamed body; `None` for the last.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let size = usize::from_str_radix(self.until("\r\n").await.trim(), 16).unwrap();
        let chunk = self.take(size).await;
        assert_eq!(self.take(2).await, "\r\n");
        (size > 0).then_some(chunk)
    }

    async fn until(&mut self, end: &str) -> String {
        loop {
            let found = self.read.windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(at) = found {
                return self.take(at + end.len()).await;
            }
            self.more().await;
        }
    }

    async fn take(&mut self, length: usize) -> String {
        while self.read.len() < length {
            self.more().await;
        }
        String::from_utf8(self.read.drain(..length).collect()).unwrap()
    }

    async fn more(&mut self) {
        let count = self.stream.read_buf(&mut self.read).await.unwrap();
        let so_far = String::from_utf8_lossy(&self.read);
        assert!(count > 0, "the connection ended after {so_far:?}");
    }

    /// Waits until the server closes; nothing more may come.
    pub(crate) async fn ends(mut self) {
        assert!(self.read.is_empty());
        assert_eq!(self.stream.read_buf(&mut self.read).await.unwrap_or(0), 0);
    }
}
