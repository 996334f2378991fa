//! Servers that are processes: how they end, what they print, how they start again.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::{Duration, Instant},
};

use serde_json::json;
use turnbuckle::{
    Client, ErrorKind, Revision,
    transport::child_process::{ExitMethod, Spawn},
    types::Era,
};

use crate::rig::{Rig, Wire, child, contract, eventually, within};

contract! { on_a_child on [stdio] in [legacy modern]:
    law06_a_killed_server_fails_every_call_at_once,
    // req: transport:stdio:clean-shutdown
    law06_the_end_of_its_input_ends_the_server_promptly,
    // req: transport:stdio:stream-purity, transport:stdio:stderr-passthrough
    law09_nothing_that_a_handler_prints_reaches_the_wire,
}

async fn law06_a_killed_server_fails_every_call_at_once(rig: &Rig) {
    rig.tool("mutter", json!({"text": "its last words"})).await.unwrap();
    eventually(|| !rig.client.last_stderr().is_empty()).await;
    let mut waiting = Vec::new();
    for key in ["a", "b", "c"] {
        waiting.push(rig.hold("hold", key).await);
    }
    let process = rig.report().await.process;
    let before = Instant::now();
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    for call in waiting {
        let error = call.error().await;
        assert!(error.is_closed() && error.maybe_executed(), "{error}");
        assert!(error.to_string().contains("SIGKILL"), "{error}");
        assert_eq!(error.last_stderr(), ["its last words"]);
    }
    // At once means that nobody waits for a clock; the bound allows for a busy machine.
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
}

async fn law06_the_end_of_its_input_ends_the_server_promptly(rig: &Rig) {
    let _held = rig.hold("hold", "k").await;
    let _deaf = rig.hold("moved", "m").await;
    let before = Instant::now();
    let report = rig.client.clone().close().await.unwrap();
    assert_eq!(report.how, ExitMethod::Exited, "{report}");
    assert!(report.is_success(), "{report}");
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
}

async fn law09_nothing_that_a_handler_prints_reaches_the_wire(rig: &Rig) {
    rig.tool("noise", json!({"text": "noise"})).await.unwrap();
    rig.alive().await;
    assert_eq!(rig.client.counters().unreadable, 0);
    // The two pipes are read apart: the answer may have overtaken the noise.
    eventually(|| {
        let mut printed = rig.client.last_stderr();
        printed.sort();
        printed == ["noise from a child", "noise from eprintln", "noise from println"]
    })
    .await;
    assert_eq!(rig.client.counters().unreadable, 0);
}

/// A server in a few lines of shell. `$id` is the id of the request in `$line`.
pub(crate) fn shell(body: &str) -> Spawn {
    let script = format!(
        r#"
        answer() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$1"; }}
        welcome='"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"sh","version":"1"}}}}'
        said='"result":{{"content":[{{"type":"text","text":"hello"}}]}}'
        while IFS= read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
            {body}
            esac
        done
        "#
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    Spawn::new(command)
}

pub(crate) const LEGACY: &str = r#"
    *'"server/discover"'*) answer '"error":{"code":-32601,"message":"no"}';;
    *'"initialize"'*) answer "$welcome";;
    *'"tools/call"'*) answer "$said";;
"#;

/// A file in which scripts leave traces.
pub(crate) struct Traces(PathBuf);

impl Traces {
    pub(crate) fn new() -> Traces {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("turnbuckle-contract-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&path);
        Traces(path)
    }

    /// Shell that leaves a trace.
    pub(crate) fn leave(&self, text: &str) -> String {
        format!("echo {text} >> '{}'", self.0.display())
    }

    /// Where they are.
    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

// req: transport:stdio
#[tokio::test]
async fn a_legacy_server_of_shell_works() {
    within(async {
        let client = Client::spawn(shell(LEGACY)).await.unwrap();
        assert_eq!(client.revision(), Revision::V2025_11_25);
        assert_eq!(client.call_tool("t", ()).await.unwrap().to_text(), "hello");
        assert_eq!(client.close().await.unwrap().how, ExitMethod::Exited);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_exits_on_the_probe_is_started_once_more() {
    within(async {
        let traces = Traces::new();
        let (probed, greeted) = (traces.leave("probed"), traces.leave("greeted"));
        let body = format!(
            r#"
            *'"server/discover"'*) {probed}; echo 'what is this?' >&2; exit 3;;
            *'"initialize"'*) {greeted}; answer "$welcome";;
            *'"tools/call"'*) answer "$said";;
            "#
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        assert_eq!(client.revision(), Revision::V2025_11_25);
        assert_eq!(client.call_tool("t", ()).await.unwrap().to_text(), "hello");
        assert_eq!(traces.lines(), ["probed", "greeted"]);
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_always_exits_is_started_no_third_time() {
    within(async {
        let traces = Traces::new();
        let seen = traces.leave("$id");
        let body = format!("*) {seen}; echo 'no config' >&2; exit 3;;");
        let error = Client::spawn(shell(&body)).await.unwrap_err();
        assert_eq!(traces.lines().len(), 2, "{:?}", traces.lines());
        assert!(error.to_string().contains("status 3"), "{error}");
        assert!(error.to_string().contains("no config"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_exits_before_it_is_asked_anything_is_an_error_with_its_last_words() {
    within(async {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'one' >&2; echo 'the port is taken' >&2; exit 7"]);
        let error = Client::spawn(command).await.unwrap_err();
        assert!(error.to_string().contains("status 7"), "{error}");
        assert_eq!(error.last_stderr(), ["one", "the port is taken"]);
        let error = Client::spawn(Command::new("/nonexistent/server")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert!(error.to_string().contains("/nonexistent/server"), "{error}");
    })
    .await;
}

/// What a program prints in its place is mostly why: it is no server, or prints where it may not.
#[tokio::test]
async fn what_a_server_printed_instead_of_speaking_is_told() {
    within(async {
        let long = format!("echo {}; exit 3", "x".repeat(5000));
        let shortened = format!("it printed `{}…`, which is no message", "x".repeat(200));
        for (script, told) in [
            ("echo hi", "it printed `hi`, which is no message"),
            ("echo one; echo two; exit 3", "it printed `one`, which is no message"),
            (r"printf '\033[1mhi\tyou\nmore'", r"it printed `\u{1b}[1mhi\tyou`, which"),
            (&long, &shortened),
        ] {
            for pinned in [None, Some(Revision::V2025_11_25)] {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("echo sorry >&2; {script}")]);
                let builder = match pinned {
                    Some(revision) => Client::builder().revision(revision),
                    None => Client::builder(),
                };
                let error = builder.spawn(command).await.unwrap_err();
                assert!(error.is_closed(), "{error}");
                let text = error.to_string();
                assert!(text.contains("exited with status"), "{text}");
                assert_eq!(text.matches(told).count(), 1, "{text}");
                assert_eq!(error.last_stderr(), ["sorry"]);
                assert_eq!(text.matches("its stderr says").count(), 1, "{text}");
            }
        }
    })
    .await;
}

// req: transport:stdio:stderr-passthrough
#[tokio::test]
async fn a_flood_on_stderr_stops_nothing() {
    within(async {
        // Far more than a pipe holds, before and after the handshake and without a line end.
        let flood = "yes 'a chatty server says the same thing again' | head -c 3000000 >&2";
        let body = format!(
            r#"
            *'"server/discover"'*) {flood}; answer '"error":{{"code":-32601,"message":"no"}}';;
            *'"initialize"'*) answer "$welcome";;
            *'"tools/call"'*) {flood}; head -c 3000000 /dev/zero | tr '\0' x >&2; echo >&2; echo 'the end' >&2; answer "$said";;
            "#
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        assert_eq!(client.call_tool("t", ()).await.unwrap().to_text(), "hello");
        // The two pipes are read apart: the answer may have overtaken the last line.
        eventually(|| client.last_stderr().last().is_some_and(|line| line == "the end")).await;
        let kept: usize = client.last_stderr().iter().map(String::len).sum();
        assert!(kept < 1 << 20, "{kept} bytes of chatter are kept");
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn junk_on_stdout_costs_one_line() {
    within(async {
        let body = format!(
            r#"
            *'"tools/call"'*) echo 'DEBUG handling a call'; printf '\377\376\n'; answer "$said";;
            {LEGACY}
            "#
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        assert_eq!(client.call_tool("t", ()).await.unwrap().to_text(), "hello");
        assert_eq!(client.counters().unreadable, 2);
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn law06_a_server_that_exits_in_the_middle_of_a_call_is_an_error_with_its_status() {
    within(async {
        let body = format!(
            r#"
            *'"tools/call"'*) echo 'out of cheese' >&2; exit 9;;
            {LEGACY}
            "#
        );
        let client = Client::spawn(shell(&body)).await.unwrap();
        let (one, two) = tokio::join!(client.call_tool("t", ()), client.call_tool("t", ()));
        for error in [one.unwrap_err(), two.unwrap_err()] {
            assert!(error.is_closed(), "{error}");
            assert!(error.to_string().contains("status 9"), "{error}");
            assert_eq!(error.last_stderr(), ["out of cheese"]);
        }
    })
    .await;
}

#[tokio::test]
async fn b13_a_call_to_a_process_that_does_not_read_can_be_dropped() {
    within(async {
        let body = format!(
            r#"
            *'"tools/call"'*) exec tail -f /dev/null;;
            {LEGACY}
            "#
        );
        let spawn = shell(&body)
            .close_grace(Duration::from_millis(20))
            .terminate_grace(Duration::from_millis(20));
        let client = Client::spawn(spawn).await.unwrap();
        let big = json!({"padding": "x".repeat(1 << 20)});
        for _ in 0..5 {
            let call = client.call_tool("t", &big).timeout(Duration::from_millis(20));
            assert!(call.await.unwrap_err().is_timeout());
        }
        let before = Instant::now();
        client.close().await;
        assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    })
    .await;
}

/// Dropping the last handle ends the process, with nobody waiting for it.
#[tokio::test]
async fn law06_a_dropped_client_ends_its_server() {
    within(async {
        let rig = Rig::new(Wire::Stdio, Era::Modern).await;
        let process = rig.report().await.process;
        let held = rig.hold("hold", "k").await;
        held.abandon().await;
        drop(rig);
        let alive = || PathBuf::from(format!("/proc/{process}/stat")).exists();
        eventually(|| !alive()).await;
    })
    .await;
}

// req: transport:stdio
#[tokio::test]
async fn the_fixture_negotiates_the_newest_revision() {
    within(async {
        let client = Client::spawn(child(&[])).await.unwrap();
        assert_eq!(client.revision(), Revision::LATEST);
        assert_eq!(client.server_info().unwrap().name, "contract");
        assert_eq!(client.instructions().as_deref(), Some("A fixture."));
        client.close().await;
    })
    .await;
}

/// The end of its input is how a server is asked to leave. One that is given up before it has
/// said a word hears it too: a signal would end this script before it could tell.
#[tokio::test]
async fn law06_a_server_that_is_given_up_while_connecting_sees_the_end_of_its_input() {
    within(async {
        let traces = Traces::new();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("cat > /dev/null; {}", traces.leave("end"))]);
        let mut connecting = Box::pin(Client::spawn(command));
        assert!(crate::rig::poll_once(&mut connecting).await.is_none());
        drop(connecting);
        eventually(|| traces.lines() == ["end"]).await;
    })
    .await;
}
