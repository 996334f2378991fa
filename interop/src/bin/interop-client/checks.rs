//! Owns: what is checked of a server, one function a check. Does not own: connecting to it, nor
//! how long a check may take.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use turnbuckle::{
    Client,
    subscribe::{Event, Filter},
    types::{CallToolResult, PromptReference, ServerCapabilities},
};

const TOOLS: [&str; 10] = [
    "add",
    "ask",
    "ask_model",
    "ask_roots",
    "count",
    "echo",
    "fail",
    "hold",
    "touch",
    "was_cancelled",
];
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
    Check { name: "sample", run: |client| Box::pin(sample(client)) },
    Check { name: "roots", run: |client| Box::pin(roots(client)) },
    Check { name: "resource", run: |client| Box::pin(resource(client)) },
    Check { name: "template", run: |client| Box::pin(template(client)) },
    Check { name: "prompt", run: |client| Box::pin(prompt(client)) },
    Check { name: "complete", run: |client| Box::pin(complete(client)) },
    Check { name: "listen", run: |client| Box::pin(listen(client)) },
    Check { name: "changed", run: |client| Box::pin(changed(client)) },
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

async fn sample(client: Client) -> Outcome {
    let result = client.call_tool("ask_model", ()).await?;
    ensure(succeeded(&result) && result.to_text() == "said forty-two", || format!("got {result:?}"))
}

async fn roots(client: Client) -> Outcome {
    let result = client.call_tool("ask_roots", ()).await?;
    ensure(succeeded(&result) && result.to_text() == "file:///home/ada", || {
        format!("got {result:?}")
    })
}

async fn resource(client: Client) -> Outcome {
    declared(&client, "resources", |server| server.resources.is_some())?;
    let result = client.read_resource("note://one").await?;
    ensure(result.to_text() == "the first note", || format!("got {result:?}"))
}

async fn template(client: Client) -> Outcome {
    declared(&client, "resources", |server| server.resources.is_some())?;
    let templates = client.resource_templates().all().await?;
    let listed = templates.iter().any(|template| template.uri_template == "note://about/{name}");
    ensure(listed, || format!("listed {templates:?}"))?;
    let result = client.read_resource("note://about/ada").await?;
    ensure(result.to_text() == "a note about ada", || format!("got {result:?}"))
}

async fn prompt(client: Client) -> Outcome {
    declared(&client, "prompts", |server| server.prompts.is_some())?;
    let prompts = client.prompts().all().await?;
    let listed = prompts.iter().any(|prompt| prompt.name == "greet");
    ensure(listed, || format!("listed {prompts:?}"))?;
    let result = client.get_prompt("greet", json!({ "name": "Ada" })).await?;
    let said = result.messages.first().and_then(|message| message.content.as_text());
    ensure(said == Some("Greet Ada"), || format!("got {result:?}"))
}

async fn complete(client: Client) -> Outcome {
    declared(&client, "completions", |server| server.completions.is_some())?;
    let found = client.complete(PromptReference::new("greet"), "name", "A").await?;
    ensure(found.completion.values == ["Ada", "Alan"], || format!("got {found:?}"))
}

async fn listen(client: Client) -> Outcome {
    declared(&client, "subscriptions to resources", |server| {
        server.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
    })?;
    let wanted = Event::ResourceUpdated("note://one".to_owned());
    heard(client, Filter::new().resource("note://one"), wanted).await
}

async fn changed(client: Client) -> Outcome {
    declared(&client, "changes of its tools", |server| {
        server.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
    })?;
    heard(client, Filter::new().tools(), Event::ToolsChanged).await
}

/// Listens, has the server touched, and waits for what it says of that.
async fn heard(client: Client, watch: Filter, wanted: Event) -> Outcome {
    let mut listening = client.listen(watch).await?;
    client.call_tool("touch", ()).await?;
    let news = tokio::time::timeout(PATIENCE, listening.next()).await;
    let news = news.map_err(|_| Failure::Failed("nothing was heard".to_owned()))?;
    ensure(matches!(&news, Some(Ok(happened)) if *happened == wanted), || format!("heard {news:?}"))
}

/// Whether the server declares what a check needs.
fn declared(client: &Client, what: &str, has: fn(&ServerCapabilities) -> bool) -> Outcome {
    match client.server_capabilities() {
        Some(server) if !has(&server) => {
            Err(Failure::Absent(format!("the server declares no {what}")))
        }
        _ => Ok(()),
    }
}

fn succeeded(result: &CallToolResult) -> bool {
    result.is_error != Some(true)
}

fn ensure(holds: bool, sentence: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::Failed(sentence())) }
}
