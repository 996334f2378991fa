//! Clients that are slow, silent or talk too much cost only themselves, and not for long.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use crate::support::{Progress::Unwanted, call, server};

const HEAD: Duration = Duration::from_secs(30);

/// A server on a free port and a connection to it.
async fn connected() -> TcpStream {
    let (server, _watch) = server();
    let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    tokio::spawn(bound.into_future());
    TcpStream::connect(address).await.unwrap()
}

/// How long a server waits after these bytes before it closes; the clock runs on by itself as
/// soon as everyone waits.
async fn until_closed(stream: &mut TcpStream, bytes: &[u8]) -> (Duration, String) {
    stream.write_all(bytes).await.unwrap();
    let (start, mut read) = (Instant::now(), Vec::new());
    stream.read_to_end(&mut read).await.unwrap();
    (start.elapsed(), String::from_utf8_lossy(&read).into_owned())
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed() {
    let mut stream = connected().await;
    let (waited, read) = until_closed(&mut stream, b"").await;
    assert!(waited >= HEAD && waited < HEAD * 2, "{waited:?}");
    assert_eq!(read, "");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_is_given_up() {
    let mut stream = connected().await;
    let begun = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ";
    let (waited, _) = until_closed(&mut stream, begun).await;
    assert!(waited >= HEAD && waited < HEAD * 3, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_nobody_uses_any_more_is_closed() {
    let mut stream = connected().await;
    let echo = call(json!(1), "echo", json!({"text": "once"}), Unwanted).bytes();
    let (waited, read) = until_closed(&mut stream, echo.as_bytes()).await;
    assert!(read.contains("once"), "{read}");
    assert!(waited >= HEAD && waited < HEAD * 2, "{waited:?}");
}

#[tokio::test]
async fn more_headers_than_anyone_needs_are_refused() {
    let mut stream = connected().await;
    let mut head = String::from("POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
    for number in 0..200 {
        head.push_str(&format!("X-{number}: y\r\n"));
    }
    head.push_str("\r\n");
    let (_, read) = until_closed(&mut stream, head.as_bytes()).await;
    assert!(read.starts_with("HTTP/1.1 431"), "{read}");
}

#[tokio::test]
async fn a_head_longer_than_anyone_needs_is_refused() {
    let mut stream = connected().await;
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: {}", "y".repeat(1 << 20));
    // The server may close before it has all of it.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    let read = String::from_utf8_lossy(&read);
    assert!(read.is_empty() || read.starts_with("HTTP/1.1 431"), "{read}");
}
