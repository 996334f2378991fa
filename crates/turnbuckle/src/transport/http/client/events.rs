//! Owns an answer that is a stream of events: notifications, then the response.
//! Does not own the framing of events.

use std::{
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use turnbuckle_types::{
    RequestId,
    jsonrpc::{self, Fault, Frame, Message, Notification, Response, Role},
};

use super::{
    Wire,
    stack::{Body, Failure},
};
use crate::{
    dispatch::{Event, Note, outcome_to_result},
    error::{Error, ErrorKind, Executed},
    transport::http::sse,
};

/// How long the end of a stream may trail its last event before the connection is given up.
const TRAILING: Duration = Duration::from_millis(500);

/// A stream on its way.
pub(super) struct Events {
    /// `None` once it has been read to the response.
    body: Option<Body>,
    reader: sse::Reader,
    /// How many bytes may still come.
    left: Option<usize>,
    longest: usize,
}

impl Events {
    pub(super) fn new(body: Body, longest: usize, most: Option<usize>) -> Events {
        Events { body: Some(body), reader: sse::Reader::new(longest), left: most, longest }
    }

    pub(super) fn poll(
        &mut self,
        wire: &Wire,
        id: Option<&RequestId>,
        context: &mut Context<'_>,
    ) -> Poll<Event> {
        loop {
            while let Some(found) = self.reader.next() {
                let Ok(event) = found else { return Poll::Ready(failed(self.too_long(wire))) };
                // Only events of the default kind are messages.
                if event.kind.as_ref().is_some_and(|kind| &kind[..] != b"message") {
                    continue;
                }
                if let Some(event) = read(wire, id, event.data) {
                    if matches!(event, Event::Done(_)) {
                        self.finish(context);
                    }
                    return Poll::Ready(event);
                }
            }
            let Some(body) = &mut self.body else { return Poll::Ready(failed(self.lost(wire))) };
            match ready!(body.poll_chunk(context)) {
                Some(Ok(chunk)) => {
                    if let Some(left) = &mut self.left {
                        match left.checked_sub(chunk.len()) {
                            Some(less) => *left = less,
                            None => return Poll::Ready(failed(too_much(wire))),
                        }
                    }
                    self.reader.push(chunk);
                }
                Some(Err(error)) => {
                    let error = Failure::in_body(error).into_error(&wire.place());
                    return Poll::Ready(failed(error));
                }
                None => self.body = None,
            }
        }
    }

    /// The stream should end now. If its end is already here, or comes at once, the
    /// connection can be used again.
    fn finish(&mut self, context: &mut Context<'_>) {
        let Some(mut body) = self.body.take() else { return };
        if body.poll_chunk(context).is_ready() {
            return;
        }
        tokio::spawn(async move {
            let end = std::future::poll_fn(|context| body.poll_chunk(context));
            let _ = tokio::time::timeout(TRAILING, end).await;
        });
    }

    fn lost(&self, wire: &Wire) -> Error {
        let place = wire.place();
        let message = if self.reader.is_mid_event() {
            format!("the stream of {place} ended in the middle of an event, before its answer")
        } else {
            format!("{place} ended the stream before it answered")
        };
        Error::new(ErrorKind::Closed, message).with_executed(Executed::Maybe)
    }

    fn too_long(&self, wire: &Wire) -> Error {
        let message = format!(
            "an event of {} is longer than {} bytes (line_bytes)",
            wire.place(),
            self.longest
        );
        Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
    }
}

/// What an event means to the request `id`; `None` if nothing.
fn read(wire: &Wire, id: Option<&RequestId>, data: Bytes) -> Option<Event> {
    let ours = |answered: &RequestId| id.is_some_and(|id| id.key() == answered.key());
    match jsonrpc::parse(data, wire.limits.json_depth) {
        Ok(Message::Single(Frame::Notification(Notification { method, params }))) => {
            let note = Note { method, params };
            match id {
                Some(id) => wire.serve.note_within(note.clone(), id),
                None => wire.serve.note(note.clone()),
            }
            Some(Event::Note(note))
        }
        Ok(Message::Single(Frame::Response(Response { id: Some(answered), outcome }))) => {
            if ours(&answered) {
                return Some(Event::Done(outcome_to_result(outcome)));
            }
            wire.counts.late_answers.fetch_add(1, Relaxed);
            None
        }
        Ok(Message::Single(Frame::Response(Response { id: None, outcome }))) => {
            if let Err(error) = outcome {
                wire.stray(error);
            }
            None
        }
        // 2026-07-28 transports/streamable-http: a server MUST NOT send requests here.
        Ok(Message::Single(Frame::Request(request))) => {
            tracing::debug!(method = %request.method, "a request on an answer's stream is dropped");
            wire.counts.dropped_requests.fetch_add(1, Relaxed);
            None
        }
        Err(Fault { id: Some(answered), role: Role::Response, error }) if ours(&answered) => {
            let message = format!("the server's answer can't be read: {error}");
            Some(failed(Error::protocol(message)))
        }
        Ok(Message::Batch(_)) | Err(_) => {
            tracing::debug!("an event that is no message is skipped");
            wire.counts.unreadable.fetch_add(1, Relaxed);
            None
        }
    }
}

fn failed(error: Error) -> Event {
    Event::Done(Err(error))
}

fn too_much(wire: &Wire) -> Error {
    let message = format!(
        "the stream of {} brought more than {} bytes (stream_bytes)",
        wire.place(),
        wire.limits.stream_bytes
    );
    Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
}
