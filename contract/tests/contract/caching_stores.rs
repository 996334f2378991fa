//! Stores of answers that clients share: who is given what, and that a store which fails costs
//! nothing.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle::{
    Client, Revision, Server, StoreFuture,
    cache::{CacheEntry, CacheKey, CacheMode, CacheStore, MemoryCache, ResponseCache},
    server::ToolDef,
    tool,
    types::{Era, ListToolsResult},
};

use crate::{
    raw::{Peer, client_with},
    rig::{eventually, virtually, within},
    web::launch,
};

fn tools(name: &str, scope: &str) -> Value {
    let tool = json!({"name": name, "inputSchema": {"type": "object"}});
    json!({"resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": scope})
}

/// A client of the server "one" that speaks for someone.
fn of(store: &MemoryCache, principal: &str) -> ResponseCache {
    ResponseCache::new().store(store.clone()).server("one").partition(principal)
}

async fn with(cache: ResponseCache) -> (Peer, Client) {
    with_in(Era::Modern, cache).await
}

async fn with_in(era: Era, cache: ResponseCache) -> (Peer, Client) {
    client_with(era, Client::builder().cache(cache), 1 << 20).await
}

/// Lists the tools; `answer` if the server must be asked.
async fn listed((peer, client): &mut (Peer, Client), answer: Option<Value>) -> String {
    let call = launch(client.list_tools());
    if let Some(answer) = answer {
        let request = peer.read().await;
        assert_eq!(request["method"], "tools/list");
        peer.answer(&request, answer).await;
    }
    let page: ListToolsResult = call.await.unwrap().unwrap();
    page.tools.into_iter().next().unwrap().name
}

#[tokio::test(start_paused = true)]
async fn a_store_is_shared_by_those_who_are_the_same() {
    virtually(async {
        let store = MemoryCache::new();
        let mut alice = with(of(&store, "alice")).await;
        listed(&mut alice, Some(tools("hers", "public"))).await;
        let mut again = with(of(&store, "alice")).await;
        assert_eq!(listed(&mut again, None).await, "hers");
        for (other, why) in [
            (of(&store, "bob"), "who asks"),
            (of(&store, "alice").server("two"), "who is asked"),
            (ResponseCache::new().store(store.clone()).server("one"), "nobody in particular"),
            (ResponseCache::new().store(store.clone()).partition("alice"), "an unknown server"),
        ] {
            let mut other = with(other).await;
            assert_eq!(listed(&mut other, Some(tools("other", "public"))).await, "other", "{why}");
        }
        let minute = of(&store, "alice").default_ttl(Duration::from_secs(60));
        let mut legacy = with_in(Era::Legacy, minute).await;
        assert_eq!(listed(&mut legacy, Some(tools("old", "public"))).await, "old");
        let mut again = with(of(&store, "alice")).await;
        assert_eq!(listed(&mut again, None).await, "hers");
        let mut later = with(of(&store, "alice")).await;
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(listed(&mut later, Some(tools("later", "public"))).await, "later");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_what_is_for_everyone_is_shared_with_everyone_who_wants_that() {
    virtually(async {
        let store = MemoryCache::new();
        let mut alice = with(of(&store, "alice").share_public()).await;
        listed(&mut alice, Some(tools("ours", "public"))).await;
        let mut bob = with(of(&store, "bob").share_public()).await;
        assert_eq!(listed(&mut bob, None).await, "ours");
        let mut carol = with(of(&store, "carol")).await;
        assert_eq!(listed(&mut carol, Some(tools("hers", "public"))).await, "hers");
        // It has become private: what was for everyone is gone.
        let call = launch(alice.1.list_tools().cache(CacheMode::Refresh));
        let request = alice.0.read().await;
        alice.0.answer(&request, tools("mine", "private")).await;
        call.await.unwrap().unwrap();
        let mut dave = with(of(&store, "dave").share_public()).await;
        assert_eq!(listed(&mut dave, Some(tools("his", "private"))).await, "his");
        let mut again = with(of(&store, "alice").share_public()).await;
        assert_eq!(listed(&mut again, None).await, "mine");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_event_removes_from_the_store_too() {
    virtually(async {
        let store = MemoryCache::new();
        let mut one = with(of(&store, "alice")).await;
        listed(&mut one, Some(tools("old", "private"))).await;
        assert_eq!(store.len(), 1);
        one.0.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
        eventually(|| store.is_empty()).await;
        let mut other = with(of(&store, "alice")).await;
        assert_eq!(listed(&mut other, Some(tools("new", "private"))).await, "new");
        assert_eq!(listed(&mut one, None).await, "new");
        // Neither does an answer that is stale at once leave the one before.
        let call = launch(one.1.list_tools().cache(CacheMode::Refresh));
        let request = one.0.read().await;
        one.0.answer(&request, json!({"resultType": "complete", "tools": [], "ttlMs": 0})).await;
        call.await.unwrap().unwrap();
        eventually(|| store.is_empty()).await;
    })
    .await;
}

/// A store that fails, or that never answers.
#[derive(Clone, Default)]
struct Bad {
    hangs: bool,
    asked: Arc<AtomicUsize>,
    put: Arc<Mutex<Vec<CacheKey>>>,
}

impl Bad {
    fn answer<T: Send + 'static>(&self) -> StoreFuture<'static, T> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.hangs {
            Box::pin(std::future::pending())
        } else {
            Box::pin(async { Err("away".into()) })
        }
    }
}

impl CacheStore for Bad {
    fn get<'a>(&'a self, _: &'a CacheKey) -> StoreFuture<'a, Option<CacheEntry>> {
        self.answer()
    }

    fn put<'a>(&'a self, key: &'a CacheKey, _: CacheEntry) -> StoreFuture<'a, ()> {
        self.put.lock().unwrap().push(key.clone());
        self.answer()
    }

    fn remove<'a>(&'a self, _: &'a str) -> StoreFuture<'a, ()> {
        self.answer()
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_costs_no_call() {
    virtually(async {
        for hangs in [false, true] {
            let bad = Bad { hangs, ..Bad::default() };
            let mut client = with(ResponseCache::new().store(bad.clone())).await;
            assert_eq!(listed(&mut client, Some(tools("a", "private"))).await, "a");
            assert_eq!(bad.asked.load(Ordering::SeqCst), 2, "read, then written");
            assert_eq!(listed(&mut client, None).await, "a", "its own memory has it");
            let put = bad.put.lock().unwrap().clone();
            assert!(put.iter().all(|key| key.group().len() == 64 && key.page().len() == 64));
        }
    })
    .await;
}

/// A tool whose argument is repeated in a header.
fn annotated() -> ToolDef {
    let schema = json!({
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    });
    tool("t", async || "done").input_schema(schema)
}

#[tokio::test]
async fn what_a_store_says_teaches_a_connection_as_a_server_does() {
    within(async {
        let (store, lists) = (MemoryCache::new(), Lists::default());
        let server = Server::new("s", "1").tool(annotated()).metrics(lists.clone());
        let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
        let url = bound.url();
        tokio::spawn(bound.into_future());
        for _ in 0..2 {
            let builder = Client::builder().revision(Revision::V2026_07_28).no_proxy();
            let client = builder.cache(of(&store, "alice")).connect(&url).await.unwrap();
            assert_eq!(client.tools().all().await.unwrap().len(), 1);
            let result = client.call_tool("t", json!({"region": "eu"})).await.unwrap();
            assert_eq!(result.to_text(), "done");
        }
        assert_eq!(lists.0.load(Ordering::SeqCst), 1, "the second one knew which header to send");
    })
    .await;
}

#[tokio::test]
async fn headers_are_part_of_who_asks() {
    within(async {
        let (store, lists) = (MemoryCache::new(), Lists::default());
        let server = Server::new("s", "1").tool(annotated()).metrics(lists.clone());
        let bound = server.serve_http("127.0.0.1:0").bind().await.unwrap();
        let url = bound.url();
        tokio::spawn(bound.into_future());
        for (token, asked) in [("1", 1), ("2", 2), ("1", 2)] {
            let builder = Client::builder().revision(Revision::V2026_07_28).no_proxy();
            let builder = builder.header("authorization", format!("Bearer {token}"));
            let cache = ResponseCache::new().store(store.clone()).server("one");
            let client = builder.cache(cache).connect(&url).await.unwrap();
            client.list_tools().await.unwrap();
            assert_eq!(lists.0.load(Ordering::SeqCst), asked, "{token}");
        }
    })
    .await;
}

/// Counts the listings of tools.
#[derive(Clone, Default)]
struct Lists(Arc<AtomicUsize>);

impl turnbuckle::middleware::Metrics for Lists {
    fn started(&self, started: &turnbuckle::middleware::RequestStarted<'_>) {
        if started.method == "tools/list" {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}
