//! What goes on after a connection was lost: calls of tools that may run twice, roots that changed
//! meanwhile, and a client that is watched from before its first connection. The server is a script
//! behind a stream that a function makes; time is paused.

use serde_json::{Value, json};
use turnbuckle::{
    Client, ErrorKind,
    client::{ConnectionState, Retry, RootSet},
    types::{Era, Root},
};

use crate::{
    raw::{Peer, in_both_eras, said},
    reconnects::{Desk, connected, connecting, noticed},
    rig::{pinned, virtually},
    web::launch,
};

in_both_eras! {
    a_tool_that_is_marked_harmless_is_called_again_and_no_other,
    the_mark_of_a_tool_counts_only_for_who_allows_it,
    a_first_connection_can_be_watched,
    a_first_connection_that_fails_says_why,
}

/// Lists tools of which some are marked as harmless.
async fn listed(peer: &mut Peer, client: &Client) {
    let listing = launch(client.list_tools());
    let request = peer.read().await;
    let tool = |name: &str, annotations: Value| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations});
    let tools = json!([
        tool("reads", json!({"readOnlyHint": true})),
        tool("sets", json!({"readOnlyHint": false, "idempotentHint": true})),
        tool("adds", json!({"readOnlyHint": false, "idempotentHint": false})),
        tool("says nothing", json!({})),
    ]);
    let result =
        json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"});
    peer.answer(&request, result).await;
    assert_eq!(listing.await.unwrap().unwrap().tools.len(), 4);
}

async fn a_tool_that_is_marked_harmless_is_called_again_and_no_other(era: Era) {
    let (mut desk, mut peer, client) = connected(era, Client::builder()).await;
    listed(&mut peer, &client).await;
    let call =
        |name: &str| launch(client.call_tool(name, json!({"n": 7})).retry(Retry::Idempotent));
    let harmless = ["reads", "sets"].map(call);
    let others = ["adds", "says nothing", "unlisted"].map(call);
    for _ in 0..5 {
        peer.read().await;
    }
    drop(peer);
    for other in others {
        let error = other.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
    }
    let mut peer = desk.open(era).await;
    let mut again = Vec::new();
    for _ in 0..2 {
        let request = peer.read().await;
        assert_eq!(request["method"], "tools/call");
        assert_eq!(request["params"]["arguments"], json!({"n": 7}));
        again.push(request["params"]["name"].as_str().unwrap().to_owned());
        peer.answer(&request, said("ok")).await;
    }
    again.sort();
    assert_eq!(again, ["reads", "sets"]);
    for call in harmless {
        assert_eq!(call.await.unwrap().unwrap().to_text(), "ok");
    }
    peer.quiet().await;
}

async fn the_mark_of_a_tool_counts_only_for_who_allows_it(era: Era) {
    let (mut desk, mut peer, client) = connected(era, Client::builder()).await;
    listed(&mut peer, &client).await;
    let careful = launch(client.call_tool("reads", ()));
    peer.read().await;
    drop(peer);
    let error = careful.await.unwrap().unwrap_err();
    assert!(error.is_closed() && error.maybe_executed(), "{error}");
    desk.open(era).await.quiet().await;
}

const CHANGED: &str = "notifications/roots/list_changed";

/// A client with these roots that lost its server, and the desk at which it waits for another.
async fn bereft(set: &RootSet) -> (Desk, Client) {
    let builder = Client::builder().root_set(set.clone());
    let (desk, mut peer, client) = connected(Era::Legacy, builder).await;
    let before = peer.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
    assert_eq!(before["result"]["roots"][0]["uri"], "file:///a");
    drop(peer);
    noticed(&client).await;
    (desk, client)
}

// req: roots:list-changed:client-emits
#[tokio::test(start_paused = true)]
async fn roots_that_changed_while_there_was_no_connection_are_told_on_the_next() {
    virtually(async {
        let set = RootSet::new([Root::new("file:///a")]).unwrap();
        let (mut desk, client) = bereft(&set).await;
        for path in ["file:///b", "file:///c"] {
            set.add(Root::new(path)).unwrap();
        }
        let mut peer = desk.open(Era::Legacy).await;
        assert_eq!(peer.read().await, json!({"jsonrpc": "2.0", "method": CHANGED}));
        let now = peer.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
        assert_eq!(now["result"]["roots"].as_array().unwrap().len(), 3);
        peer.quiet().await;
        // What changes from then on is told there, too.
        set.remove("file:///b").unwrap();
        assert_eq!(peer.read().await["method"], CHANGED);
        drop(client);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn roots_that_are_as_they_were_are_answered_on_the_next_connection_and_not_told() {
    virtually(async {
        let set = RootSet::new([Root::new("file:///a")]).unwrap();
        let (mut desk, client) = bereft(&set).await;
        let mut peer = desk.open(Era::Legacy).await;
        peer.quiet().await;
        let now = peer.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
        assert_eq!(now["result"]["roots"], json!([{"uri": "file:///a"}]));
        drop(client);
    })
    .await;
}

async fn a_first_connection_can_be_watched(era: Era) {
    let builder = Client::builder().revision(pinned(era));
    let mut states = builder.states();
    assert!(matches!(states.next().await, Some(ConnectionState::Connecting)));
    let (mut desk, connecting) = connecting(builder);
    let peer = desk.open(era).await;
    assert!(matches!(states.next().await, Some(ConnectionState::Ready { generation: 1 })));
    let client = connecting.await.unwrap().unwrap();
    drop(peer);
    assert!(matches!(states.next().await, Some(ConnectionState::Reconnecting { .. })));
    client.close().await;
    assert!(matches!(states.next().await, Some(ConnectionState::Closed { .. })));
    assert!(states.next().await.is_none());
}

async fn a_first_connection_that_fails_says_why(era: Era) {
    let builder = Client::builder().revision(pinned(era));
    let mut states = builder.states();
    let (mut desk, attempt) = connecting(builder);
    desk.refuse().await;
    assert_eq!(attempt.await.unwrap().unwrap_err().kind(), ErrorKind::Connect);
    let Some(ConnectionState::Closed { reason }) = states.next().await else {
        panic!("{states:?}")
    };
    assert!(reason.to_string().contains("nobody there"), "{reason}");
    assert!(states.next().await.is_none());
    // One that is given up has nobody left who could say anything.
    let builder = Client::builder().revision(pinned(era));
    let mut states = builder.states();
    let (mut desk, attempt) = connecting(builder);
    let _unanswered = desk.asked().await;
    attempt.abort();
    assert!(attempt.await.unwrap_err().is_cancelled());
    assert!(matches!(states.next().await, Some(ConnectionState::Connecting)));
    assert!(states.next().await.is_none());
}
