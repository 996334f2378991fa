//! Servers that are processes, and that `server/discover` breaks: they are replaced by a process that
//! gets `initialize` first.

use std::{sync::Arc, time::Duration};

use turnbuckle::{Client, ClientBuilder, Revision, transport::child_process::Spawn};
use turnbuckle_host::ClientGroup;

use crate::{
    child::{Traces, shell},
    rig::{eventually, within},
};

/// These servers are silent for good, so the patience can be short.
fn impatient() -> ClientBuilder {
    Client::builder().probe_timeout(Duration::from_millis(20))
}

/// A server that breaks on the probe in the way of the Python SDK up to 1.8: it reads on, and answers
/// nothing. `rest` are its other cases.
fn breaks(traces: &Traces, rest: &str) -> String {
    let (probed, end) = (traces.leave("probed"), traces.leave("end"));
    format!(
        r#"
        *'"server/discover"'*) {probed}; cat > /dev/null; {end}; exit 1;;
        {rest}
        "#
    )
}

/// A server that breaks on the probe and works after `initialize`.
fn old(traces: &Traces) -> Spawn {
    let rest = format!(
        r#"
        *'"initialize"'*) {}; answer "$welcome";;
        *'"die"'*) exit 3;;
        *'"tools/list"'*) answer '"result":{{"tools":[{{"name":"t","inputSchema":{{"type":"object"}}}}]}}';;
        *'"tools/call"'*) answer "$said";;
        "#,
        traces.leave("greeted")
    );
    shell(&breaks(traces, &rest))
}

async fn hello(client: &Client) {
    assert_eq!(client.revision(), Revision::V2025_11_25);
    assert_eq!(client.call_tool("t", ()).await.unwrap().to_text(), "hello");
}

// req: transport:stdio
#[tokio::test]
async fn a_server_that_never_answers_after_the_probe_is_ended_and_started_again() {
    within(async {
        let traces = Traces::new();
        let client = impatient().spawn(old(&traces)).await.unwrap();
        hello(&client).await;
        // The second process starts when the first one has ended.
        assert_eq!(traces.lines(), ["probed", "end", "greeted"]);
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_next_process_of_the_same_command_gets_initialize_at_once() {
    within(async {
        let traces = Traces::new();
        impatient().spawn(old(&traces)).await.unwrap().close().await;
        let client = impatient().spawn(old(&traces)).await.unwrap();
        hello(&client).await;
        assert_eq!(traces.lines(), ["probed", "end", "greeted", "greeted"]);
        // So does the process that replaces one that died.
        client.call_tool("die", ()).await.unwrap_err();
        hello(&client).await;
        assert_eq!(traces.lines(), ["probed", "end", "greeted", "greeted", "greeted"]);
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_exits_because_of_the_probe_is_remembered_too() {
    within(async {
        let traces = Traces::new();
        let body = format!(
            r#"
            *'"server/discover"'*) {}; exit 3;;
            *'"initialize"'*) {}; answer "$welcome";;
            *'"tools/call"'*) answer "$said";;
            "#,
            traces.leave("probed"),
            traces.leave("greeted"),
        );
        for _ in 0..2 {
            let client = Client::spawn(shell(&body)).await.unwrap();
            hello(&client).await;
            client.close().await;
        }
        assert_eq!(traces.lines(), ["probed", "greeted", "greeted"]);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_refuses_the_probe_and_exits_is_started_again() {
    within(async {
        let traces = Traces::new();
        let refusal = r#"answer '"error":{"code":-32600,"message":"not initialized"}'"#;
        let body = format!(
            r#"
            *'"server/discover"'*) {}; {refusal}; exit 3;;
            *'"initialize"'*) {}; answer "$welcome";;
            *'"tools/call"'*) answer "$said";;
            "#,
            traces.leave("probed"),
            traces.leave("greeted"),
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        hello(&client).await;
        assert_eq!(traces.lines(), ["probed", "greeted"]);
        client.close().await;
    })
    .await;
}

/// A modern server that reads the probe long before it answers is replaced too. That it refuses
/// `initialize` must not be the last word.
#[tokio::test]
async fn a_modern_server_that_was_slow_to_answer_is_spoken_to_as_modern() {
    within(async {
        for refusal in [
            r#"{"code":-32601,"message":"no such method"}"#,
            r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}"#,
        ] {
            let traces = Traces::new();
            let body = format!(
                r#"
                *'"server/discover"'*)
                    if [ ! -e '{0}' ]; then {1}; cat > /dev/null; {2}; exit 0; fi
                    {1}; answer '"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},"resultType":"complete"}}';;
                *'"initialize"'*) {3}; answer '"error":{refusal}';;
                "#,
                traces.path(),
                traces.leave("probed"),
                traces.leave("end"),
                traces.leave("greeted"),
            );
            // This server answers, so it is given the whole time.
            let client = Client::spawn(shell(&body)).await.unwrap();
            assert_eq!(client.revision(), Revision::LATEST);
            assert_eq!(traces.lines(), ["probed", "end", "greeted", "probed"]);
            client.close().await;
            // The next process is probed, and a server that answers is started once.
            let client = Client::spawn(shell(&body)).await.unwrap();
            assert_eq!(client.revision(), Revision::LATEST);
            assert_eq!(traces.lines(), ["probed", "end", "greeted", "probed", "probed"]);
            client.close().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_second_process_that_refuses_initialize_says_why() {
    within(async {
        let traces = Traces::new();
        let rest = r#"*'"initialize"'*) answer '"error":{"code":-32602,"message":"no licence"}';;"#;
        let error = impatient().spawn(shell(&breaks(&traces, rest))).await.unwrap_err();
        assert!(error.to_string().contains("no licence"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_is_given_up_leaves_no_process() {
    within(async {
        let traces = Traces::new();
        let connecting = tokio::spawn(Client::spawn(shell(&breaks(&traces, ""))));
        eventually(|| !traces.lines().is_empty()).await;
        connecting.abort();
        eventually(|| traces.lines() == ["probed", "end"]).await;
        // The second one, which answers nothing either.
        let traces = Traces::new();
        let greeted = format!(
            r#"*'"initialize"'*) {}; cat > /dev/null; {};;"#,
            traces.leave("greeted"),
            traces.leave("end"),
        );
        let connecting = tokio::spawn(impatient().spawn(shell(&breaks(&traces, &greeted))));
        eventually(|| traces.lines() == ["probed", "end", "greeted"]).await;
        connecting.abort();
        eventually(|| traces.lines() == ["probed", "end", "greeted", "end"]).await;
    })
    .await;
}

#[tokio::test]
async fn a_group_starts_such_a_server_and_starts_it_again() {
    within(async {
        let traces = Arc::new(Traces::new());
        let group = ClientGroup::new();
        let shared = traces.clone();
        group.start_with("old", move || impatient().spawn(old(&shared))).unwrap();
        hello(&group.ready("old").await.unwrap()).await;
        group.stop("old").await;
        group.start_again("old").unwrap();
        hello(&group.ready("old").await.unwrap()).await;
        assert_eq!(traces.lines(), ["probed", "end", "greeted", "greeted"]);
        group.stop("old").await;
    })
    .await;
}
