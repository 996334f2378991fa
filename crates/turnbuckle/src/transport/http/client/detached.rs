//! Owns a POST that goes on when its call is dropped, because the caller wished so.
//! Does not own the POST itself.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::mpsc;
use turnbuckle_types::RequestId;

use super::{Wire, post::Post};
use crate::{
    dispatch::{Event, Exchange, Outgoing, exchange::Drive},
    error::Error,
};

/// How many events may wait for a caller that does not poll.
const WAITING: usize = 64;

pub(super) enum Detached {
    New(Arc<Wire>, Option<Outgoing>),
    Running(mpsc::Receiver<Event>),
}

impl Detached {
    pub(super) fn new(wire: Arc<Wire>, request: Outgoing) -> Detached {
        Detached::New(wire, Some(request))
    }
}

impl Drive for Detached {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        if let Detached::New(wire, request) = &mut *self {
            let Some(request) = request.take() else { return Poll::Pending };
            let post = Exchange::new(Post::new(wire.clone(), request));
            let (events, receiver) = mpsc::channel(WAITING);
            tokio::spawn(hold(post, events));
            *self = Detached::Running(receiver);
        }
        let Detached::Running(events) = &mut *self else { return Poll::Pending };
        Poll::Ready(ready!(events.poll_recv(context)).unwrap_or_else(|| {
            Event::Done(Err(Error::refused("the runtime ended before the call did")))
        }))
    }

    fn reason(self: Pin<&mut Self>, _: String) {}

    fn id(&self) -> Option<&RequestId> {
        None
    }
}

/// Reads the POST to its end, whether or not anyone still listens.
async fn hold(mut post: Exchange, events: mpsc::Sender<Event>) {
    loop {
        let event = post.next().await;
        let is_end = matches!(event, Event::Done(_));
        let _ = events.send(event).await;
        if is_end {
            return;
        }
    }
}
