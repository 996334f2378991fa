//! One server over its pipes: lines out, lines in, the handshake, its counters.

use bench_util::counter;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::Outcome;
use crate::candidate::Candidate;
use crate::message::{Era, INITIALIZED, call, initialize, request};
use crate::options::Options;

/// Ids of our own questions, far from those of any scenario.
const FIRST_QUESTION: u64 = 900_000_000;
const CHUNK: usize = 1 << 16;

pub(crate) struct Pipe {
    pub(crate) pid: u32,
    pub(crate) era: Era,
    child: Child,
    /// `None` once closed.
    input: Option<ChildStdin>,
    output: ChildStdout,
    buffer: Vec<u8>,
    /// Where the first line that was not handed out begins.
    start: usize,
    /// Up to where the buffer was searched for the end of that line.
    searched: usize,
    next_question: u64,
}

/// Where a line sits in the buffer. It stays there until the next read.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    start: usize,
    end: usize,
}

impl Pipe {
    pub(crate) fn spawn(candidate: &Candidate, options: &Options, tools: usize) -> Outcome<Self> {
        let mut child = candidate.spawn_stdio(options, tools)?;
        Ok(Self {
            pid: child.id().ok_or("the server is gone")?,
            era: options.era,
            input: child.stdin.take(),
            output: child.stdout.take().ok_or("the server has no stdout")?,
            child,
            buffer: Vec::with_capacity(CHUNK),
            start: 0,
            searched: 0,
            next_question: FIRST_QUESTION,
        })
    }

    /// The handshake of the era; returns the server's answer.
    pub(crate) async fn hello(&mut self) -> Outcome<String> {
        let answer = match self.era {
            Era::Modern => self.ask(0, &request(Era::Modern, 0, "server/discover", "", "")).await?,
            Era::Legacy => {
                let answer = self.ask(0, &initialize(0)).await?;
                self.send(&format!("{INITIALIZED}\n")).await?;
                answer
            }
        };
        if answer.contains("\"error\"") {
            return Err(format!("the handshake failed: {answer}").into());
        }
        Ok(answer)
    }

    pub(crate) async fn send(&mut self, text: &str) -> Outcome<()> {
        Ok(self.input.as_mut().ok_or("stdin is closed")?.write_all(text.as_bytes()).await?)
    }

    /// Sends one request and returns the line with its id.
    pub(crate) async fn ask(&mut self, id: u64, request: &str) -> Outcome<String> {
        self.send(&format!("{request}\n")).await?;
        loop {
            let line = self.line().await?;
            let text = self.text(line);
            if id_of(text) == Some(id) {
                return Ok(String::from_utf8_lossy(text).into_owned());
            }
        }
    }

    /// Asks the `stats` tool for one counter.
    pub(crate) async fn counter(&mut self, name: &str) -> Outcome<i64> {
        self.next_question += 1;
        let id = self.next_question;
        let answer = self.ask(id, &call(self.era, id, "stats", "", "")).await?;
        counter(&answer, name).ok_or_else(|| format!("no {name} in {answer}").into())
    }

    /// The next line, without its end.
    pub(crate) async fn line(&mut self) -> Outcome<Line> {
        loop {
            if let Some(line) = self.buffered() {
                return Ok(line);
            }
            self.make_room();
            let count = self.output.read_buf(&mut self.buffer).await?;
            self.check_open(count)?;
        }
    }

    pub(crate) fn text(&self, line: Line) -> &[u8] {
        &self.buffer[line.start..line.end]
    }

    /// A whole line that has been read already.
    pub(crate) fn buffered(&mut self) -> Option<Line> {
        let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = Line { start: self.start, end: self.searched + end };
        self.start = line.end + 1;
        self.searched = self.start;
        Some(line)
    }

    /// Writes and reads, whichever is possible first, and returns how much was written. A server
    /// may be unable to read on before its answers are taken, so nothing here waits for one side.
    pub(crate) async fn write_or_read(&mut self, bytes: &[u8]) -> Outcome<usize> {
        self.make_room();
        let input = self.input.as_mut().ok_or("stdin is closed")?;
        let count = tokio::select! {
            biased;
            written = input.write(bytes), if !bytes.is_empty() => return Ok(written?),
            count = self.output.read_buf(&mut self.buffer) => count?,
        };
        self.check_open(count)?;
        Ok(0)
    }

    /// Closes the server's stdin and waits for its end.
    pub(crate) async fn close(&mut self) -> std::io::Result<()> {
        self.input = None;
        self.child.wait().await.map(drop)
    }

    fn make_room(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            self.searched = 0;
        } else if self.start > 4 * CHUNK {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK {
            self.buffer.reserve(self.buffer.len().clamp(CHUNK, 1 << 21));
        }
    }

    fn check_open(&self, count: usize) -> Outcome<()> {
        if count == 0 { Err("the server closed its stdout".into()) } else { Ok(()) }
    }
}

/// The id of an answer, found without parsing: near the beginning, near the end, or anywhere.
pub(crate) fn id_of(line: &[u8]) -> Option<u64> {
    const NEAR: usize = 96;
    number_after_id(&line[..line.len().min(NEAR)])
        .or_else(|| number_after_id(&line[line.len().saturating_sub(NEAR)..]))
        .or_else(|| number_after_id(line))
}

fn number_after_id(text: &[u8]) -> Option<u64> {
    let rest = &text[memmem::find(text, b"\"id\":")? + 5..];
    let digits =
        rest.iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number, byte| {
        Some(number.unwrap_or(0u64).wrapping_mul(10).wrapping_add(u64::from(byte - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_wherever_they_stand() {
        assert_eq!(id_of(br#"{"jsonrpc":"2.0","id":12,"result":{}}"#), Some(12));
        let late = format!(r#"{{"result":"{}","id": 7}}"#, "x".repeat(500));
        assert_eq!(id_of(late.as_bytes()), Some(7));
        assert_eq!(id_of(br#"{"method":"notifications/progress"}"#), None);
    }
}
