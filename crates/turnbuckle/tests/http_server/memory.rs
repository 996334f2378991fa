//! The memory of messages is bounded.

use std::{future::poll_fn, pin::pin, task::Poll};

use http_body::Body as _;
use serde_json::{Value, json};
use tower_service::Service;
use turnbuckle::{Limits, Principal};

use crate::{
    legacy_support::{LATEST, Session, ping, wait},
    support::{Progress::Unwanted, ask, call, server_with, text},
};

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

#[tokio::test]
async fn a_principal_may_use_half_of_the_memory() {
    let (server, mut watch) = server_with(limits());
    let service = server.http_service();
    let request = |principal: &str, tool, text: String| {
        let mut request = call(json!(1), tool, json!({"text": text}), Unwanted).request();
        Principal::new(principal).attach(request.extensions_mut());
        request
    };
    let large = request("ann", "wait", "a".repeat(40_000));
    let mut first = Box::pin(service.clone().call(large));
    let pending = poll_fn(|context| Poll::Ready(first.as_mut().poll(context).is_pending())).await;
    assert!(pending);
    assert!(watch.next().await.ends_with("started"));
    let refused = ask(&service, request("ann", "echo", "b".to_owned())).await;
    assert_eq!(refused.status(), 503);
    let message = text(refused.into_body()).await;
    assert!(message.contains("this principal"), "{message}");
    assert_eq!(ask(&service, request("ben", "echo", "b".to_owned())).await.status(), 200);
    drop(first);
    assert_eq!(ask(&service, request("ann", "echo", "b".to_owned())).await.status(), 200);
    // The response counts, too.
    let unread = ask(&service, request("ann", "echo", "a".repeat(40_000))).await.into_body();
    assert_eq!(ask(&service, request("ann", "echo", "b".to_owned())).await.status(), 503);
    drop(unread);
    assert_eq!(ask(&service, request("ann", "echo", "b".to_owned())).await.status(), 200);
}

#[tokio::test]
async fn a_request_of_a_session_counts_until_its_handler_has_ended() {
    let (server, mut watch) = server_with(limits());
    let session = Session::open(&server.http_service(), LATEST).await;
    let long = "a".repeat(LONG);
    let events = session.start(1, &long, &mut watch).await;
    assert_eq!(session.post(&ping(2)).await.status(), 503);
    watch.release();
    assert_eq!(events.rest().await.len(), 2);
    assert!(watch.next().await.ends_with("dropped"));
    assert_eq!(session.post(&ping(2)).await.status(), 200);
}

#[tokio::test]
async fn a_call_without_a_client_is_cancelled_when_messages_use_half_of_the_memory() {
    let (server, mut watch) = server_with(limits());
    let session = Session::open(&server.http_service(), LATEST).await;
    let small = session.start(1, "small", &mut watch).await;
    drop(small);
    // It goes on, because there is memory for others.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let large = session.post(&wait(2, &"a".repeat(40_000))).await;
    assert!(watch.next().await.ends_with("started"));
    assert_eq!(session.post(&ping(3)).await.status(), 200);
    drop(large);
    for _ in 0..2 {
        let told = watch.next().await;
        assert!(told.starts_with("aaa") && !told.ends_with("started"), "{}", &told[39_990..]);
    }
    watch.nothing();
    assert_eq!(session.post(&ping(4)).await.status(), 200);
}
