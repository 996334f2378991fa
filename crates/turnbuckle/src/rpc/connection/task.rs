//! Owns the peer's requests while they run: the task, its answer, its notifications.
//! Does not own which requests run: the table does.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use tokio::task::AbortHandle;
use turnbuckle_types::{Raw, RequestId, RpcError, jsonrpc};

use super::{ConnectionShared, batch::BatchGroup};
#[cfg(all(feature = "http", feature = "server"))]
use crate::rpc::Replying;
use crate::rpc::{
    BoxFuture, Exchange, Outcome, Outgoing,
    connection::write_queue::{Moment, Outbox},
    in_process,
    pending::Serial,
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
    counted_at: Moment,
}

impl RunningHandler {
    pub(super) fn new(id: RequestId, batch: Option<Arc<BatchGroup>>) -> RunningHandler {
        RunningHandler {
            id,
            task: None,
            batch,
            farewell: None,
            queued: 0,
            counted_at: Moment::default(),
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

/// The error for a panic. Its payload goes to the log and nowhere else.
pub(crate) fn panicked(id: &RequestId, payload: &(dyn Any + Send)) -> RpcError {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is not text");
    tracing::error!(%id, panic = text, "a handler panicked");
    RpcError::internal("internal error")
}

/// Counts a request as in flight for as long as it lives.
pub(crate) struct Permit(Arc<AtomicUsize>);

impl Permit {
    /// One more, unless that would be more than `limit`.
    pub(crate) fn take(in_flight: &Arc<AtomicUsize>, limit: usize) -> Result<Permit, RpcError> {
        let before = in_flight.fetch_add(1, Relaxed);
        let permit = Permit(in_flight.clone());
        if before < limit {
            return Ok(permit);
        }
        Err(RpcError::internal(format!(
            "too many requests in flight on this connection: the limit is {limit} (in_flight)"
        )))
    }
}

#[cfg(feature = "server")]
impl Permit {
    /// What counts the requests of its connection.
    pub(crate) fn counter(&self) -> Arc<AtomicUsize> {
        self.0.clone()
    }

    /// The same request again, which had its place before.
    pub(crate) fn another(in_flight: &Arc<AtomicUsize>) -> Permit {
        in_flight.fetch_add(1, Relaxed);
        Permit(in_flight.clone())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// The way to send what belongs to one running request.
#[derive(Clone)]
pub(crate) struct Replies(Way);

#[derive(Clone)]
enum Way {
    Stream {
        shared: Arc<ConnectionShared>,
        id: RequestId,
        serial: Serial,
    },
    Direct(Arc<in_process::Notes>),
    #[cfg(all(feature = "http", feature = "server"))]
    /// On an HTTP response, for one of its requests.
    Http(Arc<dyn Replying>, Option<Serial>),
    /// Of a client over HTTP, which says nothing but its answer.
    #[cfg(all(
        feature = "http",
        any(feature = "client", all(feature = "auth", feature = "server"))
    ))]
    Nowhere,
}

impl Replies {
    pub(super) fn stream(shared: Arc<ConnectionShared>, id: RequestId, serial: Serial) -> Replies {
        Replies(Way::Stream { shared, id, serial })
    }

    pub(crate) fn direct(notes: Arc<in_process::Notes>) -> Replies {
        Replies(Way::Direct(notes))
    }

    /// Sends on an HTTP response, for `request` if it answers several.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn http(stream: Arc<dyn Replying>, request: Option<Serial>) -> Replies {
        Replies(Way::Http(stream, request))
    }

    /// For a side that says nothing but its answer.
    #[cfg(all(
        feature = "http",
        any(feature = "client", all(feature = "auth", feature = "server"))
    ))]
    pub(crate) fn nowhere() -> Replies {
        Replies(Way::Nowhere)
    }

    /// Queues a notification whose params `render` appends. Pending while the request has
    /// too many waiting; a no-op once it has ended.
    pub(crate) fn poll_note(
        &self,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        match &self.0 {
            Way::Stream { shared, id, serial } => shared.update(|state| {
                let Some(handler) = state.table.running(id, *serial) else {
                    return Poll::Ready(());
                };
                if handler.waiting(&state.outbox, *serial) >= shared.limits.queued_notifications {
                    state.wait_for_room(context.waker());
                    return Poll::Pending;
                }
                handler.queued += 1;
                state.outbox.push(*serial, |out| {
                    jsonrpc::write_notification(out, method, "");
                    // The envelope closes with a brace; the params go before it.
                    out.pop();
                    out.extend_from_slice(br#","params":"#);
                    render(out);
                    out.push(b'}');
                });
                Poll::Ready(())
            }),
            Way::Direct(notes) => notes.poll_push(context, method, render),
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, request) => stream.poll_note(*request, context, method, render),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => Poll::Ready(()),
        }
    }

    /// Ready when no notification of this request waits to be sent, or it has ended.
    pub(crate) fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        match &self.0 {
            Way::Stream { shared, id, serial } => shared.update(|state| {
                let Some(handler) = state.table.running(id, *serial) else {
                    return Poll::Ready(());
                };
                if handler.waiting(&state.outbox, *serial) > 0 {
                    state.wait_for_room(context.waker());
                    return Poll::Pending;
                }
                Poll::Ready(())
            }),
            Way::Direct(notes) => notes.poll_clear(context),
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, _) => stream.poll_clear(context),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => Poll::Ready(()),
        }
    }

    /// Sets the result that an orderly shutdown of this side gives, instead of an error.
    pub(crate) fn at_shutdown(&self, farewell: Raw) {
        match &self.0 {
            Way::Stream { shared, id, serial } => {
                if let Some(handler) = shared.lock().table.running(id, *serial) {
                    handler.farewell = Some(Box::new(farewell));
                }
            }
            Way::Direct(_) => {}
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, _) => stream.at_shutdown(farewell),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => {}
        }
    }

    /// Ends the connection on which the answer travels, where the client can come back for the rest.
    pub(crate) fn release(&self) {
        match &self.0 {
            Way::Stream { .. } | Way::Direct(_) => {}
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, _) => stream.release(),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => {}
        }
    }

    /// Asks the peer something that belongs to this request.
    pub(crate) fn ask(&self, request: Outgoing) -> Exchange {
        match &self.0 {
            Way::Stream { shared, .. } => Exchange::new(
                crate::rpc::connection::outbound::OutboundRequest::new(shared.clone(), request),
            ),
            Way::Direct(notes) => notes.ask(request),
            #[cfg(all(feature = "http", feature = "server"))]
            Way::Http(stream, own) => stream.clone().ask(*own, request),
            #[cfg(all(
                feature = "http",
                any(feature = "client", all(feature = "auth", feature = "server"))
            ))]
            Way::Nowhere => {
                Exchange::failed(crate::error::Error::refused("nothing can be asked here"))
            }
        }
    }
}
