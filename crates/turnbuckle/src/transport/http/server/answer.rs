//! Creates HTTP responses: status, headers, and a body of JSON or events.

use super::{
    super::sse,
    body::{HttpBody, Pieces},
    running::{Done, RunningHttpRequest},
};
use crate::{
    protocol::status,
    rpc::Outcome,
    transport::http::server::{security::guard::Refusal, shutdown::RequestEnding},
};
use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE},
};
use turnbuckle_types::{RequestId, RpcError, jsonrpc};

/// A result this long is sent as it is rather than copied next to its envelope.
const LARGE: usize = 16 * 1024;

/// Which status an answer has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Statuses {
    /// The one that goes with its error.
    ByError,
    /// In the legacy era an error is an answer like any other.
    AlwaysOk,
}

/// Creates the response to a request that has ended before its response was a stream.
pub(crate) fn done(id: &RequestId, statuses: Statuses, done: Done) -> Response<HttpBody> {
    if !done.events.is_empty() {
        return events(HttpBody::pieces(last_event(id, done)));
    }
    let status = match (&done.outcome, done.ended) {
        // The client may ask another server.
        (_, RequestEnding::Cancelled) => StatusCode::SERVICE_UNAVAILABLE,
        (outcome, _) if statuses == Statuses::ByError => status_of(outcome),
        _ => StatusCode::OK,
    };
    json(status, pieces(Vec::new(), Framing::Plain, id, done.outcome))
}

/// The answer to a request that no handler had to run for.
pub(super) fn outcome(id: &RequestId, outcome: Outcome) -> Response<HttpBody> {
    json(status_of(&outcome), pieces(Vec::new(), Framing::Plain, id, outcome))
}

/// An outcome with a status that does not follow from it.
pub(crate) fn outcome_as(
    status: StatusCode,
    id: &RequestId,
    outcome: Outcome,
) -> Response<HttpBody> {
    json(status, pieces(Vec::new(), Framing::Plain, id, outcome))
}

/// JSON that is written already.
pub(crate) fn text(status: StatusCode, text: Vec<u8>) -> Response<HttpBody> {
    json(status, [text.into(), Bytes::new(), Bytes::new()])
}

/// An event stream that has ended without an event.
pub(crate) fn ended_events() -> Response<HttpBody> {
    events(HttpBody::default())
}

/// An event stream that has ended after these events.
pub(crate) fn ended_events_with(text: Vec<u8>) -> Response<HttpBody> {
    events(HttpBody::pieces([text.into(), Bytes::new(), Bytes::new()]))
}

/// An error that was found before anything ran.
pub(crate) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &RpcError,
) -> Response<HttpBody> {
    let mut out = Vec::with_capacity(error.message.len() + 96);
    jsonrpc::write_error(&mut out, id, error);
    json(status, [out.into(), Bytes::new(), Bytes::new()])
}

/// An error with the status that goes with it.
pub(super) fn fault(id: Option<&RequestId>, fault: &RpcError) -> Response<HttpBody> {
    error(status_code(fault.code), id, fault)
}

/// A request that HTTP itself refuses, in words that a JSON-RPC client can show.
pub(super) fn refused(refusal: Refusal) -> Response<HttpBody> {
    let message = RpcError::invalid_request(refusal.message.into_owned());
    let mut response = error(refusal.status, None, &message);
    if let Some(allow) = refusal.allow {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = status;
    response
}

/// An answer that becomes an event stream.
pub(super) fn stream(running: RunningHttpRequest) -> Response<HttpBody> {
    events(HttpBody::stream(running))
}

/// Writes the end of an event stream: the last events, and the response.
pub(super) fn last_event(id: &RequestId, done: Done) -> Pieces {
    pieces(done.events, Framing::Event, id, done.outcome)
}

/// What stands around an answer.
#[derive(Clone, Copy)]
enum Framing {
    Plain,
    Event,
}

impl Framing {
    fn around(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Framing::Plain => (b"", b"}"),
            Framing::Event => (sse::DATA, b"}\n\n"),
        }
    }
}

fn pieces(mut out: Vec<u8>, framing: Framing, id: &RequestId, outcome: Outcome) -> Pieces {
    let (before, after) = framing.around();
    let result = match outcome {
        Ok(result) => result,
        Err(error) => {
            out.extend_from_slice(before);
            jsonrpc::write_error(&mut out, Some(id), &error);
            // The error has written its own brace.
            out.extend_from_slice(&after[1..]);
            return [out.into(), Bytes::new(), Bytes::new()];
        }
    };
    let is_large = result.as_str().len() >= LARGE;
    // The envelope of an id of usual length.
    out.reserve(80 + if is_large { 0 } else { result.as_str().len() });
    out.extend_from_slice(before);
    jsonrpc::write_result_head(&mut out, id);
    if is_large {
        return [out.into(), result.into_bytes(), Bytes::from_static(after)];
    }
    out.extend_from_slice(result.as_str().as_bytes());
    out.extend_from_slice(after);
    [out.into(), Bytes::new(), Bytes::new()]
}

fn json(status: StatusCode, pieces: Pieces) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::pieces(pieces));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Events, as they come.
pub(crate) fn events(body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // 2026-07-28 basic/transports/streamable-http §Receiving Messages: no proxy may hold events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    response
}

fn status_of(outcome: &Outcome) -> StatusCode {
    match outcome {
        Ok(_) => StatusCode::OK,
        Err(error) => status_code(error.code),
    }
}

fn status_code(code: i64) -> StatusCode {
    StatusCode::from_u16(status::status(code)).unwrap_or(StatusCode::OK)
}
