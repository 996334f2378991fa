//! Owns the tools that ask the client something while they run. Does not own the answers.

use std::error::Error;

use serde_json::json;
use turnbuckle::{
    Ctx, Server, tool,
    types::{
        BooleanSchema, Choice, CreateMessage, CreateMessageResult, ElicitForm, ElicitResult,
        ElicitSchema, MultiSelect, NumberKind, NumberSchema, PrimitiveSchema, Role, SamplingBlock,
        SamplingMessage, SelectItems, SelectSchema, StringSchema, TextContent, TitledItems,
        TitledMultiSelect, TitledSelect,
    },
};

/// What became of the question; an error goes to the log, not to the client.
type Told = Result<String, Box<dyn Error + Send + Sync>>;

/// Adds them.
pub(super) fn offer(server: Server) -> Server {
    server
        .tool(test_sampling)
        .tool(test_elicitation)
        .tool(test_elicitation_sep1034_defaults)
        .tool(test_elicitation_sep1330_enums)
}

/// Ask the client's model.
#[tool]
async fn test_sampling(
    ctx: Ctx,
    /// What to ask.
    prompt: String,
) -> Told {
    let message = SamplingMessage::new(Role::User, TextContent::new(prompt));
    let answer = ctx.request("sampling/createMessage", CreateMessage::new([message], 100)).await?;
    let answer: CreateMessageResult = answer.decode()?;
    let texts = answer.content.blocks().iter().filter_map(|block| match block {
        SamplingBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    Ok(format!("LLM response: {}", texts.collect::<String>()))
}

/// Ask the user who they are.
#[tool]
async fn test_elicitation(
    ctx: Ctx,
    /// What the user is told.
    message: String,
) -> Told {
    let field = |description: &str| {
        let mut field = StringSchema::new();
        field.description = Some(description.to_owned());
        field
    };
    let mut schema = ElicitSchema::new([
        ("username", field("User's response")),
        ("email", field("User's email address")),
    ]);
    schema.required = Some(vec!["username".to_owned(), "email".to_owned()]);
    elicit(&ctx, &message, schema).await
}

/// Show a form whose fields start with something.
#[tool]
async fn test_elicitation_sep1034_defaults(ctx: Ctx) -> Told {
    let mut name = StringSchema::new();
    name.default = Some("John Doe".to_owned());
    let mut age = NumberSchema::new(NumberKind::Integer);
    age.default = Some(30.0);
    let mut score = NumberSchema::new(NumberKind::Number);
    score.default = Some(95.5);
    let mut status = SelectSchema::new(words(["active", "inactive", "pending"]));
    status.default = Some("active".to_owned());
    let mut verified = BooleanSchema::new();
    verified.default = Some(true);
    let schema = ElicitSchema::new([
        ("name", PrimitiveSchema::from(name)),
        ("age", age.into()),
        ("score", score.into()),
        ("status", status.into()),
        ("verified", verified.into()),
    ]);
    elicit(&ctx, "Please review and update the form fields with defaults", schema).await
}

/// Show a form with a choice of each kind.
#[tool]
async fn test_elicitation_sep1330_enums(ctx: Ctx) -> Told {
    let titled = || [Choice::new("value1", "First Option"), Choice::new("value2", "Second Option")];
    let mut legacy = SelectSchema::new(words(["opt1", "opt2"]));
    legacy.enum_names = Some(words(["Option One", "Option Two"]));
    let schema = ElicitSchema::new([
        ("untitledSingle", PrimitiveSchema::from(SelectSchema::new(words(["option1", "option2"])))),
        ("titledSingle", TitledSelect::new(titled()).into()),
        ("legacyEnum", legacy.into()),
        ("untitledMulti", MultiSelect::new(SelectItems::new(words(["option1", "option2"]))).into()),
        ("titledMulti", TitledMultiSelect::new(TitledItems::new(titled())).into()),
    ]);
    elicit(&ctx, "Please select options from the enum fields", schema).await
}

async fn elicit(ctx: &Ctx, message: &str, schema: ElicitSchema) -> Told {
    let answer = ctx.request("elicitation/create", ElicitForm::new(message, schema)).await?;
    let answer: ElicitResult = answer.decode()?;
    let content = answer.content.unwrap_or_else(|| json!({}).into());
    Ok(format!("User response: action={}, content={content}", answer.action))
}

fn words<const COUNT: usize>(words: [&str; COUNT]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
