//! What a client of the legacy era hears over HTTP: streams that break off and are taken up
//! again, questions of the server, and what comes on a stream of another.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use turnbuckle::{
    Client, Limits,
    client::{Reconnect, ServerRequest},
    types::Raw,
};

use crate::{
    raw::said,
    rig::{within, within_moved_time},
    session::{Listens, Opened, SESSION, cancel, close, legacy, open, open_as, result},
    web::{Post, Web, abandon, launch, progress, settle},
};

/// Begins a stream with an event that only marks where it is.
async fn primed(post: &Post, fields: &str) {
    post.stream().await;
    post.chunk(format!("{fields}\ndata:\n\n")).await;
}

fn answer_to(post: &Post, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": post.body["id"], "result": said(text)})
}

/// A call whose stream has been begun so.
async fn begun(
    web: &mut Web,
    client: &Client,
    fields: &str,
) -> (tokio::task::JoinHandle<turnbuckle::Result<turnbuckle::types::CallToolResult>>, Post) {
    let call = launch(client.call_tool("t", ()));
    let post = web.post().await;
    primed(&post, fields).await;
    settle().await;
    (call, post)
}

// req: client-transport:http:reconnect-retry-value
// req: client-transport:http:no-reconnect-after-response, transport:streamable-http:resumability
#[tokio::test]
async fn a_stream_is_taken_up_where_it_ended_and_no_earlier_than_asked() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let (call, post) = begun(&mut web, &client, "id: a-1\nretry: 300").await;
        post.chunk(format!("id: a-2\ndata: {}\n\n", progress(&post, 1))).await;
        let ended = Instant::now();
        post.end().await;
        let get = web.post().await;
        assert!(ended.elapsed() >= Duration::from_millis(300), "{:?}", ended.elapsed());
        assert_eq!(get.verb(), "GET");
        assert_eq!(get.header("last-event-id"), Some("a-2"));
        assert_eq!(get.header("mcp-session-id"), Some(SESSION));
        assert_eq!(get.header("accept"), Some("text/event-stream"));
        // And once more, from further on.
        primed(&get, "id: a-3").await;
        get.end().await;
        let get = web.post().await;
        assert_eq!(get.header("last-event-id"), Some("a-3"));
        get.stream().await;
        get.event(answer_to(&post, "in the end")).await;
        get.end().await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "in the end");
        settle().await;
        assert!(!web.has_more(), "an answered stream was taken up");
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn an_id_counts_without_data_and_not_without_its_end() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        post.chunk("id: whole\nretry: 1\n\nid: broken\ndata: {\"js").await;
        settle().await;
        post.end().await;
        let get = web.post().await;
        assert_eq!(get.header("last-event-id"), Some("whole"));
        get.stream().await;
        get.event(answer_to(&post, "ok")).await;
        call.await.unwrap().unwrap();
        close(&mut web, client).await;
    })
    .await;
}

// req: client-transport:http:reconnect-post-priming
#[tokio::test]
async fn a_polled_server_is_polled_for_as_long_as_it_takes() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let (call, post) = begun(&mut web, &client, "id: 0\nretry: 100").await;
        post.end().await;
        for turn in 1..20 {
            let get = web.post().await;
            primed(&get, &format!("id: {turn}\nretry: 100")).await;
            get.end().await;
        }
        let get = web.post().await;
        assert_eq!(get.header("last-event-id"), Some("19"));
        get.stream().await;
        get.event(answer_to(&post, "at last")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "at last");
        close(&mut web, client).await;
    })
    .await;
}

// req: client-transport:http:reconnect-post-priming
#[tokio::test]
async fn a_stream_without_an_id_is_lost_at_once() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        for clean in [true, false] {
            let call = launch(client.call_tool("t", ()));
            let post = web.post().await;
            post.stream().await;
            post.event(progress(&post, 1)).await;
            settle().await;
            let ended = Instant::now();
            if clean {
                post.end().await
            } else {
                post.hang_up().await
            }
            let error = call.await.unwrap().unwrap_err();
            assert!(error.is_closed() && error.maybe_executed(), "{error}");
            assert!(ended.elapsed() < Duration::from_millis(100), "{:?}", ended.elapsed());
        }
        settle().await;
        assert!(!web.has_more());
        close(&mut web, client).await;
    })
    .await;
}

// req: client-transport:http:reconnect-post-priming
#[tokio::test]
async fn a_connection_that_broke_is_made_again_at_once() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let (call, post) = begun(&mut web, &client, "id: 1").await;
        let broke = Instant::now();
        post.hang_up().await;
        let get = web.post().await;
        assert!(broke.elapsed() < Duration::from_millis(500), "{:?}", broke.elapsed());
        assert_eq!(get.header("last-event-id"), Some("1"));
        get.stream().await;
        get.event(answer_to(&post, "ok")).await;
        call.await.unwrap().unwrap();
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_was_killed_is_known_at_once() {
    within(async {
        let (mut web, listener) = Web::unserved();
        let hub = web.hub();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                hub.take(stream);
            }
        });
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let (call, post) = begun(&mut web, &client, "id: 1").await;
        listening.abort();
        let _ = listening.await;
        let killed = Instant::now();
        post.hang_up().await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        assert!(killed.elapsed() < Duration::from_millis(100), "{:?}", killed.elapsed());
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_the_server_has_forgotten_is_lost() {
    within(async {
        for status in [400, 404, 405] {
            let mut web = Web::new().await;
            let client = open_as(&mut web, legacy(), Listens::No).await.client;
            let (call, post) = begun(&mut web, &client, "id: 1\nretry: 1").await;
            post.end().await;
            web.post().await.answer(status, "text/plain", "").await;
            let error = call.await.unwrap().unwrap_err();
            assert!(error.is_closed() && error.maybe_executed(), "{error}");
            assert!(error.to_string().contains(&status.to_string()), "{error}");
            settle().await;
            assert!(!web.has_more(), "a call that may have run was sent again");
            close(&mut web, client).await;
        }
    })
    .await;
}

// req: client-transport:http:reconnection-scheduler
#[tokio::test]
async fn reconnects_have_a_budget() {
    within(async {
        let mut web = Web::new().await;
        let builder = legacy().reconnect(Reconnect::new().attempts(3));
        let client = open_as(&mut web, builder, Listens::No).await.client;
        // Each brings something new, but none waits: that is a loop.
        let (call, post) = begun(&mut web, &client, "id: 0\nretry: 0").await;
        post.end().await;
        for turn in 1..=3 {
            let get = web.post().await;
            primed(&get, &format!("id: {turn}\nretry: 0")).await;
            get.end().await;
        }
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        assert!(error.to_string().contains("too many reconnects"), "{error}");
        // It is the client's: the next call finds it spent.
        let (call, post) = begun(&mut web, &client, "id: x\nretry: 0").await;
        post.end().await;
        assert!(call.await.unwrap().unwrap_err().is_closed());
        settle().await;
        assert!(!web.has_more());
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn who_wants_no_reconnects_has_no_stream_taken_up() {
    within(async {
        let mut web = Web::new().await;
        let builder = legacy().reconnect(Reconnect::never());
        let Opened { client, get, .. } = open(&mut web, builder).await;
        get.chunk("id: g-1\nretry: 0\ndata:\n\n").await;
        let (call, post) = begun(&mut web, &client, "id: 0\nretry: 0").await;
        post.end().await;
        get.end().await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        settle().await;
        assert!(!web.has_more());
        close(&mut web, client).await;
    })
    .await;
}

// req: client-transport:http:reconnect-get
#[tokio::test]
async fn the_stream_of_the_server_is_taken_up_too_but_never_in_a_loop() {
    within_moved_time(async {
        let mut web = Web::new().await;
        // One is given back every fifteen seconds.
        let policy = Reconnect::new().attempts(8).healthy_after(Duration::from_secs(8 * 15));
        let Opened { client, get, .. } = open(&mut web, legacy().reconnect(policy)).await;
        get.chunk("id: g-1\nretry: 1\ndata:\n\n").await;
        settle().await;
        get.end().await;
        let mut turns = 0;
        loop {
            let again = web.post().await;
            assert_eq!(again.verb(), "GET");
            assert_eq!(again.header("last-event-id"), Some("g-1"));
            turns += 1;
            again.stream().await;
            again.end().await;
            if turns == 8 {
                break;
            }
        }
        // Calls go on without.
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        assert_eq!(post.verb(), "POST", "it spins: {}", post.head);
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();
        settle().await;
        assert!(!web.has_more());
        // But it is not given up either.
        for _ in 0..3 {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(16)).await;
            tokio::time::resume();
            let again = web.post().await;
            assert_eq!((again.verb(), again.header("last-event-id")), ("GET", Some("g-1")));
            again.answer(503, "text/plain", "").await;
            settle().await;
            assert!(!web.has_more());
        }
        close(&mut web, client).await;
    })
    .await;
}

// req: client-transport:http:no-reconnect-after-close
#[tokio::test]
async fn after_the_close_nothing_is_taken_up() {
    within_moved_time(async {
        let mut web = Web::new().await;
        let Opened { client, get, .. } = open(&mut web, legacy()).await;
        get.chunk("id: g-1\nretry: 1\ndata:\n\n").await;
        let (call, post) = begun(&mut web, &client, "id: p-1\nretry: 1").await;
        close(&mut web, client).await;
        assert!(call.await.unwrap().unwrap_err().is_closed());
        for stream in [&get, &post] {
            stream.hang_up().await;
            stream.closed().await;
        }
        settle().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(60)).await;
        tokio::time::resume();
        settle().await;
        assert!(!web.has_more(), "a closed client came back");
    })
    .await;
}

#[tokio::test]
async fn d29_dropped_between_two_connections() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let (call, post) = begun(&mut web, &client, "id: 1\nretry: 600000").await;
        post.end().await;
        settle().await;
        abandon(call).await;
        let (cancel, params) = cancel(&mut web).await;
        assert_eq!(params["requestId"], post.body["id"]);
        cancel.accept().await;
        close(&mut web, client).await;
    })
    .await;
}

/// Answers each question when it is let, with its own params.
fn answering()
-> (turnbuckle::ClientBuilder, mpsc::Receiver<(ServerRequest, tokio::sync::oneshot::Sender<()>)>) {
    let (asked, asking) = mpsc::channel(16);
    let builder = legacy().on_request(move |request: ServerRequest| {
        let asked = asked.clone();
        async move {
            let (let_go, held) = tokio::sync::oneshot::channel();
            let params = request.params.clone();
            asked.send((request, let_go)).await.unwrap();
            held.await.unwrap();
            Ok(params.unwrap_or_else(Raw::empty_object))
        }
    });
    (builder, asking)
}

fn question(id: impl Into<Value>, which: u64) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"which": which}})
}

// req: transport:streamable-http:server-to-client, ping:server-to-client
#[tokio::test]
async fn questions_are_answered_at_once_and_side_by_side_on_either_stream() {
    within(async {
        let (builder, mut asking) = answering();
        let mut web = Web::new().await;
        let Opened { client, get, .. } = open(&mut web, builder).await;
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        post.event(question("q", 1)).await;
        get.event(question(2, 2)).await;
        get.event(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        let pong = web.post().await;
        assert_eq!(pong.body, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        assert_eq!(pong.header("mcp-session-id"), Some(SESSION));
        assert_eq!(pong.header("mcp-protocol-version"), Some("2025-11-25"));
        pong.accept().await;
        let (first, second) = (asking.recv().await.unwrap(), asking.recv().await.unwrap());
        // The other way round than they came.
        for (asked, let_go) in [second, first] {
            let which = asked.params.unwrap().decode::<Value>().unwrap();
            let_go.send(()).unwrap();
            let answer = web.post().await;
            let id = if which["which"] == 1 { json!("q") } else { json!(2) };
            assert_eq!(answer.body, json!({"jsonrpc": "2.0", "id": id, "result": which}));
            answer.accept().await;
        }
        post.last_event(said("done")).await;
        post.end().await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "done");
        close(&mut web, client).await;
        assert_eq!(web.requests(), 3 + 1 + 3 + 1);
    })
    .await;
}

#[tokio::test]
async fn a_question_that_is_given_up_is_not_answered_and_none_is_asked_twice() {
    within(async {
        let (builder, mut asking) = answering();
        let mut web = Web::new().await;
        let Opened { client, get, .. } = open(&mut web, builder).await;
        get.event(question(7, 1)).await;
        let (_, mut let_go) = asking.recv().await.unwrap();
        get.event(question("7", 2)).await;
        let refused = web.post().await;
        assert_eq!(refused.body["id"], "7");
        assert_eq!(refused.body["error"]["code"], -32600);
        refused.accept().await;
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "7"}});
        get.event(cancelled.clone()).await;
        let_go.closed().await;
        // The id is free, and a cancel of nothing is nothing.
        get.event(cancelled).await;
        get.event(question(7, 3)).await;
        let (_, let_go) = asking.recv().await.unwrap();
        let_go.send(()).unwrap();
        let answer = web.post().await;
        assert_eq!(answer.body["result"], json!({"which": 3}));
        answer.accept().await;
        // The end of the connection ends what is being answered.
        get.event(question(8, 4)).await;
        let (_, mut let_go) = asking.recv().await.unwrap();
        close(&mut web, client).await;
        let_go.closed().await;
        assert_eq!(web.requests(), 3 + 2 + 1);
    })
    .await;
}

#[tokio::test]
async fn questions_beyond_the_limit_are_refused() {
    within(async {
        let (builder, mut asking) = answering();
        let mut web = Web::new().await;
        let Opened { client, get, .. } =
            open(&mut web, builder.limits(Limits::default().in_flight(1))).await;
        get.event(question(1, 1)).await;
        let (_, _held) = asking.recv().await.unwrap();
        get.event(question(2, 2)).await;
        let refused = web.post().await;
        assert_eq!(refused.body["id"], 2);
        assert!(refused.body["error"]["message"].as_str().unwrap().contains("in_flight"));
        refused.accept().await;
        close(&mut web, client).await;
    })
    .await;
}

// req: transport:streamable-http:unrelated-messages
#[tokio::test]
async fn what_comes_on_the_stream_of_the_server_reaches_whom_it_is_about() {
    within(async {
        let (seen, mut notes) = mpsc::channel(16);
        let builder =
            legacy().on_notification(move |method, _| seen.try_send(method.to_owned()).unwrap());
        let mut web = Web::new().await;
        let Opened { client, get, .. } = open(&mut web, builder).await;
        let (told, mut reports) = mpsc::channel(16);
        let call = launch(
            client
                .call_tool("t", ())
                .on_progress(move |report| told.try_send(report.progress).unwrap()),
        );
        let post = web.post().await;
        get.event(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
        assert_eq!(notes.recv().await.unwrap(), "notifications/tools/list_changed");
        get.event(progress(&post, 1)).await;
        assert!((reports.recv().await.unwrap() - 1.0).abs() < f64::EPSILON);
        // Some servers answer there.
        get.event(answer_to(&post, "elsewhere")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "elsewhere");
        get.event(answer_to(&post, "late")).await;
        crate::rig::eventually(|| client.counters().late_answers == 1).await;
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn batches_are_read_in_the_revision_that_has_them() {
    within(async {
        let mut web = Web::new().await;
        let builder = Client::builder().revision(turnbuckle::Revision::V2025_03_26).no_proxy();
        let connecting = tokio::spawn(builder.connect(web.url()));
        web.post().await.result(result("2025-03-26")).await;
        web.post().await.accept().await;
        web.post().await.answer(405, "text/plain", "").await;
        let client = connecting.await.unwrap().unwrap();
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.stream().await;
        post.event(json!([progress(&post, 1), answer_to(&post, "on a stream")])).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "on a stream");
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        let body = json!([progress(&post, 1), answer_to(&post, "as one body")]).to_string();
        post.answer(200, "application/json", body).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "as one body");
    })
    .await;
}
