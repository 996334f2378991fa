//! The counts of what happened to the demo's calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened to the calls of all tools but `stats`.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub(crate) struct Stats {
    /// Calls whose handler began.
    pub(crate) started: u64,
    /// Calls whose handler ran to its end, in whatever way: an error or a panic is an end too.
    pub(crate) completed: u64,
    /// Calls whose handler was stopped before its end.
    pub(crate) cancelled: u64,
    /// Calls whose handler is running.
    pub(crate) in_flight: u64,
}

/// Counts that all handlers share.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Arc<Mutex<Stats>>);

impl Counts {
    /// Runs the body of a handler, and counts how it ends.
    pub(super) async fn count<T>(&self, body: impl Future<Output = T>) -> T {
        let mut running = Running::new(self);
        let result = body.await;
        running.end = End::Completed;
        result
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Stats> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run of a handler.
struct Running<'a> {
    counts: &'a Counts,
    end: End,
}

enum End {
    Completed,
    /// What is true of a handler that is dropped before it says otherwise.
    Cancelled,
}

impl<'a> Running<'a> {
    fn new(counts: &'a Counts) -> Running<'a> {
        let mut stats = counts.lock();
        stats.started += 1;
        stats.in_flight += 1;
        drop(stats);
        Running { counts, end: End::Cancelled }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut stats = self.counts.lock();
        stats.in_flight -= 1;
        match self.end {
            End::Cancelled if !std::thread::panicking() => stats.cancelled += 1,
            _ => stats.completed += 1,
        }
    }
}
