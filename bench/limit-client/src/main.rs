//! The bare limit of a client: typed JSON over a pooled HTTP client, or over a child's pipes with a
//! map from ids to waiters.

mod pipe;
mod web;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bench_util::{Arguments, Caller, Era, Target, drive};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"limit","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<ToolResult<'a>>,
}

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

enum Connection {
    Pipe(pipe::Connection),
    Web(web::Connection),
}

#[derive(Clone)]
struct Limit(Arc<Shared>);

struct Shared {
    connection: Connection,
    next_id: AtomicU64,
    meta: &'static str,
}

impl Limit {
    async fn call(&self, tool: &str, arguments: &str) -> Result<String, String> {
        let id = self.0.next_id.fetch_add(1, Relaxed);
        let meta = self.0.meta;
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
        );
        let answer: Option<Bytes> = match &self.0.connection {
            Connection::Pipe(pipe) => pipe.exchange(id, request).await,
            Connection::Web(web) => web.exchange(id, tool, request).await,
        };
        text_of(&answer.ok_or("the connection is gone")?)
    }
}

fn text_of(answer: &[u8]) -> Result<String, String> {
    let response: Response = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    response.id.ok_or("an answer without id")?;
    let content = response.result.and_then(|result| result.content.into_iter().next());
    let text = content.and_then(|content| content.text).ok_or("an answer without text")?;
    Ok(text.into_owned())
}

impl Caller for Limit {
    async fn echo(&self, text: String) -> Result<String, String> {
        self.call("echo", &format!(r#"{{"text":"{text}"}}"#)).await
    }

    async fn slow(&self) {
        let _ = self.call("slow", "{}").await;
    }

    async fn stats(&self) -> Result<String, String> {
        self.call("stats", "{}").await
    }

    async fn list(&self) -> Result<usize, String> {
        Err("the bare limit keeps nothing".to_owned())
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::from_env();
    let connection = match &arguments.target {
        Target::Http(url) => Connection::Web(web::Connection::new(url, arguments.era)),
        Target::Stdio(command) => Connection::Pipe(pipe::Connection::spawn(command)?),
    };
    let meta = if arguments.era == Era::Modern { META } else { "" };
    let client = Limit(Arc::new(Shared { connection, next_id: AtomicU64::new(1), meta }));
    drive(&arguments, client).await
}
