//! A secret of a client that was registered beforehand is shown to one issuer.

use std::time::Duration;

use super::*;
use crate::{Lease, Registered, Secret, StoreFuture, Stored, Swap, Version};

const ID: &str = "machine";

fn machine() -> Auth {
    Auth::client_credentials(ID, Secret::new("s3cr3t"))
}

/// The same store for a server at another address.
struct Another(MemoryStore);

fn there(key: &StoreKey) -> StoreKey {
    match key.kind() {
        "grant" => StoreKey::grant("https://other.example.com/mcp"),
        _ => key.clone(),
    }
}

impl crate::GrantStore for Another {
    fn load(&self, key: &StoreKey) -> StoreFuture<'_, Option<Stored>> {
        self.0.load(&there(key))
    }

    fn swap(
        &self,
        key: &StoreKey,
        expected: Option<Version>,
        record: Option<Secret>,
    ) -> StoreFuture<'_, Swap> {
        self.0.swap(&there(key), expected, record)
    }

    fn lease(&self, key: &StoreKey, longest: Duration) -> StoreFuture<'_, Lease> {
        self.0.lease(&there(key), longest)
    }
}

/// At another server, with the same store; its authorization server is the second one.
fn elsewhere(store: &MemoryStore, auth: impl FnOnce(&Arc<Provider>) -> Auth) -> Client {
    let provider = Provider::new();
    provider.state().issuer = 2;
    let auth = auth(&provider);
    Client::over(provider, Another(store.clone()), store.clone(), auth)
}

async fn is_refused(client: &Client) {
    let error = client.call().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Registration, "{error}");
    assert!(error.to_string().contains("https://auth1.example.com"), "{error}");
    assert!(client.provider.state().secrets.iter().all(|issuer| *issuer == 1));
    assert_no_secret(&format!("{error} {error:?}"));
}

// req: client-auth:as-binding
#[tokio::test]
async fn the_first_issuer_that_sees_a_secret_is_the_only_one() {
    let store = MemoryStore::new();
    let client = Client::with(Provider::new(), store.clone(), machine());
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    // For another server.
    is_refused(&elsewhere(&store, |_| machine())).await;
    // For a person who logs in by the same client.
    let mut registered = Registered::new(ID);
    registered.secret = Some(Secret::new("s3cr3t"));
    let person = |provider: &Arc<Provider>| Auth::person(provider.login()).registered(registered);
    is_refused(&elsewhere(&store, person)).await;
    // For the same server, which names another one once nothing is kept of what was granted.
    client.layer.log_out().await.unwrap();
    assert!(client.kept().await.is_none());
    client.provider.state().issuer = 2;
    is_refused(&client).await;
    client.provider.state().issuer = 1;
    assert_eq!(client.call().await, Ok(StatusCode::OK));
}

#[tokio::test]
async fn of_two_issuers_at_once_one_sees_the_secret() {
    let store = MemoryStore::new();
    let one = Client::with(Provider::new(), store.clone(), machine());
    let other = elsewhere(&store, |_| machine());
    // The first has not been answered while the second asks.
    one.provider.tokens.forget_permits(usize::MAX);
    let waiting = tokio::spawn({
        let one = one.clone();
        async move { one.call().await }
    });
    while one.provider.state().secrets.is_empty() {
        tokio::task::yield_now().await;
    }
    is_refused(&other).await;
    one.provider.tokens.add_permits(1);
    assert_eq!(waiting.await.unwrap(), Ok(StatusCode::OK));
}

#[tokio::test]
async fn an_issuer_that_is_named_is_the_one_whatever_is_kept() {
    let store = MemoryStore::new();
    let wrong = elsewhere(&store, |_| machine().issuer("https://auth1.example.com"));
    is_refused(&wrong).await;
    assert_eq!(wrong.provider.state().secrets, [0; 0]);
    let bound = Client::with(Provider::new(), store.clone(), machine());
    assert_eq!(bound.call().await, Ok(StatusCode::OK));
    let moved = elsewhere(&store, |_| machine().issuer("https://auth2.example.com"));
    assert_eq!(moved.call().await, Ok(StatusCode::OK));
    assert_eq!(moved.provider.state().secrets, [2]);
}

/// A client that proves nothing has nothing to lose: it may have the same name at two issuers.
#[tokio::test]
async fn a_name_without_a_secret_is_not_bound() {
    let store = MemoryStore::new();
    let auth =
        |provider: &Arc<Provider>| Auth::person(provider.login()).registered(Registered::new(ID));
    let provider = Provider::new();
    let one = Client::with(provider.clone(), store.clone(), auth(&provider));
    assert_eq!(one.call().await, Ok(StatusCode::OK));
    assert_eq!(elsewhere(&store, auth).call().await, Ok(StatusCode::OK));
}
