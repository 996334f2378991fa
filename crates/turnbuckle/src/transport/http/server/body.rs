//! The body of a response: a few pieces of text, or the events of a handler that it polls.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::{rpc::memory::MemoryBudget, transport::http::server::listen::activity::ActiveRequest};

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
pub struct HttpBody {
    kind: Kind,
    /// Counts the memory of frames until they are written.
    memory: Option<Arc<MemoryBudget>>,
    /// The request, over HTTP/2.
    active: Option<ActiveRequest>,
}

enum Kind {
    Pieces(Pieces),
    /// A handler that has not ended.
    Stream(Box<RunningHttpRequest>),
    /// Whatever else makes its own frames.
    Other(Other),
}

type Other = Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>;

impl From<Kind> for HttpBody {
    fn from(kind: Kind) -> HttpBody {
        HttpBody { kind, memory: None, active: None }
    }
}

impl Default for Kind {
    fn default() -> Kind {
        Kind::Pieces(Pieces::default())
    }
}

impl HttpBody {
    pub(super) fn pieces(pieces: Pieces) -> HttpBody {
        Kind::Pieces(pieces).into()
    }

    pub(super) fn stream(running: RunningHttpRequest) -> HttpBody {
        Kind::Stream(Box::new(running)).into()
    }

    pub(crate) fn other(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> HttpBody {
        Kind::Other(Box::pin(body)).into()
    }

    /// Counts the body towards a budget until its last byte is written.
    pub(super) fn count(&mut self, memory: Arc<MemoryBudget>) {
        if let Kind::Pieces(pieces) = &mut self.kind {
            for piece in pieces {
                *piece = memory.keep(std::mem::take(piece));
            }
        }
        self.memory = Some(memory);
    }

    /// The body is the response to a request of an HTTP/2 connection.
    pub(super) fn belongs_to(&mut self, active: ActiveRequest) {
        active.waits_for_peer();
        self.active = Some(active);
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Kind::Stream(running) = &mut self.kind {
            match ready!(running.poll(context)) {
                Polled::Messages => {
                    let events = running.take_events().into();
                    return self.frame(events);
                }
                Polled::Quiet => return self.frame(Bytes::from_static(sse::KEEP_ALIVE)),
                Polled::Done(done) => {
                    running.count(&done);
                    let last = answer::last_event(&running.id, done);
                    self.kind = Kind::Pieces(last);
                }
            }
        }
        if let Kind::Other(body) = &mut self.kind {
            let frame = ready!(body.as_mut().poll_frame(context));
            return match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) => self.frame(bytes),
                Some(Ok(Err(trailers))) => Poll::Ready(Some(Ok(trailers))),
                None => Poll::Ready(None),
            };
        }
        let Kind::Pieces(pieces) = &mut self.kind else { return Poll::Pending };
        match pieces.iter_mut().find(|piece| !piece.is_empty()) {
            Some(piece) => {
                let piece = std::mem::take(piece);
                self.frame(piece)
            }
            None => Poll::Ready(None),
        }
    }

    fn frame(&self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &self.memory {
            Some(memory) => memory.keep(bytes),
            None => bytes,
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = self.poll_next(context);
        match (&self.active, &polled) {
            (Some(active), Poll::Pending) => active.is_read(),
            (Some(active), Poll::Ready(_)) => active.waits_for_peer(),
            (None, _) => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Pieces(pieces) => pieces.iter().all(Bytes::is_empty),
            Kind::Stream(_) => false,
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Kind::Stream(_) => SizeHint::default(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Pieces(_) => "pieces",
            Kind::Stream(_) | Kind::Other(_) => "stream",
        };
        f.debug_tuple("HttpBody").field(&kind).finish()
    }
}
