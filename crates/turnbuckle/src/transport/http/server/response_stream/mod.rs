//! The outgoing messages of one HTTP response, between the handler and the response body.
//!
//! Outside a session a message is written for the body at once. In a session it is kept in the event
//! store first; `session` has that part.

mod session;

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::super::{sse, timing::QUEUED_BYTES};
use crate::{
    error::Error,
    rpc::{
        Exchange, Outgoing, Replying,
        memory::{HeldBytes, MemoryBudget},
        pending::Serial,
    },
    transport::http::session::server::{
        event::StreamNumber, in_flight::SessionInFlight, question::SessionQuestion,
    },
};
use session::SessionState;
pub(crate) use session::{StreamEnded, Unstored};
use turnbuckle_types::{Raw, jsonrpc};

/// The bounded queue between one handler and the response body.
pub(crate) struct ResponseStream {
    format: Format,
    /// How many messages may wait before the handler does.
    limit: usize,
    questions: QuestionSupport,
    /// The name of the stream in its session, once it has to be known.
    number: OnceLock<StreamNumber>,
    state: Mutex<State>,
}

/// The form in which messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Server-sent events without ids.
    Events,
    /// Server-sent events with ids, which can be resumed.
    Resumable { retry: Duration, priming: Priming },
    /// Responses only, as JSON with commas between them. Notifications are dropped.
    Json,
}

/// Whether a client understands events without data, which only carry an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priming {
    Known,
    Unknown,
}

/// Whether a handler can send requests to its client.
pub(crate) enum QuestionSupport {
    /// It can't, for this reason.
    Refused(&'static str),
    /// The session correlates them with their answers.
    Session(Weak<SessionInFlight>),
}

struct State {
    /// The text that the response body has not taken yet.
    text: Vec<u8>,
    /// How many messages it holds.
    queued: usize,
    /// Wakes the task that polls the handler.
    driver: Option<Waker>,
    /// Wakes parts of the handler that wait for room.
    waiting: Vec<Waker>,
    /// No message is accepted any more.
    ended: bool,
    farewell: Option<Raw>,
    session: Option<Box<SessionState>>,
    /// The memory of the messages that wait.
    held: HeldBytes,
}

/// The tasks to wake once a lock is released.
#[derive(Default)]
pub(crate) struct Wakers {
    single: [Option<Waker>; 3],
    waiting: Vec<Waker>,
}

/// The state of a handler that is not ready.
#[derive(Debug, PartialEq)]
pub(super) enum Parked {
    /// There are messages to send.
    Messages,
    /// There are none; the task is woken when there are.
    Silent,
}

impl ResponseStream {
    /// Creates the stream of a request outside sessions.
    pub(crate) fn new(
        format: Format,
        limit: usize,
        refusal: &'static str,
        memory: Arc<MemoryBudget>,
    ) -> ResponseStream {
        ResponseStream {
            format,
            limit: limit.max(1),
            questions: QuestionSupport::Refused(refusal),
            number: OnceLock::new(),
            state: Mutex::new(State::new(memory)),
        }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Changes the state, and wakes tasks after it is unlocked.
    fn update<T>(&self, change: impl FnOnce(&mut State, &mut Wakers) -> T) -> T {
        let mut wakers = Wakers::default();
        let value = self.change(&mut wakers, change);
        wakers.wake();
        value
    }

    /// Changes the state; the caller wakes the tasks.
    fn change<T>(
        &self,
        wakers: &mut Wakers,
        change: impl FnOnce(&mut State, &mut Wakers) -> T,
    ) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let value = change(&mut state, wakers);
        state.account();
        value
    }

    /// Called before the handler is polled: its messages do not have to wake the task.
    pub(super) fn attend(&self) {
        self.update(|state, _| state.driver = None);
    }

    /// Called after the handler was polled: messages wake `waker` from now on.
    pub(super) fn park(&self, waker: &Waker) -> Parked {
        self.update(|state, _| {
            if state.has_outgoing() {
                return Parked::Messages;
            }
            state.driver = Some(waker.clone());
            Parked::Silent
        })
    }

    /// Takes the text for the response body.
    pub(super) fn take_text(&self) -> Vec<u8> {
        self.update(State::take_text)
    }

    /// Ends the stream of a request outside sessions and takes the last text. In a session the pump
    /// ends it.
    pub(super) fn close(&self) -> Vec<u8> {
        self.update(|state, wakers| {
            if state.session.is_some() {
                return Vec::new();
            }
            state.ended = true;
            state.take_text(wakers)
        })
    }

    /// Takes the result with which this request ends when the server shuts down.
    pub(super) fn farewell(&self) -> Option<Raw> {
        self.update(|state, _| state.farewell.take())
    }

    /// Wakes the task that polls the handler.
    pub(super) fn wake(&self) {
        self.update(|state, wakers| wakers.add(&mut state.driver));
    }
}

impl State {
    fn new(memory: Arc<MemoryBudget>) -> State {
        State {
            text: Vec::new(),
            queued: 0,
            driver: None,
            waiting: Vec::new(),
            ended: false,
            farewell: None,
            session: None,
            held: HeldBytes::new(memory),
        }
    }

    /// Counts the memory of the messages that wait.
    fn account(&mut self) {
        let unstored = self.session.as_ref().map_or(0, |session| session.unstored_bytes());
        self.held.set(self.text.len() + unstored);
    }

    /// Whether the driver has something to do besides polling the handler.
    fn has_outgoing(&self) -> bool {
        match &self.session {
            None => !self.text.is_empty(),
            Some(session) => session.has_unstored(),
        }
    }

    fn take_text(&mut self, wakers: &mut Wakers) -> Vec<u8> {
        self.queued = 0;
        wakers.add_all(&mut self.waiting);
        std::mem::take(&mut self.text)
    }

    /// Whether a message of this request is still accepted.
    fn accepts(&self, request: Option<Serial>) -> bool {
        let runs = match (&self.session, request) {
            (Some(session), Some(request)) => session.runs(request),
            _ => true,
        };
        runs && !self.ended
    }

    /// Without a reader only the event store has to keep up. If the memory of the server is used
    /// up, one message may wait: its sender is woken when it is sent.
    fn is_full(&self, limit: usize) -> bool {
        if self.held.bytes() > 0 && self.held.budget().check().is_err() {
            return true;
        }
        let behind = self.queued >= limit || self.text.len() >= QUEUED_BYTES;
        match &self.session {
            None => behind,
            Some(session) => session.is_full(limit) || (behind && session.has_reader()),
        }
    }

    fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }
}

impl Wakers {
    fn add(&mut self, waker: &mut Option<Waker>) {
        if let Some(place) = self.single.iter_mut().find(|place| place.is_none()) {
            *place = waker.take();
        } else {
            self.waiting.extend(waker.take());
        }
    }

    fn add_all(&mut self, wakers: &mut Vec<Waker>) {
        self.waiting.append(wakers);
    }

    pub(crate) fn wake(self) {
        self.single.into_iter().flatten().for_each(Waker::wake);
        self.waiting.into_iter().for_each(Waker::wake);
    }
}

impl Replying for ResponseStream {
    fn poll_note(
        &self,
        request: Option<Serial>,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        if self.format == Format::Json {
            return Poll::Ready(());
        }
        self.update(|state, wakers| {
            if !state.accepts(request) {
                return Poll::Ready(());
            }
            if state.is_full(self.limit) {
                state.wait(context.waker());
                return Poll::Pending;
            }
            if let Some(session) = &mut state.session {
                let mut text = Vec::new();
                write_notification(&mut text, method, render);
                session.push(Unstored::message(text));
            } else {
                state.queued += 1;
                let out = &mut state.text;
                out.extend_from_slice(sse::DATA);
                write_notification(out, method, render);
                out.extend_from_slice(sse::END);
            }
            wakers.add(&mut state.driver);
            Poll::Ready(())
        })
    }

    fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        self.update(|state, _| {
            if state.ended || (state.text.is_empty() && !state.has_outgoing()) {
                return Poll::Ready(());
            }
            state.wait(context.waker());
            Poll::Pending
        })
    }

    fn at_shutdown(&self, farewell: Raw) {
        self.update(|state, _| state.farewell = Some(farewell));
    }

    fn ask(self: Arc<Self>, request: Option<Serial>, question: Outgoing) -> Exchange {
        match &self.questions {
            QuestionSupport::Session(session) => {
                let session = session.clone();
                Exchange::new(SessionQuestion::new(request, self, session, question))
            }
            QuestionSupport::Refused(reason) => Exchange::failed(Error::refused(format!(
                "`{}` can't be sent: {reason}",
                question.method
            ))),
        }
    }

    fn release(&self) {
        self.release_reader();
    }
}

fn write_notification(out: &mut Vec<u8>, method: &str, render: &mut dyn FnMut(&mut Vec<u8>)) {
    jsonrpc::write_notification(out, method, "");
    // The envelope closes with a brace; the params go before it.
    out.pop();
    out.extend_from_slice(br#","params":"#);
    render(out);
    out.push(b'}');
}

#[cfg(test)]
mod tests;
