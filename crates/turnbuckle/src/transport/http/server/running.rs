//! Owns one handler while its request runs: it is polled here, and dropping this drops it.
//! Does not own what its answer looks like.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use turnbuckle_types::{RequestId, RpcError};

use super::{
    Endpoint,
    answer::Statuses,
    drain::{Ended, Phase},
    idle::Idle,
    queue::{Parked, Queue},
};
use crate::dispatch::{BoxFuture, Outcome, duplex::panicked};

/// A request whose handler has not ended. Whoever holds it polls the handler; dropping it
/// is the cancel.
pub(crate) struct Running {
    pub(super) id: RequestId,
    /// `None` once it has ended.
    handler: Option<BoxFuture<'static, Outcome>>,
    queue: Arc<Queue>,
    endpoint: Arc<Endpoint>,
    /// Silence towards the client.
    idle: Idle,
    /// Where the endpoint's end finds this request, once it waits.
    place: Option<usize>,
    pub(super) statuses: Statuses,
}

/// What polling a handler has come to.
pub(super) enum Polled {
    /// It said something: see [`Running::take`].
    Said,
    /// For a whole window it said nothing.
    Quiet,
    /// It has ended.
    Done(Done),
}

/// The end of a request.
pub(super) struct Done {
    /// Events that come before the answer.
    pub(super) said: Vec<u8>,
    pub(super) outcome: Outcome,
    /// Whether the handler itself ended.
    pub(super) ended: Ended,
}

impl Running {
    pub(crate) fn new(
        id: RequestId,
        handler: BoxFuture<'static, Outcome>,
        queue: Arc<Queue>,
        endpoint: Arc<Endpoint>,
    ) -> Running {
        let idle = Idle::new(endpoint.keep_alive);
        let statuses = Statuses::ByError;
        Running { id, handler: Some(handler), queue, endpoint, idle, place: None, statuses }
    }

    /// An error that it ends with is an answer like any other.
    pub(crate) fn always_ok(mut self) -> Running {
        self.statuses = Statuses::AlwaysOk;
        self
    }

    /// Polls the handler. Not to be polled again after `Done`.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Polled> {
        if self.place.is_some() {
            self.queue.attend();
        }
        if let Some(outcome) = self.poll_handler(context) {
            return Poll::Ready(self.done(outcome, Ended::Finished));
        }
        let parked = self.queue.park(context.waker());
        // After that, so that an end of the endpoint is either seen here or wakes us.
        if self.place.is_none() {
            self.place = Some(self.endpoint.drain.enter(&self.queue));
        }
        if let Some(done) = self.poll_end() {
            return Poll::Ready(done);
        }
        if parked == Parked::Said {
            return Poll::Ready(Polled::Said);
        }
        self.idle.poll(context).map(|()| Polled::Quiet)
    }

    /// What was said so far.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.idle.touch();
        self.queue.take()
    }

    fn poll_handler(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        let handler = self.handler.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(outcome)) => Some(outcome),
            Err(payload) => Some(Err(panicked(&self.id, payload.as_ref()))),
        }
    }

    /// Ends the request because the endpoint ends.
    fn poll_end(&mut self) -> Option<Polled> {
        let phase = self.endpoint.drain.phase();
        if phase == Phase::Open {
            return None;
        }
        if let Some(farewell) = self.queue.farewell() {
            return Some(self.done(Ok(farewell), Ended::Farewell));
        }
        (phase == Phase::Over).then(|| {
            self.done(Err(RpcError::internal("server is shutting down")), Ended::Cancelled)
        })
    }

    fn done(&mut self, outcome: Outcome, ended: Ended) -> Polled {
        self.handler = None;
        self.endpoint.drain.count(ended);
        Polled::Done(Done { said: self.queue.close(), outcome, ended })
    }
}

/// The handler goes with it. What is left of it elsewhere speaks to nobody.
impl Drop for Running {
    fn drop(&mut self) {
        let drain = &self.endpoint.drain;
        if let Some(place) = self.place {
            drain.leave(place);
        }
        if self.handler.is_some() {
            self.queue.close();
            if drain.phase() == Phase::Over {
                drain.count(Ended::Cancelled);
            }
        }
    }
}
