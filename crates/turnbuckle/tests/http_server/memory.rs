//! The memory of messages is bounded.

use std::{future::poll_fn, pin::pin, task::Poll};

use http_body::Body as _;
use serde_json::{Value, json};
use tower_service::Service;
use turnbuckle::Limits;

use crate::support::{Progress::Unwanted, ask, call, server_with, text};

const LONG: usize = 70_000;

fn limits() -> Limits {
    Limits::default().memory_bytes(64 * 1024)
}

#[tokio::test]
async fn a_request_counts_until_its_handler_has_ended() {
    let (server, mut watch) = server_with(limits());
    let service = server.http_service();
    let long = json!({"text": "a".repeat(LONG)});
    let mut first = pin!(service.clone().call(call(json!(1), "wait", long, Unwanted).request()));
    let pending = poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await;
    assert!(pending);
    assert!(watch.next().await.ends_with("started"));
    let echo = || call(json!("two"), "echo", json!({"text": "b"}), Unwanted).request();
    let response = ask(&service, echo()).await;
    assert_eq!(response.status(), 503);
    let answer: Value = serde_json::from_str(&text(response.into_body()).await).unwrap();
    assert_eq!(answer["id"], "two");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("memory_bytes"), "{message}");
    watch.release();
    drop(first.await.unwrap());
    assert_eq!(ask(&service, echo()).await.status(), 200);
}

#[tokio::test]
async fn a_response_counts_until_its_last_byte_is_written() {
    let (server, _watch) = server_with(limits());
    let service = server.http_service();
    let long = json!({"text": "a".repeat(LONG)});
    let mut unread =
        ask(&service, call(json!(1), "echo", long, Unwanted).request()).await.into_body();
    let status = async || {
        let echo = call(json!(2), "echo", json!({"text": "b"}), Unwanted);
        ask(&service, echo.request()).await.status()
    };
    assert_eq!(status().await, 503, "nothing of it was read");
    let mut frames = Vec::new();
    while let Some(frame) =
        poll_fn(|context| std::pin::Pin::new(&mut unread).poll_frame(context)).await
    {
        frames.push(frame.unwrap());
    }
    drop(unread);
    assert_eq!(status().await, 503, "it waits in a buffer of the connection");
    drop(frames);
    assert_eq!(status().await, 200);
}

#[tokio::test]
async fn a_body_that_arrives_counts_before_its_end() {
    let (server, _watch) = server_with(limits());
    let service = server.http_service();
    let message = call(json!(1), "echo", json!({"text": "a"}), Unwanted);
    let (sender, body) = crate::support::Fed::new();
    sender.try_send(Ok("{".repeat(LONG).into())).unwrap();
    let mut slow = Box::pin(service.clone().call(message.request_with(body)));
    let pending = poll_fn(|context| Poll::Ready(slow.as_mut().poll(context).is_pending())).await;
    assert!(pending);
    assert_eq!(ask(&service, message.request()).await.status(), 503);
    drop(slow);
    assert_eq!(ask(&service, message.request()).await.status(), 200);
}
