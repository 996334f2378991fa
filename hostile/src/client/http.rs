//! A malicious server over HTTP, and answers that only HTTP has.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::script::{Era, Expected, Framing, Script, honest, play};

/// An answer in bytes: what comes first, and what follows for ever.
pub(crate) struct HttpScript {
    pub(crate) name: &'static str,
    pub(crate) expected: Expected,
    answer: fn(&Site, &Value) -> (String, Option<String>),
}

/// What an answer may depend on.
pub(crate) struct Site {
    era: Era,
    /// Another server of this machine, which must not be asked.
    trap: u16,
    requests: AtomicUsize,
}

const fn script(
    name: &'static str,
    expected: Expected,
    answer: fn(&Site, &Value) -> (String, Option<String>),
) -> HttpScript {
    HttpScript { name, expected, answer }
}

use Expected::{Failure, Success};

fn response(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

const JSON: &str = "content-type: application/json\r\n";

/// All answers that only HTTP has. Each request gets them.
pub(crate) const HTTP_SCRIPTS: &[HttpScript] = &[
    script("wrong-content-type", Failure, |site, request| {
        (response("content-type: text/html\r\n", &honest(request, site.era).to_string()), None)
    }),
    script("no-content-type", Failure, |site, request| {
        (response("", &honest(request, site.era).to_string()), None)
    }),
    // The client asks for no compression, so that none is undone.
    script("compressed", Failure, |_, _| {
        let headers = format!("{JSON}content-encoding: gzip\r\n");
        (response(&headers, "\u{1f}\u{8}\u{0}"), None)
    }),
    script("redirect-to-loopback", Failure, |site, _| {
        let place = format!("location: http://127.0.0.1:{}/mcp\r\n", site.trap);
        (format!("HTTP/1.1 307 Temporary Redirect\r\n{place}content-length: 0\r\n\r\n"), None)
    }),
    script("redirect-for-ever", Failure, |_, _| {
        let head = "HTTP/1.1 308 Permanent Redirect\r\nlocation: /mcp\r\ncontent-length: 0\r\n\r\n";
        (head.to_owned(), None)
    }),
    script("session-ids", Success, |site, request| {
        let number = site.requests.load(Ordering::Relaxed);
        let id = format!("{number}-{}", "s".repeat(1_000));
        let headers = format!("{JSON}mcp-session-id: {id}\r\n");
        (response(&headers, &honest(request, site.era).to_string()), None)
    }),
    script("long-session-id", Failure, |site, request| {
        let headers = format!("{JSON}mcp-session-id: {}\r\n", "s".repeat(1 << 20));
        (response(&headers, &honest(request, site.era).to_string()), None)
    }),
    script("endless-headers", Failure, |_, _| {
        ("HTTP/1.1 200 OK\r\n".to_owned(), Some(format!("x: {}\r\n", "y".repeat(1_000))))
    }),
    script("endless-header", Failure, |_, _| {
        ("HTTP/1.1 200 OK\r\nx: ".to_owned(), Some("y".repeat(1_000)))
    }),
    script("endless-continue", Failure, |_, _| {
        (String::new(), Some("HTTP/1.1 100 Continue\r\n\r\n".to_owned()))
    }),
    script("endless-chunk-size", Failure, |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n1;");
        (head, Some("x=".repeat(500)))
    }),
    script("endless-trailers", Failure, |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}transfer-encoding: chunked\r\n\r\n0\r\n");
        (head, Some(format!("x: {}\r\n", "y".repeat(1_000))))
    }),
    script("endless-comments", Failure, |_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
        (head, Some(":\n".repeat(500)))
    }),
    script("endless-field", Failure, |_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: ".to_owned();
        (head, Some("x".repeat(1_000)))
    }),
    script("endless-resuming", Failure, |_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        let event = "id: 1\nretry: 0\ndata:\n\n";
        (format!("{head}content-length: {}\r\n\r\n{event}", event.len()), None)
    }),
    script("cut-short", Failure, |_, _| {
        (
            format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 1000\r\nconnection: close\r\n\r\n{{"),
            None,
        )
    }),
    script("huge-length", Failure, |_, _| {
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}content-length: 18446744073709551615\r\n\r\n");
        (head, Some("[".repeat(1_000)))
    }),
    script("no-http", Failure, |_, _| {
        ("SSH-2.0-OpenSSH_9.0\r\n".to_owned(), Some("x".repeat(100)))
    }),
];

/// The answers of a server.
#[derive(Clone, Copy)]
pub(crate) enum Answers {
    Any(&'static Script),
    Http(&'static HttpScript),
}

/// A malicious server. Dropping it closes its socket.
pub(crate) struct Malicious {
    pub(crate) port: u16,
    tasks: Vec<JoinHandle<()>>,
    site: Arc<Site>,
    trapped: Arc<AtomicUsize>,
}

impl Drop for Malicious {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Malicious {
    pub(crate) async fn start(answers: Answers, era: Era) -> std::io::Result<Malicious> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let trap = TcpListener::bind("127.0.0.1:0").await?;
        let site =
            Arc::new(Site { era, trap: trap.local_addr()?.port(), requests: AtomicUsize::new(0) });
        let trapped = Arc::new(AtomicUsize::new(0));
        let (shared, count) = (site.clone(), trapped.clone());
        let tasks = vec![
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, answers, shared.clone()));
                }
            }),
            tokio::spawn(async move {
                while trap.accept().await.is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }),
        ];
        Ok(Malicious { port, tasks, site, trapped })
    }

    /// Returns how many requests came, and how many connections the other server got.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.site.requests.load(Ordering::Relaxed), self.trapped.load(Ordering::Relaxed))
    }
}

async fn serve(mut stream: TcpStream, answers: Answers, site: Arc<Site>) {
    let mut read = Vec::new();
    while let Some(request) = next(&mut stream, &mut read).await {
        site.requests.fetch_add(1, Ordering::Relaxed);
        if respond(&mut stream, answers, &site, &request).await.is_err() {
            return;
        }
    }
}

async fn respond(
    stream: &mut TcpStream,
    answers: Answers,
    site: &Site,
    request: &Value,
) -> std::io::Result<()> {
    match answers {
        Answers::Http(script) => {
            let (first, rest) = (script.answer)(site, request);
            stream.write_all(first.as_bytes()).await?;
            while let Some(rest) = &rest {
                stream.write_all(rest.as_bytes()).await?;
            }
            if first.contains("connection: close") {
                stream.shutdown().await?;
            }
            Ok(())
        }
        Answers::Any(script) => {
            if request["method"].is_null() || request.get("id").is_none() {
                return stream
                    .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
                    .await;
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                        mcp-session-id: s\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            play(script.answer(request, site.era), Framing::Events, stream).await?;
            stream.shutdown().await
        }
    }
}

/// Reads the next request; `Null` stands for one without a body.
async fn next(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<Value> {
    loop {
        let end = read.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
            let mut lines = head.lines().filter_map(|line| line.strip_prefix("content-length:"));
            let length = lines.next().and_then(|length| length.trim().parse().ok()).unwrap_or(0);
            if read.len() >= end + 4 + length {
                let body = serde_json::from_slice(&read[end + 4..end + 4 + length]);
                read.drain(..end + 4 + length);
                return Some(body.unwrap_or(Value::Null));
            }
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}
