//! A client and a server that speaks the HTTP+SSE of 2024-11-05.

use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder, ErrorKind, Limits, Revision,
    client::{ConnectionState, Reconnect},
};

use crate::{
    raw::said,
    rig::within,
    session::{cancel, legacy, result},
    web::{Post, Web, abandon, launch, settle},
};

/// Connects with a server that refuses the POST and has a stream instead; returns that stream.
async fn open(web: &mut Web, status: u16, endpoint: &str) -> (Client, Post) {
    open_as(web, legacy(), status, endpoint).await
}

async fn open_as(
    web: &mut Web,
    builder: ClientBuilder,
    status: u16,
    endpoint: &str,
) -> (Client, Post) {
    let connecting = tokio::spawn(builder.header("x-own", "1").connect(web.url()));
    let stream = opening(web, status, endpoint).await;
    (connecting.await.unwrap().unwrap(), stream)
}

/// The server's part of that.
async fn opening(web: &mut Web, status: u16, endpoint: &str) -> Post {
    let refused = web.post().await;
    assert_eq!(refused.method(), "initialize");
    refused.answer(status, "text/plain", "").await;
    let stream = web.post().await;
    assert_eq!(stream.verb(), "GET");
    assert!(stream.head.starts_with("GET /mcp "), "{}", stream.head);
    assert_eq!(stream.header("accept"), Some("text/event-stream"));
    assert_eq!(stream.header("x-own"), Some("1"));
    stream.stream().await;
    stream.chunk(format!("event: endpoint\ndata: {endpoint}\n\n")).await;
    let initialize = web.post().await;
    assert!(initialize.head.starts_with("POST /messages?id=7 "), "{}", initialize.head);
    assert_eq!(initialize.method(), "initialize");
    assert_eq!(initialize.header("x-own"), Some("1"));
    assert_eq!(initialize.header("mcp-method"), None);
    initialize.accept().await;
    message(&stream, &initialize, result("2025-11-25")).await;
    let initialized = web.post().await;
    assert_eq!(initialized.method(), "notifications/initialized");
    initialized.accept().await;
    stream
}

/// Answers a request on the stream.
async fn message(stream: &Post, to: &Post, result: Value) {
    let answer = json!({"jsonrpc": "2.0", "id": to.body["id"], "result": result});
    stream.chunk(format!("event: message\ndata: {answer}\n\n")).await;
}

// req: transport:sse, transport:sse:endpoint-event, flow:compat:streamable-then-sse-fallback
#[tokio::test]
async fn a_server_that_refuses_the_handshake_is_tried_the_older_way() {
    within(async {
        for (status, absolute) in [(405, false), (404, true), (400, false)] {
            let mut web = Web::new().await;
            let origin = if absolute { format!("http://{}", web.address()) } else { String::new() };
            let (client, stream) = open(&mut web, status, &format!("{origin}/messages?id=7")).await;
            assert_eq!(client.revision(), Revision::V2025_11_25);
            let call = launch(client.call_tool("t", ()));
            let post = web.post().await;
            assert!(post.head.starts_with("POST /messages?id=7 "), "{}", post.head);
            post.accept().await;
            message(&stream, &post, said("ok")).await;
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
            client.close().await;
            stream.closed().await;
        }
    })
    .await;
}

#[tokio::test]
async fn b13_a_call_that_is_dropped_is_cancelled() {
    within(async {
        let mut web = Web::new().await;
        let (client, stream) = open(&mut web, 405, "/messages?id=7").await;
        let call = launch(client.call_tool("t", ()).request_id("x"));
        web.post().await.accept().await;
        abandon(call).await;
        let (post, params) = cancel(&mut web).await;
        assert_eq!(params, json!({"requestId": "x", "reason": "caller cancelled"}));
        post.accept().await;
        // A question of the server is answered by a POST.
        let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
        stream.chunk(format!("data: {ping}\n\n")).await;
        let pong = web.post().await;
        assert_eq!(pong.body, json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
        pong.accept().await;
    })
    .await;
}

/// A server that reads the cancel first knows of no such request, and then works for nobody.
#[tokio::test]
async fn d30a_a_cancel_does_not_overtake_its_request_and_holds_nobody_up() {
    within(async {
        let mut web = Web::new().await;
        let (client, stream) = open(&mut web, 405, "/messages?id=7").await;
        let dropped = launch(client.call_tool("t", ()).request_id("x"));
        let slow = web.post().await;
        abandon(dropped).await;
        let other = launch(client.call_tool("other", ()));
        let post = web.post().await;
        assert_eq!(post.body["params"]["name"], "other", "{}", post.body);
        post.accept().await;
        message(&stream, &post, said("ok")).await;
        assert_eq!(other.await.unwrap().unwrap().to_text(), "ok");
        slow.accept().await;
        let (post, params) = cancel(&mut web).await;
        assert_eq!(params["requestId"], "x");
        post.accept().await;
    })
    .await;
}

#[tokio::test]
async fn a_slow_post_holds_nobody_up_and_a_failed_one_costs_its_call() {
    within(async {
        let mut web = Web::new().await;
        let (client, stream) = open(&mut web, 405, "/messages?id=7").await;
        let slow = launch(client.call_tool("slow", ()));
        let slow_post = web.post().await;
        let failed = launch(client.call_tool("failed", ()));
        web.post().await.answer(500, "text/plain", "").await;
        let error = failed.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("500"), "{error}");
        assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(500)));
        assert!(error.maybe_executed() && error.as_rpc().is_none());
        let refused = launch(client.call_tool("refused", ()));
        web.post().await.answer(400, "text/plain", "").await;
        let error = refused.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(400)));
        assert!(!error.maybe_executed());
        let lost = launch(client.call_tool("lost", ()));
        web.post().await.hang_up().await;
        let error = lost.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        message(&stream, &slow_post, said("slow")).await;
        assert_eq!(slow.await.unwrap().unwrap().to_text(), "slow");
        slow_post.accept().await;
    })
    .await;
}

#[tokio::test]
async fn a_message_that_is_too_long_costs_its_call_and_nobody_waits_for_ever() {
    within(async {
        let limited = || legacy().limits(Limits::default().line_bytes(4096));
        let long = "x".repeat(5000);
        let mut web = Web::new().await;
        let (client, stream) = open_as(&mut web, limited(), 405, "/messages?id=7").await;
        let before = web.requests();
        let error = client.call_tool("t", json!({"text": long})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(!error.maybe_executed(), "{error}");
        assert_eq!(web.requests(), before);
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.accept().await;
        message(&stream, &post, said(&long)).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.maybe_executed(), "{error}");
        // Others are not concerned.
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.accept().await;
        message(&stream, &post, said("ok")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        // One that does not say whom it answers may be anyone's.
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.accept().await;
        let (text, id) = (said(&long), &post.body["id"]);
        let answer = format!(r#"{{"jsonrpc":"2.0","result":{text},"id":{id}}}"#);
        stream.chunk(format!("data: {answer}\n\n")).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        stream.closed().await;
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    within(async {
        let mut web = Web::new().await;
        let builder = legacy().reconnect(Reconnect::never());
        let (client, stream) = open_as(&mut web, builder, 405, "/messages?id=7").await;
        let call = launch(client.call_tool("t", ()));
        web.post().await.accept().await;
        stream.end().await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        assert!(error.to_string().contains("event stream"), "{error}");
        let error = client.call_tool("t", ()).await.unwrap_err();
        assert!(error.is_closed() && !error.maybe_executed(), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_ended_is_opened_again_if_it_may_be() {
    within(async {
        let mut web = Web::new().await;
        let (client, stream) = open(&mut web, 405, "/messages?id=7").await;
        stream.end().await;
        let stream = opening(&mut web, 405, "/messages?id=7").await;
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        assert_eq!(post.method(), "tools/call");
        post.accept().await;
        message(&stream, &post, said("ok")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
        assert!(matches!(client.state(), ConnectionState::Ready { generation: 2, .. }));
    })
    .await;
}

/// A server that ends every stream is not asked for another without end.
#[tokio::test]
async fn streams_that_end_at_once_spend_the_budget() {
    within(async {
        let mut web = Web::new().await;
        let policy = Reconnect::new().attempts(2).first_pause(std::time::Duration::from_millis(1));
        let builder = legacy().reconnect(policy);
        let (client, stream) = open_as(&mut web, builder, 405, "/messages?id=7").await;
        let mut states = client.states();
        stream.end().await;
        for _ in 0..2 {
            opening(&mut web, 405, "/messages?id=7").await.end().await;
        }
        while !matches!(states.next().await, Some(ConnectionState::Unreachable { .. })) {}
        settle().await;
        assert!(!web.has_more());
        // Whoever calls has one more made.
        let call = launch(client.call_tool("t", ()));
        let stream = opening(&mut web, 405, "/messages?id=7").await;
        let post = web.post().await;
        post.accept().await;
        message(&stream, &post, said("ok")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
    })
    .await;
}

#[tokio::test]
async fn all_attempts_are_told() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(Client::builder().no_proxy().connect(web.url()));
        web.post().await.answer(404, "text/plain", "").await;
        web.post().await.answer(405, "text/plain", "").await;
        web.post().await.answer(406, "text/plain", "").await;
        let error = connecting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert_eq!(error.status(), Some(405), "{error}");
        let text = error.to_string();
        for part in ["server/discover", "404", "`initialize` failed", "405", "HTTP+SSE", "406"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(web.requests(), 3);
        // Another origin is not posted to.
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        web.post().await.answer(405, "text/plain", "").await;
        let stream = web.post().await;
        stream.stream().await;
        stream.chunk("event: endpoint\ndata: http://elsewhere.test/m\n\n").await;
        let error = connecting.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("another origin"), "{error}");
        stream.closed().await;
        settle().await;
        assert_eq!(web.requests(), 2);
    })
    .await;
}
