//! `tools/call`.

use std::sync::Arc;

use turnbuckle_types::{CallToolResult, ContentBlock, Method, Raw, RpcError};

use super::{
    HandlerRequest, RequestTarget, RunEnd, RunSubject, VisibilityCheck, encode, reach, settled,
    text,
};
use crate::{
    rpc::{Outcome, Reply},
    server::{
        elicit::{
            ElicitingRun, {self},
        },
        handler::{context::Ctx, extract::Arguments, reply::Failure},
        items::ToolDef,
        registry::Entry,
        shared::App,
    },
};

pub(crate) fn call_tool(visit: HandlerRequest) -> Result<Reply, RpcError> {
    let name = match &visit.params.name {
        Some(name) => {
            text(name).ok_or_else(|| RpcError::invalid_params("`params.name` must be a string"))?
        }
        None => return Err(RpcError::invalid_params("`params.name` is missing")),
    };
    let tool = visit.app.snapshot().tool(&name).cloned().ok_or_else(|| unknown(&name))?;
    drop(name);
    if !visit.app.rules.concern(&**tool) && tool.registration.layers.is_empty() {
        return Ok(run(visit, tool));
    }
    let gate = if visit.app.rules.concern(&**tool) {
        let tool = tool.clone();
        VisibilityCheck::Rule(move |visit: &HandlerRequest| {
            let is_shown = visit.app.rules.show(&**tool, &visit.ctx);
            is_shown.then_some(()).ok_or_else(|| unknown(tool.name()))
        })
    } else {
        VisibilityCheck::Open
    };
    let target = {
        let tool = tool.clone();
        move || RequestTarget {
            method: Method::CallTool,
            name: tool.name().to_owned(),
            layers: tool.registration.layers.clone(),
        }
    };
    Ok(reach(visit, gate, target, move |visit| run(visit, tool)))
}

fn unknown(name: &str) -> RpcError {
    RpcError::invalid_params(format!("there is no tool named `{name}`"))
}

/// Returns the future of a call.
///
/// Every call in flight holds that future. It is not an `async fn`, which would keep its arguments twice.
fn run(visit: HandlerRequest, tool: Arc<Entry<ToolDef>>) -> Reply {
    let arguments = match arguments(&visit, &tool) {
        Ok(arguments) => arguments,
        Err(error) => return Reply::Now(Err(error)),
    };
    let mut call = visit.call(Arguments::Json(arguments.clone()));
    call.checks.clone_from(&tool.checks);
    let HandlerRequest { app, ctx, params, permit } = visit;
    let retry = params.retry;
    let mut course = ElicitingRun::new(&tool.registration, call, permit);
    Reply::Later(Box::pin(async move {
        if let Err(failure) = fits(&tool, &arguments) {
            return finished(&app, &ctx, &tool, Err(failure));
        }
        let subject = RunSubject {
            method: Method::CallTool,
            name: tool.name(),
            arguments: Some(&arguments),
            retry: retry.as_deref(),
        };
        match elicit::run(&app, &tool.registration, &ctx, &mut course, subject).await {
            RunEnd::Replied(replied) => finished(&app, &ctx, &tool, replied),
            RunEnd::Instead(outcome) => outcome,
        }
    }))
}

fn arguments(visit: &HandlerRequest, tool: &ToolDef) -> Result<Raw, RpcError> {
    let arguments = visit.params.arguments.clone().unwrap_or_else(Raw::empty_object);
    if !arguments.is_object() {
        return Err(RpcError::invalid_params("`params.arguments` must be an object"));
    }
    #[cfg(feature = "http")]
    if let crate::rpc::RequestOrigin::ByPost(head) = &visit.ctx.0.came {
        // 2026-07-28 transports/streamable-http §Server Behavior for Custom Headers.
        tool.repeated.check(arguments.as_str(), &head.headers)?;
    }
    #[cfg(not(feature = "http"))]
    let _ = tool;
    Ok(arguments)
}

/// What goes on the wire for what a tool came to.
fn finished(
    app: &App,
    ctx: &Ctx,
    tool: &ToolDef,
    replied: Result<CallToolResult, Failure>,
) -> Outcome {
    let replied = keeps_promise(tool, replied);
    let mut result = settled(replied, ctx, tool.name())?;
    tool.structured.fit(&mut result, ctx.revision());
    let size = size_hint(&result);
    Ok(encode(app, ctx, result, size, |result| &mut result.meta))
}

/// Validates the arguments by a hand-written schema, if there is one.
fn fits(tool: &ToolDef, arguments: &Raw) -> Result<(), Failure> {
    match &tool.check_input {
        Some(check) => check(arguments.as_str()).map_err(Failure::arguments),
        None => Ok(()),
    }
}

/// Output that does not fit its schema is the server's mistake.
fn keeps_promise(
    tool: &ToolDef,
    replied: Result<CallToolResult, Failure>,
) -> Result<CallToolResult, Failure> {
    let (Some(check), Ok(result)) = (&tool.check_output, &replied) else { return replied };
    check(result).map_err(Failure::internal).and(replied)
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
