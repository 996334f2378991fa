//! Owns what goes along when work is handed to another task or thread: the span of its request,
//! and where its events are told. Does not own the work.

use tracing::{Instrument as _, Span};

#[cfg(feature = "logs")]
use super::relay::{Entered, Queue};

/// What the current work is part of.
pub(crate) struct Carry {
    span: Span,
    #[cfg(feature = "logs")]
    queue: Option<std::sync::Arc<Queue>>,
}

impl Carry {
    pub(crate) fn here() -> Carry {
        Carry {
            span: Span::current(),
            #[cfg(feature = "logs")]
            queue: Queue::current(),
        }
    }

    /// Runs work as part of it.
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "logs")]
        let _entered = Entered::new(self.queue);
        self.span.in_scope(work)
    }

    /// Makes a future part of it, wherever it is polled.
    pub(crate) fn future<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        let span = self.span.clone();
        #[cfg(feature = "logs")]
        let work = async move {
            let mut work = std::pin::pin!(work);
            std::future::poll_fn(|context| {
                let _entered = Entered::new(self.queue.clone());
                work.as_mut().poll(context)
            })
            .await
        };
        work.instrument(span)
    }
}
