//! The entry of a request in the in-flight table, and how it is stopped from outside its call.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use turnbuckle_types::RequestId;

use super::HttpClientShared;
use crate::{
    error::{Closed, Error, Executed, Result},
    rpc::pending::Serial,
    transport::http::session::client::CallState,
};

/// A request's entry in the table, from before it is sent until this is dropped.
pub(crate) struct RequestInFlight {
    wire: Arc<HttpClientShared>,
    pub(crate) stop: Arc<StopHandle>,
    serial: Serial,
}

impl RequestInFlight {
    /// Enters the table under the chosen id, or under a minted one. `call` is set for a request
    /// of the legacy era.
    pub(crate) fn enter(
        wire: &Arc<HttpClientShared>,
        chosen: Option<RequestId>,
        call: Option<&Arc<CallState>>,
    ) -> Result<RequestInFlight> {
        let mut entered = None;
        let stop = |id: &RequestId| StopHandle {
            id: id.clone(),
            call: call.cloned(),
            state: Mutex::default(),
        };
        let (_, serial) = wire
            .table()
            .send_with(chosen, |id| entered.insert(Arc::new(stop(id))).clone())
            .map_err(|collision| Error::id_in_flight(&collision.0))?;
        let Some(stop) = entered else { return Err(Error::refused("the table is closed")) };
        let flight = RequestInFlight { wire: wire.clone(), stop, serial };
        // A close in between did not find it.
        match wire.closed.get() {
            Some(closed) => Err(closed.error(Executed::No)),
            None => Ok(flight),
        }
    }

    pub(crate) fn id(&self) -> &RequestId {
        &self.stop.id
    }

    /// Returns the error of a call that was stopped.
    pub(crate) fn stopped(&self, stopped: StopReason) -> Error {
        match (stopped, self.wire.closed.get()) {
            (StopReason::Closed, Some(closed)) => closed.error(Executed::Maybe),
            _ => Closed::new("the call was cancelled by `notifications/cancelled`")
                .error(Executed::Withdrawn),
        }
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        // By its serial: the id may be a successor's by now.
        self.wire.table().abandon(&self.stop.id, self.serial);
    }
}

/// The table's handle on a request. It is there before the POST starts, so that a cancel that
/// follows at once finds it.
pub(crate) struct StopHandle {
    /// As it is spelt on the wire.
    pub(crate) id: RequestId,
    /// Set for a call that is sent under a legacy revision. Any other is closed by a cancel.
    pub(crate) call: Option<Arc<CallState>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stopped: Option<StopReason>,
    waker: Option<Waker>,
}

/// Why a POST is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    Cancelled,
    Closed,
}

impl StopHandle {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self, stopped: StopReason) {
        let mut state = self.lock();
        state.stopped.get_or_insert(stopped);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns whether it was stopped. The task is woken if that happens later.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Option<StopReason> {
        let mut state = self.lock();
        if state.stopped.is_none()
            && !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker()))
        {
            state.waker = Some(context.waker().clone());
        }
        state.stopped
    }
}
