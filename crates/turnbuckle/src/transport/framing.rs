//! Owns newline framing: bytes in, lines out, each bounded. Does not own what a line means.

use std::{
    io,
    pin::pin,
    task::{Context, Poll, ready},
};

use crate::rpc::{Line, Lines};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much is read at once, where the line at hand is not known to be longer.
const CHUNK: usize = 64 * 1024;
/// With less room than this a new buffer is taken, so that reads stay large.
const ROOM: usize = 4 * 1024;
/// How many blank lines are skipped before other tasks have their turn.
const SKIPPED: usize = 1024;

/// Splits a byte stream into lines.
pub(crate) struct LineReader<R> {
    io: R,
    buffer: BytesMut,
    /// Invariant: `buffer[..scanned]` has no line break.
    scanned: usize,
    limit: usize,
    /// How long lines have been lately: a long one is given its buffer in one piece.
    usual: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Reading,
    /// The line at hand is too long: its rest is thrown away.
    Skipping,
    Ended,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(io: R, limit: usize) -> LineReader<R> {
        LineReader {
            io,
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            usual: 0,
            state: State::Reading,
        }
    }

    fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Line>>> {
        let mut skipped = 0;
        loop {
            while let Some(line) = self.split() {
                if let Some(line) = self.judge(line) {
                    return Poll::Ready(Ok(Some(line)));
                }
                skipped += 1;
                if skipped == SKIPPED {
                    // Other tasks and timers have their turn.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            if self.state == State::Ended {
                return Poll::Ready(Ok(None));
            }
            if self.buffer.len() > self.limit {
                let began = beginning(&self.buffer);
                self.buffer.clear();
                self.scanned = 0;
                if self.state != State::Skipping {
                    self.state = State::Skipping;
                    return Poll::Ready(Ok(Some(Line::TooLong(began))));
                }
            }
            if ready!(self.poll_fill(context))? == 0 {
                let last = self.judge_last();
                self.state = State::Ended;
                return Poll::Ready(Ok(last));
            }
        }
    }

    fn split(&mut self) -> Option<Bytes> {
        let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.scanned + found + 1).freeze();
        self.scanned = 0;
        Some(line)
    }

    fn judge(&mut self, line: Bytes) -> Option<Line> {
        self.usual = (self.usual - self.usual / 8).max(line.len());
        if self.state == State::Skipping {
            self.state = State::Reading;
            return None;
        }
        if line.len() > self.limit {
            return Some(Line::TooLong(beginning(&line)));
        }
        let text = line.trim_ascii();
        (!text.is_empty()).then(|| Line::Whole(line.slice_ref(text)))
    }

    /// What stands after the last line break is taken for a line: some peers end so.
    fn judge_last(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        self.judge(rest)
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < ROOM {
            let expected = self.usual.min(self.limit).saturating_sub(self.buffer.len());
            self.buffer.reserve(CHUNK.max(expected + ROOM));
        }
        // `read_buf` keeps nothing between polls, so a fresh one each time loses nothing.
        pin!(self.io.read_buf(&mut self.buffer)).poll(context)
    }
}

impl<R: AsyncRead + Unpin + Send + 'static> Lines for LineReader<R> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Line>>> {
        self.poll_line(context)
    }
}

/// Enough of a line to see whose it is.
fn beginning(line: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&line[..line.len().min(1024)])
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn lines(chunks: &[&[u8]], limit: usize) -> Vec<Line> {
        let (mut write, read) = tokio::io::duplex(7);
        let chunks: Vec<Vec<u8>> = chunks.iter().map(|chunk| chunk.to_vec()).collect();
        tokio::spawn(async move {
            for chunk in chunks {
                write.write_all(&chunk).await.unwrap();
            }
        });
        let mut reader = LineReader::new(read, limit);
        let mut lines = Vec::new();
        while let Some(line) =
            std::future::poll_fn(|context| reader.poll_next(context)).await.unwrap()
        {
            lines.push(line);
        }
        lines
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn lines_come_out_whole_however_they_arrive() {
        let found = lines(&[b"on", b"e\ntw", b"o\r\n\n  \r\nthree"], 100).await;
        assert_eq!(found, [whole("one"), whole("two"), whole("three")]);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_costs_that_line() {
        let found = lines(&[b"short\n", &[b'x'; 100], b"tail\nnext\n"], 20).await;
        assert!(matches!(&found[1], Line::TooLong(began) if began.starts_with(b"xxxx")));
        assert_eq!((&found[0], &found[2], found.len()), (&whole("short"), &whole("next"), 3));
        let at_the_limit = lines(&[b"0123456789\n012345678901\nok\n"], 11).await;
        assert!(matches!(&at_the_limit[1], Line::TooLong(_)));
        assert_eq!((&at_the_limit[0], &at_the_limit[2]), (&whole("0123456789"), &whole("ok")));
    }

    #[tokio::test]
    async fn a_flood_of_blank_lines_leaves_other_tasks_their_turn() {
        let text = [&[b'\n'; 2 * SKIPPED][..], b"end\n"].concat();
        let mut reader = LineReader::new(io::Cursor::new(text), 100);
        let mut polls = 0;
        let line = std::future::poll_fn(|context| {
            polls += 1;
            reader.poll_next(context)
        });
        assert_eq!(line.await.unwrap(), Some(whole("end")));
        assert_eq!(polls, 3);
    }

    #[tokio::test]
    async fn an_endless_line_does_not_grow_the_buffer() {
        let (mut write, read) = tokio::io::duplex(1024);
        let writer = tokio::spawn(async move {
            for _ in 0..4096 {
                write.write_all(&[b'x'; 1024]).await.unwrap();
            }
            write.write_all(b"\nend\n").await.unwrap();
        });
        let mut reader = LineReader::new(read, 8 * 1024);
        let mut next = async || {
            let line = std::future::poll_fn(|context| reader.poll_next(context)).await.unwrap();
            (line, reader.buffer.capacity())
        };
        assert!(matches!(next().await.0, Some(Line::TooLong(_))));
        let (line, capacity) = next().await;
        assert_eq!(line, Some(whole("end")));
        assert!(capacity <= 4 * CHUNK, "{capacity}");
        writer.await.unwrap();
    }
}
