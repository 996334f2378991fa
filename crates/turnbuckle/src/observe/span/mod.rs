//! Owns the span of a request: its name, its fields, what is recorded when it ends. The names are
//! those of the OpenTelemetry conventions for MCP. Does not own where spans go.

use tracing::{Level, Span, field::Empty};
#[cfg(feature = "server")]
use turnbuckle_types::Raw;
use turnbuckle_types::{RequestId, Revision, code};

use super::ended::Ended;
use crate::trace::TraceContext;

/// The targets of spans, for filters: of requests that are handled, and of calls that are made.
const REQUEST: &str = "turnbuckle::request";
const CALL: &str = "turnbuckle::call";

/// The longest piece of a payload that is logged.
#[cfg(feature = "server")]
const PAYLOAD: usize = 4_096;

/// Who looks at a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(any(feature = "server", test)),
    expect(dead_code, reason = "a client alone is no server")
)]
pub(crate) enum Side {
    /// Whoever makes it.
    Client,
    /// Whoever answers it.
    Server,
}

/// What a span says of its request.
pub(crate) struct Subject<'a> {
    pub(crate) side: Side,
    pub(crate) method: &'a str,
    pub(crate) about: Topic<'a>,
    /// `None` if it gets one later.
    pub(crate) id: Option<&'a RequestId>,
    pub(crate) revision: Revision,
    /// `None` if that is not known.
    pub(crate) wire: Option<Wire>,
    pub(crate) trace: &'a TraceContext,
}

/// What a request is about. Names of tools and prompts are those that the server has, or that the
/// client's own author wrote, not whatever a peer sends: they become part of the span's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic<'a> {
    Tool(&'a str),
    Prompt(&'a str),
    Resource(&'a str),
    Nothing,
}

/// What carries the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Http,
    /// Standard streams, sockets, or the same process.
    Other,
}

/// Whether anyone wants spans of requests. All that a request costs if not.
pub(crate) fn wanted(side: Side) -> bool {
    match side {
        Side::Client => tracing::span_enabled!(target: CALL, Level::INFO),
        Side::Server => tracing::span_enabled!(target: REQUEST, Level::INFO),
    }
}

/// Opens the span of a request.
pub(crate) fn open(subject: &Subject<'_>) -> Span {
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
    let http = subject.wire == Some(Wire::Http);
    let transport = subject.wire.map(|wire| if wire == Wire::Http { "tcp" } else { "pipe" });
    // Target and name of a span have to be known when it is compiled.
    macro_rules! span {
        ($target:expr, $span:literal, $kind:literal) => {
            tracing::info_span!(
                target: $target,
                $span,
                otel.name = name,
                otel.kind = $kind,
                otel.status_code = Empty,
                mcp.method.name = subject.method,
                mcp.protocol.version = subject.revision.as_str(),
                mcp.resource.uri = uri,
                jsonrpc.request.id = subject.id.map(tracing::field::display),
                gen_ai.operation.name = tool.map(|_| "execute_tool"),
                gen_ai.tool.name = tool,
                gen_ai.prompt.name = prompt,
                network.transport = transport,
                network.protocol.name = http.then_some("http"),
                traceparent = parent,
                tracestate = subject.trace.state(),
                "error.type" = Empty,
                rpc.response.status_code = Empty,
                outcome = Empty,
            )
        };
    }
    match subject.side {
        Side::Client => span!(CALL, "mcp.call", "client"),
        Side::Server => span!(REQUEST, "mcp.request", "server"),
    }
}

/// Records how the request ended.
pub(crate) fn close(side: Side, span: &Span, ended: Ended) {
    span.record("outcome", ended.as_str());
    if let Some(code) = ended.code() {
        span.record("rpc.response.status_code", code.to_string());
    }
    if let Some(kind) = failure(side, ended) {
        span.record("error.type", kind);
        span.record("otel.status_code", "ERROR");
    }
}

/// What failed on this side. That a client asked for what does not exist, or went away, is no
/// failure of the server's; to whoever asked, any error is one.
fn failure(side: Side, ended: Ended) -> Option<String> {
    match ended {
        Ended::Ok | Ended::InputRequired | Ended::Cancelled => None,
        Ended::ToolError => Some("tool_error".to_owned()),
        Ended::Panicked => Some("panic".to_owned()),
        Ended::Failed(kind) => Some(kind.as_str().to_owned()),
        Ended::Error(code) if side == Side::Client => Some(code.to_string()),
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
#[cfg(feature = "server")]
pub(crate) fn payload(method: &str, arguments: Option<&Raw>) {
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
