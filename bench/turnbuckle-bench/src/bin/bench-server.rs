//! The bench contract's tools, on Turnbuckle.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle::{
    Args, Ctx, Json, Server, State,
    server::{Changes, RawArgs, ToolDef},
    tool,
    types::Raw,
};

#[derive(Default)]
struct Counters {
    started: AtomicU64,
    released: AtomicU64,
}

type Shared = Arc<Counters>;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Args(echo): Args<Echo>) -> String {
    echo.text
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

async fn add(Args(add): Args<Add>) -> Json<Sum> {
    Json(Sum { sum: add.a + add.b })
}

/// Counts the release of a call when its handler is dropped.
struct Release(Shared);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.released.fetch_add(1, Relaxed);
    }
}

async fn slow(State(counters): State<Shared>) {
    counters.started.fetch_add(1, Relaxed);
    let _release = Release(counters);
    std::future::pending().await
}

#[derive(Deserialize, JsonSchema)]
struct Progress {
    n: u64,
}

async fn progress(Args(progress): Args<Progress>, ctx: Ctx) -> &'static str {
    for step in 1..=progress.n {
        ctx.progress(step).total(progress.n).await;
    }
    "done"
}

async fn stats(State(counters): State<Shared>, State(changes): State<Changes>) -> String {
    format!(
        r#"{{"started":{},"released":{},"listeners":{}}}"#,
        counters.started.load(Relaxed),
        counters.released.load(Relaxed),
        changes.listeners(),
    )
}

async fn emit(State(changes): State<Changes>) -> &'static str {
    changes.tools();
    "ok"
}

async fn dummy(_: RawArgs) {}

/// Tools that only fill the list. Their schema is by hand, so that every candidate lists the same.
fn dummies(count: usize) -> impl Iterator<Item = ToolDef> {
    const SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string","description":"Some text"},"count":{"type":"integer","description":"A count"}},"required":["text"]}"#;
    let schema = Raw::from_json(SCHEMA).expect("it is JSON");
    (1..count).map(move |number| {
        tool(format!("dummy_{number:04}"), dummy)
            .description("A dummy tool used to fill the tool list")
            .input_schema_unchecked(schema.clone())
    })
}

/// The contract's tools or, with `BENCH_TOOLS=N`, N tools of which `echo` is the first.
fn server() -> Server {
    let count = std::env::var("BENCH_TOOLS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let server = Server::new("turnbuckle", env!("CARGO_PKG_VERSION"))
        .tool(tool("echo", echo).description("Echo the text back"));
    if count == 0 { contract(server) } else { server.tools(dummies(count)) }
}

fn contract(server: Server) -> Server {
    let server = server
        .state(Shared::default())
        .tool(tool("add", add).description("Add two integers"))
        .tool(tool("slow", slow).description("Wait until cancelled"))
        .tool(tool("progress", progress).description("Emit n progress notifications"))
        .tool(tool("stats", stats).description("Counters as JSON"))
        .tool(tool("emit", emit).description("Tell every listener that the list changed"));
    let changes = server.changes();
    server.state(changes)
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stdio"] => server().serve_stdio().await,
        #[cfg(feature = "http")]
        ["--http", port] => {
            server().serve_http(format!("127.0.0.1:{port}")).await?;
            Ok(())
        }
        _ => {
            eprintln!("usage: bench-server --stdio | --http PORT");
            std::process::exit(2)
        }
    }
}
