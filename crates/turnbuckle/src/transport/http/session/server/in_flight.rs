//! The requests of a session that are in flight, in both directions.
//!
//! All changes to the questions of a stream happen under the lock of this table, so that each
//! question ends exactly once.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};
use turnbuckle_types::{Raw, RequestId, RpcError, jsonrpc::Response};

use super::{
    super::super::server::response_stream::{ResponseStream, Wakers},
    early::EarlyCancels,
    question,
    request::Batched,
};
use crate::{
    error::{Error, ErrorKind, Executed},
    http::SessionId,
    rpc::{
        Note, Outgoing,
        connection::write_cancel,
        outcome_to_result,
        pending::{PendingTable, Serial},
    },
};

/// Why questions are cancelled together with their request.
const ENDED: &str = "the request has ended";

/// The requests of one session.
pub(crate) struct SessionInFlight {
    state: Mutex<State>,
    /// How many there may be in each direction.
    limit: usize,
    session: SessionId,
    early: Arc<EarlyCancels>,
}

struct State {
    table: PendingTable<WaitingQuestion, SessionRequest>,
    /// The session has ended.
    closed: bool,
    /// The stream for messages that belong to no request, which a GET opened.
    get_stream: Option<Arc<ResponseStream>>,
}

/// A question that waits for its answer.
struct WaitingQuestion {
    id: RequestId,
    asker: QuestionAsker,
    /// Where it was asked.
    stream: Arc<ResponseStream>,
}

/// Where the answer to a question goes.
pub(super) struct QuestionAsker {
    pub(super) answer: oneshot::Sender<Result<Raw, Error>>,
    /// Where its progress goes, if that was asked for.
    pub(super) progress: Option<mpsc::Sender<Note>>,
}

/// A request of the client that runs.
pub(super) struct SessionRequest {
    pub(super) stream: Arc<ResponseStream>,
    /// Whether others are answered on the same stream.
    pub(super) batched: Batched,
    /// The task of a request of a batch.
    task: Option<AbortHandle>,
}

/// Why a request is not started.
#[derive(Debug, PartialEq)]
pub(super) enum NotStarted {
    /// The session has ended.
    Closed,
    /// Its cancel came first.
    Cancelled,
    /// Its id is in flight already, or there are too many.
    Error(RpcError),
}

impl SessionInFlight {
    pub(super) fn new(
        limit: usize,
        session: SessionId,
        early: Arc<EarlyCancels>,
    ) -> SessionInFlight {
        let state = State { table: PendingTable::default(), closed: false, get_stream: None };
        SessionInFlight { state: Mutex::new(state), limit, session, early }
    }

    /// Changes the state, and wakes tasks after it is unlocked: a waker may drop a handler, which
    /// locks the table.
    fn with<T>(&self, change: impl FnOnce(&mut State, &mut Wakers) -> T) -> T {
        let mut wakers = Wakers::default();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let value = change(&mut state, &mut wakers);
        drop(state);
        wakers.wake();
        value
    }

    /// Whether the session has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.with(|state, _| state.closed)
    }
}

/// Requests of the client.
impl SessionInFlight {
    /// Enters a request that is answered on `stream`.
    pub(super) fn accept(
        &self,
        id: &RequestId,
        stream: &Arc<ResponseStream>,
        batched: Batched,
    ) -> Result<Serial, NotStarted> {
        self.with(|state, _| {
            if state.closed {
                return Err(NotStarted::Closed);
            }
            if self.early.take(self.session, id) {
                return Err(NotStarted::Cancelled);
            }
            if state.table.running_len() >= self.limit {
                return Err(NotStarted::Error(RpcError::internal(format!(
                    "too many requests in flight in this session: the limit is {} (in_flight)",
                    self.limit
                ))));
            }
            let flight = SessionRequest { stream: stream.clone(), batched, task: None };
            let serial = state.table.accept(id, flight).map_err(|collision| {
                let message = format!("the request id {} is already in flight", collision.0);
                NotStarted::Error(RpcError::invalid_request(message))
            })?;
            // Before a cancel can find it.
            stream.join(id, serial);
            Ok(serial)
        })
    }

    /// Whether a request still runs.
    pub(super) fn is_running(&self, id: &RequestId, serial: Serial) -> bool {
        self.with(|state, _| state.table.running(id, serial).is_some())
    }

    /// Sets the task of a request of a batch, and aborts it if the request was cancelled before.
    // The task is spawned without the lock: a runtime that is shutting down drops the handler at
    // once, which locks the table.
    pub(super) fn set_task(&self, id: &RequestId, serial: Serial, task: AbortHandle) {
        let task = self.with(|state, _| match state.table.running(id, serial) {
            Some(flight) => {
                flight.task = Some(task);
                None
            }
            None => Some(task),
        });
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Ends a request. Returns `false` if it was cancelled before, so that it gets no response.
    pub(super) fn finish(&self, id: &RequestId, serial: Serial) -> bool {
        self.with(|state, _| {
            let is_running = state.table.finish(id, serial).is_some();
            if is_running {
                self.early.ended(self.session, id);
            }
            is_running
        })
    }

    /// Sends the response to a request that was [finished](SessionInFlight::finish). With the last one the
    /// questions of the stream are cancelled: there is no stream left for their answers.
    pub(super) fn reply(&self, stream: &Arc<ResponseStream>, serial: Serial, text: Vec<u8>) {
        let questions = self.with(|state, wakers| {
            let is_last = stream.leave(serial);
            let questions =
                if is_last { state.retract(stream, Some(ENDED), wakers) } else { Vec::new() };
            stream.push(text, wakers);
            questions
        });
        close(questions);
    }

    /// Ends a request that the client cancelled. Returns `None` if it has ended, or is still to
    /// come: then it will not start.
    pub(super) fn cancel(&self, id: &RequestId) -> Option<SessionRequest> {
        // Under the lock: a request that comes at the same time is either found or does not start.
        let cancelled = self.with(|state, _| {
            let Some((serial, flight)) = state.table.cancel(id) else {
                self.early.add(self.session, id);
                return None;
            };
            self.early.ended(self.session, id);
            if flight.batched == Batched::Yes {
                flight.stream.leave(serial);
            }
            Some(flight)
        })?;
        match &cancelled.task {
            Some(task) => task.abort(),
            None if cancelled.batched == Batched::No => self.kill(&cancelled.stream),
            None => {}
        }
        Some(cancelled)
    }

    /// Ends everything.
    pub(super) fn close(&self) {
        let (questions, requests) = self.with(|state, _| {
            state.closed = true;
            state.table.close()
        });
        drop(questions);
        for task in requests.into_iter().filter_map(|(_, flight)| flight.task) {
            task.abort();
        }
    }
}

/// Questions to the client.
impl SessionInFlight {
    /// Enters a question and queues it on its stream. Returns its id.
    pub(super) fn ask(
        &self,
        asker: QuestionAsker,
        stream: &Arc<ResponseStream>,
        request: Option<Serial>,
        question: &Outgoing,
    ) -> Result<(RequestId, Serial), Error> {
        self.with(|state, wakers| {
            if state.closed {
                return Err(question::closed(Executed::No));
            }
            if state.table.in_flight() - state.table.running_len() >= self.limit {
                let message = format!(
                    "too many questions wait in this session: the limit is {} (in_flight)",
                    self.limit
                );
                return Err(Error::new(ErrorKind::Limit, message));
            }
            let waiting =
                |id: &RequestId| WaitingQuestion { id: id.clone(), asker, stream: stream.clone() };
            // A new id can't collide.
            let (id, serial) = state
                .table
                .send_with(None, waiting)
                .map_err(|collision| Error::id_in_flight(&collision.0))?;
            let mut text = Vec::new();
            question.write(&id, &mut text);
            if stream.push_question(request, &id, text, wakers).is_err() {
                state.table.abandon(&id, serial);
                return Err(question::closed(Executed::No));
            }
            Ok((id, serial))
        })
    }

    /// Takes a question back, unless it has ended. If it was sent, the client gets a cancel for
    /// `reason`.
    pub(super) fn abandon(
        &self,
        id: &RequestId,
        serial: Serial,
        stream: &ResponseStream,
        reason: Option<&str>,
    ) {
        self.with(|state, wakers| {
            if state.table.abandon(id, serial).is_some() {
                retract(stream, id, reason, wakers);
            }
        });
    }

    /// Passes progress on to the handler that asked. It is dropped if the handler does not listen,
    /// or not fast enough.
    pub(super) fn progress(&self, id: &RequestId, note: Note) {
        let progress = self.with(|state, _| {
            state.table.sent(id).and_then(|waiting| waiting.asker.progress.clone())
        });
        if progress.is_none_or(|progress| progress.try_send(note).is_err()) {
            tracing::debug!(%id, "progress of an unknown question is dropped");
        }
    }

    /// Passes an answer on to the handler that asked.
    pub(super) fn answer(&self, response: Response) {
        let Some(id) = response.id else {
            tracing::debug!("the client sent an error without an id");
            return;
        };
        self.end_question(&id, outcome_to_result(response.outcome));
    }

    /// Ends a question whose answer can't be read.
    pub(super) fn unreadable(&self, id: &RequestId, error: &RpcError) {
        let message = format!("the client's answer can't be read: {}", error.message);
        self.end_question(id, Err(Error::protocol(message)));
    }

    fn end_question(&self, id: &RequestId, end: Result<Raw, Error>) {
        match self.with(|state, _| state.table.answer(id)) {
            // The handler may be gone.
            Some(waiting) => drop(waiting.asker.answer.send(end)),
            None => tracing::debug!(%id, "the answer to an unknown question is dropped"),
        }
    }

    /// Whether a question waits on a stream that no client reads.
    pub(super) fn has_unread_question(&self, stream: &Arc<ResponseStream>) -> bool {
        !stream.has_reader()
            && self.with(|state, _| state.table.all_sent().any(|waiting| waiting.is_on(stream)))
    }

    /// Ends the questions of a stream that no client reads.
    pub(super) fn give_up(&self, stream: &Arc<ResponseStream>) {
        let reason = Some("the client did not come back to answer");
        close(self.with(|state, wakers| state.retract(stream, reason, wakers)));
    }
}

/// Streams.
impl SessionInFlight {
    /// Ends a stream: its reader may read the rest.
    pub(super) fn end(&self, stream: &Arc<ResponseStream>) {
        close(self.with(|state, wakers| {
            stream.end(wakers);
            state.retract(stream, None, wakers)
        }));
    }

    /// Ends a stream at once. The reader only learns which questions are cancelled.
    pub(super) fn kill(&self, stream: &Arc<ResponseStream>) {
        close(self.with(|state, wakers| {
            let questions = state.retract(stream, None, wakers);
            let sent = questions.iter().filter(|(_, executed)| *executed == Executed::Maybe);
            let cancels: Vec<_> = sent.map(|(waiting, _)| cancel(&waiting.id, ENDED)).collect();
            stream.kill(&cancels, wakers);
            questions
        }));
    }

    /// Returns the stream that a GET opened.
    pub(super) fn get_stream(&self) -> Option<Arc<ResponseStream>> {
        self.with(|state, _| state.get_stream.clone())
    }

    /// Replaces the stream that a GET opened; the one before ends.
    pub(super) fn set_get_stream(&self, stream: Option<Arc<ResponseStream>>) {
        let before = self.with(|state, _| std::mem::replace(&mut state.get_stream, stream));
        if let Some(before) = before {
            self.kill(&before);
        }
    }

    /// Forgets the stream of a GET that has ended.
    pub(super) fn forget_get_stream(&self, stream: &Arc<ResponseStream>) {
        self.with(|state, _| {
            state.get_stream.take_if(|known| Arc::ptr_eq(known, stream));
        });
    }
}

impl State {
    /// Removes the questions of a stream. The client gets a cancel for `reason` for each that was
    /// sent.
    fn retract(
        &mut self,
        stream: &Arc<ResponseStream>,
        reason: Option<&str>,
        wakers: &mut Wakers,
    ) -> Vec<(WaitingQuestion, Executed)> {
        let questions = self.table.abandon_all(|waiting| waiting.is_on(stream));
        let retracted = questions.into_iter().map(|waiting| {
            let executed = retract(stream, &waiting.id, reason, wakers);
            (waiting, executed)
        });
        retracted.collect()
    }
}

impl WaitingQuestion {
    fn is_on(&self, stream: &Arc<ResponseStream>) -> bool {
        Arc::ptr_eq(&self.stream, stream)
    }
}

/// Takes a question back from its stream, or cancels it if it was sent.
fn retract(
    stream: &ResponseStream,
    id: &RequestId,
    reason: Option<&str>,
    wakers: &mut Wakers,
) -> Executed {
    if stream.take_back(id, wakers) {
        return Executed::No;
    }
    if let Some(reason) = reason {
        stream.push(cancel(id, reason), wakers);
    }
    Executed::Maybe
}

fn cancel(id: &RequestId, reason: &str) -> Vec<u8> {
    let mut text = Vec::new();
    write_cancel(&mut text, id, reason);
    text
}

/// Tells the handlers that their questions are not answered.
fn close(questions: Vec<(WaitingQuestion, Executed)>) {
    for (waiting, executed) in questions {
        // The handler may be gone.
        drop(waiting.asker.answer.send(Err(question::closed(executed))));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::rpc::memory::MemoryBudget;

    use super::{
        super::super::super::server::response_stream::{Format, Priming, Unstored},
        *,
    };

    const FORMAT: Format = Format::Resumable { retry: Duration::ZERO, priming: Priming::Known };

    struct Fixture {
        in_flight: Arc<SessionInFlight>,
        stream: Arc<ResponseStream>,
        request: Serial,
    }

    fn fixture() -> Fixture {
        let in_flight = Arc::new(SessionInFlight::new(8, SessionId([1; 16]), Arc::default()));
        let stream = ResponseStream::in_session(
            FORMAT,
            8,
            Arc::downgrade(&in_flight),
            MemoryBudget::new(1 << 20),
        );
        let stream = Arc::new(stream);
        let request = in_flight.accept(&1.into(), &stream, Batched::No).unwrap();
        Fixture { in_flight, stream, request }
    }

    type Answer = oneshot::Receiver<Result<Raw, Error>>;

    impl Fixture {
        fn ask(&self) -> Result<(RequestId, Serial, Answer), Error> {
            let (answer, receiver) = oneshot::channel();
            let question = Outgoing::new("q", String::new());
            let asker = QuestionAsker { answer, progress: None };
            let request = Some(self.request);
            let (id, serial) = self.in_flight.ask(asker, &self.stream, request, &question)?;
            Ok((id, serial, receiver))
        }

        fn messages(&self) -> Vec<String> {
            let next = || match self.stream.take_unstored()?.1 {
                Unstored::Message { text, .. } => Some(String::from_utf8(text.to_vec()).unwrap()),
                Unstored::Release => None,
            };
            std::iter::from_fn(next).collect()
        }
    }

    fn maybe_executed(mut answer: Answer) -> bool {
        answer.try_recv().unwrap().unwrap_err().maybe_executed()
    }

    #[test]
    fn the_last_response_cancels_sent_questions_and_drops_the_others() {
        let it = fixture();
        let (sent, _, sent_answer) = it.ask().unwrap();
        assert_eq!(it.messages().len(), 1);
        let (.., unsent_answer) = it.ask().unwrap();
        assert!(it.in_flight.finish(&1.into(), it.request));
        it.in_flight.reply(&it.stream, it.request, b"response".to_vec());
        let messages = it.messages();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].contains("notifications/cancelled"), "{messages:?}");
        assert!(messages[0].contains(&sent.to_string()), "{messages:?}");
        assert_eq!(messages[1], "response");
        assert!(maybe_executed(sent_answer));
        assert!(!maybe_executed(unsent_answer));
        assert!(it.ask().is_err(), "the request has ended");
    }

    #[test]
    fn an_abandoned_question_is_cancelled_once_and_only_if_it_was_sent() {
        let it = fixture();
        let (id, serial, _) = it.ask().unwrap();
        it.in_flight.abandon(&id, serial, &it.stream, Some("gone"));
        assert!(it.messages().is_empty());
        let (id, serial, _) = it.ask().unwrap();
        it.messages();
        it.in_flight.abandon(&id, serial, &it.stream, Some("gone"));
        it.in_flight.abandon(&id, serial, &it.stream, Some("gone"));
        assert_eq!(it.messages().len(), 1);
    }

    #[test]
    fn a_cancelled_request_ends_its_stream_and_its_questions() {
        let it = fixture();
        let (.., answer) = it.ask().unwrap();
        it.messages();
        assert!(it.in_flight.has_unread_question(&it.stream));
        assert!(it.in_flight.cancel(&1.into()).is_some());
        assert!(maybe_executed(answer));
        assert!(!it.in_flight.has_unread_question(&it.stream));
        assert!(!it.in_flight.finish(&1.into(), it.request));
        assert!(it.stream.attach().is_err());
    }
}
