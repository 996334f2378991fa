//! The body of a response: a few pieces of text, or the events of a handler that it polls.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::{
    super::sse,
    answer,
    running::{Polled, RunningHttpRequest},
};

/// What is left to send; empty ones are skipped.
pub(super) type Pieces = [Bytes; 3];

/// The body of an answer.
///
/// Of a call that streams it is where the handler runs: dropping it drops the handler. In a session
/// of the legacy era the handler runs elsewhere, and goes on.
///
/// ```
/// use http_body::Body;
/// use turnbuckle::http::HttpBody;
/// let empty = HttpBody::default();
/// assert!(empty.is_end_stream());
/// ```
#[derive(Default)]
pub struct HttpBody(Kind);

enum Kind {
    Pieces(Pieces),
    /// A handler that has not ended.
    Stream(Box<RunningHttpRequest>),
    /// Whatever else makes its own frames.
    Other(Other),
}

type Other = Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>;

impl Default for Kind {
    fn default() -> Kind {
        Kind::Pieces(Pieces::default())
    }
}

impl HttpBody {
    pub(super) fn pieces(pieces: Pieces) -> HttpBody {
        HttpBody(Kind::Pieces(pieces))
    }

    pub(super) fn stream(running: RunningHttpRequest) -> HttpBody {
        HttpBody(Kind::Stream(Box::new(running)))
    }

    pub(crate) fn other(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> HttpBody {
        HttpBody(Kind::Other(Box::pin(body)))
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Kind::Stream(running) = &mut self.0 {
            match ready!(running.poll(context)) {
                Polled::Messages => return frame(running.take_events().into()),
                Polled::Quiet => return frame(Bytes::from_static(sse::KEEP_ALIVE)),
                Polled::Done(done) => {
                    running.count(&done);
                    let last = answer::last_event(&running.id, done);
                    self.0 = Kind::Pieces(last);
                }
            }
        }
        if let Kind::Other(body) = &mut self.0 {
            return body.as_mut().poll_frame(context);
        }
        let Kind::Pieces(pieces) = &mut self.0 else { return Poll::Pending };
        match pieces.iter_mut().find(|piece| !piece.is_empty()) {
            Some(piece) => frame(std::mem::take(piece)),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Pieces(pieces) => pieces.iter().all(Bytes::is_empty),
            Kind::Stream(_) => false,
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Kind::Stream(_) => SizeHint::default(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}

fn frame(bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
    Poll::Ready(Some(Ok(Frame::data(bytes))))
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Pieces(_) => "pieces",
            Kind::Stream(_) | Kind::Other(_) => "stream",
        };
        f.debug_tuple("HttpBody").field(&kind).finish()
    }
}
