//! Owns log messages on their way from an event to the request in which it happened: a bounded
//! queue for each request, and which request the current thread works for.
//! Does not own the events, nor how a message is sent.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use turnbuckle_types::{LogLevel, LogMessage};

/// How many messages of one request may wait.
const WAITING: usize = 64;

/// Whether anything forwards events; until then nobody pays for it.
static FORWARDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: RefCell<Option<Arc<Queue>>> = const { RefCell::new(None) };
}

pub(super) fn forwarding() {
    FORWARDING.store(true, Ordering::Relaxed);
}

/// What waits to be sent for one request.
pub(crate) struct Queue {
    /// Nothing less severe is taken.
    least: LogLevel,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    messages: VecDeque<LogMessage>,
    dropped: u64,
    /// The request is over: spans that outlive it have nobody to tell.
    over: bool,
    /// Whoever sends them: events may come from another thread.
    sender: Option<Waker>,
}

impl Queue {
    pub(crate) fn new(least: LogLevel) -> Arc<Queue> {
        Arc::new(Queue { least, inner: Mutex::default() })
    }

    pub(crate) fn is_wanted(least: Option<LogLevel>) -> bool {
        least.is_some() && FORWARDING.load(Ordering::Relaxed)
    }

    /// A queue for a request whose client wants messages, if there will be any.
    pub(crate) fn wanted(least: Option<LogLevel>) -> Option<Arc<Queue>> {
        least.filter(|_| Queue::is_wanted(least)).map(Queue::new)
    }

    /// The queue of the request that this thread works for.
    pub(crate) fn current() -> Option<Arc<Queue>> {
        // An event in the drop glue of a thread that ends belongs to no request.
        CURRENT.try_with(|current| current.try_borrow().ok()?.clone()).ok().flatten()
    }

    pub(super) fn takes(&self, level: LogLevel) -> bool {
        level >= self.least
    }

    /// Never waits: a message too many is dropped and counted.
    pub(super) fn push(&self, message: LogMessage) -> Pushed {
        let sender = {
            let mut inner = self.lock();
            if inner.over {
                return Pushed::Over;
            }
            if inner.messages.len() == WAITING {
                inner.dropped += 1;
                return Pushed::Dropped;
            }
            inner.messages.push_back(message);
            inner.sender.take()
        };
        if let Some(sender) = sender {
            sender.wake();
        }
        Pushed::Queued
    }

    fn next(&self, context: &Context<'_>) -> Option<LogMessage> {
        let mut inner = self.lock();
        if let Some(message) = inner.messages.pop_front() {
            return Some(message);
        }
        let dropped = std::mem::take(&mut inner.dropped);
        if dropped > 0 && self.takes(LogLevel::Warning) {
            let data =
                serde_json::json!({ "message": "log messages were dropped", "count": dropped });
            let mut message = LogMessage::new(LogLevel::Warning, data);
            message.logger = Some("turnbuckle".to_owned());
            return Some(message);
        }
        inner.sender = Some(context.waker().clone());
        None
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a message found room.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    Queued,
    Dropped,
    Over,
}

/// Closes a queue when its request is over, however that comes.
struct CloseOnDrop(Arc<Queue>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.over = true;
        let messages = std::mem::take(&mut inner.messages);
        drop(inner);
        drop(messages);
    }
}

/// Makes this thread work for a request until it is dropped.
pub(crate) struct Entered(Option<Arc<Queue>>);

impl Entered {
    pub(crate) fn new(queue: Option<Arc<Queue>>) -> Entered {
        Entered(CURRENT.with(|current| current.replace(queue)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.0.take();
        let _ = CURRENT.try_with(|current| current.replace(before));
    }
}

/// Runs `work` for a request and sends what its events say, in order and before it is over.
pub(crate) async fn relayed<T>(
    queue: Arc<Queue>,
    work: impl Future<Output = T>,
    mut send: impl FnMut(&mut Context<'_>, &LogMessage) -> Poll<()>,
) -> T {
    // Outlives the work, whose drop glue may still log.
    let _close = CloseOnDrop(queue.clone());
    let mut work = pin!(work);
    let (mut done, mut sending) = (None, None);
    poll_fn(|context| {
        if done.is_none() {
            let entered = Entered::new(Some(queue.clone()));
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                done = Some(output);
            }
            drop(entered);
        }
        while let Some(message) = sending.take().or_else(|| queue.next(context)) {
            if send(context, &message).is_pending() {
                sending = Some(message);
                return Poll::Pending;
            }
        }
        done.take().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
