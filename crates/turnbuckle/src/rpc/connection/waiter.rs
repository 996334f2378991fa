//! Owns the meeting point of the reader and one waiting caller.
//! Does not own the table that finds it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use crate::{
    error::Error,
    rpc::{ExchangeEvent, Note, memory::HeldBytes},
};
use turnbuckle_types::Raw;

/// Notifications in order, then the end. The reader fills it and never waits for it.
#[derive(Default)]
pub(super) struct ResponseWaiter(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    notes: VecDeque<(Note, Option<Arc<HeldBytes>>)>,
    end: Option<Result<Raw, Error>>,
    /// The memory of the response, until the caller takes it.
    held: Option<Arc<HeldBytes>>,
    /// When the end came, counted over all answers of the connection.
    arrived: Option<u64>,
    waker: Option<Waker>,
    /// Whether a notification gave way since this was last asked.
    lost: bool,
}

/// How much room a notification has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    /// The caller should take some before more is read.
    Little,
    /// Another one gave way.
    None,
}

impl ResponseWaiter {
    /// Queues a notification; past `limit` the oldest gives way.
    pub(super) fn note(&self, note: (Note, Option<Arc<HeldBytes>>), limit: usize) -> Room {
        let mut inner = self.lock();
        let full = inner.notes.len() >= limit;
        while inner.notes.len() >= limit.max(1) {
            inner.notes.pop_front();
            inner.lost = true;
        }
        inner.notes.push_back(note);
        let waiting = inner.notes.len();
        wake(inner);
        match full {
            true => Room::None,
            false if waiting > limit / 2 => Room::Little,
            false => Room::Enough,
        }
    }

    /// Sets the end. Only the table's owner calls this, once.
    pub(super) fn end(&self, end: Result<Raw, Error>, held: Option<Arc<HeldBytes>>, arrived: u64) {
        let mut inner = self.lock();
        inner.held = held;
        inner.end = Some(end);
        inner.arrived = Some(arrived);
        wake(inner);
    }

    pub(super) fn arrived(&self) -> Option<u64> {
        self.lock().arrived
    }

    /// Whether a notification gave way since this was last asked.
    pub(super) fn take_lost(&self) -> bool {
        std::mem::take(&mut self.lock().lost)
    }

    /// What came next: every notification before the end.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        let mut inner = self.lock();
        if let Some((note, _)) = inner.notes.pop_front() {
            return Poll::Ready(ExchangeEvent::Note(note));
        }
        if let Some(end) = inner.end.take() {
            inner.held = None;
            return Poll::Ready(ExchangeEvent::Done(end));
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        crate::rpc::lock(&self.0)
    }
}

fn wake(mut inner: std::sync::MutexGuard<'_, Inner>) {
    let waker = inner.waker.take();
    drop(inner);
    if let Some(waker) = waker {
        waker.wake();
    }
}
