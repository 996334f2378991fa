//! Owns prompts and what completes their arguments. Does not own who asks for either.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    Args, RpcError, State, prompt,
    server::{Audio, Group, Image, RawArgs, Typed, blocking_prompt},
    types::{
        BlobResourceContents, EmbeddedResource, GetPromptResult, PromptArgument, PromptMessage,
        Role,
    },
};

use super::{BYTES, Key, Language, MANY, icon, resources::hold};
use crate::Fixture;

pub(super) fn group() -> Group {
    Group::new()
        .prompt(prompt("plain", async || "Say hello.").description("A greeting."))
        .prompt(
            prompt("review", review)
                .title("Review")
                .description("Asks for a review.")
                .icon(icon())
                .meta("example.com/team", json!("words")),
        )
        .prompt(prompt("talk", talk))
        .prompt(prompt("media", media))
        .prompt(
            prompt("by_hand", by_hand)
                .argument(PromptArgument::new("city"))
                .argument(PromptArgument::new("street"))
                .argument(PromptArgument::new("house"))
                .complete_values("city", ["Ulm", "ulcer", "Oslo"])
                .complete("street", streets)
                .complete("house", async || Err::<Vec<String>, _>(RpcError::new(-32099, "no"))),
        )
        .prompt(blocking_prompt("block", block))
}

/// What is to be reviewed, and how.
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The code.
    #[schemars(length(max = 40), regex(pattern = r"^[^\t]*$"))]
    code: String,
    language: Language,
    /// How many remarks at most.
    #[schemars(title = "Remarks", range(max = 9))]
    remarks: Option<u32>,
}

async fn review(Args(review): Args<Review>, State(fixture): State<Fixture>) -> String {
    fixture.count("review", |count| count.started += 1);
    format!("{} in {:?}, {:?} remarks", review.code, review.language, review.remarks)
}

async fn talk() -> GetPromptResult {
    let mut result = GetPromptResult::new([
        PromptMessage::user("What is the capital of France?"),
        PromptMessage::assistant("Paris."),
        PromptMessage::user("And of Spain?"),
    ]);
    result.description = Some("Capitals.".to_owned());
    result
}

async fn media() -> Vec<PromptMessage> {
    let mut contents = BlobResourceContents::new("offer://bytes", "AP8QgA==");
    contents.mime_type = Some("image/x-own".to_owned());
    vec![
        PromptMessage::new(Role::User, Image::png(BYTES)),
        PromptMessage::new(Role::Assistant, Audio::wav(BYTES)),
        PromptMessage::new(Role::User, EmbeddedResource::new(contents)),
    ]
}

async fn by_hand(RawArgs(arguments): RawArgs) -> String {
    arguments.as_str().to_owned()
}

/// More than may be sent, of the city that was chosen before.
async fn streets(Typed(typed): Typed, RawArgs(chosen): RawArgs) -> Vec<String> {
    (0..MANY).map(|number| format!("{typed} {number} {}", chosen.as_str())).collect()
}

fn block(Args(Key { key }): Args<Key>, State(fixture): State<Fixture>) -> String {
    hold(&key, &fixture)
}
