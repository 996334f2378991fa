//! Owns what the demo server has to read: resources and a prompt. Does not own its tools.

use std::{
    convert::Infallible,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use turnbuckle::{
    Args, Json, NotFound, prompt, resource,
    server::{Changes, Group, Typed},
    template,
    types::{PromptMessage, Resource},
};

/// What there is to read.
pub(super) fn group() -> Group {
    Group::new()
        .resource(
            resource("demo://readme", readme)
                .title("Read me")
                .description("What the demo server is for.")
                .mime_type("text/markdown"),
        )
        .resource(
            resource("demo://clock", clock)
                .title("Clock")
                .description("The seconds since 1970. Who watches it is told every second.")
                .mime_type("text/plain"),
        )
        .template(
            template("demo://items/{id}", item)
                .name("item")
                .title("Item")
                .description("One of a hundred items.")
                .complete("id", item_ids)
                .list(items),
        )
        .prompt(
            prompt("review", review).title("Review").description("Asks for a review of some code."),
        )
}

/// Tells those who watch the clock that it has moved on, every second, for as long as this is
/// polled.
pub(crate) async fn wind(changes: Changes) -> Infallible {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        changes.resource("demo://clock");
    }
}

async fn readme() -> &'static str {
    "# The demo server\n\n\
     Its tools show calls, progress, questions, errors and cancellation; `stats` tells what became \
     of the calls. `demo://clock` can be watched, `demo://items/{id}` is a family of resources, and \
     the prompt `review` completes its `language`.\n"
}

async fn clock() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().to_string()
}

/// How many items there are.
const ITEMS: u32 = 100;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Item {
    /// From 1 to 100.
    id: u32,
}

async fn item(Args(Item { id }): Args<Item>) -> Result<Json<serde_json::Value>, NotFound> {
    if !(1..=ITEMS).contains(&id) {
        return Err(NotFound);
    }
    Ok(Json(serde_json::json!({"id": id, "name": format!("Item {id}")})))
}

/// The first few, as an invitation.
async fn items() -> Vec<Resource> {
    (1..=3).map(|id| Resource::new(format!("demo://items/{id}"), format!("item {id}"))).collect()
}

async fn item_ids(Typed(typed): Typed) -> Vec<String> {
    (1..=ITEMS).map(|id| id.to_string()).filter(|id| id.starts_with(&typed)).collect()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    /// What it is written in.
    language: Language,
    /// What is to be reviewed.
    code: String,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Language {
    C,
    Go,
    Java,
    Python,
    Ruby,
    Rust,
    Typescript,
}

async fn review(Args(Review { language, code }): Args<Review>) -> [PromptMessage; 2] {
    [
        PromptMessage::user(format!("Review this {language:?} code:\n\n{code}")),
        PromptMessage::assistant("I'll look at correctness first, then at clarity."),
    ]
}
