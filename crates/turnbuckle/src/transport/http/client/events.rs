//! Responses that are event streams: the body of one, for both eras, and the notifications and
//! the answer of a modern request.

use std::{
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use turnbuckle_types::{
    RequestId, RpcError,
    jsonrpc::{self, Fault, Frame, FrameRole, Message, Notification, Response},
};

use super::{
    HttpClientShared, request,
    stack::{Body, ConnectError, SendFailure},
};
use crate::{
    error::{Error, ErrorKind, Executed},
    rpc::{ExchangeEvent, Note, memory::HeldBytes, outcome_to_result},
    transport::http::sse,
};

/// The body of a response that is an event stream.
pub(crate) struct EventBody {
    /// `None` once it has ended.
    body: Option<Body>,
    reader: sse::SseReader,
    longest: usize,
    /// How many bytes may still come.
    left: Option<usize>,
    held: HeldBytes,
}

/// The next part of an event stream.
pub(crate) enum NextEvent {
    Event(sse::SseEvent),
    /// An event that is longer than allowed; reading can go on.
    TooLong,
    /// The stream brought more bytes than allowed in all.
    TooMuch,
    /// An event that would use too much memory; reading can go on.
    OutOfMemory(RpcError),
    Ended(Ending),
}

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Clean,
    Broken(ConnectError),
}

impl EventBody {
    /// Without a body it has ended. `most` bounds the bytes of all events.
    pub(crate) fn new(
        body: Option<Body>,
        wire: &HttpClientShared,
        most: Option<usize>,
    ) -> EventBody {
        let longest = wire.limits.line_bytes;
        let held = HeldBytes::new(wire.memory.clone());
        EventBody { body, reader: sse::SseReader::new(longest), longest, left: most, held }
    }

    /// Goes on with the body of another connection.
    pub(crate) fn renew(&mut self, body: Body) {
        self.body = Some(body);
        self.reader = sse::SseReader::new(self.longest);
        self.held.set(0);
    }

    pub(crate) fn reader(&self) -> &sse::SseReader {
        &self.reader
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<NextEvent> {
        loop {
            match self.reader.next() {
                Some(Ok(event)) => return Poll::Ready(NextEvent::Event(event)),
                Some(Err(sse::EventTooLong)) => return Poll::Ready(NextEvent::TooLong),
                None => {}
            }
            self.held.set(self.reader.held());
            if let Err(refused) = self.held.check() {
                self.reader.skip_event();
                self.held.set(0);
                return Poll::Ready(NextEvent::OutOfMemory(refused));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(NextEvent::Ended(Ending::Clean));
            };
            let ending = match ready!(body.poll_chunk(context)) {
                Some(Ok(chunk)) => {
                    if let Some(left) = &mut self.left {
                        match left.checked_sub(chunk.len()) {
                            Some(less) => *left = less,
                            None => return Poll::Ready(NextEvent::TooMuch),
                        }
                    }
                    self.reader.push(chunk);
                    continue;
                }
                Some(Err(error)) => Ending::Broken(error),
                None => Ending::Clean,
            };
            self.body = None;
            return Poll::Ready(NextEvent::Ended(ending));
        }
    }

    /// Waits for the next part. Dropping the future loses nothing.
    #[cfg(feature = "sse-2024")]
    pub(crate) async fn next(&mut self) -> NextEvent {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Lets the connection be used again once the stream ends, which should be now.
    pub(crate) fn finish(&mut self, context: &mut Context<'_>) {
        let Some(mut body) = self.body.take() else { return };
        if body.poll_chunk(context).is_pending() {
            tokio::spawn(request::finish(body));
        }
    }

    /// Returns the error for a stream that ended before it answered.
    pub(crate) fn lost(&self, wire: &HttpClientShared, ending: Ending) -> Error {
        let place = wire.place();
        let message = match ending {
            Ending::Broken(error) => return SendFailure::in_body(error).into_error(&place),
            Ending::Clean if self.reader.is_mid_event() => {
                format!("the stream of {place} ended in the middle of an event, before its answer")
            }
            Ending::Clean => format!("{place} ended the stream before it answered"),
        };
        Error::new(ErrorKind::Closed, message).with_executed(Executed::Maybe)
    }
}

/// Returns the message of an event. Events of other kinds, and empty ones, are none.
pub(crate) fn message_of(event: sse::SseEvent) -> Option<Bytes> {
    (event.kind.is_none() && !event.data.is_empty()).then_some(event.data)
}

pub(crate) fn too_long(wire: &HttpClientShared) -> Error {
    let (place, limit) = (wire.place(), wire.limits.line_bytes);
    let message = format!("an event of {place} is longer than {limit} bytes (line_bytes)");
    Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
}

pub(crate) fn out_of_memory(wire: &HttpClientShared, refused: &RpcError) -> Error {
    let message = format!("the answer of {} can't be kept: {}", wire.place(), refused.message);
    Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
}

pub(crate) fn too_much(wire: &HttpClientShared) -> Error {
    let (place, limit) = (wire.place(), wire.limits.stream_bytes);
    let message = format!("the stream of {place} brought more than {limit} bytes (stream_bytes)");
    Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
}

/// Reads the stream of a modern request up to its next notification or its answer.
pub(super) fn poll(
    events: &mut EventBody,
    wire: &HttpClientShared,
    id: Option<&RequestId>,
    context: &mut Context<'_>,
) -> Poll<ExchangeEvent> {
    loop {
        let error = match ready!(events.poll_next(context)) {
            NextEvent::Event(event) => {
                match message_of(event).and_then(|data| read(wire, id, data)) {
                    Some(event) => {
                        if matches!(event, ExchangeEvent::Done(_)) {
                            events.finish(context);
                        }
                        return Poll::Ready(event);
                    }
                    None => continue,
                }
            }
            NextEvent::TooLong => too_long(wire),
            NextEvent::TooMuch => too_much(wire),
            NextEvent::OutOfMemory(refused) => out_of_memory(wire, &refused),
            NextEvent::Ended(ending) => events.lost(wire, ending),
        };
        return Poll::Ready(ExchangeEvent::Done(Err(error)));
    }
}

/// Returns what a message means to the request `id`, if anything.
fn read(wire: &HttpClientShared, id: Option<&RequestId>, data: Bytes) -> Option<ExchangeEvent> {
    let ours = |answered: &RequestId| id.is_some_and(|id| id.key() == answered.key());
    match jsonrpc::parse(data, wire.limits.json_depth) {
        Ok(Message::Single(Frame::Notification(Notification { method, params }))) => {
            let note = Note { method, params };
            match id {
                Some(id) => wire.serve.note_within(note.clone(), id),
                None => wire.serve.note(note.clone()),
            }
            Some(ExchangeEvent::Note(note))
        }
        Ok(Message::Single(Frame::Response(Response { id: Some(answered), outcome }))) => {
            if ours(&answered) {
                return Some(ExchangeEvent::Done(outcome_to_result(outcome)));
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
        Err(Fault { id: Some(answered), role: FrameRole::Response, error }) if ours(&answered) => {
            let message = format!("the server's answer can't be read: {error}");
            Some(ExchangeEvent::Done(Err(Error::protocol(message))))
        }
        Ok(Message::Batch(_)) | Err(_) => {
            tracing::debug!("an event that is no message is skipped");
            wire.counts.unreadable.fetch_add(1, Relaxed);
            None
        }
    }
}
