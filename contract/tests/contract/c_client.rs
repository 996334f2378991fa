//! Abandoning a request over modern Streamable HTTP, as a server that records bytes sees it:
//! CANCELLATION C, line 21. Line 22 is the server's.

use std::{future::IntoFuture, time::Duration};

use serde_json::json;
use tokio::sync::oneshot;
use turnbuckle::{
    Call, Client, ErrorKind, Limits,
    subscribe::{Event, Filter},
    types::CallToolResult,
};

use crate::{
    raw::said,
    rig::{BOUND, poll_once, within},
    web::{LARGE, Post, Web, abandon, client, launch, modern, progress, settle},
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
/// Shorter than the bound of a test, longer than anything here takes.
const TIME: Duration = Duration::from_secs(8);

fn call(client: &Client, stage: Stage) -> Call<CallToolResult> {
    let text = if stage == Stage::Sending { "x".repeat(LONG) } else { String::new() };
    client.call_tool("abandoned", json!({"text": text}))
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
    let client = client(&web).await;
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
    match way {
        Way::Drop => abandon(abandoned).await,
        Way::Timeout => {
            tokio::time::pause();
            tokio::time::advance(TIME).await;
            let error = abandoned.await.unwrap().unwrap_err();
            tokio::time::resume();
            assert!(error.is_timeout() && error.maybe_executed(), "{error}");
        }
    }
    web.read_on();
    post.closed().await;
    if stage == Stage::Sending {
        let came = web.bytes(post.connection).len();
        assert!(came < LONG, "it was sent to its end: {came} bytes");
    }

    assert!(!other.is_finished() && !other_post.is_closed());
    other_post.result(said("undisturbed")).await;
    assert_eq!(other.await.unwrap().unwrap().to_text(), "undisturbed");
    let later = launch(client.call_tool("later", ()));
    web.post().await.result(said("later")).await;
    assert_eq!(later.await.unwrap().unwrap().to_text(), "later");
    assert_eq!(web.ends_with(client).await, 3);
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
    c21_dropped_while_it_is_being_sent: Sending, Drop;
    // req: client-transport:http:cancel-closes-stream
    c21_dropped_while_the_head_is_awaited: Waiting, Drop;
    c21_dropped_in_the_middle_of_json: Json, Drop;
    // req: client-transport:http:cancel-closes-stream
    c21_dropped_in_the_middle_of_a_stream: Events, Drop;
    c21_timed_out_while_it_is_being_sent: Sending, Timeout;
    c21_timed_out_while_the_head_is_awaited: Waiting, Timeout;
    c21_timed_out_in_the_middle_of_json: Json, Timeout;
    c21_timed_out_in_the_middle_of_a_stream: Events, Timeout;
}

#[tokio::test]
async fn c21_a_call_that_was_never_polled_is_never_sent() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        drop(client.call_tool("never", ()));
        drop(client.call_tool("never", ()).into_future());
        let later = launch(client.call_tool("later", ()));
        let post = web.post().await;
        assert_eq!(post.body["params"]["name"], "later");
        post.result(said("later")).await;
        later.await.unwrap().unwrap();
        assert_eq!(web.ends_with(client).await, 1);
    })
    .await;
}

#[tokio::test]
async fn c21_a_call_dropped_while_its_connection_is_being_made_is_never_sent() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
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
        assert_eq!(web.ends_with(client).await, 1);
    })
    .await;
}

#[tokio::test]
async fn c21_a_call_dropped_on_an_idle_connection_before_it_is_written_is_never_sent() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let first = launch(client.call_tool("first", ()));
        web.post().await.result(said("first")).await;
        first.await.unwrap().unwrap();
        settle().await;
        // The task of the connection has not run since.
        let mut call = client.call_tool("never", ()).into_future();
        assert!(poll_once(&mut call).await.is_none());
        drop(call);
        let later = launch(client.call_tool("later", ()));
        let post = web.post().await;
        assert_eq!(post.body["params"]["name"], "later");
        post.result(said("later")).await;
        later.await.unwrap().unwrap();
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn c21_a_hundred_calls_dropped_at_once_are_a_hundred_closes() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let calls: Vec<_> = (0..100).map(|_| launch(client.call_tool("many", ()))).collect();
        let mut posts = Vec::new();
        for _ in 0..100 {
            posts.push(web.post().await);
        }
        for call in calls {
            abandon(call).await;
        }
        for post in posts {
            post.closed().await;
        }
        assert_eq!(web.ends_with(client).await, 100);
    })
    .await;
}

#[tokio::test]
async fn c21_closing_the_client_closes_every_post_and_tells_every_caller() {
    within(async {
        let mut web = Web::new().await;
        let client = client(&web).await;
        let (waiting, reading) =
            (launch(client.call_tool("a", ())), launch(client.call_tool("b", ())));
        let (one, two) = (web.post().await, web.post().await);
        two.stream().await;
        settle().await;
        client.clone().close().await;
        for call in [waiting, reading] {
            let error = call.await.unwrap().unwrap_err();
            assert!(error.is_closed() && error.maybe_executed(), "{error}");
        }
        one.closed().await;
        two.closed().await;
        let late = client.call_tool("late", ()).await.unwrap_err();
        assert!(late.is_closed() && !late.maybe_executed(), "{late}");
        client.notify("notifications/late", ()).await.unwrap();
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn c21b_an_abandoned_probe_closes_its_connection() {
    within(async {
        let mut web = Web::new().await;
        let connecting = Client::builder().no_proxy().connect(web.url());
        let connecting = tokio::spawn(connecting);
        let post = web.post().await;
        assert_eq!(post.method(), "server/discover");
        connecting.abort();
        assert!(connecting.await.unwrap_err().is_cancelled());
        post.closed().await;
        // The same for one that is a call.
        let client = client(&web).await;
        let discover = launch(client.discover());
        let post = web.post().await;
        assert_eq!(post.method(), "server/discover");
        abandon(discover).await;
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[tokio::test]
async fn c21b_a_call_that_is_kept_running_is_read_to_its_end() {
    within(async {
        let mut web = Web::new().await;
        let (told, mut tell) = tokio::sync::mpsc::channel(8);
        let client = modern()
            .on_notification(move |method, _| told.try_send(method.to_owned()).unwrap())
            .connect(web.url())
            .await
            .unwrap();
        let call = launch(client.call_tool("long", ()).request_id(5).keep_running());
        let post = web.post().await;
        post.stream().await;
        settle().await;
        abandon(call).await;
        settle().await;
        assert!(!post.is_closed());
        // Someone still reads, and the id is taken until the end.
        post.event(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
            .await;
        assert_eq!(tell.recv().await.unwrap(), "notifications/message");
        let taken = client.call_tool("t", ()).request_id(5).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Refused);
        post.last_event(said("done")).await;
        post.end().await;
        settle().await;
        let later = launch(client.call_tool("later", ()).request_id(5));
        let again = web.post().await;
        assert_eq!(again.connection, post.connection, "the connection was not used again");
        again.result(said("later")).await;
        later.await.unwrap().unwrap();
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

/// Opens a listen stream; the POST that it is.
async fn listening(web: &mut Web, client: &Client) -> (turnbuckle::subscribe::Listening, Post) {
    let client = client.clone();
    let listen = tokio::spawn(async move { client.listen(Filter::new().tools()).await });
    let post = web.post().await;
    assert_eq!(post.method(), "subscriptions/listen");
    post.stream().await;
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": subscription(&post)});
    let acknowledged = "notifications/subscriptions/acknowledged";
    post.event(json!({"jsonrpc": "2.0", "method": acknowledged, "params": params})).await;
    (listen.await.unwrap().unwrap(), post)
}

fn subscription(post: &Post) -> serde_json::Value {
    json!({"io.modelcontextprotocol/subscriptionId": post.body["id"]})
}

#[tokio::test]
async fn c21_dropping_a_listen_stream_closes_its_post() {
    within(async {
        let mut web = Web::new().await;
        let limits = Limits::default().stream_bytes(4000);
        let client = modern().limits(limits).connect(web.url()).await.unwrap();
        let (mut listening, post) = listening(&mut web, &client).await;
        // It may bring more than one answer may.
        for _ in 0..100 {
            let params = json!({"_meta": subscription(&post)});
            let method = "notifications/tools/list_changed";
            post.event(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
            assert_eq!(listening.next().await.unwrap().unwrap(), Event::ToolsChanged);
        }
        assert!(!post.is_closed());
        drop(listening);
        post.closed().await;
        assert_eq!(web.ends_with(client).await, 1);
    })
    .await;
}

#[tokio::test]
async fn e35_the_result_ends_a_listen_stream_and_its_loss_is_an_error() {
    within(async {
        let mut web = Web::new().await;
        let never = turnbuckle::client::Reconnect::never();
        let client = modern().reconnect(never).connect(web.url()).await.unwrap();
        let (mut ended, post) = listening(&mut web, &client).await;
        let result = json!({"resultType": "complete", "_meta": subscription(&post)});
        post.last_event(result).await;
        post.end().await;
        assert!(ended.next().await.is_none());
        let (mut lost, post) = listening(&mut web, &client).await;
        post.end().await;
        assert!(lost.next().await.unwrap().unwrap_err().is_closed());
        assert!(lost.next().await.is_none());
        drop((ended, lost));
        assert_eq!(web.ends_with(client).await, 2);
    })
    .await;
}

#[test]
fn law10_a_call_can_be_dropped_after_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ours, theirs) = (runtime(), runtime());
    let mut web = theirs.block_on(Web::new());
    let (call, client) = ours.block_on(async {
        let client = client(&web).await;
        let mut call = client.call_tool("t", ()).into_future();
        // A connection is made and the request is written in a few steps.
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
}
