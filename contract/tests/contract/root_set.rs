//! A set of roots that changes while clients are connected.

use serde_json::{Value, json};
use turnbuckle::{
    Client, Ctx, Server,
    client::RootSet,
    elicit::roots,
    server::RootsChanged,
    tool,
    types::{Era, Root},
};
use turnbuckle_contract::Fixture;

use crate::{
    live::connect,
    raw::{Peer, SILENCE, client_with, connecting, initialized},
    rig::{Wire, contract, eventually, pinned, virtually},
};

contract! { everywhere unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: roots:list:basic, roots:list:empty, roots:mrtr:list:basic, roots:mrtr:list:empty
    a_handler_is_told_the_roots_of_now,
    // req: roots:uri:file-scheme, roots:list:client-error
    a_root_that_is_no_file_is_not_sent,
}

contract! { heard unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: roots:list-changed
    a_server_hears_that_the_roots_are_others_where_there_is_such_a_word,
}

const CHANGED: &str = "notifications/roots/list_changed";

fn root(path: &str) -> Root {
    Root::new(format!("file:///{path}"))
}

fn asking() -> Server {
    Server::new("s", "1").tool(tool("roots", async |ctx: Ctx| {
        let roots = ctx.ask("where", roots()).await?;
        let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
        Ok::<_, turnbuckle::RpcError>(uris.join(" "))
    }))
}

async fn a_handler_is_told_the_roots_of_now(wire: Wire, era: Era) {
    let set = RootSet::new([root("a")]).unwrap();
    let builder = Client::builder().root_set(set.clone());
    let client = connect(builder, &asking(), wire, era).await;
    let told = async || client.call_tool("roots", ()).await.unwrap().to_text();
    assert_eq!(told().await, "file:///a");
    set.add(root("b")).unwrap();
    assert_eq!(told().await, "file:///a file:///b");
    set.set([]).unwrap();
    assert_eq!(told().await, "");
}

async fn a_root_that_is_no_file_is_not_sent(wire: Wire, era: Era) {
    let builder = Client::builder().roots([root("a"), Root::new("https://example.com/")]);
    let client = connect(builder, &asking(), wire, era).await;
    let outcome = client.call_tool("roots", ()).await;
    let text = match outcome {
        Ok(result) => result.to_text(),
        Err(error) => error.to_string(),
    };
    assert!(text.contains("no sound `file://` URI"), "{text}");
    assert!(!text.contains("file:///a") && !text.contains("example.com"), "{text}");
}

async fn a_server_hears_that_the_roots_are_others_where_there_is_such_a_word(wire: Wire, era: Era) {
    let heard = Fixture::default();
    let hook = heard.clone();
    let server = asking().on_roots_changed(move |changed: RootsChanged| {
        assert_eq!(changed.revision(), pinned(Era::Legacy));
        hook.count(&changed.client_info().name, |count| count.started += 1);
        std::future::ready(())
    });
    let set = RootSet::new([root("a")]).unwrap();
    let builder = Client::builder().root_set(set.clone()).info("rooted", "1");
    let client = connect(builder, &server, wire, era).await;
    let told = async || client.call_tool("roots", ()).await.unwrap().to_text();
    for (runs, name) in ["b", "c"].into_iter().enumerate() {
        set.add(root(name)).unwrap();
        if era == Era::Legacy {
            eventually(|| heard.of("rooted").started > runs as u64).await;
        }
        assert!(told().await.ends_with(&format!("file:///{name}")));
    }
    let expected = if era == Era::Legacy { 2 } else { 0 };
    assert_eq!(heard.of("rooted").started, expected);
}

/// The client's declaration, and the rest as it comes.
async fn declared(set: &RootSet) -> (Peer, Client, Value) {
    let builder = Client::builder().root_set(set.clone()).revision(pinned(Era::Legacy));
    let (mut peer, connecting) = connecting(builder, 1 << 20);
    let initialize = peer.read().await;
    peer.answer(&initialize, initialized("2025-11-25")).await;
    assert_eq!(peer.read().await["method"], "notifications/initialized");
    let declared = initialize["params"]["capabilities"]["roots"].clone();
    (peer, connecting.await.unwrap().unwrap(), declared)
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Asserts that all tasks have ended but so many, once everyone has had the time that they need.
async fn all_ended_but(before: usize) {
    tokio::time::sleep(SILENCE).await; // tidy: sleep is all the time that anyone needs, paused
    assert_eq!(alive_tasks(), before);
}

/// The set may outlive its clients: nothing that tells of its changes may.
#[tokio::test(start_paused = true)]
async fn who_tells_of_changes_ends_with_the_connection() {
    virtually(async {
        let set = RootSet::new([]).unwrap();
        let before = alive_tasks();
        let (mut peer, client, _) = declared(&set).await;
        assert!(alive_tasks() > before);
        set.add(root("a")).unwrap();
        assert_eq!(peer.read().await["method"], CHANGED);
        drop(client);
        peer.ended().await;
        all_ended_but(before).await;
        // The same if the server ends it, or does not read what it is told.
        let (peer, client, _) = declared(&set).await;
        drop(peer);
        all_ended_but(before).await;
        let builder = Client::builder().root_set(set.clone());
        let (peer, deaf) = client_with(Era::Legacy, builder, 64).await;
        for number in 0..50 {
            set.add(root(&format!("{number}"))).unwrap();
            tokio::task::yield_now().await;
        }
        drop(deaf);
        all_ended_but(before).await;
        drop((peer, client));
    })
    .await;
}

// req: roots:list-changed, roots:list-changed:client-emits
#[tokio::test(start_paused = true)]
async fn every_legacy_server_is_told_once_for_each_burst() {
    virtually(async {
        let set = RootSet::new([]).unwrap();
        let (mut one, _first, able) = declared(&set).await;
        assert_eq!(able, json!({"listChanged": true}));
        let (mut two, _second, _) = declared(&set).await;
        for burst in 0..3 {
            for number in 0..10 {
                set.add(root(&format!("{burst}/{number}"))).unwrap();
            }
            for peer in [&mut one, &mut two] {
                assert_eq!(peer.read().await, json!({"jsonrpc": "2.0", "method": CHANGED}));
                peer.quiet().await;
            }
        }
        let answer = one.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})).await;
        assert_eq!(answer["result"]["roots"].as_array().unwrap().len(), 30);
        // What changes nothing is not told.
        set.add(root("0/0")).unwrap();
        one.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_set_keeps_no_connection_and_needs_none() {
    virtually(async {
        let set = RootSet::new([]).unwrap();
        let (mut peer, client, _) = declared(&set).await;
        drop(client);
        peer.ended().await;
        set.add(root("a")).unwrap();
        // One that its server has left is in nobody's way.
        let (peer, left, _) = declared(&set).await;
        drop(peer.into_stream());
        set.add(root("b")).unwrap();
        // Who connects then is told all of it, and of what changes next.
        let (mut peer, client, _) = declared(&set).await;
        let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
        let listed = peer.ask(listing).await;
        let expected = json!({"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]});
        assert_eq!(listed["result"], expected);
        set.add(root("c")).unwrap();
        assert_eq!(peer.read().await["method"], CHANGED);
        drop((left, client));
        peer.ended().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_told_nothing() {
    virtually(async {
        let set = RootSet::new([]).unwrap();
        let builder = Client::builder().root_set(set.clone());
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        set.add(root("a")).unwrap();
        peer.quiet().await;
        let call = tokio::spawn(client.call_tool("t", ()).into_future());
        let request = peer.read().await;
        let able = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(able["roots"], json!({}));
        call.abort();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_set_later_goes_before_what_was_set_first() {
    virtually(async {
        let set = RootSet::new([root("set")]).unwrap();
        let builder = Client::builder().root_set(set.clone()).roots([root("fixed")]);
        let (mut peer, connecting) = connecting(builder.revision(pinned(Era::Legacy)), 1 << 20);
        let initialize = peer.read().await;
        assert_eq!(initialize["params"]["capabilities"]["roots"], json!({}));
        peer.answer(&initialize, initialized("2025-11-25")).await;
        peer.read().await;
        let _client = connecting.await.unwrap().unwrap();
        set.add(root("other")).unwrap();
        peer.quiet().await;
    })
    .await;
}
