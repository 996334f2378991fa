//! The laws of the architecture that the numbered lines leave open, on every wire.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use serde_json::{Value, json};
use turnbuckle::{Client, types::Era};
use turnbuckle_contract::SECRET;

use crate::rig::{Rig, Wire, contract, eventually, virtually};

contract! { everywhere on [memory stdio unix direct http sse] in [legacy modern]:
    law01_a_thousand_calls_of_every_sort_end_exactly_once,
    // req: tools:call:progress, protocol:progress:callback
    law05_progress_comes_in_order_all_of_it_and_before_the_result,
    // req: mcpserver:context:progress
    // req: client-transport:http:concurrent-streams
    law05_progress_of_many_calls_is_not_mixed,
    // req: tools:call:unknown-name, mcpserver:tool:unknown-name
    // req: mcpserver:tool:input-validation, protocol:error:invalid-params
    // req: protocol:error:method-not-found
    law07_bad_params_are_named_and_the_connection_lives,
    law07_a_version_that_is_not_served_is_told_apart,
}

contract! { limited unconnected on [memory stdio unix direct http] in [legacy modern]:
    law08_one_request_too_many_is_refused,
}

contract! { streams unconnected on [memory stdio unix] in [legacy modern]:
    law08_a_message_over_the_limit_is_refused,
}

contract! { in_process unconnected on [memory unix direct http] in [legacy modern]:
    law06_a_client_that_is_gone_leaves_no_handler_behind,
    law06_a_call_that_is_kept_running_ends_with_its_connection,
}

contract! { leaving unconnected on [memory unix http] in [legacy modern]:
    law06_a_server_that_is_gone_leaves_no_caller_waiting,
}

/// The same numbers on every run, and no two runs of a wire alike in time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

async fn law01_a_thousand_calls_of_every_sort_end_exactly_once(rig: &Rig) {
    let mut dice = Dice(7);
    let (mut abandoned, mut ended) = (0, Vec::new());
    for _ in 0..1_000 {
        let flight = match dice.roll(7) {
            0 => rig.launch(rig.tool("echo", json!({"text": "t"}))),
            1 => rig.launch(rig.tool("fail", json!({"text": "t"}))),
            2 => rig.launch(rig.tool("refuse", json!({}))),
            3 => rig.launch(rig.tool("progress", json!({"n": 3})).on_progress(|_| ())),
            4 => rig.launch(rig.tool("nope", json!({}))),
            5 => rig.launch(rig.tool("hold", json!({"key": "open"}))),
            _ => {
                let flight = rig.enter(rig.tool("hold", json!({"key": "shut"}))).await;
                if dice.roll(2) == 0 {
                    tokio::task::yield_now().await;
                }
                flight.abandon().await;
                abandoned += 1;
                continue;
            }
        };
        ended.push(flight);
    }
    assert!(abandoned > 50 && ended.len() > 500, "the dice are loaded");
    rig.release("open").await;
    for flight in ended {
        // One outcome each, and none of them lost: an error here is the server's own.
        if let Err(error) = flight.outcome().await {
            assert!(error.as_rpc().is_some(), "{error}");
        }
    }
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    let shut = ledger.of("shut");
    assert_eq!((shut.started, shut.finished), (shut.dropped, 0), "{shut:?}");
}

async fn law05_progress_comes_in_order_all_of_it_and_before_the_result(rig: &Rig) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let call = rig.tool("progress", json!({"n": 500})).on_progress({
        let seen = seen.clone();
        move |progress| seen.lock().unwrap().push(progress.progress as u32)
    });
    assert_eq!(call.await.unwrap().to_text(), "done");
    let at_the_result = seen.lock().unwrap().clone();
    assert_eq!(at_the_result, (1..=500).collect::<Vec<_>>());
    rig.alive().await;
    assert_eq!(seen.lock().unwrap().len(), 500, "some came after the result");
}

async fn law05_progress_of_many_calls_is_not_mixed(rig: &Rig) {
    let mut flights = Vec::new();
    for n in 1..=20 {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let call = rig.tool("progress", json!({"n": n})).on_progress({
            let seen = seen.clone();
            move |progress| seen.lock().unwrap().push((progress.progress as u32, progress.total))
        });
        flights.push((n, seen, rig.enter(call).await));
    }
    for (n, seen, flight) in flights {
        assert_eq!(flight.outcome().await.unwrap().to_text(), "done");
        let expected: Vec<_> = (1..=n).map(|step| (step, Some(f64::from(n)))).collect();
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}

async fn law07_bad_params_are_named_and_the_connection_lives(rig: &Rig) {
    let error = rig.client.request("tools/call", json!({"name": 5})).await.unwrap_err();
    let rpc = error.as_rpc().unwrap();
    assert_eq!(rpc.code, -32602);
    assert!(rpc.message.contains("name"), "{rpc}");
    let error = rig.tool("nope", json!({})).await.unwrap_err();
    assert_eq!(error.as_rpc().unwrap().code, -32602);
    assert!(error.to_string().contains("nope"), "{error}");
    let error = rig.client.request("unheard/of", ()).await.unwrap_err();
    assert_eq!(error.as_rpc().unwrap().code, -32601);
    let told = rig.tool("add", json!({"a": 1, "b": "two"})).await.unwrap();
    assert_eq!(told.is_error, Some(true));
    assert!(told.to_text().contains('b'), "{}", told.to_text());
    rig.alive().await;
}

/// The stamp is the client's own: nobody can write another version over it.
async fn law07_a_version_that_is_not_served_is_told_apart(rig: &Rig) {
    let call = rig.tool("identity", json!({}));
    let call = call.meta("io.modelcontextprotocol/protocolVersion", json!("1900-01-01"));
    let seen: Value = call.await.unwrap().structured_content.unwrap().decode().unwrap();
    assert_eq!(seen["revision"], crate::rig::pinned(rig.era).as_str());
}

async fn law08_one_request_too_many_is_refused(wire: Wire, era: Era) {
    let rig = Rig::with(wire, era, Client::builder(), &[("--in-flight", 4)]).await;
    let mut holding = Vec::new();
    for _ in 0..3 {
        holding.push(rig.hold("hold", "k").await);
    }
    let fourth = rig.enter(rig.tool("hold", json!({"key": "k"}))).await;
    let error = rig.tool("echo", json!({"text": "the fifth"})).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains('4') && told.contains("in flight"), "{told}");
    // The others are not disturbed, and with one of them gone there is room.
    holding.pop().unwrap().abandon().await;
    let released = async {
        while rig.tool("release", json!({"key": "k"})).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    released.await;
    for flight in holding.into_iter().chain([fourth]) {
        assert_eq!(flight.outcome().await.unwrap().to_text(), "k");
    }
    rig.alive().await;
}

async fn law08_a_message_over_the_limit_is_refused(wire: Wire, era: Era) {
    let rig = Rig::with(wire, era, Client::builder(), &[("--line-bytes", 4096)]).await;
    let error = rig.tool("echo", json!({"text": "x".repeat(10_000)})).await.unwrap_err();
    assert!(error.to_string().contains("4096"), "{error}");
    assert!(!error.maybe_executed(), "{error}");
    rig.alive().await;
}

async fn law06_a_client_that_is_gone_leaves_no_handler_behind(wire: Wire, era: Era) {
    let Rig { client, fixture, .. } = {
        let rig = Rig::new(wire, era).await;
        for tool in ["hold", "moved"] {
            let flight = rig.hold(tool, tool).await;
            // Its task goes on in the background until the connection is closed.
            drop(flight);
        }
        rig
    };
    let fixture = fixture.unwrap();
    client.close().await;
    eventually(|| fixture.ledger().in_flight == 0).await;
    assert_eq!(fixture.of("hold").dropped, 1);
    assert_eq!(fixture.of("moved").dropped, 1);
}

/// To keep running is not to be cancelled; it is not to outlive the connection.
async fn law06_a_call_that_is_kept_running_ends_with_its_connection(wire: Wire, era: Era) {
    let rig = Rig::new(wire, era).await;
    let kept = |key: &str| rig.tool("hold", json!({"key": key})).keep_running();
    rig.hold_as(kept("dropped"), "dropped").await.abandon().await;
    let waiting = rig.hold_as(kept("waiting"), "waiting").await;
    let fixture = rig.fixture.clone().unwrap();
    assert_eq!(fixture.ledger().in_flight, 2);
    rig.client.clone().close().await;
    assert!(waiting.error().await.is_closed());
    eventually(|| fixture.ledger().in_flight == 0).await;
}

async fn law06_a_server_that_is_gone_leaves_no_caller_waiting(wire: Wire, era: Era) {
    let rig = Rig::new(wire, era).await;
    let waiting = [rig.hold("hold", "a").await, rig.hold("hold", "b").await];
    rig.fixture.as_ref().unwrap().leave();
    for call in waiting {
        let error = call.error().await;
        assert!(error.as_rpc().is_some() || error.is_closed(), "{error}");
    }
}

/// Collects what is logged above `trace`, on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>, Arc<AtomicU64>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut text = attributes.metadata().name().to_owned();
        attributes.record(&mut Fields(&mut text));
        if *attributes.metadata().level() != tracing::Level::TRACE {
            self.0.lock().unwrap().push(text);
        }
        tracing::span::Id::from_u64(self.1.fetch_add(1, Relaxed) + 1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        let mut text = String::new();
        values.record(&mut Fields(&mut text));
        self.0.lock().unwrap().push(text);
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = event.metadata().level().to_string();
        event.record(&mut Fields(&mut text));
        if *event.metadata().level() != tracing::Level::TRACE {
            self.0.lock().unwrap().push(text);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

struct Fields<'a>(&'a mut String);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn law10_payloads_are_logged_at_trace_only_and_a_panic_in_the_log_alone() {
    let log = Log::default();
    let _listening = crate::heard::heard_by(log.clone());
    virtually(async {
        for wire in [Wire::Memory, Wire::Direct] {
            for era in [Era::Legacy, Era::Modern] {
                let rig = Rig::new(wire, era).await;
                rig.text("echo", json!({"text": "a payload"})).await;
                rig.tool("fail", json!({"text": "a payload"})).await.unwrap();
                rig.tool("echo", json!({"text": ["a payload"]})).await.unwrap();
                rig.client.notify("notifications/x", json!({"p": "a payload"})).await.unwrap();
                rig.client.request("x/y", json!({"p": "a payload"})).await.unwrap_err();
                rig.hold("hold", "a payload").await.abandon().await;
                assert!(rig.tool("panic", json!({})).await.is_err());
                rig.client.close().await;
            }
        }
    })
    .await;
    let log = log.0.lock().unwrap();
    let told: Vec<&String> = log.iter().filter(|line| line.contains("a payload")).collect();
    assert!(told.is_empty(), "{told:?}");
    let panics = log.iter().filter(|line| line.contains(SECRET)).count();
    assert_eq!(panics, 4, "each panic is in the log: {log:?}");
}
