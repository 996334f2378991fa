//! Time, places and rates.

use std::time::Duration;

use tokio::{sync::oneshot, time::Instant};
use turnbuckle_types::CallToolResult;

use super::*;
use crate::middleware::{
    Middleware,
    server::{BUSY, Concurrency, RATE_LIMITED, RateLimit, Timeout},
};

fn stack(middleware: impl Middleware<IncomingRequest>) -> Stack {
    let mut stack = Stack::default();
    stack.push(middleware);
    stack
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_dropped_and_told() {
    let stack = stack(Timeout::new(Duration::from_secs(5)));
    let (held, dropped) = oneshot::channel::<()>();
    let slow = async move {
        let _held = held;
        std::future::pending().await
    };
    let began = Instant::now();
    let result = run(&stack, named("t"), slow).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert!(dropped.await.is_err(), "the handler is gone");
    let result: CallToolResult = result.decode().unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(serde_json::to_string(&result.content).unwrap().contains("timed out after 5s"));

    let error = run(&stack, request("resources/read"), std::future::pending()).await.unwrap_err();
    assert_eq!((error.code, &*error.message), (-32603, "the request timed out after 5s"));
}

#[tokio::test(start_paused = true)]
async fn streams_of_changes_have_all_the_time() {
    let timeout = stack(Timeout::new(Duration::from_secs(5)));
    let (begun, end, handler) = gated();
    let listening = tokio::spawn(run_owned(timeout, request("subscriptions/listen"), handler));
    begun.await.unwrap();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    end.send(()).unwrap();
    listening.await.unwrap().unwrap();

    let narrow = stack(Concurrency::new(1).waiting(0));
    let first = tokio::spawn(run_owned(
        narrow.clone(),
        request("subscriptions/listen"),
        std::future::pending(),
    ));
    tokio::task::yield_now().await;
    run(&narrow, named("t"), done()).await.unwrap();
    first.abort();
}

async fn run_owned(
    stack: Stack,
    request: Request,
    handler: impl Future<Output = Outcome> + Send + 'static,
) -> Outcome {
    run(&stack, request, handler).await
}

/// A handler that says that it has begun, and ends when it is told to.
fn gated() -> (oneshot::Receiver<()>, oneshot::Sender<()>, impl Future<Output = Outcome> + Send) {
    let (begin, begun) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let handler = async move {
        begin.send(()).unwrap();
        ended.await.unwrap();
        done().await
    };
    (begun, end, handler)
}

#[tokio::test]
async fn only_so_many_run_and_wait() {
    let stack = stack(Concurrency::new(1).waiting(1));
    let (begun, end, handler) = gated();
    let first = tokio::spawn(run_owned(stack.clone(), named("t"), handler));
    begun.await.unwrap();
    let (mut waits, end_second, handler) = gated();
    let second = tokio::spawn(run_owned(stack.clone(), named("t"), handler));
    tokio::task::yield_now().await;
    assert!(waits.try_recv().is_err(), "the second waits");

    let refused = run(&stack, named("t"), done()).await.unwrap_err();
    assert_eq!(refused.code, BUSY);
    assert!(refused.message.contains("1 requests run and 1 wait"), "{}", refused.message);

    end.send(()).unwrap();
    first.await.unwrap().unwrap();
    waits.await.unwrap();
    end_second.send(()).unwrap();
    second.await.unwrap().unwrap();
    run(&stack, named("t"), done()).await.unwrap();
}

#[tokio::test]
async fn whoever_leaves_gives_the_place_back() {
    let stack = stack(Concurrency::new(1).waiting(1));
    let (begun, _end, handler) = gated();
    let first = tokio::spawn(run_owned(stack.clone(), named("t"), handler));
    begun.await.unwrap();
    let waiting = tokio::spawn(run_owned(stack.clone(), named("t"), done()));
    tokio::task::yield_now().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    // The place in the line is free again, and then the place itself.
    let third = tokio::spawn(run_owned(stack.clone(), named("t"), done()));
    tokio::task::yield_now().await;
    assert!(!third.is_finished());
    first.abort();
    third.await.unwrap().unwrap();
}

#[tokio::test]
async fn each_caller_has_places_of_their_own_and_leaves_nothing_behind() {
    let limit = Concurrency::new(1).waiting(0).per(|request| request.name().unwrap_or("").into());
    let stack = stack(limit.clone());
    let (begun, end, handler) = gated();
    let alice = tokio::spawn(run_owned(stack.clone(), named("alice"), handler));
    begun.await.unwrap();
    assert_eq!(run(&stack, named("alice"), done()).await.unwrap_err().code, BUSY);
    run(&stack, named("bob"), done()).await.unwrap();
    end.send(()).unwrap();
    alice.await.unwrap().unwrap();
    assert_eq!(limit.share_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_comes_too_fast_is_told_when_to_come_back() {
    let stack = stack(RateLimit::new(2, Duration::from_secs(1)));
    for _ in 0..2 {
        run(&stack, named("t"), done()).await.unwrap();
    }
    let refused = run(&stack, named("t"), done()).await.unwrap_err();
    assert_eq!(
        (refused.code, &*refused.message),
        (RATE_LIMITED, "too many requests; try again in 500 ms")
    );
    assert_eq!(refused.data.unwrap().as_str(), r#"{"retryAfterMs":500}"#);
    tokio::time::advance(Duration::from_millis(499)).await;
    assert!(run(&stack, named("t"), done()).await.is_err());
    tokio::time::advance(Duration::from_millis(1)).await;
    run(&stack, named("t"), done()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_caller_has_a_rate_of_their_own() {
    let limit = RateLimit::new(60, Duration::from_secs(60)).burst(1);
    let stack = stack(limit.per(|request| request.name().unwrap_or("").into()));
    run(&stack, named("alice"), done()).await.unwrap();
    assert!(run(&stack, named("alice"), done()).await.is_err());
    run(&stack, named("bob"), done()).await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    run(&stack, named("alice"), done()).await.unwrap();
}
