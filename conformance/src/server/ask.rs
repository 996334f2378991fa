//! The tools that the suite of 2025-11-25 lets ask while they run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle::{
    Ctx, ToolError,
    elicit::{elicit, elicit_form, sample},
    server::Group,
    tool,
    types::{
        Choice, ElicitSchema, MultiSelect, PrimitiveSchema, SelectItems, SelectSchema, TitledItems,
        TitledMultiSelect, TitledSelect,
    },
};

type Told = Result<String, ToolError>;

/// All of them.
pub(super) fn group() -> Group {
    Group::new()
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
    let answer = ctx.ask("answer", sample(prompt).max_tokens(100)).await?;
    Ok(format!("LLM response: {}", answer.to_text()))
}

#[derive(Deserialize, JsonSchema)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

/// Ask the user who they are.
#[tool]
async fn test_elicitation(
    ctx: Ctx,
    /// What the user is told.
    message: String,
) -> Told {
    let User { username, email } = ctx.ask("user", elicit(message)).await?;
    Ok(format!("User response: {username} <{email}>"))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
struct Profile {
    name: String,
    age: i64,
    score: f64,
    status: Status,
    verified: bool,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            name: "John Doe".to_owned(),
            age: 30,
            score: 95.5,
            status: Status::Active,
            verified: true,
        }
    }
}

/// Show a form whose fields start with something.
#[tool]
async fn test_elicitation_sep1034_defaults(ctx: Ctx) -> Told {
    let message = "Please review and update the form fields with defaults";
    let answer = ctx.ask("profile", elicit::<Profile>(message).action()).await?;
    Ok(format!("User response: {answer:?}"))
}

/// Show a form with a choice of each kind.
#[tool]
async fn test_elicitation_sep1330_enums(ctx: Ctx) -> Told {
    let titled = || [Choice::new("value1", "First Option"), Choice::new("value2", "Second Option")];
    let mut legacy = SelectSchema::new(words(["opt1", "opt2"]));
    legacy.enum_names = Some(words(["Option One", "Option Two"]));
    let form = ElicitSchema::new([
        ("untitledSingle", PrimitiveSchema::from(SelectSchema::new(words(["option1", "option2"])))),
        ("titledSingle", TitledSelect::new(titled()).into()),
        ("legacyEnum", legacy.into()),
        ("untitledMulti", MultiSelect::new(SelectItems::new(words(["option1", "option2"]))).into()),
        ("titledMulti", TitledMultiSelect::new(TitledItems::new(titled())).into()),
    ]);
    let question = elicit_form("Please select options from the enum fields", form);
    let answer = ctx.ask("choices", question.action()).await?;
    Ok(format!("User response: {answer:?}"))
}

fn words<const COUNT: usize>(words: [&str; COUNT]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}
