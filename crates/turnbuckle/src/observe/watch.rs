//! Owns looking on while a request runs: its span, and its numbers. Does not own the request.

use std::sync::Arc;

use tracing::Span;
use turnbuckle_types::Revision;

use super::{
    ended::{End, Ended, Finish, guarded},
    metrics::{Finished, Metrics, Started},
    span::{Side, close},
};

/// Whoever looks on while a request runs. Dropped before it was told, the request was given up.
pub(crate) struct Watch {
    span: Span,
    finish: Option<Finish<Tell>>,
}

type Tell = Box<dyn FnOnce(End) + Send>;

/// What is counted of a request.
pub(crate) struct Labels {
    pub(crate) method: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) revision: Revision,
    pub(crate) bytes_in: usize,
}

impl Labels {
    fn started(&self) -> Started<'_> {
        let Labels { method, ref name, revision, bytes_in } = *self;
        Started { method, name: name.as_deref(), revision, bytes_in }
    }
}

impl Watch {
    /// `labels` is asked for only if there is someone to tell.
    pub(crate) fn start(
        side: Side,
        span: Span,
        metrics: Option<Arc<dyn Metrics>>,
        labels: impl FnOnce() -> Labels,
    ) -> Watch {
        if metrics.is_none() && span.is_disabled() {
            return Watch { span, finish: None };
        }
        let labels = labels();
        if let Some(metrics) = &metrics {
            guarded(|| metrics.started(&labels.started()));
        }
        let watched = span.clone();
        let tell: Tell = Box::new(move |End { ended, latency, bytes }| {
            close(side, &watched, ended);
            if let Some(metrics) = metrics {
                let started = labels.started();
                metrics.finished(&Finished { started, ended, latency, bytes_out: bytes });
            }
        });
        Watch { span, finish: Some(Finish::new(tell)) }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Tells how it ended, and how long its result was, if anyone wants to know.
    pub(crate) fn tell(self, how: impl FnOnce() -> (Ended, usize)) {
        if let Some(finish) = self.finish {
            let (ended, bytes) = how();
            finish.tell(ended, bytes);
        }
    }
}
