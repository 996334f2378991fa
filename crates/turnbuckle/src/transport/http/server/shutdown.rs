//! The shutdown of an endpoint: its phases, the requests that have to see them, and the report.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use super::response_stream::ResponseStream;

/// The phase of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EndpointPhase {
    /// It serves.
    Open,
    /// Streams that would never end are ended; calls may finish.
    Draining,
    /// Requests that still run get an error response.
    Over,
}

/// How a request ended, as far as a report tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestEnding {
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

/// The phase of an endpoint, and the requests that wait.
#[derive(Default)]
pub(crate) struct Drain {
    phase: AtomicU8,
    waiting: Mutex<WaitingRequests>,
    finished: AtomicU64,
    cancelled: AtomicU64,
    listeners: AtomicU64,
}

/// Places of requests. A place is used again once it is free.
#[derive(Default)]
struct WaitingRequests {
    places: Vec<Option<Arc<ResponseStream>>>,
    free: Vec<usize>,
}

impl Drain {
    pub(crate) fn phase(&self) -> EndpointPhase {
        match self.phase.load(Ordering::Acquire) {
            0 => EndpointPhase::Open,
            1 => EndpointPhase::Draining,
            _ => EndpointPhase::Over,
        }
    }

    /// Enters `phase`, unless a later one was entered, and wakes every request that waits.
    pub(crate) fn advance(&self, phase: EndpointPhase) {
        // Before the lock: a request that enters after it sees the new phase.
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
        let streams: Vec<_> = self.lock().places.iter().flatten().cloned().collect();
        streams.iter().for_each(|stream| stream.wake());
    }

    /// Enters a request that is about to wait.
    pub(super) fn enter(&self, stream: &Arc<ResponseStream>) -> usize {
        let mut waiting = self.lock();
        let stream = Some(stream.clone());
        if let Some(place) = waiting.free.pop() {
            waiting.places[place] = stream;
            return place;
        }
        waiting.places.push(stream);
        waiting.places.len() - 1
    }

    pub(super) fn leave(&self, place: usize) {
        let mut waiting = self.lock();
        waiting.places[place] = None;
        waiting.free.push(place);
    }

    /// Counts the end of a request, if it is part of the endpoint's end.
    pub(crate) fn count(&self, ended: RequestEnding) {
        if self.phase() == EndpointPhase::Open {
            return;
        }
        let counter = match ended {
            RequestEnding::Finished => &self.finished,
            RequestEnding::Farewell => &self.listeners,
            RequestEnding::Cancelled => &self.cancelled,
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

    fn lock(&self) -> MutexGuard<'_, WaitingRequests> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use crate::rpc::memory::MemoryBudget;

    use super::{super::response_stream::Format, *};

    #[test]
    fn places_are_used_again_and_phases_never_go_back() {
        let drain = Drain::default();
        let stream = Arc::new(ResponseStream::new(Format::Events, 1, "", MemoryBudget::new(1)));
        let (first, second) = (drain.enter(&stream), drain.enter(&stream));
        drain.leave(first);
        assert_eq!(drain.enter(&stream), first);
        drain.leave(first);
        drain.leave(second);
        assert_eq!(Arc::strong_count(&stream), 1);
        assert_eq!(drain.lock().places.len(), 2);

        drain.count(RequestEnding::Finished);
        assert_eq!(drain.report(), HttpReport::default());
        drain.advance(EndpointPhase::Over);
        drain.advance(EndpointPhase::Draining);
        assert_eq!(drain.phase(), EndpointPhase::Over);
        drain.count(RequestEnding::Cancelled);
        assert_eq!(drain.report().cancelled, 1);
    }
}
