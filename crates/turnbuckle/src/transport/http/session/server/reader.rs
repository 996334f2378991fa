//! Reads a stream of a session: as a response body, or as one JSON text.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::{
    super::super::server::{
        HttpBody, answer,
        response_stream::{ResponseStream, StreamEnded},
    },
    event,
};
use crate::transport::http::server::listen::idle::Idle;
use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};

/// The reader of a stream. Dropping it leaves the stream without one.
pub(super) struct StreamReader {
    stream: Arc<ResponseStream>,
    name: u64,
}

impl StreamReader {
    /// Attaches to a stream in place of its reader. Returns the number of the last event, too.
    pub(super) fn attach(stream: Arc<ResponseStream>) -> Result<(StreamReader, u64), StreamEnded> {
        let (name, last) = stream.attach()?;
        Ok((StreamReader { stream, name }, last))
    }

    /// Reads a JSON response, which is complete when the stream ends.
    pub(super) async fn read(self) -> Vec<u8> {
        poll_fn(|context| self.poll(context)).await.unwrap_or_default()
    }

    /// Creates a response of events: first those that the client has missed, then those of the
    /// stream.
    pub(super) fn respond(self, missed: Vec<u8>, keep_alive: Duration) -> Response<HttpBody> {
        let body = ReaderBody { missed, reader: Some(self), idle: Idle::new(keep_alive) };
        answer::events(HttpBody::other(body))
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.stream.poll_read(self.name, context)
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.stream.detach(self.name);
    }
}

/// The body of a response that follows a stream. Dropping it stops no handler.
struct ReaderBody {
    missed: Vec<u8>,
    /// `None` after the end.
    reader: Option<StreamReader>,
    idle: Idle,
}

impl ReaderBody {
    /// Returns the next piece, or `None` at the end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.missed.is_empty() {
            return Poll::Ready(Some(std::mem::take(&mut self.missed).into()));
        }
        let Some(reader) = &self.reader else { return Poll::Ready(None) };
        match reader.poll(context) {
            Poll::Ready(Some(text)) => {
                self.idle.touch();
                Poll::Ready(Some(text.into()))
            }
            Poll::Ready(None) => {
                self.reader = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.idle.poll(context).map(|()| Some(Bytes::from_static(event::KEEP_ALIVE)))
            }
        }
    }
}

impl Body for ReaderBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.missed.is_empty() && self.reader.is_none()
    }
}
