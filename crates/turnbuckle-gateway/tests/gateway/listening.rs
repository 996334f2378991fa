//! Hearing of changes, in every pair of wires and eras.

use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle::{
    Client,
    subscribe::{Event, Filter},
};

use crate::{
    script::{Between, Script, between},
    support::{Fixture, LEGACY, MODERN, connect, gateway, ways},
};

#[tokio::test]
async fn a_modern_client_listens_to_servers_of_both_eras() {
    for way in ways().into_iter().filter(|way| way.downstream.1 == MODERN) {
        let server = Fixture::default().server();
        let changes = server.changes();
        let gateway = gateway(&server, way.upstream).await;
        let client = connect(Client::builder(), &gateway, way.downstream).await;
        let watch = Filter::new().tools().prompts().resource("note://1").resource("note://9");
        let mut listening = client.listen(watch).await.unwrap();
        let granted = listening.granted().clone();
        assert_eq!(granted.tools_list_changed, Some(true), "{way:?}");
        assert_eq!(granted.prompts_list_changed, None, "{way:?}");
        assert_eq!(granted.resource_subscriptions, Some(vec!["note://1".into()]), "{way:?}");
        changes.resource("note://2");
        changes.resource("note://1");
        let updated = listening.next().await.unwrap().unwrap();
        assert_eq!(updated, Event::ResourceUpdated("note://1".into()), "{way:?}");
        changes.tools();
        assert_eq!(listening.next().await.unwrap().unwrap(), Event::ToolsChanged, "{way:?}");
        drop(listening);
        client.call_tool("echo", ()).await.unwrap();
    }
}

#[tokio::test]
async fn a_legacy_client_hears_of_changes_of_servers_of_both_eras() {
    for way in ways().into_iter().filter(|way| way.downstream.1 == LEGACY) {
        let server = Fixture::default().server();
        let changes = server.changes();
        let gateway = gateway(&server, way.upstream).await;
        let (told, mut heard) = mpsc::channel(16);
        let builder = Client::builder().on_notification(move |method, params| {
            let params = params.map(|params| params.decode::<serde_json::Value>().unwrap());
            told.try_send((method.to_owned(), params)).unwrap();
        });
        let client = connect(builder, &gateway, way.downstream).await;
        client.request("resources/subscribe", json!({"uri": "note://1"})).await.unwrap();
        changes.resource("note://2");
        changes.resource("note://1");
        let (method, params) = heard.recv().await.unwrap();
        assert_eq!(method, "notifications/resources/updated", "{way:?}");
        assert_eq!(params, Some(json!({"uri": "note://1"})), "{way:?}");
        changes.tools();
        let (method, params) = heard.recv().await.unwrap();
        assert_eq!(method, "notifications/tools/list_changed", "{way:?}");
        assert!(params.is_none() || params == Some(json!({})), "{way:?}: {params:?}");
        client.request("resources/subscribe", json!({"uri": "note://2"})).await.unwrap();
        client.request("resources/unsubscribe", json!({"uri": "note://1"})).await.unwrap();
        changes.resource("note://2");
        let (_, params) = heard.recv().await.unwrap();
        assert_eq!(params, Some(json!({"uri": "note://2"})), "{way:?}");
        let refused = client.request("resources/subscribe", json!({"uri": "note://9"})).await;
        assert!(refused.unwrap_err().as_rpc().is_some(), "{way:?}");
    }
}

/// Is a modern server that tells of changes.
async fn discovered(upstream: &mut Script) {
    let (asked, _) = upstream.next("server/discover").await;
    let result = json!({"supportedVersions": ["2026-07-28"], "resultType": "complete", "ttlMs": 0,
        "cacheScope": "private", "capabilities": {
            "tools": {"listChanged": true}, "resources": {"subscribe": true}}});
    upstream.answer(&asked, &result.to_string()).await;
}

/// Agrees to what the next stream asks for.
async fn agree(upstream: &mut Script) -> serde_json::Value {
    let (asked, _) = upstream.next("subscriptions/listen").await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": asked["params"]["notifications"],
            "_meta": {"io.modelcontextprotocol/subscriptionId": asked["id"]}}});
    upstream.say(&note.to_string()).await;
    asked
}

const FAREWELL: &str = r#"{"resultType":"complete"}"#;

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_again_and_again_is_given_up_and_the_client_is_told() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(MODERN);
    downstream.open(json!({})).await;
    let mut upstream = dialed.recv().await.unwrap();
    discovered(&mut upstream).await;
    let opened = downstream.initialized().await;
    assert_eq!(
        opened["result"]["capabilities"]["logging"],
        json!({}),
        "the gateway may have to say it"
    );
    let begun = tokio::time::Instant::now();
    for attempt in 0..=5 {
        let asked = agree(&mut upstream).await;
        if attempt > 0 {
            // Nobody heard what happened in between.
            downstream.next("notifications/tools/list_changed").await;
        }
        upstream.answer(&asked, FAREWELL).await;
    }
    let (told, line) = downstream.next("notifications/message").await;
    assert_eq!(told["params"]["level"], "error");
    assert!(line.contains("the server ended the stream"), "{line}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{:?}", begun.elapsed());
    // Nothing is tried any more by itself; a wish of the client is.
    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    downstream
        .say(r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}"#)
        .await;
    let asked = agree(&mut upstream).await;
    assert_eq!(asked["params"]["notifications"]["resourceSubscriptions"], json!(["a:1"]));
    downstream.next("notifications/tools/list_changed").await;
    downstream.next("notifications/resources/updated").await;
    let (answer, line) = downstream.next("").await;
    assert!(answer["id"] == 1 && answer["result"].is_object(), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_lasted_has_the_whole_budget_again() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(MODERN);
    downstream.open(json!({})).await;
    let mut upstream = dialed.recv().await.unwrap();
    discovered(&mut upstream).await;
    downstream.initialized().await;
    for attempt in 0..20 {
        let asked = agree(&mut upstream).await;
        if attempt > 0 {
            downstream.next("notifications/tools/list_changed").await;
        }
        upstream.say(r#"{"jsonrpc":"2.0","method":"acme/news"}"#).await;
        downstream.next("acme/news").await;
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        upstream.answer(&asked, FAREWELL).await;
    }
}

#[tokio::test]
async fn a_subscription_that_is_refused_or_cancelled_costs_no_other() {
    let Between { mut downstream, upstream: mut dialed, .. } = between(MODERN);
    downstream.open(json!({})).await;
    let mut upstream = dialed.recv().await.unwrap();
    discovered(&mut upstream).await;
    downstream.initialized().await;
    let first = agree(&mut upstream).await;
    downstream
        .say(r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:1"}}"#)
        .await;
    let (asked, _) = upstream.next("subscriptions/listen").await;
    let refusal = r#"{"code":-32602,"message":"no such thing","data":{"uri":"a:1"}}"#;
    upstream.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{refusal}}}"#, asked["id"])).await;
    let (answer, line) = downstream.next("").await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("no such thing"), "{line}");
    // The wish is taken back, and a stream without it is asked for; the one before is heard.
    let (second, _) = upstream.next("subscriptions/listen").await;
    assert_eq!(second["params"]["notifications"], json!({"toolsListChanged": true}));
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
        "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": first["id"]}}});
    upstream.say(&changed.to_string()).await;
    downstream.next("notifications/tools/list_changed").await;
    // Nor does one stay that its client has cancelled.
    downstream
        .say(r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:2"}}"#)
        .await;
    let (cancelled, _) = upstream.next("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], second["id"]);
    let (third, _) = upstream.next("subscriptions/listen").await;
    assert_eq!(third["params"]["notifications"]["resourceSubscriptions"], json!(["a:2"]));
    downstream
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#)
        .await;
    let (cancelled, _) = upstream.next("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], third["id"]);
    let (fourth, _) = upstream.next("subscriptions/listen").await;
    assert_eq!(fourth["params"]["notifications"], json!({"toolsListChanged": true}));
}
