//! Hearing of changes, in every pair of wires and eras.

use serde_json::json;
use tokio::sync::mpsc;
use turnbuckle::{Client, Happened, Watch};

use crate::support::{Fixture, LEGACY, MODERN, bridge, connect, ways};

#[tokio::test]
async fn a_modern_client_listens_to_servers_of_both_eras() {
    for way in ways().into_iter().filter(|way| way.near.1 == MODERN) {
        let server = Fixture::default().server();
        let changes = server.changes();
        let bridge = bridge(&server, way.far).await;
        let client = connect(Client::builder(), &bridge, way.near).await;
        let watch = Watch::new().tools().prompts().resource("note://1").resource("note://9");
        let mut listening = client.listen(watch).await.unwrap();
        let granted = listening.granted().clone();
        assert_eq!(granted.tools_list_changed, Some(true), "{way:?}");
        assert_eq!(granted.prompts_list_changed, None, "{way:?}");
        assert_eq!(granted.resource_subscriptions, Some(vec!["note://1".into()]), "{way:?}");
        changes.resource("note://2");
        changes.resource("note://1");
        let updated = listening.next().await.unwrap().unwrap();
        assert_eq!(updated, Happened::ResourceUpdated("note://1".into()), "{way:?}");
        changes.tools();
        assert_eq!(listening.next().await.unwrap().unwrap(), Happened::ToolsChanged, "{way:?}");
        drop(listening);
        client.call_tool("echo", ()).await.unwrap();
    }
}

#[tokio::test]
async fn a_legacy_client_hears_of_changes_of_servers_of_both_eras() {
    for way in ways().into_iter().filter(|way| way.near.1 == LEGACY) {
        let server = Fixture::default().server();
        let changes = server.changes();
        let bridge = bridge(&server, way.far).await;
        let (told, mut heard) = mpsc::channel(16);
        let builder = Client::builder().on_notification(move |method, params| {
            let params = params.map(|params| params.decode::<serde_json::Value>().unwrap());
            told.try_send((method.to_owned(), params)).unwrap();
        });
        let client = connect(builder, &bridge, way.near).await;
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
