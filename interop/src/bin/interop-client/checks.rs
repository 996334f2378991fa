//! Owns: what is checked of a server, one function a check. Does not own: connecting to it, nor
//! how long a check may take.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use turnbuckle::{Client, types::CallToolResult};

const TOOLS: [&str; 7] = ["add", "ask", "count", "echo", "fail", "hold", "was_cancelled"];
const PHRASE: &str = "Grüße, 世界 ✓";
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a check did not pass.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server does not declare what the check needs.
    Absent(String),
    Failed(String),
}

impl From<turnbuckle::Error> for Failure {
    fn from(error: turnbuckle::Error) -> Failure {
        Failure::Failed(error.to_string())
    }
}

type Outcome = Result<(), Failure>;

/// A check and the name that every client program gives it.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Client) -> Pin<Box<dyn Future<Output = Outcome>>>,
}

/// In the order in which they run.
pub(crate) const ALL: &[Check] = &[
    Check { name: "list", run: |client| Box::pin(list(client)) },
    Check { name: "call", run: |client| Box::pin(call(client)) },
    Check { name: "structured", run: |client| Box::pin(structured(client)) },
    Check { name: "progress", run: |client| Box::pin(progress(client)) },
    Check { name: "tool-error", run: |client| Box::pin(tool_error(client)) },
    Check { name: "abandon", run: |client| Box::pin(abandon(client)) },
    Check { name: "elicit", run: |client| Box::pin(elicit(client)) },
    Check { name: "resource", run: |client| Box::pin(resource(client)) },
];

async fn list(client: Client) -> Outcome {
    let tools = client.tools().all().await?;
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    ensure(names == BTreeSet::from(TOOLS), || format!("listed {names:?}"))?;
    let add = tools.iter().find(|tool| tool.name == "add");
    let described = add.is_some_and(|tool| tool.output_schema.is_some());
    ensure(described, || "`add` has no output schema".to_owned())
}

async fn call(client: Client) -> Outcome {
    let result = client.call_tool("echo", json!({ "text": PHRASE })).await?;
    ensure(succeeded(&result) && result.to_text() == PHRASE, || format!("got {result:?}"))
}

async fn structured(client: Client) -> Outcome {
    let result = client.call_tool("add", json!({ "a": 2, "b": 3 })).await?;
    let found = result.structured_content.as_ref().and_then(|raw| raw.decode::<Value>().ok());
    ensure(found == Some(json!({ "sum": 5 })), || format!("got {result:?}"))
}

async fn progress(client: Client) -> Outcome {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let call = client.call_tool("count", ()).on_progress(move |progress| {
        sees.lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .push((progress.progress, progress.total));
    });
    let result = call.await?;
    ensure(succeeded(&result), || format!("got {result:?}"))?;
    let seen = seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    let wanted = [1.0, 2.0, 3.0].map(|step| (step, Some(3.0)));
    ensure(seen == wanted, || format!("saw {seen:?} before the result"))
}

async fn tool_error(client: Client) -> Outcome {
    let result = client.call_tool("fail", ()).await?;
    let told = !succeeded(&result) && result.to_text().contains("failed on purpose");
    ensure(told, || format!("got {result:?}"))
}

async fn abandon(client: Client) -> Outcome {
    let hold = client.call_tool("hold", ());
    tokio::select! {
        result = hold => return Err(Failure::Failed(format!("`hold` returned {result:?}"))),
        held = until(&client, "holding") => held?,
    }
    // The call is dropped by now, and that is all that is done about it.
    until(&client, "stopped").await
}

/// Asks until the server says that `hold` is in this state.
async fn until(client: &Client, state: &str) -> Outcome {
    let started = Instant::now();
    loop {
        let found = client.call_tool("was_cancelled", ()).await?.to_text();
        if found == state {
            return Ok(());
        }
        ensure(started.elapsed() < PATIENCE, || format!("`hold` is {found}, not {state}"))?;
    }
}

async fn elicit(client: Client) -> Outcome {
    let result = client.call_tool("ask", ()).await?;
    ensure(succeeded(&result) && result.to_text() == "hello Ada", || format!("got {result:?}"))
}

async fn resource(client: Client) -> Outcome {
    if client.server_capabilities().is_some_and(|server| server.resources.is_none()) {
        return Err(Failure::Absent("the server declares no resources".to_owned()));
    }
    let result = client.read_resource("note://one").await?;
    ensure(result.to_text() == "the first note", || format!("got {result:?}"))
}

fn succeeded(result: &CallToolResult) -> bool {
    result.is_error != Some(true)
}

fn ensure(holds: bool, sentence: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::Failed(sentence())) }
}
