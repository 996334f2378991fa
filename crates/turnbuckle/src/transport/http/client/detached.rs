//! A POST that goes on when its call is dropped, because the caller asked for that.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::sync::mpsc;
use turnbuckle_types::RequestId;

use super::timing::WAITING_EVENTS;
use crate::{
    error::Error,
    rpc::{Exchange, ExchangeEvent, exchange::Drive},
};

pub(super) enum Detached {
    New(Option<Exchange>),
    Running(mpsc::Receiver<ExchangeEvent>),
}

impl Detached {
    pub(super) fn new(post: Exchange) -> Detached {
        Detached::New(Some(post))
    }
}

impl Drive for Detached {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        if let Detached::New(post) = &mut *self {
            let Some(post) = post.take() else { return Poll::Pending };
            let (events, receiver) = mpsc::channel(WAITING_EVENTS);
            tokio::spawn(hold(post, events));
            *self = Detached::Running(receiver);
        }
        let Detached::Running(events) = &mut *self else { return Poll::Pending };
        Poll::Ready(ready!(events.poll_recv(context)).unwrap_or_else(|| {
            ExchangeEvent::Done(Err(Error::refused("the runtime ended before the call did")))
        }))
    }

    fn reason(self: Pin<&mut Self>, _: String) {}

    fn id(&self) -> Option<&RequestId> {
        None
    }
}

/// Reads the POST to its end, whether or not anyone still listens.
async fn hold(mut post: Exchange, events: mpsc::Sender<ExchangeEvent>) {
    loop {
        let event = post.next().await;
        let is_end = matches!(event, ExchangeEvent::Done(_));
        let _ = events.send(event).await;
        if is_end {
            return;
        }
    }
}
