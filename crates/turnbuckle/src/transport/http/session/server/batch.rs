//! Serves a batch, which only 2025-03-26 has: with one array if all responses are ready at once,
//! otherwise with one stream for all.

use std::sync::Arc;

use http::{Response, StatusCode};
use tokio::task::{JoinSet, coop::consume_budget};
use turnbuckle_types::{
    RequestId, RpcError,
    jsonrpc::{Fault, Frame, FrameRole},
};

use super::{
    super::super::{
        server::{
            Endpoint, HttpBody, answer, future::RequestHead, response_stream::ResponseStream,
            running::RunningHttpRequest,
        },
        timing::BATCH_REQUESTS,
    },
    Refused, Visit, is_initialize,
    pump::{self, frame},
    reader::StreamReader,
    request::{self, Batched, Started},
    unknown_session,
};
use crate::limits::Limits;

/// Serves a batch. Dropping the future stops nothing that was begun.
pub(super) async fn serve(
    asked: &RequestHead,
    visit: Visit,
    items: Vec<Result<Frame, Fault>>,
) -> Result<Response<HttpBody>, Refused> {
    if !visit.opened.service.batches() {
        return Err(not_here());
    }
    refuse_initialize(&items)?;
    // In a task, so that a client that hangs up does not leave half a batch behind.
    let beginning = tokio::spawn(begin(asked.clone(), visit, items));
    let begun = beginning.await.unwrap_or_else(|_| {
        let message = "the batch could not be served: the server is shutting down";
        Err(Refused::unavailable(RpcError::internal(message)))
    })?;
    match begun {
        BatchStart::Answered(response) => Ok(*response),
        BatchStart::Waits(stream, reader) => {
            Ok(request::respond(&asked.endpoint, &stream, reader, Batched::Yes).await)
        }
    }
}

/// The first step of a batch.
enum BatchStart {
    Answered(Box<Response<HttpBody>>),
    Waits(Arc<ResponseStream>, StreamReader),
}

/// The part of a batch that is served; each of the other requests is refused.
pub(super) struct Share {
    most: usize,
    requests: usize,
    bytes: usize,
}

impl Share {
    pub(super) fn new(limits: &Limits) -> Share {
        let most = limits.in_flight.min(BATCH_REQUESTS);
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
    asked: RequestHead,
    visit: Visit,
    items: Vec<Result<Frame, Fault>>,
) -> Result<BatchStart, Refused> {
    let endpoint = &asked.endpoint;
    let stream = visit.stream(&asked);
    let in_flight = &visit.session.in_flight;
    let (mut share, mut bytes) = (Share::new(&endpoint.limits), 0);
    let reader = request::reader(&stream)?;
    let mut handlers = JoinSet::new();
    // The responses that are ready at once, and whether there are any at all.
    let (mut ready, mut asks) = (Vec::new(), false);
    for item in items {
        consume_budget().await;
        asks |= is_asking(&item);
        let before = ready.len();
        match item {
            Ok(Frame::Request(request)) => {
                let id = request.id.clone();
                if let Err(error) = share.take(bytes) {
                    ready.push(frame(&id, &Err(error)));
                    continue;
                }
                match request::start(&asked, &visit, request, &stream, Batched::Yes).await {
                    Err(refused) => ready.push(frame(&id, &Err(refused.error))),
                    Ok(Started::Cancelled) => {}
                    Ok(Started::Done(serial, done)) => {
                        stream.leave(serial);
                        ready.push(frame(&id, &done.outcome));
                    }
                    Ok(Started::Running(serial, handler)) => {
                        let (name, handler) = (id.clone(), handler.into_handler());
                        let task = handlers.spawn(async move { (name, serial, handler.await) });
                        in_flight.set_task(&id, serial, task);
                    }
                }
            }
            // This does not wait for handlers that it stops: requests before it run already.
            Ok(Frame::Notification(note)) => drop(visit.apply(note)),
            Ok(Frame::Response(response)) => in_flight.answer(response),
            Err(fault) => ready.extend(faulty(&visit, &fault)),
        }
        bytes += ready[before..].iter().map(Vec::len).sum::<usize>();
    }
    if !asks {
        return Ok(BatchStart::Answered(Box::new(answer::empty(StatusCode::ACCEPTED))));
    }
    if handlers.is_empty() && !stream.has_unstored() {
        save(endpoint, &visit).await;
        let response = match array(&ready) {
            Some(text) => answer::text(StatusCode::OK, text),
            None => answer::ended_events(),
        };
        return Ok(BatchStart::Answered(Box::new(response)));
    }
    stream.prime();
    stream.push_all(ready);
    let drain = endpoint.drain.clone();
    let handler = pump::batch_handler(handlers, in_flight.clone(), stream.clone(), drain);
    let none = RequestId::from(0);
    let handler = RunningHttpRequest::new(none, handler, stream.clone(), endpoint);
    visit.pump(endpoint, &stream, Some(handler));
    if in_flight.is_closed() {
        // The session ended before it knew of this stream.
        in_flight.kill(&stream);
        return Err(unknown_session());
    }
    save(endpoint, &visit).await;
    Ok(BatchStart::Waits(stream, reader))
}

/// Refuses a batch of another revision.
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
        Err(fault) => fault.role == FrameRole::Request,
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
        (FrameRole::Request, id) => {
            let mut text = Vec::new();
            turnbuckle_types::jsonrpc::write_error(&mut text, id.as_ref(), &fault.error);
            return Some(text);
        }
        (FrameRole::Response, Some(id)) => visit.session.in_flight.unreadable(id, &fault.error),
        (FrameRole::Response, None) => {}
    }
    None
}

/// Saves the record. All responses exist already, so that a failure is only logged.
async fn save(endpoint: &Endpoint, visit: &Visit) {
    let store = &endpoint.legacy.settings.sessions;
    if let Err(refused) = visit.opened.save(visit.session.id, &**store).await {
        tracing::warn!(error = %refused.error, "the changes of a batch to its session were not saved");
    }
}
