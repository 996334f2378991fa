//! The wires: HTTP/1.1 on TCP, a Unix socket, a router of someone else's.

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::support::{
    Progress::{Unwanted, Wanted},
    Raw, call, events, server,
};

#[tokio::test]
async fn over_tcp_one_connection_serves_many_requests() {
    let (server, _watch) = server();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bound = server.serve_http(listener).bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    assert_eq!(bound.url(), format!("http://{address}/mcp"));
    tokio::spawn(bound.into_future());
    let mut raw = Raw::new(TcpStream::connect(address).await.unwrap());
    for id in 0..3 {
        let long = "x".repeat(300_000 * id);
        let answer = raw.ask(&call(json!(id), "echo", json!({"text": long}), Unwanted)).await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains(&format!("content-length: {}\r\n", answer.body.len())));
        assert_eq!(answer.json()["id"], id);
        assert_eq!(answer.json()["result"]["content"][0]["text"], long);
    }
    let answer = raw.ask(&call(json!(3), "count", json!({"n": 3}), Wanted)).await;
    assert_eq!(events(&answer.body).len(), 4);
    let answer = raw.ask(&call(json!(4), "fail", json!({}), Unwanted)).await;
    assert_eq!(answer.json()["error"]["code"], -32603);
    raw.send("GET /elsewhere HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("/mcp"));
    let head = "GET /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-protocol-version: 2026-07-28\r\n\r\n";
    raw.send(head).await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 405);
    assert!(answer.head.contains("allow: post"));
}

#[tokio::test]
async fn a_body_that_declares_too_much_is_refused_before_it_is_sent() {
    let (server, _watch) = server();
    let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
    let address = bound.local_addr().unwrap();
    tokio::spawn(bound.into_future());
    let mut raw = Raw::new(TcpStream::connect(address).await.unwrap());
    let head = call(json!(1), "echo", json!({}), Unwanted).bytes();
    let (head, _) = head.split_once("content-length").unwrap();
    raw.send(&format!("{head}content-length: {}\r\n\r\n", (4 << 20) + 1)).await;
    assert_eq!(raw.answer().await.status, 413);
}

#[cfg(unix)]
#[tokio::test]
async fn over_a_unix_socket_the_host_means_nothing_and_the_file_goes_with_the_server() {
    let path = std::env::temp_dir().join(format!("turnbuckle-http-{}.sock", std::process::id()));
    let address = format!("unix:{}", path.display());
    // What a run that was killed left behind.
    drop(std::os::unix::net::UnixListener::bind(&path));
    let (server, _watch) = server();
    let bound = server.serve_http(&address).bind().await.unwrap();
    assert_eq!(bound.url(), address);
    assert_eq!(bound.local_addr(), None);
    let again = server.serve_http(&address).bind().await.unwrap_err().to_string();
    assert!(again.contains(&address), "{again}");
    let serving = tokio::spawn(bound.into_future());
    let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
    let bytes = call(json!(1), "echo", json!({"text": "a"}), Unwanted).bytes();
    let mut raw = Raw::new(stream);
    raw.send(&bytes.replace("host: localhost", "host: anything")).await;
    assert_eq!(raw.answer().await.status, 200);
    serving.abort();
    assert!(serving.await.is_err());
    assert!(!path.exists());
}

#[tokio::test]
async fn mounted_in_axum_it_serves_below_its_path() {
    let (server, _watch) = server();
    let app = axum::Router::new().nest_service("/mcp", server.http_service());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, app).into_future());
    let mut raw = Raw::new(TcpStream::connect(address).await.unwrap());
    let answer = raw.ask(&call(json!(1), "echo", json!({"text": "a"}), Unwanted)).await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "a");
    let answer = raw.ask(&call(json!(2), "count", json!({"n": 3}), Wanted)).await;
    assert_eq!(events(&answer.body).len(), 4);
}
