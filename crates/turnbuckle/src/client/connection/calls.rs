//! Owns how many calls are in flight, and whether more may be made. Does not own the calls.

use std::sync::{
    Arc,
    atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire},
    },
};

use tokio::sync::Notify;

use super::Supervisor;
use crate::error::{Closed, Executed, Result};

/// Set in the count once no more calls may be made.
const LEAVING: usize = 1 << (usize::BITS - 1);

/// One number, so that a call costs two additions and nothing falls between counting and asking.
#[derive(Default)]
pub(super) struct CallCounter {
    count: AtomicUsize,
    idle: Notify,
}

impl CallCounter {
    /// Refuses calls from now on. Returns how many are in flight.
    pub(super) fn leave(&self) -> usize {
        self.count.fetch_or(LEAVING, AcqRel) & !LEAVING
    }

    pub(super) fn in_flight(&self) -> usize {
        self.count.load(Acquire) & !LEAVING
    }

    /// Resolves when no call is in flight.
    pub(super) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // Before looking, so that nothing falls between.
            idle.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            idle.await;
        }
    }

    fn out(&self) {
        if self.count.fetch_sub(1, AcqRel) == LEAVING + 1 {
            self.idle.notify_waiters();
        }
    }
}

impl Supervisor {
    /// Counts a call for as long as what it gives is held; refuses once the client is leaving.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<CallInFlight> {
        // One that is refused is never counted, not even for a moment.
        let more = |count| (count & LEAVING == 0).then_some(count + 1);
        if self.calls.count.fetch_update(AcqRel, Acquire, more).is_ok() {
            return Ok(CallInFlight(self.clone()));
        }
        let closed = Closed::new("this client is shutting down and makes no more calls");
        Err(closed.error(Executed::No))
    }
}

/// A call in flight.
pub(crate) struct CallInFlight(Arc<Supervisor>);

impl Drop for CallInFlight {
    fn drop(&mut self) {
        self.0.calls.out();
    }
}
