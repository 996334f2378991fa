//! The server that real peers call.
//!
//! Owns: what they check: tools, notes, a prompt. Does not own: the checks.
//! Over stdio it writes to a log that it started, and that it ended by itself.

use std::{
    fs::OpenOptions,
    io::Write,
    sync::{Arc, Mutex},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle::{
    Ctx, Json, Server, State, ToolError,
    elicit::{Elicited, elicit, roots, sample},
    prompt, resource,
    server::{Changes, Typed},
    tool,
    types::SamplingBlock,
};

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

/// Ask the user's model.
#[tool]
async fn ask_model(ctx: Ctx) -> Result<String, ToolError> {
    let answer = ctx.ask("model", sample("What is six times seven?").max_tokens(20)).await?;
    let said = answer.content.blocks().iter().find_map(|block| match block {
        SamplingBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    Ok(format!("said {}", said.unwrap_or_default()))
}

/// Ask where to work.
#[tool]
async fn ask_roots(ctx: Ctx) -> Result<String, ToolError> {
    let places = ctx.ask("roots", roots()).await?;
    Ok(places.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

/// Tell that the first note and the list of tools have changed.
#[tool]
async fn touch(State(changes): State<Changes>) -> &'static str {
    changes.resource("note://one");
    changes.tools();
    "touched"
}

/// Greet someone.
#[prompt]
async fn greet(#[arg(complete = names)] name: String) -> String {
    format!("Greet {name}")
}

async fn names(Typed(typed): Typed) -> Vec<&'static str> {
    ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(&typed)).collect()
}

/// A note about someone.
#[resource("note://about/{name}", mime_type = "text/plain")]
async fn note_about(name: String) -> String {
    format!("a note about {name}")
}

/// A note.
#[resource("note://one", mime_type = "text/plain")]
async fn first_note() -> &'static str {
    "the first note"
}

fn server() -> Server {
    let server = Server::new("interop-server", env!("CARGO_PKG_VERSION"));
    let changes = server.changes();
    server
        .state(changes)
        .state(Held(Arc::new(Mutex::new("idle"))))
        .tool(echo)
        .tool(add)
        .tool(count)
        .tool(fail)
        .tool(hold)
        .tool(was_cancelled)
        .tool(ask)
        .tool(ask_model)
        .tool(ask_roots)
        .tool(touch)
        .prompt(greet)
        .resource(first_note)
        .template(note_about)
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
