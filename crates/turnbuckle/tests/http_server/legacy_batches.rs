//! Batches, which only 2025-03-26 has.

use serde_json::{Value, json};

use crate::{
    legacy_support::{
        Events, LATEST, Session, call, cancel, initialize, legacy_server, ping, refusal, value,
        wait,
    },
    support::Watch,
};

const BATCHES: &str = "2025-03-26";

fn notes() -> Value {
    json!([
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
    ])
}

#[tokio::test]
async fn what_is_ready_at_once_is_one_array_and_what_wants_no_answer_gets_none() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, BATCHES).await;
    session.tell(&notes()).await;
    let batch = json!([
        ping(1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2},
        call(3, "echo", json!({"text": "a"})),
        ping("x"),
    ]);
    let answer = value(session.post(&batch).await).await;
    let answers = answer.as_array().unwrap();
    assert_eq!(answers.len(), 4);
    assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&json!(1), &json!({})));
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers[2]["result"]["content"][0]["text"], "a");
    assert_eq!(answers[3]["id"], "x");
    assert_eq!(service.sessions_in_use(), 0);
}

// req: hosting:http:batch
#[tokio::test]
async fn batches_are_refused_elsewhere_and_so_are_empty_ones() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    for version in ["2024-11-05", "2025-06-18", LATEST] {
        let session = Session::open(&service, version).await;
        let response = session.post(&json!([ping(1)])).await;
        assert_eq!(refusal(response).await, (400, -32600), "{version}");
    }
    let session = Session::open(&service, BATCHES).await;
    assert_eq!(refusal(session.post(&json!([])).await).await, (400, -32600));
    let both = json!([ping(1), initialize(BATCHES)]);
    assert_eq!(refusal(session.post(&both).await).await, (400, -32600));
}

async fn started(watch: &mut Watch, count: usize) {
    for _ in 0..count {
        assert!(watch.next().await.ends_with("started"));
    }
}

#[tokio::test]
async fn requests_that_wait_share_a_stream_and_each_can_be_cancelled() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, BATCHES).await;
    let batch = json!([wait(1, "a"), ping(2), wait(3, "b"), wait(3, "c")]);
    let mut events = Events::of(session.post(&batch).await);
    started(&mut watch, 2).await;
    session.tell(&cancel(1)).await;
    assert_eq!(watch.next().await, "a dropped");
    assert_eq!(watch.next().await, "a heard");
    watch.release();
    let (mut ids, mut first) = (Vec::new(), None);
    while let Some(event) = events.next().await {
        first = first.or_else(|| event.id.clone());
        if let Some(id) = event.data.get("id") {
            ids.push((id.clone(), event.data["error"]["code"].clone()));
        }
    }
    let none = Value::Null;
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(ids.contains(&(json!(2), none.clone())));
    assert!(ids.contains(&(json!(3), json!(-32600))));
    assert_eq!(ids[2], (json!(3), none));
    assert_eq!(service.sessions_in_use(), 0);
    assert!(!session.resume(&first.unwrap()).await.rest().await.is_empty());
}

#[tokio::test]
async fn a_batch_of_which_all_is_cancelled_ends_without_an_answer() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, BATCHES).await;
    let mut events = Events::of(session.post(&json!([wait(1, "a"), wait(2, "b")])).await);
    started(&mut watch, 2).await;
    session.tell(&json!([cancel(1), cancel(2)])).await;
    while let Some(event) = events.next().await {
        assert!(event.data.get("id").is_none(), "{event:?}");
    }
    assert_eq!(service.sessions_in_use(), 0);
}

#[tokio::test]
async fn in_json_mode_a_batch_is_one_array() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().json_only();
    let session = Session::open(&service, BATCHES).await;
    let posting = tokio::spawn({
        let session = session.clone();
        async move { session.post(&json!([wait(1, "a"), ping(2), wait(3, "b")])).await }
    });
    started(&mut watch, 2).await;
    session.tell(&cancel(3)).await;
    watch.release();
    let answer = value(posting.await.unwrap()).await;
    let ids: Vec<_> = answer.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(2), &json!(1)]);
}

#[tokio::test]
async fn a_session_that_ends_takes_its_batches_with_it() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, BATCHES).await;
    let events = Events::of(session.post(&json!([wait(1, "a"), wait(2, "b")])).await);
    started(&mut watch, 2).await;
    assert_eq!(session.delete().await.status(), 204);
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(watch.next().await);
    }
    told.sort();
    assert_eq!(told, ["a dropped", "a heard", "b dropped", "b heard"]);
    events.ends().await;
    assert_eq!(service.sessions_in_use(), 0);
}
