//! Questions of a handler to its client.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    legacy_support::{Events, LATEST, Session, call, cancel, legacy_server, ping, value},
    support::text,
};

fn answer(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}})
}

/// Calls a tool that asks, and reads its question.
async fn asked(session: &Session, id: i64, tool: &str) -> (Events, Value) {
    let mut events = Events::of(session.post(&call(id, tool, json!({}))).await);
    events.first = Some(events.priming().await);
    let question = events.message().await;
    assert_eq!(question["method"], "roots/list", "{question}");
    assert!(question["id"].is_i64());
    (events, question["id"].clone())
}

fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

// req: transport:streamable-http:server-to-client
#[tokio::test]
async fn a_question_goes_out_on_the_stream_of_its_request_and_is_answered_by_a_post() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let (mut one, first) = asked(&session, 1, "question").await;
    let (mut two, second) = asked(&session, 2, "question").await;
    assert_ne!(first, second);
    // Answers that nobody waits for are taken and dropped.
    session.tell(&answer(&json!(99))).await;
    session
        .tell(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}))
        .await;
    session.tell(&answer(&second)).await;
    assert_eq!(said(&two.message().await), r#"{"roots":[]}"#);
    two.ends().await;
    // By the key of its id.
    session.tell(&answer(&json!(first.to_string()))).await;
    assert_eq!(said(&one.message().await), r#"{"roots":[]}"#);
    one.ends().await;
    session.tell(&answer(&first)).await;
}

#[tokio::test]
async fn an_error_of_the_client_arrives_intact() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let (mut events, id) = asked(&session, 1, "question").await;
    let error = json!({"code": -32001, "message": "not now"});
    session.tell(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    let text = events.message().await;
    assert!(said(&text).contains("not now") && said(&text).contains("-32001"), "{text}");
}

#[tokio::test]
async fn an_answer_that_cant_be_read_ends_the_question() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let (mut events, id) = asked(&session, 1, "question").await;
    let response = session.post(&json!({"jsonrpc": "2.0", "id": id, "error": 5})).await;
    assert_eq!(response.status(), 400);
    assert!(said(&events.message().await).contains("can't be read"));
}

#[tokio::test(start_paused = true)]
async fn e35_a_question_that_is_given_up_is_cancelled_once_on_its_own_stream() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let (mut events, id) = asked(&session, 1, "impatient").await;
    let cancelled = events.message().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], id);
    assert_eq!(said(&events.message().await), "gave up");
    events.ends().await;
    session.tell(&answer(&id)).await;
}

#[tokio::test]
async fn a_question_that_outlives_its_request_is_cancelled_before_the_answer() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let (events, id) = asked(&session, 1, "leaving").await;
    let rest = events.rest().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0].data["params"]["requestId"], id);
    assert_eq!(said(&rest[1].data), "left");
}

#[tokio::test]
async fn a_cancelled_call_takes_its_questions_with_it() {
    let (server, _watch) = legacy_server();
    let service = server.http_service();
    let session = Session::open(&service, LATEST).await;
    let (mut events, id) = asked(&session, 1, "question").await;
    session.tell(&cancel(1)).await;
    assert_eq!(events.message().await["params"]["requestId"], id);
    events.ends().await;
    session.tell(&answer(&id)).await;
    assert_eq!(service.sessions_in_use(), 0);
}

#[tokio::test]
async fn a_question_waits_for_a_client_that_went_away() {
    let (server, _watch) = legacy_server();
    let session = Session::open(&server.http_service(), LATEST).await;
    let (events, id) = asked(&session, 1, "question").await;
    let first = events.first.clone().unwrap();
    drop(events);
    let mut resumed = session.resume(&first).await;
    assert_eq!(resumed.message().await["id"], id);
    session.tell(&answer(&id)).await;
    assert_eq!(said(&resumed.message().await), r#"{"roots":[]}"#);
}

// req: transport:streamable-http:json-response-restrictions
// req: transport:streamable-http:stateless-restrictions
#[tokio::test]
async fn where_there_is_no_way_to_ask_the_handler_is_told_at_once() {
    let (server, _watch) = legacy_server();
    let json_only = server.http_service().json_only();
    let session = Session::open(&json_only, LATEST).await;
    let answer = value(session.post(&call(1, "question", json!({}))).await).await;
    assert!(said(&answer).contains("JSON only"), "{answer}");
    let stateless = server.http_service().without_sessions();
    let answer = session.at(&stateless).post(&call(1, "question", json!({}))).await;
    let answer = value(answer).await;
    // Nothing is known of such a client.
    assert!(said(&answer).contains("can't be sent"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn silence_is_broken_by_comments_that_are_no_events() {
    let (server, mut watch) = legacy_server();
    let service = server.http_service().keep_alive(Duration::from_secs(3));
    let session = Session::open(&service, LATEST).await;
    let mut body = session.post(&crate::legacy_support::wait(1, "a")).await.into_body();
    assert_eq!(watch.next().await, "a started");
    let mut seen = String::new();
    while seen.matches("\n:\n").count() < 1 {
        seen += &crate::support::frame(&mut body).await.unwrap();
    }
    assert!(!seen.contains(":\n\n:"), "{seen:?}");
    watch.release();
    assert!(text(body).await.contains("released"));
    assert_eq!(session.post(&ping(1)).await.status(), 200);
}
