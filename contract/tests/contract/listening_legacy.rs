//! Listening on a legacy connection: a client, whose server is a script.

use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder, ErrorKind, Limits,
    subscribe::{Event, Filter, Listening},
};

use crate::{
    raw::{Peer, connecting, initialized},
    rig::{eventually, pinned, poll_once, virtually},
};
use turnbuckle::types::Era;

/// A client of a legacy server that declares this.
pub(crate) async fn declaring(builder: ClientBuilder, capabilities: Value) -> (Peer, Client) {
    let (mut peer, connecting) = connecting(builder.revision(pinned(Era::Legacy)), 1 << 20);
    let initialize = peer.read().await;
    let mut answer = initialized("2025-11-25");
    answer["capabilities"] = capabilities;
    peer.answer(&initialize, answer).await;
    assert_eq!(peer.read().await["method"], "notifications/initialized");
    (peer, connecting.await.unwrap().unwrap())
}

/// Everything that can be listened for.
pub(crate) fn everything() -> Value {
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
    })
}

pub(crate) async fn tell(peer: &mut Peer, what: &str) {
    let message = match what {
        "tools" | "prompts" | "resources" => {
            json!({"jsonrpc": "2.0", "method": format!("notifications/{what}/list_changed")})
        }
        uri => {
            let params = json!({"uri": uri});
            json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
        }
    };
    peer.say(message).await;
}

fn updated(uri: &str) -> Event {
    Event::ResourceUpdated(uri.into())
}

/// Reads a request about a subscription and checks what it is.
async fn asked(peer: &mut Peer, method: &str, uri: &str) -> Value {
    let request = peer.read().await;
    assert_eq!(request["method"], format!("resources/{method}"), "{request}");
    assert_eq!(request["params"]["uri"], uri, "{request}");
    request
}

/// Listens for one resource; the script agrees.
async fn watching(peer: &mut Peer, client: &Client, uri: &str) -> Listening {
    let agree = async {
        let request = asked(peer, "subscribe", uri).await;
        peer.answer(&request, json!({})).await;
    };
    let (listening, ()) = tokio::join!(client.listen(Filter::new().resource(uri)), agree);
    listening.unwrap()
}

async fn is_silent(listening: &mut Listening) -> bool {
    poll_once(&mut Box::pin(listening.next())).await.is_none()
}

/// Returns when the client has read all that was said so far.
async fn heard(peer: &mut Peer) {
    let pong = peer.ask(json!({"jsonrpc": "2.0", "id": "heard?", "method": "ping"})).await;
    assert_eq!(pong["result"], json!({}));
}

// req: client:list-changed:signal-only, client:list-changed:capability-gated, subscriptions:listen:client:era-guard
#[tokio::test(start_paused = true)]
async fn what_was_declared_is_told_and_nothing_else() {
    virtually(async {
        let able = json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}});
        let (mut peer, client) = declaring(Client::builder(), able).await;
        let watch = Filter::new().tools().prompts().resource("note://7");
        let mut listening = client.listen(watch).await.unwrap();
        let granted = serde_json::to_value(listening.granted()).unwrap();
        assert_eq!(granted, json!({"toolsListChanged": true}));
        for what in ["prompts", "resources", "note://7", "tools"] {
            tell(&mut peer, what).await;
        }
        assert_eq!(listening.next().await.unwrap().unwrap(), Event::ToolsChanged);
        heard(&mut peer).await;
        assert!(is_silent(&mut listening).await);
        let error = client.listen(Filter::new().prompts().resource("note://7")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        let text = error.to_string();
        assert!(text.contains("`prompts.listChanged`, `resources.subscribe`"), "{text}");
        assert!(text.contains("on_notification"), "{text}");
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_heard_by_who_ignores_capabilities() {
    virtually(async {
        let builder = Client::builder().ignore_capabilities();
        let (mut peer, client) = declaring(builder, json!({"prompts": {}})).await;
        let watch = Filter::new().tools().prompts().resource("note://7");
        let agree = async {
            let request = asked(&mut peer, "subscribe", "note://7").await;
            peer.answer(&request, json!({})).await;
        };
        let (listening, ()) = tokio::join!(client.listen(watch), agree);
        let mut listening = listening.unwrap();
        for (what, heard) in [
            ("tools", Event::ToolsChanged),
            ("prompts", Event::PromptsChanged),
            ("note://7", updated("note://7")),
        ] {
            tell(&mut peer, what).await;
            assert_eq!(listening.next().await.unwrap().unwrap(), heard);
        }
        // What it can't do it says itself.
        let refuse = async {
            let request = asked(&mut peer, "subscribe", "note://8").await;
            peer.refuse(&request, json!({"code": -32601, "message": "no such method"})).await;
        };
        let watch = Filter::new().resource("note://8");
        let (refused, ()) = tokio::join!(client.listen(watch), refuse);
        assert_eq!(refused.unwrap_err().as_rpc().unwrap().code, -32601);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_told_once_in_the_order_of_first_occurrence() {
    virtually(async {
        let (mut peer, client) = declaring(Client::builder(), everything()).await;
        let agree = async {
            for _ in 0..2 {
                let request = peer.read().await;
                peer.answer(&request, json!({})).await;
            }
        };
        let watch =
            Filter::new().tools().resource("note://7").resource("note://8").resource("note://7");
        let (listening, ()) = tokio::join!(client.listen(watch), agree);
        let mut listening = listening.unwrap();
        for _ in 0..2000 {
            for what in ["note://8", "tools", "note://7/title", "note://77", "note://8"] {
                tell(&mut peer, what).await;
            }
        }
        heard(&mut peer).await;
        let once = [updated("note://8"), Event::ToolsChanged, updated("note://7/title")];
        for happened in once {
            assert_eq!(listening.next().await.unwrap().unwrap(), happened);
        }
        assert!(is_silent(&mut listening).await);
        tell(&mut peer, "tools").await;
        assert_eq!(listening.next().await.unwrap().unwrap(), Event::ToolsChanged);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn more_than_may_wait_is_one_word() {
    virtually(async {
        let builder = Client::builder().limits(Limits::default().queued_notifications(3));
        let (mut peer, client) = declaring(builder, everything()).await;
        let mut listening = watching(&mut peer, &client, "note://7").await;
        for number in 0..4 {
            tell(&mut peer, &format!("note://7/{number}")).await;
        }
        heard(&mut peer).await;
        assert_eq!(listening.next().await.unwrap().unwrap(), Event::Missed);
        assert!(is_silent(&mut listening).await);
        tell(&mut peer, "note://7").await;
        assert_eq!(listening.next().await.unwrap().unwrap(), updated("note://7"));
    })
    .await;
}

// req: subscriptions:listen:client:era-guard
#[tokio::test(start_paused = true)]
async fn a_resource_is_subscribed_once_and_unsubscribed_by_the_last() {
    virtually(async {
        let (mut peer, client) = declaring(Client::builder(), everything()).await;
        let mut one = watching(&mut peer, &client, "note://7").await;
        let mut two = client.listen(Filter::new().resource("note://7").tools()).await.unwrap();
        peer.quiet().await;
        tell(&mut peer, "note://7").await;
        for listening in [&mut one, &mut two] {
            assert_eq!(listening.next().await.unwrap().unwrap(), updated("note://7"));
        }
        drop(one);
        peer.quiet().await;
        tell(&mut peer, "note://7").await;
        assert_eq!(two.next().await.unwrap().unwrap(), updated("note://7"));
        drop(two);
        let request = asked(&mut peer, "unsubscribe", "note://7").await;
        // Who comes now has to wait until the server has let go.
        let mut three = client.listen(Filter::new().resource("note://7")).into_future();
        assert!(poll_once(&mut three).await.is_none());
        peer.quiet().await;
        peer.answer(&request, json!({})).await;
        let agree = async {
            let request = asked(&mut peer, "subscribe", "note://7").await;
            peer.answer(&request, json!({})).await;
        };
        let (three, ()) = tokio::join!(three, agree);
        drop(three);
        let request = asked(&mut peer, "unsubscribe", "note://7").await;
        // A server that can't is not asked again.
        peer.refuse(&request, json!({"code": -32603, "message": "no"})).await;
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_server_refuses_is_not_granted() {
    virtually(async {
        let (mut peer, client) = declaring(Client::builder(), everything()).await;
        let script = async {
            for _ in 0..2 {
                let request = peer.read().await;
                match request["params"]["uri"].as_str().unwrap() {
                    "note://7" => peer.answer(&request, json!({})).await,
                    _ => peer.refuse(&request, json!({"code": -32002, "message": "none"})).await,
                }
            }
        };
        let watch = Filter::new().resource("note://7").resource("none://");
        let (listening, ()) = tokio::join!(client.listen(watch), script);
        let listening = listening.unwrap();
        let granted = serde_json::to_value(listening.granted()).unwrap();
        assert_eq!(granted, json!({"resourceSubscriptions": ["note://7"]}));
        // Again, as it may be there by now; and nothing else was asked for.
        let script = async {
            let request = asked(&mut peer, "subscribe", "none://").await;
            peer.refuse(&request, json!({"code": -32002, "message": "none"})).await;
        };
        let (refused, ()) = tokio::join!(client.listen(Filter::new().resource("none://")), script);
        assert_eq!(refused.unwrap_err().as_rpc().unwrap().code, -32002);
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_is_gone_before_the_answer_is_unsubscribed_after_it() {
    virtually(async {
        let (mut peer, client) = declaring(Client::builder(), everything()).await;
        let mut listening = client.listen(Filter::new().resource("note://7")).into_future();
        assert!(poll_once(&mut listening).await.is_none());
        let request = asked(&mut peer, "subscribe", "note://7").await;
        drop(listening);
        peer.quiet().await;
        peer.answer(&request, json!({})).await;
        let request = asked(&mut peer, "unsubscribe", "note://7").await;
        peer.answer(&request, json!({})).await;
        peer.quiet().await;
        // One that is never answered has a clock.
        let error = client.listen(Filter::new().resource("note://8")).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
    })
    .await;
}

// req: subscriptions:listen:client:lost
#[tokio::test(start_paused = true)]
async fn the_end_of_the_connection_ends_it_with_the_reason() {
    virtually(async {
        let (mut peer, client) = declaring(Client::builder(), everything()).await;
        let mut listening = watching(&mut peer, &client, "note://7").await;
        tell(&mut peer, "note://7").await;
        heard(&mut peer).await;
        drop(peer);
        eventually(|| matches!(client.state(), turnbuckle::client::ConnectionState::Closed { .. }))
            .await;
        // What came before the end is told before it.
        assert_eq!(listening.next().await.unwrap().unwrap(), updated("note://7"));
        assert!(listening.next().await.unwrap().unwrap_err().is_closed());
        assert!(listening.next().await.is_none());
        let error = client.listen(Filter::new().resource("note://7")).await.unwrap_err();
        assert!(error.is_closed(), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_when_client_and_stream_go_together() {
    virtually(async {
        let (mut peer, client) = declaring(Client::builder(), everything()).await;
        let listening = watching(&mut peer, &client, "note://7").await;
        // The stream keeps the connection, as a call does.
        drop(client);
        peer.quiet().await;
        drop(listening);
        // Nobody is left who could unsubscribe: the end of the connection says it all.
        peer.ended().await;
    })
    .await;
}

#[test]
fn law10_a_stream_can_be_dropped_after_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (listening, client) = runtime.block_on(async {
        let (mut peer, client) = declaring(Client::builder(), everything()).await;
        let listening = watching(&mut peer, &client, "note://7").await;
        (listening, client)
    });
    drop(runtime);
    drop(listening);
    drop(client);
}

fn completed(id: &str) -> Value {
    let method = "notifications/elicitation/complete";
    json!({"jsonrpc": "2.0", "method": method, "params": {"elicitationId": id}})
}

/// The client keeps no list of what happens elsewhere: news of it reach the observer, and news of
/// what it never heard of do no harm.
// req: elicitation:url:complete-notification, elicitation:url:complete-unknown-ignored
#[tokio::test(start_paused = true)]
async fn the_end_of_an_elicitation_reaches_the_observer() {
    virtually(async {
        let (sender, mut told) = tokio::sync::mpsc::channel(4);
        let builder = Client::builder().on_notification(move |method, params| {
            let params: Value = params.unwrap().decode().unwrap();
            sender.try_send((method.to_owned(), params)).unwrap();
        });
        let (mut peer, client) = declaring(builder, everything()).await;
        let mut listening = client.listen(Filter::new().tools()).await.unwrap();
        for id in ["known", "never heard of"] {
            peer.say(completed(id)).await;
            let (method, params) = told.recv().await.unwrap();
            assert_eq!(method, "notifications/elicitation/complete");
            assert_eq!(params["elicitationId"], id);
        }
        heard(&mut peer).await;
        assert!(is_silent(&mut listening).await);
    })
    .await;
}
