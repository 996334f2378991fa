//! CANCELLATION A on every wire: how a request ends, and what its id is.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle::{
    Client, ErrorKind,
    client::Reconnect,
    types::{Era, RequestId},
};
use turnbuckle_contract::{Count, SECRET};

use crate::rig::{Rig, Wire, contract, eventually, why};

contract! { everywhere on [memory stdio unix direct http sse] in [legacy modern]:
    // req: tools:call:content:text, tools:call:structured-content
    a01_a_result_arrives,
    a01_the_peers_error_arrives_intact,
    // req: protocol:timeout:basic
    a01_time_that_runs_out_is_a_timeout,
    // req: protocol:error:connection-closed
    a01_a_close_ends_whoever_waits,
    a01_two_hundred_large_answers_all_arrive,
    // req: tools:list:basic
    a01_every_tool_is_listed,
    a02_options_can_all_be_given_at_once,
    a02_a_call_that_is_kept_running_is_not_cancelled,
    // req: mcpserver:tool:extra, protocol:request-id:caller-supplied
    a03_a_supplied_id_reaches_the_peer_exactly,
    a03_a_minted_id_is_an_integer,
    a04_an_id_in_flight_is_refused_by_name,
    a04_an_id_is_free_again_however_its_request_ended,
    a05_text_and_number_are_one_key,
    a06_a_minted_id_skips_those_that_callers_took,
    a09_after_a_close_everyone_is_told_the_same,
    // req: tools:call:is-error, mcpserver:tool:handler-throws, protocol:error:internal-error
    a10_a_handlers_failure_is_an_error_without_details,
    a10_a_panicking_progress_callback_costs_only_itself,
}

// Over HTTP a cancel by name never reaches the peer: `c_client` has those lines.
contract! { by_name on [memory stdio unix direct] in [legacy modern]:
    a07_what_is_no_id_cancels_nothing,
}

contract! { with_settings unconnected on [memory stdio unix direct http] in [legacy modern]:
    a10_a_panicking_observer_costs_only_itself,
    a12b_progress_reaches_observers_too,
    // req: tools:call:logging-mid-execution, mcpserver:context:logging
    a12b_log_messages_reach_observers,
}

contract! { streams on [memory stdio unix] in [legacy modern]:
    a12_a_shutdown_answers_what_still_runs,
}

contract! { in_process unconnected on [memory unix direct http] in [legacy modern]:
    a11_ids_are_scoped_to_the_connection,
}

async fn a01_a_result_arrives(rig: &Rig) {
    assert_eq!(
        rig.text("echo", json!({"text": "líne\nbreak \u{1F980}"})).await,
        "líne\nbreak \u{1F980}"
    );
    let sum = rig.tool("add", json!({"a": 2, "b": 40})).await.unwrap();
    assert_eq!(sum.structured_content.unwrap().as_str(), r#"{"sum":42}"#);
}

async fn a01_the_peers_error_arrives_intact(rig: &Rig) {
    let error = rig.tool("refuse", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Remote);
    let rpc = error.as_rpc().unwrap();
    assert_eq!((rpc.code, &*rpc.message), (-32099, "refused"));
    let data: Value = rpc.data.as_ref().unwrap().decode().unwrap();
    assert_eq!(data, json!({"why": [1, "two"]}));
}

async fn a01_time_that_runs_out_is_a_timeout(rig: &Rig) {
    let call = rig.tool("hold", json!({"key": "k"})).timeout(Duration::from_millis(30));
    let error = call.await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(error.as_rpc().is_none(), "a timeout has no code");
    assert!(error.to_string().contains("30ms"), "{error}");
    // On a busy machine it may have been given up before its handler could begin.
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!(ledger.of("k").finished, 0);
}

async fn a01_a_close_ends_whoever_waits(rig: &Rig) {
    let waiting = [rig.hold("hold", "a").await, rig.hold("hold", "b").await];
    rig.client.clone().close().await;
    for call in waiting {
        let error = call.error().await;
        assert!(error.is_closed(), "{error}");
        assert!(error.as_rpc().is_none(), "a close has no code");
        assert!(error.maybe_executed());
    }
}

async fn a01_two_hundred_large_answers_all_arrive(rig: &Rig) {
    let calls: Vec<_> =
        (0..200).map(|_| rig.launch(rig.tool("huge", json!({"bytes": 65_536})))).collect();
    for call in calls {
        let text = call.outcome().await.unwrap().to_text();
        assert!(text.len() == 65_536 && text.bytes().all(|byte| byte == b'x'));
    }
}

async fn a01_every_tool_is_listed(rig: &Rig) {
    let tools = rig.client.tools().all().await.unwrap();
    for name in ["echo", "hold", "ask", "deaf"] {
        assert!(tools.iter().any(|tool| tool.name == name), "{name}");
    }
    assert_eq!(rig.client.list_tools().await.unwrap().tools.len(), tools.len());
}

async fn a02_options_can_all_be_given_at_once(rig: &Rig) {
    let seen = Arc::new(AtomicU64::new(0));
    let call = rig
        .tool("progress", json!({"n": 3}))
        .request_id("all at once")
        .timeout(Duration::from_secs(10))
        .idle_timeout(Duration::from_secs(10))
        .meta("example.com/trace", json!("t"))
        .keep_running()
        .on_progress({
            let seen = seen.clone();
            move |_| _ = seen.fetch_add(1, Relaxed)
        });
    assert_eq!(call.await.unwrap().to_text(), "done");
    assert_eq!(seen.load(Relaxed), 3);
}

async fn a02_a_call_that_is_kept_running_is_not_cancelled(rig: &Rig) {
    let call = rig.tool("hold", json!({"key": "kept"})).keep_running();
    rig.hold_as(call, "kept").await.abandon().await;
    rig.alive().await;
    assert_eq!(rig.report().await.of("kept"), Count { started: 1, ..Count::default() });
    rig.release("kept").await;
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!(ledger.of("kept"), Count { started: 1, finished: 1, ..Count::default() });
}

async fn a03_a_supplied_id_reaches_the_peer_exactly(rig: &Rig) {
    let ids: [RequestId; 12] = [
        "7".into(),
        7.into(),
        "07".into(),
        "+7".into(),
        "7.0".into(),
        "".into(),
        "null".into(),
        "a \"quoted\" \\ line\nbreak é".into(),
        0.into(),
        (-1).into(),
        i64::MIN.into(),
        u64::MAX.into(),
    ];
    for id in ids {
        let call = rig.tool("identity", json!({})).request_id(id.clone());
        let seen = call.await.unwrap().structured_content.unwrap();
        assert_eq!(seen.decode::<Value>().unwrap()["id"], id.to_string());
    }
}

async fn a03_a_minted_id_is_an_integer(rig: &Rig) {
    for _ in 0..3 {
        minted(rig).await;
    }
}

/// The id that the next request without one was given.
async fn minted(rig: &Rig) -> u64 {
    let seen = rig.tool("identity", json!({})).await.unwrap().structured_content.unwrap();
    let id = seen.decode::<Value>().unwrap()["id"].clone();
    id.as_str().unwrap().parse().unwrap_or_else(|_| panic!("{id} is no integer"))
}

async fn a04_an_id_in_flight_is_refused_by_name(rig: &Rig) {
    let first =
        rig.hold_as(rig.tool("hold", json!({"key": "first"})).request_id("x-17"), "first").await;
    let second = rig.tool("hold", json!({"key": "second"})).request_id("x-17").await.unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Refused);
    assert!(second.to_string().contains("x-17"), "{second}");
    assert!(!second.maybe_executed());
    assert_eq!(rig.report().await.of("second").started, 0);
    rig.release("first").await;
    assert_eq!(first.outcome().await.unwrap().to_text(), "first");
}

async fn a04_an_id_is_free_again_however_its_request_ended(rig: &Rig) {
    let id = || RequestId::from("again");
    rig.tool("echo", json!({"text": "a result"})).request_id(id()).await.unwrap();
    assert!(rig.tool("refuse", json!({})).request_id(id()).await.is_err());
    assert!(rig.tool("panic", json!({})).request_id(id()).await.is_err());
    let timed_out = rig.tool("hold", json!({"key": "t"})).timeout(Duration::from_millis(10));
    assert!(timed_out.request_id(id()).await.unwrap_err().is_timeout());
    let call = rig.tool("hold", json!({"key": "dropped"})).request_id(id());
    rig.hold_as(call, "dropped").await.abandon().await;
    // Refused as it stands: the params name one member twice.
    let twice =
        serde_json::value::RawValue::from_string(r#"{"name":"a","name":"b"}"#.into()).unwrap();
    let malformed = rig.client.request("tools/call", twice).request_id(id()).await.unwrap_err();
    assert_ne!(malformed.kind(), ErrorKind::Timeout, "{malformed}");
    let free = rig.tool("echo", json!({"text": "free"})).request_id(id()).await.unwrap();
    assert_eq!(free.to_text(), "free");
}

async fn a05_text_and_number_are_one_key(rig: &Rig) {
    let pairs: [(RequestId, RequestId); 3] = [
        ("7".into(), 7.into()),
        ((-3).into(), "-3".into()),
        (u64::MAX.into(), u64::MAX.to_string().into()),
    ];
    for (held, taken) in pairs {
        let key = held.to_string();
        let call = rig.tool("hold", json!({"key": key})).request_id(held);
        let flight = rig.hold_as(call, &key).await;
        let refused =
            rig.tool("echo", json!({"text": "x"})).request_id(taken.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{taken} is free beside {key}");
        assert!(refused.to_string().contains(&taken.to_string()), "{refused}");
        rig.release(&key).await;
        flight.outcome().await.unwrap();
    }
    let call = rig.tool("hold", json!({"key": "seven"})).request_id(7);
    let seven = rig.hold_as(call, "seven").await;
    for other in ["07", "+7", "7.0", " 7", "-7", "7 "] {
        let call = rig.tool("echo", json!({"text": other})).request_id(other);
        assert_eq!(call.await.unwrap().to_text(), other);
    }
    rig.release("seven").await;
    seven.outcome().await.unwrap();
}

async fn a06_a_minted_id_skips_those_that_callers_took(rig: &Rig) {
    let last = minted(rig).await;
    let taken: Vec<u64> = (last + 1..=last + 40).collect();
    let mut holding = Vec::new();
    for id in &taken {
        let call = rig.tool("hold", json!({"key": "taken"}));
        let call = if id % 2 == 0 { call.request_id(id.to_string()) } else { call.request_id(*id) };
        holding.push(rig.enter(call).await);
    }
    rig.until(|ledger| ledger.of("taken").started == 40).await;
    let mut seen = Vec::new();
    for _ in 0..5 {
        let id = minted(rig).await;
        assert!(!taken.contains(&id) && !seen.contains(&id), "{id}");
        seen.push(id);
    }
    rig.release("taken").await;
    for call in holding {
        assert_eq!(call.outcome().await.unwrap().to_text(), "taken");
    }
}

async fn a07_what_is_no_id_cancels_nothing(rig: &Rig) {
    let call = rig.tool("hold", json!({"key": "one"})).request_id(1);
    let one = rig.hold_as(call, "one").await;
    let zero = rig.hold_as(rig.tool("hold", json!({"key": "zero"})).request_id(0), "zero").await;
    for id in [
        json!(true),
        json!(false),
        json!(1.0),
        json!(0.0),
        json!(1.5),
        json!(null),
        json!([1]),
        json!({}),
    ] {
        rig.client.notify("notifications/cancelled", json!({"requestId": id})).await.unwrap();
    }
    rig.alive().await;
    let ledger = rig.report().await;
    assert_eq!((ledger.in_flight, ledger.of("one").dropped, ledger.of("zero").dropped), (2, 0, 0));
    // The key of the same request, written as text, does.
    rig.client.notify("notifications/cancelled", json!({"requestId": "1"})).await.unwrap();
    rig.until(|ledger| ledger.of("one").dropped == 1).await;
    assert!(!one.is_over(), "a cancelled request is not answered");
    rig.release("zero").await;
    assert_eq!(zero.outcome().await.unwrap().to_text(), "zero");
}

async fn a09_after_a_close_everyone_is_told_the_same(rig: &Rig) {
    let waiting = rig.hold("hold", "k").await;
    rig.client.clone().close().await;
    let waited = waiting.error().await;
    let later = rig.tool("echo", json!({"text": "x"})).await.unwrap_err();
    assert!(waited.is_closed() && later.is_closed());
    assert_eq!(why(&waited), why(&later));
    assert!(!later.maybe_executed(), "it was never sent");
    rig.client.notify("notifications/roots/list_changed", ()).await.unwrap();
}

async fn a10_a_handlers_failure_is_an_error_without_details(rig: &Rig) {
    for tool in ["panic", "panic_blocking", "broken"] {
        let error = rig.tool(tool, json!({})).await.unwrap_err();
        let rpc = error.as_rpc().unwrap_or_else(|| panic!("{tool}: {error}"));
        assert_eq!(rpc.code, -32603, "{tool}");
        assert!(!format!("{error} {error:?} {rpc:?}").contains(SECRET), "{tool}: {error:?}");
    }
    let told = rig.tool("fail", json!({"text": "no such city"})).await.unwrap();
    assert_eq!((told.is_error, told.to_text().as_str()), (Some(true), "no such city"));
    rig.alive().await;
}

async fn a10_a_panicking_progress_callback_costs_only_itself(rig: &Rig) {
    let call = rig.tool("progress", json!({"n": 5})).on_progress(|_| panic!("a clumsy callback"));
    assert_eq!(call.await.unwrap().to_text(), "done");
    rig.alive().await;
}

async fn a10_a_panicking_observer_costs_only_itself(wire: Wire, era: Era) {
    let builder = Client::builder().on_notification(|_, _| panic!("a clumsy observer"));
    let rig = Rig::with(wire, era, builder, &[]).await;
    let seen = Arc::new(AtomicU64::new(0));
    let call = rig.tool("progress", json!({"n": 5})).on_progress({
        let seen = seen.clone();
        move |_| _ = seen.fetch_add(1, Relaxed)
    });
    assert_eq!(call.await.unwrap().to_text(), "done");
    assert_eq!(seen.load(Relaxed), 5);
    rig.alive().await;
}

/// What an observer saw: methods, and what they carried.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

async fn observed(wire: Wire, era: Era) -> (Rig, Seen) {
    let seen = Seen::default();
    let builder = Client::builder().on_notification({
        let seen = seen.clone();
        move |method, params| {
            let params = params.map(|params| params.decode().unwrap()).unwrap_or_default();
            seen.lock().unwrap().push((method.to_owned(), params));
        }
    });
    (Rig::with(wire, era, builder, &[]).await, seen)
}

async fn a12b_progress_reaches_observers_too(wire: Wire, era: Era) {
    let (rig, seen) = observed(wire, era).await;
    let used = Arc::new(AtomicU64::new(0));
    let call = rig.tool("progress", json!({"n": 3})).on_progress({
        let used = used.clone();
        move |_| _ = used.fetch_add(1, Relaxed)
    });
    assert_eq!(call.await.unwrap().to_text(), "done");
    assert_eq!(used.load(Relaxed), 3, "the call itself is told");
    let values: Vec<Value> =
        seen.lock().unwrap().iter().map(|(_, params)| params["progress"].clone()).collect();
    assert_eq!(values, [1, 2, 3].map(Value::from), "the observer is told");
    assert!(seen.lock().unwrap().iter().all(|(method, _)| method == "notifications/progress"));
}

async fn a12b_log_messages_reach_observers(wire: Wire, era: Era) {
    let (rig, seen) = observed(wire, era).await;
    let mut call = rig.tool("log", json!({"text": "a word"}));
    match era {
        Era::Legacy => {
            rig.client.request("logging/setLevel", json!({"level": "info"})).await.unwrap();
        }
        Era::Modern => call = call.meta("io.modelcontextprotocol/logLevel", json!("info")),
    }
    call.await.unwrap();
    let seen = seen.lock().unwrap();
    let [(method, params)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((method.as_str(), &params["data"]), ("notifications/message", &json!("a word")));
}

async fn a12_a_shutdown_answers_what_still_runs(rig: &Rig) {
    // A client that does not start a spawned server again.
    let builder = Client::builder().reconnect(Reconnect::never());
    let rig = &Rig::with(rig.wire, rig.era, builder, &[]).await;
    let waiting = [rig.hold("hold", "a").await, rig.hold("moved", "b").await];
    // Its own answer may be written before the end; an error about the end is as good.
    let leave = rig.tool("leave", json!({})).await;
    if let Err(error) = leave {
        assert!(error.to_string().contains("server is shutting down"), "{error}");
    }
    for call in waiting {
        let error = call.error().await;
        let rpc = error.as_rpc().unwrap_or_else(|| panic!("not answered: {error}"));
        assert_eq!((rpc.code, &*rpc.message), (-32603, "server is shutting down"));
    }
    let later = async {
        loop {
            match rig.tool("echo", json!({"text": "x"})).await {
                Err(error) if error.is_closed() => break,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    later.await;
    if let Some(fixture) = &rig.fixture {
        eventually(|| fixture.ledger().in_flight == 0).await;
    }
}

async fn a11_ids_are_scoped_to_the_connection(wire: Wire, era: Era) {
    let (one, two) = (Rig::new(wire, era).await, Rig::new(wire, era).await);
    let same = |rig: &Rig| rig.tool("hold", json!({"key": "k"})).request_id("same");
    let (first, second) = (one.hold_as(same(&one), "k").await, two.hold_as(same(&two), "k").await);
    second.abandon().await;
    two.until(|ledger| ledger.of("k").dropped == 1).await;
    assert_eq!(one.report().await.of("k").dropped, 0);
    one.release("k").await;
    assert_eq!(first.outcome().await.unwrap().to_text(), "k");
}
