//! A client of HTTP/1.1.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{endpoint::Stream, message::Message};

/// A connection that can be used for several requests.
pub(crate) struct Http1 {
    pub(crate) stream: Stream,
    read: Vec<u8>,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names are in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(found, value)| (found == name).then_some(value))
    }

    /// Returns the last message: the body itself, or the last event.
    pub(crate) fn message(&self) -> Value {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let text = events.rfind(|data| !data.trim().is_empty()).unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or(Value::Null)
    }
}

impl Http1 {
    pub(crate) fn new(stream: Stream) -> Http1 {
        Http1 { stream, read: Vec::new() }
    }

    /// Sends a request and reads its response.
    pub(crate) async fn ask(&mut self, message: &Message) -> io::Result<Answer> {
        self.send(&message.bytes()).await?;
        self.answer().await
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads the next response.
    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        let head = self.head().await?;
        let status = head.get(9..12).and_then(|digits| digits.parse().ok());
        let status = status.ok_or_else(|| broken(&head))?;
        let mut answer = Answer { status, head, body: String::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await? {
                answer.body += &chunk;
            }
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().map_err(|_| broken(&answer.head))?;
            answer.body = self.take(length).await?;
        }
        Ok(answer)
    }

    /// Reads the head of a response. Names of headers are in lower case.
    pub(crate) async fn head(&mut self) -> io::Result<String> {
        let head = self.until("\r\n\r\n").await?;
        let lines = head.lines().map(|line| match line.split_once(':') {
            Some((name, value)) => format!("{}:{value}\n", name.to_ascii_lowercase()),
            None => format!("{line}\n"),
        });
        Ok(lines.collect())
    }

    /// Reads the next chunk of a streamed body; `None` for the last.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<String>> {
        let size = self.until("\r\n").await?;
        let size = usize::from_str_radix(size.trim(), 16).map_err(|_| broken(&size))?;
        let chunk = self.take(size).await?;
        self.take(2).await?;
        Ok((size > 0).then_some(chunk))
    }

    async fn until(&mut self, end: &str) -> io::Result<String> {
        loop {
            let found = self.read.windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(at) = found {
                return self.take(at + end.len()).await;
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<String> {
        while self.read.len() < length {
            self.more().await?;
        }
        let taken: Vec<u8> = self.read.drain(..length).collect();
        Ok(String::from_utf8_lossy(&taken).into_owned())
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no HTTP/1.1 response: {text:?}"))
}
