//! The span of a request. Its name and its fields follow the OpenTelemetry conventions for MCP.

use tracing::{Level, Span, field::Empty};
#[cfg(feature = "server")]
use turnbuckle_types::Raw;
use turnbuckle_types::{Method, code};

use super::{
    observer::{CallSide, ObservedRequest},
    outcome::RequestOutcome,
};

/// The targets of spans, for filters: requests that are handled, and calls that are made.
const REQUEST: &str = "turnbuckle::request";
const CALL: &str = "turnbuckle::call";

/// The longest part of a payload that is logged.
#[cfg(feature = "server")]
const PAYLOAD: usize = 4_096;

/// Returns whether a subscriber wants spans of requests. This is all that a request costs if none
/// does.
pub(crate) fn wanted(side: CallSide) -> bool {
    match side {
        CallSide::Client => tracing::span_enabled!(target: CALL, Level::INFO),
        CallSide::Server => tracing::span_enabled!(target: REQUEST, Level::INFO),
    }
}

/// Opens the span of a request; a disabled one if no subscriber wants it.
pub(crate) fn open(request: &ObservedRequest<'_>) -> Span {
    if !wanted(request.side) {
        return Span::none();
    }
    let (mut tool, mut prompt, mut uri) = (None, None, None);
    match request.method {
        Some(Method::CallTool) => tool = request.name,
        Some(Method::GetPrompt) => prompt = request.name,
        Some(Method::ReadResource | Method::Subscribe | Method::Unsubscribe) => uri = request.name,
        _ => {}
    }
    // A span's name has few values, so URIs are not part of it.
    let name = match tool.or(prompt) {
        Some(name) => format!("{} {name}", request.label()),
        None => request.label().to_owned(),
    };
    let parent = request.trace.parent().map(tracing::field::display);
    let transport = if request.is_http { "tcp" } else { "pipe" };
    // The target and the name of a span are constants of its call site.
    macro_rules! span {
        ($target:expr, $span:literal, $kind:literal) => {
            tracing::info_span!(
                target: $target,
                $span,
                otel.name = name,
                otel.kind = $kind,
                otel.status_code = Empty,
                mcp.method.name = request.label(),
                mcp.protocol.version = request.revision.as_str(),
                mcp.resource.uri = uri,
                jsonrpc.request.id = request.id.map(tracing::field::display),
                gen_ai.operation.name = tool.map(|_| "execute_tool"),
                gen_ai.tool.name = tool,
                gen_ai.prompt.name = prompt,
                network.transport = transport,
                network.protocol.name = request.is_http.then_some("http"),
                traceparent = parent,
                tracestate = request.trace.state(),
                "error.type" = Empty,
                rpc.response.status_code = Empty,
                outcome = Empty,
            )
        };
    }
    match request.side {
        CallSide::Client => span!(CALL, "mcp.call", "client"),
        CallSide::Server => span!(REQUEST, "mcp.request", "server"),
    }
}

/// Records how the request outcome.
pub(crate) fn close(side: CallSide, span: &Span, outcome: RequestOutcome) {
    span.record("outcome", outcome.as_str());
    if let Some(code) = outcome.code() {
        span.record("rpc.response.status_code", code.to_string());
    }
    if let Some(kind) = failure(side, outcome) {
        span.record("error.type", kind);
        span.record("otel.status_code", "ERROR");
    }
}

/// Returns the type of the failure on this side. A client that asks for something that does not
/// exist, or goes away, is no failure of the server; for a client every error is one.
fn failure(side: CallSide, outcome: RequestOutcome) -> Option<String> {
    match outcome {
        RequestOutcome::Ok | RequestOutcome::InputRequired | RequestOutcome::Cancelled => None,
        RequestOutcome::ToolError => Some("tool_error".to_owned()),
        RequestOutcome::Panicked => Some("panic".to_owned()),
        RequestOutcome::Failed(kind) => Some(kind.as_str().to_owned()),
        RequestOutcome::Error(code) if side == CallSide::Client => Some(code.to_string()),
        RequestOutcome::Error(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::METHOD_NOT_FOUND
            | code::INVALID_PARAMS
            | code::RESOURCE_NOT_FOUND,
        ) => None,
        RequestOutcome::Error(code) => Some(code.to_string()),
    }
}

/// Logs the arguments of a request at level `trace`, truncated. `_meta`, headers and sealed state
/// may hold secrets and are never logged.
#[cfg(feature = "server")]
pub(crate) fn log_arguments(method: &str, arguments: Option<&Raw>) {
    if let Some(arguments) = arguments
        && tracing::enabled!(target: "turnbuckle::payload", Level::TRACE)
    {
        let text = arguments.as_str();
        let arguments = crate::limits::prefix(text, PAYLOAD);
        tracing::trace!(target: "turnbuckle::payload", method, arguments, "arguments");
    }
}

#[cfg(test)]
mod tests;
