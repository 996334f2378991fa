//! Owns one stream of events: what was said on it, in order, and whoever reads it at the moment.
//! Does not own who speaks, nor the store in which events are kept.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::Notify;
use turnbuckle_types::{RequestId, jsonrpc};

use super::event::{self, Cursor, StreamNumber};
use crate::{
    dispatch::{duplex::write_cancel, table::Serial},
    error::Executed,
};

/// How much text may wait before a handler does.
const QUEUED_BYTES: usize = 256 * 1024;

/// Why questions are taken back with their request.
const ENDED: &str = "the request has ended";

/// A stream: of one request, of a batch, or of what belongs to no request.
///
/// What is said waits in `said` until the pump has kept it in the store; then it is written for the
/// reader, if one is attached. So nobody reads what could not be asked for again.
pub(super) struct Stream {
    pub(super) number: StreamNumber,
    shape: Shape,
    /// How many messages may wait before a handler does.
    limit: usize,
    state: Mutex<State>,
    stop: Notify,
}

/// What becomes of what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Events with ids. `Priming` says whether the client knows events without data.
    Events { retry: Duration, priming: Priming },
    /// Answers only, as JSON with commas between: there is no way to say anything else.
    Json,
}

/// Whether a client knows events that only say where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priming {
    Known,
    Unknown,
}

#[derive(Default)]
struct State {
    /// What the pump has not taken yet.
    said: VecDeque<Said>,
    /// The bytes of its frames.
    said_bytes: usize,
    /// The number of the last event that was kept.
    last: u64,
    /// An event with an id was sent, so that a client can come back.
    marked: bool,
    /// The requests that are answered here and have not ended.
    members: Vec<(RequestId, Serial)>,
    /// The questions that were asked here and have not been answered.
    questions: Vec<(RequestId, Serial)>,
    /// Invariant: its serial is the largest that was given out.
    reader: Option<Reader>,
    readers: u64,
    /// Nothing is said or written any more.
    ended: bool,
    pump: Option<Waker>,
    /// Those who wait for room.
    waiting: Vec<Waker>,
}

struct Reader {
    serial: u64,
    text: Vec<u8>,
    /// How many events are in it.
    queued: usize,
    waker: Option<Waker>,
    /// It is let go once it has read this.
    released: bool,
}

/// What something that is said belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Owner {
    Request(Serial),
    /// No request.
    Session,
}

/// What the pump takes.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// A message, and the question that it is.
    Frame { question: Option<Serial>, text: Bytes },
    /// The reader is to be let go.
    Release,
}

/// What the pump has to do.
#[derive(Debug, PartialEq)]
pub(super) enum Turn {
    /// Something was said.
    Said,
    /// Every request has ended, and nothing is left.
    Over,
    /// Nobody reads.
    Alone,
}

/// What became of a question that is taken back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unasked {
    /// Nobody will read it.
    Unwritten,
    Written,
    /// It had ended already, and what there was to say of it was said.
    Ended,
}

/// A question whose stream has nothing more to say of it.
#[derive(Debug, PartialEq)]
pub(super) struct Left {
    pub(super) id: RequestId,
    pub(super) serial: Serial,
    /// Whether the client may have read it.
    pub(super) executed: Executed,
}

/// The stream has ended: nothing can be said on it.
#[derive(Debug, PartialEq)]
pub(super) struct Ended;

impl Stream {
    pub(super) fn new(number: StreamNumber, shape: Shape, limit: usize) -> Stream {
        Stream { number, shape, limit: limit.max(1), state: Mutex::default(), stop: Notify::new() }
    }

    /// A stream that goes on after so many events.
    pub(super) fn after(self, last: u64) -> Stream {
        self.update(|state, _| state.last = last);
        self
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Changes the state; those who have to look again are woken when it is unlocked.
    fn update<T>(&self, change: impl FnOnce(&mut State, &mut Vec<Waker>) -> T) -> T {
        let mut wake = Vec::new();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let value = change(&mut state, &mut wake);
        drop(state);
        wake.into_iter().for_each(Waker::wake);
        value
    }
}

/// Speaking.
impl Stream {
    /// Says a notification whose params `render` appends, once there is room; nothing once the
    /// request that it belongs to has ended.
    pub(super) fn poll_note(
        &self,
        owner: Owner,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        if self.shape == Shape::Json {
            return Poll::Ready(());
        }
        self.update(|state, wake| {
            if !state.hears(owner) {
                return Poll::Ready(());
            }
            if state.is_full(self.limit) {
                state.wait(context.waker());
                return Poll::Pending;
            }
            let mut text = Vec::new();
            jsonrpc::write_notification(&mut text, method, "");
            // The envelope closes with a brace; the params go before it.
            text.pop();
            text.extend_from_slice(br#","params":"#);
            render(&mut text);
            text.push(b'}');
            state.say(None, text, wake);
            Poll::Ready(())
        })
    }

    /// Ready when nothing that was said waits for its reader.
    pub(super) fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        self.update(|state, _| {
            let unread = state.reader.as_ref().is_some_and(|reader| !reader.text.is_empty());
            if state.ended || (state.said.is_empty() && !unread) {
                return Poll::Ready(());
            }
            state.wait(context.waker());
            Poll::Pending
        })
    }

    /// Says a message that nobody waits with.
    pub(super) fn say(&self, text: Vec<u8>) {
        self.update(|state, wake| {
            if !state.ended {
                state.say(None, text, wake);
            }
        });
    }

    /// Ready when there is room for a question.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        self.update(|state, _| {
            if state.ended || !state.is_full(self.limit) {
                return Poll::Ready(());
            }
            state.wait(context.waker());
            Poll::Pending
        })
    }

    /// Asks something.
    pub(super) fn ask(
        &self,
        owner: Owner,
        id: &RequestId,
        serial: Serial,
        text: Vec<u8>,
    ) -> Result<(), Ended> {
        self.update(|state, wake| {
            if !state.hears(owner) {
                return Err(Ended);
            }
            state.questions.push((id.clone(), serial));
            state.say(Some(serial), text, wake);
            Ok(())
        })
    }

    /// A question has ended; if nobody has taken it yet, nobody will.
    pub(super) fn unask(&self, serial: Serial) -> Unasked {
        self.update(|state, wake| {
            let Some(place) = state.questions.iter().position(|(_, known)| *known == serial) else {
                return Unasked::Ended;
            };
            state.questions.remove(place);
            if state.take_back(serial, wake) { Unasked::Unwritten } else { Unasked::Written }
        })
    }

    /// A question was answered.
    pub(super) fn answered(&self, id: &RequestId) {
        self.update(|state, _| state.questions.retain(|(known, _)| known.key() != id.key()));
    }

    /// Whether a question waits that nobody reads.
    pub(super) fn asks_nobody(&self) -> bool {
        self.update(|state, _| {
            let unread = state.reader.as_ref().is_none_or(|reader| reader.released);
            unread && !state.questions.is_empty()
        })
    }

    /// Takes all questions back.
    pub(super) fn unask_all(&self, reason: &str) -> Vec<Left> {
        self.update(|state, wake| state.unask_all(reason, wake))
    }

    /// Lets the reader go after what was said so far, if it can come back.
    pub(super) fn release(&self) {
        self.update(|state, wake| {
            // Once is enough, so that this needs no bound.
            let again = state.said.back() == Some(&Said::Release);
            if !state.ended && !again && self.shape != Shape::Json {
                state.said.push_back(Said::Release);
                wake.extend(state.pump.take());
            }
        });
    }

    /// A request is answered here.
    pub(super) fn join(&self, id: &RequestId, serial: Serial) {
        self.update(|state, _| state.members.push((id.clone(), serial)));
    }

    /// A request has ended without an answer.
    pub(super) fn leave(&self, serial: Serial) {
        self.update(|state, wake| {
            state.members.retain(|(_, known)| *known != serial);
            wake.extend(state.pump.take());
        });
    }

    /// The answer to a request. With the last one all questions are taken back: there is nowhere
    /// left to ask.
    pub(super) fn answer(&self, serial: Serial, text: Vec<u8>) -> Vec<Left> {
        self.update(|state, wake| {
            state.members.retain(|(_, known)| *known != serial);
            if state.ended {
                return Vec::new();
            }
            let is_last = state.members.is_empty();
            let left = if is_last { state.unask_all(ENDED, wake) } else { Vec::new() };
            state.say(None, text, wake);
            left
        })
    }

    /// The requests that have not ended.
    pub(super) fn members(&self) -> Vec<(RequestId, Serial)> {
        self.update(|state, _| state.members.clone())
    }

    /// Whether something was said that nobody has taken.
    pub(super) fn has_said(&self) -> bool {
        self.update(|state, _| !state.said.is_empty())
    }
}

/// The pump's side.
impl Stream {
    /// What there is to do.
    pub(super) fn poll_turn(&self, context: &mut Context<'_>) -> Poll<Turn> {
        self.update(|state, _| {
            if !state.said.is_empty() {
                return Poll::Ready(Turn::Said);
            }
            state.pump = Some(context.waker().clone());
            if self.number.is_aside() {
                let alone = state.reader.as_ref().is_none_or(|reader| reader.released);
                return if alone { Poll::Ready(Turn::Alone) } else { Poll::Pending };
            }
            if state.members.is_empty() { Poll::Ready(Turn::Over) } else { Poll::Pending }
        })
    }

    /// The next thing that was said, and the number that it gets as an event.
    pub(super) fn take(&self) -> Option<(u64, Said)> {
        self.update(|state, wake| {
            let said = state.said.pop_front()?;
            state.said_bytes -= said.len();
            wake.append(&mut state.waiting);
            Some((state.last + 1, said))
        })
    }

    /// Writes an event for the reader: from here on it is in the store.
    pub(super) fn deliver(&self, number: u64, text: &[u8]) {
        self.update(|state, wake| {
            if state.ended {
                return;
            }
            let is_first = state.last == 0;
            state.last = number;
            state.marked = true;
            let Some(reader) = state.reader.as_mut().filter(|reader| !reader.released) else {
                return;
            };
            reader.queued += 1;
            match self.shape {
                Shape::Events { .. } => {
                    event::write(&mut reader.text, Cursor { stream: self.number, number }, text);
                }
                Shape::Json => {
                    if !is_first {
                        reader.text.push(b',');
                    }
                    reader.text.extend_from_slice(text);
                }
            }
            wake.extend(reader.waker.take());
        });
    }

    /// Lets the reader go, if it can come back.
    pub(super) fn let_go(&self) {
        self.update(|state, wake| {
            let Shape::Events { retry, priming } = self.shape else { return };
            let cursor = Cursor { stream: self.number, number: state.last };
            let marked = state.marked;
            let Some(reader) = state.reader.as_mut().filter(|_| marked) else { return };
            if reader.released {
                return;
            }
            // 2025-11-25 basic/transports §Sending Messages: a server that closes SHOULD say how long
            // to wait. One that breaks off said nothing: then its clients look at once.
            event::write_retry(&mut reader.text, retry);
            if priming == Priming::Known {
                event::write_place(&mut reader.text, cursor);
            }
            reader.released = true;
            wake.extend(reader.waker.take());
            wake.append(&mut state.waiting);
        });
    }

    /// Resolves when the stream is stopped.
    pub(super) async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Ends it: the reader may read what is written for it. The questions are nobody's any more.
    pub(super) fn end(&self) -> Vec<Left> {
        self.update(|state, wake| state.end(wake))
    }

    /// Ends it at once: nothing that waits is read, but that its questions are taken back.
    pub(super) fn kill(&self) -> Vec<Left> {
        let questions = self.update(|state, wake| {
            let State { said, questions, reader, .. } = state;
            if let Some(reader) = reader {
                reader.text.clear();
                let unwritten = |serial| said.iter().any(|said| said.is_question(serial));
                for (id, _) in questions.iter().filter(|(_, serial)| !unwritten(*serial)) {
                    let mut text = Vec::new();
                    write_cancel(&mut text, id, ENDED);
                    event::write_once(&mut reader.text, &text);
                }
            }
            state.members.clear();
            state.end(wake)
        });
        self.stop.notify_one();
        questions
    }
}

/// The reader's side.
impl Stream {
    /// Attaches a reader instead of the one before, which ends. From here on it misses nothing;
    /// what was before is told by the number of the last event.
    pub(super) fn attach(&self) -> Result<(u64, u64), Ended> {
        self.update(|state, wake| {
            if state.ended {
                return Err(Ended);
            }
            let before = state.reader.take();
            wake.extend(before.and_then(|reader| reader.waker));
            wake.append(&mut state.waiting);
            wake.extend(state.pump.take());
            state.readers += 1;
            let serial = state.readers;
            state.reader =
                Some(Reader { serial, text: Vec::new(), queued: 0, waker: None, released: false });
            Ok((serial, state.last))
        })
    }

    /// Tells the reader where it stands before anything was said, if it knows such events.
    pub(super) fn prime(&self) {
        self.update(|state, wake| {
            let Shape::Events { priming: Priming::Known, .. } = self.shape else { return };
            let cursor = Cursor { stream: self.number, number: state.last };
            let Some(reader) = &mut state.reader else { return };
            event::write_place(&mut reader.text, cursor);
            state.marked = true;
            wake.extend(reader.waker.take());
        });
    }

    /// What is written for this reader; `None` at its end.
    pub(super) fn poll_read(
        &self,
        serial: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<Vec<u8>>> {
        self.update(|state, wake| {
            let ended = state.ended;
            let Some(reader) = state.reader.as_mut().filter(|reader| reader.serial == serial)
            else {
                return Poll::Ready(None);
            };
            if !reader.text.is_empty() {
                reader.queued = 0;
                let text = std::mem::take(&mut reader.text);
                wake.append(&mut state.waiting);
                return Poll::Ready(Some(text));
            }
            if ended || reader.released {
                return Poll::Ready(None);
            }
            reader.waker = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// The reader is gone, unless another has taken its place.
    pub(super) fn detach(&self, serial: u64) {
        self.update(|state, wake| {
            if state.reader.as_ref().is_some_and(|reader| reader.serial == serial) {
                state.reader = None;
                wake.append(&mut state.waiting);
                wake.extend(state.pump.take());
            }
        });
    }
}

impl State {
    /// Whether something that belongs there can still be said.
    fn hears(&self, owner: Owner) -> bool {
        let runs = match owner {
            Owner::Request(serial) => self.members.iter().any(|(_, known)| *known == serial),
            Owner::Session => true,
        };
        runs && !self.ended
    }

    /// Nobody waits for a reader that is not there: the store has it.
    fn is_full(&self, limit: usize) -> bool {
        let behind = |reader: &Reader| {
            !reader.released && (reader.queued >= limit || reader.text.len() >= QUEUED_BYTES)
        };
        self.said.len() >= limit
            || self.said_bytes >= QUEUED_BYTES
            || self.reader.as_ref().is_some_and(behind)
    }

    fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }

    fn say(&mut self, question: Option<Serial>, text: Vec<u8>, wake: &mut Vec<Waker>) {
        self.said_bytes += text.len();
        self.said.push_back(Said::Frame { question, text: text.into() });
        wake.extend(self.pump.take());
    }

    /// Takes a question back that was not written. Tells whether it was not.
    fn take_back(&mut self, serial: Serial, wake: &mut Vec<Waker>) -> bool {
        let Some(place) = self.said.iter().position(|said| said.is_question(serial)) else {
            return false;
        };
        self.said_bytes -= self.said.remove(place).map_or(0, |said| said.len());
        wake.append(&mut self.waiting);
        true
    }

    /// Takes all questions back, with a cancellation for each that was written.
    fn unask_all(&mut self, reason: &str, wake: &mut Vec<Waker>) -> Vec<Left> {
        let mut left = Vec::new();
        for (id, serial) in std::mem::take(&mut self.questions) {
            let mut executed = Executed::No;
            if !self.take_back(serial, wake) {
                executed = Executed::Maybe;
                let mut text = Vec::new();
                write_cancel(&mut text, &id, reason);
                self.say(None, text, wake);
            }
            left.push(Left { id, serial, executed });
        }
        left
    }

    fn end(&mut self, wake: &mut Vec<Waker>) -> Vec<Left> {
        self.ended = true;
        let questions = std::mem::take(&mut self.questions);
        let said = &self.said;
        let left = questions.into_iter().map(|(id, serial)| {
            let unwritten = said.iter().any(|said| said.is_question(serial));
            let executed = if unwritten { Executed::No } else { Executed::Maybe };
            Left { id, serial, executed }
        });
        let left = left.collect();
        self.said.clear();
        self.said_bytes = 0;
        wake.append(&mut self.waiting);
        wake.extend(self.pump.take());
        wake.extend(self.reader.as_mut().and_then(|reader| reader.waker.take()));
        left
    }
}

impl Said {
    fn is_question(&self, serial: Serial) -> bool {
        matches!(self, Said::Frame { question, .. } if *question == Some(serial))
    }

    fn len(&self) -> usize {
        match self {
            Said::Frame { text, .. } => text.len(),
            Said::Release => 0,
        }
    }
}

#[cfg(test)]
mod tests;
