//! Owns which requests of a session are in flight, in both directions.
//! Does not own how they run, nor the streams on which they are answered.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};
use turnbuckle_types::{Raw, RequestId, RpcError, jsonrpc::Response};

use super::{
    early::Early,
    request::Batched,
    stream::{Left, Stream},
};
use crate::{
    SessionId,
    dispatch::{
        Note, outcome_to_result,
        table::{Serial, Table},
    },
    error::{Error, ErrorKind, Executed},
};

/// The requests of one session.
pub(super) struct Desk {
    state: Mutex<State>,
    /// How many there may be in each direction.
    limit: usize,
    session: SessionId,
    /// What was cancelled before it came.
    early: Arc<Early>,
}

struct State {
    table: Table<Question, Flight>,
    /// The session has ended.
    closed: bool,
}

/// A question that waits for its answer.
pub(super) struct Question {
    /// Where the answer goes.
    pub(super) asker: oneshot::Sender<Result<Raw, Error>>,
    /// Where goes what is said of it before, if anyone wants to hear that.
    pub(super) notes: Option<mpsc::Sender<Note>>,
    /// Where it was asked.
    pub(super) stream: Arc<Stream>,
}

/// A request of the client that runs.
pub(super) struct Flight {
    pub(super) stream: Arc<Stream>,
    /// Whether others are answered on the same stream.
    pub(super) batched: Batched,
    /// What runs it, where that is not the pump of its stream.
    pub(super) task: Option<AbortHandle>,
}

/// Why a request is not begun.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// The session has ended.
    Closed,
    /// Its cancel came first.
    Cancelled,
    /// Its id is in flight already, or there are too many.
    Error(RpcError),
}

impl Desk {
    pub(super) fn new(limit: usize, session: SessionId, early: Arc<Early>) -> Desk {
        let state = State { table: Table::default(), closed: false };
        Desk { state: Mutex::new(state), limit, session, early }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a request that is answered on `stream`.
    pub(super) fn accept(
        &self,
        id: &RequestId,
        stream: &Arc<Stream>,
        batched: Batched,
    ) -> Result<Serial, Refused> {
        self.with(|state| {
            if state.closed {
                return Err(Refused::Closed);
            }
            if self.early.was_cancelled(self.session, &id.key()) {
                self.early.ended(self.session, id.key());
                return Err(Refused::Cancelled);
            }
            if state.table.running_len() >= self.limit {
                return Err(Refused::Error(RpcError::internal(format!(
                    "too many requests in flight in this session: the limit is {} (in_flight)",
                    self.limit
                ))));
            }
            let flight = Flight { stream: stream.clone(), batched, task: None };
            let serial = state.table.accept(id, flight).map_err(|collision| {
                let message = format!("the request id {} is already in flight", collision.0);
                Refused::Error(RpcError::invalid_request(message))
            })?;
            // Before anyone can cancel it.
            stream.join(id, serial);
            Ok(serial)
        })
    }

    /// Whether a request still runs.
    pub(super) fn is_running(&self, id: &RequestId, serial: Serial) -> bool {
        self.with(|state| state.table.running(id, serial).is_some())
    }

    /// A request has a task of its own, which is stopped if the request was cancelled meanwhile.
    // The task is spawned before, under no lock: where the runtime is shutting down, that drops the
    // handler, which comes back here.
    pub(super) fn launched(&self, id: &RequestId, serial: Serial, task: AbortHandle) {
        let task = self.with(|state| match state.table.running(id, serial) {
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

    /// Ends a request, if it has not ended.
    pub(super) fn take(&self, id: &RequestId, serial: Serial) -> Option<Flight> {
        self.with(|state| {
            let flight = state.table.finish(id, serial)?;
            self.early.ended(self.session, id.key());
            Some(flight)
        })
    }

    /// Ends a request that has its answer. `false`: it was cancelled, and is not answered.
    pub(super) fn finish(&self, id: &RequestId, serial: Serial) -> bool {
        self.take(id, serial).is_some()
    }

    /// Ends a request that the client gave up. `None`: it has ended, or is still to come.
    pub(super) fn cancel(&self, id: &RequestId) -> Option<(Serial, Flight)> {
        // Under the lock, or the request could come in between and miss it.
        self.with(|state| {
            let cancelled = state.table.cancel(id);
            match &cancelled {
                Some(_) => self.early.ended(self.session, id.key()),
                None => self.early.cancelled(self.session, id.key()),
            }
            cancelled
        })
    }

    /// Enters a question.
    pub(super) fn ask(&self, question: Question) -> Result<(RequestId, Serial), Error> {
        self.with(|state| {
            if state.closed {
                return Err(super::ask::closed(Executed::No));
            }
            if state.table.in_flight() - state.table.running_len() >= self.limit {
                let message = format!(
                    "too many questions wait in this session: the limit is {} (in_flight)",
                    self.limit
                );
                return Err(Error::new(ErrorKind::Limit, message));
            }
            // An id of our own can't collide.
            state.table.send(None, question).map_err(|collision| Error::id_in_flight(&collision.0))
        })
    }

    /// Takes a question back. `false`: it has ended already.
    pub(super) fn abandon(&self, id: &RequestId, serial: Serial) -> bool {
        self.with(|state| state.table.abandon(id, serial)).is_some()
    }

    /// What the client says of a question before it answers. It is dropped where nobody waits for it
    /// and where it comes faster than it is heard.
    pub(super) fn note(&self, id: &RequestId, note: Note) {
        let notes = self.with(|state| state.table.sent(id).and_then(|asked| asked.notes.clone()));
        if notes.is_none_or(|notes| notes.try_send(note).is_err()) {
            tracing::debug!(%id, "progress that nobody waits for is dropped");
        }
    }

    /// What the client answers. An answer that nobody waits for is dropped.
    pub(super) fn answer(&self, response: Response) {
        let Some(id) = response.id else {
            tracing::debug!("the client sent an error that answers nothing");
            return;
        };
        match self.with(|state| state.table.answer(&id)) {
            Some(question) => question.end(&id, outcome_to_result(response.outcome)),
            None => tracing::debug!(%id, "an answer that nobody waits for is dropped"),
        }
    }

    /// An answer that can't be read.
    pub(super) fn unreadable(&self, id: &RequestId, error: &RpcError) {
        if let Some(question) = self.with(|state| state.table.answer(id)) {
            let message = format!("the client's answer can't be read: {}", error.message);
            question.end(id, Err(Error::protocol(message)));
        }
    }

    /// Ends a stream: its reader may read the rest, its questions are closed.
    pub(super) fn end(&self, stream: &Stream) {
        self.forget(stream.end());
    }

    /// Ends a stream at once: nothing more is read from it, and its pump stops.
    pub(super) fn kill(&self, stream: &Stream) {
        self.forget(stream.kill());
    }

    /// Answers a request on its stream. With the last one the questions are closed.
    pub(super) fn reply(&self, stream: &Stream, serial: Serial, text: Vec<u8>) {
        self.forget(stream.answer(serial, text));
    }

    /// Closes the questions of a stream that nobody reads.
    pub(super) fn give_up(&self, stream: &Stream) {
        self.forget(stream.unask_all("nobody came back to answer"));
    }

    fn forget(&self, questions: Vec<Left>) {
        for Left { id, serial, executed } in questions {
            let question = self.with(|state| state.table.abandon(&id, serial));
            if let Some(question) = question {
                question.end(&id, Err(super::ask::closed(executed)));
            }
        }
    }

    /// Ends everything, for good.
    pub(super) fn close(&self) {
        let (questions, flights) = self.with(|state| {
            state.closed = true;
            state.table.close()
        });
        drop(questions);
        for (_, flight) in flights {
            flight.stop();
        }
    }

    /// Whether the session has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.with(|state| state.closed)
    }
}

impl Question {
    fn end(self, id: &RequestId, end: Result<Raw, Error>) {
        // So that it is not taken back any more.
        self.stream.answered(id);
        // Whoever asked may be gone by now.
        drop(self.asker.send(end));
    }
}

impl Flight {
    /// Drops the handler, at its next scheduling step, if it has a task of its own.
    pub(super) fn stop(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
