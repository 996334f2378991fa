//! Owns what a message of the server does, whichever stream brought it. It never waits.
//! Does not own streams.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use bytes::Bytes;
use turnbuckle_types::{
    Raw, RequestId,
    jsonrpc::{self, Fault, Frame, FrameRole, Message, Notification, Response},
};

use super::{CallState, ClientSession, HttpClientShared, asked};
use crate::{
    error::{Error, Result},
    rpc::{Note, outcome_to_result},
};

/// The call whose stream it is.
#[derive(Clone, Copy)]
pub(super) struct OwnCall<'a> {
    pub(super) call: &'a CallState,
    pub(super) id: &'a RequestId,
}

impl OwnCall<'_> {
    fn is(own: Option<Self>, id: &RequestId) -> bool {
        own.is_some_and(|own| own.id.key() == id.key())
    }
}

/// Which stream brought a message.
#[derive(Clone, Copy)]
pub(super) struct StreamOrigin<'a> {
    /// In which it was opened: what is asked on it is answered there.
    pub(super) session: &'a ClientSession,
    /// `None` for the server's own.
    pub(super) own: Option<OwnCall<'a>>,
}

/// Applies a message; returns the end of the call whose stream it is, if this is it.
pub(super) fn receive(
    wire: &Arc<HttpClientShared>,
    from: StreamOrigin<'_>,
    data: Bytes,
) -> Option<Result<Raw>> {
    match jsonrpc::parse(data, wire.limits.json_depth) {
        Ok(Message::Single(item)) => frame(wire, from, item),
        Ok(Message::Batch(items)) if wire.serve.batches() => {
            let mut end = None;
            for item in items {
                let ended = match item {
                    Ok(item) => frame(wire, from, item),
                    Err(broken) => fault(wire, from, broken),
                };
                end = end.or(ended);
            }
            end
        }
        Ok(Message::Batch(_)) => {
            tracing::debug!("a batch is skipped: this revision has none");
            wire.counts.unreadable.fetch_add(1, Relaxed);
            None
        }
        Err(broken) => fault(wire, from, broken),
    }
}

fn frame(
    wire: &Arc<HttpClientShared>,
    from: StreamOrigin<'_>,
    frame: Frame,
) -> Option<Result<Raw>> {
    match frame {
        Frame::Request(request) => asked::request(wire, from, request),
        Frame::Notification(Notification { method, params }) => {
            notification(wire, from, Note { method, params });
        }
        Frame::Response(Response { id: Some(id), outcome }) => {
            return answer(wire, from.own, &id, outcome_to_result(outcome));
        }
        Frame::Response(Response { id: None, outcome }) => {
            if let Err(error) = outcome {
                wire.stray(error);
            }
        }
    }
    None
}

fn notification(wire: &Arc<HttpClientShared>, from: StreamOrigin<'_>, note: Note) {
    let own = from.own;
    let subject = note.subject();
    match &*note.method {
        "notifications/cancelled" => {
            if let Some(id) = &subject {
                asked::cancelled(wire, from.session, id);
            }
        }
        "notifications/progress" => {
            let elsewhere = subject.filter(|id| !OwnCall::is(own, id));
            match (elsewhere, own) {
                (Some(id), _) => route(wire, &id, &note),
                (None, Some(own)) => own.call.own_note(note.clone()),
                (None, None) => {}
            }
        }
        _ => {
            if let Some(own) = own {
                own.call.own_note(note.clone());
            }
        }
    }
    match own {
        Some(own) => wire.serve.note_within(note, own.id),
        None => wire.serve.note(note),
    }
}

/// Hands a notification to the call that it belongs to, though it came on another's stream.
fn route(wire: &HttpClientShared, id: &RequestId, note: &Note) {
    if let Some(call) = in_flight(wire, id)
        && call.note(note.clone(), wire.limits.queued_notifications)
    {
        wire.counts.overflowed.fetch_add(1, Relaxed);
    }
}

fn answer(
    wire: &HttpClientShared,
    own: Option<OwnCall<'_>>,
    id: &RequestId,
    result: Result<Raw>,
) -> Option<Result<Raw>> {
    if OwnCall::is(own, id) {
        return Some(result);
    }
    // 2025-11-25 transports: only where a stream is taken up again, but it is an answer.
    match in_flight(wire, id) {
        Some(call) => call.end(result),
        None => {
            wire.counts.late_answers.fetch_add(1, Relaxed);
        }
    }
    None
}

fn in_flight(wire: &HttpClientShared, id: &RequestId) -> Option<Arc<CallState>> {
    wire.table().sent(id).and_then(|stop| stop.call.clone())
}

fn fault(
    wire: &Arc<HttpClientShared>,
    from: StreamOrigin<'_>,
    fault: Fault,
) -> Option<Result<Raw>> {
    tracing::debug!(error = %fault.error, "an event that is no message");
    wire.counts.unreadable.fetch_add(1, Relaxed);
    match (fault.role, &fault.id) {
        (FrameRole::Response, Some(id)) => {
            let message = format!("the server's answer can't be read: {}", fault.error);
            answer(wire, from.own, id, Err(Error::protocol(message)))
        }
        (FrameRole::Request, Some(id)) if wire.serve.answers(&fault) => {
            asked::refuse(wire, from.session, id, &fault.error);
            None
        }
        _ => None,
    }
}
