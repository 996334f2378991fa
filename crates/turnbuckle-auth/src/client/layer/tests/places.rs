//! Where a token is shown, and what it counts as another place.

use std::path::Path;

use super::*;
use crate::LoggedOut;

/// A client of the server at `url`, for which something was granted before.
async fn granted(url: &str, auth: impl FnOnce(Auth) -> Auth) -> Client {
    let provider = Provider::new();
    let known = Client::with(provider.clone(), MemoryStore::new(), Auth::person(provider.login()));
    known.call().await.unwrap();
    let record = known.kept().await.unwrap().to_record();
    known.store.swap(&StoreKey::grant(url), None, Some(record)).await.unwrap();
    let auth = auth(Auth::person(provider.login()).store(known.store.clone()));
    let auth = auth.clock(Watch(provider.clone()));
    let layer = AuthLayer::new(auth, url, provider.clone()).unwrap();
    let service = layer.layer(Protected(provider.clone()));
    provider.state().shown.clear();
    provider.state().asked.clear();
    Client { provider, store: known.store, service, layer }
}

// req: client-auth:token-endpoint:https-guard
#[tokio::test]
async fn no_token_is_shown_where_others_can_read_it() {
    for url in ["http://mcp.example.com/mcp", "http://10.0.0.1/mcp", "http://printer.local/mcp"] {
        let client = granted(url, |auth| auth).await;
        let error = client.ask(url).await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{url}");
        assert!(error.to_string().contains("not encrypted"), "{error}");
        assert_eq!(client.provider.state().shown, [None], "{url}");
        let error = client.layer.log_in().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Forbidden, "{url}");
        assert!(client.provider.state().asked.is_empty(), "{url}");
    }
    let shown = [Some("Bearer access-s3cr3t-1".to_owned())];
    for url in ["http://localhost:1/mcp", "http://127.0.0.1/mcp", "http://[::1]/mcp"] {
        let client = granted(url, |auth| auth).await;
        assert_eq!(client.ask(url).await, Ok(StatusCode::OK));
        assert_eq!(client.provider.state().shown, shown, "{url}");
    }
    // Whoever insists.
    let url = "http://mcp.example.com/mcp";
    let client = granted(url, Auth::plain_http).await;
    assert_eq!(client.ask(url).await, Ok(StatusCode::OK));
    assert_eq!(client.provider.state().shown, shown);
}

#[tokio::test]
async fn a_server_that_wants_no_token_may_be_anywhere() {
    let url = "http://mcp.example.com/mcp";
    let client = granted(url, |auth| auth).await;
    client.provider.state().open = true;
    assert_eq!(client.ask(url).await, Ok(StatusCode::OK));
    assert_eq!(client.provider.state().shown, [None]);
}

#[tokio::test]
async fn a_token_is_for_one_socket() {
    let url = "http://mcp.example.com/mcp";
    let known = granted(url, Auth::plain_http).await;
    let over = |path: &str| {
        let auth = Auth::with(Settings::default()).store(known.store.clone());
        let auth = auth.clock(Watch(known.provider.clone()));
        let layer =
            AuthLayer::over_socket(auth, url, Path::new(path), known.provider.clone()).unwrap();
        let service = layer.layer(Protected(known.provider.clone()));
        Client { service, layer, ..known.clone() }
    };
    let (one, two) = (over("/run/one.sock"), over("/run/two.sock"));
    assert_eq!(one.ask(url).await.unwrap_err().kind(), AuthErrorKind::Required);
    assert_eq!(known.provider.state().shown, [None], "what was granted without a socket");
    let record = known.store.load(&StoreKey::grant(url)).await.unwrap().unwrap().record;
    let key = StoreKey::grant_over_socket(url, Path::new("/run/one.sock"));
    known.store.swap(&key, None, Some(record)).await.unwrap();
    let (one, _) = (over("/run/one.sock"), one);
    assert_eq!(one.ask(url).await, Ok(StatusCode::OK));
    assert_eq!(two.ask(url).await.unwrap_err().kind(), AuthErrorKind::Required);
    assert_eq!(known.provider.state().shown.last(), Some(&None));
    assert_eq!(one.layer.log_out().await, Ok(LoggedOut::Forgotten));
    assert!(known.store.load(&key).await.unwrap().is_none());
    assert!(known.store.load(&StoreKey::grant(url)).await.unwrap().is_some());
}

#[tokio::test]
async fn an_address_is_the_same_however_it_is_spelt() {
    let client = granted("https://mcp.example.com/", |auth| auth).await;
    assert_eq!(client.ask("https://mcp.example.com/").await, Ok(StatusCode::OK));
    let auth = Auth::browser().store(client.store.clone());
    auth.log_out("https://MCP.example.com:443").await.unwrap();
    let key = StoreKey::grant("https://mcp.example.com/");
    assert!(client.store.load(&key).await.unwrap().is_none());
}

#[tokio::test]
async fn a_token_that_a_server_repeats_is_in_no_error() {
    let client = Client::new();
    client.call().await.unwrap();
    client.provider.state().refuses_all = true;
    client.provider.state().repeats = true;
    let error = client.call().await.unwrap_err();
    let said = error.challenge().unwrap().error_description.clone();
    assert_eq!(said.as_deref(), Some("what is -?"));
    assert_no_secret(&format!("{error} {error:?}"));
}
