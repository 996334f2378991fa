//! A handler that runs, polled by the request future, the response body or the pump of a session.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    Endpoint,
    answer::Statuses,
    response_stream::{Format, Parked, ResponseStream},
};
use crate::{
    rpc::{BoxFuture, Outcome, panicked},
    transport::http::server::{
        listen::idle::Idle,
        shutdown::{Drain, EndpointPhase, RequestEnding},
    },
};
use turnbuckle_types::{RequestId, RpcError};

/// A request whose handler has not ended. Dropping it drops the handler, which cancels the request.
pub(crate) struct RunningHttpRequest {
    pub(super) id: RequestId,
    /// `None` once it has ended.
    handler: Option<BoxFuture<'static, Outcome>>,
    stream: Arc<ResponseStream>,
    /// Not the endpoint: the pump of a session holds this, and must not keep its service alive.
    drain: Arc<Drain>,
    /// The silence towards the client, where a comment can be sent.
    idle: Option<Idle>,
    /// The place in the list of requests to wake at shutdown, once this has waited.
    place: Option<usize>,
    pub(super) statuses: Statuses,
}

/// The result of polling a handler.
pub(crate) enum Polled {
    /// There are messages: for the body, or for the event store.
    Messages,
    /// There was none for a whole window.
    Quiet,
    /// The request has ended.
    Done(Done),
}

/// The end of a request.
pub(crate) struct Done {
    /// The events before the response.
    pub(super) events: Vec<u8>,
    pub(crate) outcome: Outcome,
    /// Whether the handler itself ended.
    pub(crate) ended: RequestEnding,
}

impl Done {
    /// The end of a handler outside a stream of events.
    pub(crate) fn finished(outcome: Outcome) -> Done {
        Done { events: Vec::new(), outcome, ended: RequestEnding::Finished }
    }

    /// The end of a request whose handler was dropped.
    pub(crate) fn cancelled(error: RpcError) -> Done {
        Done { events: Vec::new(), outcome: Err(error), ended: RequestEnding::Cancelled }
    }
}

impl RunningHttpRequest {
    pub(crate) fn new(
        id: RequestId,
        handler: BoxFuture<'static, Outcome>,
        stream: Arc<ResponseStream>,
        endpoint: &Endpoint,
    ) -> RunningHttpRequest {
        let idle = (stream.format() == Format::Events).then(|| Idle::new(endpoint.keep_alive));
        let (drain, statuses) = (endpoint.drain.clone(), Statuses::ByError);
        RunningHttpRequest {
            id,
            handler: Some(handler),
            stream,
            drain,
            idle,
            place: None,
            statuses,
        }
    }

    /// Sends an error with status 200.
    pub(crate) fn always_ok(mut self) -> RunningHttpRequest {
        self.statuses = Statuses::AlwaysOk;
        self
    }

    /// Polls the handler. Must not be polled again after `Done`.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Polled> {
        if self.place.is_some() {
            self.stream.attend();
        }
        if let Some(handler) = &mut self.handler
            && let Poll::Ready(outcome) = poll_handler(&self.id, handler, context)
        {
            return Poll::Ready(self.done(outcome, RequestEnding::Finished));
        }
        let parked = self.stream.park(context.waker());
        // After that, so that a shutdown is either seen here or wakes this task.
        if self.place.is_none() {
            self.place = Some(self.drain.enter(&self.stream));
        }
        if let Some(done) = self.poll_shutdown() {
            return Poll::Ready(done);
        }
        if parked == Parked::Messages {
            return Poll::Ready(Polled::Messages);
        }
        match &mut self.idle {
            Some(idle) => idle.poll(context).map(|()| Polled::Quiet),
            None => Poll::Pending,
        }
    }

    /// Returns the handler alone, for a task that is not the driver of its stream.
    pub(crate) fn into_handler(mut self) -> impl Future<Output = Outcome> + Send + use<> {
        let (id, mut handler) = (self.id.clone(), self.handler.take());
        poll_fn(move |context| match &mut handler {
            Some(handler) => poll_handler(&id, handler, context),
            None => Poll::Pending,
        })
    }

    /// Takes the events so far.
    pub(super) fn take_events(&mut self) -> Vec<u8> {
        if let Some(idle) = &mut self.idle {
            idle.touch();
        }
        self.stream.take_text()
    }

    /// Counts the end for the report of a shutdown.
    pub(crate) fn count(&self, done: &Done) {
        self.drain.count(done.ended);
    }

    fn poll_shutdown(&mut self) -> Option<Polled> {
        let phase = self.drain.phase();
        if phase == EndpointPhase::Open {
            return None;
        }
        if let Some(farewell) = self.stream.farewell() {
            return Some(self.done(Ok(farewell), RequestEnding::Farewell));
        }
        (phase == EndpointPhase::Over).then(|| {
            self.done(Err(RpcError::internal("server is shutting down")), RequestEnding::Cancelled)
        })
    }

    fn done(&mut self, outcome: Outcome, ended: RequestEnding) -> Polled {
        self.handler = None;
        Polled::Done(Done { events: self.stream.close(), outcome, ended })
    }
}

/// Polls a handler; a panic becomes an error.
fn poll_handler(
    id: &RequestId,
    handler: &mut BoxFuture<'static, Outcome>,
    context: &mut Context<'_>,
) -> Poll<Outcome> {
    catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context)))
        .unwrap_or_else(|payload| Poll::Ready(Err(panicked(id, payload.as_ref()))))
}

impl Drop for RunningHttpRequest {
    fn drop(&mut self) {
        let drain = &self.drain;
        if let Some(place) = self.place {
            drain.leave(place);
        }
        if self.handler.is_some() {
            // Parts of the handler may live on elsewhere; their messages are dropped.
            self.stream.close();
            if drain.phase() == EndpointPhase::Over {
                drain.count(RequestEnding::Cancelled);
            }
        }
    }
}
