//! The GET stream, and taking up streams that broke off.

use std::time::Duration;

use serde_json::json;
use turnbuckle::{Ctx, State, http::MemoryEvents, tool};

use crate::{
    legacy_support::{Events, LATEST, Session, call, cancel, legacy_server, ping},
    support::Watch,
};

const CHANGED: &str = "notifications/tools/list_changed";

/// Opens the GET stream; it has begun when this returns.
async fn open_aside(session: &Session) -> Events {
    let mut events = Events::of(session.get(None).await);
    events.first = Some(events.priming().await);
    events
}

// req: hosting:http:standalone-sse, hosting:http:second-sse-rejected, hosting:http:no-broadcast
// req: transport:streamable-http:unrelated-messages
#[tokio::test]
async fn the_get_stream_tells_what_belongs_to_no_request_and_a_new_one_replaces_it() {
    let (server, _watch) = legacy_server();
    let changes = server.changes();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let mut first = open_aside(&session).await;
    changes.tools();
    assert_eq!(first.message().await["method"], CHANGED);
    let mut second = open_aside(&session).await;
    first.ends().await;
    changes.tools();
    assert_eq!(second.message().await["method"], CHANGED);
    // Other sessions have their own, and each is told once.
    let other = Session::open(&service, LATEST).await;
    let mut others = open_aside(&other).await;
    assert_eq!(service.sessions_in_use(), 2);
    changes.tools();
    assert_eq!(others.message().await["method"], CHANGED);
    let told = second.next().await.unwrap();
    assert_eq!(told.data["method"], CHANGED);
    assert!(told.id().ends_with("-2"), "{told:?}");
}

// req: hosting:http:standalone-sse-no-response, hosting:http:response-same-connection
#[tokio::test]
async fn the_get_stream_has_no_answers() {
    let (server, mut watch) = legacy_server();
    let changes = server.changes();
    let session = Session::open(&server.http_service(), LATEST).await;
    let mut aside = open_aside(&session).await;
    assert_eq!(session.post(&call(1, "echo", json!({"text": "a"}))).await.status(), 200);
    let waiting = session.start(2, "b", &mut watch).await;
    watch.release();
    assert_eq!(waiting.rest().await.last().unwrap().data["id"], 2);
    // What comes there next is what was said there next.
    changes.tools();
    assert_eq!(aside.message().await["method"], CHANGED);
    assert_eq!(session.delete().await.status(), 204);
    aside.ends().await;
}

/// Lets time pass for everyone who has begun to wait.
async fn pass(seconds: u64) {
    tokio::task::yield_now().await;
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::task::yield_now().await;
}

// req: hosting:resume:buffered-replay
#[tokio::test(start_paused = true)]
async fn a_get_stream_that_broke_off_is_kept_for_a_while() {
    let (server, _watch) = legacy_server();
    let changes = server.changes();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let mut events = open_aside(&session).await;
    changes.tools();
    let last = events.next().await.unwrap();
    drop(events);
    pass(50).await;
    assert_eq!(service.sessions_in_use(), 1);
    changes.tools();
    tokio::task::yield_now().await;
    let mut events = session.resume(last.id()).await;
    let missed = events.next().await.unwrap();
    assert_eq!(missed.data["method"], CHANGED);
    drop(events);
    pass(61).await;
    assert_eq!(service.sessions_in_use(), 0);
    // Then it is the client's name for it that is left: it goes on under that.
    let mut events = session.resume(last.id()).await;
    assert_eq!(events.next().await.unwrap().id(), missed.id());
    changes.tools();
    let next = events.next().await.unwrap();
    assert!(next.id().ends_with("-3"), "{next:?}");
    assert_eq!(session.delete().await.status(), 204);
    events.ends().await;
}

// req: hosting:resume:bad-event-id
#[tokio::test]
async fn a_place_that_is_none_is_refused() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    for last in ["", "1", "x-1", "0000000000000000-x", "0000000000000000_1"] {
        assert_eq!(session.get(Some(last)).await.status(), 400, "{last:?}");
    }
}

// req: hosting:resume:bad-event-id, hosting:session:isolation
#[tokio::test]
async fn what_is_not_known_in_this_session_is_an_empty_stream_that_has_ended() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let (one, two) = (Session::open(&service, LATEST).await, Session::open(&service, LATEST).await);
    let events = one.start(1, "a", &mut watch).await;
    let first = events.first();
    // Neither while it runs nor later.
    two.resume(&first).await.ends().await;
    watch.release();
    assert_eq!(events.rest().await.len(), 2);
    two.resume(&first).await.ends().await;
    one.resume("0000000000000000-0").await.ends().await;
    assert_eq!(one.resume(&first).await.rest().await.len(), 3);
}

// req: hosting:resume:replay, hosting:resume:stream-scoped, hosting:resume:event-ids
// req: transport:streamable-http:resumability
#[tokio::test]
async fn a_stream_is_told_from_where_it_broke_off_in_order_and_alone() {
    let (server, mut watch) = legacy_server();
    let changes = server.changes();
    let session = Session::open(&server.http_service(), LATEST).await;
    let _aside = open_aside(&session).await;
    let mut counted = Events::of(session.post(&call(1, "count", json!({"n": 5}))).await);
    let first = counted.priming().await;
    let waiting = session.start(2, "a", &mut watch).await;
    let other = waiting.first();
    changes.tools();
    let all = counted.rest().await;
    let again = session.resume(&first).await.rest().await;
    let ids = |events: &[crate::legacy_support::Event]| -> Vec<String> {
        events.iter().map(|event| event.id().to_owned()).collect()
    };
    assert_eq!(ids(&again), ids(&all));
    assert_eq!(again.len(), 6);
    for at in 0..6 {
        let rest = session.resume(all[at].id()).await.rest().await;
        assert_eq!(ids(&rest), ids(&all)[at + 1..]);
    }
    // A new reader of a stream that runs replaces the old one.
    let mut resumed = session.resume(&other).await;
    waiting.ends().await;
    assert_eq!(resumed.message().await["params"]["progress"].as_f64(), Some(1.0));
    watch.release();
    let rest = resumed.rest().await;
    assert_eq!(rest.len(), 2);
    assert_eq!(rest[1].data["id"], 2);
}

/// Lets the connection go, waits, and answers.
async fn polled(ctx: Ctx, State(gate): State<std::sync::Arc<tokio::sync::Semaphore>>) -> String {
    ctx.close_stream();
    gate.acquire().await.unwrap().forget();
    "polled".to_owned()
}

fn polling() -> (turnbuckle::Server, Watch, std::sync::Arc<tokio::sync::Semaphore>) {
    let (server, watch) = legacy_server();
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    (server.state(gate.clone()).tool(tool("polled", polled)), watch, gate)
}

// req: hosting:resume:close-stream
#[tokio::test]
async fn a_handler_may_let_the_connection_go_and_answer_later() {
    let (server, _watch, gate) = polling();
    let service = server.http_service().retry(Duration::from_millis(700));
    let session = Session::open(&service, LATEST).await;
    let events = Events::of(session.post(&call(1, "polled", json!({}))).await);
    let all = events.rest().await;
    assert!(!all.is_empty());
    // The priming event comes first, unless the stream was closed before it was read.
    let (end, before) = all.split_last().unwrap();
    assert_eq!((end.retry.as_deref(), end.data.is_null()), (Some("700"), true));
    for event in before {
        assert_eq!((event.retry.as_deref(), event.data.is_null()), (None, true));
    }
    assert_eq!(service.sessions_in_use(), 1);
    let last = all.last().unwrap().id().to_owned();
    let resumed = session.resume(&last).await;
    gate.add_permits(1);
    let rest = resumed.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data["result"]["content"][0]["text"], "polled");
    assert_eq!(service.sessions_in_use(), 0);
    assert_eq!(session.resume(&last).await.rest().await.len(), 1);
}

#[tokio::test]
async fn a_connection_is_not_let_go_where_the_client_could_not_come_back() {
    let (server, _watch, gate) = polling();
    let session = Session::open(&server.http_service(), "2025-06-18").await;
    let events = Events::of(session.post(&call(1, "polled", json!({}))).await);
    tokio::task::yield_now().await;
    gate.add_permits(1);
    let rest = events.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data["result"]["content"][0]["text"], "polled");
}

#[tokio::test]
async fn a_cancelled_call_that_was_let_go_is_forgotten() {
    let (server, _watch, _gate) = polling();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let all = Events::of(session.post(&call(1, "polled", json!({}))).await).rest().await;
    session.tell(&cancel(1)).await;
    assert_eq!(service.sessions_in_use(), 0);
    session.resume(all[0].id()).await.ends().await;
    assert_eq!(session.post(&ping(1)).await.status(), 200);
}

#[tokio::test]
async fn a_store_that_has_forgotten_loses_events_but_not_the_call() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().event_store(MemoryEvents::new(1));
    let session = Session::open(&service, LATEST).await;
    let events = session.start(1, "a", &mut watch).await;
    let resumed = session.resume(&events.first()).await;
    watch.release();
    let rest = resumed.rest().await;
    assert_eq!(rest.last().unwrap().data["result"]["content"][0]["text"], "released");
}
