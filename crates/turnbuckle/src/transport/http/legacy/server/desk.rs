//! Owns which requests of a session are in flight, in both directions.
//! Does not own how they run, nor the streams on which they are answered.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{sync::oneshot, task::AbortHandle};
use turnbuckle_types::{Raw, RequestId, RpcError, jsonrpc::Response};

use super::stream::Stream;
use crate::{
    dispatch::{
        outcome_to_result,
        table::{Serial, Table},
    },
    error::{Error, ErrorKind},
};

/// The requests of one session.
pub(super) struct Desk {
    state: Mutex<State>,
    /// How many there may be in each direction.
    limit: usize,
}

struct State {
    table: Table<Question, Flight>,
    /// The session has ended.
    closed: bool,
}

/// Where the answer to a question goes.
type Question = oneshot::Sender<Result<Raw, Error>>;

/// A request of the client that runs.
pub(super) struct Flight {
    pub(super) stream: Arc<Stream>,
    /// What runs it, where that is not the pump of its stream.
    pub(super) task: Option<AbortHandle>,
}

/// Why a request is not begun.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// The session has ended.
    Closed,
    /// Its id is in flight already, or there are too many.
    Error(RpcError),
}

impl Desk {
    pub(super) fn new(limit: usize) -> Desk {
        Desk { state: Mutex::new(State { table: Table::default(), closed: false }), limit }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a request that is answered on `stream`.
    pub(super) fn accept(&self, id: &RequestId, stream: &Arc<Stream>) -> Result<Serial, Refused> {
        let serial = self.with(|state| {
            if state.closed {
                return Err(Refused::Closed);
            }
            if state.table.running_len() >= self.limit {
                return Err(Refused::Error(RpcError::internal(format!(
                    "too many requests in flight in this session: the limit is {} (in_flight)",
                    self.limit
                ))));
            }
            let flight = Flight { stream: stream.clone(), task: None };
            state.table.accept(id, flight).map_err(|collision| {
                let message = format!("the request id {} is already in flight", collision.0);
                Refused::Error(RpcError::invalid_request(message))
            })
        })?;
        stream.join(id, serial);
        Ok(serial)
    }

    /// Starts the task of a request, unless it was cancelled meanwhile. The task may belong to the
    /// request alone; else it is the pump of its stream, and cancelled with it.
    pub(super) fn launch(
        &self,
        id: &RequestId,
        serial: Serial,
        start: impl FnOnce() -> Option<AbortHandle>,
    ) -> bool {
        // What is not started is dropped after the lock is released: a handler is in it.
        let mut start = Some(start);
        self.with(|state| {
            let Some(flight) = state.table.running(id, serial) else { return false };
            flight.task = start.take().and_then(|start| start());
            true
        })
    }

    /// Ends a request that has its answer. `false`: it was cancelled, and is not answered.
    pub(super) fn finish(&self, id: &RequestId, serial: Serial) -> bool {
        self.with(|state| state.table.finish(id, serial)).is_some()
    }

    /// Ends a request that the client gave up. `None`: it is unknown or has ended.
    pub(super) fn cancel(&self, id: &RequestId) -> Option<(Serial, Flight)> {
        self.with(|state| state.table.cancel(id))
    }

    /// Enters a question.
    pub(super) fn ask(&self, question: Question) -> Result<(RequestId, Serial), Error> {
        self.with(|state| {
            if state.closed {
                return Err(super::ask::closed());
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

    /// What the client answers. An answer that nobody waits for is dropped.
    pub(super) fn answer(&self, response: Response) {
        let Some(id) = response.id else {
            tracing::debug!("the client sent an error that answers nothing");
            return;
        };
        match self.with(|state| state.table.answer(&id)) {
            // Whoever asked may be gone by now.
            Some(question) => drop(question.send(outcome_to_result(response.outcome))),
            None => tracing::debug!(%id, "an answer that nobody waits for is dropped"),
        }
    }

    /// An answer that can't be read.
    pub(super) fn unreadable(&self, id: &RequestId, error: &RpcError) {
        if let Some(question) = self.with(|state| state.table.answer(id)) {
            let message = format!("the client's answer can't be read: {}", error.message);
            drop(question.send(Err(Error::protocol(message))));
        }
    }

    /// Ends a stream: its reader may read the rest, its questions are closed.
    pub(super) fn end(&self, stream: &Stream) {
        self.forget(&stream.end());
    }

    /// Ends a stream at once: nothing more is read from it, and its pump stops.
    pub(super) fn kill(&self, stream: &Stream) {
        self.forget(&stream.kill());
    }

    fn forget(&self, questions: &[(RequestId, Serial)]) {
        for (id, serial) in questions {
            self.abandon(id, *serial);
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

impl Flight {
    /// Drops the handler, at its next scheduling step, if it has a task of its own.
    pub(super) fn stop(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
