//! The queue between the events of a request and its client, and the request that a thread works
//! for.

use std::{
    cell::RefCell,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use tokio::sync::mpsc::{self, error::TrySendError};
use turnbuckle_types::{LogLevel, LogMessage};

/// How many messages of one request may wait to be sent.
const CAPACITY: usize = 64;

/// Whether anything forwards events. Until then requests have no queue.
static FORWARDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: RefCell<Option<Arc<LogQueue>>> = const { RefCell::new(None) };
}

pub(super) fn enable_forwarding() {
    FORWARDING.store(true, Relaxed);
}

/// Returns whether a request whose client wants messages of this level has a queue.
pub(crate) fn is_forwarding(log_level: Option<LogLevel>) -> bool {
    log_level.is_some() && FORWARDING.load(Relaxed)
}

/// The sending half of a request's queue.
pub(crate) struct LogQueue {
    /// The least severe level that the client wants.
    least: LogLevel,
    messages: mpsc::Sender<LogMessage>,
    dropped: AtomicU64,
}

impl LogQueue {
    pub(super) fn new(least: LogLevel) -> (Arc<LogQueue>, mpsc::Receiver<LogMessage>) {
        let (messages, receiver) = mpsc::channel(CAPACITY);
        (Arc::new(LogQueue { least, messages, dropped: AtomicU64::new(0) }), receiver)
    }

    /// Returns the queue of the request that this thread works for.
    pub(crate) fn current() -> Option<Arc<LogQueue>> {
        // Events in the destructors of a thread that ends belong to no request.
        CURRENT.try_with(|current| current.try_borrow().ok()?.clone()).ok().flatten()
    }

    pub(super) fn wants(&self, level: LogLevel) -> bool {
        level >= self.least
    }

    /// Queues a message without waiting. Returns `false` if the queue is full and the message is
    /// dropped. A message that comes after the end of the request is ignored.
    pub(super) fn push(&self, message: LogMessage) -> bool {
        let is_full = matches!(self.messages.try_send(message), Err(TrySendError::Full(_)));
        if is_full {
            self.dropped.fetch_add(1, Relaxed);
        }
        !is_full
    }

    /// A message that says how many were dropped.
    fn dropped_message(&self) -> Option<LogMessage> {
        let count = self.dropped.swap(0, Relaxed);
        if count == 0 || !self.wants(LogLevel::Warning) {
            return None;
        }
        let data = serde_json::json!({ "message": "log messages were dropped", "count": count });
        let mut message = LogMessage::new(LogLevel::Warning, data);
        message.logger = Some("turnbuckle".to_owned());
        Some(message)
    }
}

/// Makes this thread work for a request until it is dropped.
pub(crate) struct EnteredQueue(Option<Arc<LogQueue>>);

impl EnteredQueue {
    pub(crate) fn new(queue: Option<Arc<LogQueue>>) -> EnteredQueue {
        EnteredQueue(CURRENT.with(|current| current.replace(queue)))
    }
}

impl Drop for EnteredQueue {
    fn drop(&mut self) {
        let before = self.0.take();
        let _ = CURRENT.try_with(|current| current.replace(before));
    }
}

/// Runs the work of a request and sends its messages in order, all of them before the work is over.
pub(crate) async fn relay<T>(
    least: LogLevel,
    work: impl Future<Output = T>,
    mut send: impl FnMut(&mut Context<'_>, &LogMessage) -> Poll<()>,
) -> T {
    // Declared first, so that the queue is closed after the work is dropped: destructors may log.
    let (queue, mut receiver) = LogQueue::new(least);
    let mut work = pin!(work);
    let (mut done, mut sending) = (None, None);
    let mut next = |context: &mut Context<'_>| {
        // Not `poll_recv` alone: it may be pending although there are messages.
        let message = receiver.try_recv().ok().or_else(|| queue.dropped_message());
        message.or_else(|| match receiver.poll_recv(context) {
            Poll::Ready(message) => message,
            Poll::Pending => None,
        })
    };
    poll_fn(|context| {
        if done.is_none() {
            let entered = EnteredQueue::new(Some(queue.clone()));
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                done = Some(output);
            }
            drop(entered);
        }
        while let Some(message) = sending.take().or_else(|| next(context)) {
            if send(context, &message).is_pending() {
                sending = Some(message);
                return Poll::Pending;
            }
        }
        done.take().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
