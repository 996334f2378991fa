//! A response body: whole, or a stream of events of which the ready ones leave together.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::counters::LISTENERS;

const FRAME: usize = 32 * 1024;

pub(crate) enum Body {
    Whole(Option<Bytes>),
    Stream { events: mpsc::Receiver<Bytes>, _listener: Option<ListenerGuard> },
}

/// Counts its listener out when the stream is dropped.
pub(crate) struct ListenerGuard;

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        LISTENERS.down();
    }
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }

    pub(crate) fn stream(events: mpsc::Receiver<Bytes>, listener: Option<ListenerGuard>) -> Self {
        Self::Stream { events, _listener: listener }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Stream { events, .. } => match events.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(first) => first.map(|first| together(first, events)),
            },
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream { .. } => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }
}

fn together(first: Bytes, events: &mut mpsc::Receiver<Bytes>) -> Bytes {
    let Ok(second) = events.try_recv() else { return first };
    let mut frame = BytesMut::with_capacity(8192);
    frame.extend_from_slice(&first);
    frame.extend_from_slice(&second);
    while frame.len() < FRAME
        && let Ok(next) = events.try_recv()
    {
        frame.extend_from_slice(&next);
    }
    frame.freeze()
}

/// One event of an event stream.
pub(crate) fn event(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(b"data: ");
    write(&mut bytes);
    bytes.extend_from_slice(b"\n\n");
    bytes.into()
}
