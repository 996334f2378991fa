//! Owns the span of a request: its name, its fields, what is recorded when it ends. The names are
//! those of the OpenTelemetry conventions for MCP. Does not own where spans go.

use tracing::{Level, Span, field::Empty};
use turnbuckle_types::{Raw, RequestId, Revision, code};

use super::ended::Ended;
use crate::trace::TraceContext;

/// The target of request spans, for filters.
const TARGET: &str = "turnbuckle::request";

/// The longest piece of a payload that is logged.
const PAYLOAD: usize = 4_096;

/// What a span says of its request.
pub(in crate::server) struct Subject<'a> {
    pub(in crate::server) method: &'a str,
    pub(in crate::server) about: Topic<'a>,
    pub(in crate::server) id: &'a RequestId,
    pub(in crate::server) revision: Revision,
    pub(in crate::server) wire: Wire,
    pub(in crate::server) trace: &'a TraceContext,
}

/// What a request is about. Names of tools and prompts are those that the server has, not whatever
/// a client sends: they become part of the span's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Topic<'a> {
    Tool(&'a str),
    Prompt(&'a str),
    Resource(&'a str),
    Nothing,
}

/// What carries the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Wire {
    Http,
    /// Standard streams, sockets, or the same process.
    Other,
}

/// Whether anyone wants spans of requests. All that a request costs if not.
pub(in crate::server) fn wanted() -> bool {
    tracing::span_enabled!(target: TARGET, Level::INFO)
}

/// Opens the span of a request.
pub(in crate::server) fn open(subject: &Subject<'_>) -> Span {
    let (mut tool, mut prompt, mut uri) = (None, None, None);
    match subject.about {
        Topic::Tool(name) => tool = Some(name),
        Topic::Prompt(name) => prompt = Some(name),
        Topic::Resource(resource) => uri = Some(resource),
        Topic::Nothing => {}
    }
    // A uri is left out of the name: there are too many of them.
    let name = match tool.or(prompt) {
        Some(name) => format!("{} {name}", subject.method),
        None => subject.method.to_owned(),
    };
    let parent = subject.trace.parent().map(tracing::field::display);
    let http = subject.wire == Wire::Http;
    tracing::info_span!(
        target: TARGET,
        "mcp.request",
        otel.name = name,
        otel.kind = "server",
        otel.status_code = Empty,
        mcp.method.name = subject.method,
        mcp.protocol.version = subject.revision.as_str(),
        mcp.resource.uri = uri,
        jsonrpc.request.id = %subject.id,
        gen_ai.operation.name = tool.map(|_| "execute_tool"),
        gen_ai.tool.name = tool,
        gen_ai.prompt.name = prompt,
        network.transport = if http { "tcp" } else { "pipe" },
        network.protocol.name = http.then_some("http"),
        traceparent = parent,
        tracestate = subject.trace.state(),
        "error.type" = Empty,
        rpc.response.status_code = Empty,
        outcome = Empty,
    )
}

/// Records how the request ended.
pub(in crate::server) fn close(span: &Span, ended: Ended) {
    span.record("outcome", ended.as_str());
    if let Some(code) = ended.code() {
        span.record("rpc.response.status_code", code.to_string());
    }
    if let Some(kind) = failure(ended) {
        span.record("error.type", kind);
        span.record("otel.status_code", "ERROR");
    }
}

/// What failed on this side. That a client asked for what does not exist, or went away, is no
/// failure of the server's.
fn failure(ended: Ended) -> Option<String> {
    match ended {
        Ended::Ok | Ended::InputRequired | Ended::Cancelled => None,
        Ended::ToolError => Some("tool_error".to_owned()),
        Ended::Panicked => Some("panic".to_owned()),
        Ended::Error(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::METHOD_NOT_FOUND
            | code::INVALID_PARAMS
            | code::RESOURCE_NOT_FOUND,
        ) => None,
        Ended::Error(code) => Some(code.to_string()),
    }
}

/// Logs what a request says: its arguments, at the most detailed level only and cut short. Neither
/// `_meta` nor headers nor sealed state, in which secrets travel.
pub(in crate::server) fn payload(method: &str, arguments: Option<&Raw>) {
    if let Some(arguments) = arguments
        && tracing::enabled!(target: "turnbuckle::payload", Level::TRACE)
    {
        let text = arguments.as_str();
        let arguments = &text[..text.floor_char_boundary(PAYLOAD)];
        tracing::trace!(target: "turnbuckle::payload", method, arguments, "arguments");
    }
}

#[cfg(test)]
mod tests;
