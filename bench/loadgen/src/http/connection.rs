//! One raw HTTP/1.1 connection: keep-alive, bodies by length, by chunks and until the close. The
//! generator must cost less than any server.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CHUNK: usize = 16 * 1024;

/// Where a server is.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: String,
    pub(crate) path: String,
}

impl Endpoint {
    pub(crate) fn parse(url: &str) -> Self {
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let (address, path) = rest.split_once('/').unwrap_or((rest, "mcp"));
        Self { address: address.to_owned(), path: format!("/{path}") }
    }
}

/// What a response said before its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    /// The server closes the connection after this response.
    closes: bool,
}

/// What is left of the body.
#[derive(Clone, Copy, Debug)]
enum Body {
    Length(usize),
    ChunkHead,
    /// Data of a chunk, with the two bytes that end it.
    Chunk(usize),
    Trailer,
    UntilClose,
    Done,
}

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Where the bytes begin that were not handed out.
    start: usize,
    body: Body,
    pub(crate) head: Head,
    /// When the first byte of the body arrived. For a streamed answer that is when the result was
    /// there, as opposed to when the stream ended.
    pub(crate) first_data: Option<Instant>,
}

impl Connection {
    pub(crate) async fn open(endpoint: &Endpoint) -> io::Result<Self> {
        let stream = TcpStream::connect(&endpoint.address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(CHUNK),
            start: 0,
            body: Body::Done,
            head: Head::default(),
            first_data: None,
        })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// One whole exchange; `out` receives the decoded body.
    pub(crate) async fn exchange(&mut self, request: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        self.first_data = None;
        self.send(request).await?;
        self.read_head().await?;
        while self.read_data(out).await? {
            self.first_data.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Opens a new connection if the server closes this one.
    pub(crate) async fn keep(&mut self, endpoint: &Endpoint) -> io::Result<()> {
        if self.head.closes {
            *self = Self::open(endpoint).await?;
        }
        Ok(())
    }

    /// Reads status and headers; the body follows with `read_data`.
    pub(crate) async fn read_head(&mut self) -> io::Result<()> {
        loop {
            if let Some((length, head, body)) = parse_head(&self.buffer[self.start..])? {
                self.start += length;
                self.head = head;
                self.body = body;
                return Ok(());
            }
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Appends what there is of the body to `out`; false when the body has ended.
    pub(crate) async fn read_data(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let before = out.len();
        loop {
            while self.decode(out)? {}
            if out.len() > before || matches!(self.body, Body::Done) {
                return Ok(out.len() > before);
            }
            if self.fill().await? == 0 {
                return match self.body {
                    Body::UntilClose => {
                        self.body = Body::Done;
                        Ok(false)
                    }
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// One step through the buffered bytes; false when more are needed or the body has ended.
    fn decode(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let available = &self.buffer[self.start..];
        let (used, next) = match self.body {
            Body::Length(length) if !available.is_empty() => {
                let used = length.min(available.len());
                out.extend_from_slice(&available[..used]);
                (used, if used == length { Body::Done } else { Body::Length(length - used) })
            }
            Body::UntilClose if !available.is_empty() => {
                out.extend_from_slice(available);
                (available.len(), Body::UntilClose)
            }
            Body::ChunkHead => {
                let Some(end) = memchr::memmem::find(available, b"\r\n") else { return Ok(false) };
                let length = chunk_length(&available[..end])?;
                (end + 2, if length == 0 { Body::Trailer } else { Body::Chunk(length + 2) })
            }
            Body::Chunk(length) if !available.is_empty() => {
                let used = length.min(available.len());
                out.extend_from_slice(&available[..used.min(length.saturating_sub(2))]);
                (used, if used == length { Body::ChunkHead } else { Body::Chunk(length - used) })
            }
            Body::Trailer if available.len() >= 2 => (2, Body::Done),
            _ => return Ok(false),
        };
        self.start += used;
        self.body = next;
        Ok(true)
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > 4 * CHUNK {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            self.buffer.reserve(self.buffer.len().clamp(CHUNK, 1 << 20));
        }
        self.stream.read_buf(&mut self.buffer).await
    }
}

/// The head, how long it is and what body follows; `None` when it is not complete.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(usize, Head, Body)>> {
    let mut headers = [httparse::EMPTY_HEADER; 48];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) =
        response.parse(bytes).map_err(|error| io::Error::other(error.to_string()))?
    else {
        return Ok(None);
    };
    let mut head = Head { status: response.code.unwrap_or(0), ..Head::default() };
    let mut body = Body::UntilClose;
    for header in response.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => body = Body::Length(value.trim().parse().unwrap_or(0)),
            "transfer-encoding" => body = Body::ChunkHead,
            "connection" => head.closes = value.eq_ignore_ascii_case("close"),
            "mcp-session-id" => head.session = Some(value.into_owned()),
            _ => {}
        }
    }
    if matches!(head.status, 204 | 304) || matches!(body, Body::Length(0)) {
        body = Body::Done;
    }
    Ok(Some((length, head, body)))
}

fn chunk_length(line: &[u8]) -> io::Result<usize> {
    let line = std::str::from_utf8(line).map_err(io::Error::other)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    usize::from_str_radix(digits, 16).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_and_a_path() {
        let endpoint = Endpoint::parse("http://127.0.0.1:80/a/b");
        assert_eq!((endpoint.address.as_str(), endpoint.path.as_str()), ("127.0.0.1:80", "/a/b"));
        assert_eq!(Endpoint::parse("127.0.0.1:80").path, "/mcp");
    }

    #[test]
    fn a_head_is_complete_or_not() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        assert!(parse_head(&head[..20]).unwrap().is_none());
        let (length, parsed, body) = parse_head(head).unwrap().unwrap();
        assert_eq!(&head[length..], b"abc");
        assert!(parsed.status == 200 && parsed.closes);
        assert!(matches!(body, Body::Length(3)));
        assert_eq!(chunk_length(b"1f;x=y").unwrap(), 31);
    }
}
