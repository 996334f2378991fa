//! Owns what a handler in process says before its answer.
//! Does not own the handler: the exchange polls that itself.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use turnbuckle_types::{Raw, jsonrpc::Params};

use super::Direct;
use crate::{
    error::Error,
    rpc::{Exchange, Note, Outgoing, Transport},
};

/// A bounded queue between one handler and the exchange that polls it.
pub(crate) struct Notes {
    inner: Mutex<Inner>,
    limit: usize,
    /// The way to the client, for what the handler asks.
    back: Option<Arc<Direct>>,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Note>,
    stopped: Option<HandlerStopped>,
    /// Handlers' parts that wait for room.
    waiting: Vec<Waker>,
    exchange: Option<Waker>,
}

/// Why a handler is not polled any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandlerStopped {
    Cancelled,
    Closed,
}

impl Notes {
    pub(super) fn new(back: Option<Arc<Direct>>, limit: usize) -> Notes {
        Notes { inner: Mutex::default(), limit, back }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pop(&self) -> Option<Note> {
        let mut inner = self.lock();
        let note = inner.queue.pop_front()?;
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
        // Observers see what a call has used, here as on any wire.
        if let Some(back) = &self.back {
            back.0.serve.note(note.clone());
        }
        Some(note)
    }

    pub(super) fn stop(&self, stopped: HandlerStopped) {
        let mut inner = self.lock();
        inner.stopped.get_or_insert(stopped);
        inner.queue.clear();
        let mut wakers = std::mem::take(&mut inner.waiting);
        wakers.extend(inner.exchange.take());
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether the handler was stopped; the exchange is woken if it is later.
    pub(super) fn poll_stopped(&self, context: &mut Context<'_>) -> Option<HandlerStopped> {
        let mut inner = self.lock();
        inner.exchange = Some(context.waker().clone());
        inner.stopped
    }

    pub(crate) fn poll_push(
        &self,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        let mut inner = self.lock();
        if inner.stopped.is_some() {
            return Poll::Ready(());
        }
        if inner.queue.len() >= self.limit {
            inner.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        let mut text = Vec::new();
        render(&mut text);
        let params = Raw::from_encoded(text).and_then(|raw| Params::of(raw).ok());
        inner.queue.push_back(Note { method: method.into(), params: params.unwrap_or_default() });
        let exchange = inner.exchange.take();
        drop(inner);
        if let Some(exchange) = exchange {
            exchange.wake();
        }
        Poll::Ready(())
    }

    /// Leaves what the peer says of a question before it answers. One too many is dropped.
    pub(super) fn push(&self, note: Note) {
        let mut inner = self.lock();
        if inner.stopped.is_some() || inner.queue.len() >= self.limit {
            return;
        }
        inner.queue.push_back(note);
        let exchange = inner.exchange.take();
        drop(inner);
        if let Some(exchange) = exchange {
            exchange.wake();
        }
    }

    /// Ready when the exchange has taken everything, or the handler is stopped.
    pub(crate) fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.stopped.is_some() || inner.queue.is_empty() {
            return Poll::Ready(());
        }
        inner.waiting.push(context.waker().clone());
        Poll::Pending
    }

    pub(crate) fn ask(&self, request: Outgoing) -> Exchange {
        match &self.back {
            Some(back) => back.open(request),
            None => Exchange::failed(Error::refused("this side of the connection can't be asked")),
        }
    }
}
