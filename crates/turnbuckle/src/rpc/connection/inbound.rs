//! Handles each inbound message in the order of arrival. Never waits: a handler runs as a task.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use super::{ConnectionShared, NOBODY, batch::BatchGroup};
use crate::{
    error::{Closed, Error, ErrorKind, Executed},
    rpc::{
        Incoming, Note, Permit, Replies, Reply,
        connection::{
            task::{ConnectionReplies, HandlerTask, RunningHandler},
            waiter::Room,
        },
        memory::HeldBytes,
        outcome_to_result, panicked,
    },
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use turnbuckle_types::{
    RequestId, RpcError,
    jsonrpc::{
        Fault, Frame, FrameRole, Message, Notification, Request, Response, parse_line, write_error,
    },
};

/// How many errors without an id may wait at once: a peer that sends junk learns no more
/// from the hundredth.
const NAMELESS: usize = 16;

/// How many bytes of refusals a peer that does not read may still gather before it is let go.
const REFUSALS: usize = 1 << 20;

/// How many characters of a line that is no message are quoted.
const QUOTED: usize = 200;

/// The most requests of one batch that are served, however many may run.
const BATCHED: usize = 1000;

/// What the reader has to know after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// A handler's task was started.
    Spawned,
    /// A handler's task was stopped, and is dropped at its next scheduling step.
    Stopped,
    /// A call has many notifications waiting, which its caller should be let take.
    Crowded,
    Applied,
}

/// A message that was read and is still to be applied.
pub(super) struct InboundMessage {
    message: Result<Message, Fault>,
    held: Option<HeldBytes>,
}

impl InboundMessage {
    /// Whether it gives up a request of the peer.
    pub(super) fn is_cancel(&self) -> bool {
        matches!(
            &self.message,
            Ok(Message::Single(Frame::Notification(note))) if &*note.method == CANCELLED
        )
    }
}

const CANCELLED: &str = "notifications/cancelled";

impl ConnectionShared {
    /// Reads one line.
    pub(super) fn read(&self, line: Bytes) -> InboundMessage {
        tracing::trace!(line = %String::from_utf8_lossy(&line), "received");
        let message = parse_line(line.clone(), self.limits.json_depth);
        if message.as_ref().is_err_and(|fault| fault.id.is_none()) {
            self.junk(&line);
        }
        InboundMessage { message, held: self.memory.hold(line.len()) }
    }

    fn junk(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.junk.is_some() {
            return;
        }
        let quoted = quoted(line);
        state.junk = Some(quoted.clone());
        drop(state);
        self.serve.junk(&quoted);
    }

    /// Applies what was read.
    pub(super) fn apply(self: &Arc<Self>, read: InboundMessage) -> Received {
        let held = read.held.map(Arc::new);
        match read.message {
            Ok(Message::Single(frame)) => self.frame(frame, held, None),
            Ok(Message::Batch(items)) if self.serve.batches() => self.batch(items, held.as_ref()),
            Ok(Message::Batch(_)) => {
                let message = "batches exist in revision 2025-03-26 only, which was not negotiated";
                let error = RpcError::invalid_request(message);
                self.fault(Fault { id: None, role: FrameRole::Request, error })
            }
            Err(fault) => self.fault(fault),
        }
    }

    /// A line that was too long to be read. Its beginning mostly tells whom to tell.
    pub(super) fn too_long(&self, began: &[u8]) {
        let id = id_of(began, self.limits.json_depth);
        let message = format!(
            "the message is longer than this side's limit of {} bytes (line_bytes)",
            self.limits.line_bytes
        );
        let answers_us = id.as_ref().is_some_and(|id| {
            memchr::memmem::find(began, b"\"method\"").is_none()
                && self.lock().table.sent(id).is_some()
        });
        match id {
            Some(id) if answers_us => {
                self.counts.unreadable.fetch_add(1, Relaxed);
                let error = Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe);
                self.end(&id, Err(error));
            }
            id => {
                let error = RpcError::invalid_request(message);
                self.fault(Fault { id, role: FrameRole::Request, error });
            }
        }
    }

    fn frame(
        self: &Arc<Self>,
        frame: Frame,
        held: Option<Arc<HeldBytes>>,
        batch: Option<&Arc<BatchGroup>>,
    ) -> Received {
        match frame {
            Frame::Request(request) => self.request(request, held, batch),
            Frame::Notification(note) => self.notification(note, held),
            Frame::Response(response) => self.response(response, held),
        }
    }

    fn batch(
        self: &Arc<Self>,
        items: Vec<Result<Frame, Fault>>,
        held: Option<&Arc<HeldBytes>>,
    ) -> Received {
        let group = BatchGroup::new();
        let mut received = Received::Applied;
        let mut share = self.limits.in_flight.min(BATCHED);
        for item in items {
            match item {
                Ok(Frame::Request(request)) if share == 0 => {
                    let error = RpcError::internal("the batch has too many requests");
                    self.refuse(&request.id, error, Some(&group));
                }
                Ok(frame) => {
                    share -= usize::from(matches!(frame, Frame::Request(_)));
                    if self.frame(frame, held.cloned(), Some(&group)) == Received::Spawned {
                        received = Received::Spawned;
                    }
                }
                Err(fault) if fault.role == FrameRole::Request => {
                    self.counts.unreadable.fetch_add(1, Relaxed);
                    group.fault(fault.id.as_ref(), &fault.error);
                }
                Err(fault) => {
                    self.fault(fault);
                }
            }
        }
        self.update(|state| group.close(state));
        received
    }

    fn request(
        self: &Arc<Self>,
        request: Request,
        held: Option<Arc<HeldBytes>>,
        batch: Option<&Arc<BatchGroup>>,
    ) -> Received {
        let Request { id, method, params } = request;
        let permit = Permit::take(&self.in_flight, self.limits.in_flight);
        let permit = match self.memory.check_beside(held.as_deref()).and(permit) {
            Ok(permit) => permit.holding(held),
            Err(error) => return self.refuse(&id, error, batch),
        };
        let handler = RunningHandler::new(id.clone(), batch.map(BatchGroup::join));
        let mut state = self.lock();
        if state.closed().is_some() {
            return Received::Applied;
        }
        let unsent = state.outbox.bytes() + batch.map_or(0, |batch| batch.bytes());
        if unsent > self.limits.unsent_bytes {
            drop(state);
            let limit = self.limits.unsent_bytes;
            let message =
                format!("more than {limit} bytes of answers wait to be read (unsent_bytes)");
            if let Some(batch) = batch {
                self.update(|state| batch.close(state));
            }
            return self.refuse(&id, RpcError::internal(message), batch);
        }
        let accepted = state.table.accept(&id, handler);
        drop(state);
        let Ok(serial) = accepted else {
            let message = format!("the request id {id} is already in flight");
            if let Some(batch) = batch {
                self.update(|state| batch.close(state));
            }
            return self.refuse(&id, RpcError::invalid_request(message), batch);
        };
        let replies =
            Replies::stream(ConnectionReplies { shared: self.clone(), id: id.clone(), serial });
        let incoming = Incoming::new(id.clone(), method, params, permit);
        let reply = catch_unwind(AssertUnwindSafe(|| self.serve.serve(incoming, replies)))
            .unwrap_or_else(|payload| Reply::Now(Err(panicked(&id, payload.as_ref()))));
        match reply {
            Reply::Now(outcome) => self.finish(&id, serial, outcome),
            Reply::Never => {
                self.counts.dropped_requests.fetch_add(1, Relaxed);
                self.update(|state| {
                    let handler = state.table.finish(&id, serial);
                    if let Some(batch) = handler.and_then(|handler| handler.batch) {
                        batch.close(state);
                    }
                });
            }
            Reply::Later(handler) => {
                let running = HandlerTask { shared: self.clone(), id: id.clone(), serial, handler };
                let mut state = self.lock();
                // A close that came between found no task to stop: then none is started.
                if let Some(entry) = state.table.running(&id, serial) {
                    entry.task = Some(tokio::spawn(running).abort_handle());
                    return Received::Spawned;
                }
            }
        }
        Received::Applied
    }

    fn refuse(&self, id: &RequestId, error: RpcError, batch: Option<&Arc<BatchGroup>>) -> Received {
        match batch {
            Some(batch) => batch.fault(Some(id), &error),
            None => self.update(|state| {
                state.outbox.push(NOBODY, |out| write_error(out, Some(id), &error));
            }),
        }
        self.check_unsent();
        Received::Applied
    }

    fn notification(&self, notification: Notification, held: Option<Arc<HeldBytes>>) -> Received {
        let Notification { method, params } = notification;
        let note = Note { method, params };
        let received = match &*note.method {
            CANCELLED => self.cancelled(&note),
            "notifications/progress" => self.route(&note, held, note.subject()),
            _ => self.route(&note, held, subscription(&note)),
        };
        self.serve.note(note);
        received
    }

    /// Ends the request that the peer gave up: nothing more is sent for it.
    fn cancelled(&self, note: &Note) -> Received {
        let Some(id) = note.subject() else { return Received::Applied };
        let stopped = self.update(|state| {
            let (serial, handler) = state.table.cancel(&id)?;
            state.outbox.retract(serial);
            if let Some(batch) = &handler.batch {
                batch.close(state);
            }
            Some(handler)
        });
        match stopped {
            Some(handler) => {
                tracing::debug!(%id, "the peer cancelled a request");
                handler.stop();
                Received::Stopped
            }
            None => self.route(note, None, Some(id)),
        }
    }

    /// Hands a notification to the call of this side that it belongs to.
    fn route(&self, note: &Note, held: Option<Arc<HeldBytes>>, id: Option<RequestId>) -> Received {
        let Some(id) = id else { return Received::Applied };
        let Some(slot) = self.lock().table.sent(&id).cloned() else { return Received::Applied };
        // Without memory only the latest one is kept.
        let is_short = held.is_some() && self.memory.check_beside(held.as_deref()).is_err();
        let limit = if is_short { 1 } else { self.limits.queued_notifications };
        match slot.note((note.clone(), held), limit) {
            Room::Enough => return Received::Applied,
            Room::Little => {}
            Room::None => drop(self.counts.overflowed.fetch_add(1, Relaxed)),
        }
        Received::Crowded
    }

    fn response(&self, response: Response, held: Option<Arc<HeldBytes>>) -> Received {
        let Some(id) = response.id else {
            self.counts.stray_errors.fetch_add(1, Relaxed);
            if let Err(error) = response.outcome {
                tracing::debug!(%error, "the peer sent an error that answers nothing");
                self.serve.stray(error);
            }
            return Received::Applied;
        };
        let refused = held.as_ref().and_then(|held| self.memory.check_beside(Some(held)).err());
        let result = match refused {
            Some(error) => {
                let error = Error::new(ErrorKind::Limit, error.message);
                Err(error.with_executed(Executed::Maybe))
            }
            None => outcome_to_result(response.outcome),
        };
        self.end_with(&id, result, held);
        Received::Applied
    }

    pub(super) fn end(&self, id: &RequestId, result: Result<turnbuckle_types::Raw, Error>) {
        self.end_with(id, result, None);
    }

    fn end_with(
        &self,
        id: &RequestId,
        result: Result<turnbuckle_types::Raw, Error>,
        held: Option<Arc<HeldBytes>>,
    ) {
        let slot = self.lock().table.answer(id);
        match slot {
            Some(slot) => slot.end(result, held, self.arrivals.fetch_add(1, Relaxed)),
            None => {
                self.counts.late_answers.fetch_add(1, Relaxed);
                tracing::debug!(%id, "an answer that nobody waits for is dropped");
            }
        }
    }

    fn fault(&self, fault: Fault) -> Received {
        self.counts.unreadable.fetch_add(1, Relaxed);
        tracing::debug!(error = %fault.error, "an unreadable message");
        match (fault.role, &fault.id) {
            (FrameRole::Response, Some(id)) => {
                let message = format!("the peer's answer can't be read: {}", fault.error.message);
                self.end(id, Err(Error::protocol(message)));
            }
            (FrameRole::Response, None) => {}
            (FrameRole::Request, id) if self.serve.answers(&fault) => {
                self.update(|state| {
                    if id.is_none() {
                        state.nameless += 1;
                        if state.nameless > NAMELESS {
                            return;
                        }
                    }
                    state.outbox.push(NOBODY, |out| write_error(out, id.as_ref(), &fault.error));
                });
                self.check_unsent();
            }
            (FrameRole::Request, _) => {}
        }
        Received::Applied
    }

    /// A peer that sends and sends but never reads is let go.
    pub(super) fn check_unsent(&self) {
        let limit = self.limits.unsent_bytes;
        if self.lock().outbox.bytes() > limit + REFUSALS {
            let message = format!(
                "the peer does not read: more than {limit} bytes wait for it (unsent_bytes)"
            );
            self.close(Closed::of(ErrorKind::Limit, message, Vec::new()));
        }
    }
}

/// The beginning of a line, fit for a terminal.
fn quoted(line: &[u8]) -> String {
    // A character has four bytes at most: more are not looked at, however long the line is.
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * (QUOTED + 1))]);
    let mut quoted = String::new();
    for (count, character) in text.chars().enumerate() {
        match character {
            _ if count == QUOTED => {
                quoted.push('…');
                break;
            }
            '"' | '\'' | '\\' => quoted.push(character),
            _ => quoted.extend(character.escape_debug()),
        }
    }
    quoted
}

/// Whom a message that breaks off names, if that stands near its beginning.
pub(crate) fn id_of(began: &[u8], depth: usize) -> Option<RequestId> {
    let text = began.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let text = Bytes::copy_from_slice(text.as_bytes());
    // It breaks off, so it is a fault whatever it was meant to be.
    parse_line(text, depth).err().and_then(|fault| fault.id)
}

fn subscription(note: &Note) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
        id: &'a RawValue,
    }
    let meta = note.params.meta.as_ref()?;
    let meta: Meta<'_> = serde_json::from_str(meta.as_str()).ok()?;
    RequestId::from_token(meta.id.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_line_is_short_and_harmless() {
        for (line, expected) in [
            (b"hi".as_slice(), "hi"),
            (br#"{"level":"info","path":"C:\tmp"}"#, r#"{"level":"info","path":"C:\tmp"}"#),
            (b"\x1b[2J\tgr\xc3\xbcn\0", r"\u{1b}[2J\tgrün\0"),
            ("a\u{202e}b".as_bytes(), r"a\u{202e}b"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(quoted(line), expected);
        }
        for letter in ["x", "ü", "🎪"] {
            assert_eq!(quoted(letter.repeat(QUOTED).as_bytes()), letter.repeat(QUOTED));
            let cut = format!("{}…", letter.repeat(QUOTED));
            assert_eq!(quoted(letter.repeat(QUOTED + 1).as_bytes()), cut);
            assert_eq!(quoted(letter.repeat(100 * QUOTED).as_bytes()), cut);
        }
    }
}
