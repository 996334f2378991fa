//! Owns the numbers of requests: what whoever counts them is told.
//! Does not own the counting.

use std::{sync::Arc, time::Duration};

use turnbuckle_types::Revision;

use super::ended::Ended;

/// Whoever counts requests: those of a server, given to its `observe`, or those that a client makes,
/// given to `ClientBuilder::metrics`.
///
/// Every request that is started is finished exactly once, however it ends, so that the requests
/// in flight are those started less those finished. On a server it is called where requests are read,
/// as all that comes on a connection is, on a client where calls are made: it must be quick and must
/// not block. If it panics, that is
/// logged, and the request goes on.
///
/// ```
/// # #[cfg(feature = "server")] {
/// use std::sync::{Arc, atomic::{AtomicI64, AtomicU64, Ordering::Relaxed}};
/// use turnbuckle::{Ended, Finished, Metrics, Server, Started};
///
/// #[derive(Default)]
/// struct Numbers { in_flight: AtomicI64, cancelled: AtomicU64, milliseconds: AtomicU64 }
///
/// impl Metrics for Numbers {
///     fn started(&self, _: &Started<'_>) {
///         self.in_flight.fetch_add(1, Relaxed);
///     }
///     fn finished(&self, finished: &Finished<'_>) {
///         self.in_flight.fetch_sub(1, Relaxed);
///         self.milliseconds.fetch_add(finished.latency.as_millis() as u64, Relaxed);
///         if finished.ended == Ended::Cancelled {
///             self.cancelled.fetch_add(1, Relaxed);
///         }
///     }
/// }
///
/// let numbers = Arc::new(Numbers::default());
/// let server = Server::new("demo", "1.0").observe(numbers.clone());
/// # let _ = server;
/// # }
/// ```
pub trait Metrics: Send + Sync + 'static {
    /// A request is about to be handled, or made.
    fn started(&self, started: &Started<'_>) {
        let _ = started;
    }

    /// A request has ended.
    fn finished(&self, finished: &Finished<'_>) {
        let _ = finished;
    }
}

impl<M: Metrics + ?Sized> Metrics for Arc<M> {
    fn started(&self, started: &Started<'_>) {
        (**self).started(started);
    }

    fn finished(&self, finished: &Finished<'_>) {
        (**self).finished(finished);
    }
}

/// What is known of a request when it starts. Fit for labels: there are only so many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Started<'a> {
    /// The method, or `_OTHER` if it is none of the protocol's.
    pub method: &'static str,
    /// The tool or prompt that is asked for. On a server: if there is one of that name.
    pub name: Option<&'a str>,
    /// The revision in which it is asked and answered.
    pub revision: Revision,
    /// The length of its params as JSON. On a client: without what the protocol adds to them.
    pub bytes_in: usize,
}

/// What is known of a request when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished<'a> {
    /// What was known when it started.
    pub started: Started<'a>,
    /// How it ended.
    pub ended: Ended,
    /// For how long it ran.
    pub latency: Duration,
    /// The length of its result as JSON; nothing for an error.
    pub bytes_out: usize,
}
