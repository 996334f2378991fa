//! Owns what a caller holds while a request is in flight.
//! Does not own how it is abandoned: each transport's own drop does that.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use turnbuckle_types::{Raw, RequestId};

use super::Note;
use crate::error::Error;

/// One request in flight: notifications that belong to it, then exactly one end.
///
/// Lazy: nothing is sent before the first poll. Dropping it abandons the request.
pub struct Exchange(Pin<Box<dyn Drive>>);

/// What an exchange yields.
#[derive(Debug)]
pub enum ExchangeEvent {
    /// A notification that belongs to this request.
    Note(Note),
    /// The end. Nothing follows.
    Done(Result<Raw, Error>),
}

/// A transport's part of an exchange.
pub(crate) trait Drive: Send {
    /// Never polled again after `Done`.
    fn poll_event(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent>;
    /// What the drop will say; "caller cancelled" if nothing was set.
    fn reason(self: Pin<&mut Self>, reason: String);
    /// The peer has ended it without an answer: the drop has nothing to say.
    fn silence(self: Pin<&mut Self>) {}
    /// When the end came, counted over all answers of the connection; `None` before.
    fn arrived(&self) -> Option<u64> {
        None
    }
    /// Whether a notification that nobody polled for has given way since this was last asked.
    fn take_lost(&self) -> bool {
        false
    }
    /// The id, once it has one.
    fn id(&self) -> Option<&RequestId>;
}

impl Exchange {
    pub(crate) fn new(drive: impl Drive + 'static) -> Exchange {
        Exchange(Box::pin(drive))
    }

    /// An exchange that ends before anything is sent.
    pub(crate) fn failed(error: Error) -> Exchange {
        Exchange::new(FailedExchange(Some(error)))
    }

    /// The next event. Dropping the returned future loses nothing.
    pub(crate) async fn next(&mut self) -> ExchangeEvent {
        std::future::poll_fn(|context| self.poll_event(context)).await
    }

    /// Polls for the next event.
    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        self.0.as_mut().poll_event(context)
    }

    /// Sets what the drop will tell the peer.
    pub(crate) fn reason(&mut self, reason: String) {
        self.0.as_mut().reason(reason);
    }

    /// Makes the drop say nothing, because the peer has ended this itself.
    pub fn silence(&mut self) {
        self.0.as_mut().silence();
    }

    /// When the end came, counted over all answers of the connection; `None` before.
    #[cfg(feature = "client")]
    pub(crate) fn arrived(&self) -> Option<u64> {
        self.0.arrived()
    }

    /// Whether a notification that nobody polled for has given way since this was last asked.
    #[cfg(feature = "client")]
    pub(crate) fn take_lost(&self) -> bool {
        self.0.take_lost()
    }

    /// The id, once it has one.
    #[cfg(feature = "client")]
    pub(crate) fn id(&self) -> Option<&RequestId> {
        self.0.id()
    }

    /// Waits for the end and forgets the notifications.
    pub async fn done(mut self) -> Result<Raw, Error> {
        loop {
            if let ExchangeEvent::Done(result) = self.next().await {
                return result;
            }
        }
    }
}

struct FailedExchange(Option<Error>);

impl Drive for FailedExchange {
    fn poll_event(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<ExchangeEvent> {
        let error = self.0.take().unwrap_or_else(|| Error::refused("this call has already ended"));
        Poll::Ready(ExchangeEvent::Done(Err(error)))
    }

    fn reason(self: Pin<&mut Self>, _: String) {}

    fn id(&self) -> Option<&RequestId> {
        None
    }
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("id", &self.0.id()).finish_non_exhaustive()
    }
}
