//! One stream of the server over all the connections that it takes: its messages and how far it
//! was read.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderValue;
use tokio::time::Instant;

use turnbuckle_types::RpcError;

use super::{HttpClientShared, resume::RetryDelay};
use crate::{
    error::Error,
    transport::http::{
        client::{
            events::{Ending, EventBody, NextEvent, message_of},
            stack::Body,
            timing::STREAM_LASTED,
        },
        sse,
    },
};

/// A stream.
pub(super) struct ResumableStream {
    events: EventBody,
    marks: Marks,
    /// Connections in a row that brought nothing.
    fruitless: u32,
    /// When this connection was made.
    since: Instant,
}

/// Where and when to take a stream up again.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    /// The last event that was delivered.
    pub(super) last: Option<HeaderValue>,
    pub(super) retry: RetryDelay,
}

/// What a stream brings.
pub(super) enum StreamItem {
    Message(Bytes),
    /// An event that is longer than it may be; reading can go on.
    TooLong,
    /// More than the stream may bring in all.
    TooMuch,
    /// An event that would use too much memory; reading can go on.
    OutOfMemory(RpcError),
    Ended(Ending),
}

impl ResumableStream {
    /// Without a body, its first connection is still to be made.
    pub(super) fn new(
        body: Option<Body>,
        wire: &HttpClientShared,
        most: Option<usize>,
    ) -> ResumableStream {
        ResumableStream {
            events: EventBody::new(body, wire, most),
            marks: Marks::default(),
            fruitless: 0,
            since: Instant::now(),
        }
    }

    /// The next message. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> StreamItem {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<StreamItem> {
        loop {
            let next = self.events.poll_next(context);
            self.mark();
            let next = match std::task::ready!(next) {
                NextEvent::Event(event) => {
                    self.fruitless = 0;
                    match message_of(event) {
                        Some(message) => StreamItem::Message(message),
                        None => continue,
                    }
                }
                NextEvent::TooLong => StreamItem::TooLong,
                NextEvent::TooMuch => StreamItem::TooMuch,
                NextEvent::OutOfMemory(refused) => StreamItem::OutOfMemory(refused),
                NextEvent::Ended(ending) => {
                    if self.since.elapsed() >= STREAM_LASTED {
                        self.fruitless = 0;
                    }
                    StreamItem::Ended(ending)
                }
            };
            return Poll::Ready(next);
        }
    }

    /// Takes note of how far it was read.
    fn mark(&mut self) {
        let sse::ResumePoint { id, retry } = self.events.reader().marks();
        if let Some(id) = id {
            // An empty id takes the mark back; one that fits no header can't be asked for.
            self.marks.last = Some(id)
                .filter(|id| !id.is_empty())
                .and_then(|id| HeaderValue::from_bytes(id).ok());
        }
        if let Some(retry) = retry {
            self.marks.retry = RetryDelay::Now(*retry);
        }
    }

    pub(super) fn marks(&self) -> &Marks {
        &self.marks
    }

    pub(super) fn fruitless(&self) -> u32 {
        self.fruitless
    }

    /// Whether the server can be asked for what came after what was read.
    pub(super) fn is_resumable(&self) -> bool {
        self.marks.last.is_some()
    }

    /// An attempt to go on came to nothing.
    pub(super) fn failed(&mut self) {
        self.fruitless = self.fruitless.saturating_add(1);
    }

    /// Goes on with another connection, which has yet to bring something.
    pub(super) fn renew(&mut self, body: Body) {
        self.failed();
        self.events.renew(body);
        self.since = Instant::now();
        if let RetryDelay::Now(time) = self.marks.retry {
            self.marks.retry = RetryDelay::Before(time);
        }
    }

    /// Lets the connection be used again once the stream ends, which should be now.
    pub(super) async fn finish(&mut self) {
        std::future::poll_fn(|context| {
            self.events.finish(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Returns the error for a stream that ended before it answered.
    pub(super) fn lost(&self, wire: &HttpClientShared, ending: Ending) -> Error {
        self.events.lost(wire, ending)
    }
}
