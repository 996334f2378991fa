//! Listen streams: line 35, and 22 as far as it concerns them. What ends them is in `e_server`
//! and `server_leaves`.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle::{
    Client, Limits,
    server::{Change, Listeners, SubscriptionBus},
    subscribe::{Event, Filter, Listening},
    types::Era,
};
use turnbuckle_contract::{Fixture, server};

use crate::{
    raw::{Peer, client, client_with},
    rig::{Rig, Wire, contract, eventually, poll_once, virtually, within},
};

contract! { everywhere on [memory stdio unix direct http] in [modern]:
    // req: subscriptions:listen:honored-filter-narrows-to-advertised
    // req: subscriptions:listen:per-stream-filter
    // req: subscriptions:listen:client:honored-surfacing
    e35_what_is_granted_is_what_is_asked_for_and_advertised,
    // req: subscriptions:listen:client:concurrent-demux
    e35_each_stream_hears_what_it_asked_for_once,
    e35_a_stream_that_nobody_reads_slows_no_other,
    e22_closing_a_connection_releases_its_streams,
}

contract! { limited unconnected on [memory stdio unix direct http] in [modern]:
    // req: subscriptions:listen:capacity-guard
    e35_no_more_than_the_limit_may_listen,
}

/// Tells that the tools have changed, and returns what is heard next.
async fn touched(rig: &Rig, listening: &mut Listening) -> Event {
    let (told, touched) = tokio::join!(listening.next(), rig.tool("touch", json!({})));
    touched.unwrap();
    told.expect("the stream ended").unwrap()
}

async fn is_silent(listening: &mut Listening) -> bool {
    poll_once(&mut Box::pin(listening.next())).await.is_none()
}

async fn e35_what_is_granted_is_what_is_asked_for_and_advertised(rig: &Rig) {
    let watch = Filter::new().tools().prompts().resources().resource("note://7");
    let mut listening = rig.client.listen(watch).await.unwrap();
    let granted = serde_json::to_value(listening.granted()).unwrap();
    assert_eq!(granted, json!({"toolsListChanged": true}));
    let mut nothing = rig.client.listen(Filter::new().prompts()).await.unwrap();
    assert_eq!(serde_json::to_value(nothing.granted()).unwrap(), json!({}));
    assert_eq!(touched(rig, &mut listening).await, Event::ToolsChanged);
    rig.alive().await;
    assert!(is_silent(&mut nothing).await, "it is told what it did not ask for");
}

async fn e35_each_stream_hears_what_it_asked_for_once(rig: &Rig) {
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(rig.client.listen(Filter::new().tools()).await.unwrap());
    }
    for _ in 0..3 {
        let (first, others) = streams.split_first_mut().unwrap();
        assert_eq!(touched(rig, first).await, Event::ToolsChanged);
        for listening in others {
            assert_eq!(listening.next().await.unwrap().unwrap(), Event::ToolsChanged);
        }
        rig.alive().await;
        for listening in &mut streams {
            assert!(is_silent(listening).await, "it is told twice");
        }
    }
}

async fn e35_a_stream_that_nobody_reads_slows_no_other(rig: &Rig) {
    let mut unread = rig.client.listen(Filter::new().tools()).await.unwrap();
    let mut listening = rig.client.listen(Filter::new().tools()).await.unwrap();
    for _ in 0..50 {
        assert_eq!(touched(rig, &mut listening).await, Event::ToolsChanged);
    }
    assert_eq!(unread.next().await.unwrap().unwrap(), Event::ToolsChanged);
}

async fn e22_closing_a_connection_releases_its_streams(rig: &Rig) {
    let mut listening = rig.client.listen(Filter::new().tools()).await.unwrap();
    rig.until(|ledger| ledger.listeners == 1).await;
    rig.client.clone().close().await;
    let lost = listening.next().await.expect("a lost stream did not end in good order");
    assert!(lost.unwrap_err().is_closed());
    // In process the stream is the client's own future.
    drop(listening);
    if let Some(fixture) = &rig.fixture {
        eventually(|| fixture.ledger().listeners == 0).await;
    }
}

async fn e35_no_more_than_the_limit_may_listen(wire: Wire, era: Era) {
    let rig = Rig::with(wire, era, Client::builder(), &[("--listeners", 2)]).await;
    let one = rig.client.listen(Filter::new().tools()).await.unwrap();
    let _two = rig.client.listen(Filter::new()).await.unwrap();
    let error = rig.client.listen(Filter::new().tools()).await.unwrap_err();
    assert_eq!(error.as_rpc().unwrap().code, -32603);
    assert!(error.to_string().contains("the limit is 2 (listeners)"), "{error}");
    drop(one);
    rig.until(|ledger| ledger.listeners == 1).await;
    rig.client.listen(Filter::new().tools()).await.unwrap();
}

/// A bus over a channel, which stands for a network that two replicas share.
#[derive(Clone)]
struct Network {
    to_all: tokio::sync::mpsc::Sender<Change>,
    replicas: Arc<Mutex<Vec<Listeners>>>,
}

impl Network {
    fn new() -> Network {
        let (to_all, mut changes) = tokio::sync::mpsc::channel(16);
        let replicas = Arc::<Mutex<Vec<Listeners>>>::default();
        let everyone = replicas.clone();
        tokio::spawn(async move {
            while let Some(change) = changes.recv().await {
                for replica in &*everyone.lock().unwrap() {
                    replica.deliver(Change::clone(&change));
                }
            }
        });
        Network { to_all, replicas }
    }
}

impl SubscriptionBus for Network {
    fn publish(&self, change: Change) {
        self.to_all.try_send(change).unwrap();
    }

    fn attach(&self, listeners: Listeners) {
        self.replicas.lock().unwrap().push(listeners);
    }
}

#[tokio::test]
async fn e35_a_change_reaches_the_clients_of_every_replica() {
    within(async {
        let network = Network::new();
        let replica = || server(&Fixture::default(), Limits::default()).bus(network.clone());
        let (here, there) = (replica(), replica());
        let (ours, theirs) = tokio::io::duplex(4096);
        let serving = tokio::spawn(there.serve(theirs).into_future());
        let near = Client::in_process(&here).await.unwrap();
        let far = Client::builder().over(ours).await.unwrap();
        let mut near = near.listen(Filter::new().tools()).await.unwrap();
        let mut far = far.listen(Filter::new().tools()).await.unwrap();
        for replica in [&here, &there] {
            replica.changes().tools();
            for listening in [&mut near, &mut far] {
                assert_eq!(listening.next().await.unwrap().unwrap(), Event::ToolsChanged);
            }
        }
        serving.abort();
    })
    .await;
}

/// A legacy client is told without having asked, and without a subscription.
// req: tools:list-changed
#[tokio::test(start_paused = true)]
async fn a_legacy_client_is_told_of_changed_tools() {
    virtually(async {
        let mut served = crate::raw::opened(Era::Legacy).await;
        served.alive().await;
        for _ in 0..2 {
            served.fixture.touch();
            let told = served.peer.read().await;
            let method = "notifications/tools/list_changed";
            assert_eq!(told, json!({"jsonrpc": "2.0", "method": method}));
        }
        assert_eq!(served.fixture.ledger().listeners, 0, "a connection is no listen stream");
        served.peer.quiet().await;
    })
    .await;
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Tells something about the subscription with this id.
async fn tell(peer: &mut Peer, id: &Value, method: &str, mut params: Value) {
    params["_meta"] = json!({SUBSCRIPTION: id});
    let method = format!("notifications/{method}");
    peer.say(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
}

/// A stream from a server that is a script, and its id as the server spells it.
async fn opened(
    peer: &mut Peer,
    client: &Client,
    spelled: impl Fn(&Value) -> Value,
) -> (Listening, Value) {
    let mut listening = client.listen(Filter::new().tools()).into_future();
    assert!(poll_once(&mut listening).await.is_none());
    let id = spelled(&peer.read().await["id"]);
    // Whatever comes before it is not this stream's.
    tell(peer, &id, "prompts/list_changed", json!({})).await;
    tell(peer, &id, "subscriptions/acknowledged", json!({"notifications": {}})).await;
    (listening.await.unwrap(), id)
}

#[tokio::test(start_paused = true)]
async fn e35_notifications_find_their_stream_however_its_id_is_spelled() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let (mut one, first) = opened(&mut peer, &client, Value::clone).await;
        let (mut two, second) =
            opened(&mut peer, &client, |id| json!(id.to_string().trim_matches('"'))).await;
        tell(&mut peer, &second, "resources/updated", json!({"uri": "note://2"})).await;
        tell(&mut peer, &first, "resources/updated", json!({"uri": "note://1"})).await;
        // Nobody's: an id that is not in use, none at all, and what is no id.
        for id in [json!("nobody"), json!(null), json!([1]), json!(true)] {
            tell(&mut peer, &id, "tools/list_changed", json!({})).await;
        }
        tell(&mut peer, &second, "prompts/list_changed", json!({})).await;
        tell(&mut peer, &first, "resources/list_changed", json!({})).await;
        let mut heard = Vec::new();
        for listening in [&mut one, &mut two] {
            for _ in 0..2 {
                heard.push(listening.next().await.unwrap().unwrap());
            }
        }
        let updated = |uri: &str| Event::ResourceUpdated(uri.into());
        assert_eq!(
            heard,
            [
                updated("note://1"),
                Event::ResourcesChanged,
                updated("note://2"),
                Event::PromptsChanged,
            ]
        );
        assert!(is_silent(&mut one).await && is_silent(&mut two).await);
    })
    .await;
}

// req: custom-methods:notification-handler
#[tokio::test(start_paused = true)]
async fn e35_what_a_stream_does_not_know_is_handed_on() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let (mut listening, id) = opened(&mut peer, &client, Value::clone).await;
        for params in [json!({"uri": 7}), json!({})] {
            tell(&mut peer, &id, "resources/updated", params).await;
        }
        tell(&mut peer, &id, "subscriptions/acknowledged", json!({"notifications": {}})).await;
        tell(&mut peer, &id, "moon/rose", json!({"at": 3})).await;
        let mut methods = Vec::new();
        for _ in 0..3 {
            let Some(Ok(Event::Other { method, params })) = listening.next().await else {
                panic!("something else")
            };
            methods.push((method, params.decode::<Value>().unwrap()));
        }
        assert!(methods[..2].iter().all(|(method, _)| method == "notifications/resources/updated"));
        assert_eq!((&*methods[2].0, &methods[2].1["at"]), ("notifications/moon/rose", &json!(3)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e35_a_stream_that_was_not_read_says_that_it_missed_something() {
    virtually(async {
        let builder = Client::builder().limits(Limits::default().queued_notifications(3));
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        let (mut listening, id) = opened(&mut peer, &client, Value::clone).await;
        for number in 0..5 {
            let uri = format!("note://{number}");
            tell(&mut peer, &id, "resources/updated", json!({"uri": uri})).await;
        }
        eventually(|| client.counters().overflowed == 2).await;
        assert_eq!(listening.next().await.unwrap().unwrap(), Event::Missed);
        for number in 2..5 {
            let updated = Event::ResourceUpdated(format!("note://{number}"));
            assert_eq!(listening.next().await.unwrap().unwrap(), updated);
        }
        assert!(is_silent(&mut listening).await);
    })
    .await;
}
