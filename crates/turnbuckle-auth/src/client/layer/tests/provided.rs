//! Programs that decide themselves: they bring the tokens, or are told what more is wanted.

use super::*;
use crate::{Endpoints, RegisteredBy, Scheme, Secret, Swap, Tokens};

/// What a program got elsewhere. It can't be renewed.
fn provided(token: &str) -> Secret {
    let tokens = Tokens {
        access: Secret::new(token),
        scheme: Scheme::Bearer,
        refresh: None,
        expires_at: None,
        granted: None,
    };
    let grant = Grant {
        issuer: "https://auth1.example.com".to_owned(),
        resource: Some(SERVER.to_owned()),
        scopes: Scopes::none(),
        registration: Registration::public("client", RegisteredBy::Beforehand),
        tokens: Some(tokens),
        endpoints: Endpoints { authorize: None, token: "https://auth1.example.com/token".into() },
        proof_key: None,
    };
    grant.to_record()
}

async fn provide(store: &MemoryStore, token: &str) {
    let key = StoreKey::grant(SERVER);
    let before = store.load(&key).await.unwrap().map(|stored| stored.version);
    let swap = store.swap(&key, before, Some(provided(token))).await.unwrap();
    assert!(matches!(swap, Swap::Done(_)));
}

fn nobody_logs_in(store: &MemoryStore) -> Client {
    Client::with(Provider::new(), store.clone(), Auth::with(Settings::default()))
}

// req: client-auth:authprovider:token-attached, client-auth:authprovider:onunauthorized-retry
#[tokio::test]
async fn a_program_can_bring_the_tokens_and_is_asked_again_after_a_401() {
    let store = MemoryStore::new();
    let client = nobody_logs_in(&store);
    let accept = |token: &str| {
        let mut state = client.provider.state();
        state.good = [(token.to_owned(), (Scopes::none(), 1))].into();
        state.shown.clear();
    };
    provide(&store, "first").await;
    accept("first");
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.provider.state().shown, vec![Some("Bearer first".to_owned()); 2]);

    // The store is looked at again, and the request sent once more.
    provide(&store, "second").await;
    accept("second");
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    let shown = ["Bearer first", "Bearer second"].map(|shown| Some(shown.to_owned()));
    assert_eq!(client.provider.state().shown, shown);

    // It has nothing better.
    accept("third");
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Required);
    assert!(error.challenge().is_some());
    assert_eq!(client.provider.state().shown, [Some("Bearer second".to_owned())]);
    assert_eq!(client.counts(), [0, 0, 0]);
}

// req: client-auth:stepup:throw-mode
#[tokio::test]
async fn a_program_can_be_told_what_more_is_wanted_instead() {
    let store = MemoryStore::new();
    let client = nobody_logs_in(&store);
    provide(&store, "little").await;
    client.provider.state().good = [("little".to_owned(), (Scopes::none(), 1))].into();
    client.provider.state().needed = Some("write");
    for times in 1..3 {
        let error = client.call().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Required);
        let challenge = error.challenge().unwrap();
        assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
        assert_eq!(challenge.scope, Some(Scopes::from_iter(["write"])));
        assert_eq!(client.provider.state().shown.len(), times, "it was sent once");
    }
    assert!(client.provider.state().asked.is_empty(), "nobody was asked");
}

// req: client-auth:stepup:get-stream-403
#[tokio::test]
async fn what_is_only_listened_to_can_need_more_too() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().needed = Some("write");
    let request = Request::get(SERVER).body(Bytes::new()).unwrap();
    let response = client.service.clone().call(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(client.provider.state().scopes, ["basic", "basic write"]);
}
