//! `turnbuckle bridge`, with real processes on both sides of it.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Gate, http::Served, server, start, turnbuckle};

/// The command line of a bridge, to be started by a client.
fn bridge(arguments: &str) -> String {
    format!("'{}' bridge {arguments}", env!("CARGO_BIN_EXE_turnbuckle"))
}

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

#[test]
fn a_process_is_put_behind_http_for_both_eras() {
    for far in REVISIONS {
        let binary = env!("CARGO_BIN_EXE_turnbuckle");
        let bridge = Served::by(&["bridge", "--revision", far, "--", binary, "serve"]);
        for near in REVISIONS {
            let run = bridge.call(&["add", "a=2", "b=40", "--revision", near]);
            assert_eq!((run.status, &*run.stdout), (0, "{\"sum\":42}\n"), "{}", run.stderr);
            let run = bridge.call(&["fail", "message=no", "--revision", near]);
            assert_eq!(run.status, 1, "{}", run.stderr);
            let run = turnbuckle(["tools", bridge.url(), "--revision", near]);
            assert!(run.stdout.contains("offers 10 tools"), "{near} {far}: {}", run.stdout);
        }
        bridge.signal(Signal::TERM);
        let run = bridge.wait();
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(run.stderr.contains("stopped: "), "{}", run.stderr);
    }
}

#[test]
fn a_url_is_put_behind_standard_input_and_output_for_both_eras() {
    let served = Served::new();
    for far in REVISIONS {
        let target = bridge(&format!("{} --revision {far}", served.url()));
        for near in REVISIONS {
            let run = turnbuckle(["call", &target, "echo", "text=over", "--revision", near]);
            assert_eq!((run.status, &*run.stdout), (0, "over\n"), "{near} {far}: {}", run.stderr);
        }
    }
    let run = turnbuckle(["call", &bridge(served.url()), "echo", "text=found"]);
    assert_eq!((run.status, &*run.stdout), (0, "found\n"), "{}", run.stderr);
}

#[test]
fn ctrl_c_of_a_client_stops_the_handler_behind_the_bridge() {
    for near in REVISIONS {
        let gate = Gate::new(&format!("bridge-{near}"));
        let target = gate.tapped(&server());
        let bridge = Served::by(&["bridge", &target]);
        let arguments = ["call", bridge.url(), "sleep", "ms=3600000", "--revision", near];
        let running = start(arguments);
        let sent = gate.wait_for("tools/call");
        running.interrupt();
        let cancelled = gate.wait_for("notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], sent["id"], "{near}");
        assert_eq!(running.wait().status, 130);
    }
}

#[test]
fn a_path_and_progress_go_along() {
    let bridge = Served::by(&["bridge", &server(), "--http", "127.0.0.1:0", "--path", "/demo"]);
    assert!(bridge.url().ends_with("/demo"), "{}", bridge.url());
    let run = bridge.call(&["countdown", "from=3", "delay_ms=1", "--output", "json"]);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "done");
}

#[test]
fn a_client_on_stdio_is_told_of_a_server_that_does_not_start() {
    let target = "sh -c 'read -r line; echo gone >&2; exit 7'";
    let mut bridge = std::process::Command::new(env!("CARGO_BIN_EXE_turnbuckle"))
        .args(["bridge", "--stdio", target])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    use std::io::Write as _;
    bridge.stdin.as_mut().unwrap().write_all(format!("{ask}\n").as_bytes()).unwrap();
    let output = bridge.wait_with_output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.contains("the server behind this bridge"), "{answer}");
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        &["bridge"][..],
        &["bridge", "--stdio", "--http", "127.0.0.1:0", "server"],
        &["bridge", "http://127.0.0.1:9/mcp", "--env", "A=b"],
        &["bridge", "my-server", "--header", "A: b"],
        &["bridge", "my-server", "--", "other"],
    ] {
        let run = turnbuckle(arguments);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{arguments:?}: {}", run.stderr);
    }
    let run = turnbuckle(["bridge", "--", "no-such-program"]);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.contains("no-such-program"), "{}", run.stderr);
}
