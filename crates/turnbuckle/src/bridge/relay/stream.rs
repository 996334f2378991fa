//! Owns one stream of changes that a bridge listens to itself, and the one that it took the place
//! of. Does not own when one is opened, nor who is told.

use std::{future::poll_fn, task::Poll, time::Duration};

use tokio::time::Instant;
use turnbuckle_types::Method;

use super::super::{call::is, flight::Told, router::Entered, translate};
use crate::{
    dispatch::{Event, Exchange, Note},
    error::{Error, ErrorKind},
};

/// How long a stream that was replaced is still listened to.
const LINGER: Duration = Duration::from_millis(250);
/// How much of what was heard on one of two streams is kept to be told from what comes on the other.
const UNMATCHED: usize = 1024;

/// A stream of the bridge's own.
pub(super) struct Stream {
    pub(super) entered: Entered,
    pub(super) exchange: Exchange,
}

pub(super) enum Step {
    Told(Note),
    Ended(End),
}

/// How a stream ended.
pub(super) enum End {
    /// In good order.
    Farewell,
    Failed(Error),
}

impl End {
    /// Whether another may be had.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            End::Farewell => true,
            End::Failed(error) => error.is_retryable() && error.kind() != ErrorKind::Limit,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Farewell => f.write_str("the server ended the stream"),
            End::Failed(error) => error.fmt(f),
        }
    }
}

impl Stream {
    /// What it says next. Dropping the future loses nothing.
    pub(super) async fn step(&mut self) -> Step {
        let Stream { entered, exchange } = self;
        poll_fn(|context| {
            loop {
                if let Poll::Ready(told) = entered.flight.poll_told(context) {
                    match told {
                        Told::Note(note) => return Poll::Ready(Step::Told(note)),
                        Told::Asked(_) => continue,
                    }
                }
                let Poll::Ready(event) = exchange.poll_event(context) else { return Poll::Pending };
                match event {
                    Event::Note(note) if is(&note, Method::Cancelled) => {
                        exchange.silence();
                        return Poll::Ready(Step::Ended(End::Farewell));
                    }
                    Event::Note(_) => {}
                    Event::Done(Ok(_)) => return Poll::Ready(Step::Ended(End::Farewell)),
                    Event::Done(Err(error)) => {
                        return Poll::Ready(Step::Ended(End::Failed(error)));
                    }
                }
            }
        })
        .await
    }
}

/// What a stream says next; never anything if there is none.
pub(super) async fn step(stream: &mut Option<Stream>) -> Step {
    match stream {
        Some(stream) => stream.step().await,
        None => std::future::pending().await,
    }
}

/// A stream that was replaced. What the server said on it before it knew of the next one may still
/// be on its way; what it says on both is told once.
pub(super) struct Leaving {
    stream: Option<Stream>,
    until: Instant,
    /// What was heard on one side and not yet on the other.
    unmatched: Vec<(Side, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Current,
    Leaving,
}

impl Leaving {
    pub(super) fn new(stream: Option<Stream>) -> Leaving {
        Leaving { stream, until: Instant::now() + LINGER, unmatched: Vec::new() }
    }

    /// What is still said on it. Pending for ever once it is over. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Note {
        let told = tokio::time::timeout_at(self.until, step(&mut self.stream)).await;
        if let Ok(Step::Told(note)) = told {
            return note;
        }
        self.stream = None;
        std::future::pending().await
    }

    pub(super) fn is_news(&mut self, note: &Note, side: Side) -> bool {
        if self.stream.is_none() {
            return true;
        }
        let what =
            [&note.method, " ", &*translate::subscription(note.params.text(), None)].concat();
        let other = |(heard, known): &(Side, String)| *heard != side && *known == what;
        if let Some(at) = self.unmatched.iter().position(other) {
            self.unmatched.swap_remove(at);
            return false;
        }
        // Past that something is told twice, which does no harm.
        if self.unmatched.len() < UNMATCHED {
            self.unmatched.push((side, what));
        }
        true
    }
}
