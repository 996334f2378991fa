//! Both are real, and the way between them fails as it is told to: what a call comes to then, and
//! whether the connection outlives it. All in paused time.

use std::time::Duration;

use serde_json::json;
use turnbuckle::{
    Client, Error, ErrorKind, Limits, Result,
    testing::{Fault, Faults, TestClient, TranscriptSide, link},
    types::Era,
};
use turnbuckle_contract::{Fixture, server};

use crate::{
    raw::in_both_eras,
    rig::{eventually, pinned, poll_once, virtually},
};

const TIME: Duration = Duration::from_secs(10);

/// The number of a client's first call, after what opens the connection.
fn first_call(era: Era) -> usize {
    match era {
        Era::Legacy => 3,
        _ => 1,
    }
}

/// The number of the server's first answer to a call.
fn first_answer(era: Era) -> usize {
    match era {
        Era::Legacy => 2,
        _ => 1,
    }
}

async fn connected(era: Era, faults: Faults) -> Result<TestClient> {
    let server = server(&Fixture::default(), Limits::default());
    let client = TestClient::new(&server).revision(pinned(era)).faults(faults);
    client.with(|client| client.connect_timeout(TIME)).await
}

async fn echo(client: &Client, text: &str) -> Result<String> {
    let call = client.call_tool("echo", json!({"text": text})).timeout(TIME);
    call.await.map(|result| result.to_text())
}

async fn echoes(client: &Client, text: &str) {
    assert_eq!(echo(client, text).await.unwrap(), text);
}

fn junk() -> Fault {
    Fault::Garbage(b"\xff% {\"jsonrpc\":".to_vec())
}

in_both_eras! {
    a_message_in_pieces_is_one_message,
    a_message_that_is_late_is_waited_for,
    a_message_that_is_too_late_costs_its_call,
    an_answer_that_comes_twice_counts_once,
    a_request_that_comes_twice_ends_once_and_disturbs_no_other,
    a_lost_request_costs_its_call,
    a_lost_answer_costs_its_call,
    junk_costs_nothing,
    a_cut_fails_what_is_in_flight_and_whatever_follows,
    no_fault_anywhere_makes_anything_hang,
    a_transcript_tells_who_said_what,
}

async fn a_message_in_pieces_is_one_message(era: Era) {
    for size in [0, 1, 7] {
        let split = Fault::Split(size);
        let faults = Faults::none().every_client_message(split.clone()).every_server_message(split);
        let client = connected(era, faults).await.unwrap();
        for text in ["a", "größer", "c"] {
            echoes(&client, text).await;
        }
    }
}

async fn a_message_that_is_late_is_waited_for(era: Era) {
    let late = Fault::Delay(TIME / 4);
    let faults = Faults::none().every_client_message(late.clone()).every_server_message(late);
    let client = connected(era, faults).await.unwrap();
    let start = tokio::time::Instant::now();
    echoes(&client, "a").await;
    assert!(start.elapsed() >= TIME / 2, "{:?}", start.elapsed());
}

async fn a_message_that_is_too_late_costs_its_call(era: Era) {
    let faults = Faults::none().server_message(first_answer(era), Fault::Delay(2 * TIME));
    let client = connected(era, faults).await.unwrap();
    assert!(echo(&client, "a").await.unwrap_err().is_timeout());
    // What was said behind it waits too, and arrives.
    let call = client.call_tool("echo", json!({"text": "b"})).timeout(2 * TIME);
    assert_eq!(call.await.unwrap().to_text(), "b");
    assert_eq!(client.counters().late_answers, 1);
}

async fn an_answer_that_comes_twice_counts_once(era: Era) {
    let faults = Faults::none().server_message(first_answer(era), Fault::Duplicate);
    let client = connected(era, faults).await.unwrap();
    for text in ["a", "b"] {
        echoes(&client, text).await;
    }
    assert_eq!(client.counters().late_answers, 1);
}

async fn a_request_that_comes_twice_ends_once_and_disturbs_no_other(era: Era) {
    let faults = Faults::none().client_message(first_call(era), Fault::Duplicate);
    let client = connected(era, faults).await.unwrap();
    // The second has the id of the first, which the server may refuse before the first is done.
    match echo(&client, "a").await {
        Ok(text) => assert_eq!(text, "a"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Remote, "{error}"),
    }
    echoes(&client, "b").await;
}

async fn a_lost_request_costs_its_call(era: Era) {
    let faults = Faults::none().client_message(first_call(era), Fault::Lose);
    let client = connected(era, faults).await.unwrap();
    assert!(echo(&client, "a").await.unwrap_err().is_timeout());
    echoes(&client, "b").await;
}

async fn a_lost_answer_costs_its_call(era: Era) {
    let faults = Faults::none().server_message(first_answer(era), Fault::Lose);
    let client = connected(era, faults).await.unwrap();
    let error = echo(&client, "a").await.unwrap_err();
    assert!(error.is_timeout() && error.maybe_executed(), "{error}");
    echoes(&client, "b").await;
}

async fn junk_costs_nothing(era: Era) {
    let faults = Faults::none()
        .client_message(first_call(era), junk())
        .server_message(first_answer(era), junk());
    let client = connected(era, faults).await.unwrap();
    for text in ["a", "b"] {
        echoes(&client, text).await;
    }
    assert_eq!(client.counters().unreadable, 1);
}

async fn a_cut_fails_what_is_in_flight_and_whatever_follows(era: Era) {
    let (call, answer) = (first_call(era), first_answer(era));
    for after in [0, 20, 1 << 20] {
        for (side, faults) in [
            (TranscriptSide::Client, Faults::none().client_message(call, Fault::Cut(after))),
            (TranscriptSide::Server, Faults::none().server_message(answer, Fault::Cut(after))),
        ] {
            let client = connected(era, faults).await.unwrap();
            let first = echo(&client, "a").await;
            match first {
                // The whole answer had crossed.
                Ok(text) => assert!(text == "a" && side == TranscriptSide::Server && after > 20),
                Err(error) => assert!(error.is_closed(), "{error}"),
            }
            assert!(echo(&client, "b").await.unwrap_err().is_closed());
            client.close().await.unwrap();
        }
    }
}

/// Every fault with every message of a short conversation.
async fn no_fault_anywhere_makes_anything_hang(era: Era) {
    let faults = [
        Fault::Lose,
        Fault::Delay(TIME / 2),
        Fault::Delay(3 * TIME),
        Fault::Split(1),
        Fault::Duplicate,
        junk(),
        Fault::Cut(0),
        Fault::Cut(30),
        Fault::Cut(1 << 20),
    ];
    for fault in faults {
        for number in 1..=5 {
            for side in [TranscriptSide::Client, TranscriptSide::Server] {
                let faults = match side {
                    TranscriptSide::Client => Faults::none().client_message(number, fault.clone()),
                    TranscriptSide::Server => Faults::none().server_message(number, fault.clone()),
                };
                conversation(era, faults, matches!(fault, Fault::Cut(_))).await;
            }
        }
    }
}

async fn conversation(era: Era, faults: Faults, is_cut: bool) {
    let told = format!("{faults:?}");
    let client = match connected(era, faults).await {
        Ok(client) => client,
        Err(error) => return assert!(is_typed(&error), "{told}: {error}"),
    };
    let mut last = Ok(String::new());
    for text in ["a", "b", "c", "d", "e"] {
        last = echo(&client, text).await;
        match &last {
            Ok(said) => assert_eq!(said, text, "{told}"),
            Err(error) => assert!(is_typed(error), "{told}: {error}"),
        }
    }
    if !is_cut && last.is_err() {
        // The fault befell the last call itself; what is late is there after that.
        let call = client.call_tool("echo", json!({"text": "alive"})).timeout(4 * TIME);
        assert_eq!(call.await.unwrap().to_text(), "alive", "{told}");
    }
    client.close().await.unwrap();
}

fn is_typed(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Timeout | ErrorKind::Closed | ErrorKind::Remote | ErrorKind::Connect
    )
}

async fn a_transcript_tells_who_said_what(era: Era) {
    let client = connected(era, Faults::none()).await.unwrap();
    echoes(&client, "hi").await;
    let call = client.call_tool("hold", json!({"key": "k"})).no_timeouts();
    let mut call = call.into_future();
    assert!(poll_once(&mut call).await.is_none());
    let calls = || client.transcript().to_string().matches("tools/call").count();
    eventually(|| calls() == 2).await;
    drop(call);
    eventually(|| client.transcript().to_string().contains("notifications/cancelled")).await;
    let modern = r#"
        --> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"},"_meta":"<_meta 1>"}}
        <-- {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}],"resultType":"complete","_meta":"<_meta 2>"}}
        --> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hold","arguments":{"key":"k"},"_meta":"<_meta 3>"}}
        --> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"caller cancelled"}}
    "#;
    let legacy = r#"
        --> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test-client","version":"1.0"}}}
        <-- {"jsonrpc":"2.0","id":1,"result":"<result 1>"}
        --> {"jsonrpc":"2.0","method":"notifications/initialized"}
        --> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"},"_meta":"<_meta 1>"}}
        <-- {"jsonrpc":"2.0","id":2,"result":"<result 2>"}
        --> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hold","arguments":{"key":"k"}}}
        --> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"caller cancelled"}}
    "#;
    match era {
        Era::Legacy => client.transcript().mask("_meta").mask("result").assert_eq(legacy),
        _ => client.transcript().mask("_meta").assert_eq(modern),
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_carries_whatever_a_stream_does() {
    virtually(async {
        let (ours, theirs) = link(Faults::none().server_message(1, Fault::Delay(TIME / 2)));
        let server = server(&Fixture::default(), Limits::default());
        tokio::spawn(server.serve(theirs).into_future());
        let client = Client::over(ours).await.unwrap();
        let text = "x".repeat(1 << 20);
        echoes(&client, &text).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_can_not_serve_says_why() {
    virtually(async {
        let hello = || turnbuckle::tool("hello", async || "hi");
        let server = turnbuckle::Server::new("s", "1").tool(hello()).tool(hello());
        let error = TestClient::new(&server).await.unwrap_err();
        assert!(error.to_string().contains("hello"), "{error}");
    })
    .await;
}
