//! The part of a response stream that only sessions use: messages wait for the event store, several
//! requests share a stream, and its reader may come and go.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, Weak},
    task::{Context, Poll, Waker},
};

use super::{Format, Priming, QUEUED_BYTES, QuestionSupport, ResponseStream, State, Wakers};
use crate::{
    rpc::{memory::MemoryBudget, pending::Serial},
    transport::http::session::server::{
        event::{
            Cursor, StreamNumber, {self},
        },
        in_flight::SessionInFlight,
    },
};
use bytes::Bytes;
use turnbuckle_types::RequestId;

/// The state of a stream of a session: of a request, of a batch, or of a GET.
#[derive(Default)]
pub(super) struct SessionState {
    /// The messages that are not in the event store yet.
    unstored: VecDeque<Unstored>,
    /// The bytes of their text.
    unstored_bytes: usize,
    /// The number of the last event in the store.
    last: u64,
    /// Whether an event with an id was sent, so that a client can come back.
    is_resumable: bool,
    /// The requests that are answered here and have not ended.
    requests: Vec<(RequestId, Serial)>,
    reader: Reader,
    /// How many readers there were: the name of the last one.
    readers: u64,
    /// Wakes the response body.
    body: Option<Waker>,
    /// Wakes the pump when the reader changes or the stream is stopped.
    pump: Option<Waker>,
}

/// The response body that reads the stream.
#[derive(Default, PartialEq)]
enum Reader {
    #[default]
    None,
    Attached,
    /// It ends once it has read its text; the client may come back.
    Released,
}

/// A message for the event store.
#[derive(Debug, PartialEq)]
pub(crate) enum Unstored {
    /// A message, and the id of the question that it is.
    Message { question: Option<RequestId>, text: Bytes },
    /// The reader ends here; the client may come back.
    Release,
}

/// The stream has ended.
#[derive(Debug, PartialEq)]
pub(crate) struct StreamEnded;

impl ResponseStream {
    /// Creates the stream of requests of a session.
    pub(crate) fn in_session(
        format: Format,
        limit: usize,
        session: Weak<SessionInFlight>,
        memory: Arc<MemoryBudget>,
    ) -> ResponseStream {
        let questions = match format {
            Format::Json => QuestionSupport::Refused(
                "this server answers with JSON only, so that there is no way to ask the client",
            ),
            _ => QuestionSupport::Session(session),
        };
        let session = Some(Box::default());
        let state = Mutex::new(State { session, ..State::new(memory) });
        ResponseStream { format, limit: limit.max(1), questions, number: OnceLock::new(), state }
    }

    /// Names the stream, which continues after the event `last`.
    pub(crate) fn continuing(self, number: StreamNumber, last: u64) -> ResponseStream {
        self.update_session(|session, _, _| session.last = last);
        ResponseStream { number: number.into(), ..self }
    }

    /// Returns the name of the stream in its session.
    pub(crate) fn number(&self) -> StreamNumber {
        // Random numbers cost a system call, and most requests need none.
        *self.number.get_or_init(StreamNumber::of_requests)
    }

    /// [`update`](ResponseStream::update) for a stream of a session.
    fn update_session<T: Default>(
        &self,
        change: impl FnOnce(&mut SessionState, &mut Vec<u8>, &mut Wakers) -> T,
    ) -> T {
        self.update(|state, wakers| match &mut state.session {
            Some(session) if !state.ended => change(session, &mut state.text, wakers),
            _ => T::default(),
        })
    }
}

/// The handler's side.
impl ResponseStream {
    /// Queues a message without waiting for room.
    pub(crate) fn push(&self, text: Vec<u8>, wakers: &mut Wakers) {
        self.change(wakers, |state, wakers| state.push(self.format, None, text, wakers));
    }

    /// Queues messages without waiting for room.
    pub(crate) fn push_all(&self, messages: Vec<Vec<u8>>) {
        self.update(|state, wakers| {
            for text in messages {
                state.push(self.format, None, text, wakers);
            }
        });
    }

    /// Returns `Ready` when there is room for a question.
    pub(crate) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        self.update(|state, _| {
            if state.ended || !state.is_full(self.limit) {
                return Poll::Ready(());
            }
            state.wait(context.waker());
            Poll::Pending
        })
    }

    /// Queues a question that belongs to a request, or to the session.
    pub(crate) fn push_question(
        &self,
        request: Option<Serial>,
        id: &RequestId,
        text: Vec<u8>,
        wakers: &mut Wakers,
    ) -> Result<(), StreamEnded> {
        self.change(wakers, |state, wakers| {
            if !state.accepts(request) {
                return Err(StreamEnded);
            }
            state.push(self.format, Some(id.clone()), text, wakers);
            Ok(())
        })
    }

    /// Removes a question that the pump has not taken. Returns `false` if it has.
    pub(crate) fn take_back(&self, question: &RequestId, wakers: &mut Wakers) -> bool {
        self.change(wakers, |state, wakers| {
            let Some(session) = &mut state.session else { return false };
            let is_it = |unstored: &Unstored| unstored.is_question(question);
            let Some(place) = session.unstored.iter().position(is_it) else { return false };
            session.unstored_bytes -= session.unstored.remove(place).map_or(0, |it| it.len());
            wakers.add_all(&mut state.waiting);
            true
        })
    }

    /// Ends the reader after the messages so far, if the client can come back.
    pub(super) fn release_reader(&self) {
        self.update(|state, wakers| {
            let Some(session) = &mut state.session else { return };
            // Once is enough, so that this needs no bound.
            let again = session.unstored.back() == Some(&Unstored::Release);
            if !state.ended && !again && self.format != Format::Json {
                session.push(Unstored::Release);
                wakers.add(&mut state.driver);
            }
        });
    }

    /// Adds a request that is answered on this stream.
    pub(crate) fn join(&self, id: &RequestId, serial: Serial) {
        self.update_session(|session, _, _| session.requests.push((id.clone(), serial)));
    }

    /// Removes a request. Returns whether it was the last one.
    pub(crate) fn leave(&self, serial: Serial) -> bool {
        self.update_session(|session, _, _| {
            session.requests.retain(|(_, known)| *known != serial);
            session.requests.is_empty()
        })
    }

    /// Returns the requests that have not ended.
    pub(crate) fn requests(&self) -> Vec<(RequestId, Serial)> {
        self.update_session(|session, _, _| session.requests.clone())
    }

    /// Whether messages wait for the event store.
    pub(crate) fn has_unstored(&self) -> bool {
        self.update(|state, _| state.has_outgoing())
    }
}

/// The pump's side.
impl ResponseStream {
    /// Takes the next message for the event store, and the number of its event.
    pub(crate) fn take_unstored(&self) -> Option<(u64, Unstored)> {
        self.update(|state, wakers| {
            let session = state.session.as_mut().filter(|_| !state.ended)?;
            let unstored = session.unstored.pop_front()?;
            session.unstored_bytes -= unstored.len();
            wakers.add_all(&mut state.waiting);
            Some((session.last + 1, unstored))
        })
    }

    /// Writes an event, which is in the store now, for the reader.
    pub(crate) fn deliver(&self, number: u64, message: &[u8]) {
        self.update(|state, wakers| {
            let Some(session) = state.session.as_mut().filter(|_| !state.ended) else { return };
            session.last = number;
            session.is_resumable = true;
            if session.reader == Reader::Attached {
                state.queued += 1;
                event::write(&mut state.text, Cursor { stream: self.number(), number }, message);
                wakers.add(&mut session.body);
            }
        });
    }

    /// Ends the reader if the client can come back.
    pub(crate) fn let_reader_go(&self) {
        self.update(|state, wakers| {
            let Format::Resumable { retry, priming } = self.format else { return };
            let Some(session) = state.session.as_mut() else { return };
            if !session.is_resumable || session.reader != Reader::Attached {
                return;
            }
            // 2025-11-25 basic/transports §Sending Messages: a server that closes SHOULD say how long
            // to wait. After a lost connection clients come back at once.
            event::write_retry(&mut state.text, retry);
            if priming == Priming::Known {
                let cursor = Cursor { stream: self.number(), number: session.last };
                event::write_place(&mut state.text, cursor);
            }
            session.reader = Reader::Released;
            wakers.add(&mut session.body);
            wakers.add_all(&mut state.waiting);
        });
    }

    /// Returns `Ready` once the stream was stopped. The task is woken when the reader changes, too.
    pub(crate) fn poll_stopped(&self, context: &mut Context<'_>) -> Poll<()> {
        self.update(|state, _| {
            if state.ended {
                return Poll::Ready(());
            }
            if let Some(session) = &mut state.session {
                session.pump = Some(context.waker().clone());
            }
            Poll::Pending
        })
    }

    /// Ends the stream. The reader may read the text that is written for it.
    pub(crate) fn end(&self, wakers: &mut Wakers) {
        self.change(wakers, State::end);
    }

    /// Ends the stream at once: the reader reads nothing more but `last_messages`, and the pump
    /// stops.
    pub(crate) fn kill(&self, last_messages: &[Vec<u8>], wakers: &mut Wakers) {
        self.change(wakers, |state, wakers| {
            if state.ended {
                return;
            }
            state.text.clear();
            for message in last_messages {
                event::write_once(&mut state.text, message);
            }
            state.end(wakers);
        });
    }
}

/// The reader's side.
impl ResponseStream {
    /// Attaches a reader in place of the one before, which ends. Returns its name and the number of
    /// the last event, after which it misses nothing.
    pub(crate) fn attach(&self) -> Result<(u64, u64), StreamEnded> {
        self.update(|state, wakers| {
            if state.ended {
                return Err(StreamEnded);
            }
            state.discard_text(wakers);
            let Some(session) = &mut state.session else { return Err(StreamEnded) };
            session.reader = Reader::Attached;
            session.readers += 1;
            Ok((session.readers, session.last))
        })
    }

    /// Tells the reader its place before the first event, if its client knows such events.
    pub(crate) fn prime(&self) {
        let Format::Resumable { priming: Priming::Known, .. } = self.format else { return };
        self.update_session(|session, text, wakers| {
            if session.reader == Reader::None {
                return;
            }
            event::write_place(text, Cursor { stream: self.number(), number: session.last });
            session.is_resumable = true;
            wakers.add(&mut session.body);
        });
    }

    /// Returns the text for this reader, or `None` at its end.
    pub(crate) fn poll_read(
        &self,
        reader: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<Vec<u8>>> {
        self.update(|state, wakers| {
            if !state.is_read_by(reader) {
                return Poll::Ready(None);
            }
            // A JSON response has a single body.
            let is_complete = state.ended || self.format != Format::Json;
            if is_complete && !state.text.is_empty() {
                return Poll::Ready(Some(state.take_text(wakers)));
            }
            match &mut state.session {
                Some(session) if !state.ended && session.reader == Reader::Attached => {
                    session.body = Some(context.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(None),
            }
        })
    }

    /// Detaches a reader, unless another has taken its place.
    pub(crate) fn detach(&self, reader: u64) {
        self.update(|state, wakers| {
            if state.is_read_by(reader) {
                state.discard_text(wakers);
            }
        });
    }

    /// Whether a client reads the stream.
    pub(crate) fn has_reader(&self) -> bool {
        self.update_session(|session, _, _| session.has_reader())
    }
}

impl State {
    /// Queues a message: for the event store, or as JSON for the reader.
    fn push(
        &mut self,
        format: Format,
        question: Option<RequestId>,
        text: Vec<u8>,
        wakers: &mut Wakers,
    ) {
        let Some(session) = self.session.as_mut().filter(|_| !self.ended) else { return };
        if format != Format::Json {
            session.push(Unstored::Message { question, text: text.into() });
            wakers.add(&mut self.driver);
            return;
        }
        if session.reader == Reader::Attached {
            if !self.text.is_empty() {
                self.text.push(b',');
            }
            self.text.extend_from_slice(&text);
        }
    }

    fn is_read_by(&self, reader: u64) -> bool {
        let is_it =
            |session: &SessionState| session.readers == reader && session.reader != Reader::None;
        self.session.as_deref().is_some_and(is_it)
    }

    /// Removes the reader with its text.
    fn discard_text(&mut self, wakers: &mut Wakers) {
        self.take_text(wakers);
        if let Some(session) = &mut self.session {
            session.reader = Reader::None;
            wakers.add(&mut session.body);
            wakers.add(&mut session.pump);
        }
    }

    fn end(&mut self, wakers: &mut Wakers) {
        self.ended = true;
        wakers.add_all(&mut self.waiting);
        wakers.add(&mut self.driver);
        if let Some(session) = &mut self.session {
            session.requests.clear();
            wakers.add(&mut session.body);
            wakers.add(&mut session.pump);
        }
    }
}

impl SessionState {
    pub(super) fn has_unstored(&self) -> bool {
        !self.unstored.is_empty()
    }

    pub(super) fn runs(&self, request: Serial) -> bool {
        self.requests.iter().any(|(_, known)| *known == request)
    }

    pub(super) fn is_full(&self, limit: usize) -> bool {
        self.unstored.len() >= limit || self.unstored_bytes >= QUEUED_BYTES
    }

    pub(super) fn has_reader(&self) -> bool {
        self.reader == Reader::Attached
    }

    pub(super) fn unstored_bytes(&self) -> usize {
        self.unstored_bytes
    }

    pub(super) fn push(&mut self, unstored: Unstored) {
        self.unstored_bytes += unstored.len();
        self.unstored.push_back(unstored);
    }
}

impl Unstored {
    pub(super) fn message(text: Vec<u8>) -> Unstored {
        Unstored::Message { question: None, text: text.into() }
    }

    fn is_question(&self, id: &RequestId) -> bool {
        matches!(self, Unstored::Message { question: Some(question), .. } if question == id)
    }

    fn len(&self) -> usize {
        match self {
            Unstored::Message { text, .. } => text.len(),
            Unstored::Release => 0,
        }
    }
}
