//! Lists that are kept up to date: a client whose server is a script, then both over every wire.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle::{
    Client, Server,
    subscribe::LiveList,
    tool,
    types::{Era, Tool},
};

use crate::{
    listening_legacy::{declaring, everything, tell},
    live::connected,
    raw::Peer,
    rig::{Wire, contract, poll_once, virtually},
    web::settle,
};

contract! { everywhere unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: client:listen:auto-refresh, client:list-changed:auto-refresh
    a_list_follows_its_server,
}

fn names(tools: Option<turnbuckle::Result<Vec<Tool>>>) -> Vec<String> {
    tools.expect("the stream ended").unwrap().into_iter().map(|tool| tool.name).collect()
}

async fn a_list_follows_its_server(wire: Wire, era: Era) {
    let server = Server::new("s", "1").tool(tool("a", async || ()));
    let registry = server.registry().unwrap();
    let client = connected(&server, wire, era).await;
    let mut live = client.live_tools().debounce(Duration::from_millis(1));
    assert_eq!(names(live.next().await), ["a"]);
    for number in 0..20 {
        registry.add_tool(tool(format!("t{number}"), async || ())).unwrap();
    }
    // The burst may be told in two, but the last list has it all.
    while names(live.next().await).len() < 21 {}
    registry.tool("a").unwrap().remove();
    while names(live.next().await).contains(&"a".to_owned()) {}
    let mut prompts = client.live_prompts();
    assert!(prompts.next().await.unwrap().is_ok_and(|prompts| prompts.is_empty()));
}

async fn listing(peer: &mut Peer) -> Value {
    let request = peer.read().await;
    assert_eq!(request["method"], "tools/list", "{request}");
    request
}

async fn answer(peer: &mut Peer, request: &Value, name: &str) {
    let tools = json!([{"name": name, "inputSchema": {"type": "object"}}]);
    peer.answer(request, json!({"tools": tools})).await;
}

/// The next list, for which the script is asked once.
async fn listed(peer: &mut Peer, live: &mut LiveList<Tool>, name: &str) {
    let script = async {
        let request = listing(peer).await;
        answer(peer, &request, name).await;
    };
    let (tools, ()) = tokio::join!(live.next(), script);
    assert_eq!(names(tools), [name]);
}

async fn following() -> (Peer, Client, LiveList<Tool>) {
    let (mut peer, client) = declaring(Client::builder(), everything()).await;
    let mut live = client.live_tools();
    listed(&mut peer, &mut live, "first").await;
    (peer, client, live)
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_one_listing_after_the_pause() {
    virtually(async {
        let (mut peer, _client, mut live) = following().await;
        let before = Instant::now();
        let script = async {
            for _ in 0..9 {
                tell(&mut peer, "tools").await;
                // Heard before any time passes.
                settle().await;
                tokio::time::advance(Duration::from_millis(10)).await;
            }
            let request = listing(&mut peer).await;
            assert_eq!(before.elapsed(), Duration::from_millis(100), "from the first change on");
            answer(&mut peer, &request, "second").await;
        };
        let (tools, ()) = tokio::join!(live.next(), script);
        assert_eq!(names(tools), ["second"]);
        let mut next = Box::pin(live.next());
        assert!(poll_once(&mut next).await.is_none());
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_listing_leads_to_another_after_it() {
    virtually(async {
        let (mut peer, _client, mut live) = following().await;
        tell(&mut peer, "tools").await;
        let script = async {
            let request = listing(&mut peer).await;
            tell(&mut peer, "tools").await;
            tell(&mut peer, "tools").await;
            // Not beside it.
            peer.quiet().await;
            answer(&mut peer, &request, "second").await;
        };
        let (tools, ()) = tokio::join!(live.next(), script);
        assert_eq!(names(tools), ["second"]);
        listed(&mut peer, &mut live, "third").await;
        let mut next = Box::pin(live.next());
        assert!(poll_once(&mut next).await.is_none());
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_is_an_item() {
    virtually(async {
        let (mut peer, _client, mut live) = following().await;
        tell(&mut peer, "tools").await;
        let script = async {
            let request = listing(&mut peer).await;
            peer.refuse(&request, json!({"code": -32603, "message": "not now"})).await;
        };
        let (tools, ()) = tokio::join!(live.next(), script);
        assert_eq!(tools.unwrap().unwrap_err().as_rpc().unwrap().code, -32603);
        tell(&mut peer, "tools").await;
        listed(&mut peer, &mut live, "second").await;
        drop(peer);
        assert!(live.next().await.unwrap().unwrap_err().is_closed());
        assert!(live.next().await.is_none());
    })
    .await;
}

// req: client:list-changed:capability-gated
#[tokio::test(start_paused = true)]
async fn a_list_of_which_nothing_is_told_is_listed_once() {
    virtually(async {
        let (mut peer, client) = declaring(Client::builder(), json!({"tools": {}})).await;
        let mut live = client.live_tools();
        listed(&mut peer, &mut live, "only").await;
        assert!(live.next().await.is_none());
        assert!(live.next().await.is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn dropping_it_cancels_the_listing() {
    virtually(async {
        let (mut peer, _client, mut live) = following().await;
        tell(&mut peer, "tools").await;
        let mut next = Box::pin(live.next());
        let request = tokio::select! {
            _ = &mut next => panic!("nobody answered"),
            request = listing(&mut peer) => request,
        };
        drop(next);
        peer.quiet().await;
        drop(live);
        let cancel = peer.read().await;
        assert_eq!(cancel["params"]["requestId"], request["id"]);
        peer.quiet().await;
    })
    .await;
}
