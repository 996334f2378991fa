//! Owns a request of this side from its first poll to its end, and what dropping it leaves
//! behind: the POST as it stands and the words of its cancel, for the control task.
//! Does not own the course of the POST: `run` does.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError, watch};
use turnbuckle_types::{Raw, RequestId};

use super::{
    CallState, HttpClientShared,
    call::ServerSaw,
    control::{Abandoned, Rest},
    is_opening, lock,
    run::{self, RequestPurpose},
};
use crate::{
    error::{Error, Executed, Result},
    rpc::{Abandon, BoxFuture, ExchangeEvent, Outgoing, exchange::Drive},
    transport::http::client::flight::{RequestInFlight, StopReason},
};

/// One exchange.
pub(crate) struct SessionCall {
    wire: Arc<HttpClientShared>,
    stage: CallStage,
    abandon: Abandon,
    reason: Option<String>,
}

enum CallStage {
    New(Box<Outgoing>),
    /// Waits for a place in the control task, which too many others have.
    Reserving(Box<Outgoing>, BoxFuture<'static, Option<CallPlace>>),
    RunningCall(Box<RunningCall>),
    Done,
}

/// A place in the control task, until that has seen to the call.
type CallPlace = OwnedSemaphorePermit;

struct RunningCall {
    flight: RequestInFlight,
    call: Arc<CallState>,
    post: BoxFuture<'static, Result<Raw>>,
    /// `None` for what just closes: a handshake.
    place: Option<CallPlace>,
    /// The end, while notifications before it are still taken.
    ended: Option<Result<Raw>>,
}

impl SessionCall {
    pub(crate) fn new(wire: Arc<HttpClientShared>, request: Outgoing) -> SessionCall {
        let abandon = request.abandon;
        SessionCall { wire, stage: CallStage::New(Box::new(request)), abandon, reason: None }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        loop {
            let step = match &mut self.stage {
                CallStage::New(_) => self.reserve(),
                CallStage::Reserving(_, reserving) => {
                    let place = ready!(reserving.as_mut().poll(context));
                    match std::mem::replace(&mut self.stage, CallStage::Done) {
                        CallStage::Reserving(request, _) => self.start(request, place),
                        _ => Ok(()),
                    }
                }
                CallStage::RunningCall(running) => {
                    if let Some(stopped) = running.flight.stop.poll(context) {
                        let error = running.flight.stopped(stopped);
                        if stopped == StopReason::Cancelled {
                            self.leave();
                        }
                        return Poll::Ready(ExchangeEvent::Done(Err(error)));
                    }
                    return running.poll(context);
                }
                CallStage::Done => Err(Error::refused("this call has already ended")),
            };
            if let Err(error) = step {
                return Poll::Ready(ExchangeEvent::Done(Err(error)));
            }
        }
    }

    /// Takes a place in the control task, so that the drop will find one.
    fn reserve(&mut self) -> Result<()> {
        let CallStage::New(request) = std::mem::replace(&mut self.stage, CallStage::Done) else {
            return Ok(());
        };
        if let Some(closed) = self.wire.closed.get() {
            return Err(closed.error(Executed::No));
        }
        let Some(control) = self.wire.legacy.control.get().filter(|_| !is_opening(&request)) else {
            return self.start(request, None);
        };
        match control.places.clone().try_acquire_owned() {
            Ok(place) => self.start(request, Some(place)),
            Err(TryAcquireError::NoPermits) => {
                let places = control.places.clone();
                let reserving = async move { places.acquire_owned().await.ok() };
                self.stage = CallStage::Reserving(request, Box::pin(reserving));
                Ok(())
            }
            Err(TryAcquireError::Closed) => self.start(request, None),
        }
    }

    /// Enters the table. The POST starts when it is polled.
    fn start(&mut self, mut request: Box<Outgoing>, place: Option<CallPlace>) -> Result<()> {
        let extra = std::mem::take(&mut request.mirror.extra);
        let call = Arc::new(CallState::new(extra, request.abandon, request.mark.take()));
        let flight = RequestInFlight::enter(&self.wire, request.id.clone(), Some(&call))?;
        self.wire.sends(&request.method, request.mirror.revision);
        let kind =
            if is_opening(&request) { RequestPurpose::Opening } else { RequestPurpose::CallState };
        let id = flight.id().clone();
        let post = Box::pin(run::run(self.wire.clone(), call.clone(), id, *request, kind));
        self.stage = CallStage::RunningCall(Box::new(RunningCall {
            flight,
            call,
            post,
            place,
            ended: None,
        }));
        Ok(())
    }

    /// Leaves the POST and its cancel to the control task, if the server may have seen it.
    /// Never waits, and without a runtime nobody is there to be left anything.
    fn leave(&mut self) {
        let CallStage::RunningCall(running) = std::mem::replace(&mut self.stage, CallStage::Done)
        else {
            return;
        };
        let RunningCall { flight, call, post, place, ended } = *running;
        let seen = call.give_up();
        let (Some(place), Some(control)) = (place, self.wire.legacy.control.get()) else { return };
        let said = call.said();
        // What the user worded is said, even for a call that a drop would let run on.
        let silent = self.abandon == Abandon::Silence && said.is_none();
        if silent
            || self.wire.closed.get().is_some()
            || seen == ServerSaw::Nothing
            || ended.is_some()
        {
            return;
        }
        let reason = self.reason.as_deref().unwrap_or("caller cancelled");
        let id = flight.id().clone();
        let params = said.unwrap_or_else(|| cancel(&id, reason));
        // Before the table gives the id back: whoever takes it next waits for the cancel.
        let leaving = LeavingId::new(&self.wire, id);
        drop(flight);
        // There are as many places as it holds, so it is never full; closed, it means the end.
        let rest = Rest { post: Some(post), leaving: Some(leaving), _place: Some(place) };
        let _ = control.jobs.try_send(Abandoned { call, params, rest });
    }
}

impl RunningCall {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        loop {
            if let Some(event) = self.call.take(context) {
                return Poll::Ready(event);
            }
            if let Some(ended) = self.ended.take() {
                return Poll::Ready(ExchangeEvent::Done(ended));
            }
            match self.post.as_mut().poll(context) {
                Poll::Ready(ended) => self.ended = Some(ended),
                // What it has read meanwhile comes first.
                Poll::Pending => {
                    return self.call.take(context).map_or(Poll::Pending, Poll::Ready);
                }
            }
        }
    }
}

/// The params of a cancel.
pub(super) fn cancel(id: &RequestId, reason: &str) -> String {
    let reason = serde_json::Value::from(reason);
    format!(r#"{{"requestId":{id},"reason":{reason}}}"#)
}

/// Keeps an id from being seen by the server again before the cancel of its last use.
pub(super) struct LeavingId {
    wire: Arc<HttpClientShared>,
    id: RequestId,
    _gate: watch::Sender<()>,
}

impl LeavingId {
    fn new(wire: &Arc<HttpClientShared>, id: RequestId) -> LeavingId {
        let (gate, waits) = watch::channel(());
        lock(&wire.legacy.leaving).insert(id.key(), waits);
        LeavingId { wire: wire.clone(), id, _gate: gate }
    }
}

impl Drop for LeavingId {
    fn drop(&mut self) {
        lock(&self.wire.legacy.leaving).remove(&self.id.key());
    }
}

impl Drive for SessionCall {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        let event = ready!(self.poll(context));
        if matches!(event, ExchangeEvent::Done(_)) {
            self.stage = CallStage::Done;
        }
        Poll::Ready(event)
    }

    fn reason(mut self: Pin<&mut Self>, reason: String) {
        self.reason = Some(reason);
    }

    fn silence(mut self: Pin<&mut Self>) {
        self.abandon = Abandon::Silence;
    }

    fn take_lost(&self) -> bool {
        matches!(&self.stage, CallStage::RunningCall(running) if running.call.take_lost())
    }

    fn id(&self) -> Option<&RequestId> {
        match &self.stage {
            CallStage::New(request) | CallStage::Reserving(request, _) => request.id.as_ref(),
            CallStage::RunningCall(running) => Some(running.flight.id()),
            CallStage::Done => None,
        }
    }
}

impl Drop for SessionCall {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_names_the_id_as_it_is_spelt() {
        assert_eq!(cancel(&"7".into(), "a \"b\""), r#"{"requestId":"7","reason":"a \"b\""}"#);
        assert_eq!(cancel(&7.into(), "x"), r#"{"requestId":7,"reason":"x"}"#);
    }
}
