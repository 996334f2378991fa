//! The tools that answer with content of each kind.

use serde_json::json;
use turnbuckle::{
    ToolError,
    server::{Audio, Group, Image, RawArgs},
    tool,
    types::{ContentBlock, EmbeddedResource, Raw, TextResourceContents},
};

/// All of them.
pub(super) fn group() -> Group {
    Group::new()
        .tool(test_simple_text)
        .tool(test_image_content)
        .tool(test_audio_content)
        .tool(test_embedded_resource)
        .tool(test_multiple_content_types)
        .tool(test_error_handling)
        .tool(test_custom_header)
        .tool(
            tool("json_schema_2020_12_tool", echo)
                .description("Take what a hand-written schema describes.")
                .input_schema(contact()),
        )
}

/// A red pixel.
pub(super) const PNG: &[u8] = include_bytes!("pixel.png");
/// No sound at all.
const WAV: &[u8] = include_bytes!("silence.wav");

/// Reply with text.
#[tool]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Reply with an image.
#[tool]
async fn test_image_content() -> Image {
    Image::png(PNG)
}

/// Reply with sound.
#[tool]
async fn test_audio_content() -> Audio {
    Audio::wav(WAV)
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
        Image::png(PNG).into(),
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

/// Repeat a value that also travels in a header.
#[tool]
async fn test_custom_header(
    /// What to repeat.
    #[arg(header = "Value")]
    value: String,
) -> String {
    value
}

/// Repeats arguments whose schema is written by hand.
async fn echo(RawArgs(arguments): RawArgs) -> String {
    arguments.to_string()
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
