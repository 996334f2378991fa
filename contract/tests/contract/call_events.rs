//! What can get lost of what is said about a call, and who is told that it did. Its server is a script;
//! then both are real, over every wire.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle::{
    Client, Limits,
    client::{CallEvent, CallEvents},
    types::{CallToolResult, Era, LogLevel},
};

use crate::{
    raw::{Peer, client_with, in_both_eras, said},
    rig::{Rig, Wire, contract, eventually, within},
    session::{close, legacy, open},
    web::{self, Post, Web, progress},
};

/// More than may wait.
const MANY: u64 = 5_000;

in_both_eras! {
    // req: protocol:progress:monotonic
    who_keeps_up_loses_nothing,
    who_does_not_poll_is_told_that_something_was_missed,
}

contract! { unnamed unconnected on [memory stdio unix sse] in [legacy modern]:
    // req: tools:call:logging-mid-execution
    what_is_logged_for_no_request_in_particular_is_told_to_the_client,
}

/// Steps, the letter `?` for what was missed, the letter `!` for the end.
fn told(event: CallEvent<CallToolResult>) -> String {
    match event {
        CallEvent::Progress(progress) => progress.progress.to_string(),
        CallEvent::Missed => "?".into(),
        CallEvent::Done(result) => result.map(|_| "!".into()).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn all(mut events: CallEvents<CallToolResult>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(told(event));
    }
    all
}

fn step(request: &Value, done: u64) -> String {
    let token = &request["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": done});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string()
}

/// A call that has been sent, as the stream that it is.
async fn sent(client: &Client, peer: &mut Peer) -> (CallEvents<CallToolResult>, Value) {
    let mut events = client.call_tool("t", ()).no_timeouts().events();
    let request = tokio::select! {
        _ = events.next() => panic!("it has not been answered"),
        request = peer.read() => request,
    };
    (events, request)
}

/// All of it is there at once, on one thread: the reader must not run ahead of who reads it.
async fn who_keeps_up_loses_nothing(era: Era) {
    let (mut peer, client) = client_with(era, Client::builder(), 4 << 20).await;
    let (events, request) = sent(&client, &mut peer).await;
    let steps: Vec<String> = (1..=MANY).map(|done| step(&request, done)).collect();
    peer.say(steps.join("\n")).await;
    peer.answer(&request, said("done")).await;
    let told = all(events).await;
    let expected = (1..=MANY).map(|step| step.to_string()).chain(["!".into()]);
    assert!(told.iter().cloned().eq(expected), "{} of {MANY} and the end came", told.len());
}

async fn who_does_not_poll_is_told_that_something_was_missed(era: Era) {
    let limits = Limits::default().queued_notifications(3);
    let (mut peer, client) = client_with(era, Client::builder().limits(limits), 1 << 20).await;
    let (mut events, request) = sent(&client, &mut peer).await;
    for done in 1..=8 {
        peer.say(step(&request, done)).await;
    }
    // What came before this answer has been read once it is here.
    let other = web::launch(client.call_tool("other", ()));
    let second = peer.read().await;
    peer.answer(&second, said("read")).await;
    other.await.unwrap().unwrap();
    let first: Vec<String> =
        [events.next().await, events.next().await].map(|event| told(event.unwrap())).into();
    assert_eq!(first, ["?", "6"], "the oldest give way, and it is said before what follows");
    peer.answer(&request, said("done")).await;
    assert_eq!(all(events).await, ["7", "8", "!"], "it is said once");
}

/// Waits until the client has read what was said, which is seen by its observer.
async fn heard(steps: &Arc<Mutex<usize>>, expected: usize) {
    eventually(|| *steps.lock().unwrap() == expected).await;
}

/// On a session's own stream a server may tell of any call: there nobody holds it back.
#[tokio::test]
async fn what_comes_on_another_stream_gives_way_and_that_is_told() {
    within(async {
        let seen = Arc::<Mutex<usize>>::default();
        let ours = seen.clone();
        let builder = legacy()
            .limits(Limits::default().queued_notifications(3))
            .on_notification(move |_, _| *ours.lock().unwrap() += 1);
        let mut web = Web::new().await;
        let opened = open(&mut web, builder).await;
        let mut events = opened.client.call_tool("t", ()).no_timeouts().events();
        let post: Post = tokio::select! {
            _ = events.next() => panic!("it has not been answered"),
            post = web.post() => post,
        };
        for done in 1..=8 {
            opened.get.event(progress(&post, done)).await;
        }
        heard(&seen, 8).await;
        post.result(said("done")).await;
        assert_eq!(all(events).await, ["?", "6", "7", "8", "!"]);
        close(&mut web, opened.client).await;
    })
    .await;
}

/// Over HTTP what is said on the call's own stream waits there: its server is held up, nothing is lost.
#[tokio::test]
async fn what_comes_on_its_own_stream_waits_for_who_reads_it() {
    within(async {
        let limits = Limits::default().queued_notifications(3);
        let web = Web::new().await;
        let client = web::modern().limits(limits.clone()).connect(web.url()).await.unwrap();
        held_up(web, client).await;
        let mut web = Web::new().await;
        let client = open(&mut web, legacy().limits(limits)).await.client;
        held_up(web, client).await;
    })
    .await;
}

async fn held_up(mut web: Web, client: Client) {
    let mut events = client.call_tool("t", ()).no_timeouts().events();
    let post = tokio::select! {
        _ = events.next() => panic!("it has not been answered"),
        post = web.post() => post,
    };
    post.stream().await;
    for done in 1..=50 {
        post.event(progress(&post, done)).await;
    }
    post.last_event(said("done")).await;
    post.end().await;
    let expected: Vec<String> = (1..=50).map(|step| step.to_string()).chain(["!".into()]).collect();
    assert_eq!(all(events).await, expected);
}

/// On a wire that all calls share, a log message says nothing of the call that it was logged for.
async fn what_is_logged_for_no_request_in_particular_is_told_to_the_client(wire: Wire, era: Era) {
    let logged = Arc::<Mutex<Vec<Value>>>::default();
    let ours = logged.clone();
    let builder = Client::builder().on_notification(move |method, params| {
        if method == "notifications/message" {
            let params: Value = params.unwrap().decode().unwrap();
            ours.lock().unwrap().push(params["data"].clone());
        }
    });
    let rig = Rig::with(wire, era, builder, &[]).await;
    rig.client.set_log_level(LogLevel::Info).await.unwrap();
    let events = rig.tool("log", json!({"text": "a word"})).events();
    assert_eq!(all(events).await, ["!"]);
    eventually(|| !logged.lock().unwrap().is_empty()).await;
    assert_eq!(*logged.lock().unwrap(), ["a word"]);
}
