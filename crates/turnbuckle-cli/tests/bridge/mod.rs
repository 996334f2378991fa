//! `turnbuckle bridge`, with real processes on both sides of it.

use std::{io::Write as _, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{
    Gate, command, folder, http::Served, in_folder, modern_call, server, start, turnbuckle,
};

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

/// Whoever stops a bridge finds nothing of it left, even if the server takes its time.
#[test]
fn a_bridge_that_is_stopped_outlives_its_server() {
    for far in REVISIONS {
        let folder = folder(&format!("bridge-last-{far}"), &[]);
        std::fs::create_dir_all(&folder).unwrap();
        let (script, ended) = (folder.join("server.sh"), folder.join("ended"));
        let binary = env!("CARGO_BIN_EXE_turnbuckle");
        let text = format!("'{binary}' serve\nsleep 0.5\necho ended > '{}'\n", ended.display());
        std::fs::write(&script, text).unwrap();
        let script = script.to_str().unwrap();
        let bridge = Served::by(&["bridge", "--revision", far, "--", "sh", script]);
        let run = bridge.call(&["echo", "text=last"]);
        assert_eq!((run.status, &*run.stdout), (0, "last\n"), "{}", run.stderr);
        bridge.signal(Signal::TERM);
        let run = bridge.wait();
        assert_eq!(run.status, 0, "{}", run.stderr);
        assert!(ended.exists(), "{far}: the server was left behind");
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

/// Over legacy HTTP too, where a cancel is a message.
#[test]
fn a_signal_cancels_what_a_bridge_has_in_flight() {
    for far in REVISIONS {
        let served = Served::new();
        let mut bridge = command(["bridge", "--stdio", served.url(), "--revision", far])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let call = modern_call("sleep", r#"{"ms":3600000}"#);
        writeln!(bridge.stdin.as_ref().unwrap(), "{call}").unwrap();
        served.wait_for_count("in_flight", 1);
        kill_process(Pid::from_child(&bridge), Signal::TERM).unwrap();
        served.wait_for_count("cancelled", 1);
        assert!(bridge.wait().unwrap().success(), "{far}");

        let mut bridge =
            Served::by(&["bridge", "--http", "127.0.0.1:0", served.url(), "--revision", far]);
        let caller = start(["call", bridge.url(), "sleep", "ms=3600000"]);
        served.wait_for_count("in_flight", 1);
        bridge.signal(Signal::TERM);
        assert!(bridge.line().starts_with("stopping: "));
        bridge.signal(Signal::TERM);
        served.wait_for_count("cancelled", 2);
        assert_eq!(bridge.wait().status, 143);
        caller.interrupt();
        caller.wait();
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

/// A server that can't be reached is known before anyone is served, on both wires.
#[test]
fn a_server_that_can_not_be_reached_ends_it_at_once() {
    let exits = "sh -c 'read -r line; echo gone >&2; exit 7'";
    let table = [
        (&["bridge", "--stdio", exits][..], "gone"),
        (&["bridge", "--http", "127.0.0.1:0", exits], "gone"),
        (&["bridge", "--stdio", "--", "no-such-program"], "no-such-program"),
        (&["bridge", "--", "no-such-program"], "no-such-program"),
        (&["bridge", "http://127.0.0.1:9/mcp"], "127.0.0.1:9"),
        (&["bridge", "http://127.0.0.1:9/mcp", "--http", "127.0.0.1:0"], "127.0.0.1:9"),
    ];
    for (arguments, expected) in table {
        let run = turnbuckle(arguments);
        assert_eq!((run.status, &*run.stdout), (3, ""), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
        assert!(!run.sentence().is_empty(), "{arguments:?}: {}", run.stderr);
    }
    // Also while a client holds its end open, as one that has started it does.
    let mut waits = std::process::Command::new(env!("CARGO_BIN_EXE_turnbuckle"))
        .args(["bridge", "--stdio", exits])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let held = waits.stdin.take();
    let output = waits.wait_with_output().unwrap();
    drop(held);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_server_can_be_given_by_its_name() {
    let served = Served::new();
    let binary = env!("CARGO_BIN_EXE_turnbuckle");
    let servers = serde_json::json!({"mcpServers": {
        "web": {"url": served.url()}, "local": {"command": binary, "args": ["serve"]}}});
    let folder = folder("bridge-names", &[("mcp.json", &servers.to_string())]);
    let file = folder.join("mcp.json");
    let file = file.to_str().unwrap();
    let target = bridge(&format!("web --config '{file}'"));
    let run = turnbuckle(["call", &target, "echo", "text=by name"]);
    assert_eq!((run.status, &*run.stdout), (0, "by name\n"), "{}", run.stderr);
    let over_http = Served::by(&["bridge", "local", "--config", file]);
    let run = over_http.call(&["echo", "text=by name"]);
    assert_eq!((run.status, &*run.stdout), (0, "by name\n"), "{}", run.stderr);
    // After `--` it is a program, and a file of the folder counts for nothing unless it is named.
    for arguments in [&["bridge", "--", "local"][..], &["bridge", "web", "--stdio"]] {
        let run = in_folder(&folder, arguments);
        assert_eq!(run.status, 3, "{arguments:?}: {}", run.stderr);
    }
    let run = turnbuckle(["bridge", "other", "--config", file]);
    assert_eq!(run.status, 2, "{}", run.stderr);
    assert!(run.sentence().contains("it has `local`, `web`"), "{}", run.stderr);
}

/// A legacy server is started for its client once that is known; it never runs twice for it.
#[test]
fn a_legacy_server_behind_stdio_never_runs_twice_at_a_time() {
    let folder = folder("bridge-alone", &[]);
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("server.sh");
    let (lock, starts) = (folder.join("lock"), folder.join("starts"));
    let text = format!(
        "mkdir '{0}' || exit 9\necho x >> '{1}'\n'{2}' serve\nrmdir '{0}'\n",
        lock.display(),
        starts.display(),
        env!("CARGO_BIN_EXE_turnbuckle")
    );
    std::fs::write(&script, text).unwrap();
    let far = format!("--stdio --revision 2025-11-25 -- sh '{}'", script.display());
    for (near, expected) in [("2025-11-25", 2), ("2026-07-28", 1)] {
        let _ = std::fs::remove_file(&starts);
        let run = turnbuckle(["call", &bridge(&far), "echo", "text=alone", "--revision", near]);
        assert_eq!((run.status, &*run.stdout), (0, "alone\n"), "{near}: {}", run.stderr);
        assert_eq!(std::fs::read_to_string(&starts).unwrap().lines().count(), expected, "{near}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        &["bridge"][..],
        &["bridge", "--stdio", "--http", "127.0.0.1:0", "server"],
        &["bridge", "http://127.0.0.1:9/mcp", "--env", "A=b"],
        &["bridge", "my-server", "--header", "A: b"],
        &["bridge", "my-server", "--", "other"],
        &["bridge", "--config", "mcp.json", "--", "other"],
        &["bridge", "http://"],
    ] {
        let run = turnbuckle(arguments);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{arguments:?}: {}", run.stderr);
    }
}
