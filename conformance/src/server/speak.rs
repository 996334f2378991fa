//! The tools that say something before they answer, or to someone else.

use std::time::Duration;

use turnbuckle::{
    Ctx, State,
    server::{Changes, Group},
    tool,
    types::LogLevel,
};

/// All of them.
pub(super) fn group() -> Group {
    Group::new()
        .tool(test_tool_with_progress)
        .tool(test_tool_with_logging)
        .tool(test_logging_tool)
        .tool(test_trigger_tool_change)
        .tool(test_trigger_prompt_change)
        .tool(test_reconnection)
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

/// Tell everyone who listens that the tools have changed.
#[tool]
async fn test_trigger_tool_change(State(changes): State<Changes>) -> &'static str {
    changes.tools();
    "The tools have changed."
}

/// Tell everyone who listens that the prompts have changed.
#[tool]
async fn test_trigger_prompt_change(State(changes): State<Changes>) -> &'static str {
    changes.prompts();
    "The prompts have changed."
}

/// Let the connection go, and answer to whoever comes back for the rest.
#[tool]
async fn test_reconnection(ctx: Ctx) -> &'static str {
    ctx.close_stream();
    // As long as a client may well be away.
    tokio::time::sleep(Duration::from_millis(200)).await;
    "The client came back for this."
}
