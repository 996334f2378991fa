//! The prompts.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{
    Ctx, ToolError,
    elicit::elicit,
    prompt,
    server::{Group, Image},
    types::{EmbeddedResource, PromptMessage, Role, TextResourceContents},
};

use super::content::PNG;

/// All of them.
pub(super) fn group() -> Group {
    Group::new()
        .prompt(test_simple_prompt)
        .prompt(test_prompt_with_arguments)
        .prompt(test_prompt_with_embedded_resource)
        .prompt(test_prompt_with_image)
        .prompt(test_input_required_result_prompt)
}

/// A prompt that is always the same.
#[prompt]
async fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// A prompt that is filled in.
#[prompt]
async fn test_prompt_with_arguments(
    /// First test argument
    #[arg(complete = ["testValue1", "testValue2", "paris"])]
    arg1: String,
    /// Second test argument
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// A prompt that contains a resource.
#[prompt]
async fn test_prompt_with_embedded_resource(
    /// URI of the resource to embed
    #[serde(rename = "resourceUri")]
    resource_uri: String,
) -> [PromptMessage; 2] {
    let text = "Embedded resource content for testing.";
    let mut contents = TextResourceContents::new(resource_uri, text);
    contents.mime_type = Some("text/plain".to_owned());
    [
        PromptMessage::new(Role::User, EmbeddedResource::new(contents)),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

/// A prompt that contains an image.
#[prompt]
async fn test_prompt_with_image() -> [PromptMessage; 2] {
    [
        PromptMessage::new(Role::User, Image::png(PNG)),
        PromptMessage::user("Please analyze the image above."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Context {
    context: String,
}

/// A prompt that asks what it is for.
#[prompt]
async fn test_input_required_result_prompt(ctx: Ctx) -> Result<String, ToolError> {
    let Context { context } = ctx.ask("user_context", elicit("What is this for?")).await?;
    Ok(format!("Consider this: {context}"))
}
