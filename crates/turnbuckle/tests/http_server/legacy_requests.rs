//! Requests of a session: answers, streams, cancellations, and clients that go away.

use serde_json::json;
use turnbuckle::Limits;

use crate::{
    legacy_support::{
        Events, LATEST, Session, call, cancel, legacy_server, legacy_server_with, ping, refusal,
        value, wait,
    },
    support::{frame, text},
};

// req: hosting:resume:event-ids, hosting:resume:priming
#[tokio::test]
async fn a_call_that_waits_is_a_stream_with_a_priming_event_and_ids() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    for version in ["2025-06-18", LATEST] {
        let session = Session::open(&service, version).await;
        let mut events = Events::of(session.post(&wait("1", "a")).await);
        assert_eq!(watch.next().await, "a started");
        let mut ids = Vec::new();
        if version == LATEST {
            ids.push(events.priming().await);
        }
        let progress = events.next().await.unwrap();
        assert_eq!(progress.data["params"]["progress"].as_f64(), Some(1.0));
        ids.push(progress.id().to_owned());
        watch.release();
        for event in events.rest().await {
            ids.push(event.id().to_owned());
        }
        assert_eq!(watch.next().await, "a dropped");
        let (stream, _) = ids[0].split_once('-').unwrap();
        assert_eq!(stream.len(), 16);
        let first = if version == LATEST { 0 } else { 1 };
        for (number, id) in (first..).zip(&ids) {
            assert_eq!(*id, format!("{stream}-{number}"));
        }
        assert_eq!(ids.len(), 4 - first);
        assert_eq!(service.sessions_in_use(), 0);
    }
}

// req: transport:streamable-http:notifications, hosting:http:response-same-connection
// req: hosting:http:sse-close-after-response
#[tokio::test]
async fn what_is_said_before_an_answer_that_is_ready_makes_a_stream() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let mut events = Events::of(session.post(&call(7, "count", json!({"n": 20}))).await);
    events.priming().await;
    let all = events.rest().await;
    assert_eq!(all.len(), 21);
    for (at, event) in all[..20].iter().enumerate() {
        assert_eq!(event.data["params"]["progress"].as_f64(), Some(at as f64 + 1.0));
    }
    assert_eq!((&all[20].data["id"], all[20].data["result"].is_object()), (&json!(7), true));
}

#[tokio::test]
async fn a_handler_faster_than_its_reader_waits_and_nothing_is_lost() {
    let (server, _watch) = legacy_server_with(Limits::default().queued_notifications(10));
    let session = Session::open(&server.http_service(), LATEST).await;
    let response = session.post(&call(1, "count", json!({"n": 105}))).await;
    let (mut body, mut seen) = (response.into_body(), 0);
    while let Some(frame) = frame(&mut body).await {
        let events = frame.matches("data: {").count();
        assert!(events <= 22, "{events}");
        seen += events;
    }
    assert_eq!(seen, 106);
}

// req: hosting:resume:buffered-replay
#[tokio::test]
async fn a_handler_that_nobody_reads_waits_for_nobody() {
    let (server, _watch) = legacy_server_with(Limits::default().queued_notifications(10));
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let mut events = Events::of(session.post(&call(1, "count", json!({"n": 500}))).await);
    let last = events.priming().await;
    drop(events);
    while service.sessions_in_use() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(session.resume(&last).await.rest().await.len(), 501);
}

// req: transport:streamable-http:cancelled-request-terminated, protocol:cancel:in-flight
// req: hosting:http:notifications-202
#[tokio::test]
async fn d30_a_cancel_drops_the_handler_and_ends_its_stream_without_an_answer() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let events = session.start(7, "a", &mut watch).await;
    let last = events.first();
    let other = session.start(8, "b", &mut watch).await;
    // Neither unknown ones nor those that are none disturb anything.
    for none in [json!(9), json!("x"), json!(true), json!(7.5), json!(null)] {
        session.tell(&cancel(none)).await;
    }
    session.tell(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"})).await;
    watch.nothing();
    // By the key of its id.
    session.tell(&cancel("7")).await;
    // It is gone before the acknowledgement.
    assert_eq!(watch.next().await, "a dropped");
    assert_eq!(watch.next().await, "a heard");
    events.ends().await;
    session.resume(&last).await.ends().await;
    session.tell(&cancel(7)).await;
    watch.release();
    assert_eq!(other.rest().await.len(), 2);
    assert_eq!(watch.next().await, "b dropped");
    assert_eq!(service.sessions_in_use(), 0);
}

/// Messages have connections of their own, and a cancel may be read before what it cancels.
#[tokio::test]
async fn d30_a_cancel_that_comes_first_is_for_the_request_that_follows() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let other = Session::open(&service, LATEST).await;
    session.tell(&cancel("7")).await;
    Events::of(session.post(&wait(7, "a")).await).ends().await;
    watch.nothing();
    // It was for that one: neither for the next of that id, nor for another session's.
    let next = session.start(7, "b", &mut watch).await;
    let others = other.start(7, "c", &mut watch).await;
    watch.release();
    watch.release();
    assert_eq!(next.rest().await.len(), 2);
    assert_eq!(others.rest().await.len(), 2);
    for _ in 0..2 {
        assert!(watch.next().await.ends_with("dropped"));
    }
    // One that comes too late is for nothing, and the id can be used again.
    session.tell(&cancel(7)).await;
    let again = session.start(7, "d", &mut watch).await;
    watch.release();
    assert_eq!(again.rest().await.len(), 2);
}

// req: transport:streamable-http:cancelled-request-terminated
#[tokio::test]
async fn d30_in_json_mode_a_cancelled_call_is_a_stream_without_an_event() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().json_only();
    let session = Session::open(&service, LATEST).await;
    let posting = tokio::spawn({
        let session = session.clone();
        async move { session.post(&wait(7, "a")).await }
    });
    assert_eq!(watch.next().await, "a started");
    session.tell(&cancel(7)).await;
    assert_eq!(watch.next().await, "a dropped");
    Events::of(posting.await.unwrap()).ends().await;
    assert_eq!(service.sessions_in_use(), 0);
}

// req: hosting:http:json-response-mode
#[tokio::test]
async fn in_json_mode_a_call_is_one_answer_and_goes_on_without_its_client() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().json_only();
    let session = Session::open(&service, LATEST).await;
    let post = |name: &'static str| {
        let session = session.clone();
        tokio::spawn(async move { session.post(&wait(7, name)).await })
    };
    let posting = post("a");
    assert_eq!(watch.next().await, "a started");
    watch.release();
    let answer = value(posting.await.unwrap()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "released");
    assert_eq!(watch.next().await, "a dropped");
    let posting = post("b");
    assert_eq!(watch.next().await, "b started");
    posting.abort();
    assert!(posting.await.is_err());
    assert_eq!(refusal(session.post(&wait(7, "c")).await).await, (400, -32600));
    watch.release();
    assert_eq!(watch.next().await, "b dropped");
    watch.nothing();
    assert_eq!(value(session.post(&call(7, "echo", json!({"text": "a"}))).await).await["id"], 7);
}

// req: hosting:http:disconnect-not-cancel, hosting:resume:replay
#[tokio::test]
async fn d31_a_connection_that_is_lost_is_no_cancel_and_the_answer_is_resumed() {
    let (server, mut watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let events = session.start(7, "a", &mut watch).await;
    let last = events.first();
    drop(events);
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    watch.nothing();
    let mut resumed = session.resume(&last).await;
    assert_eq!(resumed.message().await["params"]["progress"].as_f64(), Some(1.0));
    watch.release();
    assert_eq!(resumed.message().await["params"]["progress"].as_f64(), Some(2.0));
    let answer = resumed.next().await.unwrap();
    assert_eq!(answer.data["result"]["content"][0]["text"], "released");
    resumed.ends().await;
    // And again, for the same client may lose that one too.
    assert_eq!(session.resume(&last).await.rest().await.len(), 3);
    session.resume(answer.id()).await.ends().await;
}

#[tokio::test]
async fn an_id_in_flight_is_refused_and_the_first_is_not_disturbed() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let (session, other) =
        (Session::open(&service, LATEST).await, Session::open(&service, LATEST).await);
    let events = session.start(7, "a", &mut watch).await;
    for id in [json!(7), json!("7")] {
        let response = session.post(&ping(id.clone())).await;
        assert_eq!(response.status(), 400);
        let answer = value(response).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32600)));
    }
    // In another session it is another request.
    assert_eq!(other.post(&ping(7)).await.status(), 200);
    watch.release();
    assert_eq!(events.rest().await.len(), 2);
    assert_eq!(session.post(&ping(7)).await.status(), 200);
}

#[tokio::test]
async fn requests_in_flight_are_bounded_per_session_and_per_endpoint() {
    let (server, mut watch) = legacy_server_with(Limits::default().in_flight(1).http_in_flight(2));
    let service = server.http_service();
    let (one, two) = (Session::open(&service, LATEST).await, Session::open(&service, LATEST).await);
    let _first = one.start(1, "a", &mut watch).await;
    let response = one.post(&ping(2)).await;
    assert_eq!(response.status(), 503);
    assert!(text(response.into_body()).await.contains("(in_flight)"));
    let _second = two.start(1, "b", &mut watch).await;
    let response = two.post(&ping(2)).await;
    assert_eq!(response.status(), 503);
    assert!(text(response.into_body()).await.contains("(http_in_flight)"));
}

#[tokio::test]
async fn a_panic_is_an_error_without_details() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let mut events = Events::of(session.post(&call(1, "fail_later", json!({}))).await);
    events.priming().await;
    assert_eq!(events.message().await["params"]["progress"].as_f64(), Some(1.0));
    let answer = events.message().await;
    assert_eq!(answer["error"]["code"], -32603);
    assert!(!answer.to_string().contains("secret"));
    events.ends().await;
}

// req: logging:set-level
#[tokio::test]
async fn a_log_level_is_remembered_by_the_session_alone() {
    let (server, _watch) = legacy_server();
    let server = server.tool(turnbuckle::tool("log", async |ctx: turnbuckle::Ctx| {
        ctx.log(turnbuckle::types::LogLevel::Info, "said").await;
        "done"
    }));
    let service = server.http_service();
    let (session, other) =
        (Session::open(&service, LATEST).await, Session::open(&service, LATEST).await);
    let level = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel",
        "params": {"level": "info"}});
    let answer = value(session.post(&level).await).await;
    assert_eq!(answer["result"], json!({}));
    assert_eq!(service.sessions_in_use(), 0);
    let mut events = Events::of(session.post(&call(2, "log", json!({}))).await);
    events.priming().await;
    assert_eq!(events.message().await["params"]["data"], "said");
    assert!(value(other.post(&call(2, "log", json!({}))).await).await["result"].is_object());
}

#[tokio::test]
async fn a_handler_that_speaks_without_end_can_be_cancelled() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let endless = call(1, "count", json!({"n": u64::MAX}));
    let events = Events::of(session.post(&endless).await);
    drop(events);
    // It runs on the thread of this test, and lets it go on.
    tokio::task::yield_now().await;
    assert_eq!(session.post(&ping(2)).await.status(), 200);
    session.tell(&cancel(1)).await;
    assert_eq!(service.sessions_in_use(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_at_once_leave_nothing() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let mut clients = Vec::new();
    for client in 0..50 {
        let service = service.clone();
        clients.push(tokio::spawn(async move {
            let session = Session::open(&service, LATEST).await;
            for id in 0..20 {
                let (count, question) =
                    (call(id, "count", json!({"n": 50})), call(1000 + id, "question", json!({})));
                let (counted, asked) = tokio::join!(session.post(&count), session.post(&question));
                let mut counted = Events::of(counted);
                match (client + id) % 3 {
                    // Read to its end, lost and resumed, or cancelled.
                    0 => assert_eq!(counted.rest().await.len(), 52),
                    1 => {
                        let first = counted.priming().await;
                        drop(counted);
                        assert_eq!(session.resume(&first).await.rest().await.len(), 51);
                    }
                    _ => session.tell(&cancel(id)).await,
                }
                let mut asked = Events::of(asked);
                asked.priming().await;
                let question = asked.message().await["id"].clone();
                if id % 2 == 0 {
                    session.tell(&json!({"jsonrpc": "2.0", "id": question, "result": {}})).await;
                    assert!(asked.message().await["result"].is_object());
                } else {
                    session.tell(&cancel(1000 + id)).await;
                    assert_eq!(asked.message().await["params"]["requestId"], question);
                }
                asked.ends().await;
            }
            if client % 2 == 0 {
                assert_eq!(session.delete().await.status(), 204);
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    while service.sessions_in_use() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn e34_requests_started_and_cancelled_leave_nothing() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    for round in 0..10 {
        let session = Session::open(&service, LATEST).await;
        let mut open = Vec::new();
        for id in 0..100 {
            let name = format!("{round}/{id}");
            open.push(Events::of(session.post(&wait(id, &name)).await));
            assert_eq!(watch.next().await, format!("{name} started"));
        }
        assert_eq!(service.sessions_in_use(), 1);
        for id in 0..100 {
            session.tell(&cancel(id)).await;
            let mut told = [watch.next().await, watch.next().await];
            told.sort();
            assert_eq!(told, [format!("{round}/{id} dropped"), format!("{round}/{id} heard")]);
        }
        assert_eq!(service.sessions_in_use(), 0);
        for mut events in open {
            // What was read before the cancel, and no answer.
            while let Some(event) = events.next().await {
                assert!(event.data.get("id").is_none(), "{event:?}");
            }
        }
    }
}

#[tokio::test]
async fn when_the_service_is_gone_its_handlers_are() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let events = session.start(1, "a", &mut watch).await;
    let aside = Events::of(session.get(None).await);
    drop(service);
    tokio::task::yield_now().await;
    watch.nothing();
    drop(session);
    let mut told = [watch.next().await, watch.next().await];
    told.sort();
    assert_eq!(told, ["a dropped", "a heard"]);
    events.ends().await;
    aside.ends().await;
}
