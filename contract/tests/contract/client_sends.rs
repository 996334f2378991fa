//! What a client writes, byte by byte, when its calls are made and given up: CANCELLATION A
//! and B seen by a server that is a script.

use std::{future::IntoFuture, pin::Pin, time::Duration};

use serde_json::{Value, json};
use turnbuckle::{
    Client, ErrorKind,
    types::{Era, PromptReference},
};

use crate::{
    raw::{Peer, cancelled, client, client_with, connecting, in_both_eras, said},
    rig::{pinned, poll_once, virtually},
};

in_both_eras! {
    a03_ids_stand_on_the_wire_as_they_were_given,
    a04_a_refused_id_is_not_written,
    b13_a_dropped_call_is_cancelled_exactly_once,
    b13_a_timeout_says_so,
    b13_an_idle_timeout_says_so,
    b13_the_cancel_names_the_id_as_it_stands_on_the_wire,
    // req: protocol:cancel:sender-targeting
    b13_an_answered_call_that_is_dropped_is_not_cancelled,
    b13_a_refused_call_that_is_dropped_is_not_cancelled,
    b13_an_answered_call_that_is_dropped_late_leaves_its_successor_alone,
    b14_a_call_that_was_never_polled_is_not_written,
    b14_a_call_that_was_never_written_is_taken_back,
    b14_a_call_whose_write_has_begun_counts_as_written,
    b14_a_call_that_waits_behind_another_in_the_same_breath,
    b14_a_call_that_waits_for_room_was_never_written,
    b15_a_call_that_is_kept_running_is_not_cancelled,
    b16_dropping_never_waits_for_a_wedged_writer,
    b16_a_wedged_writer_is_given_up_at_the_close,
    b20_later_calls_follow_a_cancel,
    // req: transport:stdio:no-embedded-newlines
    a_message_is_one_line_whatever_it_says,
    law08_a_notification_waits_for_a_server_that_does_not_read,
}

/// The cancel of a request, as it must stand on the wire.
fn cancel_of(request: &Value, reason: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": request["id"], "reason": reason},
    })
}

type BoxFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

fn patient() -> turnbuckle::ClientBuilder {
    Client::builder().no_timeouts()
}

async fn a03_ids_stand_on_the_wire_as_they_were_given(era: Era) {
    let (mut peer, client) = client(era).await;
    for (id, token) in [
        (turnbuckle::types::RequestId::from("7"), r#""id":"7""#),
        (7.into(), r#""id":7"#),
        ("07".into(), r#""id":"07""#),
        ("".into(), r#""id":"""#),
        (u64::MAX.into(), r#""id":18446744073709551615"#),
        (i64::MIN.into(), r#""id":-9223372036854775808"#),
    ] {
        let mut call = client.call_tool("t", ()).request_id(id).into_future();
        assert!(poll_once(&mut call).await.is_none());
        let line = peer.line().await.unwrap();
        assert!(line.contains(token), "{line}");
        peer.answer(&serde_json::from_str(&line).unwrap(), said("ok")).await;
        assert_eq!(call.await.unwrap().to_text(), "ok");
    }
    let mut call = client.call_tool("t", ()).into_future();
    assert!(poll_once(&mut call).await.is_none());
    assert!(peer.read().await["id"].is_u64(), "an integer is minted");
}

async fn a04_a_refused_id_is_not_written(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut first = client.call_tool("t", ()).request_id("7").into_future();
    assert!(poll_once(&mut first).await.is_none());
    let request = peer.read().await;
    for taken in [turnbuckle::types::RequestId::from("7"), 7.into()] {
        let refused = client.call_tool("t", ()).request_id(taken).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
    }
    peer.quiet().await;
    peer.answer(&request, said("first")).await;
    assert_eq!(first.await.unwrap().to_text(), "first");
}

async fn b13_a_dropped_call_is_cancelled_exactly_once(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut call = client.call_tool("t", ()).into_future();
    assert!(poll_once(&mut call).await.is_none());
    let request = peer.read().await;
    drop(call);
    assert_eq!(peer.read().await, cancel_of(&request, "caller cancelled"));
    peer.quiet().await;
    // A later answer is dropped.
    peer.answer(&request, said("too late")).await;
    peer.quiet().await;
    assert_eq!(client.counters().late_answers, 1);
}

async fn b13_a_timeout_says_so(era: Era) {
    let (mut peer, client) = client_with(era, patient(), 1 << 20).await;
    let call = client.call_tool("t", ()).timeout(Duration::from_secs(3));
    let (error, request) = tokio::join!(call, peer.read());
    let error = error.unwrap_err();
    assert!(error.is_timeout() && error.to_string().contains("timed out after 3s"), "{error}");
    assert_eq!(peer.read().await, cancel_of(&request, "timed out after 3s"));
    peer.quiet().await;
}

async fn b13_an_idle_timeout_says_so(era: Era) {
    let (mut peer, client) = client_with(era, patient(), 1 << 20).await;
    let call = client.call_tool("t", ()).idle_timeout(Duration::from_secs(2));
    let (error, request) = tokio::join!(call, peer.read());
    assert!(error.unwrap_err().is_timeout());
    let cancel = peer.read().await;
    assert_eq!(cancel["params"]["requestId"], request["id"]);
    let reason = cancel["params"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("timed out after 2s"), "{reason}");
    peer.quiet().await;
}

async fn b13_the_cancel_names_the_id_as_it_stands_on_the_wire(era: Era) {
    let (mut peer, client) = client(era).await;
    for (id, token) in [
        (turnbuckle::types::RequestId::from("7"), r#""requestId":"7""#),
        (7.into(), r#""requestId":7"#),
        ("a \"b\"".into(), r#""requestId":"a \"b\"""#),
    ] {
        let mut call = client.call_tool("t", ()).request_id(id).into_future();
        assert!(poll_once(&mut call).await.is_none());
        peer.read().await;
        drop(call);
        let cancel = peer.line().await.unwrap();
        assert!(cancel.contains(token), "{cancel}");
    }
}

/// Waits until the client has read everything that was said to it so far.
async fn read_up_to_here(peer: &mut Peer, client: &Client) {
    let mut call = client.call_tool("fence", ()).into_future();
    assert!(poll_once(&mut call).await.is_none());
    let request = peer.read().await;
    assert_eq!(request["params"]["name"], "fence", "something else was written: {request}");
    peer.answer(&request, said("fence")).await;
    assert_eq!(call.await.unwrap().to_text(), "fence");
}

async fn b13_an_answered_call_that_is_dropped_is_not_cancelled(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut call = client.call_tool("t", ()).into_future();
    assert!(poll_once(&mut call).await.is_none());
    let request = peer.read().await;
    peer.answer(&request, said("unread")).await;
    read_up_to_here(&mut peer, &client).await;
    drop(call);
    peer.quiet().await;
    assert_eq!(client.counters().late_answers, 0);
}

async fn b13_a_refused_call_that_is_dropped_is_not_cancelled(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut call = client.call_tool("t", ()).into_future();
    assert!(poll_once(&mut call).await.is_none());
    let request = peer.read().await;
    peer.refuse(&request, json!({"code": -32603, "message": "no"})).await;
    read_up_to_here(&mut peer, &client).await;
    drop(call);
    peer.quiet().await;
}

async fn b13_an_answered_call_that_is_dropped_late_leaves_its_successor_alone(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut first = client.call_tool("first", ()).request_id("x").into_future();
    assert!(poll_once(&mut first).await.is_none());
    let request = peer.read().await;
    peer.answer(&request, said("unread")).await;
    read_up_to_here(&mut peer, &client).await;
    // The id is free, and in use again, before the first call is gone.
    let mut second = client.call_tool("second", ()).request_id("x").into_future();
    assert!(poll_once(&mut second).await.is_none());
    let request = peer.read().await;
    drop(first);
    peer.quiet().await;
    peer.answer(&request, said("second")).await;
    assert_eq!(second.await.unwrap().to_text(), "second");
}

async fn b14_a_call_that_was_never_polled_is_not_written(era: Era) {
    let (mut peer, client) = client(era).await;
    drop(client.call_tool("t", ()));
    drop(client.call_tool("t", ()).into_future());
    peer.quiet().await;
}

/// A client whose writer is stuck in the middle of a call: the server has seen one byte of it
/// and reads no further.
async fn stuck(era: Era) -> (Peer, Client, turnbuckle::Call<turnbuckle::types::CallToolResult>) {
    let (peer, client) = client_with(era, patient(), 64).await;
    let call = client.call_tool("stuck", json!({"padding": "x".repeat(500)}));
    (peer, client, call)
}

async fn b14_a_call_that_was_never_written_is_taken_back(era: Era) {
    let (mut peer, client, first) = stuck(era).await;
    let mut first = first.into_future();
    assert!(poll_once(&mut first).await.is_none());
    peer.taste().await;
    let mut second = client.call_tool("second", ()).request_id("second").into_future();
    assert!(poll_once(&mut second).await.is_none());
    drop(second);
    // The id is free at once, and what is written under it is another request.
    let mut third = client.call_tool("third", ()).request_id("second").into_future();
    assert!(poll_once(&mut third).await.is_none());
    let request = peer.read().await;
    assert_eq!(request["params"]["name"], "stuck");
    let written = peer.read().await;
    assert_eq!(written["params"]["name"], "third");
    peer.quiet().await;
    drop(third);
    assert_eq!(peer.read().await, cancel_of(&written, "caller cancelled"));
    peer.answer(&request, said("unstuck")).await;
    assert_eq!(first.await.unwrap().to_text(), "unstuck");
}

async fn b14_a_call_whose_write_has_begun_counts_as_written(era: Era) {
    let (mut peer, _client, first) = stuck(era).await;
    let mut first = first.into_future();
    assert!(poll_once(&mut first).await.is_none());
    peer.taste().await;
    drop(first);
    let request = peer.read().await;
    assert_eq!(request["params"]["name"], "stuck", "a line is never left half written");
    assert_eq!(peer.read().await, cancel_of(&request, "caller cancelled"));
    peer.quiet().await;
}

/// Two calls in one breath: of the second not a byte has left when it is dropped.
async fn b14_a_call_that_waits_behind_another_in_the_same_breath(era: Era) {
    let (mut peer, client, first) = stuck(era).await;
    let mut first = first.into_future();
    let mut second = client.call_tool("second", ()).into_future();
    assert!(poll_once(&mut first).await.is_none());
    assert!(poll_once(&mut second).await.is_none());
    peer.taste().await;
    drop(second);
    let request = peer.read().await;
    assert_eq!(request["params"]["name"], "stuck");
    peer.quiet().await;
    drop(first);
    assert_eq!(peer.read().await, cancel_of(&request, "caller cancelled"));
}

/// A client that holds back what it has to say long before anything is too much.
fn reserved() -> turnbuckle::ClientBuilder {
    patient().limits(turnbuckle::Limits::default().unsent_bytes(32 * 1024))
}

async fn b14_a_call_that_waits_for_room_was_never_written(era: Era) {
    let (mut peer, client) = client_with(era, reserved(), 64).await;
    let padding = json!({"padding": "x".repeat(2_000)});
    let mut written = Vec::new();
    for index in 0..20 {
        let call = client.call_tool("t", &padding).request_id(format!("call {index}"));
        let mut call = call.into_future();
        assert!(poll_once(&mut call).await.is_none());
        written.push(call);
        // The first is on its way, most of the rest wait, and nobody can tell where the line
        // is drawn: what counts is that each of them is dropped in time.
        if index == 0 {
            peer.taste().await;
        }
    }
    written.truncate(1);
    let request = peer.read().await;
    assert_eq!(request["id"], "call 0");
    peer.quiet().await;
    // Their ids are free, whether they had been entered or not.
    let call = client.call_tool("last", ()).request_id("call 19");
    let mut call = call.into_future();
    assert!(poll_once(&mut call).await.is_none());
    assert_eq!(peer.read().await["params"]["name"], "last");
}

async fn law08_a_notification_waits_for_a_server_that_does_not_read(era: Era) {
    let (mut peer, client) = client_with(era, reserved(), 64).await;
    let padding = "x".repeat(1_000);
    let mut sent = 0;
    // What is told to nobody is not kept without end: soon the teller waits.
    let flood = async {
        for index in 0..1_000 {
            let params = json!({"index": index, "padding": padding});
            client.notify("notifications/x", params).await.unwrap();
            sent = index + 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), flood).await.is_err());
    assert!(sent < 100, "{sent} notifications of a kilobyte wait for a limit of 32");
    // The one that waited was dropped and was never said; the rest arrives in order.
    let told: Vec<u64> =
        peer.lull().await.iter().map(|note| note["params"]["index"].as_u64().unwrap()).collect();
    assert_eq!(told, (0..sent).collect::<Vec<u64>>());
}

async fn b15_a_call_that_is_kept_running_is_not_cancelled(era: Era) {
    let (mut peer, client) = client_with(era, patient(), 1 << 20).await;
    let mut call = client.call_tool("t", ()).keep_running().into_future();
    assert!(poll_once(&mut call).await.is_none());
    peer.read().await;
    drop(call);
    let timed = client.call_tool("t", ()).keep_running().timeout(Duration::from_secs(1));
    let (error, _) = tokio::join!(timed, peer.read());
    assert!(error.unwrap_err().is_timeout());
    peer.quiet().await;
}

async fn b16_dropping_never_waits_for_a_wedged_writer(era: Era) {
    let (mut peer, client, first) = stuck(era).await;
    let mut first = first.into_future();
    assert!(poll_once(&mut first).await.is_none());
    peer.taste().await;
    let before = tokio::time::Instant::now();
    drop(first);
    let timed = client.call_tool("timed", ()).timeout(Duration::from_secs(1));
    assert!(timed.await.unwrap_err().is_timeout());
    assert_eq!(before.elapsed(), Duration::from_secs(1), "the cancel held its caller");
}

async fn b16_a_wedged_writer_is_given_up_at_the_close(era: Era) {
    let (mut peer, client, first) = stuck(era).await;
    let mut first = first.into_future();
    assert!(poll_once(&mut first).await.is_none());
    peer.taste().await;
    drop(first);
    let before = tokio::time::Instant::now();
    client.close().await;
    assert!(before.elapsed() <= Duration::from_secs(2), "{:?}", before.elapsed());
}

async fn b20_later_calls_follow_a_cancel(era: Era) {
    let (mut peer, client) = client(era).await;
    for _ in 0..3 {
        let mut call = client.call_tool("t", ()).into_future();
        assert!(poll_once(&mut call).await.is_none());
        let request = peer.read().await;
        drop(call);
        assert_eq!(peer.read().await, cancel_of(&request, "caller cancelled"));
        read_up_to_here(&mut peer, &client).await;
    }
}

async fn a_message_is_one_line_whatever_it_says(era: Era) {
    let (mut peer, client) = client(era).await;
    let text = "one\ntwo\r\n\n";
    let call = client.call_tool(text, json!({"text": text, "\n": text})).meta("x/\n", json!(text));
    let mut call = call.into_future();
    assert!(poll_once(&mut call).await.is_none());
    let heard = peer.read().await;
    assert_eq!(
        (&heard["params"]["name"], &heard["params"]["_meta"]["x/\n"]),
        (&json!(text), &json!(text))
    );
    assert_eq!(heard["params"]["arguments"], json!({"text": text, "\n": text}));
    drop(call);
    assert_eq!(peer.read().await["method"], "notifications/cancelled");
    client.notify("x/\n", json!({"text": text})).await.unwrap();
    assert_eq!(peer.read().await["params"]["text"], text);
    peer.quiet().await;
}

// req: lifecycle:envelope:stamped-on-every-request, lifecycle:stateless:request-envelope
#[tokio::test(start_paused = true)]
async fn every_request_has_the_envelope_and_no_notification_has() {
    virtually(async {
        let builder = Client::builder().info("host", "2.1");
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        let reference = PromptReference::new("p");
        let calls: [BoxFuture<'_>; 8] = [
            Box::pin(async { drop(client.list_tools().await) }),
            Box::pin(async { drop(client.call_tool("t", ()).await) }),
            Box::pin(async { drop(client.list_resources().await) }),
            Box::pin(async { drop(client.read_resource("a://b").await) }),
            Box::pin(async { drop(client.get_prompt("p", ()).await) }),
            Box::pin(async { drop(client.complete(reference, "a", "b").await) }),
            Box::pin(async { drop(client.discover().await) }),
            Box::pin(async { drop(client.request("example.com/own", ()).await) }),
        ];
        let mut methods = Vec::new();
        for mut call in calls {
            assert!(poll_once(&mut call).await.is_none());
            let request = peer.read().await;
            let meta = &request["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{request}");
            let info = json!({"name": "host", "version": "2.1"});
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"], info, "{request}");
            assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}), "{request}");
            methods.push(request["method"].as_str().unwrap().to_owned());
            peer.refuse(&request, json!({"code": -1, "message": "no"})).await;
            call.await;
        }
        methods.sort();
        methods.dedup();
        assert_eq!(methods.len(), 8, "{methods:?}");
        client.notify("example.com/said", json!({"a": 1})).await.unwrap();
        let note = peer.read().await;
        assert_eq!(
            note,
            json!({"jsonrpc": "2.0", "method": "example.com/said", "params": {"a": 1}})
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b15_an_abandoned_discover_is_not_cancelled() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let mut call = client.discover().into_future();
        assert!(poll_once(&mut call).await.is_none());
        assert_eq!(peer.read().await["method"], "server/discover");
        drop(call);
        // Nor one that is sent by its name.
        let mut call = client.request("server/discover", ()).into_future();
        assert!(poll_once(&mut call).await.is_none());
        assert_eq!(peer.read().await["method"], "server/discover");
        drop(call);
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b15_an_abandoned_probe_is_not_cancelled() {
    virtually(async {
        let (mut peer, connecting) = connecting(Client::builder(), 1 << 20);
        assert_eq!(peer.read().await["method"], "server/discover");
        connecting.abort();
        peer.ended().await;
    })
    .await;
}

// req: protocol:cancel:initialize-not-cancellable
#[tokio::test(start_paused = true)]
async fn b15_an_abandoned_handshake_is_not_cancelled() {
    virtually(async {
        let builder = || Client::builder().revision(pinned(Era::Legacy));
        let (mut peer, dropped) = connecting(builder(), 1 << 20);
        assert_eq!(peer.read().await["method"], "initialize");
        dropped.abort();
        peer.ended().await;
        let impatient = builder().connect_timeout(Duration::from_secs(2));
        let (mut peer, timed_out) = connecting(impatient, 1 << 20);
        assert_eq!(peer.read().await["method"], "initialize");
        assert!(timed_out.await.unwrap().unwrap_err().is_timeout());
        peer.ended().await;
    })
    .await;
}

/// An explicit cancel goes out as it is: a bridge may know more than this client.
#[tokio::test(start_paused = true)]
async fn b13_an_explicit_cancel_is_written_as_it_is() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let explicit = cancelled("7");
        client.notify("notifications/cancelled", &explicit["params"]).await.unwrap();
        assert_eq!(peer.read().await, explicit);
        peer.quiet().await;
    })
    .await;
}
