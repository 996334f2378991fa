//! Owns tools that return what a tool can return. Does not own those that look at their caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_stream::StreamExt as _;
use turnbuckle::{
    Args, Ctx, Json, RpcError, State, ToolError,
    server::{Audio, Group, Image, Streaming, blocking_tool},
    tool,
    types::{
        CallToolResult, ContentBlock, EmbeddedResource, LogLevel, Raw, ResourceLink,
        TextResourceContents, ToolAnnotations, code,
    },
};

use super::{BYTES, Key, Language, icon};
use crate::{Fixture, SECRET, tools::wait};

pub(super) fn group() -> Group {
    Group::new()
        .tool(tool("image", async || Image::png(BYTES)))
        .tool(tool("picture", async || Image::new("image/x-own", BYTES)))
        .tool(tool("audio", async || Audio::wav(BYTES)))
        .tool(tool("embedded", async || ContentBlock::from(embedded())))
        .tool(tool("link", async || link()))
        .tool(tool("mixed", mixed))
        .tool(described())
        .tool(tool("drip", drip))
        .tool(tool("spill", spill))
        .tool(tool("weigh", weigh))
        .tool(tool("numbers", async || Json(vec![1, 2, 3])))
        .tool(tool("pay", pay))
        .tool(tool("read", read))
        .tool(tool("speak", speak))
        .tool(tool("release", async |Args(Key { key }): Args<Key>, State(all): State<Fixture>| {
            all.release(&key);
        }))
        .tool(tool("started", async |Args(Key { key }): Args<Key>, State(all): State<Fixture>| {
            all.of(&key).started
        }))
        .tool(blocking_tool("block", block))
}

fn embedded() -> EmbeddedResource {
    let mut contents = TextResourceContents::new("offer://text", "# Text");
    contents.mime_type = Some("text/markdown".to_owned());
    EmbeddedResource::new(contents)
}

fn link() -> ResourceLink {
    let mut link = ResourceLink::new("offer://text", "text");
    link.title = Some("A text".to_owned());
    link.mime_type = Some("text/markdown".to_owned());
    link
}

async fn mixed() -> Vec<ContentBlock> {
    vec![
        ContentBlock::text("first"),
        Image::jpeg(BYTES).into(),
        link().into(),
        ContentBlock::text("second"),
        embedded().into(),
        Audio::mp3(BYTES).into(),
        ContentBlock::text("third"),
    ]
}

fn described() -> turnbuckle::server::ToolDef {
    let mut annotations = ToolAnnotations::new();
    annotations.read_only_hint = Some(true);
    annotations.open_world_hint = Some(false);
    tool("described", async || Json(Weight { grams: 1, of: None }))
        .title("Described")
        .description("Says all that a tool can say of itself.")
        .icon(icon())
        .annotations(annotations)
        .meta("example.com/team", json!("scales"))
}

/// The second part waits until released.
async fn drip(
    Args(Key { key }): Args<Key>,
    State(fixture): State<Fixture>,
) -> Streaming<impl tokio_stream::Stream<Item = &'static str>> {
    let parts = tokio_stream::iter([None, Some((fixture, key))]);
    Streaming(parts.then(async |held| match held {
        None => "one, ",
        Some((fixture, key)) => {
            fixture.gate(&key).await;
            "two"
        }
    }))
}

#[derive(Deserialize, JsonSchema)]
struct Spill {
    /// What the last part is.
    end: End,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum End {
    Good,
    Told,
    Hidden,
}

/// Parts of every kind, and an end as wished.
async fn spill(
    Args(Spill { end }): Args<Spill>,
) -> Streaming<impl tokio_stream::Stream<Item = Result<ContentBlock, Problem>>> {
    let last = match end {
        End::Good => Ok(ContentBlock::text("end")),
        End::Told => Err(Problem::from(ToolError::new("it ran dry"))),
        End::Hidden => Err(Problem::from(SECRET)),
    };
    Streaming(tokio_stream::iter([
        Ok(ContentBlock::text("a")),
        Ok(ContentBlock::text("b")),
        Ok(Image::png(BYTES).into()),
        last,
    ]))
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

#[derive(Deserialize, JsonSchema)]
struct Thing {
    name: String,
}

/// What something weighs.
#[derive(Serialize, JsonSchema)]
struct Weight {
    /// In grams.
    grams: u32,
    of: Option<Language>,
}

async fn weigh(Args(thing): Args<Thing>) -> Result<Json<Weight>, ToolError> {
    let grams = u32::try_from(thing.name.len()).map_err(|_| ToolError::new("too heavy"))?;
    Ok(Json(Weight { grams, of: Some(Language::Rust) }))
}

async fn pay() -> Result<(), RpcError> {
    let page = json!({"mode": "url", "message": "Please pay.", "url": "https://example.com/pay",
        "elicitationId": "e-1"});
    Err(RpcError::new(code::URL_ELICITATION_REQUIRED, "pay first")
        .with_data(&json!({"elicitations": [page]})))
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    uri: String,
}

/// Reads a resource of the server's own, with a word of its own in either result.
async fn read(Args(place): Args<Place>, ctx: Ctx) -> Result<CallToolResult, RpcError> {
    ctx.set_meta("example.com/of", json!("the tool"));
    let read = ctx.read_resource(&place.uri).await?;
    let mut result = CallToolResult::new([]);
    let contents = serde_json::to_value(&read.contents).unwrap_or_default();
    let word = read.meta.value("example.com/of").map(Raw::as_str);
    result.structured_content = Some(json!({"contents": contents, "of": word}).into());
    Ok(result)
}

/// Logs at every level, with and without saying who speaks.
async fn speak(ctx: Ctx) {
    for level in [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ] {
        ctx.log_from("speaker", level, json!({"level": level.as_str(), "parts": [1, null]})).await;
    }
    ctx.log(LogLevel::Emergency, "in words").await;
}

/// Holds its thread until released.
fn block(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>) -> String {
    let running = fixture.start(&key);
    wait(|| fixture.is_open(&key));
    running.finish();
    key
}
