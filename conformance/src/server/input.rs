//! The tools that the suite of 2026-07-28 lets ask for input.

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{
    Ctx, ToolError,
    elicit::{elicit, roots, sample},
    server::Group,
    tool,
};

type Told = Result<String, ToolError>;

/// All of them.
pub(super) fn group() -> Group {
    Group::new()
        .tool(test_missing_capability)
        .tool(test_streaming_elicitation)
        .tool(test_input_required_result_elicitation)
        .tool(test_input_required_result_sampling)
        .tool(test_input_required_result_list_roots)
        .tool(test_input_required_result_request_state)
        .tool(test_input_required_result_multiple_inputs)
        .tool(test_input_required_result_multi_round)
        .tool(test_input_required_result_tampered_state)
        .tool(test_input_required_result_capabilities)
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

/// Need a client that has a model.
#[tool]
async fn test_missing_capability(ctx: Ctx) -> Told {
    Ok(ctx.ask("anything", sample("Say anything.")).await?.to_text())
}

/// Ask the user something before going on.
#[tool]
async fn test_streaming_elicitation(ctx: Ctx) -> Told {
    greet(&ctx, "name").await
}

/// Ask for a name and greet.
#[tool]
async fn test_input_required_result_elicitation(ctx: Ctx) -> Told {
    greet(&ctx, "user_name").await
}

async fn greet(ctx: &Ctx, key: &str) -> Told {
    let Name { name } = ctx.ask(key, elicit("What is your name?")).await?;
    Ok(format!("Hello, {name}!"))
}

/// Ask the client's model for a capital.
#[tool]
async fn test_input_required_result_sampling(ctx: Ctx) -> Told {
    let question = sample("What is the capital of France?").max_tokens(100);
    Ok(ctx.ask("capital_question", question).await?.to_text())
}

/// Ask for the client's roots.
#[tool]
async fn test_input_required_result_list_roots(ctx: Ctx) -> Told {
    let roots = ctx.ask("client_roots", roots()).await?;
    Ok(format!("The client has {} roots.", roots.len()))
}

/// Ask for a confirmation, and remember something meanwhile.
#[tool]
async fn test_input_required_result_request_state(ctx: Ctx) -> Told {
    confirmed(&ctx).await
}

/// Ask for a confirmation, and notice if what was remembered is changed.
#[tool]
async fn test_input_required_result_tampered_state(ctx: Ctx) -> Told {
    confirmed(&ctx).await
}

async fn confirmed(ctx: &Ctx) -> Told {
    let state = ctx.once("state", async { Ok::<_, ToolError>("state-ok".to_owned()) }).await?;
    let Confirm { ok } = ctx.ask("confirm", elicit("Please confirm.")).await?;
    Ok(format!("{state}, confirmed: {ok}"))
}

/// Ask three things at once.
#[tool]
async fn test_input_required_result_multiple_inputs(ctx: Ctx) -> Told {
    let (name, greeting, roots) = tokio::join!(
        ctx.ask("user_name", elicit::<Name>("What is your name?")),
        ctx.ask("greeting", sample("Write a greeting.").max_tokens(50)),
        ctx.ask("client_roots", roots()),
    );
    let (Name { name }, greeting, roots) = (name?, greeting?, roots?);
    Ok(format!("{} {name}, with {} roots", greeting.to_text(), roots.len()))
}

/// Ask one thing after another.
#[tool]
async fn test_input_required_result_multi_round(ctx: Ctx) -> Told {
    let Name { name } = ctx.ask("step1", elicit("Step 1: what is your name?")).await?;
    let Color { color } = ctx.ask("step2", elicit("Step 2: what is your favorite color?")).await?;
    Ok(format!("{name} likes {color}."))
}

/// Ask what the client can answer.
#[tool]
async fn test_input_required_result_capabilities(ctx: Ctx) -> Told {
    let model = sample("Say anything.").max_tokens(10);
    if ctx.can_ask(&model) {
        return Ok(ctx.ask("anything", model).await?.to_text());
    }
    greet(&ctx, "user_name").await
}
