//! A call as a stream, typed results, what is refused or checked on this side, and rounds that are
//! answered by hand.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle::{
    Client, ClientBuilder, ErrorKind,
    client::{CallEvent, CallEvents, CustomMethod, Questions, Round, Validate},
    types::{
        CallToolResult, ClientCapabilities, Elicit, ElicitAction, ElicitResult, Era,
        ListRootsResult, LogLevel,
    },
};
use turnbuckle_contract::Fixture;

use crate::{
    raw::{Peer, client, client_with, connecting, in_both_eras, said},
    rig::{Rig, Wire, contract, eventually, pinned, virtually},
    web::launch,
};

contract! { streamed on [memory stdio unix direct http sse] in [legacy modern]:
    // req: tools:call:progress, protocol:progress:callback, protocol:progress:monotonic
    events_come_in_order_and_the_end_comes_once,
    // req: protocol:cancel:abort-signal
    dropping_the_events_cancels_the_call,
    events_that_nobody_polls_send_nothing,
    // req: protocol:timeout:session-survives
    events_end_with_the_time_that_ran_out,
}

contract! { logged unconnected on [direct http] in [legacy modern]:
    // req: tools:call:logging-mid-execution
    what_is_logged_for_a_call_is_among_its_events,
}

contract! { leveled unconnected on [memory stdio unix direct http sse] in [legacy modern]:
    // req: logging:set-level, logging:per-request:opt-in
    a_level_is_set_once_in_either_era,
}

contract! { typed on [memory stdio unix direct http sse] in [legacy modern]:
    // req: tools:call:structured-content
    structured_output_becomes_a_type,
    // req: tools:call:is-error
    a_tool_that_fails_fails_a_typed_call,
    what_was_listed_is_held_against_what_comes,
}

contract! { by_hand unconnected on [memory stdio unix direct http] in [modern]:
    // req: typescript:mrtr:tools-call:write-once-roundtrip
    questions_are_answered_by_hand_round_by_round,
}

in_both_eras! {
    // req: client:output-schema:auto-list, client:output-schema:validate
    // req: client:output-schema:missing-structured
    output_that_breaks_its_promise_is_refused_and_nothing_is_listed_for_it,
    // req: protocol:custom-method:request, protocol:result-validation:invalid-result-sdkerror
    a_method_of_ones_own_has_types,
    // req: pagination:client:cursor-handling
    a_page_is_asked_for_by_its_cursor,
    a_list_is_capped_by_its_items_too,
    // req: protocol:request-id:unique, protocol:progress:token-injected
    // req: protocol:progress:token-unique
    every_call_has_an_id_and_a_token_of_its_own,
    // req: meta:result-to-client
    what_a_result_has_in_its_meta_reaches_the_caller,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Sum {
    sum: i64,
}

/// What happens until the end, which is the last.
async fn all<T>(events: &mut CallEvents<T>) -> Vec<CallEvent<T>> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event);
    }
    all
}

async fn events_come_in_order_and_the_end_comes_once(rig: &Rig) {
    let mut events = rig.tool("progress", json!({"n": 5})).events();
    let mut told = Vec::new();
    let mut done = 0;
    for event in all(&mut events).await {
        match event {
            CallEvent::Progress(progress) => {
                assert_eq!(done, 0, "nothing follows the end");
                told.push(progress.progress);
            }
            CallEvent::Done(result) => {
                result.unwrap();
                done += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((told, done), (vec![1.0, 2.0, 3.0, 4.0, 5.0], 1));
    assert!(events.next().await.is_none());
}

async fn dropping_the_events_cancels_the_call(rig: &Rig) {
    let call = rig.tool("progress_then_hold", json!({"key": "k", "n": 1}));
    let mut events = call.events();
    assert!(matches!(events.next().await, Some(CallEvent::Progress(_))));
    drop(events);
    rig.until(|ledger| ledger.of("k").dropped == 1).await;
    rig.alive().await;
}

async fn events_that_nobody_polls_send_nothing(rig: &Rig) {
    drop(rig.tool("hold", json!({"key": "k"})).events());
    rig.alive().await;
    assert_eq!(rig.report().await.of("k").started, 0);
}

async fn events_end_with_the_time_that_ran_out(rig: &Rig) {
    let call = rig.tool("hold", json!({"key": "k"})).timeout(Duration::from_millis(50));
    let [CallEvent::Done(Err(error))] = &all(&mut call.events()).await[..] else {
        panic!("it did not just run out of time");
    };
    assert!(error.is_timeout(), "{error}");
    rig.alive().await;
}

async fn what_is_logged_for_a_call_is_among_its_events(wire: Wire, era: Era) {
    let rig = Rig::new(wire, era).await;
    rig.client.set_log_level(LogLevel::Info).await.unwrap();
    let mut events = rig.tool("log", json!({"text": "a word"})).events();
    let all = all(&mut events).await;
    let [CallEvent::Log(message), CallEvent::Done(Ok(_))] = &all[..] else { panic!("{all:?}") };
    assert_eq!((message.level, message.data.as_str()), (LogLevel::Info, "\"a word\""));
}

async fn a_level_is_set_once_in_either_era(wire: Wire, era: Era) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ours = heard.clone();
    let builder = Client::builder().on_notification(move |method, params| {
        if method == "notifications/message" {
            let params: Value = params.unwrap().decode().unwrap();
            ours.lock().unwrap().push(params["data"].clone());
        }
    });
    let rig = Rig::with(wire, era, builder, &[]).await;
    let log = |text: &str| rig.tool("log", json!({"text": text}));
    if era == Era::Modern {
        log("unasked").await.unwrap();
        log("once").log_level(LogLevel::Debug).await.unwrap();
        log("unasked again").await.unwrap();
        eventually(|| heard.lock().unwrap().len() == 1).await;
        assert_eq!(heard.lock().unwrap().remove(0), "once");
    }
    rig.client.set_log_level(LogLevel::Error).await.unwrap();
    log("too low").await.unwrap();
    rig.client.set_log_level(LogLevel::Info).await.unwrap();
    log("a word").await.unwrap();
    eventually(|| !heard.lock().unwrap().is_empty()).await;
    assert_eq!(*heard.lock().unwrap(), ["a word"]);
}

async fn structured_output_becomes_a_type(rig: &Rig) {
    let arguments = json!({"a": 1, "b": 2});
    let sum: Sum = rig.client.call_tool_as("add", &arguments).await.unwrap();
    assert_eq!(sum, Sum { sum: 3 });
    assert_eq!(rig.tool("add", arguments.clone()).typed::<Sum>().await.unwrap(), sum);
    let mut events = rig.client.call_tool_as::<Sum>("add", &arguments).events();
    assert!(matches!(&all(&mut events).await[..], [CallEvent::Done(Ok(Sum { sum: 3 }))]));
    let wrong = rig.client.call_tool_as::<Vec<bool>>("add", &arguments).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Codec, "{wrong}");
    assert!(wrong.tool_result().is_some() && wrong.maybe_executed());
}

async fn a_tool_that_fails_fails_a_typed_call(rig: &Rig) {
    let fail = json!({"text": "no such city"});
    assert_eq!(rig.tool("fail", fail.clone()).await.unwrap().is_error, Some(true));
    let error = rig.client.call_tool_as::<Sum>("fail", fail).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tool);
    assert!(error.to_string().contains("no such city"), "{error}");
    assert_eq!(error.tool_result().unwrap().is_error, Some(true));
}

async fn what_was_listed_is_held_against_what_comes(rig: &Rig) {
    let tools = rig.client.tools().all().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "add" && tool.output_schema.is_some()));
    let sum: Sum = rig.client.call_tool_as("add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(sum.sum, 3);
    // One that fails promised nothing.
    rig.tool("fail", json!({"text": "no"})).await.unwrap();
}

/// Someone who answers forms by hand.
fn form_filler() -> ClientBuilder {
    let able = json!({"elicitation": {"form": {}}});
    let able: ClientCapabilities = serde_json::from_value(able).unwrap();
    Client::builder().capabilities(able)
}

fn named(name: &str) -> ElicitResult {
    let mut answer = ElicitResult::new(ElicitAction::Accept);
    answer.content = Some(json!({"name": name}).into());
    answer
}

fn asked<T: std::fmt::Debug>(round: Round<T>) -> Questions<T> {
    match round {
        Round::Asks(questions) => questions,
        Round::Done(result) => panic!("it is done: {result:?}"),
    }
}

async fn questions_are_answered_by_hand_round_by_round(wire: Wire, era: Era) {
    let rig = Rig::with(wire, era, form_filler(), &[]).await;
    let mut round = rig.tool("inquire", json!({"key": "k"})).manual().await.unwrap();
    for key in ["first", "second"] {
        let mut questions = asked(round);
        assert_eq!(questions.keys(), [key]);
        questions.answer(key, named("ada")).unwrap();
        round = questions.send().await.unwrap();
    }
    let Round::Done(result) = round else { panic!("{round:?}") };
    assert_eq!(result.to_text(), "3 rounds");
    assert_eq!(rig.report().await.of("k").finished, 3);
}

fn form(message: &str) -> Value {
    let name = json!({"type": "string", "minLength": 2, "default": "nobody"});
    let schema = json!({"type": "object", "properties": {"name": name}});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

fn asks(questions: Value, state: &str) -> Value {
    json!({"resultType": "input_required", "inputRequests": questions, "requestState": state})
}

/// A modern client that answers by hand, and its server, which is a script.
async fn scripted() -> (Peer, Client) {
    client_with(Era::Modern, form_filler(), 1 << 20).await
}

/// Makes a call that is asked something, and what is asked.
async fn first_round(peer: &mut Peer, client: &Client) -> (Value, Questions<CallToolResult>) {
    let call = client.call_tool("t", json!({"x": 1})).timeout(Duration::from_secs(10));
    let call = launch(call.request_id("mine").manual());
    let heard = peer.read().await;
    peer.answer(&heard, asks(json!({"a": form("a"), "b": form("b")}), "é\\/\u{7f}")).await;
    (heard, asked(call.await.unwrap().unwrap()))
}

// req: typescript:mrtr:tools-call:write-once-roundtrip, elicitation:form:defaults
#[tokio::test(start_paused = true)]
async fn each_round_by_hand_is_a_request_of_its_own_with_the_state_of_the_last() {
    virtually(async {
        let (mut peer, client) = scripted().await;
        let (first, mut questions) = first_round(&mut peer, &client).await;
        assert_eq!(first["id"], "mine");
        assert!(questions.iter().all(|question| question.method == "elicitation/create"));
        assert_eq!(questions.state().unwrap().decode::<String>().unwrap(), "é\\/\u{7f}");
        questions.answer("a", named("ada")).unwrap();
        questions.answer("a", named("grace")).unwrap();
        questions.answer("b", ElicitResult::new(ElicitAction::Accept)).unwrap();
        let call = launch(questions.send());
        let second = peer.read().await;
        assert_ne!(second["id"], "mine");
        let accepts = |name| json!({"action": "accept", "content": {"name": name}});
        let params = &second["params"];
        assert_eq!(params["requestState"], "é\\/\u{7f}");
        let answers = json!({"a": accepts("grace"), "b": accepts("nobody")});
        assert_eq!(params["inputResponses"], answers, "what is left out is the form's default");
        assert_eq!(params["arguments"], json!({"x": 1}));
        // Then only the newest state goes back, and no answer of before.
        peer.answer(&second, json!({"resultType": "input_required", "requestState": "2"})).await;
        let questions = asked(call.await.unwrap().unwrap());
        assert_eq!(questions.iter().count(), 0);
        let call = launch(questions.send());
        let third = peer.read().await;
        assert_eq!(third["params"]["requestState"], "2");
        assert!(third["params"].get("inputResponses").is_none(), "{third}");
        peer.answer(&third, said("done")).await;
        let Round::Done(result) = call.await.unwrap().unwrap() else { panic!("not done") };
        assert_eq!(result.to_text(), "done");
        peer.quiet().await;
    })
    .await;
}

// req: elicitation:form:response-validation
#[tokio::test(start_paused = true)]
async fn an_answer_by_hand_that_does_not_fit_is_not_sent() {
    virtually(async {
        let (mut peer, client) = scripted().await;
        let (_, mut questions) = first_round(&mut peer, &client).await;
        for error in [
            questions.answer("c", named("ada")).unwrap_err(),
            questions.answer("a", named("a")).unwrap_err(),
            questions.answer("a", ListRootsResult::new([])).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
        questions.answer("a", json!({"action": "decline"})).unwrap();
        let error = questions.send().await.unwrap_err();
        assert!(error.to_string().contains("`b`"), "{error}");
        peer.quiet().await;
    })
    .await;
}

// req: protocol:timeout:max-total
#[tokio::test(start_paused = true)]
async fn rounds_by_hand_share_one_time_without_that_between_them() {
    virtually(async {
        let second = Duration::from_secs(1);
        let (mut peer, client) = scripted().await;
        let call = client.call_tool("t", ()).timeout(10 * second).idle_timeout(60 * second);
        let call = launch(call.manual());
        let heard = peer.read().await;
        tokio::time::advance(6 * second).await;
        peer.answer(&heard, asks(json!({}), "s")).await;
        let questions = asked(call.await.unwrap().unwrap());
        tokio::time::advance(3600 * second).await;
        let call = launch(questions.send());
        let heard = peer.read().await;
        let begun = tokio::time::Instant::now();
        assert!(call.await.unwrap().unwrap_err().is_timeout());
        assert!(begun.elapsed() <= 4 * second + Duration::from_millis(10), "{:?}", begun.elapsed());
        assert!(begun.elapsed() >= 3 * second, "{:?}", begun.elapsed());
        assert_eq!(peer.read().await["params"]["requestId"], heard["id"]);
    })
    .await;
}

// req: protocol:cancel:stream-frame
#[tokio::test(start_paused = true)]
async fn a_round_by_hand_that_is_dropped_is_cancelled_and_questions_are_just_left() {
    virtually(async {
        let (mut peer, client) = scripted().await;
        let (_, mut questions) = first_round(&mut peer, &client).await;
        for key in questions.keys() {
            questions.answer(&key, ElicitResult::new(ElicitAction::Cancel)).unwrap();
        }
        let call = launch(questions.send());
        let second = peer.read().await;
        let cancelled = json!({"action": "cancel"});
        assert_eq!(second["params"]["inputResponses"], json!({"a": cancelled, "b": cancelled}));
        crate::web::abandon(call).await;
        let cancel = peer.read().await;
        assert_eq!(cancel["method"], "notifications/cancelled");
        assert_eq!(cancel["params"]["requestId"], second["id"]);
        let (_, questions) = first_round(&mut peer, &client).await;
        drop(questions);
        peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn callbacks_can_be_given_a_time_over_all_rounds() {
    virtually(async {
        let second = Duration::from_secs(1);
        let user = Fixture::default();
        let ours = user.clone();
        let builder = Client::builder().on_elicitation(move |question| {
            let ours = ours.clone();
            async move {
                let Elicit::Form(form) = question else { panic!("{question:?}") };
                let running = ours.start(&form.message);
                ours.gate(&form.message).await;
                running.finish();
                Ok(ElicitResult::new(ElicitAction::Decline))
            }
        });
        let (mut peer, client) = client_with(Era::Modern, builder, 1 << 20).await;
        let call = launch(client.call_tool("t", ()).answer_timeout(5 * second));
        for key in ["a", "b"] {
            let heard = peer.read().await;
            peer.answer(&heard, asks(json!({key: form(key)}), "s")).await;
            eventually(|| user.of(key).started == 1).await;
            if key == "a" {
                tokio::time::advance(3 * second).await;
                user.release(key);
            }
        }
        let begun = tokio::time::Instant::now();
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_timeout() && error.to_string().contains("answer_timeout"), "{error}");
        assert!(begun.elapsed() <= 2 * second + Duration::from_millis(10), "{:?}", begun.elapsed());
        assert_eq!(user.of("b").dropped, 1);
        peer.quiet().await;
    })
    .await;
}

fn integer() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

fn gives(content: Value) -> Value {
    let mut result = said("told");
    result["structuredContent"] = content;
    result
}

async fn output_that_breaks_its_promise_is_refused_and_nothing_is_listed_for_it(era: Era) {
    let (mut peer, client) = client(era).await;
    let call = |validate| launch(client.call_tool("t", ()).validate(validate));
    let wrong = || gives(json!({"n": "one"}));
    // As long as nobody listed it, nobody knows.
    let unknown = call(Validate::IfKnown);
    let heard = peer.read().await;
    assert_eq!(heard["method"], "tools/call");
    peer.answer(&heard, wrong()).await;
    unknown.await.unwrap().unwrap();

    let listing = launch(client.list_tools());
    let heard = peer.read().await;
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": integer()});
    let broken = json!({"name": "broken", "inputSchema": {"type": "object"},
        "outputSchema": {"$schema": "https://example.com/mine", "type": "object"}});
    peer.answer(&heard, json!({"resultType": "complete", "tools": [broken, tool]})).await;
    assert_eq!(listing.await.unwrap().unwrap().tools.len(), 2);

    for (validate, result, is_ok) in [
        (Validate::IfKnown, gives(json!({"n": 1})), true),
        (Validate::IfKnown, wrong(), false),
        (Validate::IfKnown, said("nothing structured"), false),
        (Validate::Never, wrong(), true),
    ] {
        let call = call(validate);
        let heard = peer.read().await;
        peer.answer(&heard, result).await;
        match call.await.unwrap() {
            Ok(_) => assert!(is_ok),
            Err(error) => {
                assert!(!is_ok, "{error}");
                assert_eq!(error.kind(), ErrorKind::Protocol);
                assert!(error.to_string().contains("`t`") && error.tool_result().is_some());
            }
        }
    }
    let call = launch(client.call_tool("broken", ()));
    let heard = peer.read().await;
    peer.answer(&heard, wrong()).await;
    call.await.unwrap().unwrap();
    peer.quiet().await;
}

async fn a_method_of_ones_own_has_types(era: Era) {
    struct Usage;
    impl CustomMethod for Usage {
        const NAME: &'static str = "example.com/usage";
        type Params = Value;
        type Result = Sum;
    }
    let (mut peer, client) = client(era).await;
    for (result, is_ok) in [(json!({"sum": 3}), true), (json!({"sum": "three"}), false)] {
        let call = launch(client.method::<Usage>(&json!({"days": 7})));
        let heard = peer.read().await;
        assert_eq!(heard["method"], "example.com/usage");
        assert_eq!(heard["params"]["days"], 7);
        peer.answer(&heard, result).await;
        match call.await.unwrap() {
            Ok(sum) => assert!(is_ok && sum.sum == 3),
            Err(error) => {
                assert!(!is_ok, "{error}");
                assert!(error.to_string().contains("example.com/usage"), "{error}");
            }
        }
    }
}

async fn a_page_is_asked_for_by_its_cursor(era: Era) {
    let (mut peer, client) = client(era).await;
    // Whatever a server makes of it, it is nobody else's to read.
    for cursor in ["", "é \\\" \u{7f}", "2"] {
        let page = launch(client.list_prompts().cursor(cursor));
        let heard = peer.read().await;
        assert_eq!(heard["method"], "prompts/list");
        assert_eq!(heard["params"]["cursor"], cursor);
        peer.answer(&heard, json!({"resultType": "complete", "prompts": []})).await;
        assert!(page.await.unwrap().unwrap().prompts.is_empty());
    }
}

async fn a_list_is_capped_by_its_items_too(era: Era) {
    let (mut peer, client) = client(era).await;
    let ours = client.clone();
    let listing = tokio::spawn(async move {
        let mut pages = ours.prompts().max_items(3).pages();
        let first = pages.next().await.unwrap().unwrap().len();
        (first, pages.next().await.unwrap(), pages.next().await.is_none())
    });
    for next in ["2", "3"] {
        let heard = peer.read().await;
        let prompts = json!([{"name": "a"}, {"name": "b"}]);
        peer.answer(&heard, json!({"prompts": prompts, "nextCursor": next})).await;
    }
    let (first, second, ended) = listing.await.unwrap();
    let error = second.unwrap_err();
    assert_eq!((first, error.kind(), ended), (2, ErrorKind::Limit, true));
    assert!(error.to_string().contains("max_items"), "{error}");
    peer.quiet().await;
}

async fn every_call_has_an_id_and_a_token_of_its_own(era: Era) {
    let (mut peer, client) = client(era).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let call = client.call_tool("t", ()).no_timeouts().on_progress(drop);
        let call = launch(call);
        let heard = peer.read().await;
        let token = heard["params"]["_meta"]["progressToken"].clone();
        assert!(!token.is_null() && !seen.contains(&token), "{heard}");
        assert!(!seen.contains(&heard["id"]), "{heard}");
        seen.extend([token, heard["id"].clone()]);
        peer.answer(&heard, said("done")).await;
        call.await.unwrap().unwrap();
    }
}

async fn what_a_result_has_in_its_meta_reaches_the_caller(era: Era) {
    let (mut peer, client) = client(era).await;
    let call = launch(client.call_tool("t", ()));
    let heard = peer.read().await;
    let mut result = said("done");
    result["_meta"] = json!({"example.com/trace": [1, null]});
    peer.answer(&heard, result).await;
    let result = call.await.unwrap().unwrap();
    assert_eq!(result.meta.value("example.com/trace").unwrap().as_str(), "[1,null]");
}

// req: elicitation:url:complete-unknown-ignored
#[tokio::test(start_paused = true)]
async fn news_of_a_page_that_nobody_was_asked_to_visit_changes_nothing() {
    virtually(async {
        let (mut peer, client) = client(Era::Legacy).await;
        let call = launch(client.call_tool("t", ()));
        let heard = peer.read().await;
        for params in [json!({"elicitationId": "unheard-of"}), json!({})] {
            let method = "notifications/elicitation/complete";
            peer.say(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
        }
        peer.quiet().await;
        peer.answer(&heard, said("done")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "done");
    })
    .await;
}

/// A legacy client of a server that declares nothing at all.
async fn undeclared(builder: ClientBuilder) -> (Peer, Client) {
    let (mut peer, connecting) = connecting(builder.revision(pinned(Era::Legacy)), 1 << 20);
    let initialize = peer.read().await;
    let info = json!({"name": "script", "version": "1"});
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info});
    peer.answer(&initialize, result).await;
    assert_eq!(peer.read().await["method"], "notifications/initialized");
    (peer, connecting.await.unwrap().unwrap())
}

// req: lifecycle:capability:server-not-advertised
// req: lifecycle:capability:list-empty-when-not-advertised, lifecycle:capability:strict-mode-throws
// req: errors:capability:sdkerror-capability-not-supported
#[tokio::test(start_paused = true)]
async fn what_the_server_did_not_declare_is_refused_before_anything_is_sent() {
    virtually(async {
        let (mut peer, client) = undeclared(Client::builder()).await;
        for (capability, error) in [
            ("tools", client.call_tool("t", ()).await.unwrap_err()),
            ("tools", client.tools().all().await.unwrap_err()),
            ("resources", client.read_resource("a://b").await.unwrap_err()),
            ("prompts", client.get_prompt("p", ()).await.unwrap_err()),
            ("logging", client.set_log_level(LogLevel::Info).await.unwrap_err()),
        ] {
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains(&format!("`{capability}`")), "{error}");
            assert!(error.to_string().contains("ignore_capabilities") && !error.maybe_executed());
        }
        peer.quiet().await;
        // What is written by hand is sent.
        let call = launch(client.request("tools/call", json!({"name": "t"})));
        let heard = peer.read().await;
        peer.answer(&heard, said("done")).await;
        call.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_can_be_asked_for_all_the_same() {
    virtually(async {
        let (mut peer, client) = undeclared(Client::builder().ignore_capabilities()).await;
        let call = launch(client.call_tool("t", ()));
        let heard = peer.read().await;
        peer.answer(&heard, said("done")).await;
        assert_eq!(call.await.unwrap().unwrap().to_text(), "done");
    })
    .await;
}
