//! Owns the joint answer to a batch, which only 2025-03-26 has: one array if all are ready at
//! once, else one stream for all. Does not own how each of its requests is served.

use std::sync::Arc;

use http::{Response, StatusCode};
use tokio::task::coop::consume_budget;
use turnbuckle_types::{
    RpcError,
    jsonrpc::{Fault, Frame, Role},
};

use super::{
    super::super::server::{Endpoint, HttpBody, answer, future::Asked},
    Refused, Visit,
    body::Reader,
    is_initialize,
    pump::{self, frame},
    request::{self, Batched, Started},
    stream::Stream,
    unknown_session,
};
use crate::limits::Limits;

/// The most requests of one batch that are served, however many may run.
const MOST: usize = 1000;

/// Serves a batch. Dropping the future stops nothing that was begun.
pub(super) async fn serve(
    asked: &Asked,
    visit: Visit,
    items: Vec<Result<Frame, Fault>>,
) -> Result<Response<HttpBody>, Refused> {
    if !visit.opened.session.batches() {
        return Err(not_here());
    }
    refuse_initialize(&items)?;
    // A task of its own: whoever hangs up half-way does not leave half a batch behind.
    let beginning = tokio::spawn(begin(asked.clone(), visit, items));
    let begun = beginning.await.unwrap_or_else(|_| {
        let message = "the batch could not be served: the server is shutting down";
        Err(Refused::unavailable(message))
    })?;
    match begun {
        Begun::Answered(response) => Ok(response),
        Begun::Waits(stream, reader) => {
            Ok(request::respond(&asked.endpoint, &stream, reader, Batched::Yes).await)
        }
    }
}

/// What a batch has become.
enum Begun {
    Answered(Response<HttpBody>),
    Waits(Arc<Stream>, Reader),
}

/// How much of a batch is served: the rest is refused, each for itself.
pub(super) struct Share {
    most: usize,
    requests: usize,
    bytes: usize,
}

impl Share {
    pub(super) fn new(limits: &Limits) -> Share {
        let most = limits.in_flight.min(MOST);
        Share { most, requests: most, bytes: limits.unsent_bytes }
    }

    /// Whether one more request is served, after answers of so many bytes.
    pub(super) fn take(&mut self, answered: usize) -> Result<(), RpcError> {
        let Some(rest) = self.requests.checked_sub(1) else {
            let message = format!(
                "the batch has more than {} requests; send the others in another one",
                self.most
            );
            return Err(RpcError::internal(message));
        };
        self.requests = rest;
        if answered > self.bytes {
            let message =
                format!("the answers are longer than {} bytes (unsent_bytes)", self.bytes);
            return Err(RpcError::internal(message));
        }
        Ok(())
    }
}

async fn begin(
    asked: Asked,
    visit: Visit,
    items: Vec<Result<Frame, Fault>>,
) -> Result<Begun, Refused> {
    let endpoint = &asked.endpoint;
    let stream = visit.stream(endpoint);
    let (mut share, mut bytes) = (Share::new(&endpoint.limits), 0);
    let reader = request::reader(&stream)?;
    // What is ready at once, and whether anything is to be answered at all.
    let (mut ready, mut waits, mut asks) = (Vec::new(), false, false);
    for item in items {
        consume_budget().await;
        asks |= is_asking(&item);
        let before = ready.len();
        match item {
            Ok(Frame::Request(request)) => {
                let id = request.id.clone();
                if let Err(error) = share.take(bytes) {
                    ready.push(frame(&id, Err(error)));
                    continue;
                }
                match request::start(&asked, &visit, request, &stream, Batched::Yes).await {
                    Err(refused) => ready.push(frame(&id, Err(refused.error))),
                    Ok(Started::Cancelled) => {}
                    Ok(Started::Answered(serial, outcome)) => {
                        stream.leave(serial);
                        ready.push(frame(&id, outcome));
                    }
                    Ok(Started::Running(handler)) => {
                        waits = true;
                        let (entry, stream) = (visit.entry.clone(), stream.clone());
                        let drain = endpoint.drain.clone();
                        let serial = handler.serial;
                        let member = pump::run_member(handler, entry, stream, drain);
                        let task = tokio::spawn(member).abort_handle();
                        visit.entry.desk.launched(&id, serial, task);
                    }
                }
            }
            // What it stops is not waited for: requests before it run already.
            Ok(Frame::Notification(note)) => drop(visit.apply(note)),
            Ok(Frame::Response(response)) => visit.entry.desk.answer(response),
            Err(fault) => ready.extend(faulty(&visit, &fault)),
        }
        bytes += ready[before..].iter().map(Vec::len).sum::<usize>();
    }
    if !asks {
        return Ok(Begun::Answered(answer::empty(StatusCode::ACCEPTED)));
    }
    if !waits && !stream.has_said() {
        save(endpoint, &visit).await;
        return Ok(Begun::Answered(match array(&ready) {
            Some(text) => answer::text(StatusCode::OK, text),
            None => answer::ended_events(),
        }));
    }
    stream.prime();
    ready.into_iter().for_each(|text| stream.say(text));
    visit.pump(endpoint, &stream, None);
    if visit.entry.desk.is_closed() {
        // The session ended before it knew of this stream.
        visit.entry.desk.kill(&stream);
        return Err(unknown_session());
    }
    save(endpoint, &visit).await;
    Ok(Begun::Waits(stream, reader))
}

/// A batch where there are none.
pub(super) fn not_here() -> Refused {
    Refused::bad("batches exist in revision 2025-03-26 only, which was not negotiated")
}

// 2025-03-26 basic/lifecycle §Initialization: it MUST NOT be part of a batch.
pub(super) fn refuse_initialize(items: &[Result<Frame, Fault>]) -> Result<(), Refused> {
    let is_it = |item: &Result<Frame, Fault>| matches!(item, Ok(Frame::Request(request)) if is_initialize(request));
    if items.iter().any(is_it) {
        return Err(Refused::bad("`initialize` must not be part of a batch"));
    }
    Ok(())
}

/// Whether an element of a batch gets an answer.
pub(super) fn is_asking(item: &Result<Frame, Fault>) -> bool {
    match item {
        Ok(frame) => matches!(frame, Frame::Request(_)),
        Err(fault) => fault.role == Role::Request,
    }
}

/// Answers as one array, if there are any.
pub(super) fn array(answers: &[Vec<u8>]) -> Option<Vec<u8>> {
    let all = answers.join(&b","[..]);
    (!all.is_empty()).then(|| [b"[", &all[..], b"]"].concat())
}

/// The answer to an element that can't be read.
fn faulty(visit: &Visit, fault: &Fault) -> Option<Vec<u8>> {
    match (fault.role, &fault.id) {
        (Role::Request, id) => {
            let mut text = Vec::new();
            turnbuckle_types::jsonrpc::write_error(&mut text, id.as_ref(), &fault.error);
            return Some(text);
        }
        (Role::Response, Some(id)) => visit.entry.desk.unreadable(id, &fault.error),
        (Role::Response, None) => {}
    }
    None
}

/// Each has its answer by now: a record that can't be kept is for the log.
async fn save(endpoint: &Endpoint, visit: &Visit) {
    let store = &endpoint.legacy.settings.sessions;
    if let Err(refused) = visit.opened.save(visit.entry.id, &**store).await {
        tracing::warn!(error = %refused.error, "what a batch has changed was not kept");
    }
}
