//! tower's own layers around calls.

use std::{future::IntoFuture as _, time::Duration};

use serde_json::json;
use tower::{buffer::BufferLayer, limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};
use turnbuckle::{Client, ErrorKind, middleware::client::Request};

use crate::{
    support::{echoing, holding},
    ways::{MODERN, WAYS, Wire, connect},
};

#[tokio::test]
async fn they_let_calls_through() {
    for way in WAYS {
        let builder = Client::builder()
            .layer(ConcurrencyLimitLayer::new(1))
            .layer(BufferLayer::<Request>::new(4))
            .layer(TimeoutLayer::new(Duration::from_secs(600)));
        let client = connect(builder, &echoing(), way).await;
        let calls = ["a", "b", "c"].map(|text| {
            tokio::spawn(client.call_tool("echo", json!({"text": text})).into_future())
        });
        for (call, text) in calls.into_iter().zip(["a", "b", "c"]) {
            assert_eq!(call.await.unwrap().unwrap().to_text(), text, "{way:?}");
        }
    }
}

#[tokio::test]
async fn one_call_at_a_time_gives_its_place_back_when_it_is_dropped() {
    let (server, mut told) = holding();
    let builder = Client::builder()
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(BufferLayer::<Request>::new(4));
    let client = connect(builder, &server, (Wire::Memory, MODERN)).await;
    let first = tokio::spawn(client.call_tool("holds", ()).into_future());
    assert_eq!(told.recv().await, Some("begun"));
    let mut second = Box::pin(client.call_tool("holds", ()).into_future());
    tokio::select! {
        biased;
        _ = &mut second => panic!("it never ends"),
        () = tokio::task::yield_now() => {}
    }
    assert!(told.try_recv().is_err(), "there is one place");
    first.abort();
    assert_eq!(told.recv().await, Some("dropped"));
    let second = tokio::spawn(second);
    assert_eq!(told.recv().await, Some("begun"));
    second.abort();
    assert_eq!(told.recv().await, Some("dropped"));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_cancels_what_it_gives_up() {
    let (server, mut told) = holding();
    let builder = Client::builder().layer(TimeoutLayer::new(Duration::from_secs(5)));
    let client = connect(builder, &server, (Wire::Memory, MODERN)).await;
    let error = client.call_tool("holds", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.maybe_executed(), "it was on its way");
    assert_eq!(told.recv().await, Some("begun"));
    assert_eq!(told.recv().await, Some("dropped"));
}
