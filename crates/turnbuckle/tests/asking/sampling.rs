//! The client's model: what it is asked, with what, and what counts as its answer.

use serde_json::{Value, json};
use turnbuckle::{
    Ctx, Server, ToolError,
    elicit::sample,
    tool,
    types::{
        AudioContent, ContentBlock, ImageContent, IncludeContext, ModelPreferences, Role,
        SamplingBlock, SamplingContent, SamplingMessage, TextContent, Tool, ToolChoiceMode,
        ToolResultContent,
    },
};

use crate::peer::{Peer, able, asked, code, params_of, text};

fn said(content: &SamplingContent) -> String {
    let block = |block: &SamplingBlock| match block {
        SamplingBlock::Text(text) => text.text.clone(),
        SamplingBlock::Image(image) => format!("an image of {}", image.mime_type),
        SamplingBlock::Audio(audio) => format!("sound of {}", audio.mime_type),
        SamplingBlock::ToolUse(call) => format!("a call of {}", call.name),
        _ => "something".to_owned(),
    };
    content.blocks().iter().map(block).collect::<Vec<_>>().join(" and ")
}

async fn capital(ctx: Ctx) -> Result<String, ToolError> {
    let mut preferences = ModelPreferences::new();
    preferences.speed_priority = Some(0.5);
    let question = sample("Capital of France?")
        .system_prompt("Be brief.")
        .model_preferences(preferences)
        .max_tokens(20);
    let answer = ctx.ask("capital", question).await?;
    Ok(format!("{} says: {}", answer.model, said(&answer.content)))
}

async fn context(ctx: Ctx) -> Result<String, ToolError> {
    let question = sample("What was that?").include_context(IncludeContext::AllServers);
    Ok(said(&ctx.ask("context", question).await?.content))
}

async fn media(ctx: Ctx) -> Result<String, ToolError> {
    let look = SamplingMessage::new(Role::User, ImageContent::new("aGk=", "image/png"));
    let listen = SamplingMessage::new(Role::User, AudioContent::new("aGk=", "audio/wav"));
    Ok(said(&ctx.ask("media", sample(vec![look, listen])).await?.content))
}

fn weather() -> Tool {
    Tool::new("weather", json!({"type": "object"}))
}

/// Runs the model's tools until it has nothing more to call: each step is a question of its own.
async fn agent(ctx: Ctx) -> Result<String, ToolError> {
    let mut messages = vec![SamplingMessage::new(Role::User, TextContent::new("Weather?"))];
    for step in 0..3 {
        let question =
            sample(messages.clone()).tools([weather()]).tool_choice(ToolChoiceMode::Auto);
        let answer = ctx.ask(&format!("step{step}"), question).await?;
        let results: Vec<SamplingBlock> = answer
            .content
            .blocks()
            .iter()
            .filter_map(|block| match block {
                SamplingBlock::ToolUse(call) => {
                    let sunny = ContentBlock::Text(TextContent::new("sunny"));
                    Some(ToolResultContent::new(call.id.clone(), [sunny]).into())
                }
                _ => None,
            })
            .collect();
        if results.is_empty() {
            return Ok(said(&answer.content));
        }
        messages.push(SamplingMessage::new(Role::Assistant, answer.content));
        messages.push(SamplingMessage::new(Role::User, results));
    }
    Err(ToolError::new("the model does not come to an end"))
}

/// Forgets the result of a call.
async fn unbalanced(ctx: Ctx) -> Result<String, ToolError> {
    let call = json!({"role": "assistant",
        "content": {"type": "tool_use", "id": "1", "name": "weather", "input": {}}});
    let call: SamplingMessage = serde_json::from_value(call).unwrap();
    Ok(said(&ctx.ask("model", sample(vec![call]).tools([weather()])).await?.content))
}

fn server() -> Server {
    Server::new("sampling", "1.0")
        .tool(tool("capital", capital))
        .tool(tool("context", context))
        .tool(tool("media", media))
        .tool(tool("agent", agent))
        .tool(tool("unbalanced", unbalanced))
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "model": "a-model", "stopReason": "endTurn"})
}

fn words(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call() -> Value {
    json!({"type": "tool_use", "id": "1", "name": "weather", "input": {}})
}

/// What the tool `capital` asks.
fn whole_question() -> Value {
    json!({
        "messages": [{"role": "user", "content": words("Capital of France?")}],
        "maxTokens": 20,
        "systemPrompt": "Be brief.",
        "modelPreferences": {"speedPriority": 0.5},
    })
}

// req: sampling:mrtr:create:basic, sampling:mrtr:create:system-prompt, sampling:mrtr:create:model-preferences, tools:call:sampling-roundtrip
#[tokio::test]
async fn a_model_is_asked_in_a_result() {
    let mut peer = Peer::modern(&server(), json!({"sampling": {}}));
    let first = peer.tool("capital", json!({})).await;
    assert_eq!(asked(&first), ["capital"]);
    let method = &first["result"]["inputRequests"]["capital"]["method"];
    assert_eq!(method, "sampling/createMessage");
    assert_eq!(params_of(&first, "capital"), &whole_question());
    let answers = json!({"capital": answer(words("Paris."))});
    let done = peer.retry("capital", &first, answers).await;
    assert_eq!(text(&done), "a-model says: Paris.");
}

// req: sampling:create:basic, sampling:create:system-prompt, sampling:create:model-preferences
#[tokio::test]
async fn a_model_is_asked_live() {
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let mut peer = Peer::legacy(&server(), json!({"sampling": {}}), version).await;
        peer.send("tools/call", json!({"name": "capital"})).await;
        let question = peer.read().await;
        assert_eq!(question["method"], "sampling/createMessage");
        assert_eq!(question["params"], whole_question(), "{version}");
        peer.answer(&question, answer(words("Paris."))).await;
        assert_eq!(text(&peer.read().await), "a-model says: Paris.");
    }
}

// req: sampling:create-message:image-content, sampling:create-message:audio-content
#[tokio::test]
async fn images_and_sound_pass_both_ways() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("media", json!({})).await;
    let blocks = &params_of(&first, "media")["messages"];
    assert_eq!(
        (&blocks[0]["content"]["type"], &blocks[1]["content"]["type"]),
        (&json!("image"), &json!("audio"))
    );
    for (content, said) in [
        (
            json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}),
            "an image of image/png",
        ),
        (json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}), "sound of audio/wav"),
    ] {
        let done = peer.retry("media", &first, json!({"media": answer(content)})).await;
        assert_eq!(text(&done), said);
    }
}

// req: sampling:create-message:not-supported, sampling:tools:server-gated-by-capability, sampling:context:server-gated-by-capability
#[tokio::test]
async fn a_model_is_asked_for_nothing_that_was_not_declared() {
    for (tool, capabilities, required, name) in [
        ("capital", json!({}), json!({"sampling": {}}), "`sampling`"),
        ("agent", json!({"sampling": {}}), json!({"sampling": {"tools": {}}}), "`sampling.tools`"),
        (
            "context",
            json!({"sampling": {}}),
            json!({"sampling": {"context": {}}}),
            "`sampling.context`",
        ),
    ] {
        let mut peer = Peer::modern(&server(), capabilities.clone());
        let refused = peer.tool(tool, json!({})).await;
        assert_eq!(code(&refused), -32021);
        assert_eq!(refused["error"]["data"]["requiredCapabilities"], required);
        let mut peer = Peer::legacy(&server(), capabilities, "2025-11-25").await;
        let refused = peer.legacy_call("tools/call", json!({"name": tool})).await;
        assert_eq!(refused["result"]["isError"], true);
        assert!(text(&refused).contains(name), "{refused}");
    }
}

// req: sampling:mrtr:create:include-context, sampling:create:include-context
#[tokio::test]
async fn context_is_asked_for_where_there_is_some() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("context", json!({})).await;
    assert_eq!(params_of(&first, "context")["includeContext"], "allServers");
    // Revisions that know no capability for it let everyone ask.
    for (version, capabilities) in [("2025-11-25", able()), ("2025-06-18", json!({"sampling": {}}))]
    {
        let mut peer = Peer::legacy(&server(), capabilities, version).await;
        peer.send("tools/call", json!({"name": "context"})).await;
        assert_eq!(peer.read().await["params"]["includeContext"], "allServers", "{version}");
    }
}

// req: sampling:create:tools, sampling:result:with-tools-array-content, sampling:tool-use:result-balance
#[tokio::test]
async fn a_handler_runs_the_tools_of_a_model_in_either_era() {
    let uses = answer(json!([words("Let me see."), call()]));
    let results = json!({"role": "user", "content":
        [{"type": "tool_result", "toolUseId": "1", "content": [words("sunny")]}]});

    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("agent", json!({})).await;
    assert_eq!(asked(&first), ["step0"]);
    assert_eq!(params_of(&first, "step0")["tools"][0]["name"], "weather");
    assert_eq!(params_of(&first, "step0")["toolChoice"], json!({"mode": "auto"}));
    let second = peer.retry("agent", &first, json!({"step0": uses})).await;
    assert_eq!(asked(&second), ["step1"]);
    assert_eq!(params_of(&second, "step1")["messages"][2], results);
    let answers = json!({"step1": answer(words("It is sunny."))});
    assert_eq!(text(&peer.retry("agent", &second, answers).await), "It is sunny.");

    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    peer.send("tools/call", json!({"name": "agent"})).await;
    let question = peer.read().await;
    peer.answer(&question, uses).await;
    let question = peer.read().await;
    assert_eq!(question["params"]["messages"][2], results);
    peer.answer(&question, answer(words("It is sunny."))).await;
    assert_eq!(text(&peer.read().await), "It is sunny.");
}

// req: sampling:result:no-tools-single-content
#[tokio::test]
async fn an_answer_that_is_none_is_refused() {
    let mut peer = Peer::modern(&server(), able());
    let first = peer.tool("capital", json!({})).await;
    for odd in [answer(call()), answer(json!([words("a"), words("b")])), json!({"roots": []})] {
        let refused = peer.retry("capital", &first, json!({"capital": odd})).await;
        assert_eq!(code(&refused), -32602, "{odd}");
    }
}

// req: sampling:tool-use:server-preflight
#[tokio::test]
async fn a_call_without_its_result_is_never_sent() {
    let mut peer = Peer::modern(&server(), able());
    let failed = peer.tool("unbalanced", json!({})).await;
    assert_eq!((&failed["result"]["isError"], text(&failed)), (&json!(true), "internal error"));
    let mut peer = Peer::legacy(&server(), able(), "2025-11-25").await;
    let failed = peer.legacy_call("tools/call", json!({"name": "unbalanced"})).await;
    assert_eq!(failed["result"]["isError"], true);
}
