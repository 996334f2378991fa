//! The server that the conformance suite calls: one tool for each thing it wants to see.
//!
//! Prints its URL and serves until it is killed.

use serde_json::json;
use turnbuckle::{
    Changes, Ctx, RawArgs, RpcError, Server, State, ToolError, tool,
    types::{
        AudioContent, CallToolResult, ContentBlock, EmbeddedResource, ImageContent, LogLevel, Raw,
        ResultType, TextResourceContents, code,
    },
};

/// A red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// No sound at all.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Reply with text.
#[tool]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Reply with an image.
#[tool]
async fn test_image_content() -> ContentBlock {
    ImageContent::new(PNG, "image/png").into()
}

/// Reply with sound.
#[tool]
async fn test_audio_content() -> ContentBlock {
    AudioContent::new(WAV, "audio/wav").into()
}

/// Reply with a resource.
#[tool]
async fn test_embedded_resource() -> ContentBlock {
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
}

/// Reply with text, an image and a resource.
#[tool]
async fn test_multiple_content_types() -> Vec<ContentBlock> {
    vec![
        ContentBlock::text("Multiple content types test:"),
        ImageContent::new(PNG, "image/png").into(),
        embedded("test://mixed-content-resource", "application/json", r#"{"test":"data"}"#),
    ]
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    let mut contents = TextResourceContents::new(uri, text);
    contents.mime_type = Some(mime_type.to_owned());
    EmbeddedResource::new(contents).into()
}

/// Fail.
#[tool]
async fn test_error_handling() -> Result<(), ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}

/// Report progress three times.
#[tool]
async fn test_tool_with_progress(ctx: Ctx) -> &'static str {
    for done in [0, 50, 100] {
        ctx.progress(done).total(100).await;
    }
    "Progress was reported."
}

/// Log three messages.
#[tool]
async fn test_tool_with_logging(ctx: Ctx) -> &'static str {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        ctx.log(LogLevel::Info, message).await;
    }
    "Messages were logged."
}

/// Log one message, for those who asked for messages.
#[tool]
async fn test_logging_tool(ctx: Ctx) -> &'static str {
    ctx.log(LogLevel::Info, "This is heard only by those who asked.").await;
    "A message was logged."
}

/// Need a client that has a model.
#[tool]
async fn test_missing_capability(ctx: Ctx) -> Result<&'static str, RpcError> {
    if ctx.client_capabilities().sampling.is_some() {
        return Ok("The client has a model.");
    }
    Err(RpcError::new(code::MISSING_CLIENT_CAPABILITY, "this tool needs a client with a model")
        .with_data(&json!({"requiredCapabilities": {"sampling": {}}})))
}

/// Ask the user something before going on.
#[tool]
async fn test_streaming_elicitation() -> CallToolResult {
    let mut result = CallToolResult::new([]);
    result.result_type = Some(ResultType::InputRequired);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let ask = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": "What is your name?", "requestedSchema": schema,
    }});
    result.extra.insert("inputRequests", json!({"name": ask}));
    result
}

/// Tell everyone who listens that the tools have changed.
#[tool]
async fn test_trigger_tool_change(State(changes): State<Changes>) -> &'static str {
    changes.tools();
    "The tools have changed."
}

/// Repeat a value that also travels in a header.
#[tool]
async fn test_custom_header(
    /// What to repeat.
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
) -> String {
    value
}

/// Repeats arguments whose schema is written by hand.
async fn echo(RawArgs(arguments): RawArgs) -> String {
    arguments.to_string()
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let server = Server::new("everything-server", env!("CARGO_PKG_VERSION"));
    let changes = server.changes();
    let bound = server
        .state(changes)
        // The first tool is the one that the suite calls when any will do.
        .tool(test_simple_text)
        .tool(test_image_content)
        .tool(test_audio_content)
        .tool(test_embedded_resource)
        .tool(test_multiple_content_types)
        .tool(test_error_handling)
        .tool(test_tool_with_progress)
        .tool(test_tool_with_logging)
        .tool(test_logging_tool)
        .tool(test_missing_capability)
        .tool(test_streaming_elicitation)
        .tool(test_trigger_tool_change)
        .tool(test_custom_header)
        .tool(
            tool("json_schema_2020_12_tool", echo)
                .description("Take what a hand-written schema describes.")
                .input_schema(contact()),
        )
        .serve_http("127.0.0.1:0")
        .bind()
        .await?;
    println!("{}", bound.url());
    bound.await?;
    Ok(())
}

fn contact() -> Raw {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
    .into()
}
