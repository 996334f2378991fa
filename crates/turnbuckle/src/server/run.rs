//! Owns one run of a tool's handler: its arguments, how it is stopped, its result as text.
//! Does not own which tool runs.

use std::sync::Arc;

use turnbuckle_types::{CallToolResult, ContentBlock, Raw};

use super::{
    app::App,
    context::Ctx,
    extract::Call,
    reply::{Failure, shape},
    tool::{Check, OnCancel, Tool},
};
use crate::dispatch::{BoxFuture, Outcome, duplex::Permit};

/// Runs a tool. Dropping this future cancels the handler in the way the tool asks for.
pub(super) async fn run(
    app: Arc<App>,
    tool: Arc<Tool>,
    ctx: Ctx,
    arguments: Raw,
    permit: Permit,
) -> Outcome {
    let armed = FireOnDrop(Some(ctx.clone()));
    let replied = match call(&app, &tool, &ctx, arguments) {
        Err(failure) => Err(failure),
        Ok(handler) => match tool.on_cancel {
            OnCancel::Drop => {
                let replied = handler.await;
                drop(permit);
                replied
            }
            OnCancel::Finish | OnCancel::Cooperate(_) => {
                apart(handler, ctx.clone(), tool.on_cancel, permit).await
            }
        },
    };
    armed.disarm();
    let mut result = shape(tool.name(), replied)?;
    tool.structured.fit(&mut result, ctx.revision());
    Ok(encode(&app, &ctx, result))
}

/// Checks the arguments and starts the handler, without running it yet.
fn call(
    app: &App,
    tool: &Tool,
    ctx: &Ctx,
    arguments: Raw,
) -> Result<BoxFuture<'static, Result<CallToolResult, Failure>>, Failure> {
    let checks = match &tool.check {
        Check::Decoding(checks) => checks.clone(),
        #[cfg(feature = "validate")]
        Check::Schema(schema) => {
            schema.validate(arguments.as_str()).map_err(Failure::arguments)?;
            None
        }
    };
    let call = Call { ctx: ctx.clone(), arguments, checks, states: app.states.clone() };
    Ok(tool.handler.clone().call(call))
}

/// Runs a handler that may outlive its request as a task of its own. It counts as in
/// flight until it ends.
async fn apart(
    handler: BoxFuture<'static, Result<CallToolResult, Failure>>,
    ctx: Ctx,
    on_cancel: OnCancel,
    permit: Permit,
) -> Result<CallToolResult, Failure> {
    let task = tokio::spawn(async move {
        let _permit = permit;
        let OnCancel::Cooperate(grace) = on_cancel else { return handler.await };
        tokio::select! {
            replied = handler => replied,
            () = async { ctx.cancelled().await; tokio::time::sleep(grace).await } => {
                Err(Failure::Internal("the handler did not end within its grace period".into()))
            }
        }
    });
    match task.await {
        Ok(replied) => replied,
        Err(error) => match error.try_into_panic() {
            Ok(payload) => std::panic::resume_unwind(payload),
            Err(error) => Err(Failure::Internal(error.into())),
        },
    }
}

/// Tells everyone who holds the context when the request was given up.
struct FireOnDrop(Option<Ctx>);

impl FireOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for FireOnDrop {
    fn drop(&mut self) {
        if let Some(ctx) = &self.0 {
            ctx.fire();
        }
    }
}

fn encode(app: &App, ctx: &Ctx, mut result: CallToolResult) -> Raw {
    let said = std::mem::take(&mut ctx.said().meta);
    if said.is_empty() && result.meta.is_empty() {
        return app.finish_sized(&result, ctx.revision(), size_hint(&result));
    }
    for (key, value) in said.iter() {
        result.meta.insert(key.to_owned(), value.clone());
    }
    app.name_in(&mut result.meta, ctx.revision());
    Raw::at(&result, ctx.revision())
}

/// Roughly how long the result's text will be, so that a large one is written in one piece.
fn size_hint(result: &CallToolResult) -> usize {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        _ => 0,
    };
    let content: usize = result.content.iter().map(block).sum();
    content + content / 64 + result.structured_content.as_ref().map_or(0, |raw| raw.as_str().len())
}
