//! Observes one request: opens its span, tells [`Metrics`], and reports the outcome exactly once.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use tracing::Span;
use turnbuckle_types::{Method, RequestId, Revision};

use super::{
    metrics::{Metrics, RequestFinished, RequestStarted},
    outcome::RequestOutcome,
    span,
};
use crate::protocol::trace_context::TraceContext;

/// The side that observes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(any(feature = "server", test)),
    expect(dead_code, reason = "a client alone has no server side")
)]
pub(crate) enum CallSide {
    Client,
    Server,
}

/// A request as spans and metrics describe it.
pub(crate) struct ObservedRequest<'a> {
    pub(crate) side: CallSide,
    /// `None` for methods that are not the protocol's.
    pub(crate) method: Option<Method>,
    /// The tool, the prompt or the URI. Names of tools and prompts become labels and part of the
    /// span's name, so only names that the server has, or that the client's author wrote, belong
    /// here.
    pub(crate) name: Option<&'a str>,
    /// `None` if it is assigned later.
    pub(crate) id: Option<&'a RequestId>,
    pub(crate) revision: Revision,
    pub(crate) is_http: bool,
    pub(crate) trace: &'a TraceContext,
    pub(crate) bytes_in: usize,
}

impl ObservedRequest<'_> {
    /// The method as a label.
    pub(crate) fn label(&self) -> &'static str {
        self.method.map_or("_OTHER", Method::as_str)
    }

    pub(crate) fn names_offer(&self) -> bool {
        matches!(self.method, Some(Method::CallTool | Method::GetPrompt))
    }
}

/// Observes a request while it runs. If it is dropped without [`finish`](RequestObserver::finish),
/// the request was cancelled.
pub(crate) struct RequestObserver {
    span: Span,
    report: Option<ReportOnce<ReportEnd>>,
}

/// Reports the end of a request.
type ReportEnd = Box<dyn FnOnce(RequestEnd) + Send>;

impl RequestObserver {
    pub(crate) fn start(
        request: &ObservedRequest<'_>,
        metrics: Option<Arc<dyn Metrics>>,
    ) -> RequestObserver {
        let span = span::open(request);
        if metrics.is_none() && span.is_disabled() {
            return RequestObserver { span, report: None };
        }
        let name = request.name.filter(|_| request.names_offer()).map(str::to_owned);
        let (side, method) = (request.side, request.label());
        let (revision, bytes_in) = (request.revision, request.bytes_in);
        if let Some(metrics) = &metrics {
            let name = name.as_deref();
            guarded(|| metrics.started(&RequestStarted { method, name, revision, bytes_in }));
        }
        let observed = span.clone();
        let report = move |RequestEnd { outcome, latency, bytes_out }| {
            span::close(side, &observed, outcome);
            if let Some(metrics) = metrics {
                let name = name.as_deref();
                let started = RequestStarted { method, name, revision, bytes_in };
                metrics.finished(&RequestFinished { started, outcome, latency, bytes_out });
            }
        };
        RequestObserver { span, report: Some(ReportOnce::new(Box::new(report))) }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Reports how the request ended, and the length of its result.
    pub(crate) fn finish(self, end: impl FnOnce() -> (RequestOutcome, usize)) {
        if let Some(report) = self.report {
            let (outcome, bytes_out) = end();
            report.finish(outcome, bytes_out);
        }
    }
}

/// Calls a function once with the end of a request: when it is finished, or when it is dropped.
pub(crate) struct ReportOnce<F: FnOnce(RequestEnd)> {
    report: Option<F>,
    since: Instant,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestEnd {
    pub(crate) outcome: RequestOutcome,
    pub(crate) latency: Duration,
    /// The length of the result.
    pub(crate) bytes_out: usize,
}

impl<F: FnOnce(RequestEnd)> ReportOnce<F> {
    pub(crate) fn new(report: F) -> ReportOnce<F> {
        ReportOnce { report: Some(report), since: Instant::now() }
    }

    pub(crate) fn finish(mut self, outcome: RequestOutcome, bytes_out: usize) {
        self.end(outcome, bytes_out);
    }

    fn end(&mut self, outcome: RequestOutcome, bytes_out: usize) {
        if let Some(report) = self.report.take() {
            let end = RequestEnd { outcome, latency: self.since.elapsed(), bytes_out };
            // This may run in a destructor during unwinding, where a second panic aborts the
            // process.
            guarded(|| report(end));
        }
    }
}

impl<F: FnOnce(RequestEnd)> Drop for ReportOnce<F> {
    fn drop(&mut self) {
        // A handler's panic unwinds through its observer.
        let panicked = std::thread::panicking();
        self.end(if panicked { RequestOutcome::Panicked } else { RequestOutcome::Cancelled }, 0);
    }
}

/// Calls a user's observer. Its panics are logged and do not affect the request.
fn guarded(observe: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(observe)).is_err() {
        tracing::error!("a metrics or audit callback panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn each_end_is_reported_once() {
        let reported = Cell::new(Vec::new());
        let report = |end: RequestEnd| {
            let mut all = reported.take();
            all.push(end.outcome);
            reported.set(all);
        };
        ReportOnce::new(report).finish(RequestOutcome::Ok, 2);
        drop(ReportOnce::new(report));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _report = ReportOnce::new(report);
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(panicked.is_err());
        let expected = [RequestOutcome::Ok, RequestOutcome::Cancelled, RequestOutcome::Panicked];
        assert_eq!(reported.take(), expected);
    }

    #[test]
    fn a_panicking_callback_changes_nothing() {
        let panics = |_: RequestEnd| std::panic::resume_unwind(Box::new("on purpose"));
        ReportOnce::new(panics).finish(RequestOutcome::Ok, 2);
        drop(ReportOnce::new(panics));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _report = ReportOnce::new(panics);
            std::panic::resume_unwind(Box::new("the handler's"));
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"the handler's"));
    }
}
