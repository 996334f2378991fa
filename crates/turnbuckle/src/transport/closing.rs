//! A write half that `shutdown` closes.
//!
//! Owns: the meaning of `shutdown` for a pipe, which is that the reader at the other
//! end sees end of file. Does not own: where the pipe came from.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::AsyncWrite;

/// Closes what it holds when it is shut down. Tokio's pipes do nothing there, and a
/// peer that waits for end of file would wait until the half is dropped.
#[derive(Debug)]
pub(crate) struct Closing<W> {
    /// Invariant: `None` once it was shut down, and then for good.
    inner: Option<W>,
}

impl<W> Closing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner: Some(inner) }
    }
}

impl<W: AsyncWrite + Unpin> Closing<W> {
    fn open(self: Pin<&mut Self>) -> io::Result<Pin<&mut W>> {
        match &mut self.get_mut().inner {
            Some(inner) => Ok(Pin::new(inner)),
            None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the pipe was shut down")),
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Closing<W> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.open() {
            Ok(inner) => inner.poll_write(cx, bytes),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.open() {
            Ok(inner) => inner.poll_write_vectored(cx, slices),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.as_ref().is_some_and(W::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.open() {
            Ok(inner) => inner.poll_flush(cx),
            // Whatever was written before the end was flushed by it.
            Err(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Ok(inner) = self.as_mut().open() else { return Poll::Ready(Ok(())) };
        let outcome = std::task::ready!(inner.poll_shutdown(cx));
        self.inner = None;
        Poll::Ready(outcome)
    }
}
