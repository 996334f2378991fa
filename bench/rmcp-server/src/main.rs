//! rmcp 3.8.0 as a server of the bench contract, as its README sets one up and tuned.
//!
//! `BENCH_VARIANT` is `readme` (`#[tool_handler]` as in its README, the default), `arc` (the router
//! is built once and shared) or `json` (the same, with JSON answers over HTTP). With
//! `BENCH_TOOLS=N` there are N tools: `echo`, and dummies.

mod contract;
mod many;
#[cfg(feature = "http")]
mod web;

use rmcp::{ServerHandler, ServiceExt};

use self::contract::{Readme, Shared};
use self::many::{ManyReadme, ManyShared};

const USAGE: &str = "usage: rmcp-server --stdio | --http PORT";

type Failure = Box<dyn std::error::Error>;

/// How HTTP answers are sent.
#[derive(Clone, Copy)]
enum Answers {
    Events,
    Json,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let count = std::env::var("BENCH_TOOLS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let (is_shared, answers) = match std::env::var("BENCH_VARIANT").as_deref() {
        Ok("arc") => (true, Answers::Events),
        Ok("json") => (true, Answers::Json),
        _ => (false, Answers::Events),
    };
    match (is_shared, count) {
        (true, 0) => run(Shared::new(), answers).await,
        (true, _) => run(ManyShared::new(count), answers).await,
        (false, 0) => run(Readme, answers).await,
        (false, _) => run(ManyReadme::new(count), answers).await,
    }
}

async fn run<S>(server: S, answers: Answers) -> Result<(), Failure>
where
    S: ServerHandler + Clone + Send + Sync + 'static,
{
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--stdio"] => {
            server.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
        ["--http", port] => http(server, port, answers).await,
        _ => Err(USAGE.into()),
    }
}

#[cfg(feature = "http")]
async fn http<S>(server: S, port: &str, answers: Answers) -> Result<(), Failure>
where
    S: ServerHandler + Clone + Send + Sync + 'static,
{
    web::serve(server, port.parse()?, answers).await
}

#[cfg(not(feature = "http"))]
async fn http<S>(_: S, _: &str, _: Answers) -> Result<(), Failure> {
    Err("built without the feature `http`".into())
}
