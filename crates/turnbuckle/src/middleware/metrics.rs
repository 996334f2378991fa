//! Metrics of requests, for a program to count.

use std::{sync::Arc, time::Duration};

use turnbuckle_types::Revision;

use super::outcome::RequestOutcome;

/// Receives the start and the end of every request, to be counted: of the requests that a server
/// handles (`Server::metrics`) or of the calls that a client makes (`ClientBuilder::metrics`).
///
/// Every request that is started is finished exactly once, however it ends, so the number of
/// requests in flight is the number started less the number finished. The methods are called where
/// a server reads requests and where a client makes calls: they must be quick and must not block. A
/// panic is logged, and the request goes on.
///
/// ```
/// # #[cfg(feature = "server")] {
/// use std::sync::{Arc, atomic::{AtomicI64, AtomicU64, Ordering::Relaxed}};
/// use turnbuckle::{
///     Server,
///     middleware::{Metrics, RequestFinished, RequestOutcome, RequestStarted},
/// };
///
/// #[derive(Default)]
/// struct Numbers { in_flight: AtomicI64, cancelled: AtomicU64, milliseconds: AtomicU64 }
///
/// impl Metrics for Numbers {
///     fn started(&self, _: &RequestStarted<'_>) {
///         self.in_flight.fetch_add(1, Relaxed);
///     }
///     fn finished(&self, finished: &RequestFinished<'_>) {
///         self.in_flight.fetch_sub(1, Relaxed);
///         self.milliseconds.fetch_add(finished.latency.as_millis() as u64, Relaxed);
///         if finished.outcome == RequestOutcome::Cancelled {
///             self.cancelled.fetch_add(1, Relaxed);
///         }
///     }
/// }
///
/// let numbers = Arc::new(Numbers::default());
/// let server = Server::new("demo", "1.0").metrics(numbers.clone());
/// # let _ = server;
/// # }
/// ```
pub trait Metrics: Send + Sync + 'static {
    /// A request is about to be handled, or a call to be made.
    fn started(&self, started: &RequestStarted<'_>) {
        let _ = started;
    }

    /// A request has ended.
    fn finished(&self, finished: &RequestFinished<'_>) {
        let _ = finished;
    }
}

impl<M: Metrics + ?Sized> Metrics for Arc<M> {
    fn started(&self, started: &RequestStarted<'_>) {
        (**self).started(started);
    }

    fn finished(&self, finished: &RequestFinished<'_>) {
        (**self).finished(finished);
    }
}

/// A request that starts. The method, the name and the revision have few values and are fit for
/// labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestStarted<'a> {
    /// The method, or `_OTHER` if it is not one of the protocol's.
    pub method: &'static str,
    /// The tool or prompt that is called. On a server: only if there is one of that name.
    pub name: Option<&'a str>,
    /// The revision of the request.
    pub revision: Revision,
    /// The length of the params as JSON. On a client: without what the protocol adds to them.
    pub bytes_in: usize,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestFinished<'a> {
    /// The request as it started.
    pub started: RequestStarted<'a>,
    /// How the request ended.
    pub outcome: RequestOutcome,
    /// How long the request took.
    pub latency: Duration,
    /// The length of the result as JSON; 0 for an error.
    pub bytes_out: usize,
}
