//! Owns resources, and families of them. Does not own how they are found.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    Args, Ctx, Json, NotFound, State, ToolError, resource,
    server::{Group, Typed, blocking_resource, blocking_template},
    template,
    types::{
        Annotations, BlobResourceContents, Completion, ResourceContents, Role, TextResourceContents,
    },
};

use super::{BYTES, Key, Language, icon};
use crate::{Fixture, SECRET, tools::wait};

pub(super) fn group() -> Group {
    Group::new()
        .resource(
            resource("offer://text", async || "# Text")
                .name("text")
                .title("A text")
                .description("Text that says what it is.")
                .mime_type("text/markdown")
                .size(6)
                .icon(icon())
                .annotations(annotations())
                .meta("example.com/team", json!("shelves")),
        )
        .resource(resource("offer://bytes", async || BYTES.to_vec()).mime_type("image/x-own"))
        .resource(resource("offer://json", async || Json(json!({"a": [1, null]}))))
        .resource(resource("offer://several", async || several()))
        .resource(resource("offer://own", own))
        .resource(resource("offer://broken", broken))
        .resource(resource("offer://told", async || Err::<String, _>(ToolError::new("closed"))))
        .resource(resource("offer://gone", async || Err::<String, _>(NotFound)))
        .resource(resource("offer://hidden", async || "hidden").visible_to(|_: &Ctx| false))
        .resource(blocking_resource("offer://block", block))
        .template(blocking_template("offer://block/{key}", block_by_key))
        .template(
            template("offer://shelves/{language}/{number}", shelf)
                .name("shelf")
                .title("A shelf")
                .description("Books on a language.")
                .mime_type("text/plain")
                .annotations(annotations())
                .complete("number", numbers),
        )
        .template(template("offer://titles/{title}{?edition}", title))
}

fn annotations() -> Annotations {
    let mut annotations = Annotations::new();
    annotations.audience = Some(vec![Role::User, Role::Assistant]);
    annotations.priority = Some(0.25);
    annotations.last_modified = Some("2026-01-02T03:04:05Z".to_owned());
    annotations
}

/// What is left out is filled in, what is there stays.
fn several() -> Vec<ResourceContents> {
    let mut part = BlobResourceContents::new("offer://several/2", "AP8=");
    part.mime_type = Some("image/x-own".to_owned());
    vec![TextResourceContents::new("", "one").into(), part.into()]
}

/// Adds a word to its result.
async fn own(ctx: Ctx) -> &'static str {
    ctx.set_meta("example.com/of", json!("the resource"));
    "own"
}

async fn broken() -> Result<String, std::io::Error> {
    Err(std::io::Error::other(SECRET))
}

#[derive(Deserialize, JsonSchema)]
struct Shelf {
    language: Language,
    #[schemars(range(max = 200))]
    number: u8,
}

async fn shelf(
    Args(shelf): Args<Shelf>,
    State(fixture): State<Fixture>,
) -> Result<String, NotFound> {
    fixture.count("shelf", |count| count.started += 1);
    match shelf.number {
        0 => Err(NotFound),
        number => Ok(format!("{:?} {number}", shelf.language)),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Title {
    #[schemars(length(max = 20))]
    title: String,
    #[schemars(range(min = 1))]
    edition: Option<u32>,
}

async fn title(Args(title): Args<Title>) -> String {
    format!("{:?} {:?}", title.title, title.edition)
}

#[derive(Deserialize, JsonSchema)]
struct Chosen {
    language: Option<Language>,
}

/// The numbers that there are, of the language that was chosen before.
async fn numbers(Typed(typed): Typed, Args(chosen): Args<Chosen>) -> Completion {
    let numbers = match chosen.language {
        Some(Language::Rust) => 10..20,
        Some(_) => 20..22,
        None => 0..0,
    };
    let numbers = numbers.map(|number| number.to_string());
    let mut completion =
        Completion::new(numbers.filter(|number| number.starts_with(&typed)).collect::<Vec<_>>());
    // Its own word about how many there are is left alone.
    completion.total = chosen.language.map(|_| 1_000);
    completion
}

fn block(State(fixture): State<Fixture>) -> String {
    hold("resource", &fixture)
}

fn block_by_key(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>) -> String {
    hold(&key, &fixture)
}

/// Holds its thread until released.
pub(super) fn hold(key: &str, fixture: &Fixture) -> String {
    let running = fixture.start(key);
    wait(|| fixture.is_open(key));
    running.finish();
    key.to_owned()
}
