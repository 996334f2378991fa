//! Owns the stream of one session: what it begins with, each message an event, a comment when it is
//! silent. Does not own the session: it only ends it.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::io::{AsyncRead as _, DuplexStream, ReadBuf};

use super::session::{InTable, Inbox};
use crate::{
    limits::Limits,
    rpc::{
        Serve,
        connection::io::{
            ConnectionTasks, {self},
        },
    },
    transport::http::{server::listen::idle::Idle, sse},
};

/// How much waits for a client that does not read before the connection itself holds it.
const PIPE: usize = 16 * 1024;
/// How much is read at once.
const CHUNK: usize = 8 * 1024;
/// What an event begins with that is a message.
const MESSAGE: &[u8] = b"event: message\ndata: ";

/// Starts a session on the running runtime. Dropping the stream ends it, and every handler.
pub(super) fn open(
    endpoint: &str,
    place: InTable,
    inbox: Inbox,
    serve: Arc<dyn Serve>,
    limits: Limits,
    keep_alive: Duration,
) -> Events {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let wire = io::start(inbox, theirs, serve, limits, None);
    Events {
        first: Some(format!("event: endpoint\ndata: {endpoint}\n\n").into()),
        pipe: ours,
        at: StreamPosition::Between,
        idle: Idle::new(keep_alive),
        _connection: SessionGuard { wire, _place: place },
    }
}

/// A session's stream, as the body of an answer.
pub(super) struct Events {
    first: Option<Bytes>,
    /// What the session says, a line a message. It is read only when the client takes it.
    pipe: DuplexStream,
    at: StreamPosition,
    idle: Idle,
    _connection: SessionGuard,
}

/// Where in what is said the stream stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StreamPosition {
    Between,
    Within,
}

/// Ends the session when it is dropped.
struct SessionGuard {
    wire: ConnectionTasks,
    _place: InTable,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.wire.reader.abort();
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return frame(first);
        }
        let mut chunk = [0; CHUNK];
        let mut chunk = ReadBuf::new(&mut chunk);
        match Pin::new(&mut this.pipe).poll_read(context, &mut chunk) {
            Poll::Ready(Ok(())) if !chunk.filled().is_empty() => {
                this.idle.touch();
                frame(events(chunk.filled(), &mut this.at).into())
            }
            // The session has said all that it will.
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => {
                while this.idle.poll(context).is_ready() {
                    // In the middle of a message a comment would be part of it.
                    if this.at == StreamPosition::Between {
                        return frame(Bytes::from_static(sse::KEEP_ALIVE));
                    }
                }
                Poll::Pending
            }
        }
    }
}

fn frame(bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
    Poll::Ready(Some(Ok(Frame::data(bytes))))
}

/// Makes events of lines, wherever the chunk begins and ends.
fn events(chunk: &[u8], at: &mut StreamPosition) -> Vec<u8> {
    let mut out = Vec::with_capacity(chunk.len() + 4 * MESSAGE.len());
    for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
        if *at == StreamPosition::Between {
            out.extend_from_slice(MESSAGE);
        }
        out.extend_from_slice(piece);
        *at = StreamPosition::Within;
        if piece.ends_with(b"\n") {
            out.push(b'\n');
            *at = StreamPosition::Between;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_one_event_however_it_is_cut() {
        let lines = b"{\"a\":1}\n{}\n[\"long\"]\n";
        let expected = "event: message\ndata: {\"a\":1}\n\nevent: message\ndata: {}\n\n\
                        event: message\ndata: [\"long\"]\n\n";
        for size in 1..=lines.len() {
            let mut at = StreamPosition::Between;
            let mut out = Vec::new();
            for chunk in lines.chunks(size) {
                out.extend(events(chunk, &mut at));
            }
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{size}");
            assert_eq!(at, StreamPosition::Between);
        }
    }
}
