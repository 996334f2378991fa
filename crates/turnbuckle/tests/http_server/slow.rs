//! Clients that are slow, silent or talk too much cost only themselves, and not for long.

use std::time::Duration;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use turnbuckle::Limits;

use crate::support::{Progress::Unwanted, Raw, call, server};

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

/// The smallest frames of HTTP/2: length, type, flags and stream, then the payload.
fn http2_frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

const SETTINGS: u8 = 4;
const PING: u8 = 6;
const ACK: u8 = 1;

/// Reads frames until the server closes, and answers each PING.
async fn answer_pings(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        if stream.read_exact(&mut payload).await.is_err() {
            break;
        }
        if (head[3], head[4] & ACK) == (PING, 0) {
            // It may be closed by now.
            let _ = stream.write_all(&http2_frame(PING, ACK, 0, &payload)).await;
        }
    }
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn an_http_2_connection_that_only_answers_pings_is_closed() {
    let mut stream = connected().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    stream.write_all(&http2_frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let waited = answer_pings(&mut stream).await;
    // The clock may run on while the last frames are exchanged.
    assert!(waited >= HEAD && waited < HEAD * 4, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_closed_over_http_1() {
    let mut stream = connected().await;
    let long = "x".repeat(3 << 20);
    let echo = call(json!(1), "echo", json!({"text": long}), Unwanted).bytes();
    let start = Instant::now();
    // Writing waits once all buffers are full, and fails once the server has closed.
    while stream.write_all(echo.as_bytes()).await.is_ok() {}
    assert!(start.elapsed() >= HEAD && start.elapsed() < HEAD * 4, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_closed_over_http_2() {
    let (server, mut watch) = server();
    let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    tokio::spawn(bound.into_future());
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut send, connection) =
        hyper::client::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new())
            .initial_stream_window_size(0)
            .handshake::<_, String>(hyper_util::rt::TokioIo::new(stream))
            .await
            .unwrap();
    let closed = tokio::spawn(connection);
    let message = call(json!(1), "echo", json!({"text": "a".repeat(100_000)}), Unwanted);
    let mut request = message.request_with(message.text.clone());
    *request.uri_mut() = format!("http://{address}/mcp").parse().unwrap();
    request.headers_mut().remove("host");
    let response = send.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let start = Instant::now();
    let _ = closed.await.unwrap();
    assert!(start.elapsed() >= HEAD && start.elapsed() < HEAD * 4, "{:?}", start.elapsed());
    watch.nothing();
}

#[tokio::test]
async fn an_address_has_only_so_many_connections() {
    let (server, _watch) = crate::support::server_with(Limits::default().connections_per_peer(2));
    let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    tokio::spawn(bound.into_future());
    let echo = call(json!(1), "echo", json!({"text": "a"}), Unwanted);
    let (mut one, mut two) = (connect(address).await, connect(address).await);
    assert_eq!((one.ask(&echo).await.status, two.ask(&echo).await.status), (200, 200));
    let mut third = TcpStream::connect(address).await.unwrap();
    assert!(matches!(third.read(&mut [0]).await, Ok(0) | Err(_)), "it is closed");
    drop(one);
    // The server notices a step later that the first one has left.
    loop {
        let mut next = TcpStream::connect(address).await.unwrap();
        let _ = next.write_all(echo.bytes().as_bytes()).await;
        if matches!(next.read(&mut [0]).await, Ok(1)) {
            break;
        }
    }
    assert_eq!(two.ask(&echo).await.status, 200);
}

async fn connect(address: std::net::SocketAddr) -> Raw<TcpStream> {
    Raw::new(TcpStream::connect(address).await.unwrap())
}
