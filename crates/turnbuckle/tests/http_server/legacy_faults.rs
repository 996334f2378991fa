//! What must not go wrong in sessions: ends that nobody waits for, stores that fail, batches that
//! are too much.

use std::{
    sync::{Arc, Mutex, mpsc as std_mpsc},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, mpsc};
use turnbuckle::{
    Ctx, Limits, Server, State, StoreFuture,
    http::{MemorySessions, SessionId, SessionRecord, SessionStore},
    tool,
};

use crate::{
    legacy_support::{
        Events, LATEST, Session, call, cancel, legacy_server, legacy_server_with, ping, post, send,
        value, wait,
    },
    support::text,
};

const BATCHES: &str = "2025-03-26";

fn modern(id: i64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"notifications": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}

#[tokio::test]
async fn a_batch_serves_nothing_of_the_other_era() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, BATCHES).await;
    let methods = ["server/discover", "tools/list", "subscriptions/listen"];
    let batch: Vec<_> = methods.iter().map(|method| modern(1, method)).collect();
    let stateless = server.http_service().without_sessions();
    for session in [session.clone(), session.at(&stateless)] {
        let answers = value(session.post(&json!(batch)).await).await;
        assert_eq!(answers.as_array().unwrap().len(), 3);
        for answer in answers.as_array().unwrap() {
            assert_eq!(answer["error"]["code"], -32022, "{answer}");
        }
    }
    assert_eq!(service.sessions_in_use(), 0);
}

#[test]
fn a_runtime_that_shuts_down_holds_nobody() {
    for kind in ["call", "get", "batch"] {
        let (done, finished) = std_mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            let (server, _watch) = legacy_server();
            let service = server.http_service();
            let session = runtime.block_on(Session::open(&service, BATCHES));
            let handle = runtime.handle().clone();
            runtime.shutdown_timeout(Duration::from_secs(1));
            let _inside = handle.enter();
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let body = match kind {
                "batch" => json!([wait(1, "a"), wait(2, "b")]),
                _ => wait(1, "a"),
            };
            if kind == "get" {
                let _ = std::pin::pin!(session.get(None)).poll(&mut context);
            } else {
                let _ = std::pin::pin!(session.post(&body)).poll(&mut context);
            }
            done.send(()).unwrap();
        });
        assert!(finished.recv_timeout(Duration::from_secs(20)).is_ok(), "{kind}");
    }
}

/// Lets time pass, and everyone see it.
async fn pass(seconds: u64) {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(Duration::from_secs(seconds)).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_to_nobody_is_given_up() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let mut events = Events::of(session.post(&call(1, "question", json!({}))).await);
    let first = events.priming().await;
    let id = events.message().await["id"].clone();
    pass(600).await;
    assert_eq!(service.sessions_in_use(), 1, "someone reads");
    drop(events);
    pass(299).await;
    assert_eq!(service.sessions_in_use(), 1);
    pass(2).await;
    assert_eq!(service.sessions_in_use(), 0);
    let rest = session.resume(&first).await.rest().await;
    // The question itself is too old for the store.
    let [.., cancelled, answer] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!(cancelled.data["params"]["requestId"], id);
    let said = answer.data["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("has ended"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_expires_takes_its_handlers_and_streams_with_it() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().session_lifetime(Duration::from_secs(60));
    let session = Session::open(&service, LATEST).await;
    let aside = Events::of(session.get(None).await);
    let mut asking = Events::of(session.post(&call(2, "question", json!({}))).await);
    asking.priming().await;
    let id = asking.message().await["id"].clone();
    let waiting = session.start(1, "a", &mut watch).await;
    // Nothing else is left to happen.
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, ["a dropped", "a heard"]);
    waiting.ends().await;
    assert_eq!(asking.message().await["params"]["requestId"], id);
    asking.ends().await;
    assert_eq!(aside.rest().await.len(), 1);
    assert_eq!(service.sessions_in_use(), 0);
}

#[tokio::test]
async fn of_a_batch_that_is_too_long_the_rest_is_refused() {
    let list = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let batch: Vec<Value> = (0..1200).map(list).collect();
    for (limits, served) in [
        (Limits::default(), 1000..=1000),
        (Limits::default().in_flight(7), 7..=7),
        (Limits::default().unsent_bytes(10_000), 2..=100),
    ] {
        let (server, _watch) = legacy_server_with(limits);
        let session = Session::open(&server.http_service(), BATCHES).await;
        let stateless = session.at(&server.http_service().without_sessions());
        for session in [session, stateless] {
            let answers = value(session.post(&json!(batch)).await).await;
            let answers = answers.as_array().unwrap();
            assert_eq!(answers.len(), 1200);
            let good = answers.iter().filter(|answer| answer["result"].is_object()).count();
            assert!(served.contains(&good), "{good}, not {served:?}");
            assert_eq!(answers[1199]["error"]["code"], -32603);
        }
    }
}

struct Failing;

impl SessionStore for Failing {
    fn load(&self, _: SessionId) -> StoreFuture<'_, Option<SessionRecord>> {
        Box::pin(async { Ok(None) })
    }

    fn save(&self, _: SessionId, _: SessionRecord, _: SystemTime) -> StoreFuture<'_, ()> {
        Box::pin(async { Err("away".into()) })
    }
}

#[tokio::test]
async fn a_store_that_fails_does_not_refuse_what_was_done() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().session_store(Failing);
    let session = Session::open(&service, LATEST).await;
    let _aside = Events::of(session.get(None).await);
    let level = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel",
        "params": {"level": "info"}});
    assert_eq!(session.post(&level).await.status(), 503);
    assert_eq!(session.post(&call(1, "echo", json!({"text": "x"}))).await.status(), 200);
    let events = session.start(2, "a", &mut watch).await;
    watch.release();
    assert_eq!(events.rest().await.last().unwrap().data["id"], 2);
}

type Gates = Arc<Mutex<Option<(std_mpsc::Sender<()>, std_mpsc::Receiver<()>)>>>;

/// Blocks in its first poll, and then waits.
async fn block(State(gates): State<Gates>) -> &'static str {
    let gates = gates.lock().unwrap().take();
    if let Some((begun, go)) = gates {
        begun.send(()).unwrap();
        go.recv().unwrap();
    }
    std::future::pending().await
}

async fn gated(State(gate): State<Arc<Semaphore>>) -> &'static str {
    gate.acquire().await.unwrap().forget();
    "done"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_cancel_in_the_first_poll_of_one_of_a_batch_is_for_that_one() {
    let (begun, began) = std_mpsc::channel();
    let (go, wait) = std_mpsc::channel();
    let gates: Gates = Arc::new(Mutex::new(Some((begun, wait))));
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::new("test", "1.0")
        .state(gates)
        .state(gate.clone())
        .tool(tool("block", block))
        .tool(tool("gated", gated));
    let service = server.http_service();
    let session = Session::open(&service, BATCHES).await;
    let batch = tokio::spawn({
        let session = session.clone();
        let batch = json!([call(1, "gated", json!({})), ping(7), call(2, "block", json!({}))]);
        async move { session.post(&batch).await }
    });
    tokio::task::spawn_blocking(move || began.recv().unwrap()).await.unwrap();
    session.tell(&cancel(2)).await;
    go.send(()).unwrap();
    let events = Events::of(batch.await.unwrap());
    gate.add_permits(1);
    let mut ids: Vec<_> =
        events.rest().await.iter().filter_map(|event| event.data["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 7]);
}

#[tokio::test]
async fn a_notification_of_no_version_that_is_served_is_refused() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    for body in [cancel(1), answer] {
        for versions in [&["1999-01-01"][..], &[LATEST, LATEST]] {
            let mut request = post().header("mcp-session-id", &session.id);
            for version in versions {
                request = request.header("mcp-protocol-version", *version);
            }
            assert_eq!(send(&service, request, &body).await.status(), 400, "{versions:?}");
        }
    }
}

/// Gives its question up when it is told to, whether it was answered or not.
async fn fickle(ctx: Ctx, State(gate): State<Arc<Notify>>) -> &'static str {
    let asked = ctx.request("roots/list", json!({}));
    tokio::select! { biased; () = gate.notified() => "told", _ = asked => "answered" }
}

#[tokio::test]
async fn e35_a_question_that_was_answered_is_not_cancelled() {
    let gate = Arc::new(Notify::new());
    let server = Server::new("test", "1.0").state(gate.clone()).tool(tool("fickle", fickle));
    let session = Session::open(&server.http_service(), LATEST).await;
    let mut events = Events::of(session.post(&call(1, "fickle", json!({}))).await);
    events.priming().await;
    let id = events.message().await["id"].clone();
    // Both are there when the handler looks.
    session.tell(&json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}})).await;
    gate.notify_one();
    let rest = events.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0].data["result"]["content"][0]["text"], "told");
}

#[tokio::test]
async fn a_stream_that_was_replaced_does_not_end_its_replacement() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let mut before = Events::of(session.get(None).await);
    let id = before.priming().await;
    let mut current = Events::of(session.get(None).await);
    current.priming().await;
    before.ends().await;
    session.resume(&id).await.ends().await;
    let more = tokio::time::timeout(Duration::ZERO, current.next()).await;
    assert!(more.is_err(), "{more:?}");
}

struct SlowLoad(MemorySessions, Arc<Semaphore>);

impl SessionStore for SlowLoad {
    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<SessionRecord>> {
        Box::pin(async move {
            self.1.acquire().await.unwrap().forget();
            self.0.load(session).await
        })
    }

    fn save(
        &self,
        session: SessionId,
        record: SessionRecord,
        until: SystemTime,
    ) -> StoreFuture<'_, ()> {
        self.0.save(session, record, until)
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_farewell_and_hangs_up_has_said_it() {
    let (server, _watch) = legacy_server();
    let gate = Arc::new(Semaphore::new(0));
    let store = SlowLoad(MemorySessions::new(10), gate.clone());
    let service = server.http_service().session_store(store);
    let session = Session::open(&service, LATEST).await;
    let hung = tokio::time::timeout(Duration::from_millis(1), session.delete()).await;
    assert!(hung.is_err());
    gate.add_permits(100);
    while service.sessions_in_use() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(session.post(&ping(1)).await.status(), 404);
}

/// Asks when its request has long been answered.
async fn late(ctx: Ctx, State(told): State<mpsc::Sender<bool>>, State(gate): State<Arc<Notify>>) {
    tokio::spawn(async move {
        gate.notified().await;
        let error = ctx.request("roots/list", json!({})).await.unwrap_err();
        told.send(error.maybe_executed()).await.unwrap();
    });
}

#[tokio::test]
async fn a_question_that_was_never_written_was_not_executed() {
    let (told, mut heard) = mpsc::channel::<bool>(1);
    let gate = Arc::new(Notify::new());
    let server =
        Server::new("test", "1.0").state(told).state(gate.clone()).tool(tool("late", late));
    let session = Session::open(&server.http_service(), LATEST).await;
    text(session.post(&call(1, "late", json!({}))).await.into_body()).await;
    gate.notify_one();
    assert!(!heard.recv().await.unwrap());
}
