//! The server that real peers call.
//!
//! Owns: one tool for each thing they check. Does not own: the checks.
//! Over stdio it writes to a log that it started, and that it ended by itself.

use std::{fs::OpenOptions, io::Write, sync::Arc, sync::Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle::{Ctx, Elicited, Json, Server, State, ToolError, elicit, resource, tool};

const USAGE: &str = "usage: interop-server --stdio LOG | --http";

/// Repeat a text.
#[tool]
async fn echo(text: String) -> String {
    text
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Add two integers.
#[tool]
async fn add(a: i64, b: i64) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

/// Report progress three times.
#[tool]
async fn count(ctx: Ctx) -> &'static str {
    for step in 1..=3 {
        ctx.progress(step).total(3).await;
    }
    "counted"
}

/// Fail.
#[tool]
async fn fail() -> Result<(), ToolError> {
    Err(ToolError::new("failed on purpose"))
}

/// What `hold` is doing.
#[derive(Clone)]
struct Held(Arc<Mutex<&'static str>>);

impl Held {
    fn set(&self, state: &'static str) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = state;
    }

    fn state(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Says so when the handler that owns it is dropped.
struct Stops(Held);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.set("stopped");
    }
}

/// Wait until the call is given up.
#[tool]
async fn hold(State(held): State<Held>) {
    held.set("holding");
    let _stops = Stops(held);
    std::future::pending().await
}

/// Say whether `hold` was stopped.
#[tool]
async fn was_cancelled(State(held): State<Held>) -> &'static str {
    held.state()
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Ask the user for a name.
#[tool]
async fn ask(ctx: Ctx) -> Result<String, ToolError> {
    match ctx.ask("name", elicit::<Name>("What is your name?").action()).await? {
        Elicited::Accept(Name { name }) => Ok(format!("hello {name}")),
        Elicited::Decline => Ok("decline".to_owned()),
        Elicited::Cancel => Ok("cancel".to_owned()),
    }
}

/// A note.
#[resource("note://one", mime_type = "text/plain")]
async fn first_note() -> &'static str {
    "the first note"
}

fn server() -> Server {
    Server::new("interop-server", env!("CARGO_PKG_VERSION"))
        .state(Held(Arc::new(Mutex::new("idle"))))
        .tool(echo)
        .tool(add)
        .tool(count)
        .tool(fail)
        .tool(hold)
        .tool(was_cancelled)
        .tool(ask)
        .resource(first_note)
}

fn note(log: &str, line: &str) -> std::io::Result<()> {
    writeln!(OpenOptions::new().create(true).append(true).open(log)?, "{line}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stdio", log] => {
            note(log, "started")?;
            server().serve_stdio().await?;
            note(log, "ended")?;
        }
        ["--http"] => {
            let bound = server().serve_http("127.0.0.1:0").bind().await?;
            println!("{}", bound.url());
            bound.await?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}
