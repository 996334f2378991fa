//! Changes: told in one replica of a server, heard by the clients of all.

use std::sync::{Arc, Mutex};

use turnbuckle::{
    Client, Server,
    server::{Change, Listeners, SubscriptionBus},
    subscribe::{Event, Filter},
    tool,
};

/// Say something back.
#[tool]
async fn echo(text: String) -> String {
    text
}

/// Joins the replicas. Here they live in one process; a broker would stand between machines.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<Listeners>>>);

impl SubscriptionBus for Shared {
    fn publish(&self, change: Change) {
        for replica in self.0.lock().unwrap().iter() {
            replica.deliver(change.clone());
        }
    }

    fn attach(&self, listeners: Listeners) {
        self.0.lock().unwrap().push(listeners);
    }
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let bus = Shared::default();
    let replica = || Server::new("echo", "1.0").tool(echo).bus(bus.clone());
    let (here, there) = (replica(), replica());

    let bound = here.serve_http("127.0.0.1:0").bind().await?;
    let url = bound.url();
    tokio::spawn(bound.into_future());
    let client = Client::connect(url).await?;

    let mut listening = client.listen(Filter::new().tools()).await?;
    println!("granted: {}", listening.granted().tools_list_changed == Some(true));

    // From anywhere in the program, at any replica.
    there.changes().tools();
    match listening.next().await {
        Some(Ok(Event::ToolsChanged)) => println!("the tools changed: list them again"),
        other => println!("something else: {other:?}"),
    }

    // Dropping the stream unsubscribes.
    drop(listening);
    Ok(())
}
