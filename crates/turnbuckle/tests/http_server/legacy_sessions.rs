//! Sessions: how they are opened, who may use them, and how they end.

use std::task::{Context, Poll};

use http::Request;
use serde_json::json;
use tower_service::Service;
use turnbuckle::{
    Limits, RpcError,
    http::{MemoryEvents, MemorySessions},
    middleware::{self, server::Next},
    resource,
    server::{KeyRing, Revisions},
    types::LogLevel,
};

use crate::{
    legacy_support::{
        Events, LATEST, Session, call, initialize, legacy_server, legacy_server_with, ping, post,
        refusal, send, value, wait,
    },
    support::{Fed, ask, text},
};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

// req: hosting:session:create, hosting:session:reuse, hosting:session:id-charset
// req: lifecycle:version:match, ping:client-to-server, hosting:http:legacy-no-modern-vocabulary
#[tokio::test]
async fn every_revision_is_opened_and_served_without_a_modern_word() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    for version in LEGACY {
        let session = Session::open(&service, version).await;
        assert!(session.id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        session.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let answer = value(session.post(&ping("p")).await).await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        let response = session.post(&call(1, "echo", json!({"text": "a"}))).await;
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("mcp-session-id"));
        let answer = value(response).await;
        assert_eq!(answer["result"]["content"][0]["text"], "a");
        assert!(!answer.to_string().contains("io.modelcontextprotocol"), "{answer}");
        assert!(answer["result"].get("resultType").is_none(), "{answer}");
    }
    assert_eq!(service.sessions_in_use(), 0);
}

// req: lifecycle:version:server-fallback-latest
#[tokio::test]
async fn an_unknown_revision_is_offered_the_newest_legacy_one() {
    let (server, _watch) = legacy_server();
    let response = send(&server.http_service(), post(), &initialize("1999-01-01")).await;
    assert!(response.headers().contains_key("mcp-session-id"));
    assert_eq!(value(response).await["result"]["protocolVersion"], LATEST);
}

#[tokio::test]
async fn errors_of_requests_come_with_status_200() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "x/y"});
    assert_eq!(refusal(session.post(&unknown).await).await, (200, -32601));
    let missing = call(1, "none", json!({}));
    assert_eq!(refusal(session.post(&missing).await).await, (200, -32602));
    assert_eq!(refusal(session.post(&call(1, "fail", json!({}))).await).await, (200, -32603));
    // A method that only the other era has is unknown in a session; outside one it lacks what that
    // era declares.
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {"notifications": {}}});
    assert_eq!(refusal(session.post(&listen).await).await, (200, -32601));
    assert_eq!(refusal(send(&service, post(), &listen).await).await, (400, -32602));
    let mut wrong = initialize(LATEST);
    wrong["params"]["clientInfo"] = json!(5);
    let response = send(&service, post(), &wrong).await;
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(refusal(response).await, (200, -32602));
}

// req: hosting:session:reinitialize
#[tokio::test]
async fn a_second_initialize_in_a_session_is_refused() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let response = session.post(&initialize(LATEST)).await;
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(refusal(response).await, (400, -32600));
    assert_eq!(session.post(&ping(1)).await.status(), 200);
}

// req: hosting:session:missing-id, hosting:session:unknown-id
#[tokio::test]
async fn a_request_needs_one_session_id_that_is_known() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let broken = json!({"jsonrpc": "2.0", "id": 1, "error": 5});
    for message in [&ping(1), &note, &answer, &broken] {
        assert_eq!(send(&service, post(), message).await.status(), 400, "{message}");
        let twice = post().header("mcp-session-id", &session.id);
        let twice = twice.header("mcp-session-id", &session.id);
        assert_eq!(send(&service, twice, message).await.status(), 400, "{message}");
        for id in ["", "x", &session.id[1..], &format!("{}A", session.id)] {
            let request = post().header("mcp-session-id", id);
            assert_eq!(send(&service, request, message).await.status(), 404, "{message} {id}");
        }
    }
    for method in ["GET", "DELETE"] {
        let request = || {
            let request = Request::builder().method(method).uri("/mcp");
            request.header("host", "localhost").header("accept", "text/event-stream")
        };
        let missing = request().body(Fed::whole("")).unwrap();
        assert_eq!(ask(&service, missing).await.status(), 400);
        let unknown = request().header("mcp-session-id", "x").body(Fed::whole("")).unwrap();
        assert_eq!(ask(&service, unknown).await.status(), 404);
    }
    assert_eq!(service.sessions_in_use(), 0);
}

// req: hosting:http:protocol-version-400, hosting:http:protocol-version-default
// req: hosting:http:protocol-version-rejection-literal
#[tokio::test]
async fn the_version_header_may_be_absent_but_not_wrong() {
    let (server, _watch) = legacy_server();
    let server = server.revisions(Revisions::Only(vec![LATEST.parse().unwrap()]));
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let with = || post().header("mcp-session-id", &session.id);
    assert_eq!(send(&service, with(), &ping(1)).await.status(), 200);
    for version in ["2025-06-18", "2026-07-28", "1999-01-01", "x"] {
        let request = with().header("mcp-protocol-version", version);
        let response = send(&service, request, &ping(1)).await;
        assert_eq!(response.status(), 400, "{version}");
    }
    let request = with().header("mcp-protocol-version", "2025-06-18");
    let answer = value(send(&service, request, &ping(1)).await).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("Unsupported protocol version"), "{message}");
    assert!(message.contains(LATEST), "{message}");
}

// req: hosting:session:isolation
#[tokio::test]
async fn only_the_one_who_opened_a_session_may_use_it() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open_as(&service, LATEST, Some("alice")).await;
    let events = session.start(1, "a", &mut watch).await;
    let last = events.first();
    for thief in [None, Some("bob"), Some("")] {
        let stolen = session.stolen_by(thief);
        assert_eq!(stolen.post(&ping(1)).await.status(), 404);
        assert_eq!(stolen.get(None).await.status(), 404);
        assert_eq!(stolen.get(Some(&last)).await.status(), 404);
        assert_eq!(stolen.delete().await.status(), 404);
    }
    let nobodys = Session::open(&service, LATEST).await;
    assert_eq!(nobodys.stolen_by(Some("alice")).post(&ping(1)).await.status(), 404);
    assert_eq!(session.post(&ping(2)).await.status(), 200);
    watch.release();
    assert_eq!(events.rest().await.len(), 2);
}

// req: hosting:session:delete, hosting:session:delete-cancels-inflight
// req: hosting:session:post-termination-404
#[tokio::test]
async fn delete_ends_a_session_and_what_runs_in_it() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let mut aside = Events::of(session.get(None).await);
    aside.priming().await;
    let events = session.start(1, "a", &mut watch).await;
    let response = session.delete().await;
    assert_eq!(response.status(), 204);
    assert_eq!(text(response.into_body()).await, "");
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, ["a dropped", "a heard"]);
    events.ends().await;
    aside.ends().await;
    assert_eq!(session.post(&ping(1)).await.status(), 404);
    assert_eq!(session.post(&initialize(LATEST)).await.status(), 404);
    assert_eq!(session.get(None).await.status(), 404);
    assert_eq!(session.delete().await.status(), 404);
    assert_eq!(service.sessions_in_use(), 0);
}

// req: typescript:hosting:entry:strict-rejects-legacy, typescript:hosting:entry:method-405
#[tokio::test]
async fn a_server_of_the_modern_era_alone_knows_no_sessions() {
    let (server, _watch) = legacy_server();
    let service = server.revisions(Revisions::Modern).http_service();
    let response = send(&service, post(), &initialize(LATEST)).await;
    assert_eq!(response.status(), 400);
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert!(text(response.into_body()).await.contains("2026-07-28"));
    for method in ["GET", "DELETE", "PUT"] {
        let request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
        let response = ask(&service, request.body(Fed::whole("")).unwrap()).await;
        assert_eq!(response.status(), 405);
        assert_eq!(response.headers()["allow"], "POST");
    }
}

// req: hosting:http:method-405, hosting:http:accept-406
#[tokio::test]
async fn methods_are_those_of_the_era_that_the_version_declares() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let request = |method: &str, version: &str| {
        let request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
        let request = request.header("accept", "text/event-stream");
        request.header("mcp-protocol-version", version).body(Fed::whole("")).unwrap()
    };
    for (method, version, status, allow) in [
        ("GET", "2026-07-28", 405, Some("POST")),
        ("DELETE", "2026-07-28", 405, Some("POST")),
        ("PUT", LATEST, 405, Some("GET, POST, DELETE")),
        ("GET", LATEST, 400, None),
        ("DELETE", LATEST, 400, None),
    ] {
        let response = ask(&service, request(method, version)).await;
        assert_eq!(response.status(), status, "{method} {version}");
        let allowed = response.headers().get("allow").map(|value| value.to_str().unwrap());
        assert_eq!(allowed, allow, "{method} {version}");
    }
    let mut foreign = request("GET", LATEST);
    foreign.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    assert_eq!(ask(&service, foreign).await.status(), 403);
    let session = Session::open(&service, LATEST).await;
    let mut deaf = request("GET", LATEST);
    deaf.headers_mut().insert("mcp-session-id", session.id.parse().unwrap());
    for accept in ["application/json", ""] {
        let mut deaf = request("GET", LATEST);
        deaf.headers_mut().insert("mcp-session-id", session.id.parse().unwrap());
        deaf.headers_mut().insert("accept", accept.parse().unwrap());
        assert_eq!(ask(&service, deaf).await.status(), 406, "{accept:?}");
    }
    deaf.headers_mut().remove("accept");
    assert_eq!(ask(&service, deaf).await.status(), 406);
}

#[tokio::test]
async fn replicas_that_share_keys_and_stores_serve_each_others_sessions() {
    let (server, mut watch) = legacy_server();
    let sessions = std::sync::Arc::new(MemorySessions::new(10));
    let events = std::sync::Arc::new(MemoryEvents::new(1 << 20));
    let replica = |keys| {
        let service = server.http_service().session_keys(keys);
        service.session_store(Shared(sessions.clone())).event_store(SharedEvents(events.clone()))
    };
    let old = replica(KeyRing::new([1; 32]));
    let new = replica(KeyRing::new([2; 32]).and_accept([1; 32]));
    let session = Session::open(&old, LATEST).await;
    let level = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel",
        "params": {"level": "error"}});
    assert_eq!(session.post(&level).await.status(), 200);
    let elsewhere = session.at(&new);
    assert_eq!(elsewhere.post(&ping(1)).await.status(), 200);
    // What one has kept the other can tell.
    let broken = session.start(2, "a", &mut watch).await;
    let last = broken.first();
    drop(broken);
    watch.release();
    assert_eq!(watch.next().await, "a dropped");
    let missed = elsewhere.resume(&last).await.rest().await;
    assert_eq!(missed.len(), 3);
    assert_eq!(missed[2].data["result"]["content"][0]["text"], "released");

    let newer = Session::open(&new, LATEST).await;
    assert_eq!(newer.at(&old).post(&ping(1)).await.status(), 404);
    assert_eq!(elsewhere.delete().await.status(), 204);
    assert_eq!(session.post(&ping(1)).await.status(), 404);
    let alone = server.http_service();
    assert_eq!(session.at(&alone).post(&ping(1)).await.status(), 404);
}

#[tokio::test]
async fn a_change_at_another_replica_holds_for_the_next_request() {
    let (server, _watch) = legacy_server();
    let server = server.resource(resource("test://one", async || "one"));
    let store = Kept::default();
    let replica = || {
        let service = server.http_service().session_keys(KeyRing::new([1; 32]));
        service.session_store(store.clone())
    };
    let (one, other) = (replica(), replica());
    let here = Session::open(&one, LATEST).await;
    let there = here.at(&other);
    assert_eq!(here.post(&ping(1)).await.status(), 200);
    let level = json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel",
        "params": {"level": "error"}});
    assert_eq!(there.post(&level).await.status(), 200);
    let subscribe = json!({"jsonrpc": "2.0", "id": 3, "method": "resources/subscribe",
        "params": {"uri": "test://one"}});
    assert_eq!(here.post(&subscribe).await.status(), 200);
    let record = store.last();
    assert_eq!((record.log_level, record.subscriptions.len()), (Some(LogLevel::Error), 1));
    assert_eq!(there.delete().await.status(), 204);
    assert_eq!(here.post(&ping(4)).await.status(), 404);
}

/// Lets requests pass after a while.
#[derive(Clone)]
struct Hesitates(Next);

impl Service<middleware::server::Request> for Hesitates {
    type Response = middleware::Response;
    type Error = RpcError;
    type Future = <Next as Service<middleware::server::Request>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RpcError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: middleware::server::Request) -> Self::Future {
        let mut next = self.0.clone();
        Box::pin(async move {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            next.call(request).await
        })
    }
}

#[tokio::test]
async fn what_takes_its_time_to_change_a_session_is_kept_before_it_is_answered() {
    let (server, _watch) = legacy_server();
    let server = server
        .resource(resource("test://one", async || "one"))
        .layer(tower_layer::layer_fn(Hesitates));
    let store = Kept::default();
    let service = server.http_service().session_store(store.clone());
    let level = |id| {
        json!({"jsonrpc": "2.0", "id": id, "method": "logging/setLevel",
            "params": {"level": "error"}})
    };
    let about = |id, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"uri": "test://one"}});
    let session = Session::open(&service, LATEST).await;
    let answered = async |request| {
        let events = Events::of(session.post(&request).await).rest().await;
        assert!(events.last().unwrap().data["error"].is_null(), "{:?}", events.last());
    };
    answered(level(1)).await;
    assert!(store.last().log_level.is_some());
    answered(about(2, "resources/subscribe")).await;
    assert_eq!(store.last().subscriptions.len(), 1);
    answered(about(3, "resources/unsubscribe")).await;
    assert_eq!(store.last().subscriptions.len(), 0);
    // And in a batch.
    let session = Session::open(&service, "2025-03-26").await;
    let batch = json!([level(1), about(2, "resources/subscribe")]);
    Events::of(session.post(&batch).await).rest().await;
    let record = store.last();
    assert!(record.log_level.is_some() && record.subscriptions.len() == 1, "{record:?}");
}

// req: hosting:session:lifecycle-callbacks
#[tokio::test]
async fn a_store_sees_what_is_kept_of_a_session_and_that_it_has_ended() {
    let (server, _watch) = legacy_server();
    let store = Kept::default();
    let service = server.http_service().session_store(store.clone());
    let session = Session::open(&service, LATEST).await;
    assert_eq!(session.post(&ping(1)).await.status(), 200);
    assert_eq!(store.saved(), 0, "a session is its id, and nothing is kept of it");
    let level = json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel",
        "params": {"level": "error"}});
    assert_eq!(session.post(&level).await.status(), 200);
    assert_eq!((store.saved(), store.last().ended), (1, false));
    assert_eq!(store.last().log_level, Some(LogLevel::Error));
    assert_eq!(session.delete().await.status(), 204);
    assert_eq!((store.saved(), store.last().ended), (2, true));
}

#[tokio::test]
async fn sessions_in_use_are_bounded_and_others_cost_nothing() {
    let (server, mut watch) = legacy_server_with(Limits::default().sessions(2));
    let service = server.http_service();
    let mut opened = Vec::new();
    for _ in 0..10 {
        opened.push(Session::open(&service, LATEST).await);
    }
    assert_eq!(service.sessions_in_use(), 0);
    let aside = Events::of(opened[0].get(None).await);
    let call = opened[1].start(1, "a", &mut watch).await;
    assert_eq!(service.sessions_in_use(), 2);
    let response = opened[2].post(&ping(1)).await;
    assert_eq!(response.status(), 503);
    assert!(text(response.into_body()).await.contains("(sessions)"));
    assert_eq!(opened[0].post(&ping(1)).await.status(), 200);
    watch.release();
    assert_eq!(call.rest().await.len(), 2);
    assert_eq!(opened[2].post(&ping(1)).await.status(), 200);
    assert_eq!(opened[0].delete().await.status(), 204);
    aside.rest().await;
    assert_eq!(service.sessions_in_use(), 0);
}

#[tokio::test]
async fn ten_thousand_sessions_that_were_opened_and_left_are_nowhere() {
    let (server, _watch) = legacy_server_with(Limits::default().sessions(1));
    let service = server.http_service();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for _ in 0..10_000 {
        let session = Session::open(&service, LATEST).await;
        session.tell(&ready).await;
        assert_eq!(service.sessions_in_use(), 0);
    }
}

#[tokio::test]
async fn a_store_that_fails_is_503_and_the_session_lives_on() {
    let (server, _watch) = legacy_server();
    let broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let service = server.http_service().session_store(Broken(broken.clone()));
    let session = Session::open(&service, LATEST).await;
    assert_eq!(session.post(&ping(1)).await.status(), 503);
    assert_eq!(session.get(None).await.status(), 503);
    assert_eq!(session.delete().await.status(), 503);
    assert_eq!(service.sessions_in_use(), 0);
    broken.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(session.post(&ping(1)).await.status(), 200);
    assert_eq!(session.post(&wait(1, "a")).await.status(), 200);
}

#[tokio::test]
async fn a_session_expires() {
    let (server, _watch) = legacy_server();
    let service = server.http_service().session_lifetime(std::time::Duration::ZERO);
    let session = Session::open(&service, LATEST).await;
    assert_eq!(session.post(&ping(1)).await.status(), 404);
}

struct Shared(std::sync::Arc<MemorySessions>);

impl turnbuckle::http::SessionStore for Shared {
    fn load(
        &self,
        session: turnbuckle::http::SessionId,
    ) -> turnbuckle::StoreFuture<'_, Option<turnbuckle::http::SessionRecord>> {
        self.0.load(session)
    }

    fn save(
        &self,
        session: turnbuckle::http::SessionId,
        record: turnbuckle::http::SessionRecord,
        until: std::time::SystemTime,
    ) -> turnbuckle::StoreFuture<'_, ()> {
        self.0.save(session, record, until)
    }
}

/// Tells what was saved.
#[derive(Clone)]
struct Kept {
    sessions: std::sync::Arc<MemorySessions>,
    all: std::sync::Arc<std::sync::Mutex<Vec<turnbuckle::http::SessionRecord>>>,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { sessions: MemorySessions::new(10).into(), all: Default::default() }
    }
}

impl Kept {
    fn last(&self) -> turnbuckle::http::SessionRecord {
        self.all.lock().unwrap().last().cloned().unwrap_or_default()
    }

    fn saved(&self) -> usize {
        self.all.lock().unwrap().len()
    }
}

impl turnbuckle::http::SessionStore for Kept {
    fn load(
        &self,
        session: turnbuckle::http::SessionId,
    ) -> turnbuckle::StoreFuture<'_, Option<turnbuckle::http::SessionRecord>> {
        self.sessions.load(session)
    }

    fn save(
        &self,
        session: turnbuckle::http::SessionId,
        record: turnbuckle::http::SessionRecord,
        until: std::time::SystemTime,
    ) -> turnbuckle::StoreFuture<'_, ()> {
        self.all.lock().unwrap().push(record.clone());
        self.sessions.save(session, record, until)
    }
}

struct SharedEvents(std::sync::Arc<MemoryEvents>);

impl turnbuckle::http::EventStore for SharedEvents {
    fn append(
        &self,
        stream: &turnbuckle::http::StreamKey,
        event: turnbuckle::http::StoredEvent,
    ) -> turnbuckle::StoreFuture<'_, ()> {
        self.0.append(stream, event)
    }

    fn after(
        &self,
        stream: &turnbuckle::http::StreamKey,
        number: u64,
    ) -> turnbuckle::StoreFuture<'_, Vec<turnbuckle::http::StoredEvent>> {
        self.0.after(stream, number)
    }

    fn forget(&self, stream: &turnbuckle::http::StreamKey) -> turnbuckle::StoreFuture<'_, ()> {
        self.0.forget(stream)
    }

    fn forget_session(
        &self,
        session: turnbuckle::http::SessionId,
    ) -> turnbuckle::StoreFuture<'_, ()> {
        self.0.forget_session(session)
    }
}

/// A store that fails until it is mended.
struct Broken(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Broken {
    fn answer<T: Send + 'static>(&self, value: T) -> turnbuckle::StoreFuture<'_, T> {
        let broken = self.0.load(std::sync::atomic::Ordering::Relaxed);
        Box::pin(std::future::ready(if broken { Err("broken".into()) } else { Ok(value) }))
    }
}

impl turnbuckle::http::SessionStore for Broken {
    fn load(
        &self,
        _: turnbuckle::http::SessionId,
    ) -> turnbuckle::StoreFuture<'_, Option<turnbuckle::http::SessionRecord>> {
        self.answer(None)
    }

    fn save(
        &self,
        _: turnbuckle::http::SessionId,
        _: turnbuckle::http::SessionRecord,
        _: std::time::SystemTime,
    ) -> turnbuckle::StoreFuture<'_, ()> {
        self.answer(())
    }
}

#[tokio::test]
async fn a_session_that_was_ended_stays_ended_however_many_others_end() {
    let (server, _watch) = legacy_server();
    let service = server.http_service().session_store(MemorySessions::new(10));
    let first = Session::open(&service, LATEST).await;
    assert_eq!(first.delete().await.status(), 204);
    for _ in 0..50 {
        let other = Session::open(&service, LATEST).await;
        assert_eq!(other.delete().await.status(), 204);
    }
    assert_eq!(first.post(&ping(1)).await.status(), 404);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_no_client_attends_is_cancelled_after_a_while() {
    let (server, mut watch) = legacy_server_with(Limits::default().http_in_flight(2));
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let (one, two) =
        (session.start(1, "a", &mut watch).await, session.start(2, "b", &mut watch).await);
    drop(one);
    drop(two);
    // Half of the permits can be held by calls that no client attends.
    let mut ended = [watch.next().await, watch.next().await];
    ended.sort();
    assert_eq!(ended, ["b dropped", "b heard"]);
    assert_eq!(session.post(&ping(3)).await.status(), 200);
    let start = tokio::time::Instant::now();
    let mut ended = [watch.next().await, watch.next().await];
    ended.sort();
    assert_eq!(ended, ["a dropped", "a heard"]);
    assert_eq!(start.elapsed().as_secs(), 600);
}
