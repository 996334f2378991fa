//! Owns a request on its way out: entered on the first poll, taken back or cancelled on
//! drop. Does not own the table or the writer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use turnbuckle_types::{RequestId, jsonrpc};

use super::{ConnectionPhase, ConnectionShared, NOBODY, ResponseWaiter};
use crate::{
    error::{Error, Executed},
    rpc::{Abandon, ExchangeEvent, Note, Outgoing, exchange::Drive, pending::Serial},
};

/// A request of this side.
pub(super) struct OutboundRequest {
    shared: Arc<ConnectionShared>,
    stage: OutboundStage,
    reason: Option<String>,
}

enum OutboundStage {
    /// Nothing was written.
    New(Outgoing),
    /// In the table, and in the outbox or beyond.
    Sent {
        id: RequestId,
        serial: Serial,
        slot: Arc<ResponseWaiter>,
        abandon: Abandon,
    },
    Done {
        arrived: Option<u64>,
    },
}

impl OutboundRequest {
    pub(super) fn new(shared: Arc<ConnectionShared>, request: Outgoing) -> OutboundRequest {
        OutboundRequest { shared, stage: OutboundStage::New(request), reason: None }
    }

    /// Enters the request into table and outbox in one step, so that no answer can come
    /// before the entry and no drop can fall between the two.
    fn enter(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let OutboundStage::New(request) = &mut self.stage else { return Poll::Ready(Ok(())) };
        let shared = &self.shared;
        let slot = Arc::new(ResponseWaiter::default());
        let entered = shared.update(|state| {
            if let Some(closed) = state.closed().or(state.deaf.as_ref()) {
                return Poll::Ready(Err(closed.error(Executed::No)));
            }
            if state.outbox.bytes() > shared.high_water() {
                state.wait_for_room(context.waker());
                return Poll::Pending;
            }
            let (id, serial) = state
                .table
                .send(request.id.take(), slot.clone())
                .map_err(|collision| Error::id_in_flight(&collision.0))?;
            state.outbox.push(serial, |out| request.write(&id, out));
            Poll::Ready(Ok((id, serial)))
        });
        let (id, serial) = ready!(entered)?;
        self.stage = OutboundStage::Sent { id, serial, slot, abandon: request.abandon };
        Poll::Ready(Ok(()))
    }
}

impl Drive for OutboundRequest {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        if let Err(error) = ready!(self.enter(context)) {
            self.stage = OutboundStage::Done { arrived: None };
            return Poll::Ready(ExchangeEvent::Done(Err(error)));
        }
        let OutboundStage::Sent { slot, .. } = &self.stage else {
            return Poll::Ready(ExchangeEvent::Done(Err(Error::refused(
                "this call has already ended",
            ))));
        };
        let event = ready!(slot.poll(context));
        if matches!(event, ExchangeEvent::Done(_)) {
            self.stage = OutboundStage::Done { arrived: slot.arrived() };
        }
        Poll::Ready(event)
    }

    fn reason(mut self: Pin<&mut Self>, reason: String) {
        self.reason = Some(reason);
    }

    fn silence(mut self: Pin<&mut Self>) {
        if let OutboundStage::Sent { abandon, .. } = &mut self.stage {
            *abandon = Abandon::Silence;
        }
    }

    fn arrived(&self) -> Option<u64> {
        match &self.stage {
            OutboundStage::New(_) => None,
            OutboundStage::Sent { slot, .. } => slot.arrived(),
            OutboundStage::Done { arrived } => *arrived,
        }
    }

    fn take_lost(&self) -> bool {
        matches!(&self.stage, OutboundStage::Sent { slot, .. } if slot.take_lost())
    }

    fn id(&self) -> Option<&RequestId> {
        match &self.stage {
            OutboundStage::Sent { id, .. } => Some(id),
            OutboundStage::New(request) => request.id.as_ref(),
            OutboundStage::Done { .. } => None,
        }
    }
}

/// Never waits and never blocks: it takes the frame back if the writer has not begun it,
/// and otherwise leaves the cancel in the outbox.
impl Drop for OutboundRequest {
    fn drop(&mut self) {
        let OutboundStage::Sent { id, serial, abandon, .. } = &self.stage else { return };
        let reason = self.reason.as_deref().unwrap_or("caller cancelled");
        // What the slot holds is dropped after the lock is released: it is not ours.
        let _slot = self.shared.update(|state| {
            // `None`: answered meanwhile, or the connection is gone.
            let slot = state.table.abandon(id, *serial)?;
            let unwritten = state.outbox.retract(*serial) > 0;
            if !unwritten && *abandon == Abandon::Signal && state.closed().is_none() {
                state.outbox.push(NOBODY, |out| write_cancel(out, id, reason));
            }
            Some(slot)
        });
    }
}

pub(crate) fn write_cancel(out: &mut Vec<u8>, id: &RequestId, reason: &str) {
    out.extend_from_slice(
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
    );
    id.write_to(out);
    out.extend_from_slice(br#","reason":"#);
    // Writing a string to a Vec can't fail.
    let _ = serde_json::to_writer(&mut *out, reason);
    out.extend_from_slice(b"}}");
}

/// Sends a notification once there is room. Dropping the future before that sends nothing.
pub(super) async fn notify(shared: &Arc<ConnectionShared>, note: Note) {
    std::future::poll_fn(|context| {
        shared.update(|state| {
            if state.closed().is_some() {
                tracing::debug!(method = %note.method, "a notification after the close is dropped");
                return Poll::Ready(());
            }
            if state.outbox.bytes() > shared.high_water() {
                state.wait_for_room(context.waker());
                return Poll::Pending;
            }
            let params = note.params.raw.as_ref().map_or("", |raw| raw.as_str());
            state.outbox.push(NOBODY, |out| jsonrpc::write_notification(out, &note.method, params));
            Poll::Ready(())
        })
    })
    .await;
}

/// Waits until the connection is gone.
pub(super) async fn closed(shared: &Arc<ConnectionShared>) {
    std::future::poll_fn(|context| {
        let mut state = shared.lock();
        if matches!(state.phase, ConnectionPhase::Closed(_)) {
            return Poll::Ready(());
        }
        if !state.closing.iter().any(|waker| waker.will_wake(context.waker())) {
            state.closing.push(context.waker().clone());
        }
        Poll::Pending
    })
    .await;
}
