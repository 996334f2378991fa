//! What is not asked for again and again, across requests.

use std::time::Duration;

use super::*;

/// A client whose token is about to end, at a provider that is busy.
async fn busy() -> Client {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().now += 3600 - 30;
    client.provider.state().mood = Mood::Answers(503, "temporarily_unavailable");
    client
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_busy_is_left_alone_for_a_while() {
    let client = busy().await;
    for seconds in [20, 5, 3, 1, 0] {
        assert_eq!(client.call().await, Ok(StatusCode::OK));
        client.provider.state().now += seconds;
    }
    assert_eq!(client.counts(), [1, 1, 1]);
    // When the token has ended nothing else is left. It may say that it does not want that.
    client.provider.state().now += 1;
    client.provider.state().retry_after = Some(10);
    for _ in 0..3 {
        let error = client.call().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unreachable);
    }
    assert_eq!(client.counts(), [1, 2, 1]);
    client.provider.state().mood = Mood::Well;
    tokio::time::advance(Duration::from_secs(9)).await;
    client.call().await.unwrap_err();
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_can_say_how_long_but_not_too_long() {
    for (said, waited) in [(20, 20), (1, 5), (86_400, 60)] {
        let client = busy().await;
        client.provider.state().retry_after = Some(said);
        client.call().await.unwrap();
        client.provider.state().now += 25;
        tokio::time::advance(Duration::from_secs(waited - 1)).await;
        client.call().await.unwrap();
        assert_eq!(client.counts(), [1, 1, 1], "{said}");
        tokio::time::advance(Duration::from_secs(1)).await;
        client.call().await.unwrap();
        assert_eq!(client.counts(), [1, 2, 1], "{said}");
    }
}

// req: client-auth:401-after-auth-throws
#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_every_token_bothers_someone_once() {
    let client = Client::new();
    client.provider.state().refuses_all = true;
    for _ in 0..5 {
        let error = client.call().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Required);
        assert!(error.challenge().is_some());
    }
    assert_eq!(client.counts()[0], 1);
    // Whoever asks for a login gets it.
    client.layer.log_in().await.unwrap();
    assert_eq!(client.counts()[0], 2);
    // It counts from then on, for what the server asks for.
    client.call().await.unwrap_err();
    client.call().await.unwrap_err();
    assert_eq!(client.counts()[0], 3);
    tokio::time::advance(Duration::from_secs(5 * 60)).await;
    client.call().await.unwrap_err();
    client.call().await.unwrap_err();
    assert_eq!(client.counts()[0], 4);
    // A server that has come to its senses is asked no less than any other.
    client.provider.state().refuses_all = false;
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    client.provider.end_tokens();
    client.provider.state().refresh = None;
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts()[0], 5);
}

// req: client-auth:stepup:retry-cap
#[tokio::test]
async fn what_was_asked_for_before_a_logout_can_be_asked_for_again() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().needed = Some("write");
    client.call().await.unwrap();
    client.layer.log_out().await.unwrap();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    let asked = ["basic", "basic write", "basic", "basic write"];
    assert_eq!(client.provider.state().scopes, asked);
    // Another process logs out, and someone in again for less.
    Auth::browser().store(client.store.clone()).log_out(SERVER).await.unwrap();
    client.provider.end_tokens();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.provider.state().scopes[4..], ["basic", "basic write"]);
}
