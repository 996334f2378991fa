//! Abandoning a request over legacy Streamable HTTP, as a server that records bytes sees it:
//! CANCELLATION D, and the legacy half of 24 to 28.

use std::{
    future::IntoFuture,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use turnbuckle::{Call, Client, types::CallToolResult};

use crate::{
    raw::said,
    rig::{BOUND, poll_once, within},
    session::{Listens, Opened, SESSION, cancel, close, legacy, open, open_as, shake},
    web::{LARGE, Post, Web, abandon, launch, progress, settle},
};

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Sending,
    Waiting,
    Json,
    Events,
}

/// How it is given up.
#[derive(Clone, Copy, Debug)]
enum Way {
    Drop,
    Timeout,
}

/// More than the sockets between the two hold.
const LONG: usize = 8 * LARGE;
const TIME: Duration = Duration::from_secs(8);

fn call(client: &Client, stage: Stage) -> Call<CallToolResult> {
    let text = if stage == Stage::Sending { "x".repeat(LONG) } else { String::new() };
    client.call_tool("abandoned", json!({"text": text})).request_id("the-id")
}

/// Brings the call to its stage. The sender is told of progress.
async fn reach(stage: Stage, post: &Post, heard: oneshot::Receiver<()>) {
    match stage {
        Stage::Sending | Stage::Waiting => {}
        Stage::Json => {
            post.say("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n").await;
            post.say("content-length: 1000\r\n\r\n{\"jsonrpc\":").await;
        }
        Stage::Events => {
            post.stream().await;
            post.event(progress(post, 1)).await;
            heard.await.unwrap();
        }
    }
    settle().await;
    assert!(!post.is_closed());
}

async fn abandoned(stage: Stage, way: Way) {
    let mut web = Web::new().await;
    let client = open(&mut web, legacy()).await.client;
    let other = launch(client.call_tool("other", ()));
    let other_post = web.post().await;

    let (tell, heard) = oneshot::channel();
    let mut tell = Some(tell);
    let abandoned =
        call(&client, stage).on_progress(move |_| tell.take().unwrap().send(()).unwrap());
    let abandoned = match way {
        Way::Drop => launch(abandoned),
        Way::Timeout => launch(abandoned.timeout(TIME)),
    };
    let post = web.post().await;
    reach(stage, &post, heard).await;
    // It leaves a connection behind that a call could use.
    let idle = launch(client.call_tool("idle", ()));
    let idle_post = web.post().await;
    idle_post.result(said("idle")).await;
    idle.await.unwrap().unwrap();
    settle().await;
    let reason = match way {
        Way::Drop => {
            abandon(abandoned).await;
            "caller cancelled"
        }
        Way::Timeout => {
            tokio::time::pause();
            tokio::time::advance(TIME).await;
            let error = abandoned.await.unwrap().unwrap_err();
            tokio::time::resume();
            assert!(error.is_timeout() && error.maybe_executed(), "{error}");
            "timed out after 8s"
        }
    };
    web.read_on();
    let (cancel, params) = cancel(&mut web).await;
    assert_eq!(params, json!({"requestId": "the-id", "reason": reason}));
    assert_eq!(cancel.header("mcp-session-id"), Some(SESSION));
    assert_eq!(cancel.header("mcp-protocol-version"), Some("2025-11-25"));
    let calls = [&post, &other_post, &idle_post].map(|post| post.connection);
    assert!(!calls.contains(&cancel.connection), "it took a connection of the calls");
    settle().await;
    assert!(!post.is_closed(), "the stream is not the signal");
    if stage == Stage::Sending {
        assert!(web.bytes(post.connection).len() > LONG, "it was not sent to its end");
    }
    cancel.accept().await;
    post.hang_up().await;
    post.closed().await;

    assert!(!other.is_finished() && !other_post.is_closed());
    other_post.result(said("undisturbed")).await;
    assert_eq!(other.await.unwrap().unwrap().to_text(), "undisturbed");
    let later = launch(client.call_tool("later", ()));
    web.post().await.result(said("later")).await;
    assert_eq!(later.await.unwrap().unwrap().to_text(), "later");
    close(&mut web, client).await;
    assert_eq!(web.requests(), 3 + 4 + 1 + 1);
}

macro_rules! at_each_stage {
    ($($name:ident: $stage:ident, $way:ident;)+) => {
        $(
            #[tokio::test]
            async fn $name() {
                within(abandoned(Stage::$stage, Way::$way)).await;
            }
        )+
    };
}

at_each_stage! {
    d29_dropped_while_it_is_being_sent: Sending, Drop;
    // req: client-transport:http:cancel-posts-frame
    d29_dropped_while_the_head_is_awaited: Waiting, Drop;
    d29_dropped_in_the_middle_of_json: Json, Drop;
    // req: client-transport:http:cancel-posts-frame
    d29_dropped_in_the_middle_of_a_stream: Events, Drop;
    d29_timed_out_while_it_is_being_sent: Sending, Timeout;
    d29_timed_out_while_the_head_is_awaited: Waiting, Timeout;
    d29_timed_out_in_the_middle_of_json: Json, Timeout;
    d29_timed_out_in_the_middle_of_a_stream: Events, Timeout;
}

#[tokio::test]
async fn d29_nothing_is_sent_for_a_call_that_was_not_begun() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        drop(client.call_tool("never", ()));
        drop(client.call_tool("never", ()).into_future());
        for _ in 0..20 {
            let mut call = client.call_tool("never", ()).into_future();
            assert!(poll_once(&mut call).await.is_none());
            drop(call);
        }
        let later = launch(client.call_tool("later", ()));
        let post = web.post().await;
        assert_eq!(post.body["params"]["name"], "later");
        post.result(said("later")).await;
        later.await.unwrap().unwrap();
        close(&mut web, client).await;
        assert_eq!(web.requests(), 5);
    })
    .await;
}

#[tokio::test]
async fn d30_the_body_is_closed_after_the_cancel_within_a_bound() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        settle().await;
        abandon(call).await;
        let (cancel, _) = cancel(&mut web).await;
        cancel.accept().await;
        // It ends neither the stream nor anything else: then the client does.
        let begun = Instant::now();
        post.closed().await;
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        close(&mut web, client).await;
    })
    .await;
}

/// A server that begins to answer as soon as it has a request knows nothing of it before.
#[tokio::test]
async fn d30a_a_cancel_does_not_overtake_what_it_cancels() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let streamed = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        post.event(json!({"jsonrpc": "2.0", "id": post.body["id"], "result": said("so")})).await;
        post.end().await;
        streamed.await.unwrap().unwrap();

        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        abandon(call).await;
        settle().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
        settle().await;
        assert!(!web.has_more(), "the server may not have the request yet");
        post.stream().await;
        let (cancel, _) = cancel(&mut web).await;
        cancel.accept().await;
        post.end().await;
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn d30_what_arrives_after_the_drop_is_still_acted_on() {
    within(async {
        let (asked, mut asking) = tokio::sync::mpsc::channel(1);
        let (dropped, mut gone) = tokio::sync::mpsc::channel::<()>(1);
        let builder = legacy().on_request(move |_| {
            let (asked, dropped) = (asked.clone(), dropped.clone());
            async move {
                asked.send(()).await.unwrap();
                let _held = dropped;
                std::future::pending().await
            }
        });
        let mut web = Web::new().await;
        let client = open(&mut web, builder).await.client;
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        post.event(json!({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})).await;
        asking.recv().await.unwrap();
        abandon(call).await;
        let (cancel, _) = cancel(&mut web).await;
        cancel.accept().await;
        let params = json!({"requestId": 9});
        let method = "notifications/cancelled";
        post.event(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
        post.end().await;
        // The callback was dropped: closing the client is all that is left.
        close(&mut web, client).await;
        assert!(gone.try_recv().is_err());
        assert_eq!(web.requests(), 3 + 2 + 1);
    })
    .await;
}

#[tokio::test]
async fn d29_an_answer_that_is_already_here_makes_the_cancel_needless() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let mut call = client.call_tool("t", ()).into_future();
        let post = loop {
            assert!(poll_once(&mut call).await.is_none());
            tokio::task::yield_now().await;
            if web.has_more() {
                break web.post().await;
            }
        };
        post.result(said("here")).await;
        settle().await;
        drop(call);
        close(&mut web, client).await;
        assert_eq!(web.requests(), 3 + 1 + 1);
    })
    .await;
}

#[tokio::test]
async fn d29_a_handshake_that_is_given_up_just_closes() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        let post = web.post().await;
        connecting.abort();
        assert!(connecting.await.unwrap_err().is_cancelled());
        post.closed().await;
        settle().await;
        assert_eq!(web.requests(), 1);
    })
    .await;
}

#[tokio::test]
async fn d25_c28_a_probe_closes_and_its_version_does_not_leak_onto_the_handshake() {
    within(async {
        let mut web = Web::new().await;
        let asking = || Client::builder().no_proxy().no_timeouts();
        let connecting = tokio::spawn(asking().connect(web.url()));
        let probe = web.post().await;
        assert_eq!(probe.method(), "server/discover");
        connecting.abort();
        probe.closed().await;
        settle().await;
        assert_eq!(web.requests(), 1);

        let connecting = tokio::spawn(asking().connect(web.url()));
        let probe = web.post().await;
        assert_eq!(probe.header("mcp-protocol-version"), Some("2026-07-28"));
        probe.error(400, -32000, Value::Null).await;
        let (initialize, initialized, _) = shake(&mut web, SESSION, Listens::Yes).await;
        for name in ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"] {
            assert_eq!(initialize.header(name), None, "{name}");
        }
        assert_eq!(initialized.header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!(initialized.header("mcp-method"), None);
        let client = connecting.await.unwrap().unwrap();
        // Of its own era too: this one is cancelled by a message.
        let call = launch(client.call_tool("t", ()));
        web.post().await;
        abandon(call).await;
        cancel(&mut web).await.0.accept().await;
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn c24_an_explicit_cancel_ends_the_call_it_names_and_is_posted() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()).request_id(1));
        let post = web.post().await;
        let params = json!({"requestId": 1, "reason": "enough"});
        client.notify("notifications/cancelled", params.clone()).await.unwrap();
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        let (posted, said) = cancel(&mut web).await;
        assert_eq!(said, params);
        assert!(!post.is_closed());
        posted.accept().await;
        // One that names none in flight is for the server to judge.
        for named in [json!("1"), json!(99), json!(true)] {
            let params = json!({"requestId": named});
            let notify = client.notify("notifications/cancelled", params.clone());
            let (notified, ()) = tokio::join!(notify, async {
                let (posted, said) = cancel(&mut web).await;
                assert_eq!(said, params);
                assert_eq!(posted.header("mcp-session-id"), Some(SESSION));
                posted.accept().await;
            });
            notified.unwrap();
        }
        close(&mut web, client).await;
        assert_eq!(web.requests(), 3 + 2 + 3 + 1);
    })
    .await;
}

#[tokio::test]
async fn d30a_an_id_is_seen_again_only_after_its_cancel() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let first = launch(client.call_tool("t", ()).request_id(7));
        web.post().await;
        abandon(first).await;
        let second = launch(client.call_tool("t", ()).request_id("7"));
        let (cancel, params) = cancel(&mut web).await;
        assert_eq!(params["requestId"], 7);
        settle().await;
        assert!(!web.has_more(), "the id came back before its cancel was accepted");
        cancel.accept().await;
        let post = web.post().await;
        assert_eq!(post.body["id"], "7");
        post.result(said("second")).await;
        assert_eq!(second.await.unwrap().unwrap().to_text(), "second");
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn d29_a_call_that_keeps_running_is_not_cancelled() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()).keep_running());
        let post = web.post().await;
        abandon(call).await;
        settle().await;
        assert!(!post.is_closed() && !web.has_more());
        post.result(said("ran on")).await;
        close(&mut web, client).await;
        assert_eq!(web.requests(), 3 + 1 + 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d30a_a_thousand_cancels_are_posted_together() {
    const MANY: usize = 1000;
    within(async {
        let mut web = Web::new().await;
        let Opened { client, .. } = open_as(&mut web, legacy(), Listens::No).await;
        let calls: Vec<_> = (0..MANY).map(|_| launch(client.call_tool("many", ()))).collect();
        let mut posts = Vec::new();
        for _ in 0..MANY {
            posts.push(web.post().await);
        }
        let begun = Instant::now();
        calls.iter().for_each(|call| call.abort());
        let mut named = std::collections::BTreeSet::new();
        for _ in 0..MANY {
            let (cancel, params) = cancel(&mut web).await;
            named.insert(params["requestId"].as_i64().unwrap());
            tokio::spawn(async move { cancel.accept().await });
        }
        // The bound is for any build on a busy machine, and says nothing of how fast it can be.
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_eq!(named.len(), MANY);
        close(&mut web, client).await;
        assert_eq!(web.requests(), 3 + 2 * MANY + 1);
    })
    .await;
}

#[tokio::test]
async fn d29_a_cancel_is_still_posted_when_the_client_goes_right_after() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()));
        web.post().await;
        abandon(call).await;
        drop(client);
        cancel(&mut web).await.0.accept().await;
        let delete = web.post().await;
        assert_eq!(delete.verb(), "DELETE");
        delete.answer(405, "text/plain", "").await;
    })
    .await;
}

#[test]
fn law10_a_legacy_call_can_be_dropped_after_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ours, theirs) = (runtime(), runtime());
    let mut web = theirs.block_on(Web::new());
    let url = web.url();
    // The script runs on a thread of its own, because both talk.
    let script = std::thread::spawn(move || {
        theirs.block_on(within(shake(&mut web, SESSION, Listens::Yes)));
        (theirs, web)
    });
    let client = ours.block_on(within(legacy().connect(url))).unwrap();
    let (theirs, mut web) = script.join().unwrap();
    let (call, client) = ours.block_on(async move {
        let mut call = client.call_tool("t", ()).into_future();
        for _ in 0..10 {
            assert!(poll_once(&mut call).await.is_none());
            settle().await;
        }
        (call, client)
    });
    let post = theirs.block_on(async { tokio::time::timeout(BOUND, web.post()).await.unwrap() });
    drop(ours);
    drop(call);
    drop(client);
    theirs.block_on(within(post.closed()));
    assert!(!web.has_more(), "something was sent without a runtime");
}
