//! A legacy client over HTTP, written by hand, and tools that only such a client can answer.

use std::time::Duration;

use http::{Request, Response, request::Builder};
use serde_json::{Value, json};
use turnbuckle::{
    Ctx, Limits, Principal, Server,
    http::{HttpBody, HttpService},
    tool,
};

use crate::support::{Fed, Watch, ask, frame, server_with, text};

pub(crate) const LATEST: &str = "2025-11-25";

async fn question(ctx: Ctx) -> String {
    match ctx.request("roots/list", json!({})).await {
        Ok(answer) => answer.as_str().to_owned(),
        Err(error) => format!("{error} ({:?})", error.as_rpc().map(|rpc| rpc.code)),
    }
}

async fn impatient(ctx: Ctx) -> &'static str {
    let asked = ctx.request("roots/list", json!({}));
    match tokio::time::timeout(Duration::from_secs(5), asked).await {
        Ok(_) => "answered",
        Err(_) => "gave up",
    }
}

/// Asks from a task of its own, and ends before that has an answer.
async fn leaving(ctx: Ctx) -> &'static str {
    let asking = tokio::spawn(async move {
        let _ = ctx.request("roots/list", json!({})).await;
    });
    tokio::task::yield_now().await;
    drop(asking);
    tokio::task::yield_now().await;
    "left"
}

pub(crate) fn legacy_server_with(limits: Limits) -> (Server, Watch) {
    let (server, watch) = server_with(limits);
    let server = server
        .tool(tool("question", question))
        .tool(tool("impatient", impatient))
        .tool(tool("leaving", leaving));
    (server, watch)
}

pub(crate) fn legacy_server() -> (Server, Watch) {
    legacy_server_with(Limits::default())
}

/// A session as its client sees it.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) service: HttpService,
    pub(crate) id: String,
    pub(crate) version: &'static str,
    principal: Option<&'static str>,
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "client", "version": "1"},
    }})
}

pub(crate) fn call(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {
        "name": name, "arguments": arguments, "_meta": {"progressToken": "t"},
    }})
}

pub(crate) fn wait(id: impl Into<Value>, name: &str) -> Value {
    call(id, "wait", json!({"text": name}))
}

pub(crate) fn cancel(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
        "requestId": id.into(),
    }})
}

pub(crate) fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

pub(crate) fn post() -> Builder {
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

pub(crate) async fn send(
    service: &HttpService,
    request: Builder,
    body: &Value,
) -> Response<HttpBody> {
    ask(service, request.body(Fed::whole(body.to_string())).unwrap()).await
}

impl Session {
    pub(crate) async fn open(service: &HttpService, version: &'static str) -> Session {
        Session::open_as(service, version, None).await
    }

    pub(crate) async fn open_as(
        service: &HttpService,
        version: &'static str,
        principal: Option<&'static str>,
    ) -> Session {
        let mut request = post();
        if let Some(name) = principal {
            request = request.extension(Principal::new(name));
        }
        let response = send(service, request, &initialize(version)).await;
        assert_eq!(response.status(), 200);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let answer = value(response).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        Session { service: service.clone(), id, version, principal }
    }

    /// The same session at another service, or of someone else.
    pub(crate) fn at(&self, service: &HttpService) -> Session {
        Session { service: service.clone(), ..self.clone() }
    }

    pub(crate) fn stolen_by(&self, principal: Option<&'static str>) -> Session {
        Session { principal, ..self.clone() }
    }

    fn headers(&self, request: Builder) -> Builder {
        let request = request
            .header("host", "localhost")
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", self.version);
        match self.principal {
            Some(name) => request.extension(Principal::new(name)),
            None => request,
        }
    }

    pub(crate) async fn post(&self, body: &Value) -> Response<HttpBody> {
        let request = self
            .headers(Request::post("/mcp"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        send(&self.service, request, body).await
    }

    /// A notification or an answer, which is acknowledged.
    pub(crate) async fn tell(&self, body: &Value) {
        let response = self.post(body).await;
        assert_eq!(response.status(), 202);
        assert_eq!(text(response.into_body()).await, "");
    }

    pub(crate) async fn get(&self, last: Option<&str>) -> Response<HttpBody> {
        let mut request = self.headers(Request::get("/mcp")).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        ask(&self.service, request.body(Fed::whole("")).unwrap()).await
    }

    /// Goes on after an event.
    pub(crate) async fn resume(&self, last: &str) -> Events {
        let response = self.get(Some(last)).await;
        assert_eq!(response.status(), 200);
        Events::of(response)
    }

    pub(crate) async fn delete(&self) -> Response<HttpBody> {
        let request = self.headers(Request::delete("/mcp"));
        ask(&self.service, request.body(Fed::whole("")).unwrap()).await
    }

    /// Starts a call of `wait` and reads up to where it waits: its first progress.
    pub(crate) async fn start(
        &self,
        id: impl Into<Value>,
        name: &str,
        watch: &mut Watch,
    ) -> Events {
        let mut events = Events::of(self.post(&wait(id, name)).await);
        assert_eq!(watch.next().await, format!("{name} started"));
        if self.version == LATEST {
            events.first = Some(events.priming().await);
        }
        assert_eq!(events.message().await["params"]["progress"].as_f64(), Some(1.0));
        events
    }
}

pub(crate) async fn value(response: Response<HttpBody>) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    serde_json::from_str(&text(response.into_body()).await).unwrap()
}

/// The status of an answer and the code of its error.
pub(crate) async fn refusal(response: Response<HttpBody>) -> (u16, i64) {
    let status = response.status().as_u16();
    (status, value(response).await["error"]["code"].as_i64().unwrap())
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<String>,
    /// `null` if it is empty.
    pub(crate) data: Value,
}

impl Event {
    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().expect("an id")
    }
}

/// A stream of events as they come.
pub(crate) struct Events {
    body: HttpBody,
    read: String,
    /// The id of the priming event, if it was read by `start`.
    pub(crate) first: Option<String>,
}

impl Events {
    pub(crate) fn of(response: Response<HttpBody>) -> Events {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { body: response.into_body(), read: String::new(), first: None }
    }

    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let event = read(event);
                self.read = rest.to_owned();
                return Some(event);
            }
            match frame(&mut self.body).await {
                Some(more) => self.read += &more,
                None => {
                    let rest = std::mem::take(&mut self.read);
                    assert!(rest.is_empty() || rest.starts_with("retry: "), "{rest:?}");
                    return None;
                }
            }
        }
    }

    /// The id of the event that came before all others.
    pub(crate) fn first(&self) -> String {
        self.first.clone().expect("a priming event")
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Value {
        self.next().await.expect("a message").data
    }

    /// The event that comes before all others in the latest revision.
    pub(crate) async fn priming(&mut self) -> String {
        let first = self.next().await.unwrap();
        assert_eq!((&first.data, first.retry.as_deref()), (&Value::Null, None));
        first.id().to_owned()
    }

    /// All that is left.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// It must have ended, with nothing left.
    pub(crate) async fn ends(mut self) {
        assert!(self.next().await.is_none());
    }
}

fn read(block: &str) -> Event {
    let mut event = Event { id: None, retry: None, data: Value::Null };
    for line in block.lines() {
        let (name, value) = line.split_once(':').unwrap();
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "" => {}
            "id" => event.id = Some(value.to_owned()),
            "retry" => event.retry = Some(value.to_owned()),
            "data" if value.is_empty() => {}
            "data" => event.data = serde_json::from_str(value).unwrap(),
            other => panic!("what is {other}?"),
        }
    }
    event
}
