//! Owns the end of an endpoint: which requests run, and what they are told when it closes.
//! Does not own the connections they came on.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;

use super::queue::Queue;

/// How far an endpoint has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It serves.
    Open,
    /// Streams that would never end are ended; calls may finish.
    Draining,
    /// Whatever still runs is answered that the server is shutting down.
    Over,
}

/// How a request ended, as far as a report tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Finished,
    /// A stream that was told that this is the end.
    Farewell,
    Cancelled,
}

/// What became of the requests that ran when a server was told to stop.
///
/// ```
/// # async fn serve(
/// #     server: turnbuckle::Server,
/// #     stop: impl Future<Output = ()> + Send + 'static,
/// # ) -> turnbuckle::Result<()> {
/// let report = server.serve_http("127.0.0.1:8080").with_shutdown(stop).await?;
/// eprintln!("{} calls finished, {} did not", report.finished, report.cancelled);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpReport {
    /// Calls that finished in time.
    pub finished: u64,
    /// Calls that were stopped because the time was over.
    pub cancelled: u64,
    /// Listen streams that were ended in good order.
    pub listeners: u64,
}

/// The requests that wait, and what they wait under.
#[derive(Default)]
pub(crate) struct Drain {
    phase: AtomicU8,
    waiting: Mutex<Waiting>,
    /// Wakes tasks of their own, which have no place.
    advanced: Notify,
    finished: AtomicU64,
    cancelled: AtomicU64,
    listeners: AtomicU64,
}

/// Places of requests. A place is used again once it is free.
#[derive(Default)]
struct Waiting {
    places: Vec<Option<Arc<Queue>>>,
    free: Vec<usize>,
}

impl Drain {
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Open,
            1 => Phase::Draining,
            _ => Phase::Over,
        }
    }

    /// Goes on to `phase`, never back, and makes every request that waits look at it.
    pub(crate) fn advance(&self, phase: Phase) {
        // Before the lock: a request that enters after it sees the new phase.
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
        let queues: Vec<_> = self.lock().places.iter().flatten().cloned().collect();
        queues.iter().for_each(|queue| queue.wake());
        self.advanced.notify_waiters();
    }

    /// Resolves once it has come this far. Dropping the future has no effect.
    pub(crate) async fn reached(&self, phase: Phase) {
        loop {
            let mut advanced = pin!(self.advanced.notified());
            // Before the look, so that no change falls between the two.
            advanced.as_mut().enable();
            if self.phase() >= phase {
                return;
            }
            advanced.await;
        }
    }

    /// Enters a request that is about to wait.
    pub(super) fn enter(&self, queue: &Arc<Queue>) -> usize {
        let mut waiting = self.lock();
        let queue = Some(queue.clone());
        if let Some(place) = waiting.free.pop() {
            waiting.places[place] = queue;
            return place;
        }
        waiting.places.push(queue);
        waiting.places.len() - 1
    }

    pub(super) fn leave(&self, place: usize) {
        let mut waiting = self.lock();
        waiting.places[place] = None;
        waiting.free.push(place);
    }

    /// Counts the end of a request, if it is part of the endpoint's end.
    pub(crate) fn count(&self, ended: Ended) {
        if self.phase() == Phase::Open {
            return;
        }
        let counter = match ended {
            Ended::Finished => &self.finished,
            Ended::Farewell => &self.listeners,
            Ended::Cancelled => &self.cancelled,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn report(&self) -> HttpReport {
        HttpReport {
            finished: self.finished.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
            listeners: self.listeners.load(Ordering::Relaxed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_phases_never_go_back() {
        let drain = Drain::default();
        let queue = Arc::new(Queue::new(1));
        let (first, second) = (drain.enter(&queue), drain.enter(&queue));
        drain.leave(first);
        assert_eq!(drain.enter(&queue), first);
        drain.leave(first);
        drain.leave(second);
        assert_eq!(Arc::strong_count(&queue), 1);
        assert_eq!(drain.lock().places.len(), 2);

        drain.count(Ended::Finished);
        assert_eq!(drain.report(), HttpReport::default());
        drain.advance(Phase::Over);
        drain.advance(Phase::Draining);
        assert_eq!(drain.phase(), Phase::Over);
        drain.count(Ended::Cancelled);
        assert_eq!(drain.report().cancelled, 1);
    }
}
