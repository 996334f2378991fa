//! Calls of the legacy era over HTTP in adverse circumstances: a server that hangs, headers of one
//! call, redirects to elsewhere, a close with calls in flight.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use serde_json::{Value, json};
use std::future::IntoFuture;
use tokio::{sync::mpsc, time::Instant};
use turnbuckle::http::{PostBody, Redirects};

use crate::{
    raw::said,
    rig::{poll_once, virtually, within},
    session::{Listens, SESSION, cancel, close, legacy, open_as, result},
    web::{Web, abandon, launch, settle},
};

/// A server that opens a session and then never answers anything again.
#[derive(Clone, Default)]
struct Hanging {
    held: Arc<AtomicUsize>,
    /// Told when a cancel comes, which is then accepted.
    cancelled: Option<mpsc::Sender<Instant>>,
}

/// A request that hangs.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl tower_service::Service<http::Request<PostBody>> for Hanging {
    type Response = http::Response<String>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<PostBody>) -> Self::Future {
        let Hanging { held, cancelled } = self.clone();
        Box::pin(async move {
            let verb = request.method().clone();
            let bytes = request.into_body().into_bytes();
            let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let head = http::Response::builder();
            match (verb.as_str(), message["method"].as_str().unwrap_or_default()) {
                ("POST", "initialize") => {
                    let result = result("2025-11-25");
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    let head = head.header("content-type", "application/json");
                    Ok(head.header("mcp-session-id", "s").body(answer.to_string()).unwrap())
                }
                ("POST", "notifications/initialized") => {
                    Ok(head.status(202).body(String::new()).unwrap())
                }
                ("GET" | "DELETE", _) => Ok(head.status(405).body(String::new()).unwrap()),
                ("POST", "notifications/cancelled") if cancelled.is_some() => {
                    cancelled.unwrap().send(Instant::now()).await.unwrap();
                    Ok(head.status(202).body(String::new()).unwrap())
                }
                _ => {
                    held.fetch_add(1, SeqCst);
                    let _held = Held(held);
                    std::future::pending().await
                }
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_given_up_do_not_pile_up_where_the_server_hangs() {
    virtually(async {
        let server = Hanging::default();
        let held = server.held.clone();
        let client = legacy().http_service(server).connect("http://hangs.test/mcp").await.unwrap();
        let mut most = 0;
        for turn in 0..10_000 {
            let mut call = client.call_tool("t", ()).into_future();
            assert!(poll_once(&mut call).await.is_none());
            drop(call);
            if turn % 100 == 0 {
                tokio::task::yield_now().await;
            }
            most = most.max(held.load(SeqCst));
        }
        assert!(most >= 4096, "the server did not get them: {most}");
        // Calls, and cancels of some.
        assert!(most <= 4096 + 64, "{most} requests are open");
        for _ in 0..30 {
            tokio::time::advance(Duration::from_secs(1)).await;
            settle().await;
        }
        assert_eq!(held.load(SeqCst), 0, "they are held for ever");
        let mut call = client.call_tool("t", ()).into_future();
        assert!(poll_once(&mut call).await.is_none());
        assert_eq!(held.load(SeqCst), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_waits_only_where_it_could_overtake_its_request() {
    virtually(async {
        let (sender, mut cancelled) = mpsc::channel(1);
        let server = Hanging { cancelled: Some(sender), ..Hanging::default() };
        let client = legacy().http_service(server).connect("http://hangs.test/mcp").await.unwrap();
        for (age, waits) in [(0, true), (10, true), (20, false), (5_000, false)] {
            let mut call = client.call_tool("t", ()).into_future();
            assert!(poll_once(&mut call).await.is_none());
            tokio::time::advance(Duration::from_millis(age)).await;
            let dropped = Instant::now();
            drop(call);
            let came = cancelled.recv().await.unwrap() - dropped;
            assert_eq!(came > Duration::ZERO, waits, "after {age} ms: {came:?}");
            let lead = came + Duration::from_millis(age);
            assert!(lead >= Duration::from_millis(20), "after {age} ms: {came:?}");
            assert!(came < Duration::from_millis(30 - age.min(20)), "after {age} ms: {came:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn headers_of_a_call_go_with_all_that_is_said_for_it() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let call = launch(client.call_tool("t", ()).header("x-call", "2"));
        let post = web.post().await;
        assert_eq!(post.header("x-call"), Some("2"));
        post.stream().await;
        post.chunk("id: 1\nretry: 1\ndata:\n\n").await;
        post.end().await;
        let get = web.post().await;
        assert_eq!((get.verb(), get.header("x-call")), ("GET", Some("2")));
        get.stream().await;
        settle().await;
        abandon(call).await;
        let (cancel, _) = cancel(&mut web).await;
        assert_eq!(cancel.header("x-call"), Some("2"));
        cancel.accept().await;
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn an_explicit_cancel_of_a_call_that_keeps_running_is_posted() {
    within(async {
        let mut web = Web::new().await;
        let client = open_as(&mut web, legacy(), Listens::No).await.client;
        let call = launch(client.call_tool("t", ()).request_id(1).keep_running());
        web.post().await;
        let params = json!({"requestId": 1, "reason": "enough"});
        client.notify("notifications/cancelled", params.clone()).await.unwrap();
        assert!(call.await.unwrap().unwrap_err().is_closed());
        let (posted, said) = cancel(&mut web).await;
        assert_eq!(said, params);
        posted.accept().await;
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn elsewhere_the_session_is_not_told_but_where_a_stream_was() {
    within(async {
        let (mut web, mut elsewhere) = (Web::new().await, Web::new().await);
        let builder = legacy().redirects(Redirects::AnyOrigin).header("authorization", "1");
        let client = open_as(&mut web, builder, Listens::No).await.client;
        let call = launch(client.call_tool("t", ()).header("x-call", "2"));
        let post = web.post().await;
        post.stream().await;
        post.chunk("id: a-1\nretry: 1\ndata:\n\n").await;
        post.end().await;
        let get = web.post().await;
        assert_eq!(get.header("mcp-session-id"), Some(SESSION));
        let to = elsewhere.url();
        get.say(format!("HTTP/1.1 307 X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")).await;
        let there = elsewhere.post().await;
        assert_eq!(there.header("last-event-id"), Some("a-1"));
        assert_eq!(there.header("mcp-protocol-version"), Some("2025-11-25"));
        for secret in ["mcp-session-id", "authorization", "x-call"] {
            assert_eq!(there.header(secret), None, "{secret}");
        }
        there.stream().await;
        there
            .event(json!({"jsonrpc": "2.0", "id": post.body["id"], "result": said("there")}))
            .await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "there");
        close(&mut web, client).await;
    })
    .await;
}

#[tokio::test]
async fn a_close_without_a_session_cancels_what_is_in_flight() {
    within(async {
        let mut web = Web::new().await;
        let connecting = tokio::spawn(legacy().connect(web.url()));
        web.post().await.result(result("2025-11-25")).await;
        web.post().await.accept().await;
        web.post().await.answer(405, "text/plain", "").await;
        let client = connecting.await.unwrap().unwrap();
        let call = launch(client.call_tool("t", ()));
        let post = web.post().await;
        let kept = launch(client.call_tool("kept", ()).keep_running());
        web.post().await;
        let closing = tokio::spawn(client.close());
        let (cancel, params) = cancel(&mut web).await;
        assert_eq!(params["requestId"], post.body["id"]);
        settle().await;
        assert!(!closing.is_finished());
        cancel.accept().await;
        closing.await.unwrap();
        for call in [call, kept] {
            assert!(call.await.unwrap().unwrap_err().is_closed());
        }
        assert_eq!(web.requests(), 3 + 2 + 1);
    })
    .await;
}
