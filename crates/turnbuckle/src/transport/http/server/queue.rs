//! Owns what a handler over HTTP has said and nobody has taken yet, as the text of events.
//! Does not own the handler, nor when the text is sent.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use turnbuckle_types::{Raw, jsonrpc};

use super::super::sse;
use crate::{
    dispatch::{Exchange, Outgoing, Replying},
    error::Error,
};

/// How much text may wait before a handler does.
const QUEUED_BYTES: usize = 256 * 1024;

/// A bounded queue between one handler and the answer that it becomes part of.
pub(crate) struct Queue {
    state: Mutex<State>,
    limit: usize,
}

#[derive(Default)]
struct State {
    /// Events, one after another, as they will be sent.
    text: Vec<u8>,
    /// How many they are.
    queued: usize,
    /// The request has ended: nothing is taken any more.
    closed: bool,
    farewell: Option<Raw>,
    /// Whoever polls the handler, while it waits.
    reader: Option<Waker>,
    /// Parts of the handler that wait for room.
    waiting: Vec<Waker>,
}

/// What a handler that is not ready has left behind.
#[derive(Debug, PartialEq)]
pub(super) enum Parked {
    /// Something to send.
    Said,
    /// Nothing; whoever polls is woken when there is.
    Silent,
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Queue {
        Queue { state: Mutex::default(), limit: limit.max(1) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handler is about to be polled: what it says meanwhile wakes nobody.
    pub(super) fn attend(&self) {
        self.lock().reader = None;
    }

    /// The handler waits: whatever is said from now on wakes `waker`.
    pub(super) fn park(&self, waker: &Waker) -> Parked {
        let mut state = self.lock();
        if state.text.is_empty() {
            state.reader = Some(waker.clone());
            return Parked::Silent;
        }
        Parked::Said
    }

    /// Takes what was said, which makes room.
    pub(super) fn take(&self) -> Vec<u8> {
        let mut state = self.lock();
        state.queued = 0;
        let text = std::mem::take(&mut state.text);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        text
    }

    /// Takes what was said last.
    pub(super) fn close(&self) -> Vec<u8> {
        self.lock().closed = true;
        self.take()
    }

    /// The result that ends this request in good order, if it has one.
    pub(super) fn farewell(&self) -> Option<Raw> {
        self.lock().farewell.take()
    }

    /// Makes whoever polls the handler look again.
    pub(super) fn wake(&self) {
        let reader = self.lock().reader.take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl State {
    fn wait_for_room(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }
}

impl Replying for Queue {
    fn poll_note(
        &self,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        let mut state = self.lock();
        if state.closed {
            return Poll::Ready(());
        }
        if state.queued >= self.limit || state.text.len() >= QUEUED_BYTES {
            state.wait_for_room(context.waker());
            return Poll::Pending;
        }
        state.queued += 1;
        let out = &mut state.text;
        out.extend_from_slice(sse::DATA);
        jsonrpc::write_notification(out, method, "");
        // The envelope closes with a brace; the params go before it.
        out.pop();
        out.extend_from_slice(br#","params":"#);
        render(out);
        out.push(b'}');
        out.extend_from_slice(sse::END);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Poll::Ready(())
    }

    fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.text.is_empty() || state.closed {
            return Poll::Ready(());
        }
        state.wait_for_room(context.waker());
        Poll::Pending
    }

    fn at_shutdown(&self, farewell: Raw) {
        self.lock().farewell = Some(farewell);
    }

    fn ask(&self, request: Outgoing) -> Exchange {
        Exchange::failed(Error::refused(format!(
            "`{}` can't be sent: over HTTP a server of this revision sends no requests",
            request.method
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        task::Wake,
    };

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn say(queue: &Queue, waker: &Waker, params: &str) -> Poll<()> {
        let mut render = |out: &mut Vec<u8>| out.extend_from_slice(params.as_bytes());
        queue.poll_note(&mut Context::from_waker(waker), "a/b", &mut render)
    }

    #[test]
    fn what_is_said_is_taken_together_and_in_order() {
        let queue = Queue::new(8);
        let waker = Waker::noop();
        assert_eq!(say(&queue, waker, r#"{"n":1}"#), Poll::Ready(()));
        assert_eq!(say(&queue, waker, r#"{"n":2}"#), Poll::Ready(()));
        let expected = "data: {\"jsonrpc\":\"2.0\",\"method\":\"a/b\",\"params\":{\"n\":1}}\n\n\
                        data: {\"jsonrpc\":\"2.0\",\"method\":\"a/b\",\"params\":{\"n\":2}}\n\n";
        assert_eq!(String::from_utf8(queue.take()).unwrap(), expected);
        assert_eq!(queue.park(waker), Parked::Silent);
    }

    #[test]
    fn who_speaks_too_fast_waits_and_is_woken_when_there_is_room() {
        for (limit, params) in [(1, "{}".to_owned()), (9, format!("\"{}\"", "x".repeat(1 << 18)))] {
            let queue = Queue::new(limit);
            let count = Arc::new(Count::default());
            let waker = Waker::from(count.clone());
            assert_eq!(say(&queue, &waker, &params), Poll::Ready(()));
            for _ in 0..3 {
                assert_eq!(say(&queue, &waker, "{}"), Poll::Pending);
            }
            assert!(!queue.take().is_empty());
            assert_eq!(count.0.load(Relaxed), 1);
            assert_eq!(say(&queue, &waker, "{}"), Poll::Ready(()));
        }
    }

    #[test]
    fn the_one_who_polls_is_woken_only_while_it_waits() {
        let queue = Queue::new(8);
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        assert_eq!(queue.park(&waker), Parked::Silent);
        queue.attend();
        assert_eq!(say(&queue, Waker::noop(), "{}"), Poll::Ready(()));
        assert_eq!(count.0.load(Relaxed), 0);
        assert_eq!(queue.park(&waker), Parked::Said);
        queue.take();
        assert_eq!(queue.park(&waker), Parked::Silent);
        assert_eq!(say(&queue, Waker::noop(), "{}"), Poll::Ready(()));
        assert_eq!(count.0.load(Relaxed), 1);
    }

    #[test]
    fn after_the_end_everything_said_is_dropped_and_nobody_waits() {
        let queue = Queue::new(1);
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        assert_eq!(say(&queue, &waker, "{}"), Poll::Ready(()));
        assert_eq!(say(&queue, &waker, "{}"), Poll::Pending);
        assert!(!queue.close().is_empty());
        assert_eq!(count.0.load(Relaxed), 1);
        assert_eq!(say(&queue, &waker, "{}"), Poll::Ready(()));
        assert!(queue.close().is_empty());
    }
}
