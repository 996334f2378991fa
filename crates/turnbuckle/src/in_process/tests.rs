//! A client and a server that offers everything one can listen to, joined.

use std::{
    sync::{Arc, Mutex},
    task::{Context, Waker},
};

use tokio::io::AsyncWriteExt;

use crate::{
    Client, Limits, Server,
    server::{Change, Changes, Listeners, SubscriptionBus},
    subscribe::{Event, Filter, Listening},
};

fn everything() -> Server {
    Server::new("s", "1").offering_everything()
}

fn all() -> Filter {
    Filter::new().tools().prompts().resources().resource("note://7").resource("note://8")
}

fn publish_all(changes: &Changes) {
    changes.resource("note://8");
    changes.prompts();
    changes.resource("note://9");
    changes.tools();
    changes.resource("note://7");
    changes.resources();
    changes.resource("note://8");
}

fn expected() -> [Event; 5] {
    [
        Event::ResourceUpdated("note://8".into()),
        Event::PromptsChanged,
        Event::ToolsChanged,
        Event::ResourceUpdated("note://7".into()),
        Event::ResourcesChanged,
    ]
}

// req: tools:listen:list-changed, resources:listen:list-changed, prompts:listen:list-changed
// req: resources:updated-notification, subscriptions:listen:per-stream-filter
#[tokio::test]
async fn every_change_is_told_in_order_in_process_and_over_a_stream() {
    let server = everything();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(server.serve(theirs).into_future());
    for client in [Client::in_process(&server).await, Client::builder().over(ours).await] {
        let client = client.unwrap();
        let mut listening = client.listen(all()).await.unwrap();
        publish_all(&server.changes());
        for happened in expected() {
            assert_eq!(listening.next().await.unwrap().unwrap(), happened);
        }
    }
    drop(serving);
}

#[tokio::test]
async fn a_client_that_falls_behind_is_told_and_its_listener_is_gone() {
    let server = everything();
    let changes = server.changes();
    let client = Client::in_process(&server).await.unwrap();
    let uris = (0..=1_024).map(|number| format!("note://{number}"));
    let watch = uris.clone().fold(Filter::new(), Filter::resource);
    let mut listening = client.listen(watch).await.unwrap();
    uris.for_each(|uri| changes.resource(uri));
    let error = listening.next().await.unwrap().unwrap_err();
    assert!(error.to_string().contains("fell behind"), "{error}");
    assert!(listening.next().await.is_none());
    assert_eq!(changes.listeners(), 0);
}

const LISTEN: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"#,
    r#""notifications":{"toolsListChanged":true},"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    "\n",
);

#[tokio::test]
async fn one_that_does_not_read_keeps_nobody_waiting() {
    let server = everything();
    let changes = server.changes();
    // Its client never reads, and there is no room for a line.
    let (mut stuck, theirs) = tokio::io::duplex(16);
    tokio::spawn(server.serve(theirs).into_future());
    stuck.write_all(LISTEN.as_bytes()).await.unwrap();
    while changes.listeners() == 0 {
        tokio::task::yield_now().await;
    }
    let (quick, idle) = (Client::in_process(&server), Client::in_process(&server));
    let (quick, idle) = (quick.await.unwrap(), idle.await.unwrap());
    let _never_read = idle.listen(all()).await.unwrap();
    let mut listening = quick.listen(all()).await.unwrap();
    for _ in 0..1_000 {
        changes.tools();
        assert_eq!(listening.next().await.unwrap().unwrap(), Event::ToolsChanged);
    }
}

#[tokio::test]
async fn a_full_server_refuses_by_name_and_takes_the_next_when_one_leaves() {
    let limits = Limits::default().listeners(1);
    let server = Server::new("s", "1").limits(limits).offering_everything();
    let (one, two) = (Client::in_process(&server), Client::in_process(&server));
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    let listening = one.listen(all()).await.unwrap();
    let error = two.listen(all()).await.unwrap_err();
    assert!(error.to_string().contains("the limit is 1 (listeners)"), "{error}");
    drop(listening);
    two.listen(all()).await.unwrap();
}

/// A bus that keeps what is published until the test lets it through.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<(Vec<Change>, Vec<Listeners>)>>);

impl Held {
    fn let_through(&self) {
        let (changes, replicas) = std::mem::take(&mut *self.0.lock().unwrap());
        for change in changes {
            replicas.iter().for_each(|replica| replica.deliver(change.clone()));
        }
    }
}

impl SubscriptionBus for Held {
    fn publish(&self, change: Change) {
        self.0.lock().unwrap().0.push(change);
    }

    fn attach(&self, listeners: Listeners) {
        self.0.lock().unwrap().1.push(listeners);
    }
}

#[tokio::test]
async fn changes_go_by_the_bus_and_reach_every_replica() {
    let bus = Held::default();
    let here = Server::new("s", "1");
    let taken_before = here.changes();
    let here = here.bus(bus.clone()).offering_everything();
    let there = everything().bus(bus.clone());
    let mut ends = Vec::new();
    for server in [&here, &there] {
        let client = Client::in_process(server).await.unwrap();
        ends.push(client.listen(all()).await.unwrap());
    }
    publish_all(&taken_before);
    for listening in &mut ends {
        let mut next = std::pin::pin!(listening.next());
        assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    bus.let_through();
    for listening in &mut ends {
        for happened in expected() {
            assert_eq!(listening.next().await.unwrap().unwrap(), happened);
        }
    }
}

#[test]
fn a_listening_is_a_stream() {
    fn is_a_stream<S: futures_core::Stream<Item = crate::Result<Event>> + Unpin + Send>() {}
    is_a_stream::<Listening>();
}
