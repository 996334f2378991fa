//! What is being renewed when a process ends is kept first.

use std::{future::Future as _, pin::pin, task::Waker, time::Duration};

use super::*;

const LONG: Duration = Duration::from_secs(3600);

/// A client whose token is about to end, and whose renewal hangs at the provider.
async fn renewing() -> Client {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().now += 3600 - 30;
    client.provider.tokens.forget_permits(usize::MAX);
    // It gives the renewal up and uses what it has.
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    client
}

// req: client-auth:refresh:rotation-handling
#[tokio::test(start_paused = true)]
async fn a_renewal_that_nobody_waits_for_is_settled_before_the_end() {
    let client = renewing().await;
    {
        let mut settling = pin!(client.layer.settle(LONG));
        let polled = settling.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        client.provider.tokens.add_permits(1);
        assert!(settling.await);
    }
    let kept = client.kept().await.unwrap().tokens.unwrap();
    assert_eq!(kept.refresh.unwrap().expose(), "refresh-s3cr3t-2");
    assert_eq!(client.counts(), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn the_end_is_not_put_off_for_ever() {
    let client = renewing().await;
    let begun = tokio::time::Instant::now();
    assert!(!client.layer.settle(Duration::from_secs(7)).await);
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn nobody_s_login_is_waited_for() {
    let client = Client::new();
    assert!(client.layer.settle(LONG).await);
    client.provider.logins.forget_permits(usize::MAX);
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call().await }
    });
    while client.provider.count("login") == 0 {
        tokio::task::yield_now().await;
    }
    let begun = tokio::time::Instant::now();
    assert!(client.layer.settle(LONG).await);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // Whoever has come back is: the code is good once.
    client.provider.tokens.forget_permits(usize::MAX);
    client.provider.logins.add_permits(1);
    while client.provider.state().scopes.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!client.layer.settle(Duration::from_secs(7)).await);
    client.provider.tokens.add_permits(1);
    assert!(client.layer.settle(LONG).await);
    assert_eq!(call.await.unwrap(), Ok(StatusCode::OK));
}

#[tokio::test(start_paused = true)]
async fn nor_is_another_process_that_renews() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.end_tokens();
    let lease = client.store.lease(&StoreKey::grant(SERVER), LONG).await.unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call().await }
    });
    client.provider.refused(2).await;
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let begun = tokio::time::Instant::now();
    assert!(client.layer.settle(LONG).await);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // From then on it is.
    client.provider.tokens.forget_permits(usize::MAX);
    drop(lease);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!client.layer.settle(Duration::from_secs(7)).await);
    client.provider.tokens.add_permits(1);
    assert_eq!(call.await.unwrap(), Ok(StatusCode::OK));
}

#[tokio::test(start_paused = true)]
async fn clones_of_one_auth_are_settled_together() {
    let provider = Provider::new();
    let auth = Auth::person(provider.login());
    let client = Client::with(provider, MemoryStore::new(), auth.clone());
    client.call().await.unwrap();
    client.provider.state().now += 3600 - 30;
    client.provider.tokens.forget_permits(usize::MAX);
    client.call().await.unwrap();
    let other = AuthLayer::new(auth.clone(), SERVER, client.provider.clone()).unwrap();
    assert!(other.settle(LONG).await, "it has nothing to wait for");
    assert!(!auth.settle(Duration::from_secs(1)).await);
    client.provider.tokens.add_permits(1);
    assert!(auth.settle(LONG).await);
}
