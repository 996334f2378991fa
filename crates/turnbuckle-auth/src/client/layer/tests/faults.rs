//! What must cost nobody a token or a login: stores that fail, listeners that can't be had, runtimes
//! that end, servers that move.

use std::{
    pin::pin,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    task::Waker,
    time::Duration,
};

use super::*;
use crate::{
    GrantStore, HandledLogin, Lease, LoggedOut, Login, Secret, Stored, Swap, Version, Waiting,
    client::store::StoreFuture,
};

/// A store that is not always well.
#[derive(Clone, Default)]
struct Ailing {
    store: MemoryStore,
    writes_fail: Arc<AtomicBool>,
    reads_hang: Arc<AtomicBool>,
}

impl GrantStore for Ailing {
    fn load(&self, key: &StoreKey) -> StoreFuture<'_, Option<Stored>> {
        if self.reads_hang.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        self.store.load(key)
    }

    fn swap(
        &self,
        key: &StoreKey,
        expected: Option<Version>,
        record: Option<Secret>,
    ) -> StoreFuture<'_, Swap> {
        if self.writes_fail.load(Ordering::Relaxed) {
            let error = AuthError::new(AuthErrorKind::Store, "the disk is full");
            return Box::pin(async move { Err(error) });
        }
        self.store.swap(key, expected, record)
    }

    fn lease(&self, key: &StoreKey, longest: Duration) -> StoreFuture<'_, Lease> {
        self.store.lease(key, longest)
    }
}

impl Ailing {
    fn client(&self) -> Client {
        let provider = Provider::new();
        let auth = Auth::person(provider.login());
        Client::over(provider, self.clone(), self.store.clone(), auth)
    }

    fn fails(&self) {
        self.writes_fail.store(true, Ordering::Relaxed);
    }

    fn recovers(&self) {
        self.writes_fail.store(false, Ordering::Relaxed);
    }
}

fn refresh_token(grant: &Grant) -> String {
    grant.tokens.as_ref().unwrap().refresh.as_ref().unwrap().expose().to_owned()
}

#[tokio::test]
async fn a_rotated_token_outlives_a_store_that_could_not_keep_it() {
    let store = Ailing::default();
    let client = store.client();
    client.call().await.unwrap();
    store.fails();
    for _ in 0..2 {
        client.provider.end_tokens();
        assert_eq!(client.call().await, Ok(StatusCode::OK));
    }
    assert_eq!(refresh_token(&client.kept().await.unwrap()), "refresh-s3cr3t-1");
    store.recovers();
    client.provider.end_tokens();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 3, 1]);
    assert_eq!(refresh_token(&client.kept().await.unwrap()), "refresh-s3cr3t-4");
}

#[tokio::test]
async fn a_store_that_keeps_nothing_at_all_costs_no_login() {
    let store = Ailing::default();
    store.fails();
    let client = store.client();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    client.provider.end_tokens();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 1, 1]);
    assert!(client.kept().await.is_none());
    assert!(client.registered("https://auth1.example.com").await.is_none());
    // What was never kept is given up all the same.
    store.recovers();
    assert_eq!(client.layer.log_out().await, Ok(LoggedOut::Forgotten));
    assert_eq!(client.layer.log_out().await, Ok(LoggedOut::Already));
    client.call().await.unwrap();
    assert_eq!(client.counts()[..2], [2, 1]);
}

#[tokio::test]
async fn what_another_process_wrote_goes_before_what_could_not_be_written() {
    let store = Ailing::default();
    let client = store.client();
    client.call().await.unwrap();
    let mut others = client.kept().await.unwrap();
    store.fails();
    client.provider.end_tokens();
    client.call().await.unwrap();

    others.tokens.as_mut().unwrap().access = Secret::new("another");
    let key = StoreKey::grant(SERVER);
    let before = store.store.load(&key).await.unwrap().map(|stored| stored.version);
    store.store.swap(&key, before, Some(others.to_record())).await.unwrap();
    client.provider.state().good = [("another".to_owned(), (Scopes::none(), 1))].into();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_not_waited_for_for_ever() {
    let store = Ailing::default();
    let client = store.client();
    store.reads_hang.store(true, Ordering::Relaxed);
    for times in 1..=2 {
        let begun = tokio::time::Instant::now();
        // Before anything is shown, and when someone logs out.
        let error = match times {
            1 => client.call().await.unwrap_err(),
            _ => client.layer.log_out().await.unwrap_err(),
        };
        assert_eq!(error.kind(), AuthErrorKind::Store);
        assert_eq!(begun.elapsed().as_secs(), 5 * 60);
    }
    // While it is renewed.
    store.reads_hang.store(false, Ordering::Relaxed);
    client.call().await.unwrap();
    client.provider.end_tokens();
    store.reads_hang.store(true, Ordering::Relaxed);
    assert_eq!(client.call().await.unwrap_err().kind(), AuthErrorKind::Store);
    store.reads_hang.store(false, Ordering::Relaxed);
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 1, 1]);
}

#[test]
fn a_runtime_that_has_ended_blocks_nobody() {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let handle = runtime.handle().clone();
        drop(runtime);
        let _entered = handle.enter();
        let client = Client::new();
        let need = || Need { how: Recovery::Anew, used: None, challenge: None };
        for _ in 0..2 {
            let better = pin!(client.layer.session.better(need()));
            let polled = better.poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(Err(error)) = polled else { panic!("it was not broken off") };
            send.send(error.kind()).unwrap();
        }
    });
    for _ in 0..2 {
        let kind = receive.recv_timeout(Duration::from_secs(20));
        assert_eq!(kind, Ok(AuthErrorKind::Unreachable));
    }
}

/// A login that is possible once.
struct Once(HandledLogin, AtomicUsize);

impl Login for Once {
    fn redirect_uri(
        &self,
        preferred: Option<&str>,
    ) -> BoxFuture<'_, Result<Box<dyn Waiting>, AuthError>> {
        if self.1.fetch_add(1, Ordering::Relaxed) > 0 {
            let error = AuthError::new(AuthErrorKind::NotLoggedIn, "the port is in use");
            return Box::pin(async move { Err(error) });
        }
        Login::redirect_uri(&self.0, preferred)
    }
}

#[tokio::test]
async fn what_is_renewed_silently_needs_no_listener() {
    let provider = Provider::new();
    let auth = Auth::person(Once(provider.login(), AtomicUsize::new(0)));
    let client = Client::with(provider, MemoryStore::new(), auth);
    client.call().await.unwrap();
    client.provider.end_tokens();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 1, 1]);
    // What needs a person says so.
    client.provider.end_tokens();
    client.provider.state().mood = Mood::Refuses("invalid_grant");
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Required);
    assert!(error.challenge().is_some());
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::NotLoggedIn);
}

#[tokio::test]
async fn a_refusal_with_status_200_is_one() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.end_tokens();
    client.provider.state().mood = Mood::Answers(200, "invalid_grant");
    client.provider.logins.close();
    client.call().await.unwrap_err();
    assert!(client.kept().await.unwrap().tokens.is_none());
}

// req: client-auth:invalid-client-clears-all
#[tokio::test]
async fn a_renewal_ahead_of_time_forgets_no_client() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().now += 3600 - 30;
    client.provider.state().mood = Mood::Refuses("invalid_client");
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts(), [1, 1, 1]);
    assert!(client.kept().await.unwrap().tokens.is_some());
    assert!(client.registered("https://auth1.example.com").await.is_some());
    // When it has ended, it must be had anew.
    client.provider.end_tokens();
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.counts()[2], 2);
}

// req: client-auth:as-binding
#[tokio::test]
async fn only_the_authorization_server_that_forgot_the_client_is_forgotten() {
    let client = Client::new();
    client.call().await.unwrap();
    let first = client.registered("https://auth1.example.com").await.unwrap();
    client.provider.state().issuer = 2;
    let registered_at_second = Client::with(
        client.provider.clone(),
        MemoryStore::new(),
        Auth::person(client.provider.login()),
    );
    registered_at_second.call().await.unwrap();
    let second = registered_at_second.registered("https://auth2.example.com").await.unwrap();
    let key = StoreKey::registration("https://auth2.example.com");
    client.store.swap(&key, None, Some(second.to_record())).await.unwrap();

    client.provider.state().mood = Mood::Refuses("invalid_client");
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    let kept = client.registered("https://auth1.example.com").await.unwrap();
    assert_eq!(kept.client_id, first.client_id);
    let renewed = client.registered("https://auth2.example.com").await.unwrap();
    assert_ne!(renewed.client_id, second.client_id);
}

#[tokio::test(start_paused = true)]
async fn logging_out_waits_for_a_renewal_but_not_for_long() {
    let client = Client::new();
    client.call().await.unwrap();
    let key = StoreKey::grant(SERVER);
    let lease = client.store.lease(&key, Duration::from_secs(60)).await.unwrap();
    {
        let mut left = pin!(client.layer.log_out());
        let polled = left.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        assert!(client.kept().await.is_some(), "it went ahead of the renewal");
        drop(lease);
        assert_eq!(left.await, Ok(LoggedOut::Forgotten));
    }
    client.call().await.unwrap();
    let _lease = client.store.lease(&key, Duration::from_secs(60)).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(client.layer.log_out().await, Ok(LoggedOut::Forgotten));
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert!(client.kept().await.is_none());
}
