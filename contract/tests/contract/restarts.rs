//! Servers that are processes and die: what is started again, and how often.

use std::process::Command;

use serde_json::json;
use turnbuckle::{
    Client,
    client::{ConnectionState, Reconnect},
    transport::child_process::ExitMethod,
    types::Era,
};

use crate::{
    child::{LEGACY, Traces, shell},
    rig::{Rig, Wire, contract, eventually, within},
    web::launch,
};

contract! { killed on [stdio] in [legacy modern]:
    the_call_fails_and_the_next_one_reaches_another_process,
    twice_is_too_often_and_the_reason_says_how_it_ended,
    an_orderly_end_reports_how_the_process_left,
}

fn kill(process: u32) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
}

async fn the_call_fails_and_the_next_one_reaches_another_process(rig: &Rig) {
    let held = rig.hold("hold", "k").await;
    let before = rig.report().await.process;
    kill(before);
    let error = held.error().await;
    assert!(error.is_closed() && error.maybe_executed(), "{error}");
    assert!(error.to_string().contains("the call may have run"), "{error}");
    let after = rig.report().await;
    assert_ne!(after.process, before);
    assert_eq!(after.of("k").started, 0, "it was made again");
    assert!(matches!(rig.client.state(), ConnectionState::Ready { generation: 2, .. }));
    rig.alive().await;
}

async fn twice_is_too_often_and_the_reason_says_how_it_ended(rig: &Rig) {
    let mut states = rig.client.states();
    kill(rig.report().await.process);
    while !matches!(states.next().await, Some(ConnectionState::Ready { generation: 2, .. })) {}
    let process = rig.report().await.process;
    rig.tool("mutter", json!({"text": "its last words"})).await.unwrap();
    eventually(|| !rig.client.last_stderr().is_empty()).await;
    kill(process);
    let reason = loop {
        match states.next().await {
            Some(ConnectionState::Closed { reason }) => break reason,
            Some(_) => {}
            None => panic!("it ended without a reason"),
        }
    };
    assert!(reason.to_string().contains("SIGKILL"), "{reason}");
    assert!(reason.to_string().contains("as often as it may be"), "{reason}");
    assert_eq!(reason.last_stderr(), ["its last words"]);
    let error = rig.tool("echo", json!({"text": "x"})).await.unwrap_err();
    assert!(error.is_closed() && !error.maybe_executed(), "{error}");
    assert_eq!(error.last_stderr(), ["its last words"]);
}

async fn an_orderly_end_reports_how_the_process_left(rig: &Rig) {
    let held = rig.hold("hold", "k").await;
    let ending = tokio::spawn(rig.client.clone().shutdown(std::time::Duration::from_millis(50)));
    let error = held.error().await;
    assert!(error.is_closed() && error.maybe_executed(), "{error}");
    let report = ending.await.unwrap();
    assert_eq!((report.finished, report.abandoned), (0, 1));
    assert_eq!(report.exit.unwrap().how, ExitMethod::Exited);
}

#[tokio::test]
async fn many_calls_start_one_process() {
    within(async {
        let traces = Traces::new();
        let body = format!(
            r#"
            *'"die"'*) exit 3;;
            *'"initialize"'*) {}; answer "$welcome";;
            {LEGACY}
            "#,
            traces.leave("started")
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        client.call_tool("die", ()).await.unwrap_err();
        let calls: Vec<_> = (0..20).map(|_| launch(client.call_tool("t", ()))).collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().to_text(), "hello");
        }
        assert_eq!(traces.lines(), ["started", "started"]);
        client.close().await;
    })
    .await;
}

/// A server that does not come up again says why, and why it had left.
#[tokio::test]
async fn a_server_that_does_not_come_up_again_says_why() {
    within(async {
        let traces = Traces::new();
        let body = format!(
            r#"
            *'"die"'*) echo 'out of cheese' >&2; exit 9;;
            *'"server/discover"'*)
                if [ -e '{0}' ]; then echo 'the port is taken' >&2; exit 4; fi
                {1}; answer '"error":{{"code":-32601,"message":"no"}}';;
            *'"initialize"'*)
                if [ $(wc -l < '{0}') -gt 1 ]; then exit 4; fi
                {1}; answer "$welcome";;
            "#,
            traces.path(),
            traces.leave("up"),
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        client.call_tool("die", ()).await.unwrap_err();
        let error = client.call_tool("t", ()).await.unwrap_err();
        assert!(!error.maybe_executed(), "{error}");
        let told = error.to_string();
        for part in ["status 9", "could not be made again", "status 4"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    })
    .await;
}

/// The second process never answers. Whoever lets go of the client ends it.
#[tokio::test]
async fn dropping_the_client_while_a_process_starts_leaves_no_process() {
    within(async {
        let traces = Traces::new();
        let body = format!(
            r#"
            *'"die"'*) exit 3;;
            *'"server/discover"'*)
                if [ -e '{0}' ]; then {2}; cat > /dev/null; {3}; exit 0; fi
                {1}; answer '"error":{{"code":-32601,"message":"no"}}';;
            {LEGACY}
            "#,
            traces.path(),
            traces.leave("first"),
            traces.leave("second"),
            traces.leave("end"),
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        client.call_tool("die", ()).await.unwrap_err();
        eventually(|| traces.lines() == ["first", "second"]).await;
        drop(client);
        eventually(|| traces.lines() == ["first", "second", "end"]).await;
    })
    .await;
}

#[tokio::test]
async fn a_process_that_is_never_started_again_stays_dead() {
    within(async {
        let builder = Client::builder().reconnect(Reconnect::never());
        let rig = Rig::with(Wire::Stdio, Era::Modern, builder, &[]).await;
        kill(rig.report().await.process);
        let mut states = rig.client.states();
        while !matches!(states.next().await, Some(ConnectionState::Closed { .. })) {}
        let error = rig.tool("echo", json!({"text": "x"})).await.unwrap_err();
        assert!(error.is_closed() && error.to_string().contains("SIGKILL"), "{error}");
    })
    .await;
}
