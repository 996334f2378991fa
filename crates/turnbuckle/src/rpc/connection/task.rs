//! The peer's requests while they run: the task, its response, its notifications.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::task::AbortHandle;
use turnbuckle_types::{Raw, RequestId, jsonrpc};

use super::{ConnectionShared, batch::BatchGroup, outbound::OutboundRequest};
use crate::rpc::{
    BoxFuture, Exchange, Outcome, Outgoing,
    connection::write_queue::{Outbox, QueueMoment},
    pending::Serial,
    replies::panicked,
};

/// What the table keeps of a running request.
pub(super) struct RunningHandler {
    pub(super) id: RequestId,
    /// `None` until the handler's task exists.
    pub(super) task: Option<AbortHandle>,
    /// Where the answer goes instead of the wire, if the request came in a batch.
    pub(super) batch: Option<Arc<BatchGroup>>,
    /// The result that an orderly shutdown gives, for a request that is not unfinished
    /// work: a listen stream.
    pub(super) farewell: Option<Box<Raw>>,
    /// Notifications that wait, as of `counted_at` and what was pushed since.
    queued: usize,
    counted_at: QueueMoment,
}

impl RunningHandler {
    pub(super) fn new(id: RequestId, batch: Option<Arc<BatchGroup>>) -> RunningHandler {
        RunningHandler {
            id,
            task: None,
            batch,
            farewell: None,
            queued: 0,
            counted_at: QueueMoment::default(),
        }
    }

    /// How many of its notifications wait to be written.
    fn waiting(&mut self, outbox: &Outbox, serial: Serial) -> usize {
        let now = outbox.now();
        if self.counted_at != now {
            // Since then some have left, and some may have been put back.
            self.queued = outbox.count_since(self.counted_at, serial);
            self.counted_at = now;
        }
        self.queued
    }

    /// Drops the handler's future, at its next scheduling step.
    pub(super) fn stop(self) {
        if let Some(task) = self.task {
            task.abort();
        }
    }
}

/// The task of one handler: it answers by returning, and turns a panic into an error.
pub(super) struct HandlerTask {
    pub(super) shared: Arc<ConnectionShared>,
    pub(super) id: RequestId,
    pub(super) serial: Serial,
    pub(super) handler: BoxFuture<'static, Outcome>,
}

impl Future for HandlerTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let polled = catch_unwind(AssertUnwindSafe(|| this.handler.as_mut().poll(context)));
        let outcome = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(payload) => Err(panicked(&this.id, payload.as_ref())),
        };
        this.shared.finish(&this.id, this.serial, outcome);
        Poll::Ready(())
    }
}

/// Sends the messages of one running request of a stream connection.
#[derive(Clone)]
pub(crate) struct ConnectionReplies {
    pub(super) shared: Arc<ConnectionShared>,
    pub(super) id: RequestId,
    pub(super) serial: Serial,
}

impl ConnectionReplies {
    /// Queues a notification. Pending while the request has too many waiting; a no-op once it has
    /// ended.
    pub(crate) fn poll_note(
        &self,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        self.shared.update(|state| {
            let Some(handler) = state.table.running(&self.id, self.serial) else {
                return Poll::Ready(());
            };
            let limit = self.shared.limits.queued_notifications;
            if handler.waiting(&state.outbox, self.serial) >= limit {
                state.wait_for_room(context.waker());
                return Poll::Pending;
            }
            handler.queued += 1;
            state.outbox.push(self.serial, |out| {
                jsonrpc::write_notification(out, method, "");
                // The envelope closes with a brace; the params go before it.
                out.pop();
                out.extend_from_slice(br#","params":"#);
                render(out);
                out.push(b'}');
            });
            Poll::Ready(())
        })
    }

    /// Ready when no notification of this request waits to be written, or it has ended.
    pub(crate) fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        self.shared.update(|state| {
            let Some(handler) = state.table.running(&self.id, self.serial) else {
                return Poll::Ready(());
            };
            if handler.waiting(&state.outbox, self.serial) > 0 {
                state.wait_for_room(context.waker());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
    }

    /// Sets the result that an orderly shutdown of this side gives, instead of an error.
    pub(crate) fn at_shutdown(&self, farewell: Raw) {
        if let Some(handler) = self.shared.lock().table.running(&self.id, self.serial) {
            handler.farewell = Some(Box::new(farewell));
        }
    }

    /// Sends a request to the peer.
    pub(crate) fn ask(&self, request: Outgoing) -> Exchange {
        Exchange::new(OutboundRequest::new(self.shared.clone(), request))
    }
}
