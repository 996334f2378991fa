//! What is otherwise than it was when something was granted.

use super::*;
use crate::Secret;

// req: client-auth:as-migration:no-token-reuse
#[tokio::test]
async fn what_one_authorization_server_was_asked_for_is_nothing_to_the_next() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().needed = Some("write");
    client.call().await.unwrap();
    client.provider.state().needed = None;
    client.provider.state().issuer = 2;
    assert_eq!(client.call().await, Ok(StatusCode::OK));
    assert_eq!(client.provider.state().scopes, ["basic", "basic write", "basic"]);
}

#[tokio::test]
async fn whoever_insists_on_bound_tokens_shows_no_others() {
    let client = Client::new();
    client.call().await.unwrap();
    let provider = client.provider.clone();
    provider.state().dpop = true;
    provider.state().shown.clear();
    let auth = Auth::person(provider.login()).settings(|it| it.dpop = DpopUse::Always);
    let bound = Client::with(provider, client.store.clone(), auth);
    assert_eq!(bound.call().await, Ok(StatusCode::OK));
    let shown = bound.provider.state().shown.clone();
    assert!(shown.iter().flatten().all(|shown| shown.starts_with("DPoP ")), "{shown:?}");
    assert_eq!(bound.counts(), [2, 0, 1], "a token that is not bound was renewed");
}

#[tokio::test]
async fn a_client_that_proves_itself_in_another_way_by_now_renews_in_that_way() {
    let provider = Provider::new();
    let mut registered = crate::Registered::new("me");
    registered.issuer = Some("https://auth1.example.com".to_owned());
    let auth = Auth::person(provider.login()).registered(registered.clone());
    let client = Client::with(provider.clone(), MemoryStore::new(), auth);
    client.call().await.unwrap();
    provider.end_tokens();
    provider.state().clients.clear();
    registered.secret = Some(Secret::new("s3cr3t"));
    registered.method = Some(crate::TokenAuth::Post);
    let auth = Auth::person(provider.login()).registered(registered);
    let changed = Client::with(provider, client.store.clone(), auth);
    assert_eq!(changed.call().await, Ok(StatusCode::OK));
    assert_eq!(changed.counts(), [1, 1, 0]);
    assert_eq!(changed.provider.state().posted, ["s3cr3t"]);
}
