//! CANCELLATION B on every wire: what abandoning a request does to the other side.

use std::time::Duration;

use serde_json::json;
use turnbuckle_contract::Count;

use crate::rig::{Rig, contract};

contract! { everywhere on [memory stdio unix direct http sse] in [legacy modern]:
    // req: protocol:cancel:abort-signal, protocol:cancel:handler-abort-propagates
    b13_dropping_a_call_stops_its_handler,
    // req: protocol:timeout:sends-cancellation
    b13_a_timeout_stops_the_handler,
    b14_a_call_that_was_never_polled_never_was,
    // req: protocol:cancel:unknown-id-ignored
    b18_a_cancel_that_names_nothing_is_ignored,
    b18_a_cancel_after_the_answer_changes_nothing,
    // req: protocol:cancel:abort-scoped
    b19_the_other_call_runs_on,
    b19_every_second_of_a_hundred_is_abandoned,
    // req: protocol:cancel:server-survives
    b20_the_connection_serves_on,
}

// Over HTTP a cancel by name never reaches the peer: `c_client` has those lines.
contract! { by_name on [memory stdio unix direct] in [legacy modern]:
    // req: protocol:cancel:in-flight
    b17_a_named_cancel_stops_the_handler_and_is_not_answered,
}

const DROPPED: Count = Count { started: 1, finished: 0, dropped: 1, cancelled: 0, reached: 0 };

async fn b13_dropping_a_call_stops_its_handler(rig: &Rig) {
    rig.hold("hold", "k").await.abandon().await;
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!(ledger.of("k"), DROPPED);
}

async fn b13_a_timeout_stops_the_handler(rig: &Rig) {
    let short = Duration::from_millis(20);
    let hold = |key: &str| rig.tool("hold", json!({"key": key}));
    let calls =
        [("total", hold("total").timeout(short)), ("idle", hold("idle").idle_timeout(short))];
    for (key, call) in calls {
        assert!(call.await.unwrap_err().is_timeout());
        let count = rig.until(|ledger| ledger.in_flight == 0).await.of(key);
        // On a busy machine it may have been given up before its handler could begin.
        assert_eq!((count.started, count.finished), (count.dropped, 0), "{count:?}");
    }
}

async fn b14_a_call_that_was_never_polled_never_was(rig: &Rig) {
    drop(rig.tool("hold", json!({"key": "k"})));
    drop(std::future::IntoFuture::into_future(rig.tool("hold", json!({"key": "k"}))));
    rig.alive().await;
    assert_eq!(rig.report().await.of("k"), Count::default());
}

async fn b17_a_named_cancel_stops_the_handler_and_is_not_answered(rig: &Rig) {
    let call = rig.tool("hold", json!({"key": "k"})).request_id("named");
    let flight = rig.hold_as(call, "k").await;
    let name = json!({"requestId": "named", "reason": "by name"});
    rig.client.notify("notifications/cancelled", name).await.unwrap();
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!(ledger.of("k"), DROPPED);
    rig.alive().await;
    assert!(!flight.is_over(), "a cancelled request got an answer");
    flight.abandon().await;
    rig.alive().await;
}

async fn b18_a_cancel_that_names_nothing_is_ignored(rig: &Rig) {
    let flight = rig.hold("hold", "k").await;
    for params in [
        json!({"requestId": "never heard of"}),
        json!({"requestId": 999_999}),
        json!({"reason": "no id"}),
        json!({"requestId": {"id": 1}}),
        json!({}),
    ] {
        rig.client.notify("notifications/cancelled", params).await.unwrap();
    }
    rig.client.notify("notifications/cancelled", ()).await.unwrap();
    rig.alive().await;
    rig.release("k").await;
    assert_eq!(flight.outcome().await.unwrap().to_text(), "k");
    assert_eq!(rig.report().await.of("k").finished, 1);
}

async fn b18_a_cancel_after_the_answer_changes_nothing(rig: &Rig) {
    let answer = rig.tool("echo", json!({"text": "first"})).request_id("again").await.unwrap();
    assert_eq!(answer.to_text(), "first");
    rig.client.notify("notifications/cancelled", json!({"requestId": "again"})).await.unwrap();
    // The next use of the id is another request: an old cancel does not touch it.
    let call = rig.tool("hold", json!({"key": "k"})).request_id("again");
    let flight = rig.hold_as(call, "k").await;
    rig.release("k").await;
    assert_eq!(flight.outcome().await.unwrap().to_text(), "k");
}

async fn b19_the_other_call_runs_on(rig: &Rig) {
    let stays = rig.hold("hold", "stays").await;
    let goes = rig.hold("hold", "goes").await;
    goes.abandon().await;
    let ledger = rig.until(|ledger| ledger.of("goes").dropped == 1).await;
    assert_eq!(ledger.of("stays"), Count { started: 1, ..Count::default() });
    rig.release("stays").await;
    assert_eq!(stays.outcome().await.unwrap().to_text(), "stays");
}

async fn b19_every_second_of_a_hundred_is_abandoned(rig: &Rig) {
    let mut flights = Vec::new();
    for index in 0..100 {
        let key = format!("{}", index % 2);
        flights.push(rig.enter(rig.tool("hold", json!({"key": key}))).await);
    }
    rig.until(|ledger| ledger.in_flight == 100).await;
    let mut stay = Vec::new();
    for (index, flight) in flights.into_iter().enumerate() {
        if index % 2 == 1 { flight.abandon().await } else { stay.push(flight) }
    }
    let ledger = rig.until(|ledger| ledger.in_flight == 50).await;
    assert_eq!((ledger.of("0").dropped, ledger.of("1").dropped), (0, 50));
    rig.release("0").await;
    for flight in stay {
        assert_eq!(flight.outcome().await.unwrap().to_text(), "0");
    }
    assert_eq!(rig.report().await.in_flight, 0);
}

async fn b20_the_connection_serves_on(rig: &Rig) {
    for round in 0..20 {
        let key = format!("round {round}");
        rig.hold("hold", &key).await.abandon().await;
        let sum = rig.tool("add", json!({"a": round, "b": 1})).await.unwrap();
        assert_eq!(sum.structured_content.unwrap().as_str(), format!(r#"{{"sum":{}}}"#, round + 1));
    }
    rig.until(|ledger| ledger.in_flight == 0).await;
}
