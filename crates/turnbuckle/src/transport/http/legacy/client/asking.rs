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
    Call, Wire,
    call::Seen,
    cancels::{Abandoned, Rest},
    is_opening, lock,
    run::{self, Kind},
};
use crate::{
    dispatch::{Abandon, BoxFuture, Event, Outgoing, exchange::Drive},
    error::{Closed, Error, Executed, Result},
    transport::http::client::{
        flight::Flight,
        stop::{Stop, Stopped},
    },
};

/// One exchange.
pub(crate) struct Asking {
    wire: Arc<Wire>,
    stage: Stage,
    abandon: Abandon,
    reason: Option<String>,
}

enum Stage {
    New(Box<Outgoing>),
    /// Waits for a place in the control task, which too many others have.
    Reserving(Box<Outgoing>, BoxFuture<'static, Option<Place>>),
    Running(Box<Running>),
    Done,
}

/// A place in the control task, until that has seen to the call.
type Place = OwnedSemaphorePermit;

struct Running {
    flight: Flight,
    call: Arc<Call>,
    post: BoxFuture<'static, Result<Raw>>,
    /// `None` for what just closes: a handshake.
    place: Option<Place>,
    /// The end, while notifications before it are still taken.
    ended: Option<Result<Raw>>,
}

impl Asking {
    pub(crate) fn new(wire: Arc<Wire>, request: Outgoing) -> Asking {
        let abandon = request.abandon;
        Asking { wire, stage: Stage::New(Box::new(request)), abandon, reason: None }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        loop {
            let step = match &mut self.stage {
                Stage::New(_) => self.reserve(),
                Stage::Reserving(_, reserving) => {
                    let place = ready!(reserving.as_mut().poll(context));
                    match std::mem::replace(&mut self.stage, Stage::Done) {
                        Stage::Reserving(request, _) => self.start(request, place),
                        _ => Ok(()),
                    }
                }
                Stage::Running(running) => {
                    if let Some(stopped) = running.flight.stop.poll(context) {
                        return Poll::Ready(Event::Done(Err(self.stopped(stopped))));
                    }
                    return running.poll(context);
                }
                Stage::Done => Err(Error::refused("this call has already ended")),
            };
            if let Err(error) = step {
                return Poll::Ready(Event::Done(Err(error)));
            }
        }
    }

    /// Takes a place in the control task, so that the drop will find one.
    fn reserve(&mut self) -> Result<()> {
        let Stage::New(request) = std::mem::replace(&mut self.stage, Stage::Done) else {
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
                self.stage = Stage::Reserving(request, Box::pin(reserving));
                Ok(())
            }
            Err(TryAcquireError::Closed) => self.start(request, None),
        }
    }

    /// Enters the table. The POST starts when it is polled.
    fn start(&mut self, mut request: Box<Outgoing>, place: Option<Place>) -> Result<()> {
        let extra = std::mem::take(&mut request.mirror.extra);
        let call = Arc::new(Call::new(extra, request.abandon, request.mark.take()));
        let flight = Flight::enter(&self.wire, request.id.clone(), |id| {
            Stop::legacy(id.clone(), call.clone())
        })?;
        self.wire.sends(&request.method, request.mirror.revision);
        let kind = if is_opening(&request) { Kind::Opening } else { Kind::Call };
        let id = flight.stop.id.clone();
        let post = Box::pin(run::run(self.wire.clone(), call.clone(), id, *request, kind));
        self.stage = Stage::Running(Box::new(Running { flight, call, post, place, ended: None }));
        Ok(())
    }

    fn stopped(&mut self, stopped: Stopped) -> Error {
        match (stopped, self.wire.closed.get()) {
            (Stopped::Closed, Some(closed)) => closed.error(Executed::Maybe),
            _ => {
                self.leave();
                Closed::new("the call was cancelled by `notifications/cancelled`")
                    .error(Executed::Withdrawn)
            }
        }
    }

    /// Leaves the POST and its cancel to the control task, if the server may have seen it.
    /// Never waits, and without a runtime nobody is there to be left anything.
    fn leave(&mut self) {
        let Stage::Running(running) = std::mem::replace(&mut self.stage, Stage::Done) else {
            return;
        };
        let Running { flight, call, post, place, ended } = *running;
        let seen = call.give_up();
        let (Some(place), Some(control)) = (place, self.wire.legacy.control.get()) else { return };
        let said = call.said();
        // What the user worded is said, even for a call that a drop would let run on.
        let silent = self.abandon == Abandon::Silence && said.is_none();
        if silent || self.wire.closed.get().is_some() || seen == Seen::Nothing || ended.is_some() {
            return;
        }
        let reason = self.reason.as_deref().unwrap_or("caller cancelled");
        let id = flight.stop.id.clone();
        let params = said.unwrap_or_else(|| cancel(&id, reason));
        // Before the table gives the id back: whoever takes it next waits for the cancel.
        let leaving = Leaving::new(&self.wire, id);
        drop(flight);
        // There are as many places as it holds, so it is never full; closed, it means the end.
        let rest = Rest { post: Some(post), leaving: Some(leaving), _place: Some(place) };
        let _ = control.jobs.try_send(Abandoned { call, params, rest });
    }
}

impl Running {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        loop {
            if let Some(event) = self.call.take(context) {
                return Poll::Ready(event);
            }
            if let Some(ended) = self.ended.take() {
                return Poll::Ready(Event::Done(ended));
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
pub(super) struct Leaving {
    wire: Arc<Wire>,
    id: RequestId,
    _gate: watch::Sender<()>,
}

impl Leaving {
    fn new(wire: &Arc<Wire>, id: RequestId) -> Leaving {
        let (gate, waits) = watch::channel(());
        lock(&wire.legacy.leaving).insert(id.key(), waits);
        Leaving { wire: wire.clone(), id, _gate: gate }
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        lock(&self.wire.legacy.leaving).remove(&self.id.key());
    }
}

impl Drive for Asking {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        let event = ready!(self.poll(context));
        if matches!(event, Event::Done(_)) {
            self.stage = Stage::Done;
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
        matches!(&self.stage, Stage::Running(running) if running.call.take_lost())
    }

    fn id(&self) -> Option<&RequestId> {
        match &self.stage {
            Stage::New(request) | Stage::Reserving(request, _) => request.id.as_ref(),
            Stage::Running(running) => Some(&running.flight.stop.id),
            Stage::Done => None,
        }
    }
}

impl Drop for Asking {
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
