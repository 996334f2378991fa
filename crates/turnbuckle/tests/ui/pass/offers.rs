//! Everything that the functions of prompts and resources may be, without a warning.
#![deny(warnings, missing_docs, missing_debug_implementations, clippy::all)]

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use turnbuckle::{
    Args, Ctx, server::{IntoPrompt, IntoResource, IntoTemplate, RawArgs, Typed}, Json, NotFound,
    Server, State, prompt, resource, types::{PromptMessage, Resource},
};

/// Ask for a review.
#[prompt(title = "Review", icon = "https://example.com/review.png")]
pub async fn review(
    /// What is to be reviewed.
    #[arg(title = "Code")]
    code: String,
    #[arg(complete = languages)] language: Option<String>,
    #[arg(complete = ["clear", "terse"])]
    #[serde(default)]
    style: String,
) -> Vec<PromptMessage> {
    vec![PromptMessage::user(code), PromptMessage::user(language.unwrap_or(style))]
}

async fn languages(Typed(typed): Typed, ctx: Ctx) -> Vec<String> {
    let _ = ctx.is_cancelled();
    vec![typed]
}

#[prompt(name = "plain", description = "Nothing to fill in.")]
fn nothing_to_fill_in() -> &'static str {
    "Go on."
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Topic {
    topic: String,
}

#[prompt]
async fn explain(Args(topic): Args<Topic>, State(style): State<&'static str>) -> String {
    format!("Explain {} {style}", topic.topic)
}

/// How to begin.
#[resource("demo://readme", mime_type = "text/markdown", title = "Read me")]
fn readme() -> &'static str {
    "# Read me"
}

#[resource("demo://state", icons("https://example.com/1.png", "https://example.com/2.png"))]
async fn state(State(state): State<&'static str>) -> Json<Vec<&'static str>> {
    Json(vec![state])
}

/// One item.
#[resource("demo://items/{id}{?part}", name = "an item", list = items)]
async fn one_item(
    #[arg(complete = ["1", "2"])] id: String,
    part: Option<String>,
) -> Result<String, NotFound> {
    part.or(Some(id)).ok_or(NotFound)
}

async fn items() -> Vec<Resource> {
    vec![Resource::new("demo://items/1", "the first")]
}

#[resource("demo://raw/{+rest}")]
async fn rest(RawArgs(raw): RawArgs) -> String {
    raw.as_str().to_owned()
}

#[cfg(any())]
#[resource("demo://absent")]
async fn absent() -> NoSuchType {}

fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing to wait for"),
    }
}

fn main() {
    // Called as functions.
    assert_eq!(ready(review("fn".to_owned(), None, String::new())).len(), 2);
    assert_eq!(nothing_to_fill_in(), "Go on.");
    assert_eq!(readme(), "# Read me");
    assert_eq!(ready(one_item("1".to_owned(), None)), Ok("1".to_owned()));

    // Named as they say.
    assert_eq!(review.into_prompt().name(), "review");
    assert_eq!(nothing_to_fill_in.into_prompt().name(), "plain");
    assert_eq!(readme.into_resource().uri(), "demo://readme");
    assert_eq!(one_item.into_template().uri_template(), "demo://items/{id}{?part}");

    Server::new("ui", "1.0")
        .prompt(review)
        .prompt(nothing_to_fill_in)
        .prompt(explain)
        .resource(readme)
        .resource(state)
        .state("plainly")
        .check()
        .expect("every prompt and every resource fits");
    let _ = Server::new("ui", "1.0").template(one_item).template(rest);
}
