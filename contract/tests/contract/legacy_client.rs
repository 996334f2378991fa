//! The course of a legacy session over HTTP, as its server sees it: what opens it, what is said in
//! it, what ends it, and what becomes of it when the server has forgotten it.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle::{Client, ErrorKind, Revision};

use crate::{
    raw::said,
    rig::within,
    session::{Listens, Opened, SESSION, cancel, close, legacy, open, open_as, result, shake},
    web::{Post, Web, abandon, launch, settle},
};

/// What a request of this era may say in its headers.
fn plain(post: &Post) {
    for (name, _) in post.headers() {
        let ours = !name.starts_with("mcp-");
        assert!(ours || matches!(&*name, "mcp-session-id" | "mcp-protocol-version"), "{name}");
    }
}

fn in_session(post: &Post, session: &str) {
    plain(post);
    assert_eq!(post.header("mcp-session-id"), Some(session), "{}", post.head);
    assert_eq!(post.header("mcp-protocol-version"), Some("2025-11-25"), "{}", post.head);
    assert_eq!(post.header("x-own"), Some("1"), "{}", post.head);
}

// req: client-transport:http:accept-header-post, client-transport:http:accept-header-get
// req: client-transport:http:protocol-version-header, client-transport:http:session-stored
// req: client-transport:http:custom-headers
#[tokio::test]
async fn everything_after_the_handshake_names_the_session_and_the_version() {
    within(async {
        let mut web = Web::new().await;
        let Opened { client, initialize, initialized, get } =
            open(&mut web, legacy().header("x-own", "1")).await;
        plain(&initialize);
        for absent in ["mcp-session-id", "mcp-protocol-version"] {
            assert_eq!(initialize.header(absent), None);
        }
        assert_eq!(initialize.header("x-own"), Some("1"));
        let accept = "application/json, text/event-stream";
        assert_eq!(initialize.header("accept"), Some(accept));
        assert!(initialize.body["params"].get("_meta").is_none(), "{}", initialize.body);
        assert_eq!(get.header("accept"), Some("text/event-stream"));
        assert_eq!(get.header("content-type"), None);
        assert_eq!(get.header("last-event-id"), None);
        in_session(&initialized, SESSION);
        in_session(&get, SESSION);

        let call = launch(client.call_tool("t", json!({"a": 1})).header("x-call", "2"));
        let post = web.post().await;
        in_session(&post, SESSION);
        assert_eq!(post.header("x-call"), Some("2"));
        assert_eq!(post.header("accept"), Some(accept));
        assert!(
            post.body["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_none()
        );
        post.result(said("ok")).await;
        call.await.unwrap().unwrap();

        let (told, ()) = tokio::join!(client.notify("notifications/other", json!({})), async {
            let post = web.post().await;
            in_session(&post, SESSION);
            post.accept().await;
        });
        told.unwrap();
        let call = launch(client.call_tool("t", ()));
        web.post().await;
        abandon(call).await;
        let (cancel, _) = cancel(&mut web).await;
        in_session(&cancel, SESSION);
        cancel.accept().await;
        let closing = tokio::spawn(client.close());
        let delete = web.post().await;
        assert_eq!(delete.verb(), "DELETE");
        in_session(&delete, SESSION);
        delete.answer(200, "text/plain", "").await;
        closing.await.unwrap();
        get.closed().await;
    })
    .await;
}

// req: client-transport:http:protocol-version-stored, lifecycle:version:downgrade
#[tokio::test]
async fn the_revision_that_the_server_chose_is_named() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(Client::builder().no_proxy().connect(web.url()));
        web.post().await.answer(404, "text/plain", "").await;
        let initialize = web.post().await;
        assert_eq!(initialize.body["params"]["protocolVersion"], "2025-11-25");
        initialize.result_in(SESSION, result("2025-03-26")).await;
        let initialized = web.post().await;
        assert_eq!(initialized.header("mcp-protocol-version"), Some("2025-03-26"));
        initialized.accept().await;
        let get = web.post().await;
        assert_eq!(get.header("mcp-protocol-version"), Some("2025-03-26"));
        get.answer(405, "text/plain", "").await;
        let client = connecting.await.unwrap().unwrap();
        assert_eq!(client.revision(), Revision::V2025_03_26);
        assert_eq!(client.server_info().unwrap().name, "script");
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn the_handshake_may_be_answered_by_a_stream() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        let initialize = web.post().await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        let rest = format!("mcp-session-id: {SESSION}\r\ntransfer-encoding: chunked\r\n\r\n");
        initialize.say(format!("{head}{rest}")).await;
        initialize.chunk("id: 1\ndata:\n\n").await;
        initialize.last_event(result("2025-11-25")).await;
        initialize.end().await;
        let initialized = web.post().await;
        assert_eq!(initialized.header("mcp-session-id"), Some(SESSION));
        initialized.accept().await;
        web.post().await.answer(404, "text/plain", "").await;
        let client = connecting.await.unwrap().unwrap();
        close(&mut web, client).await;
    })
    .await;
}

// req: lifecycle:pre-initialization-ordering
#[tokio::test]
async fn the_stream_of_the_server_is_open_before_the_first_call() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        web.post().await.result_in(SESSION, result("2025-11-25")).await;
        let initialized = web.post().await;
        settle().await;
        assert!(!web.has_more(), "the stream was asked for before the handshake was over");
        initialized.accept().await;
        let get = web.post().await;
        settle().await;
        assert!(!connecting.is_finished());
        get.stream().await;
        let client = connecting.await.unwrap().unwrap();
        assert!(!get.is_closed());
        close(&mut web, client).await;
    })
    .await;
}

// req: client-transport:http:sse-405-tolerated
#[tokio::test]
async fn a_server_without_a_stream_is_no_worse() {
    within(async {
        for status in [405, 404, 400, 406, 501] {
            let mut web = Web::new().await;
            let connecting = tokio::spawn(legacy().connect(web.url()));
            web.post().await.result_in(SESSION, result("2025-11-25")).await;
            web.post().await.accept().await;
            web.post().await.answer(status, "text/plain", "").await;
            let client = connecting.await.unwrap().unwrap();
            close(&mut web, client).await;
            assert_eq!(web.requests(), 4, "{status}");
        }
        // Nor one whose stream does not open in time.
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        web.post().await.result_in(SESSION, result("2025-11-25")).await;
        web.post().await.accept().await;
        let get = web.post().await;
        settle().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(3)).await;
        let client = connecting.await.unwrap().unwrap();
        tokio::time::resume();
        assert!(!get.is_closed());
        close(&mut web, client).await;
    })
    .await;
}

// req: client-transport:http:404-surfaces
#[tokio::test]
async fn a_server_may_do_without_a_session() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        web.post().await.result(result("2025-11-25")).await;
        let initialized = web.post().await;
        initialized.accept().await;
        web.post().await.answer(405, "text/plain", "").await;
        let client = connecting.await.unwrap().unwrap();
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        for post in [&initialized, &post] {
            assert_eq!(post.header("mcp-session-id"), None);
            assert_eq!(post.header("mcp-protocol-version"), Some("2025-11-25"));
        }
        // A status is then just a status.
        post.answer(404, "text/plain", "").await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(404)));
        client.close().await;
        assert_eq!(web.requests(), 4, "there is nothing to end");
    })
    .await;
}

#[tokio::test]
async fn a_session_that_no_header_can_carry_is_refused() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        web.post().await.result_in("a b", result("2025-11-25")).await;
        let error = connecting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
        assert_eq!(web.requests(), 1);
    })
    .await;
}

// req: client-transport:http:terminate-405-ok
#[tokio::test]
async fn the_end_of_a_session_is_told_and_nobody_waits_for_long() {
    within(async {
        for status in [200, 204, 404, 405] {
            let mut web = Web::new().await;
            let client = open(&mut web, legacy()).await.client;
            let closing = tokio::spawn(client.close());
            web.post().await.answer(status, "text/plain", "").await;
            closing.await.unwrap();
        }
        let mut web = Web::new().await;
        let Opened { client, get, .. } = open(&mut web, legacy()).await;
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        let closing = tokio::spawn(client.close());
        let delete = web.post().await;
        assert_eq!(delete.verb(), "DELETE");
        assert!(call.await.unwrap().unwrap_err().is_closed());
        post.closed().await;
        get.closed().await;
        assert!(!closing.is_finished());
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(2)).await;
        closing.await.unwrap();
        tokio::time::resume();
        // The last one who drops it says goodbye as well.
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        drop(client);
        assert_eq!(web.post().await.verb(), "DELETE");
    })
    .await;
}

async fn gone(post: &Post) {
    post.answer(404, "text/plain", "no such session").await;
}

// req: client-transport:http:session-404-reinitialize, flow:session:terminate-then-reconnect
#[tokio::test]
async fn a_session_that_is_gone_is_opened_anew_once_for_all() {
    within(async {
        let mut web = Web::new().await;
        let Opened { client, initialize, get, .. } = open(&mut web, legacy()).await;
        let running = launch(client.call_tool("running", ()));
        let running_post = web.post().await;
        let calls: Vec<_> = (0..3).map(|_| launch(client.call_tool("t", ()))).collect();
        let posts = [web.post().await, web.post().await, web.post().await];
        for post in &posts {
            gone(post).await;
        }
        let (again, initialized, second) = shake(&mut web, "session-2", Listens::Yes).await;
        assert_eq!(again.body["params"], initialize.body["params"]);
        for absent in ["mcp-session-id", "mcp-protocol-version"] {
            assert_eq!(again.header(absent), None);
        }
        for post in [&initialized, &second] {
            assert_eq!(post.header("mcp-session-id"), Some("session-2"));
            assert_eq!(post.header("mcp-protocol-version"), Some("2025-11-25"));
        }
        get.closed().await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let post = web.post().await;
            assert_eq!(post.header("mcp-session-id"), Some("session-2"));
            ids.push(post.body["id"].clone());
            post.result(said("ran")).await;
        }
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().to_text(), "ran");
        }
        assert!(posts.iter().all(|post| ids.contains(&post.body["id"])));
        // What was in flight is not sent twice.
        assert!(!running.is_finished());
        running_post.result(said("in the old session")).await;
        running.await.unwrap().unwrap();
        let delete = tokio::spawn(client.close());
        let post = web.post().await;
        assert_eq!((post.verb(), post.header("mcp-session-id")), ("DELETE", Some("session-2")));
        gone(&post).await;
        delete.await.unwrap();
    })
    .await;
}

// req: client-transport:http:404-surfaces
#[tokio::test]
async fn a_call_is_sent_again_once_and_then_it_did_not_run() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        shake(&mut web, SESSION, Listens::No).await;
        gone(&web.post().await).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.status(), Some(404), "{error}");
        assert!(!error.maybe_executed(), "{error}");
        // A new session that can't be opened is told with both reasons.
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        web.post().await.answer(503, "text/plain", "starting").await;
        let error = call.await.unwrap().unwrap_err();
        assert!(!error.maybe_executed(), "{error}");
        let text = error.to_string();
        assert!(text.contains("no such session") && text.contains("503"), "{text}");
        // Nor is one in another revision.
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        web.post().await.result_in("unwanted", result("2025-06-18")).await;
        let delete = web.post().await;
        assert_eq!((delete.verb(), delete.header("mcp-session-id")), ("DELETE", Some("unwanted")));
        delete.answer(200, "text/plain", "").await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("2025-06-18"), "{error}");
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn a_call_dropped_while_its_session_is_opened_anew_is_not_cancelled() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()));
        gone(&web.post().await).await;
        let initialize = web.post().await;
        assert_eq!(initialize.method(), "initialize");
        abandon(call).await;
        settle().await;
        assert!(!web.has_more());
        close(&mut web, client).await;
        initialize.closed().await;
    })
    .await;
}

#[tokio::test]
async fn a_redirect_is_followed_here_too() {
    within(async {
        let mut web = Web::new().await;
        let client = open(&mut web, legacy()).await.client;
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        post.say("HTTP/1.1 308 Over There\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n").await;
        let post = web.post().await;
        assert!(post.head.starts_with("POST /there "), "{}", post.head);
        assert_eq!(post.header("mcp-session-id"), Some(SESSION));
        post.result(said("there")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "there");
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_known_to_be_legacy_is_not_asked() {
    within(async {
        let mut web = Web::new().await;
        let proxy = format!("http://{}", web.address());
        let through = || Client::builder().proxy(proxy.clone());
        let url = "http://known-legacy.test/mcp";
        let connecting = tokio::spawn(through().connect(url));
        web.post().await.answer(400, "text/plain", "").await;
        shake(&mut web, SESSION, Listens::No).await;
        let first = connecting.await.unwrap().unwrap();
        let prior = first.discovery();
        // Remembered, or handed over.
        for builder in [through(), through().forget_discovery().discovery(prior.clone())] {
            let connecting = tokio::spawn(builder.connect(url));
            shake(&mut web, SESSION, Listens::No).await;
            let client = connecting.await.unwrap().unwrap();
            assert_eq!(client.discovery(), prior);
            drop(client);
            assert_eq!(web.post().await.verb(), "DELETE");
        }
        // A server that has learnt more since is asked anew, and that is remembered.
        let connecting = tokio::spawn(through().connect(url));
        let initialize = web.post().await;
        assert_eq!(initialize.method(), "initialize");
        initialize.error(200, -32601, Value::Null).await;
        let probe = web.post().await;
        assert_eq!(probe.method(), "server/discover");
        let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"});
        probe.result(found).await;
        let modern = connecting.await.unwrap().unwrap();
        assert_eq!(modern.revision(), Revision::V2026_07_28);
        let before = web.requests();
        let again = through().connect(url).await.unwrap();
        assert_eq!((again.revision(), web.requests()), (Revision::V2026_07_28, before));
        drop(first);
    })
    .await;
}

#[tokio::test]
async fn annotations_of_the_modern_era_mean_nothing() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let tools = launch(client.list_tools());
        let post = web.post().await;
        // An annotation means nothing in this era: the tool is not left out.
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}});
        post.result(json!({"tools": [{"name": "t", "inputSchema": schema}]})).await;
        assert_eq!(tools.await.unwrap().unwrap().tools.len(), 1);
        close(&mut web, client).await;
    })
    .await;
}
