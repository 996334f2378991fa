//! How a connection ends, by its client or by its server: lines 12 and 35, law 6.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle::{Limits, subscribe::Filter, types::Era};

use crate::{
    raw::{Served, client, in_both_eras, opened, opened_with},
    rig::{eventually, poll_once, virtually},
};

in_both_eras! {
    a12_a_shutdown_answers_each_request_once_and_ends_the_stream,
    a12_an_answer_that_is_being_written_is_finished_and_not_repeated,
    a12_a_shutdown_waits_no_longer_than_a_second_for_a_client_that_does_not_read,
    a12_a_cancelled_request_is_not_answered_by_the_shutdown,
    a12_when_the_wire_is_gone_nothing_is_written,
    law06_the_end_of_the_input_ends_an_idle_server_at_once,
    law06_the_end_of_the_input_ends_every_handler,
    law06_what_was_asked_before_the_end_of_the_input_is_answered,
    law06_dropping_the_serving_future_drops_every_handler,
}

async fn a12_a_shutdown_answers_each_request_once_and_ends_the_stream(era: Era) {
    let mut served = opened(era).await;
    for (id, tool) in [(1, "hold"), (2, "moved"), (3, "cooperative"), (4, "deaf"), (5, "shielded")]
    {
        served.hold(id, tool, tool).await;
    }
    served.fixture.leave();
    let mut answers = served.peer.rest().await;
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let error = json!({"code": -32603, "message": "server is shutting down"});
    let expected: Vec<Value> =
        (1..=5).map(|id| json!({"jsonrpc": "2.0", "id": id, "error": error})).collect();
    assert_eq!(answers, expected);
    served.serving.await.unwrap().unwrap();
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("hold").dropped == 1 && fixture.of("moved").dropped == 1).await;
    // What could not be dropped is told, and ends as it does after a cancel.
    eventually(|| fixture.of("cooperative").cancelled == 1).await;
    fixture.release("deaf");
    eventually(|| fixture.of("deaf").finished == 1).await;
}

async fn a12_an_answer_that_is_being_written_is_finished_and_not_repeated(era: Era) {
    let mut served = opened_with(era, Limits::default(), 512).await;
    served.hold(1, "hold", "k").await;
    let call = served.tool(2, "huge", json!({"bytes": 50_000}));
    served.peer.say(call).await;
    served.peer.taste().await;
    served.fixture.leave();
    let answers = served.peer.rest().await;
    let [huge, held] = &answers[..] else { panic!("{} answers", answers.len()) };
    assert_eq!(huge["id"], 2);
    assert_eq!(huge["result"]["content"][0]["text"].as_str().unwrap().len(), 50_000);
    assert_eq!((&held["id"], &held["error"]["code"]), (&json!(1), &json!(-32603)));
}

async fn a12_a_shutdown_waits_no_longer_than_a_second_for_a_client_that_does_not_read(era: Era) {
    let mut served = opened_with(era, Limits::default(), 512).await;
    let call = served.tool(2, "huge", json!({"bytes": 50_000}));
    served.peer.say(call).await;
    served.peer.taste().await;
    served.fixture.leave();
    let before = Instant::now();
    served.serving.await.unwrap().unwrap();
    let took = before.elapsed();
    assert!(took <= Duration::from_millis(1_100), "{took:?}");
}

async fn a12_a_cancelled_request_is_not_answered_by_the_shutdown(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "cooperative", "k").await;
    served.peer.say(crate::raw::cancelled(1)).await;
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").cancelled == 1).await;
    served.fixture.leave();
    assert_eq!(served.peer.rest().await, Vec::<Value>::new());
}

async fn a12_when_the_wire_is_gone_nothing_is_written(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "hold", "k").await;
    let Served { peer, fixture, serving, .. } = served;
    drop(peer.into_stream());
    let before = Instant::now();
    serving.await.unwrap().unwrap();
    assert!(before.elapsed() <= Duration::from_secs(1), "{:?}", before.elapsed());
    eventually(|| fixture.of("k").dropped == 1).await;
}

async fn law06_the_end_of_the_input_ends_an_idle_server_at_once(era: Era) {
    let mut served = opened(era).await;
    served.alive().await;
    let before = Instant::now();
    served.peer.finish().await;
    served.peer.ended().await;
    served.serving.await.unwrap().unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
}

async fn law06_the_end_of_the_input_ends_every_handler(era: Era) {
    let mut served = opened(era).await;
    for id in 0..10 {
        served.hold(id, "hold", "k").await;
    }
    let before = Instant::now();
    served.peer.finish().await;
    // The client can still read: it is told, or not, but never twice.
    let mut seen = [0; 10];
    for answer in served.peer.rest().await {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        seen[answer["id"].as_u64().unwrap() as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count <= 1), "{seen:?}");
    served.serving.await.unwrap().unwrap();
    assert!(before.elapsed() <= Duration::from_secs(1), "{:?}", before.elapsed());
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").dropped == 10).await;
}

async fn law06_what_was_asked_before_the_end_of_the_input_is_answered(era: Era) {
    let mut served = opened(era).await;
    for id in 0..50 {
        let call = served.tool(id, "echo", json!({"text": "x"}));
        served.peer.say(call).await;
    }
    // Without the line break that ends it: some clients leave it out.
    let last = served.tool(50, "huge", json!({"bytes": 10_000}));
    served.peer.bytes(last.to_string().as_bytes()).await;
    served.peer.finish().await;
    let mut answered: Vec<u64> = Vec::new();
    for answer in served.peer.rest().await {
        assert!(answer["result"].is_object(), "{answer}");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered.sort();
    assert_eq!(answered, (0..=50).collect::<Vec<_>>());
}

async fn law06_dropping_the_serving_future_drops_every_handler(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "hold", "k").await;
    served.hold(2, "moved", "m").await;
    served.serving.abort();
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").dropped == 1 && fixture.of("m").dropped == 1).await;
    served.peer.rest().await;
}

fn listen(served: &Served, id: impl Into<Value>) -> Value {
    served.request(id, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
}

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

// req: subscriptions:listen:ack-first-stamped, subscriptions:listen:graceful-close
#[tokio::test(start_paused = true)]
async fn e35_a_listen_stream_is_answered_first_and_cancelled_then() {
    virtually(async {
        let mut served = opened(Era::Modern).await;
        for id in [json!("one"), json!(2)] {
            let listen = listen(&served, id.clone());
            served.peer.say(listen).await;
            let acknowledged = served.peer.read().await;
            assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
            assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], id);
            assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}));
        }
        served.hold(3, "hold", "k").await;
        served.fixture.touch();
        for _ in 0..2 {
            let changed = served.peer.read().await;
            assert_eq!(changed["method"], "notifications/tools/list_changed");
        }
        served.fixture.leave();
        let said = served.peer.rest().await;
        for id in [json!("one"), json!(2)] {
            let of_this: Vec<&Value> = said
                .iter()
                .filter(|frame| frame["id"] == id || frame["params"]["requestId"] == id)
                .collect();
            let [result, cancel] = of_this[..] else { panic!("{of_this:?}") };
            assert_eq!(result["result"]["resultType"], "complete");
            assert_eq!(result["result"]["_meta"][SUBSCRIPTION], id);
            assert_eq!(cancel["method"], "notifications/cancelled");
            assert_eq!(cancel["params"]["requestId"], id);
        }
        let held: Vec<&Value> = said.iter().filter(|frame| frame["id"] == 3).collect();
        assert_eq!((held.len(), &held[0]["error"]["code"]), (1, &json!(-32603)));
        assert_eq!(said.len(), 5, "a modern server cancels nothing else: {said:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e35_a_listen_stream_that_its_client_ends_is_not_answered() {
    virtually(async {
        let mut served = opened(Era::Modern).await;
        let listen = listen(&served, 1);
        served.peer.say(listen).await;
        served.peer.read().await;
        assert_eq!(served.fixture.ledger().listeners, 1);
        served.peer.say(crate::raw::cancelled(1)).await;
        served.fixture.touch();
        served.peer.quiet().await;
        assert_eq!(served.fixture.ledger().listeners, 0);
        served.fixture.leave();
        served.peer.ended().await;
    })
    .await;
}

/// The ways in which a server may end a listen stream, each in good order.
// req: subscriptions:listen:client:graceful-close
#[tokio::test(start_paused = true)]
async fn e35_a_client_accepts_the_result_or_the_cancel_in_either_order() {
    virtually(async {
        for ways in [&["result"][..], &["cancel"], &["result", "cancel"], &["cancel", "result"]] {
            let (mut peer, client) = client(Era::Modern).await;
            let mut listening = client.listen(Filter::new().tools()).into_future();
            assert!(poll_once(&mut listening).await.is_none());
            let request = peer.read().await;
            let meta = json!({SUBSCRIPTION: request["id"]});
            let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
            let method = "notifications/subscriptions/acknowledged";
            peer.say(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
            let mut listening = listening.await.unwrap();
            for way in ways {
                match *way {
                    "result" => {
                        let result = json!({"resultType": "complete", "_meta": meta});
                        peer.answer(&request, result).await;
                    }
                    _ => peer.say(crate::raw::cancelled(request["id"].clone())).await,
                }
            }
            assert!(listening.next().await.is_none(), "{ways:?}");
            assert!(listening.next().await.is_none(), "{ways:?}");
            drop(listening);
            // What the server has ended is not cancelled.
            peer.quiet().await;
        }
    })
    .await;
}

// req: subscriptions:listen:client:lost
#[tokio::test(start_paused = true)]
async fn e35_a_listen_stream_with_neither_was_lost() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let mut listening = client.listen(Filter::new().tools()).into_future();
        assert!(poll_once(&mut listening).await.is_none());
        let request = peer.read().await;
        let params = json!({"_meta": {SUBSCRIPTION: request["id"]}, "notifications": {}});
        let method = "notifications/subscriptions/acknowledged";
        peer.say(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
        let mut listening = listening.await.unwrap();
        // It has no clock: a day later it is still open.
        let day = Duration::from_secs(24 * 3600);
        assert!(tokio::time::timeout(day, listening.next()).await.is_err());
        drop(peer);
        let lost = listening.next().await.expect("the end of the stream is not its good order");
        assert!(lost.unwrap_err().is_closed());
        assert!(listening.next().await.is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn b13_a_dropped_listen_stream_is_cancelled_exactly_once() {
    virtually(async {
        let (mut peer, client) = client(Era::Modern).await;
        let mut listening = client.listen(Filter::new().tools()).into_future();
        assert!(poll_once(&mut listening).await.is_none());
        let request = peer.read().await;
        drop(listening);
        let cancel = peer.read().await;
        assert_eq!(cancel["method"], "notifications/cancelled");
        assert_eq!(cancel["params"]["requestId"], request["id"]);
        peer.quiet().await;
    })
    .await;
}
