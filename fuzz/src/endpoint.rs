//! A server behind its HTTP service, in this process.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, request::Builder};
use http_body_util::{BodyExt as _, Full};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{runtime, time};
use tower_service::Service as _;
use turnbuckle::{
    Args, Ctx, Server, ToolError, elicit::elicit, http::HttpService, resource, server::KeyRing,
    template, tool,
};

/// The keys of every endpoint, so that a target can seal texts for it.
pub static KEYS: LazyLock<KeyRing> = LazyLock::new(|| KeyRing::new([7; 32]));

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let server = Server::new("fuzzed", "1.0")
        .keys(KEYS.clone())
        .page_size(2)
        .tool(tool("add", add))
        .tool(tool("ask", ask))
        .tool(tool("echo", async |Args(Text { text }): Args<Text>| text))
        .resource(resource("fuzz://one", async || "one"))
        .resource(resource("fuzz://two", async || "two"))
        .resource(resource("fuzz://three", async || "three"))
        .template(template("fuzz://{name}/text", async || "text"));
    server.check().expect("the server is complete");
    server
});

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    a: i32,
    b: i32,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn add(Args(Numbers { a, b }): Args<Numbers>) -> i64 {
    i64::from(a) + i64::from(b)
}

/// Asks for a name, so that the client keeps a state.
async fn ask(ctx: Ctx) -> Result<String, ToolError> {
    Ok(ctx.ask("name", elicit::<Name>("Who are you?")).await?.name)
}

/// A service that nothing else uses, and a runtime in which no time passes.
pub struct Endpoint {
    runtime: runtime::Runtime,
    service: HttpService,
}

/// A response. The body is `None` if it does not end.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
}

impl Endpoint {
    pub fn new() -> Endpoint {
        let mut runtime = runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime starts");
        let service = SERVER.http_service().session_keys(KEYS.clone());
        Endpoint { runtime, service }
    }

    pub fn send(&mut self, request: Request<Full<Bytes>>) -> Answer {
        self.runtime.block_on(async {
            let Ok(response) = self.service.call(request).await;
            let (head, body) = response.into_parts();
            // Waiting costs nothing: the clock of this runtime jumps.
            let body = time::timeout(Duration::from_secs(60), body.collect()).await;
            let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes());
            Answer { status: head.status, headers: head.headers, body }
        })
    }

    /// Sends a request of the latest revision. `params` is a JSON object without `_meta`.
    pub fn call(&mut self, method: &str, name: Option<&str>, params: &str) -> Value {
        const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;
        let params = params.strip_prefix('{').expect("an object");
        let comma = if params == "}" { "" } else { "," };
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}{comma}{params}}}"#
        );
        let mut request = post().header("mcp-method", method);
        request = request.header("mcp-protocol-version", "2026-07-28");
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        let answer = self.send(request.body(Full::from(text)).expect("a request"));
        answer.json()
    }

    /// Opens a session of the last legacy revision and returns its id.
    pub fn open_session(&mut self) -> String {
        let text = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "fuzz", "version": "1"}}});
        let request = post().body(Full::from(text.to_string())).expect("a request");
        let answer = self.send(request);
        let id = answer.headers.get("mcp-session-id").expect("a session begins");
        id.to_str().expect("an id is text").to_owned()
    }
}

impl Answer {
    /// Returns the message in the body, or null.
    pub fn json(&self) -> Value {
        let body = self.body.as_deref().unwrap_or_default();
        serde_json::from_slice(body).unwrap_or_default()
    }
}

/// A POST with all headers that every message needs.
pub fn post() -> Builder {
    Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}
