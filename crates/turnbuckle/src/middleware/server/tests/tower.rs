//! tower's own layers.

use std::time::Duration;

use ::tower::{
    ServiceBuilder, ServiceExt as _, buffer::BufferLayer, limit::ConcurrencyLimitLayer,
    load_shed::LoadShedLayer, timeout::TimeoutLayer,
};
use tokio::sync::oneshot;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_timeout_of_towers_ends_a_request() {
    let mut stack = Stack::default();
    stack.push(TimeoutLayer::new(Duration::from_secs(1)));
    run(&stack, named("t"), done()).await.unwrap();
    let error = run(&stack, named("t"), std::future::pending()).await.unwrap_err();
    assert_eq!((error.code, &*error.message), (-32603, "internal error"));
    // An error of the handler's comes through as it was.
    let own = async { Err(turnbuckle_types::RpcError::new(7, "seven")) };
    assert_eq!(run(&stack, named("t"), own).await.unwrap_err().code, 7);
}

#[tokio::test]
async fn a_limit_of_towers_is_shared_by_what_it_stands_around() {
    let mut group = Stack::default();
    group.push(
        ServiceBuilder::new().layer(LoadShedLayer::new()).layer(ConcurrencyLimitLayer::new(1)),
    );
    let (mut one, mut other) = (Stack::default(), Stack::default());
    one.wrap_in(&group);
    other.wrap_in(&group);
    let (begin, begun) = oneshot::channel();
    let running = tokio::spawn(async move {
        let handler = async move {
            begin.send(()).unwrap();
            std::future::pending().await
        };
        run(&one, named("one"), handler).await
    });
    begun.await.unwrap();
    assert!(run(&other, named("other"), done()).await.is_err());
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    run(&other, named("other"), done()).await.unwrap();
}

#[tokio::test]
async fn several_can_be_built_together() {
    let mut stack = Stack::default();
    stack.push(
        ServiceBuilder::new()
            .layer(BufferLayer::<Request>::new(8))
            .map_request(|request: Request| request)
            .layer(::tower::limit::RateLimitLayer::new(100, Duration::from_secs(1))),
    );
    run(&stack, named("t"), done()).await.unwrap();
    let error = async { Err(turnbuckle_types::RpcError::new(7, "seven")) };
    assert_eq!(run(&stack, named("t"), error).await.unwrap_err().code, 7);
    let mut boxed = Stack::default();
    boxed.push(tower_layer::layer_fn(|next: super::super::Next| {
        ::tower::util::BoxCloneSyncService::new(next.map_response(|response| response))
    }));
    run(&boxed, named("t"), done()).await.unwrap();
}
