//! The service itself, without a socket.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use http::Method;
use http_body::Body as _;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_service::Service;
use turnbuckle::Limits;

use crate::support::{
    Fed,
    Progress::{Unwanted, Wanted},
    ask, call, events, frame, listen, message, server, server_with, text,
};

// req: hosting:http:modern:tools-call-stateless, hosting:http:modern:no-session-id
// req: typescript:hosting:entry:modern-lazy-sse-upgrade
#[tokio::test]
async fn a_call_that_says_nothing_is_answered_as_one_line_of_json() {
    let (server, _watch) = server();
    let service = server.http_service();
    for id in [json!(1), json!("1"), json!("ä\n"), json!(-7), json!(u64::MAX)] {
        let response =
            ask(&service, call(id.clone(), "echo", json!({"text": "a"}), Wanted).request()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/json");
        assert!(!response.headers().contains_key("mcp-session-id"));
        let exact = response.body().size_hint().exact().unwrap();
        let body = text(response.into_body()).await;
        assert_eq!(body.len() as u64, exact);
        assert!(!body.contains('\n'));
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["content"][0]["text"], "a");
        assert_eq!(answer["result"]["resultType"], "complete");
    }
}

#[tokio::test]
async fn a_long_result_is_sent_whole_with_its_exact_length() {
    let (server, _watch) = server();
    let long = "x".repeat(100_000);
    let response = ask(
        &server.http_service(),
        call(json!(1), "echo", json!({"text": long}), Unwanted).request(),
    )
    .await;
    let exact = response.body().size_hint().exact().unwrap();
    let body = text(response.into_body()).await;
    assert_eq!(body.len() as u64, exact);
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], long);
}

// req: hosting:http:modern:discover-response-shape, lifecycle:discover:basic
#[tokio::test]
async fn what_needs_no_handler_is_answered_too() {
    let (server, _watch) = server();
    let service = server.http_service();
    for method in ["server/discover", "tools/list"] {
        let response = ask(&service, message(json!(1), method, json!({})).request()).await;
        assert_eq!(response.status(), 200);
        let answer: Value = serde_json::from_str(&text(response.into_body()).await).unwrap();
        assert!(answer["result"]["ttlMs"].is_u64(), "{answer}");
        if method == "server/discover" {
            let found = &answer["result"];
            assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
            assert!(found["capabilities"]["tools"].is_object(), "{answer}");
            assert!(found["cacheScope"].is_string() && found.get("serverInfo").is_none());
            assert!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string());
        }
    }
}

// req: hosting:http:modern:removed-method-status-404, hosting:http:modern:initialize-removed
// req: lifecycle:stateless:no-initialize
#[tokio::test]
async fn what_the_revision_has_no_more_is_not_found() {
    let (server, _watch) = server();
    let service = server.http_service();
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let response = ask(&service, message(json!(4), method, json!({})).request()).await;
        assert_eq!(response.status(), 404, "{method}");
        assert!(!response.headers().contains_key("mcp-session-id"));
        let answer: Value = serde_json::from_str(&text(response.into_body()).await).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(4), &json!(-32601)));
    }
}

// req: typescript:hosting:entry:modern-lazy-sse-upgrade, transport:streamable-http:notifications
#[tokio::test]
async fn ready_events_share_a_frame_with_the_answer_and_the_end() {
    let (server, _watch) = server();
    let response =
        ask(&server.http_service(), call(json!(1), "count", json!({"n": 50}), Wanted).request())
            .await;
    assert_eq!(response.status(), 200);
    let headers = response.headers();
    assert_eq!(headers["content-type"], "text/event-stream");
    assert_eq!(headers["x-accel-buffering"], "no");
    assert_eq!(headers["cache-control"], "no-cache, no-transform");
    let mut body = response.into_body();
    let events = events(&frame(&mut body).await.unwrap());
    assert!(body.is_end_stream());
    assert_eq!(events.len(), 51);
    for (at, event) in events[..50].iter().enumerate() {
        assert_eq!(event["params"]["progress"].as_f64(), Some(at as f64 + 1.0));
        assert_eq!(event["params"]["progressToken"], "t");
    }
    assert_eq!(events[50]["result"]["content"][0]["text"], "counted");
}

// req: typescript:hosting:entry:modern-response-mode, protocol:progress:no-token
#[tokio::test]
async fn progress_that_nobody_asked_for_makes_no_stream() {
    let (server, _watch) = server();
    let response =
        ask(&server.http_service(), call(json!(1), "count", json!({"n": 50}), Unwanted).request())
            .await;
    assert_eq!(response.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn a_handler_faster_than_its_reader_waits_and_nothing_is_lost() {
    let (server, _watch) = server_with(Limits::default().queued_notifications(10));
    let response =
        ask(&server.http_service(), call(json!(1), "count", json!({"n": 105}), Wanted).request())
            .await;
    let mut body = response.into_body();
    let mut seen = Vec::new();
    while let Some(frame) = frame(&mut body).await {
        let frame = events(&frame);
        assert!(frame.len() <= 11);
        seen.extend(frame);
    }
    assert_eq!(seen.len(), 106);
    assert!(seen[105]["result"].is_object());
}

// req: hosting:http:response-same-connection, hosting:http:sse-close-after-response
#[tokio::test]
async fn events_leave_as_they_come_and_the_last_frame_ends_the_body() {
    let (server, mut watch) = server();
    let response =
        ask(&server.http_service(), call(json!(1), "wait", json!({"text": "a"}), Wanted).request())
            .await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(watch.next().await, "a started");
    let mut body = response.into_body();
    let first = events(&frame(&mut body).await.unwrap());
    assert_eq!(first.len(), 1);
    assert!(!body.is_end_stream());
    watch.release();
    let last = events(&frame(&mut body).await.unwrap());
    assert!(body.is_end_stream());
    assert_eq!(last.len(), 2);
    assert_eq!(last[0]["params"]["progress"].as_f64(), Some(2.0));
    assert_eq!(last[1]["result"]["content"][0]["text"], "released");
    assert_eq!(frame(&mut body).await, None);
    assert_eq!(watch.next().await, "a dropped");
    watch.nothing();
}

#[tokio::test(start_paused = true)]
async fn after_a_silent_window_the_answer_becomes_a_stream_that_is_kept_alive() {
    let (server, watch) = server();
    let service = server.http_service().keep_alive(Duration::from_secs(7));
    let start = Instant::now();
    let response =
        ask(&service, call(json!(1), "wait", json!({"text": "a"}), Unwanted).request()).await;
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    for windows in 2..5 {
        assert_eq!(frame(&mut body).await.unwrap(), ":\n\n");
        assert_eq!(start.elapsed(), Duration::from_secs(7 * windows));
    }
    watch.release();
    let last = events(&frame(&mut body).await.unwrap());
    assert_eq!(last[0]["result"]["content"][0]["text"], "released");
    assert!(body.is_end_stream());
}

// req: hosting:http:modern:handler-exception-internal-error
#[tokio::test]
async fn a_panic_is_an_error_for_that_id_and_tells_nothing() {
    let (server, _watch) = server();
    let service = server.http_service();
    let response = ask(&service, call(json!("p"), "fail", json!({}), Unwanted).request()).await;
    let answer: Value = serde_json::from_str(&text(response.into_body()).await).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("p"), &json!(-32603)));
    assert!(!answer.to_string().contains("secret"));

    let response = ask(&service, call(json!("q"), "fail_later", json!({}), Wanted).request()).await;
    let seen = events(&text(response.into_body()).await);
    assert_eq!(seen.len(), 2);
    assert_eq!((&seen[1]["id"], &seen[1]["error"]["code"]), (&json!("q"), &json!(-32603)));
}

#[tokio::test]
async fn equal_ids_in_two_posts_are_both_served() {
    let (server, mut watch) = server();
    let service = server.http_service();
    let first = tokio::spawn({
        let request = call(json!(1), "wait", json!({"text": "a"}), Unwanted).request();
        let service = service.clone();
        async move { text(ask(&service, request).await.into_body()).await }
    });
    assert_eq!(watch.next().await, "a started");
    let response =
        ask(&service, call(json!(1), "echo", json!({"text": "b"}), Unwanted).request()).await;
    assert!(text(response.into_body()).await.contains("\"b\""));
    watch.release();
    assert!(first.await.unwrap().contains("released"));
}

// req: hosting:http:notifications-202, hosting:http:modern:notification-post-202
// req: typescript:hosting:entry:notification-202
#[tokio::test]
async fn a_posted_cancellation_is_accepted_and_cancels_nothing() {
    let (server, mut watch) = server();
    let service = server.http_service();
    let response =
        ask(&service, call(json!(1), "wait", json!({"text": "a"}), Wanted).request()).await;
    let mut body = response.into_body();
    assert_eq!(events(&frame(&mut body).await.unwrap()).len(), 1);
    assert_eq!(watch.next().await, "a started");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let request = listen(json!(9)).request_with(Fed::whole(cancel));
    let response = ask(&service, request).await;
    assert_eq!(response.status(), 202);
    assert!(response.body().is_end_stream());
    watch.nothing();
    watch.release();
    assert!(frame(&mut body).await.unwrap().contains("released"));
}

#[tokio::test]
async fn a_body_in_pieces_is_read_to_its_end() {
    let (server, _watch) = server();
    let message = call(json!(1), "echo", json!({"text": "a b c"}), Unwanted);
    let (sender, body) = Fed::new();
    for piece in message.text.as_bytes().chunks(7) {
        sender.try_send(Ok(piece.to_vec().into())).unwrap();
    }
    drop(sender);
    let response = ask(&server.http_service(), message.request_with(body)).await;
    assert!(text(response.into_body()).await.contains("a b c"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_given_up_too() {
    let (server, _watch) = server();
    let message = call(json!(1), "echo", json!({"text": "a"}), Unwanted);
    let (sender, body) = Fed::new();
    let trickle = tokio::spawn(async move {
        let mut beat = tokio::time::interval(Duration::from_secs(20));
        while sender.send(Ok(" ".into())).await.is_ok() {
            beat.tick().await;
        }
    });
    let start = Instant::now();
    let response = ask(&server.http_service(), message.request_with(body)).await;
    assert_eq!(response.status(), 408);
    assert!(
        start.elapsed() >= Duration::from_secs(300) && start.elapsed() < Duration::from_secs(330)
    );
    trickle.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_pauses_is_given_up() {
    let (server, _watch) = server();
    let message = call(json!(1), "echo", json!({"text": "a"}), Unwanted);
    let (sender, body) = Fed::new();
    sender.try_send(Ok("{".into())).unwrap();
    let start = Instant::now();
    let response = ask(&server.http_service(), message.request_with(body)).await;
    assert_eq!(response.status(), 408);
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    drop(sender);
}

#[tokio::test]
async fn past_the_limit_in_flight_a_request_is_refused_with_its_id() {
    let (server, mut watch) = server_with(Limits::default().http_in_flight(1));
    let service = server.http_service();
    let mut first = pin!(
        service.clone().call(call(json!(1), "wait", json!({"text": "a"}), Unwanted).request())
    );
    let pending = poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await;
    assert!(pending);
    assert_eq!(watch.next().await, "a started");
    let echo = || call(json!("two"), "echo", json!({"text": "b"}), Unwanted).request();
    let response = ask(&service, echo()).await;
    assert_eq!(response.status(), 503);
    let answer: Value = serde_json::from_str(&text(response.into_body()).await).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("two"), &json!(-32603)));
    watch.release();
    assert_eq!(first.await.unwrap().status(), 200);
    assert_eq!(ask(&service, echo()).await.status(), 200);
}

#[tokio::test]
async fn a_listener_hears_of_changes_until_it_is_dropped_or_told_that_this_is_the_end() {
    let (server, _watch) = server();
    let changes = server.changes();
    let service = server.http_service();
    let mut one = ask(&service, listen(json!("l")).request()).await.into_body();
    let two = ask(&service, listen(json!(2)).request()).await.into_body();
    let acknowledged = events(&frame(&mut one).await.unwrap());
    assert_eq!(acknowledged[0]["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(changes.listeners(), 2);
    drop(two);
    assert_eq!(changes.listeners(), 1);
    changes.tools();
    let changed = events(&frame(&mut one).await.unwrap());
    assert_eq!(changed[0]["method"], "notifications/tools/list_changed");

    service.shutdown();
    let end = events(&frame(&mut one).await.unwrap());
    assert!(one.is_end_stream());
    assert_eq!(end.len(), 1);
    assert_eq!(end[0]["id"], "l");
    assert_eq!(end[0]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l");
    assert_eq!(changes.listeners(), 0);

    // Who comes now is told at once; calls are served as before.
    let late = ask(&service, listen(json!(3)).request()).await;
    let late = events(&text(late.into_body()).await);
    assert_eq!(late.len(), 2);
    assert!(late[1]["result"].is_object());
    let echo = call(json!(4), "echo", json!({"text": "b"}), Unwanted);
    assert_eq!(ask(&service, echo.request()).await.status(), 200);
}

// req: mcpserver:tool:duplicate-name
#[tokio::test]
async fn a_server_with_a_problem_says_so_when_asked_and_serves_nothing() {
    let (server, _watch) = server();
    let twice = server.clone().tool(turnbuckle::tool("echo", async || "again"));
    for service in [twice.http_service(), server.http_service().allow_origin("nonsense")] {
        assert!(service.check().is_err());
        let response = ask(&service, listen(json!(1)).request()).await;
        assert_eq!(response.status(), 500);
        assert!(!text(response.into_body()).await.contains("echo"));
    }
    assert!(server.http_service().check().is_ok());
}

#[tokio::test]
async fn pages_of_listed_origins_may_ask_and_read() {
    let (server, _watch) = server();
    let service = server.http_service().cors(["https://app.example.com"]);
    let mut request = call(json!(1), "echo", json!({"text": "a"}), Unwanted).request();
    request.headers_mut().insert("origin", "https://app.example.com".parse().unwrap());
    let response = ask(&service, request).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example.com");

    let mut request = listen(json!(1)).request();
    *request.method_mut() = Method::OPTIONS;
    request.headers_mut().insert("origin", "https://app.example.com".parse().unwrap());
    request.headers_mut().insert("access-control-request-method", "POST".parse().unwrap());
    let response = ask(&service, request).await;
    assert!(response.status().is_success(), "{response:?}");
    assert_eq!(response.headers()["access-control-allow-origin"], "https://app.example.com");
}
