//! A client that goes away is a cancel, of exactly that request.

use std::{net::SocketAddr, time::Duration};

use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use turnbuckle::Server;

use crate::support::{
    Fed,
    Progress::{self, Unwanted, Wanted},
    Raw, Watch, call, listen, server,
};

/// A server on a free port, which ends with the test's runtime.
async fn serve(server: &Server) -> SocketAddr {
    let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    tokio::spawn(bound.into_future());
    address
}

async fn connect(address: SocketAddr) -> Raw<TcpStream> {
    Raw::new(TcpStream::connect(address).await.unwrap())
}

/// Both of what a cancelled handler tells, in either order.
async fn cancelled(watch: &mut Watch, name: &str) {
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, [format!("{name} dropped"), format!("{name} heard")]);
}

/// Closes one of two connections, before its answer has begun (no progress) or after.
async fn close_one_of_two(progress: Progress) {
    let (server, mut watch) = server();
    let address = serve(&server).await;
    let (mut one, mut two) = (connect(address).await, connect(address).await);
    one.send(&call(json!(1), "wait", json!({"text": "one"}), progress).bytes()).await;
    assert_eq!(watch.next().await, "one started");
    two.send(&call(json!(1), "wait", json!({"text": "two"}), progress).bytes()).await;
    assert_eq!(watch.next().await, "two started");
    if progress == Wanted {
        assert!(one.head().await.contains("text/event-stream"));
        assert!(one.chunk().await.unwrap().contains("progress"));
    }
    drop(one);
    cancelled(&mut watch, "one").await;
    watch.nothing();
    watch.release();
    let answer = two.answer().await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("released"));
    assert_eq!(watch.next().await, "two dropped");
    // The connection serves on.
    let answer = two.ask(&call(json!(1), "echo", json!({"text": "a"}), Unwanted)).await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "a");
    watch.nothing();
}

#[tokio::test]
async fn a_close_before_the_answer_has_begun_drops_that_handler() {
    close_one_of_two(Unwanted).await;
}

#[tokio::test]
async fn a_close_while_events_are_read_drops_that_handler() {
    close_one_of_two(Wanted).await;
}

#[tokio::test]
async fn a_close_while_the_request_is_sent_starts_nothing() {
    let (server, mut watch) = server();
    let address = serve(&server).await;
    let bytes = call(json!(1), "wait", json!({"text": "one"}), Unwanted).bytes();
    for length in [1, 30, bytes.len() / 2, bytes.len() - 1] {
        let mut one = connect(address).await;
        one.send(&bytes[..length]).await;
    }
    let answer =
        connect(address).await.ask(&call(json!(1), "echo", json!({"text": "a"}), Unwanted)).await;
    assert_eq!(answer.status, 200);
    watch.nothing();
}

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    Fin,
    Reset,
}

/// Sends a call with bytes behind it and leaves. The handler has to be dropped long before a timeout
/// of the connection ends it.
async fn leave_with_bytes_behind<S: AsyncRead + AsyncWrite + Unpin>(
    mut connection: Raw<S>,
    watch: &mut Watch,
    behind: &str,
) {
    let bytes = call(json!(1), "wait", json!({"text": "one"}), Unwanted).bytes();
    connection.send(&format!("{bytes}{behind}")).await;
    assert_eq!(watch.next().await, "one started");
    drop(connection);
    tokio::time::timeout(Duration::from_secs(10), cancelled(watch, "one")).await.expect(behind);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_with_bytes_behind_its_request() {
    let (server, mut watch) = server();
    let address = serve(&server).await;
    for leaving in [Leaving::Fin, Leaving::Reset] {
        for behind in ["\r\n", "GET", &"x".repeat(20_000), &"x".repeat(100_000)] {
            let stream = TcpStream::connect(address).await.unwrap();
            if matches!(leaving, Leaving::Reset) {
                stream.set_zero_linger().unwrap();
            }
            leave_with_bytes_behind(Raw::new(stream), &mut watch, behind).await;
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_client_of_a_unix_socket_that_leaves_is_noticed_with_bytes_behind_its_request() {
    let (server, mut watch) = server();
    let path = std::env::temp_dir().join(format!("turnbuckle-left-{}.sock", std::process::id()));
    let bound = server.serve_http(format!("unix:{}", path.display())).bind().await.unwrap();
    tokio::spawn(bound.into_future());
    for behind in ["", "\r\n", "GET", &"x".repeat(20_000), &"x".repeat(100_000)] {
        let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        leave_with_bytes_behind(Raw::new(stream), &mut watch, behind).await;
    }
}

#[tokio::test]
async fn a_listener_that_goes_away_is_forgotten() {
    let (server, _watch) = server();
    let changes = server.changes();
    let address = serve(&server).await;
    let mut one = connect(address).await;
    one.send(&listen(json!(1)).bytes()).await;
    assert!(one.head().await.contains("text/event-stream"));
    assert!(one.chunk().await.unwrap().contains("acknowledged"));
    assert_eq!(changes.listeners(), 1);
    drop(one);
    while changes.listeners() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn over_http_2_a_reset_stream_drops_that_handler_and_no_other() {
    for progress in [Unwanted, Wanted] {
        let (server, mut watch) = server();
        let address = serve(&server).await;
        let stream = TcpStream::connect(address).await.unwrap();
        let (client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        let send = |name: &str| {
            let mut request = call(json!(1), "wait", json!({"text": name}), progress).request();
            *request.uri_mut() = format!("http://{address}/mcp").parse().unwrap();
            request.headers_mut().remove("host");
            let mut client = client.clone();
            let request: http::Request<Fed> = request;
            async move { client.send_request(request).await }
        };
        let one = tokio::spawn(send("one"));
        assert_eq!(watch.next().await, "one started");
        let two = tokio::spawn(send("two"));
        assert_eq!(watch.next().await, "two started");
        if progress == Wanted {
            drop(one.await.unwrap().unwrap());
        } else {
            one.abort();
        }
        cancelled(&mut watch, "one").await;
        watch.nothing();
        watch.release();
        assert_eq!(two.await.unwrap().unwrap().status(), 200);
        if progress == Unwanted {
            assert_eq!(watch.next().await, "two dropped");
        }
    }
}

#[tokio::test]
async fn a_hundred_calls_given_up_leave_nothing() {
    let (server, mut watch) = server();
    let address = serve(&server).await;
    let mut connections = Vec::new();
    for _ in 0..100 {
        let mut one = connect(address).await;
        one.send(&call(json!(1), "wait", json!({"text": "x"}), Unwanted).bytes()).await;
        connections.push(one);
    }
    for _ in 0..100 {
        assert_eq!(watch.next().await, "x started");
    }
    drop(connections);
    for _ in 0..200 {
        assert!(watch.next().await != "x started");
    }
    watch.nothing();
}
