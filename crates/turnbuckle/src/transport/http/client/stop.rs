//! Owns the way to end a POST from outside its call: by name, or with the connection.
//! Does not own the POST: its call holds that, and drops it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use turnbuckle_types::RequestId;

use crate::transport::http::legacy::client::Call;

/// What the table keeps of a POST in flight. It is there before the POST starts, so that a
/// cancel that follows at once finds it.
pub(crate) struct Stop {
    /// As it is spelt on the wire.
    pub(crate) id: RequestId,
    /// What a call has that is sent under a legacy revision; for any other, a cancel closes it.
    pub(crate) call: Option<Arc<Call>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stopped: Option<Stopped>,
    call: Option<Waker>,
}

/// Why a POST is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Cancelled,
    Closed,
}

impl Stop {
    pub(crate) fn new(id: RequestId) -> Stop {
        Stop { id, call: None, state: Mutex::default() }
    }

    pub(crate) fn legacy(id: RequestId, call: Arc<Call>) -> Stop {
        Stop { call: Some(call), ..Stop::new(id) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self, stopped: Stopped) {
        let mut state = self.lock();
        state.stopped.get_or_insert(stopped);
        let call = state.call.take();
        drop(state);
        if let Some(call) = call {
            call.wake();
        }
    }

    /// Whether it was stopped; whoever asks is woken if it is later.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Option<Stopped> {
        let mut state = self.lock();
        if state.stopped.is_none()
            && !state.call.as_ref().is_some_and(|waker| waker.will_wake(context.waker()))
        {
            state.call = Some(context.waker().clone());
        }
        state.stopped
    }
}
