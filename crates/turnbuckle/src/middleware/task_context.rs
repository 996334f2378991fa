//! Carries the span of a request, and its log queue, to another task or thread.

use tracing::{Instrument as _, Span};

#[cfg(feature = "logs")]
use super::log_forwarding::{EnteredQueue, LogQueue};

/// The request that the current task works for.
pub(crate) struct TaskContext {
    span: Span,
    #[cfg(feature = "logs")]
    queue: Option<std::sync::Arc<LogQueue>>,
}

impl TaskContext {
    pub(crate) fn current() -> TaskContext {
        TaskContext {
            span: Span::current(),
            #[cfg(feature = "logs")]
            queue: LogQueue::current(),
        }
    }

    /// Runs a function as part of the request.
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "logs")]
        let _entered = EnteredQueue::new(self.queue);
        self.span.in_scope(work)
    }

    /// Makes a future part of the request, wherever it is polled.
    pub(crate) fn future<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        let span = self.span.clone();
        #[cfg(feature = "logs")]
        let work = async move {
            let mut work = std::pin::pin!(work);
            std::future::poll_fn(|context| {
                let _entered = EnteredQueue::new(self.queue.clone());
                work.as_mut().poll(context)
            })
            .await
        };
        work.instrument(span)
    }
}
