//! To which session of the legacy era what is said belongs, and how another one is opened when
//! the server has forgotten the last.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use turnbuckle::{
    Client, ClientBuilder,
    cache::ResponseCache,
    types::{LogLevel, Raw},
};

use crate::{
    raw::said,
    rig::{eventually, within, within_moved_time},
    session::{Listens, Opened, SESSION, cancel, close, legacy, open, open_as, result, shake},
    web::{Post, Web, abandon, launch, settle},
};

async fn gone(post: &Post) {
    post.answer(404, "text/plain", "no such session").await;
}

/// Makes a call whose session is gone, and opens another.
async fn replace(web: &mut Web, client: &Client, session: &str) -> Post {
    let call = launch(client.call_tool("t", ()));
    gone(&web.post().await).await;
    let (_, _, get) = shake(web, session, Listens::Yes).await;
    let post = web.post().await;
    assert_eq!(post.header("mcp-session-id"), Some(session));
    post.result(said("ran")).await;
    call.await.unwrap().unwrap();
    get
}

/// Ends a session and its client.
async fn close_in(web: &mut Web, client: Client, session: &str) {
    let closing = tokio::spawn(client.close());
    let delete = web.post().await;
    assert_eq!((delete.verb(), delete.header("mcp-session-id")), ("DELETE", Some(session)));
    delete.answer(200, "text/plain", "").await;
    closing.await.unwrap();
}

/// Lets this much time pass.
async fn pass(time: Duration) {
    settle().await;
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
    settle().await;
}

/// Tells of each question, and answers it when it is let.
fn answering() -> (ClientBuilder, mpsc::Receiver<oneshot::Sender<()>>) {
    let (asked, asking) = mpsc::channel(16);
    let builder = legacy().on_request(move |_| {
        let asked = asked.clone();
        async move {
            let (let_go, held) = oneshot::channel();
            asked.send(let_go).await.unwrap();
            held.await.unwrap();
            Ok(Raw::empty_object())
        }
    });
    (builder, asking)
}

fn question(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"})
}

#[tokio::test]
async fn what_was_asked_in_a_session_goes_with_it() {
    within(async {
        let (builder, mut asking) = answering();
        let mut web = Web::new().await;
        let Opened { client, get, .. } = open(&mut web, builder).await;
        let running = launch(client.call_tool("running", ()));
        let running_post = web.post().await;
        running_post.stream().await;
        get.event(question(1)).await;
        let mut first = asking.recv().await.unwrap();
        let get = replace(&mut web, &client, "session-2").await;
        first.closed().await;
        // Its id means something else in the next one.
        get.event(question(1)).await;
        let second = asking.recv().await.unwrap();
        let method = "notifications/cancelled";
        let give_up = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}});
        running_post.event(give_up).await;
        running_post.event(question(2)).await;
        eventually(|| client.counters().dropped_requests == 1).await;
        second.send(()).unwrap();
        let answer = web.post().await;
        assert_eq!(answer.body["id"], 1);
        assert_eq!(answer.header("mcp-session-id"), Some("session-2"));
        answer.accept().await;
        // A call is cancelled where it was made.
        abandon(running).await;
        let (cancel, _) = cancel(&mut web).await;
        assert_eq!(cancel.header("mcp-session-id"), Some(SESSION));
        gone(&cancel).await;
        close_in(&mut web, client, "session-2").await;
    })
    .await;
}

/// What a client has set is not gone with the session that it was set in.
#[tokio::test]
async fn the_log_level_is_set_again_before_anyone_goes_on() {
    within(async {
        let mut web = Web::new().await;
        let Opened { client, .. } = open(&mut web, legacy().ignore_capabilities()).await;
        let setting = launch(client.set_log_level(LogLevel::Warning));
        let post = web.post().await;
        assert_eq!(post.method(), "logging/setLevel");
        post.result(json!({})).await;
        setting.await.unwrap().unwrap();
        // The second time it is refused, which costs nothing but itself.
        for session in ["session-2", "session-3"] {
            let call = launch(client.call_tool("t", ()));
            gone(&web.post().await).await;
            shake(&mut web, session, Listens::Yes).await;
            let again = web.post().await;
            assert_eq!(
                (again.method(), &again.body["params"]["level"]),
                ("logging/setLevel", &json!("warning"))
            );
            assert_eq!(again.header("mcp-session-id"), Some(session));
            settle().await;
            assert!(!web.has_more(), "the call waits for it");
            match session {
                "session-2" => again.result(json!({})).await,
                _ => again.error(200, -32601, json!(null)).await,
            }
            let post = web.post().await;
            assert_eq!(post.method(), "tools/call");
            post.result(said("ran")).await;
            call.await.unwrap().unwrap();
        }
        close_in(&mut web, client, "session-3").await;
    })
    .await;
}

/// The server that opened another session may be another server.
#[tokio::test]
async fn what_was_learnt_in_a_session_is_forgotten_with_it() {
    within(async {
        let mut web = Web::new().await;
        let minute = ResponseCache::new().default_ttl(Duration::from_secs(60));
        let builder = legacy().cache(minute).validate_output(turnbuckle::client::Validate::IfKnown);
        let Opened { client, .. } = open(&mut web, builder).await;
        let promised = json!({"type": "object", "required": ["sum"]});
        let tool =
            json!({"name": "sum", "inputSchema": {"type": "object"}, "outputSchema": promised});
        let listing = launch(client.list_tools());
        web.post().await.result(json!({"tools": [tool]})).await;
        listing.await.unwrap().unwrap();
        client.list_tools().await.unwrap();
        assert!(!web.has_more(), "it is kept");
        let call = launch(client.call_tool("sum", ()));
        web.post().await.result(said("no sum")).await;
        assert!(call.await.unwrap().is_err(), "it was promised");
        replace(&mut web, &client, "session-2").await;
        let call = launch(client.call_tool("sum", ()));
        web.post().await.result(said("no sum")).await;
        call.await.unwrap().unwrap();
        let listing = launch(client.list_tools());
        let post = web.post().await;
        assert_eq!(post.method(), "tools/list");
        post.result(json!({"tools": []})).await;
        assert!(listing.await.unwrap().unwrap().tools.is_empty());
        close_in(&mut web, client, "session-2").await;
    })
    .await;
}

#[tokio::test]
async fn what_is_asked_during_the_handshake_is_answered_in_the_session_it_opens() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        let initialize = web.post().await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        let rest = format!("mcp-session-id: {SESSION}\r\ntransfer-encoding: chunked\r\n\r\n");
        initialize.say(format!("{head}{rest}")).await;
        initialize.event(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        let pong = web.post().await;
        assert_eq!(pong.body, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        assert_eq!(pong.header("mcp-session-id"), Some(SESSION));
        pong.accept().await;
        initialize.last_event(result("2025-11-25")).await;
        initialize.end().await;
        web.post().await.accept().await;
        web.post().await.answer(405, "text/plain", "").await;
        close(&mut web, connecting.await.unwrap().unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn the_revision_that_was_agreed_on_is_offered_again() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(Client::builder().no_proxy().connect(web.url()));
        web.post().await.answer(404, "text/plain", "").await;
        web.post().await.result_in(SESSION, result("2025-06-18")).await;
        web.post().await.accept().await;
        web.post().await.answer(405, "text/plain", "").await;
        let client = connecting.await.unwrap().unwrap();
        // A session that is not taken is given back.
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        let initialize = web.post().await;
        assert_eq!(initialize.body["params"]["protocolVersion"], "2025-06-18");
        initialize.result_in("unwanted", result("2025-11-25")).await;
        let delete = web.post().await;
        assert_eq!((delete.verb(), delete.header("mcp-session-id")), ("DELETE", Some("unwanted")));
        delete.answer(200, "text/plain", "").await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("2025-11-25"), "{error}");
        // And the next call tries again.
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        shake(&mut web, "session-2", Listens::No).await;
        let post = web.post().await;
        assert_eq!(post.header("mcp-protocol-version"), Some("2025-06-18"));
        post.result(said("ran")).await;
        call.await.unwrap().unwrap();
        close_in(&mut web, client, "session-2").await;
    })
    .await;
}

#[tokio::test]
async fn a_new_session_is_not_lost_with_the_call_that_needed_it() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        let initialize = web.post().await;
        abandon(call).await;
        // Another one joins what is under way.
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        settle().await;
        assert!(!initialize.is_closed() && !web.has_more());
        initialize.result_in("session-2", result("2025-11-25")).await;
        web.post().await.accept().await;
        web.post().await.answer(405, "text/plain", "").await;
        let post = web.post().await;
        assert_eq!(post.header("mcp-session-id"), Some("session-2"));
        post.result(said("ran")).await;
        call.await.unwrap().unwrap();
        close_in(&mut web, client, "session-2").await;
    })
    .await;
}

#[tokio::test]
async fn a_close_ends_a_session_that_is_just_being_opened() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        let initialize = web.post().await;
        initialize.result_in("session-2", result("2025-11-25")).await;
        let initialized = web.post().await;
        assert_eq!(initialized.method(), "notifications/initialized");
        let closing = tokio::spawn(client.close());
        let mut ended = Vec::new();
        for _ in 0..2 {
            let delete = web.post().await;
            assert_eq!(delete.verb(), "DELETE");
            ended.push(delete.header("mcp-session-id").unwrap().to_owned());
            delete.answer(200, "text/plain", "").await;
        }
        ended.sort_unstable();
        assert_eq!(ended, [SESSION, "session-2"]);
        closing.await.unwrap();
        assert!(call.await.unwrap().unwrap_err().is_closed());
        settle().await;
        assert!(!web.has_more());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_not_asked_all_the_time() {
    within_moved_time(async {
        let mut web = Web::new().await;
        let Opened { client, mut get, .. } = open(&mut web, legacy()).await;
        // Taking up the stream costs one, another session one more.
        for turn in 0..4 {
            get.chunk("retry: 1\n\n").await;
            get.end().await;
            let again = web.post().await;
            assert_eq!(again.verb(), "GET", "{turn}");
            gone(&again).await;
            get = shake(&mut web, SESSION, Listens::Yes).await.2;
        }
        get.chunk("retry: 1\n\n").await;
        get.end().await;
        pass(Duration::from_secs(5)).await;
        assert!(!web.has_more());
        pass(Duration::from_secs(11)).await;
        gone(&web.post().await).await;
        pass(Duration::from_secs(5)).await;
        assert!(!web.has_more());
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_can_t_be_opened_yet_is_tried_again() {
    within_moved_time(async {
        for status in [503, 429, 500] {
            let mut web = Web::new().await;
            let connecting = tokio::spawn(legacy().connect(web.url()));
            web.post().await.result_in(SESSION, result("2025-11-25")).await;
            web.post().await.accept().await;
            web.post().await.answer(status, "text/plain", "").await;
            // Nobody waits for that.
            let client = connecting.await.unwrap().unwrap();
            assert!(!web.has_more());
            pass(Duration::from_secs(3)).await;
            web.post().await.hang_up().await;
            pass(Duration::from_secs(5)).await;
            let get = web.post().await;
            assert_eq!((get.verb(), get.header("last-event-id")), ("GET", None));
            get.stream().await;
            get.event(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
            let pong = web.post().await;
            assert_eq!(pong.body["id"], 1);
            pong.accept().await;
            close(&mut web, client).await;
        }
    })
    .await;
}
