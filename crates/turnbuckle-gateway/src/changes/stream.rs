//! A listen stream that the gateway opens on a modern server, and the stream that it replaces.

use std::{future::poll_fn, task::Poll, time::Duration};

use tokio::time::Instant;
use turnbuckle::{
    __seam::{Exchange, ExchangeEvent, Note},
    Error, ErrorKind,
    types::Method,
};

use crate::{
    call::{ServerMessage, is},
    translate,
    upstream::InFlightGuard,
};

/// How long a replaced stream is still read.
const LINGER: Duration = Duration::from_millis(250);
/// The most notifications that are remembered to recognize them on the other stream.
const MAX_UNMATCHED: usize = 1024;

/// A listen stream of the gateway.
pub(super) struct ChangeStream {
    pub(super) in_flight: InFlightGuard,
    pub(super) exchange: Exchange,
}

pub(super) enum StreamStep {
    Notification(Note),
    Ended(StreamEnd),
}

/// Why a stream ended.
pub(super) enum StreamEnd {
    /// The server ended it in good order.
    Finished,
    Failed(Error),
}

impl StreamEnd {
    /// Returns whether opening another stream may succeed.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            StreamEnd::Finished => true,
            StreamEnd::Failed(error) => error.is_retryable() && error.kind() != ErrorKind::Limit,
        }
    }
}

impl std::fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StreamEnd::Finished => f.write_str("the server ended the stream"),
            StreamEnd::Failed(error) => error.fmt(f),
        }
    }
}

impl ChangeStream {
    /// Returns the next notification, or the end. Dropping the future loses nothing.
    pub(super) async fn step(&mut self) -> StreamStep {
        let ChangeStream { in_flight, exchange } = self;
        poll_fn(|context| {
            loop {
                if let Poll::Ready(message) = in_flight.request.poll_message(context) {
                    match message {
                        ServerMessage::Notification(note) => {
                            return Poll::Ready(StreamStep::Notification(note));
                        }
                        ServerMessage::Question(_) => continue,
                    }
                }
                let Poll::Ready(event) = exchange.poll_event(context) else { return Poll::Pending };
                match event {
                    ExchangeEvent::Note(note) if is(&note, Method::Cancelled) => {
                        exchange.silence();
                        return Poll::Ready(StreamStep::Ended(StreamEnd::Finished));
                    }
                    ExchangeEvent::Note(_) => {}
                    ExchangeEvent::Done(Ok(_)) => {
                        return Poll::Ready(StreamStep::Ended(StreamEnd::Finished));
                    }
                    ExchangeEvent::Done(Err(error)) => {
                        return Poll::Ready(StreamStep::Ended(StreamEnd::Failed(error)));
                    }
                }
            }
        })
        .await
    }
}

/// Returns the next step of a stream; never, if there is none.
pub(super) async fn step(stream: &mut Option<ChangeStream>) -> StreamStep {
    match stream {
        Some(stream) => stream.step().await,
        None => std::future::pending().await,
    }
}

/// A stream that was replaced. Notifications that the server sent before it knew the new stream may
/// still arrive here; those that arrive on both are forwarded once.
pub(super) struct ReplacedStream {
    stream: Option<ChangeStream>,
    until: Instant,
    /// Notifications that arrived on one stream, and not yet on the other.
    unmatched: Vec<(Source, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Current,
    Replaced,
}

impl ReplacedStream {
    pub(super) fn new(stream: Option<ChangeStream>) -> ReplacedStream {
        ReplacedStream { stream, until: Instant::now() + LINGER, unmatched: Vec::new() }
    }

    /// Returns its next notification; never, once it is over. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Note {
        let step = tokio::time::timeout_at(self.until, step(&mut self.stream)).await;
        if let Ok(StreamStep::Notification(note)) = step {
            return note;
        }
        self.stream = None;
        std::future::pending().await
    }

    /// Returns whether a notification has not arrived on the other stream.
    pub(super) fn is_new(&mut self, note: &Note, source: Source) -> bool {
        if self.stream.is_none() {
            return true;
        }
        let params = translate::with_subscription_id(note.params.text(), None);
        let text = [&note.method, " ", &*params].concat();
        let is_match = |(other, known): &(Source, String)| *other != source && *known == text;
        if let Some(at) = self.unmatched.iter().position(is_match) {
            self.unmatched.swap_remove(at);
            return false;
        }
        // Beyond the limit a notification may be forwarded twice, which does no harm.
        if self.unmatched.len() < MAX_UNMATCHED {
            self.unmatched.push((source, text));
        }
        true
    }
}
