//! What a client makes of what it is told: CANCELLATION A seen by a server that is a script.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle::{
    Client, ErrorKind, Limits,
    types::{CallToolResult, Era, Raw},
};
use turnbuckle_contract::Fixture;

use crate::{
    raw::{Peer, cancelled, client, client_with, connecting, in_both_eras, initialized, said},
    rig::{eventually, poll_once, virtually, why},
};

in_both_eras! {
    a05_an_answer_may_echo_the_number_for_the_text_and_the_reverse,
    a05_an_error_may_echo_the_number_for_the_text,
    a05_progress_may_echo_the_number_for_the_text,
    a07_an_answer_with_no_proper_id_matches_nothing,
    // req: protocol:cancel:late-response-ignored
    a08_a_late_or_unknown_answer_is_dropped_and_counted,
    a09_whoever_waits_at_the_end_and_whoever_comes_later_hear_the_same,
    a09_the_reason_of_the_end_survives_a_wedged_writer,
    a09_a_notification_after_the_end_is_dropped,
    a12a_an_error_without_an_id_is_accepted_and_counted,
    // req: protocol:error:null-id
    a12a_an_error_without_an_id_is_given_to_observers,
    a12b_a_cancel_reaches_observers,
    // req: protocol:custom-method:notification, custom-methods:notification-handler
    // req: protocol:fallback-notification-handler
    a12b_a_notification_that_nobody_knows_reaches_observers,
    // req: protocol:result-validation:invalid-result-sdkerror
    law01_an_answer_that_breaks_the_rules_ends_its_call,
    law02_the_second_answer_to_one_request_is_late,
    law05_progress_arrives_in_order_and_before_the_result,
    // req: protocol:progress:late-dropped-by-client
    law05_progress_after_the_result_goes_nowhere,
    law06_the_end_of_the_stream_ends_every_call_at_once,
    law07_junk_costs_one_line,
    law08_the_oldest_progress_gives_way_on_a_call_that_is_not_polled,
    law08_a_line_over_the_limit_costs_that_line,
    law08_an_answer_over_the_limit_ends_its_call,
    law08_an_answer_that_nests_too_deep_ends_its_call,
    law06_an_answer_without_a_line_end_is_the_last_word,
}

/// A call that is on the wire, and its request as the server saw it.
async fn started(
    peer: &mut Peer,
    call: turnbuckle::Call<CallToolResult>,
) -> (<turnbuckle::Call<CallToolResult> as IntoFuture>::IntoFuture, Value) {
    let mut call = call.into_future();
    assert!(poll_once(&mut call).await.is_none());
    (call, peer.read().await)
}

async fn a05_an_answer_may_echo_the_number_for_the_text_and_the_reverse(era: Era) {
    let (mut peer, client) = client(era).await;
    for (sent, echoed) in [(json!("7"), json!(7)), (json!(7), json!("7")), (json!("-3"), json!(-3))]
    {
        let id: turnbuckle::types::RequestId = serde_json::from_value(sent.clone()).unwrap();
        let (call, request) = started(&mut peer, client.call_tool("t", ()).request_id(id)).await;
        assert_eq!(request["id"], sent);
        peer.say(json!({"jsonrpc": "2.0", "id": echoed, "result": said("matched")})).await;
        assert_eq!(call.await.unwrap().to_text(), "matched");
    }
    let (mut call, request) = started(&mut peer, client.call_tool("t", ()).request_id("07")).await;
    peer.say(json!({"jsonrpc": "2.0", "id": 7, "result": said("not mine")})).await;
    eventually(|| client.counters().late_answers == 1).await;
    assert!(poll_once(&mut call).await.is_none());
    peer.answer(&request, said("mine")).await;
    assert_eq!(call.await.unwrap().to_text(), "mine");
}

async fn a05_an_error_may_echo_the_number_for_the_text(era: Era) {
    let (mut peer, client) = client(era).await;
    for (sent, echoed) in [(json!("7"), json!(7)), (json!(7), json!("7"))] {
        let id: turnbuckle::types::RequestId = serde_json::from_value(sent).unwrap();
        let (call, _) = started(&mut peer, client.call_tool("t", ()).request_id(id)).await;
        peer.refuse(&json!({"id": echoed}), json!({"code": -7, "message": "no", "data": [1]}))
            .await;
        let error = call.await.unwrap_err();
        let rpc = error.as_rpc().unwrap();
        assert_eq!((rpc.code, &*rpc.message), (-7, "no"));
        assert_eq!(rpc.data.as_ref().unwrap().as_str(), "[1]");
    }
}

fn progress(token: Value, value: u64) -> Value {
    let params = json!({"progressToken": token, "progress": value});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

/// What a call's progress callback was given.
#[derive(Clone, Default)]
struct Values(Arc<Mutex<Vec<f64>>>);

impl Values {
    fn callback(&self) -> impl FnMut(turnbuckle::types::Progress) + Send + 'static {
        let values = self.0.clone();
        move |progress| values.lock().unwrap().push(progress.progress)
    }

    fn seen(&self) -> Vec<f64> {
        self.0.lock().unwrap().clone()
    }
}

async fn a05_progress_may_echo_the_number_for_the_text(era: Era) {
    let (mut peer, client) = client(era).await;
    let values = Values::default();
    let call = client.call_tool("t", ()).request_id("7").on_progress(values.callback());
    let (call, request) = started(&mut peer, call).await;
    assert_eq!(request["params"]["_meta"]["progressToken"], "7");
    peer.say(progress(json!(7), 1)).await;
    peer.say(progress(json!("7"), 2)).await;
    for stranger in [json!("07"), json!(true), json!(7.0), json!(null), json!([7])] {
        peer.say(progress(stranger, 99)).await;
    }
    peer.answer(&request, said("done")).await;
    call.await.unwrap();
    assert_eq!(values.seen(), [1.0, 2.0]);
}

async fn a07_an_answer_with_no_proper_id_matches_nothing(era: Era) {
    let (mut peer, client) = client(era).await;
    let (mut one, request) = started(&mut peer, client.call_tool("t", ()).request_id(1)).await;
    let (mut zero, zeroth) = started(&mut peer, client.call_tool("t", ()).request_id(0)).await;
    for id in [json!(true), json!(false), json!(1.0), json!(0.0), json!(1.5), json!([1]), json!({})]
    {
        peer.say(json!({"jsonrpc": "2.0", "id": id, "result": said("stray")})).await;
        peer.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "stray"}}))
            .await;
    }
    peer.say(json!({"jsonrpc": "2.0", "id": null, "result": said("stray")})).await;
    peer.quiet().await;
    assert!(poll_once(&mut one).await.is_none() && poll_once(&mut zero).await.is_none());
    peer.answer(&request, said("one")).await;
    peer.answer(&zeroth, said("zero")).await;
    assert_eq!(one.await.unwrap().to_text(), "one");
    assert_eq!(zero.await.unwrap().to_text(), "zero");
}

async fn a08_a_late_or_unknown_answer_is_dropped_and_counted(era: Era) {
    let (mut peer, client) = client(era).await;
    peer.answer(&json!({"id": "never asked"}), said("x")).await;
    peer.refuse(&json!({"id": 4711}), json!({"code": -1, "message": "x"})).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    drop(call);
    assert_eq!(peer.read().await["method"], "notifications/cancelled");
    peer.answer(&request, said("late")).await;
    eventually(|| client.counters().late_answers == 3).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.answer(&request, said("in time")).await;
    assert_eq!(call.await.unwrap().to_text(), "in time");
    assert_eq!(client.counters().late_answers, 3);
}

async fn a09_whoever_waits_at_the_end_and_whoever_comes_later_hear_the_same(era: Era) {
    let (mut peer, client) = client(era).await;
    let (waiting, _) = started(&mut peer, client.call_tool("t", ())).await;
    drop(peer);
    let waited = waiting.await.unwrap_err();
    let later = client.call_tool("t", ()).await.unwrap_err();
    assert!(waited.is_closed() && later.is_closed());
    assert_eq!(why(&waited), why(&later));
    assert_eq!((waited.maybe_executed(), later.maybe_executed()), (true, false));
    // And still the same when the dust has settled.
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(why(&client.call_tool("t", ()).await.unwrap_err()), why(&waited));
}

async fn a09_the_reason_of_the_end_survives_a_wedged_writer(era: Era) {
    let (mut peer, client) = client_with(era, Client::builder().no_timeouts(), 64).await;
    let mut call = client.call_tool("stuck", json!({"padding": "x".repeat(500)})).into_future();
    assert!(poll_once(&mut call).await.is_none());
    peer.taste().await;
    peer.finish().await;
    let waited = call.await.unwrap_err();
    assert!(waited.is_closed());
    let told = client.call_tool("t", ()).await.unwrap_err();
    assert_eq!(why(&told), why(&waited));
    // Long after the writer was given up on.
    tokio::time::timeout(Duration::from_secs(30), std::future::pending::<()>()).await.unwrap_err();
    let told = client.call_tool("t", ()).await.unwrap_err();
    assert_eq!(why(&told), why(&waited));
}

async fn a09_a_notification_after_the_end_is_dropped(era: Era) {
    let (peer, client) = client(era).await;
    drop(peer);
    assert!(client.call_tool("t", ()).await.unwrap_err().is_closed());
    client.notify("notifications/x", json!({"a": 1})).await.unwrap();
}

async fn a12a_an_error_without_an_id_is_accepted_and_counted(era: Era) {
    let (mut peer, client) = client(era).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#).await;
    peer.say(r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"what?"}}"#).await;
    eventually(|| client.counters().stray_errors == 2).await;
    assert_eq!(client.counters().unreadable, 0);
    peer.answer(&request, said("unharmed")).await;
    assert_eq!(call.await.unwrap().to_text(), "unharmed");
    peer.quiet().await;
}

async fn a12a_an_error_without_an_id_is_given_to_observers(era: Era) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let builder = Client::builder().on_stray_error({
        let seen = seen.clone();
        move |error| {
            seen.lock().unwrap().push((error.code, error.message.to_string()));
            // A clumsy observer costs only itself.
            assert_ne!(error.code, -32600, "a clumsy observer");
        }
    });
    let (mut peer, client) = client_with(era, builder, 1 << 20).await;
    peer.say(r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"one"}}"#).await;
    peer.say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"two"}}"#).await;
    // One with an id is an answer, late or not.
    peer.refuse(&json!({"id": "never asked"}), json!({"code": -1, "message": "three"})).await;
    eventually(|| client.counters().late_answers == 1).await;
    let expected = [(-32600, "one".to_owned()), (-32700, "two".to_owned())];
    assert_eq!(*seen.lock().unwrap(), expected);
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.answer(&request, said("alive")).await;
    assert_eq!(call.await.unwrap().to_text(), "alive");
}

async fn a12b_a_cancel_reaches_observers(era: Era) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let builder = Client::builder().on_notification({
        let seen = seen.clone();
        move |method, params| {
            let params: Value = params.map(|params| params.decode().unwrap()).unwrap_or_default();
            seen.lock().unwrap().push((method.to_owned(), params));
        }
    });
    let (mut peer, _client) = client_with(era, builder, 1 << 20).await;
    peer.say(cancelled("who?")).await;
    peer.quiet().await;
    let seen = seen.lock().unwrap();
    assert_eq!(
        *seen,
        [("notifications/cancelled".to_owned(), cancelled("who?")["params"].clone())]
    );
}

async fn a12b_a_notification_that_nobody_knows_reaches_observers(era: Era) {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Rose {
        at: u32,
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let builder = Client::builder().on_notification({
        let seen = seen.clone();
        move |method, params| {
            let params = params.map(|params| params.decode::<Rose>().ok());
            seen.lock().unwrap().push((method.to_owned(), params));
        }
    });
    let (mut peer, client) = client_with(era, builder, 1 << 20).await;
    for params in [json!({"at": 3}), json!({"at": "dawn"})] {
        peer.say(json!({"jsonrpc": "2.0", "method": "example.com/moon", "params": params})).await;
    }
    peer.say(json!({"jsonrpc": "2.0", "method": "example.com/sun"})).await;
    // Whoever is called by the reader has been called when the answer is here.
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.answer(&request, said("alive")).await;
    call.await.unwrap();
    let moon = || "example.com/moon".to_owned();
    let expected = [
        (moon(), Some(Some(Rose { at: 3 }))),
        (moon(), Some(None)),
        ("example.com/sun".to_owned(), None),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

async fn law01_an_answer_that_breaks_the_rules_ends_its_call(era: Era) {
    let (mut peer, client) = client(era).await;
    for broken in [
        r#"{"jsonrpc":"2.0","id":"b","result":{"content":[]},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"1.0","id":"b","result":{"content":[]}}"#,
        r#"{"id":"b","result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"b","error":"not an object"}"#,
        r#"{"jsonrpc":"2.0","id":"b","result":{"content":[]},"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"b","result":{"content":"not a list"}}"#,
    ] {
        let (call, _) = started(&mut peer, client.call_tool("t", ()).request_id("b")).await;
        peer.say(broken).await;
        let error = call.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{broken}: {error}");
        assert!(error.maybe_executed());
    }
    peer.quiet().await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.answer(&request, said("alive")).await;
    assert_eq!(call.await.unwrap().to_text(), "alive");
}

async fn law02_the_second_answer_to_one_request_is_late(era: Era) {
    let (mut peer, client) = client(era).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.answer(&request, said("first")).await;
    peer.answer(&request, said("second")).await;
    peer.refuse(&request, json!({"code": -1, "message": "third"})).await;
    eventually(|| client.counters().late_answers == 2).await;
    assert_eq!(call.await.unwrap().to_text(), "first");
}

async fn law05_progress_arrives_in_order_and_before_the_result(era: Era) {
    let (mut peer, client) = client(era).await;
    let values = Values::default();
    let call = client.call_tool("t", ()).on_progress(values.callback());
    let (call, request) = started(&mut peer, call).await;
    let token = request["params"]["_meta"]["progressToken"].clone();
    assert_eq!(token, request["id"], "the token is the id");
    for value in 1..=500 {
        peer.say(progress(token.clone(), value)).await;
    }
    peer.answer(&request, said("done")).await;
    call.await.unwrap();
    assert_eq!(values.seen(), (1..=500).map(f64::from).collect::<Vec<_>>());
}

async fn law05_progress_after_the_result_goes_nowhere(era: Era) {
    let (mut peer, client) = client(era).await;
    let values = Values::default();
    let call = client.call_tool("t", ()).on_progress(values.callback());
    let (call, request) = started(&mut peer, call).await;
    let token = request["params"]["_meta"]["progressToken"].clone();
    peer.say(progress(token.clone(), 1)).await;
    peer.answer(&request, said("done")).await;
    peer.say(progress(token, 2)).await;
    peer.quiet().await;
    call.await.unwrap();
    assert_eq!(values.seen(), [1.0]);
}

async fn law06_the_end_of_the_stream_ends_every_call_at_once(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(started(&mut peer, client.call_tool("t", ())).await.0);
    }
    let before = tokio::time::Instant::now();
    drop(peer);
    for call in calls {
        let error = call.await.unwrap_err();
        assert!(error.is_closed() && error.maybe_executed() && error.as_rpc().is_none(), "{error}");
    }
    assert_eq!(before.elapsed(), Duration::ZERO, "they were made to wait");
}

async fn law07_junk_costs_one_line(era: Era) {
    let (mut peer, client) = client(era).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.say("Listening on port 3000").await;
    peer.say("").await;
    peer.bytes(b"\xff\xfe\xfd\n").await;
    peer.say("{\"half\":").await;
    peer.say("[]").await;
    peer.bytes(b"\r\n").await;
    peer.bytes(
        format!("{}\r\n", json!({"jsonrpc": "2.0", "id": request["id"], "result": said("found")}))
            .as_bytes(),
    )
    .await;
    assert_eq!(call.await.unwrap().to_text(), "found");
    peer.quiet().await;
    assert!(client.counters().unreadable >= 3, "{:?}", client.counters());
}

async fn law08_the_oldest_progress_gives_way_on_a_call_that_is_not_polled(era: Era) {
    let builder = Client::builder().limits(Limits::default().queued_notifications(8));
    let (mut peer, client) = client_with(era, builder, 1 << 20).await;
    let values = Values::default();
    let call = client.call_tool("t", ()).on_progress(values.callback());
    let (call, request) = started(&mut peer, call).await;
    for value in 1..=100 {
        peer.say(progress(request["id"].clone(), value)).await;
    }
    peer.answer(&request, said("done")).await;
    eventually(|| client.counters().overflowed == 92).await;
    assert_eq!(call.await.unwrap().to_text(), "done");
    assert_eq!(values.seen(), (93..=100).map(f64::from).collect::<Vec<_>>());
}

async fn law08_a_line_over_the_limit_costs_that_line(era: Era) {
    let builder = Client::builder().limits(Limits::default().line_bytes(2048));
    let (mut peer, client) = client_with(era, builder, 1 << 20).await;
    peer.say("x".repeat(100_000)).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.answer(&request, said("short")).await;
    assert_eq!(call.await.unwrap().to_text(), "short");
    assert_eq!(client.counters().unreadable, 1);
}

async fn law08_an_answer_over_the_limit_ends_its_call(era: Era) {
    let builder = Client::builder().limits(Limits::default().line_bytes(2048));
    let (mut peer, client) = client_with(era, builder, 1 << 20).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    peer.answer(&request, said(&"x".repeat(10_000))).await;
    let error = call.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains("2048") && error.maybe_executed(), "{error}");
    // The server has answered: there is nothing to cancel.
    peer.quiet().await;
}

async fn law08_an_answer_that_nests_too_deep_ends_its_call(era: Era) {
    let builder = Client::builder().limits(Limits::default().json_depth(40));
    let (mut peer, client) = client_with(era, builder, 1 << 20).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let id = &request["id"];
    peer.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"deep":{deep}}}}}"#)).await;
    let error = call.await.unwrap_err();
    assert!(error.to_string().contains("40") && error.maybe_executed(), "{error}");
    peer.quiet().await;
}

async fn law06_an_answer_without_a_line_end_is_the_last_word(era: Era) {
    let (mut peer, client) = client(era).await;
    let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
    let (other, _) = started(&mut peer, client.call_tool("t", ())).await;
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": said("the last word")});
    peer.bytes(answer.to_string().as_bytes()).await;
    peer.finish().await;
    assert_eq!(call.await.unwrap().to_text(), "the last word");
    assert!(other.await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn law01_a_client_takes_batches_in_the_revision_that_has_them() {
    virtually(async {
        let builder = Client::builder().revision(turnbuckle::Revision::V2025_03_26);
        let (mut peer, connecting) = connecting(builder, 1 << 20);
        let hello = peer.read().await;
        peer.answer(&hello, initialized("2025-03-26")).await;
        peer.read().await;
        let client = connecting.await.unwrap().unwrap();
        let (one, first) = started(&mut peer, client.call_tool("t", ())).await;
        let (two, second) = started(&mut peer, client.call_tool("t", ())).await;
        let answer = |request: &Value, text: &str| {
            json!({"jsonrpc": "2.0", "id": request["id"], "result": said(text)})
        };
        let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
        let unknown = json!({"jsonrpc": "2.0", "id": "u", "method": "roots/list"});
        let batch = json!([answer(&second, "two"), ping, answer(&first, "one"), unknown]);
        peer.say(batch).await;
        assert_eq!(one.await.unwrap().to_text(), "one");
        assert_eq!(two.await.unwrap().to_text(), "two");
        let answers = peer.read().await;
        let answers = answers.as_array().expect("a batch is answered with one");
        assert_eq!(answers.len(), 2, "{answers:?}");
        // Answers alone are not answered.
        let (three, third) = started(&mut peer, client.call_tool("t", ())).await;
        peer.say(json!([answer(&third, "three")])).await;
        assert_eq!(three.await.unwrap().to_text(), "three");
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn law08_a_server_that_asks_too_much_is_refused() {
    virtually(async {
        let (builder, ours) = holding();
        let builder = builder.limits(Limits::default().in_flight(2));
        let (mut peer, _client) = client_with(Era::Legacy, builder, 1 << 20).await;
        for id in 0..2 {
            peer.say(json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"})).await;
        }
        eventually(|| ours.of("question").started == 2).await;
        let refused = peer.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "roots/list"})).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains('2'), "{refused}");
        ours.release("question");
        assert!(peer.read().await["result"].is_object());
        assert!(peer.read().await["result"].is_object());
        let again = peer.ask(json!({"jsonrpc": "2.0", "id": 3, "method": "roots/list"})).await;
        assert!(again["result"].is_object(), "{again}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a12a_a_modern_client_answers_no_request() {
    virtually(async {
        let builder = Client::builder().on_request(async |_| Ok(Raw::empty_object()));
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        for method in ["ping", "roots/list", "sampling/createMessage", "unheard/of"] {
            peer.say(json!({"jsonrpc": "2.0", "id": method, "method": method})).await;
        }
        // Nor one that is broken.
        peer.say(r#"{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}"#).await;
        peer.quiet().await;
        assert_eq!(client.counters().dropped_requests, 4);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a11_a_legacy_client_refuses_an_id_that_is_in_flight() {
    virtually(async {
        let (builder, ours) = holding();
        let (mut peer, _client) = client_with(Era::Legacy, builder, 1 << 20).await;
        peer.say(json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})).await;
        eventually(|| ours.of("question").started == 1).await;
        let second = peer.ask(json!({"jsonrpc": "2.0", "id": "5", "method": "roots/list"})).await;
        assert_eq!(second["error"]["code"], -32600);
        ours.release("question");
        let first = peer.read().await;
        assert_eq!((&first["id"], first["result"].is_object()), (&json!(5), true), "{first}");
        peer.quiet().await;
    })
    .await;
}

// req: lifecycle:ping, ping:server-to-client, protocol:error:method-not-found
// req: roots:list:not-supported
// req: lifecycle:capability:client-not-declared
#[tokio::test(start_paused = true)]
async fn a12a_a_legacy_client_answers_pings_and_refuses_what_it_can_not_do() {
    virtually(async {
        let (mut peer, client) = client(Era::Legacy).await;
        let ping = peer.ask(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        assert_eq!(ping["result"], json!({}));
        let unknown = peer.ask(json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"})).await;
        assert_eq!(unknown["error"]["code"], -32601);
        let broken = peer.ask(json!({"jsonrpc": "2.0", "id": 9, "method": 5})).await;
        assert_eq!(broken["error"]["code"], -32600);
        assert_eq!(client.counters().dropped_requests, 0);
    })
    .await;
}

/// A client that holds the server's questions until the fixture lets them go.
fn holding() -> (turnbuckle::ClientBuilder, Fixture) {
    let fixture = Fixture::default();
    let ours = fixture.clone();
    let builder = Client::builder().on_request(move |_| {
        let ours = ours.clone();
        async move {
            let running = ours.start("question");
            ours.gate("question").await;
            running.finish();
            Ok(Raw::empty_object())
        }
    });
    (builder, fixture)
}

// req: protocol:cancel:server-to-client, protocol:cancel:in-flight
#[tokio::test(start_paused = true)]
async fn e35_a_question_that_the_server_gives_up_is_dropped_and_not_answered() {
    virtually(async {
        let (builder, ours) = holding();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let builder = builder.on_notification({
            let seen = seen.clone();
            move |method, _| seen.lock().unwrap().push(method.to_owned())
        });
        let (mut peer, _client) = client_with(Era::Legacy, builder, 1 << 20).await;
        peer.say(json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})).await;
        eventually(|| ours.of("question").started == 1).await;
        peer.say(cancelled("5")).await;
        eventually(|| ours.of("question").dropped == 1).await;
        ours.release("question");
        peer.quiet().await;
        assert_eq!(*seen.lock().unwrap(), ["notifications/cancelled"]);
        // The id is free again.
        peer.say(json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})).await;
        assert_eq!(peer.read().await["result"], json!({}));
    })
    .await;
}

// req: protocol:error:internal-error
#[tokio::test(start_paused = true)]
async fn a10_a_clients_callback_that_panics_is_answered_without_details() {
    virtually(async {
        let builder = Client::builder().on_request(|_| async {
            if true {
                panic!("{}", turnbuckle_contract::SECRET);
            }
            Ok(Raw::empty_object())
        });
        let (mut peer, client) = client_with(Era::Legacy, builder, 1 << 20).await;
        let answer = peer.ask(json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})).await;
        assert_eq!(answer["error"]["code"], -32603);
        assert!(!answer.to_string().contains("hunter2"), "{answer}");
        let (call, request) = started(&mut peer, client.call_tool("t", ())).await;
        peer.answer(&request, said("alive")).await;
        assert_eq!(call.await.unwrap().to_text(), "alive");
    })
    .await;
}
