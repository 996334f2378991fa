//! Which connections there are to the server, and when.

use std::{
    future::IntoFuture as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use turnbuckle::{Client, Revision, Server};
use turnbuckle_gateway::Gateway;

use crate::{
    script::scripted,
    support::{Fixture, LEGACY, MODERN, Wire, connect, serve_http},
};

/// A gateway that counts its connections.
fn counting(server: &Server, revision: Revision) -> (Gateway, Arc<AtomicUsize>, Fixture) {
    let (count, ended) = (Arc::new(AtomicUsize::new(0)), Fixture::default());
    let (server, counted, fixture) = (server.clone(), count.clone(), ended.clone());
    let gateway = Gateway::new(move |builder| {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        counted.fetch_add(1, Ordering::SeqCst);
        let (serving, fixture) = (server.serve(theirs), fixture.clone());
        tokio::spawn(async move {
            serving.into_future().await.unwrap();
            fixture.happened("ended");
        });
        builder.revision(revision).over(ours)
    });
    (gateway, count, ended)
}

async fn client(url: &str, revision: Revision) -> Client {
    Client::builder().revision(revision).no_proxy().connect(url).await.unwrap()
}

#[tokio::test]
async fn each_legacy_client_has_its_own_connection_to_a_legacy_server_until_it_leaves() {
    let (gateway, count, ended) = counting(&Fixture::default().server(), LEGACY);
    let url = serve_http(&gateway).await;
    assert_eq!(count.load(Ordering::SeqCst), 1, "the one that all modern requests share");
    for _ in 0..3 {
        client(&url, MODERN).await.call_tool("echo", ()).await.unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let (first, second) = (client(&url, LEGACY).await, client(&url, LEGACY).await);
    for _ in 0..2 {
        first.call_tool("echo", ()).await.unwrap();
        second.call_tool("echo", ()).await.unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 3);
    first.close().await;
    ended.wait("ended").await;
    second.call_tool("echo", ()).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_modern_server_needs_one_connection_for_all() {
    let (gateway, count, _) = counting(&Fixture::default().server(), MODERN);
    let url = serve_http(&gateway).await;
    for revision in [MODERN, LEGACY, MODERN, LEGACY] {
        client(&url, revision).await.call_tool("echo", ()).await.unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_on_a_stream_of_its_own_costs_one_connection_that_ends_with_it() {
    for downstream in [MODERN, LEGACY] {
        for upstream in [MODERN, LEGACY] {
            let (gateway, count, ended) = counting(&Fixture::default().server(), upstream);
            let client = connect(Client::builder(), &gateway, (Wire::Stream, downstream)).await;
            client.call_tool("echo", ()).await.unwrap();
            assert_eq!(count.load(Ordering::SeqCst), 1, "{downstream} {upstream}");
            client.close().await;
            ended.wait("ended").await;
        }
    }
}

#[tokio::test]
async fn connections_are_limited_and_those_that_nobody_uses_give_way() {
    let (gateway, count, ended) = counting(&Fixture::default().server(), LEGACY);
    let url = serve_http(&gateway.connections(1)).await;
    let idle = Session::open(&url).await;
    idle.call("echo").await;
    let other = Session::open(&url).await;
    other.call("echo").await;
    ended.wait("ended").await;
    assert_eq!(count.load(Ordering::SeqCst), 3, "the second took the place of the first");
    // A client that listens uses its connection.
    let busy = client(&url, LEGACY).await;
    busy.call_tool("echo", ()).await.unwrap();
    let error = idle.call("echo").await;
    assert!(error["error"]["message"].as_str().unwrap().contains("(connections)"), "{error}");
}

#[tokio::test]
async fn a_session_that_was_idle_finds_its_settings_again() {
    let (gateway, count, ended) = counting(&Fixture::default().server(), LEGACY);
    let idle = Duration::from_secs(30 * 60);
    let url = serve_http(&gateway.idle_connections(idle)).await;
    let session = Session::open(&url).await;
    session.request("logging/setLevel", json!({"level": "info"})).await;
    tokio::time::pause();
    tokio::time::advance(idle * 2).await;
    ended.wait("ended").await;
    tokio::time::resume();
    let params = json!({"name": "count"});
    let (_, body) = post(&session.url, Some(&session.id), "tools/call", params).await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
    for message in ["did 1", "did 2", "did 3", "counted"] {
        assert!(body.contains(message), "{body}");
    }
}

#[tokio::test]
async fn a_session_that_is_opened_and_used_costs_one_connection() {
    let (gateway, count, _) = counting(&Fixture::default().server(), LEGACY);
    let url = serve_http(&gateway).await;
    let session = Session::open(&url).await;
    let opened = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send(&url, Some(&session.id), &opened).await;
    for _ in 0..2 {
        session.call("echo").await;
    }
    assert_eq!(count.load(Ordering::SeqCst), 2, "one of them is for all modern requests");
}

/// A session is in use only while a request of it is: what it says goes by its own connection all
/// the same, and never by that which others share.
#[tokio::test]
async fn a_notification_of_a_session_goes_by_the_sessions_own_connection() {
    let (gateway, mut dialed) = scripted(LEGACY);
    let serving = tokio::spawn(async move { serve_http(&gateway).await });
    let mut shared = dialed.recv().await.unwrap();
    shared.opened(json!({})).await;
    let url = serving.await.unwrap();
    let session = Session::open(&url).await;
    let news = json!({"jsonrpc": "2.0", "method": "acme/news", "params": {"n": 1}});
    let (head, _) = send(&url, Some(&session.id), &news).await;
    assert!(head.starts_with("HTTP/1.1 202"), "{head}");
    let mut own = dialed.recv().await.unwrap();
    own.opened(json!({})).await;
    own.next("acme/news").await;
    send(&url, Some(&session.id), &news).await;
    own.next("acme/news").await;
    let modern = client(&url, MODERN).await;
    let _call = tokio::spawn(async move { modern.request("acme/call", ()).await });
    shared.next("acme/call").await;
}

/// A session without a stream of its own, so that nothing uses it between two requests.
struct Session {
    url: String,
    id: String,
}

impl Session {
    async fn open(url: &str) -> Session {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "downstream", "version": "1"}});
        let (headers, _) = post(url, None, "initialize", params).await;
        let mut names = headers.lines().filter_map(|line| line.split_once(": "));
        let id = names.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")).unwrap().1;
        let id = id.trim().to_owned();
        Session { url: url.to_owned(), id }
    }

    async fn call(&self, tool: &str) -> serde_json::Value {
        self.request("tools/call", json!({"name": tool})).await
    }

    async fn request(&self, method: &str, params: serde_json::Value) -> serde_json::Value {
        let (_, body) = post(&self.url, Some(&self.id), method, params).await;
        let mut messages = body.lines().filter_map(|line| {
            let data = line.strip_prefix("data:").unwrap_or(line).trim();
            serde_json::from_str::<serde_json::Value>(data).ok()
        });
        messages.find(|message| message["id"] == 1).unwrap_or_else(|| panic!("no answer: {body}"))
    }
}

async fn post(
    url: &str,
    session: Option<&str>,
    method: &str,
    params: serde_json::Value,
) -> (String, String) {
    send(url, session, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        .await
}

async fn send(url: &str, session: Option<&str>, message: &serde_json::Value) -> (String, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let body = message.to_string();
    let session = session.map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{session}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}
