//! CANCELLATION E on every wire: what the server does with a request that was given up.
//!
//! Line 36 (a call that became a task) waits for tasks to exist.

use std::sync::{Arc, Mutex};

use serde_json::json;
use turnbuckle::{
    Client, ErrorKind,
    subscribe::{Event, Filter},
    types::{ClientCapabilities, Era, Raw, RootsCapability, SamplingCapability},
};
use turnbuckle_contract::Count;

use crate::rig::{Rig, Wire, contract};

contract! { everywhere on [memory stdio unix direct http sse] in [legacy modern]:
    e32_a_cancelled_handler_stops_within_a_scheduling_step,
    e32_a_cooperative_handler_is_told_and_may_wind_down,
    e32_a_stubborn_handler_is_ended_after_its_grace,
    e32_a_sync_tool_can_ask_whether_it_is_cancelled,
    e32_a_sync_tool_counts_until_it_ends,
    e32_a_handler_that_reports_nothing_is_stopped_too,
    e33_work_moved_elsewhere_learns_of_the_cancel,
    e33_shielded_work_finishes,
    e33_shielded_work_returns_to_a_handler_that_lives,
}

contract! { listening on [memory stdio unix direct http] in [modern]:
    e35_dropping_a_listen_stream_unsubscribes,
    // req: tools:listen:list-changed, tools:list-changed
    e35_a_listen_stream_tells_of_changes,
}

contract! { leaving on [memory stdio unix http] in [modern]:
    // req: subscriptions:listen:graceful-close, subscriptions:listen:client:graceful-close
    e35_a_server_that_leaves_ends_its_listen_streams_in_good_order,
}

contract! { asking unconnected on [memory stdio unix direct http sse] in [legacy]:
    // req: roots:list:empty
    e35_a_question_is_answered,
    e35_a_question_is_dropped_with_the_call_it_belongs_to,
    e35_a_question_that_the_handler_gives_up_is_dropped,
    e35_a_question_that_fails_is_an_error_of_the_client,
    // req: custom-methods:client-handler:roundtrip
    e35_a_question_of_ones_own_is_answered,
}

contract! { not_declared on [memory stdio unix direct] in [legacy]:
    // req: sampling:create-message:not-supported, elicitation:form:not-supported
    // req: roots:list:not-supported
    e35_a_question_that_the_client_did_not_declare_is_refused_at_once,
}

contract! { not_asking on [memory stdio unix direct http] in [modern]:
    e35_a_modern_server_can_not_ask,
}

async fn e32_a_cancelled_handler_stops_within_a_scheduling_step(rig: &Rig) {
    rig.hold("hold", "k").await.abandon().await;
    // The cancel is on the wire before this request: at most one report is too early. Only where
    // it is a request of its own may it arrive later.
    let mut ledger = rig.report().await;
    if matches!(rig.wire, Wire::Http | Wire::Sse) && rig.era == Era::Legacy {
        ledger = rig.until(|ledger| ledger.of("k").dropped == 1).await;
    } else if ledger.of("k").dropped == 0 {
        ledger = rig.report().await;
    }
    assert_eq!(ledger.of("k").dropped, 1, "it still runs");
    assert_eq!(ledger.in_flight, 0);
}

async fn e32_a_handler_that_reports_nothing_is_stopped_too(rig: &Rig) {
    let call = rig.tool("progress_then_hold", json!({"key": "k", "n": 3}));
    let flight = rig.hold_as(call.on_progress(|_| ()), "k").await;
    rig.until(|ledger| ledger.of("k").reached == 1).await;
    flight.abandon().await;
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!(ledger.of("k").dropped, 1);
}

async fn e32_a_cooperative_handler_is_told_and_may_wind_down(rig: &Rig) {
    rig.hold("cooperative", "k").await.abandon().await;
    let ledger = rig.until(|ledger| ledger.of("k").cancelled == 1).await;
    assert_eq!((ledger.in_flight, ledger.of("k").dropped), (1, 0), "it winds down");
    rig.release("k").await;
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!((ledger.of("k").finished, ledger.of("k").dropped), (1, 0));
}

async fn e32_a_stubborn_handler_is_ended_after_its_grace(rig: &Rig) {
    rig.hold("stubborn", "k").await.abandon().await;
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    let count = ledger.of("k");
    assert_eq!((count.cancelled, count.dropped, count.finished), (1, 1, 0));
}

async fn e32_a_sync_tool_can_ask_whether_it_is_cancelled(rig: &Rig) {
    rig.hold("blocking", "k").await.abandon().await;
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!((ledger.of("k").cancelled, ledger.of("k").finished), (1, 1));
    let flight = rig.hold("blocking", "left alone").await;
    rig.release("left alone").await;
    assert_eq!(flight.outcome().await.unwrap().to_text(), "left alone");
    assert_eq!(rig.report().await.of("left alone").cancelled, 0);
}

async fn e32_a_sync_tool_counts_until_it_ends(rig: &Rig) {
    rig.hold("deaf", "k").await.abandon().await;
    rig.alive().await;
    assert_eq!(rig.report().await.in_flight, 1, "a thread can't be dropped");
    rig.release("k").await;
    let ledger = rig.until(|ledger| ledger.in_flight == 0).await;
    assert_eq!((ledger.of("k").cancelled, ledger.of("k").finished), (1, 1));
}

async fn e33_work_moved_elsewhere_learns_of_the_cancel(rig: &Rig) {
    rig.hold("moved", "k").await.abandon().await;
    let ledger = rig.until(|ledger| ledger.of("k").cancelled == 1).await;
    assert_eq!(ledger.of("k").dropped, 1);
    let flight = rig.hold("moved", "left alone").await;
    rig.release("left alone").await;
    assert_eq!(flight.outcome().await.unwrap().to_text(), "left alone");
    assert_eq!(rig.report().await.of("left alone").cancelled, 0);
}

async fn e33_shielded_work_finishes(rig: &Rig) {
    rig.hold("shielded", "k").await.abandon().await;
    let ledger = rig.until(|ledger| ledger.of("k").dropped == 1).await;
    assert_eq!(ledger.of("k").reached, 0);
    rig.release("k").await;
    rig.until(|ledger| ledger.of("k").reached == 1).await;
}

async fn e33_shielded_work_returns_to_a_handler_that_lives(rig: &Rig) {
    let flight = rig.hold("shielded", "k").await;
    rig.release("k").await;
    assert_eq!(flight.outcome().await.unwrap().to_text(), "k");
}

async fn e35_dropping_a_listen_stream_unsubscribes(rig: &Rig) {
    let one = rig.client.listen(Filter::new().tools()).await.unwrap();
    let two = rig.client.listen(Filter::new().tools()).await.unwrap();
    rig.until(|ledger| ledger.listeners == 2).await;
    drop(one);
    rig.until(|ledger| ledger.listeners == 1).await;
    drop(two);
    rig.until(|ledger| ledger.listeners == 0).await;
    rig.alive().await;
}

async fn e35_a_listen_stream_tells_of_changes(rig: &Rig) {
    let mut listening = rig.client.listen(Filter::new().tools()).await.unwrap();
    assert_eq!(listening.granted().tools_list_changed, Some(true));
    for _ in 0..3 {
        let next = async {
            let (told, touched) = tokio::join!(listening.next(), rig.tool("touch", json!({})));
            touched.unwrap();
            told
        };
        assert_eq!(next.await.unwrap().unwrap(), Event::ToolsChanged);
    }
}

async fn e35_a_server_that_leaves_ends_its_listen_streams_in_good_order(rig: &Rig) {
    let mut listening = rig.client.listen(Filter::new().tools()).await.unwrap();
    let (end, _) = tokio::join!(listening.next(), rig.tool("leave", json!({})));
    assert!(end.is_none(), "the stream was lost: {end:?}");
    assert!(listening.next().await.is_none());
}

/// A client that holds the server's questions until its own side lets them go.
struct Asked {
    rig: Rig,
    fixture: turnbuckle_contract::Fixture,
    methods: Arc<Mutex<Vec<String>>>,
}

async fn asked(wire: Wire, era: Era) -> Asked {
    let ours = turnbuckle_contract::Fixture::default();
    let methods = Arc::new(Mutex::new(Vec::new()));
    let builder = Client::builder().capabilities(able()).on_request({
        let (ours, methods) = (ours.clone(), methods.clone());
        move |question| {
            methods.lock().unwrap().push(question.method.to_string());
            let ours = ours.clone();
            async move {
                let running = ours.start("question");
                ours.gate("question").await;
                running.finish();
                if &*question.method == "roots/list" {
                    return Ok(Raw::from(json!({"roots": []})));
                }
                if &*question.method == "example.com/weather" {
                    return Ok(Raw::from(json!({"sky": "blue"})));
                }
                Err(turnbuckle::RpcError::method_not_found(&question.method))
            }
        }
    });
    Asked { rig: Rig::with(wire, era, builder, &[]).await, fixture: ours, methods }
}

/// A server asks only for what the client has said it has.
fn able() -> ClientCapabilities {
    let mut able = ClientCapabilities::new();
    able.roots = Some(RootsCapability::new());
    able.sampling = Some(SamplingCapability::new());
    able
}

impl Asked {
    /// Calls the tool that asks, and waits until the question has reached this side.
    async fn ask(&self, method: &str) -> crate::rig::Flight<turnbuckle::types::CallToolResult> {
        let call = self.rig.tool("ask", json!({"key": "ask", "method": method}));
        let flight = self.rig.hold_as(call, "ask").await;
        crate::rig::eventually(|| self.fixture.of("question").started == 1).await;
        flight
    }
}

async fn e35_a_question_is_answered(wire: Wire, era: Era) {
    let asked = asked(wire, era).await;
    let flight = asked.ask("roots/list").await;
    asked.fixture.release("question");
    assert_eq!(flight.outcome().await.unwrap().to_text(), r#"{"roots":[]}"#);
    assert_eq!(*asked.methods.lock().unwrap(), ["roots/list"]);
}

async fn e35_a_question_of_ones_own_is_answered(wire: Wire, era: Era) {
    let asked = asked(wire, era).await;
    let flight = asked.ask("example.com/weather").await;
    asked.fixture.release("question");
    assert_eq!(flight.outcome().await.unwrap().to_text(), r#"{"sky":"blue"}"#);
    assert_eq!(*asked.methods.lock().unwrap(), ["example.com/weather"]);
}

async fn e35_a_question_is_dropped_with_the_call_it_belongs_to(wire: Wire, era: Era) {
    let asked = asked(wire, era).await;
    asked.ask("roots/list").await.abandon().await;
    asked.rig.until(|ledger| ledger.of("ask").dropped == 1).await;
    crate::rig::eventually(|| asked.fixture.of("question").dropped == 1).await;
    asked.rig.alive().await;
}

async fn e35_a_question_that_the_handler_gives_up_is_dropped(wire: Wire, era: Era) {
    let asked = asked(wire, era).await;
    let flight = asked.ask("roots/list").await;
    asked.rig.release("ask").await;
    assert_eq!(flight.outcome().await.unwrap().to_text(), "gave up");
    crate::rig::eventually(|| asked.fixture.of("question").dropped == 1).await;
    asked.rig.alive().await;
}

async fn e35_a_question_that_fails_is_an_error_of_the_client(wire: Wire, era: Era) {
    let asked = asked(wire, era).await;
    let flight = asked.ask("sampling/createMessage").await;
    asked.fixture.release("question");
    let told = flight.outcome().await.unwrap();
    assert_eq!(told.is_error, Some(true));
    assert!(told.to_text().contains("-32601"), "{}", told.to_text());
}

async fn e35_a_question_that_the_client_did_not_declare_is_refused_at_once(rig: &Rig) {
    for (method, capability) in [
        ("roots/list", "`roots`"),
        ("sampling/createMessage", "`sampling`"),
        ("elicitation/create", "`elicitation.form`"),
        ("tools/list", "no such request"),
    ] {
        let told = rig.tool("ask", json!({"key": "k", "method": method})).await.unwrap();
        assert_eq!(told.is_error, Some(true));
        assert!(told.to_text().contains(capability), "{}", told.to_text());
    }
    // A ping needs nothing.
    assert_eq!(rig.text("ask", json!({"key": "k", "method": "ping"})).await, "{}");
}

async fn e35_a_modern_server_can_not_ask(rig: &Rig) {
    let call = rig.tool("ask", json!({"key": "k", "method": "roots/list"}));
    let told = call.await.unwrap();
    assert_eq!(told.is_error, Some(true));
    assert_eq!(rig.report().await.of("k"), Count { started: 1, finished: 1, ..Count::default() });
    let listen = rig.client.ping().await.unwrap_err();
    assert_eq!(listen.kind(), ErrorKind::Refused);
}
