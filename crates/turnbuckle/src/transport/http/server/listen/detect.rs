//! Detects HTTP/2 by the first bytes of a connection, the end of a connection that is not read, and
//! a peer that does not read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use super::idle::Idle;
use crate::transport::http::timing::{UNREAD_END, WRITE_PAUSE};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// The first bytes of a client that speaks HTTP/2 without having asked.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// A stream of which some bytes were read already.
pub(crate) struct Sniffed<S> {
    stream: S,
    head: [u8; PREFACE.len()],
    /// The part of `head` that is still to be read again.
    rest: std::ops::Range<usize>,
    unread: Unread,
    /// When to look again for an end behind unread bytes.
    next_look: Idle,
}

/// Ends a connection whose peer does not read.
struct Unread {
    pause: Idle,
    is_pending: bool,
}

impl Unread {
    /// Passes the result of a write on, or fails if none has succeeded for a while.
    fn check(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.is_pending = false;
            return written;
        }
        if !std::mem::replace(&mut self.is_pending, true) {
            self.pause.touch();
        }
        self.pause.poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Reads until it is clear what a client speaks. Dropping the future drops the stream.
pub(crate) async fn sniff<S: AsyncRead + Unpin>(
    mut stream: S,
) -> io::Result<(Protocol, Sniffed<S>)> {
    let mut head = [0; PREFACE.len()];
    let mut length = 0;
    while length < head.len() && head[..length] == PREFACE[..length] {
        match stream.read(&mut head[length..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => length += count,
        }
    }
    let protocol = if head == *PREFACE { Protocol::Http2 } else { Protocol::Http1 };
    let unread = Unread { pause: Idle::new(WRITE_PAUSE), is_pending: false };
    let next_look = Idle::new(UNREAD_END);
    Ok((protocol, Sniffed { stream, head, rest: 0..length, unread, next_look }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Sniffed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let again = this.rest.len().min(buffer.remaining());
        if again == 0 {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        buffer.put_slice(&this.head[this.rest.start..this.rest.start + again]);
        this.rest.start += again;
        if buffer.remaining() > 0 {
            // The rest of the request is usually there; in two reads it would make the reader's
            // buffer grow. An end or an error that shows here shows again at the next read.
            let _ = Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        Poll::Ready(Ok(()))
    }
}

/// The peer's direction of a connection that is not read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PeerDirection {
    /// Nothing has arrived. The task is woken by the next byte and by the end.
    Quiet,
    /// Bytes wait to be read. The task is not woken by an end behind them.
    Unread,
    /// The peer has ended it, or has reset the connection.
    Ended,
}

/// A stream that shows the end of the peer's direction without reading.
pub(crate) trait Peek {
    fn peer_direction(&self, context: &mut Context<'_>) -> PeerDirection;
}

#[cfg(target_os = "linux")]
impl Peek for tokio::net::TcpStream {
    fn peer_direction(&self, context: &mut Context<'_>) -> PeerDirection {
        after_readiness(self, self.poll_read_ready(context))
    }
}

#[cfg(target_os = "linux")]
impl Peek for tokio::net::UnixStream {
    fn peer_direction(&self, context: &mut Context<'_>) -> PeerDirection {
        after_readiness(self, self.poll_read_ready(context))
    }
}

/// Asks the system, which knows of an end behind unread bytes.
#[cfg(target_os = "linux")]
fn after_readiness(
    stream: &impl std::os::fd::AsFd,
    readable: Poll<io::Result<()>>,
) -> PeerDirection {
    use rustix::event::{PollFd, PollFlags, poll};
    if readable.is_pending() {
        return PeerDirection::Quiet;
    }
    let mut asked = [PollFd::new(stream, PollFlags::RDHUP)];
    match poll(&mut asked, Some(&rustix::event::Timespec::default())) {
        // An error and a hang-up are always reported.
        Ok(1..) => PeerDirection::Ended,
        _ => PeerDirection::Unread,
    }
}

#[cfg(not(target_os = "linux"))]
impl Peek for tokio::net::TcpStream {
    fn peer_direction(&self, context: &mut Context<'_>) -> PeerDirection {
        let mut byte = [0];
        match self.poll_peek(context, &mut ReadBuf::new(&mut byte)) {
            Poll::Pending => PeerDirection::Quiet,
            Poll::Ready(Ok(1..)) => PeerDirection::Unread,
            Poll::Ready(Ok(0) | Err(_)) => PeerDirection::Ended,
        }
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
impl Peek for tokio::net::UnixStream {
    /// Only a read shows the end.
    fn peer_direction(&self, _: &mut Context<'_>) -> PeerDirection {
        PeerDirection::Quiet
    }
}

impl<S: AsyncWrite + Peek + Unpin> AsyncWrite for Sniffed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unread.check(context, written)
    }

    /// Fails if the peer has left. A server of HTTP/1.1 reads no further while it has bytes behind a
    /// request, but it flushes whenever its task is polled.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stream.peer_direction(context) {
            PeerDirection::Quiet => {}
            PeerDirection::Unread => while self.next_look.poll(context).is_ready() {},
            PeerDirection::Ended => {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.unread.check(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn sniffed(pieces: &[&[u8]]) -> (Protocol, Vec<u8>) {
        let (mut client, server) = tokio::io::duplex(1024);
        let write = async {
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(client);
        };
        let read = async {
            let (protocol, mut stream) = sniff(server).await.unwrap();
            let mut text = Vec::new();
            stream.read_to_end(&mut text).await.unwrap();
            (protocol, text)
        };
        tokio::join!(write, read).1
    }

    #[tokio::test]
    async fn every_byte_is_read_again_however_they_come() {
        let two: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nand more";
        let one: &[u8] = b"POST /mcp HTTP/1.1\r\n\r\n";
        for (text, expected) in [(two, Protocol::Http2), (one, Protocol::Http1)] {
            for at in 0..text.len() {
                let (before, after) = text.split_at(at);
                assert_eq!(sniffed(&[before, after]).await, (expected, text.to_vec()));
            }
        }
        assert_eq!(sniffed(&[b"PRI", b" x"]).await, (Protocol::Http1, b"PRI x".to_vec()));
    }

    #[tokio::test]
    async fn a_client_that_leaves_without_a_word_speaks_nothing() {
        let (client, server) = tokio::io::duplex(16);
        drop(client);
        assert!(sniff(server).await.is_err());
    }
}
