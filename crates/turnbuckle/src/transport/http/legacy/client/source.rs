//! Owns one stream of the server over all the connections that it takes: its messages, how far it
//! was read, and how each connection ended. Does not own what the messages mean.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderValue;
use tokio::time::Instant;

use super::{Wire, resume::Retry};
use crate::{
    error::{Error, ErrorKind, Executed},
    transport::http::{
        client::stack::{Body, BoxError, Failure},
        sse,
    },
};

/// How long the end of a stream may trail its last event before the connection is given up.
const TRAILING: Duration = Duration::from_millis(500);

/// A connection that lasted for so long was not in vain, even if nothing was said on it.
const LASTING: Duration = Duration::from_secs(10);

/// A stream.
pub(super) struct Source {
    /// `None` once this connection has ended.
    body: Option<Body>,
    reader: sse::Reader,
    longest: usize,
    /// How many bytes may still come.
    left: Option<usize>,
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
    pub(super) retry: Retry,
}

/// What a stream brings.
pub(super) enum Next {
    Message(Bytes),
    /// An event that is longer than it may be; reading can go on.
    TooLong,
    /// More than the stream may bring in all.
    TooMuch,
    Ended(Ending),
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Ending {
    Clean,
    Broken(BoxError),
}

impl Source {
    pub(super) fn new(body: Body, longest: usize, most: Option<usize>) -> Source {
        Source { body: Some(body), left: most, ..Source::unopened(longest) }
    }

    /// A stream that could not be opened yet: its first connection is to be made.
    pub(super) fn unopened(longest: usize) -> Source {
        Source {
            body: None,
            reader: sse::Reader::new(longest),
            longest,
            left: None,
            marks: Marks::default(),
            fruitless: 0,
            since: Instant::now(),
        }
    }

    /// The next message. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Next {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        loop {
            while let Some(found) = self.reader.next() {
                let Ok(event) = found else { return Poll::Ready(Next::TooLong) };
                self.mark();
                self.fruitless = 0;
                // Only events of the default kind are messages; an empty one is but a mark.
                if event.kind.is_none() && !event.data.is_empty() {
                    return Poll::Ready(Next::Message(event.data));
                }
            }
            self.mark();
            let Some(body) = &mut self.body else {
                return Poll::Ready(Next::Ended(Ending::Clean));
            };
            match ready!(body.poll_chunk(context)) {
                Some(Ok(chunk)) => {
                    if let Some(left) = &mut self.left {
                        match left.checked_sub(chunk.len()) {
                            Some(less) => *left = less,
                            None => return Poll::Ready(Next::TooMuch),
                        }
                    }
                    self.reader.push(chunk);
                }
                Some(Err(error)) => return Poll::Ready(self.end(Ending::Broken(error))),
                None => return Poll::Ready(self.end(Ending::Clean)),
            }
        }
    }

    fn end(&mut self, ending: Ending) -> Next {
        self.body = None;
        if self.since.elapsed() >= LASTING {
            self.fruitless = 0;
        }
        Next::Ended(ending)
    }

    /// Takes note of how far it was read.
    fn mark(&mut self) {
        let sse::Marks { id, retry } = self.reader.marks();
        if let Some(id) = id {
            // An empty id takes the mark back; one that fits no header can't be asked for.
            self.marks.last = Some(id)
                .filter(|id| !id.is_empty())
                .and_then(|id| HeaderValue::from_bytes(id).ok());
        }
        if let Some(retry) = retry {
            self.marks.retry = Retry::Now(*retry);
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
        self.body = Some(body);
        self.since = Instant::now();
        self.reader = sse::Reader::new(self.longest);
        if let Retry::Now(time) = self.marks.retry {
            self.marks.retry = Retry::Before(time);
        }
    }

    /// The stream should end now. If its end is already here, or comes at once, the connection
    /// can be used again.
    pub(super) async fn finish(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        let at_once = std::future::poll_fn(|context| Poll::Ready(body.poll_chunk(context)));
        if at_once.await.is_ready() {
            return;
        }
        tokio::spawn(async move {
            let end = std::future::poll_fn(|context| body.poll_chunk(context));
            let _ = tokio::time::timeout(TRAILING, end).await;
        });
    }

    /// The error for a stream that ended before it answered.
    pub(super) fn lost(&self, wire: &Wire, ending: Ending) -> Error {
        let place = wire.place();
        let message = match ending {
            Ending::Broken(error) => return Failure::in_body(error).into_error(&place),
            Ending::Clean if self.reader.is_mid_event() => {
                format!("the stream of {place} ended in the middle of an event, before its answer")
            }
            Ending::Clean => format!("{place} ended the stream before it answered"),
        };
        Error::new(ErrorKind::Closed, message).with_executed(Executed::Maybe)
    }
}

pub(super) fn too_long(wire: &Wire) -> Error {
    let (place, limit) = (wire.place(), wire.limits.line_bytes);
    let message = format!("an event of {place} is longer than {limit} bytes (line_bytes)");
    Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
}

pub(super) fn too_much(wire: &Wire) -> Error {
    let (place, limit) = (wire.place(), wire.limits.stream_bytes);
    let message = format!("the stream of {place} brought more than {limit} bytes (stream_bytes)");
    Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe)
}
