//! Listening in both eras over every wire, and what becomes of a stream whose connection is lost.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use turnbuckle::{
    Client, Server,
    client::Reconnect,
    resource,
    subscribe::{Event, Filter, Listening},
    tool,
    types::Era,
};

use crate::{
    live::{connect, connected},
    raw::said,
    rig::{Rig, Wire, contract, poll_once, within},
    session::{Listens, SESSION, legacy, shake},
    web::{Post, Web, launch, modern, settle},
};

contract! { everywhere unconnected on [memory unix direct http sse] in [legacy modern]:
    // req: subscriptions:listen:client:iteration, client:list-changed:signal-only
    the_same_is_told_in_both_eras,
    the_end_of_the_client_ends_its_streams,
}

contract! { restarted unconnected on [stdio] in [legacy modern]:
    // req: subscriptions:listen:client:lost
    a_stream_goes_on_with_the_next_process,
    a_stream_that_may_not_come_back_ends_with_the_reason,
}

fn noted() -> Server {
    Server::new("s", "1")
        .tool(tool("t", async || ()))
        .resource(resource("note://7", async || "seven"))
        .resource(resource("note://8", async || "eight"))
}

fn updated(uri: &str) -> Event {
    Event::ResourceUpdated(uri.into())
}

async fn next(listening: &mut Listening) -> Event {
    listening.next().await.expect("the stream ended").unwrap()
}

async fn the_same_is_told_in_both_eras(wire: Wire, era: Era) {
    let server = noted();
    let _registry = server.registry().unwrap();
    let (sender, mut observed) = tokio::sync::mpsc::channel(64);
    let builder = Client::builder().on_notification(move |method, params| {
        let uri = params.and_then(|params| Some(params.decode::<Value>().ok()?["uri"].clone()));
        let uri = uri.and_then(|uri| uri.as_str().map(str::to_owned)).unwrap_or_default();
        sender.try_send(format!("{method} {uri}")).unwrap();
    });
    let client = connect(builder, &server, wire, era).await;
    let watch = || Filter::new().tools().resource("note://7");
    let mut one = client.listen(watch()).await.unwrap();
    let mut two = client.listen(watch().resource("note://8")).await.unwrap();
    let granted = serde_json::to_value(one.granted()).unwrap();
    let expected = json!({"toolsListChanged": true, "resourceSubscriptions": ["note://7"]});
    assert_eq!(granted, expected);
    let changes = server.changes();
    changes.resource("note://7");
    for listening in [&mut one, &mut two] {
        assert_eq!(next(listening).await, updated("note://7"));
    }
    changes.resource("note://8");
    assert_eq!(next(&mut two).await, updated("note://8"));
    changes.prompts();
    changes.tools();
    for listening in [&mut one, &mut two] {
        assert_eq!(next(listening).await, Event::ToolsChanged);
    }
    // Whoever observes the connection has seen each of them, too.
    let mut heard = Vec::new();
    while let Ok(line) = observed.try_recv() {
        heard.push(line);
    }
    for told in ["resources/updated note://7", "resources/updated note://8", "tools/list_changed "]
    {
        let told = format!("notifications/{told}");
        assert!(heard.contains(&told), "{told:?} is not in {heard:?}");
    }
    // Who is left hears on.
    drop(one);
    changes.resource("note://7");
    assert_eq!(next(&mut two).await, updated("note://7"));
    assert!(poll_once(&mut Box::pin(two.next())).await.is_none());
}

async fn the_end_of_the_client_ends_its_streams(wire: Wire, era: Era) {
    let server = noted();
    let client = connected(&server, wire, era).await;
    let mut listening = client.listen(Filter::new().resource("note://7")).await.unwrap();
    client.close().await;
    assert!(listening.next().await.expect("it was lost").unwrap_err().is_closed());
    assert!(listening.next().await.is_none());
}

async fn kill(rig: &Rig) {
    let process = rig.report().await.process.to_string();
    assert!(Command::new("kill").args(["-9", &process]).status().unwrap().success());
}

async fn a_stream_goes_on_with_the_next_process(wire: Wire, era: Era) {
    let rig = Rig::with(wire, era, Client::builder(), &[]).await;
    let mut listening = rig.client.listen(Filter::new().tools()).await.unwrap();
    kill(&rig).await;
    assert_eq!(next(&mut listening).await, Event::Missed);
    assert_eq!(listening.granted().tools_list_changed, Some(true));
    let (told, touched) = tokio::join!(next(&mut listening), rig.tool("touch", json!({})));
    touched.unwrap();
    assert_eq!(told, Event::ToolsChanged);
    // A second loss is more than the policy pays for.
    kill(&rig).await;
    assert!(listening.next().await.unwrap().unwrap_err().is_closed());
    assert!(listening.next().await.is_none());
}

async fn a_stream_that_may_not_come_back_ends_with_the_reason(wire: Wire, era: Era) {
    let builder = Client::builder().reconnect(Reconnect::never());
    let rig = Rig::with(wire, era, builder, &[]).await;
    let mut listening = rig.client.listen(Filter::new().tools()).await.unwrap();
    kill(&rig).await;
    let error = listening.next().await.unwrap().unwrap_err();
    assert!(error.is_closed() && error.to_string().contains("SIGKILL"), "{error}");
    assert!(listening.next().await.is_none());
}

fn notification(post: &Post, method: &str) -> serde_json::Value {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": post.body["id"]});
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
    json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params})
}

/// The POST that a stream is, once the script has taken it.
async fn acknowledged(web: &mut Web) -> Post {
    let post = web.post().await;
    assert_eq!(post.method(), "subscriptions/listen");
    post.stream().await;
    post.event(notification(&post, "subscriptions/acknowledged")).await;
    post
}

fn quick() -> Reconnect {
    Reconnect::new().attempts(2).first_pause(Duration::from_millis(1))
}

// req: subscriptions:listen:client:lost
#[tokio::test]
async fn a_post_that_breaks_is_made_again_within_the_budget() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().reconnect(quick()).connect(web.url()).await.unwrap();
        let (listening, post) =
            tokio::join!(client.listen(Filter::new().tools()), acknowledged(&mut web));
        let mut listening = listening.unwrap();
        post.event(notification(&post, "tools/list_changed")).await;
        post.end().await;
        assert_eq!(next(&mut listening).await, Event::ToolsChanged);
        let script = async {
            web.post().await.answer(503, "text/plain", "not now").await;
            acknowledged(&mut web).await
        };
        let (told, post) = tokio::join!(next(&mut listening), script);
        assert_eq!(told, Event::Missed);
        post.event(notification(&post, "tools/list_changed")).await;
        assert_eq!(next(&mut listening).await, Event::ToolsChanged);
        // Both attempts were spent, and it was not sound for long.
        post.end().await;
        assert!(listening.next().await.unwrap().unwrap_err().is_closed());
        assert!(listening.next().await.is_none());
        drop(listening);
        assert_eq!(web.ends_with(client).await, 3);
    })
    .await;
}

/// However many streams there are, what brings them back is paid from one budget.
// req: subscriptions:listen:client:lost
#[tokio::test]
async fn streams_that_break_together_have_one_budget() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().reconnect(quick()).connect(web.url()).await.unwrap();
        let mut streams = Vec::new();
        for _ in 0..2 {
            let (listening, post) =
                tokio::join!(client.listen(Filter::new().tools()), acknowledged(&mut web));
            streams.push((listening.unwrap(), post));
        }
        // One each is paid for.
        let mut again = Vec::new();
        for (mut listening, post) in streams {
            post.end().await;
            let (told, post) = tokio::join!(next(&mut listening), acknowledged(&mut web));
            assert_eq!(told, Event::Missed);
            again.push((listening, post));
        }
        for (mut listening, post) in again {
            post.end().await;
            assert!(listening.next().await.unwrap().unwrap_err().is_closed());
            assert!(listening.next().await.is_none());
        }
        assert_eq!(web.ends_with(client).await, 4);
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_refused_when_it_comes_back_says_so() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().reconnect(quick()).connect(web.url()).await.unwrap();
        let (listening, post) =
            tokio::join!(client.listen(Filter::new().tools()), acknowledged(&mut web));
        let mut listening = listening.unwrap();
        post.end().await;
        let script = async {
            web.post().await.error(400, -32602, json!(null)).await;
        };
        let (told, ()) = tokio::join!(listening.next(), script);
        assert_eq!(told.unwrap().unwrap_err().as_rpc().unwrap().code, -32602);
        assert!(listening.next().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn dropping_a_stream_that_is_coming_back_gives_it_up() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().reconnect(quick()).connect(web.url()).await.unwrap();
        let (listening, post) =
            tokio::join!(client.listen(Filter::new().tools()), acknowledged(&mut web));
        let mut listening = listening.unwrap();
        post.end().await;
        let again = tokio::select! {
            told = listening.next() => panic!("{told:?}"),
            post = web.post() => post,
        };
        drop(listening);
        again.closed().await;
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

/// A client in a session with a server that can tell of anything, and its first stream.
async fn telling(web: &mut Web) -> Client {
    let connecting = tokio::spawn(legacy().connect(web.url()));
    let initialize = web.post().await;
    let able = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    let mut result = crate::session::result("2025-11-25");
    result["capabilities"] = able;
    initialize.result_in(SESSION, result).await;
    web.post().await.accept().await;
    web.post().await.stream().await;
    connecting.await.unwrap().unwrap()
}

/// Listens; the script grants what is subscribed to.
async fn granted(web: &mut Web, client: &Client, watch: Filter, uris: usize) -> Listening {
    let script = async {
        for _ in 0..uris {
            let subscribe = web.post().await;
            assert_eq!(subscribe.method(), "resources/subscribe");
            subscribe.result(json!({})).await;
        }
    };
    let (listening, ()) = tokio::join!(client.listen(watch), script);
    listening.unwrap()
}

/// Has the session forgotten: the server's own stream, and what is subscribed to again.
async fn forgotten(web: &mut Web, client: &Client, uris: usize) -> (Post, Vec<Post>) {
    let call = launch(client.call_tool("t", ()));
    web.post().await.answer(404, "text/plain", "no such session").await;
    let (_, _, get) = shake(web, "session-2", Listens::Yes).await;
    let mut subscribing = Vec::new();
    // The call and the subscriptions are made again, in any order.
    for _ in 0..=uris {
        let post = web.post().await;
        assert_eq!(post.header("mcp-session-id"), Some("session-2"));
        match post.method() {
            "resources/subscribe" => subscribing.push(post),
            _ => post.result(said("ran")).await,
        }
    }
    call.await.unwrap().unwrap();
    (get, subscribing)
}

/// What a server knew of a session is gone with it.
#[tokio::test]
async fn a_new_session_is_subscribed_anew() {
    within(async {
        let mut web = Web::new().await;
        let client = telling(&mut web).await;
        let watch = Filter::new().tools().resource("note://7");
        let mut listening = granted(&mut web, &client, watch, 1).await;
        let (get, subscribing) = forgotten(&mut web, &client, 1).await;
        // Who reads again before the server has agreed could miss what comes between.
        settle().await;
        assert!(poll_once(&mut Box::pin(listening.next())).await.is_none());
        subscribing[0].result(json!({})).await;
        assert_eq!(next(&mut listening).await, Event::Missed);
        let method = "notifications/resources/updated";
        get.event(json!({"jsonrpc": "2.0", "method": method, "params": {"uri": "note://7"}})).await;
        assert_eq!(next(&mut listening).await, updated("note://7"));
    })
    .await;
}

#[tokio::test]
async fn what_a_new_session_refuses_is_not_granted_any_more() {
    within(async {
        let mut web = Web::new().await;
        let client = telling(&mut web).await;
        let watch = Filter::new().resource("note://7").resource("note://8");
        let mut both = granted(&mut web, &client, watch, 2).await;
        let mut seven =
            granted(&mut web, &client, Filter::new().tools().resource("note://7"), 0).await;
        let mut only = granted(&mut web, &client, Filter::new().resource("note://7"), 0).await;
        let (get, subscribing) = forgotten(&mut web, &client, 2).await;
        for post in &subscribing {
            match post.body["params"]["uri"].as_str() {
                Some("note://7") => post.error(200, -32002, json!(null)).await,
                _ => post.result(json!({})).await,
            }
        }
        let told = |listening: &Listening| serde_json::to_value(listening.granted()).unwrap();
        assert_eq!(next(&mut both).await, Event::Missed);
        assert_eq!(told(&both), json!({"resourceSubscriptions": ["note://8"]}));
        assert_eq!(next(&mut seven).await, Event::Missed);
        assert_eq!(seven.granted().tools_list_changed, Some(true));
        assert!(seven.granted().resource_subscriptions.iter().flatten().next().is_none());
        // Nothing is left of this one.
        assert_eq!(only.next().await.unwrap().unwrap_err().as_rpc().unwrap().code, -32002);
        assert!(only.next().await.is_none());
        let method = "notifications/resources/updated";
        get.event(json!({"jsonrpc": "2.0", "method": method, "params": {"uri": "note://8"}})).await;
        assert_eq!(next(&mut both).await, updated("note://8"));
    })
    .await;
}

/// What was kept while nobody listened may be stale: who asks again because of it is not given it.
#[tokio::test]
async fn a_stream_that_comes_back_has_kept_answers_forgotten() {
    within(async {
        let mut web = Web::new().await;
        let client = modern().reconnect(quick()).connect(web.url()).await.unwrap();
        let (listening, post) =
            tokio::join!(client.listen(Filter::new().tools()), acknowledged(&mut web));
        let mut listening = listening.unwrap();
        let kept = json!({
            "resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": "private",
        });
        let listing = launch(client.list_tools());
        web.post().await.result(kept.clone()).await;
        listing.await.unwrap().unwrap();
        client.list_tools().await.unwrap();
        assert!(!web.has_more(), "it is kept");
        post.end().await;
        let (told, _post) = tokio::join!(next(&mut listening), acknowledged(&mut web));
        assert_eq!(told, Event::Missed);
        let listing = launch(client.list_tools());
        let post = web.post().await;
        assert_eq!(post.method(), "tools/list");
        post.result(kept).await;
        listing.await.unwrap().unwrap();
    })
    .await;
}
