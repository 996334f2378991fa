//! What a server says, and does not say, for requests that its client gives up: CANCELLATION B
//! and E seen by a client that is a script.

use std::time::Duration;

use serde_json::{Value, json};
use turnbuckle::{Limits, types::Era};
use turnbuckle_contract::{Count, LONG_GRACE};

use crate::{
    raw::{cancelled, in_both_eras, opened, opened_with, request},
    rig::{eventually, virtually},
};

in_both_eras! {
    b17_a_cancelled_request_is_never_spoken_of_again,
    b17_progress_that_waits_is_taken_back,
    b17_progress_behind_a_stuck_writer_is_taken_back,
    b17_what_outlives_its_cancel_is_silent,
    b17_a_cancelled_id_is_free_at_once,
    b18_cancels_that_name_nothing_are_ignored,
    b18_a_cancel_in_the_middle_of_the_answer_changes_nothing,
    b18_a_cancel_right_behind_its_request_leaves_one_answer_or_none,
    b18_initialize_and_discover_are_answered_all_the_same,
    b19_a_cancel_stops_one_of_two,
    e32_a_cancelled_sync_tool_still_counts_as_in_flight,
    e32_requests_that_run_may_use_half_of_the_memory,
    e32_a_cooperative_handler_is_dropped_when_its_grace_is_over,
    e32_the_output_of_a_cancelled_sync_tool_is_discarded,
    // req: protocol:progress:stops-after-completion
    law05_nothing_follows_the_answer,
    // req: tools:call:progress, mcpserver:context:progress, protocol:progress:no-token
    law05_progress_comes_before_the_answer,
}

const DROPPED: Count = Count { started: 1, finished: 0, dropped: 1, cancelled: 0, reached: 0 };

async fn b17_a_cancelled_request_is_never_spoken_of_again(era: Era) {
    let mut served = opened(era).await;
    for (id, named) in [(json!(1), json!(1)), (json!("2"), json!(2)), (json!(3), json!("3"))] {
        let key = id.to_string();
        served.hold(id, "hold", &key).await;
        served.peer.say(cancelled(named)).await;
        served.peer.quiet().await;
        assert_eq!(served.fixture.of(&key), DROPPED);
        served.fixture.release(&key);
    }
    served.peer.quiet().await;
    served.alive().await;
}

fn progressing(era: Era, id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
    request(era, id, "tools/call", params)
}

/// The client does not read, so almost nothing of 200 reports has left when the cancel comes.
/// What has left has left; the rest stays unsaid.
async fn b17_progress_that_waits_is_taken_back(era: Era) {
    const ROOM: usize = 512;
    let mut served = opened_with(era, Limits::default(), ROOM).await;
    let call = progressing(era, 1, "progress_then_hold", json!({"key": "k", "n": 200}));
    served.peer.say(call).await;
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").reached == 1).await;
    served.peer.say(cancelled(1)).await;
    eventually(|| fixture.of("k").dropped == 1).await;
    let said = served.peer.lull().await;
    let length = said.first().map_or(1, |frame| frame.to_string().len());
    let most = ROOM / length + 2;
    assert!(said.len() <= most, "{} reports, where {most} may have left", said.len());
    served.alive().await;
}

/// The writer is in the middle of another answer, so nothing of the reports can have left.
async fn b17_progress_behind_a_stuck_writer_is_taken_back(era: Era) {
    let mut served = opened_with(era, Limits::default(), 512).await;
    let huge = served.tool("huge", "huge", json!({"bytes": 50_000}));
    served.peer.say(huge).await;
    served.peer.taste().await;
    let fixture = served.fixture.clone();
    for id in [1, 2] {
        let arguments = json!({"key": id.to_string(), "n": 100});
        served.peer.say(progressing(era, id, "progress_then_hold", arguments)).await;
        eventually(|| fixture.of(&id.to_string()).reached == 1).await;
    }
    served.peer.say(cancelled(1)).await;
    eventually(|| fixture.of("1").dropped == 1).await;
    assert_eq!(served.peer.read().await["id"], "huge");
    for step in 1..=100 {
        let note = served.peer.read().await;
        assert_eq!(note["params"]["progressToken"], 2, "a report of a cancelled request");
        assert_eq!(note["params"]["progress"], step);
    }
    served.peer.quiet().await;
}

async fn b17_what_outlives_its_cancel_is_silent(era: Era) {
    let mut served = opened(era).await;
    let params = json!({
        "name": "moved",
        "arguments": {"key": "k"},
        "_meta": {"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"},
    });
    let call = served.request(1, "tools/call", params);
    if era == Era::Legacy {
        let level = served.request("level", "logging/setLevel", json!({"level": "debug"}));
        assert!(served.peer.ask(level).await["result"].is_object());
    }
    served.peer.say(call).await;
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").started == 1).await;
    served.peer.say(cancelled(1)).await;
    // Elsewhere, someone has learned of it and has tried to report and to log.
    eventually(|| fixture.of("k").cancelled == 1).await;
    served.peer.quiet().await;
}

async fn b17_a_cancelled_id_is_free_at_once(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "hold", "first").await;
    served.peer.say(cancelled(1)).await;
    let call = served.tool(1, "echo", json!({"text": "second"}));
    let answer = served.peer.ask(call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "second", "{answer}");
    // A cancelled handler that winds down does not hold its id, nor answer for its successor.
    served.hold(2, "cooperative", "slow").await;
    served.peer.say(cancelled(2)).await;
    served.hold(2, "hold", "next").await;
    served.fixture.release("slow");
    eventually(|| served.fixture.of("slow").finished == 1).await;
    served.peer.quiet().await;
    served.fixture.release("next");
    assert_eq!(served.peer.read().await["result"]["content"][0]["text"], "next");
}

async fn b18_cancels_that_name_nothing_are_ignored(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "hold", "k").await;
    for id in
        [json!("never"), json!(99), json!(true), json!(1.0), json!(null), json!([1]), json!({})]
    {
        served.peer.say(cancelled(id)).await;
    }
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"request_id":1}}"#,
    ] {
        served.peer.say(line).await;
    }
    served.peer.quiet().await;
    assert_eq!(served.fixture.of("k").dropped, 0);
    served.fixture.release("k");
    assert_eq!(served.peer.read().await["id"], 1);
    // Finished.
    served.peer.say(cancelled(1)).await;
    served.peer.quiet().await;
    served.alive().await;
}

async fn b18_a_cancel_in_the_middle_of_the_answer_changes_nothing(era: Era) {
    let mut served = opened_with(era, Limits::default(), 512).await;
    let call = served.tool(1, "huge", json!({"bytes": 100_000}));
    served.peer.say(call).await;
    served.peer.taste().await;
    served.peer.say(cancelled(1)).await;
    let answer = served.peer.read().await;
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 100_000);
    served.peer.quiet().await;
    served.alive().await;
}

async fn b18_a_cancel_right_behind_its_request_leaves_one_answer_or_none(era: Era) {
    let mut served = opened(era).await;
    for id in 0..100 {
        let call = served.tool(id, "echo", json!({"text": "x"}));
        served.peer.bytes(format!("{call}\n{}\n", cancelled(id)).as_bytes()).await;
    }
    let mut seen = [0; 100];
    for answer in served.peer.lull().await {
        assert!(answer["result"].is_object(), "{answer}");
        seen[answer["id"].as_u64().unwrap() as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count <= 1), "{seen:?}");
    served.alive().await;
}

async fn b18_initialize_and_discover_are_answered_all_the_same(era: Era) {
    let mut served = crate::raw::served(era, Limits::default(), 1 << 20);
    let opening = match era {
        Era::Legacy => crate::raw::initialize("2025-11-25"),
        Era::Modern => request(era, "open", "server/discover", json!({})),
    };
    served.peer.bytes(format!("{opening}\n{}\n", cancelled("open")).as_bytes()).await;
    let answer = served.peer.read().await;
    assert_eq!(answer["id"], "open");
    assert!(answer["result"].is_object(), "{answer}");
    served.peer.quiet().await;
}

async fn b19_a_cancel_stops_one_of_two(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "hold", "goes").await;
    served.hold(2, "hold", "stays").await;
    served.peer.say(cancelled(1)).await;
    served.peer.quiet().await;
    assert_eq!((served.fixture.of("goes").dropped, served.fixture.of("stays").dropped), (1, 0));
    served.fixture.release("stays");
    assert_eq!(served.peer.read().await["id"], 2);
}

async fn e32_a_cancelled_sync_tool_still_counts_as_in_flight(era: Era) {
    let mut served = opened_with(era, Limits::default().in_flight(1), 1 << 20).await;
    for tool in ["deaf", "cooperative"] {
        served.hold(1, tool, tool).await;
        served.peer.say(cancelled(1)).await;
        let call = served.tool(2, "echo", json!({"text": "x"}));
        let refused = served.peer.ask(call.clone()).await;
        assert!(refused["error"]["code"].is_i64(), "{tool} no longer counts: {refused}");
        served.fixture.release(tool);
        eventually(|| served.fixture.of(tool).finished == 1).await;
        // The permit is given back a step after the count.
        let answer = loop {
            let answer = served.peer.ask(call.clone()).await;
            if answer["error"].is_null() {
                break answer;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(answer["result"]["content"][0]["text"], "x");
    }
}

async fn e32_requests_that_run_may_use_half_of_the_memory(era: Era) {
    let mut served = opened_with(era, Limits::default().memory_bytes(64 << 10), 1 << 20).await;
    let long = "k".repeat(40_000);
    served.hold(1, "hold", &long).await;
    let call = served.tool(2, "echo", json!({"text": "x"}));
    let refused = served.peer.ask(call.clone()).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("memory_bytes"), "{message}");
    served.peer.say(cancelled(1)).await;
    served.alive().await;
    let answer = served.peer.ask(call).await;
    assert_eq!(answer["result"]["content"][0]["text"], "x", "{answer}");
}

async fn e32_a_cooperative_handler_is_dropped_when_its_grace_is_over(era: Era) {
    let mut served = opened(era).await;
    served.hold(1, "cooperative", "k").await;
    served.peer.say(cancelled(1)).await;
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").cancelled == 1).await;
    let pass = |time: Duration| tokio::time::timeout(time, std::future::pending::<()>());
    pass(LONG_GRACE - Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(fixture.of("k").dropped, 0, "its grace is not over");
    pass(Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(fixture.of("k").dropped, 1);
    served.peer.quiet().await;
}

async fn e32_the_output_of_a_cancelled_sync_tool_is_discarded(era: Era) {
    let mut served = opened(era).await;
    for (id, tool) in [(1, "deaf"), (2, "blocking"), (3, "cooperative")] {
        served.hold(id, tool, tool).await;
        served.peer.say(cancelled(id)).await;
        served.alive().await;
        served.fixture.release(tool);
        eventually(|| served.fixture.of(tool).finished == 1).await;
        served.peer.quiet().await;
    }
}

async fn law05_nothing_follows_the_answer(era: Era) {
    let mut served = opened(era).await;
    if era == Era::Legacy {
        let level = served.request("level", "logging/setLevel", json!({"level": "debug"}));
        assert!(served.peer.ask(level).await["result"].is_object());
    }
    let params = json!({
        "name": "late",
        "arguments": {"key": "k"},
        "_meta": {"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"},
    });
    let call = served.request(1, "tools/call", params);
    assert!(served.peer.ask(call).await["result"].is_object());
    served.fixture.release("k");
    let fixture = served.fixture.clone();
    eventually(|| fixture.of("k").reached == 1).await;
    served.peer.quiet().await;
}

async fn law05_progress_comes_before_the_answer(era: Era) {
    let mut served = opened(era).await;
    served.peer.say(progressing(era, 1, "progress", json!({"n": 300}))).await;
    for step in 1..=300 {
        let note = served.peer.read().await;
        assert_eq!(note["method"], "notifications/progress");
        assert_eq!(
            (&note["params"]["progressToken"], &note["params"]["total"]),
            (&json!(1), &json!(300))
        );
        assert_eq!(note["params"]["progress"], step);
    }
    assert_eq!(served.peer.read().await["id"], 1);
    // Without a token there is none.
    let call = served.tool(2, "progress", json!({"n": 300}));
    assert!(served.peer.ask(call).await["result"].is_object());
    served.peer.quiet().await;
}

// req: protocol:cancel:server-to-client
#[tokio::test(start_paused = true)]
async fn e35_a_question_is_cancelled_exactly_once_with_its_call() {
    virtually(async {
        let mut served = opened(Era::Legacy).await;
        let arguments = json!({"key": "k", "method": "roots/list"});
        let call = served.tool("call", "ask", arguments);
        served.peer.say(call).await;
        let question = served.peer.read().await;
        assert_eq!(question["method"], "roots/list");
        served.peer.say(cancelled("call")).await;
        let cancel = served.peer.read().await;
        assert_eq!(cancel["method"], "notifications/cancelled");
        assert_eq!(cancel["params"]["requestId"], question["id"]);
        served.peer.quiet().await;
        assert_eq!(served.fixture.of("k"), DROPPED);
        // An answer that crossed the cancel is nobody's.
        served.peer.answer(&question, json!({"roots": []})).await;
        served.peer.quiet().await;
        served.alive().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e35_a_question_that_the_handler_gives_up_is_cancelled_exactly_once() {
    virtually(async {
        let mut served = opened(Era::Legacy).await;
        let call = served.tool("call", "ask", json!({"key": "k", "method": "roots/list"}));
        served.peer.say(call).await;
        let question = served.peer.read().await;
        served.fixture.release("k");
        let cancel = served.peer.read().await;
        assert_eq!(cancel["method"], "notifications/cancelled");
        assert_eq!(cancel["params"]["requestId"], question["id"]);
        let answer = served.peer.read().await;
        assert_eq!(answer["result"]["content"][0]["text"], "gave up");
        served.peer.quiet().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a05_a_question_is_answered_under_either_form_of_its_id() {
    virtually(async {
        let mut served = opened(Era::Legacy).await;
        for form in ["text", "number"] {
            let call = served.tool(form, "ask", json!({"key": form, "method": "roots/list"}));
            served.peer.say(call).await;
            let question = served.peer.read().await;
            let id = question["id"].as_u64().expect("an integer is minted");
            let id = if form == "text" { json!(id.to_string()) } else { json!(id) };
            served.peer.answer(&json!({"id": id}), json!({"roots": [form]})).await;
            let answer = served.peer.read().await;
            assert_eq!(answer["id"], form, "{answer}");
            assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains(form));
        }
    })
    .await;
}
