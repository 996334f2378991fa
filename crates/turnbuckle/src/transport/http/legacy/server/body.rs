//! Owns what reads a stream: the body of an answer, or a wait for all of it.
//! Does not own the stream, which may go on without it.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::{
    super::super::server::idle::Idle,
    event,
    stream::{Ended, Stream},
};

/// Someone who reads a stream. Dropping it leaves the stream without a reader.
pub(super) struct Reader {
    stream: Arc<Stream>,
    serial: u64,
}

impl Reader {
    /// Attaches to a stream, in place of its reader, and tells the number of its last event.
    pub(super) fn attach(stream: Arc<Stream>) -> Result<(Reader, u64), Ended> {
        let (serial, last) = stream.attach()?;
        Ok((Reader { stream, serial }, last))
    }

    /// Everything until the end. Dropping the future leaves the stream without a reader.
    pub(super) async fn whole(self) -> Vec<u8> {
        let mut whole = Vec::new();
        while let Some(text) = poll_fn(|context| self.poll(context)).await {
            if whole.is_empty() {
                whole = text;
            } else {
                whole.extend_from_slice(&text);
            }
        }
        whole
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        self.stream.poll_read(self.serial, context)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stream.detach(self.serial);
    }
}

/// The body of an answer that follows a stream. Dropping it stops nothing.
pub(super) struct Following {
    /// What was missed, which comes first.
    missed: Vec<u8>,
    /// `None` where the stream has ended already.
    reader: Option<Reader>,
    idle: Idle,
}

impl Following {
    pub(super) fn new(missed: Vec<u8>, reader: Option<Reader>, keep_alive: Duration) -> Following {
        Following { missed, reader, idle: Idle::new(keep_alive) }
    }

    /// The next piece; `None` at the end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.missed.is_empty() {
            self.idle.touch();
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

impl Body for Following {
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
