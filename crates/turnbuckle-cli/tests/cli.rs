//! The real binary against its own demo server, as a real child.
#![cfg(unix)]

mod bridge;
mod foreign;
mod http;
mod login;
mod output;
#[cfg(target_os = "linux")]
mod processes;
mod questions;
mod support;
mod verbs;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::{Gate, Run, Terminal, Typed, server, turnbuckle};

fn call(arguments: &[&str]) -> Run {
    let server = server();
    turnbuckle(["call", &server].iter().chain(arguments))
}

#[test]
fn a_result_goes_to_stdout_and_nothing_else_is_said() {
    let run = call(&["echo", "text=hello"]);
    assert_eq!((run.status, &*run.stdout, &*run.stderr), (0, "hello\n", ""));
}

#[test]
fn values_take_the_type_of_the_schema() {
    assert_eq!(call(&["echo", "text=42"]).stdout, "42\n");
    assert_eq!(call(&["add", "a=2", "b=40"]).stdout, "{\"sum\":42}\n");
    assert_eq!(call(&["add", "--json", r#"{"a": 2, "b": 1}"#, "b=40"]).stdout, "{\"sum\":42}\n");
}

#[test]
fn json_output_is_the_result_on_one_line() {
    let run = call(&["add", "a=2", "b=40", "--output", "json"]);
    assert_eq!((run.status, run.stdout.lines().count()), (0, 1));
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["structuredContent"], json!({"sum": 42}));
    assert_eq!(result["content"][0]["text"], "{\"sum\":42}");
}

#[test]
fn a_tool_that_fails_exits_with_1() {
    let run = call(&["fail", "message=no such city"]);
    assert_eq!((run.status, &*run.stdout), (1, ""));
    assert_eq!(run.stderr, "error: the tool `fail` failed: no such city\n");
    let run = call(&["fail", "message=x", "--output", "json"]);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.status, &result["isError"]), (1, &json!(true)));
    let run = call(&["add", "a=1"]);
    assert_eq!(run.status, 1);
    assert!(run.sentence().contains("`b`"), "{}", run.stderr);
}

#[test]
fn wrong_usage_exits_with_2() {
    let run = call(&["add", "a=one", "b=2"]);
    assert_eq!(run.status, 2);
    assert_eq!(run.sentence(), "the argument `a` must be an integer, and `one` is not");
    let run = call(&["ad", "a=1"]);
    assert_eq!(run.status, 2);
    assert!(run.sentence().starts_with("there is no tool `ad`: "), "{}", run.stderr);
    assert!(run.sentence().contains("`add`"), "{}", run.stderr);
    for arguments in [
        &["add", "a"][..],
        &["add", "--json", "[1]"],
        &["add", "--timeout", "5"],
        &["add", "--revision", "2025-11-26"],
        &["add", "--output", "xml"],
    ] {
        let run = call(arguments);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{arguments:?}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
    assert_eq!(turnbuckle(["tools", "'unclosed"]).status, 2);
}

#[test]
fn an_object_among_the_arguments_is_shown_its_option() {
    let object = "a whole object is given with --json '{…}'";
    for text in [r#"{"text": "small"}"#, r#"{"text": "a=b"}"#, "text"] {
        let run = call(&["echo", text]);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{text}");
        assert!(run.sentence().contains("arguments are written as key=value"), "{}", run.stderr);
        assert!(run.sentence().contains(object), "{}", run.stderr);
    }
    // A prompt has no such option.
    let run = turnbuckle(["prompt", &server(), "review", r#"{"code": "x"}"#]);
    assert_eq!(run.status, 2);
    assert!(run.sentence().ends_with("arguments are written as key=value"), "{}", run.stderr);
}

#[test]
fn an_argument_that_the_tool_does_not_have_is_told_on_stderr_and_the_call_is_made() {
    let warning = "warning: `countdown` has no argument `dely_ms`; did you mean `delay_ms`? \
                   it has `from`, `delay_ms`\n";
    let run = call(&["countdown", "from=0", "dely_ms=1"]);
    assert_eq!((run.status, &*run.stdout, &*run.stderr), (0, "done\n", warning));
    let run = call(&["countdown", "--json", r#"{"dely_ms": 1}"#, "from=0", "--output", "json"]);
    assert_eq!((run.status, &*run.stderr), (0, warning));
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "done");
    let run = call(&["countdown", "from=0", "delay_ms=1"]);
    assert_eq!((run.status, &*run.stderr), (0, ""));
}

#[test]
fn without_arguments_there_is_help_and_a_failure() {
    let run = turnbuckle([""; 0]);
    assert_eq!((run.status, &*run.stdout), (2, ""));
    for command in [
        "demo",
        "info",
        "tools",
        "call",
        "resources",
        "read",
        "prompts",
        "prompt",
        "complete",
        "listen",
        "serve",
        "bridge",
    ] {
        assert!(run.stderr.contains(&format!("\n  {command} ")), "{}", run.stderr);
    }
    let help = turnbuckle(["--help"]).stdout.replace('\n', " ");
    let failed = "3 no connection, or the server answered with an error or broke the protocol";
    assert!(help.contains(failed), "{help}");
    let run = turnbuckle(["call", "--help"]);
    assert_eq!(run.status, 0);
    assert!(run.stdout.contains("--timeout 5s"), "{}", run.stdout);
}

#[test]
fn a_server_that_can_not_be_reached_exits_with_3() {
    let run = turnbuckle(["tools", "no-such-program --stdio"]);
    assert_eq!((run.status, run.sentence()), (3, "`no-such-program` was not found in PATH"));
    let run = turnbuckle(["tools", "sh -c 'read -r line; echo one >&2; echo two >&2; exit 7'"]);
    assert_eq!(run.status, 3);
    assert!(run.sentence().contains("exited with status 7"), "{}", run.stderr);
    assert!(run.stderr.contains("\n  one\n  two\n"), "{}", run.stderr);
    let node =
        "sh -c 'read -r line; echo \"Error: no key\" >&2; echo Node.js v20.11.0 >&2; exit 1'";
    let run = turnbuckle(["tools", node]);
    assert!(run.sentence().ends_with("exited with status 1; its stderr says: Error: no key"));
    assert!(run.stderr.ends_with("\n  Error: no key\n  Node.js v20.11.0\n"), "{}", run.stderr);
}

#[test]
fn a_protocol_error_exits_with_3_and_says_whose_it_is() {
    let run = call(&["panic"]);
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.sentence().starts_with("the server answered with an error: "), "{}", run.stderr);
}

#[test]
fn a_timeout_bounds_the_call_and_exits_with_3() {
    let run = call(&["sleep", "ms=3600000", "--timeout", "2s"]);
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert_eq!(run.sentence(), "`sleep` was cancelled: it did not finish within 2s (--timeout)");
}

#[test]
fn a_timeout_bounds_the_connection_too() {
    let run = turnbuckle(["tools", "sh -c 'while read -r line; do :; done'", "--timeout", "300ms"]);
    assert_eq!(run.status, 3);
    assert_eq!(run.sentence(), "there was no connection to the server within 300ms (--timeout)");
    let run = turnbuckle([
        "tools",
        "sh -c 'echo hm >&2; while read -r line; do :; done'",
        "--timeout",
        "2s",
    ]);
    // A server that reads the probe and answers nothing is started again.
    assert!(run.stderr.contains(" wrote to its stderr:\n  hm\n"), "{}", run.stderr);
}

#[test]
fn an_older_revision_can_be_asked_for() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let run = call(&["echo", "text=hi", "--revision", revision]);
        assert_eq!((run.status, &*run.stdout), (0, "hi\n"), "{revision}: {}", run.stderr);
        let run = turnbuckle(["tools", &server(), "--revision", revision]);
        assert!(run.stdout.contains(&format!("(revision {revision})")), "{}", run.stdout);
    }
}

#[test]
fn tools_are_listed_with_their_arguments() {
    let run = turnbuckle(["tools", &server()]);
    assert_eq!((run.status, &*run.stderr), (0, ""));
    assert!(run.stdout.contains("\ncountdown - Count down\n"), "{}", run.stdout);
    let row = |name: &str| {
        run.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned()
    };
    assert!(row("from ").contains("integer, required, at least 0 "), "{}", run.stdout);
    assert!(!row("delay_ms ").contains("required"), "{}", run.stdout);
    let run = turnbuckle(["tools", &server(), "--output", "json"]);
    let tools: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 10);
    for tool in tools.as_array().unwrap() {
        let schema = &tool["inputSchema"];
        assert!(schema["type"] == "object" && schema["properties"].is_object(), "{tool}");
    }
}

#[test]
fn the_servers_stderr_is_shown_on_request() {
    let noisy = format!("sh -c 'echo I am up >&2; exec {}'", server());
    assert_eq!(turnbuckle(["call", &noisy, "echo", "text=hi"]).stderr, "");
    let run = turnbuckle(["call", &noisy, "echo", "text=hi", "-v"]);
    assert_eq!((&*run.stdout, &*run.stderr), ("hi\n", "server: I am up\n"));
}

#[test]
fn a_server_sees_the_variables_it_is_given() {
    let say = |variables: &[&str]| {
        let target = format!("sh -c 'echo \"[$ONE][$TWO]\" >&2; exec {}'", server());
        let mut arguments = vec!["tools", &target, "-v"];
        arguments.extend(variables);
        support::with_environment(&[("ONE", "1"), ("TWO", "2")], arguments).stderr
    };
    assert_eq!(say(&[]), "server: [][]\n");
    assert_eq!(say(&["--env", "ONE", "--env", "TWO=zwei"]), "server: [1][zwei]\n");
}

#[test]
fn ctrl_c_cancels_the_call_on_the_server_and_exits_with_130() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let gate = Gate::new(&format!("interrupt-{revision}"));
        let target = gate.tapped(&server());
        let arguments = ["call", &target, "sleep", "ms=3600000", "--revision", revision];
        let running = support::start(arguments);
        let sent = gate.wait_for("tools/call");
        running.interrupt();
        let run = running.wait();
        assert_eq!((run.status, &*run.stdout), (130, ""), "{}", run.stderr);
        assert_eq!(run.sentence(), "interrupted: the call was cancelled");
        let cancelled: Vec<Value> = gate
            .rest()
            .into_iter()
            .filter(|message| message["method"] == "notifications/cancelled")
            .collect();
        assert_eq!(cancelled.len(), 1, "{cancelled:?}");
        assert_eq!(cancelled[0]["params"]["requestId"], sent["id"]);
    }
}

#[test]
fn sigterm_and_sighup_cancel_the_call_too() {
    for (signal, status, cause) in
        [(Signal::TERM, 143, "ended by SIGTERM"), (Signal::HUP, 129, "ended by SIGHUP")]
    {
        let gate = Gate::new(&format!("ended-{status}"));
        let target = gate.tapped(&server());
        let running = support::start(["call", &target, "sleep", "ms=3600000"]);
        gate.wait_for("tools/call");
        running.signal(signal);
        let run = running.wait();
        assert_eq!((run.status, &*run.stdout), (status, ""), "{}", run.stderr);
        assert_eq!(run.sentence(), format!("{cause}: the call was cancelled"));
        gate.wait_for("notifications/cancelled");
    }
}

#[test]
fn a_timeout_tells_the_server_to_stop() {
    let gate = Gate::new("timeout");
    let target = gate.tapped(&server());
    let running = support::start(["call", &target, "sleep", "ms=3600000", "--timeout", "2s"]);
    let sent = gate.wait_for("tools/call");
    assert_eq!(running.wait().status, 3);
    let cancelled = gate.wait_for("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], sent["id"]);
}

#[test]
fn ctrl_c_while_connecting_exits_with_130_and_leaves_no_server() {
    let gate = Gate::new("connecting");
    let target = gate.tapped("sh -c 'while read -r line; do :; done'");
    let running = support::start(["tools", &target]);
    gate.wait_for("server/discover");
    running.interrupt();
    let run = running.wait();
    assert_eq!(run.status, 130);
    assert_eq!(run.sentence(), "interrupted: no call was made");
    // The end of what is tapped is the end of the server's input.
    gate.rest();
}

#[test]
fn progress_is_shown_on_a_terminal_and_only_there() {
    let server = server();
    let arguments = ["call", &server, "countdown", "from=4", "delay_ms=1"];
    let run = turnbuckle(arguments);
    assert_eq!((run.status, &*run.stdout, &*run.stderr), (0, "done\n", ""));
    let (run, seen) = Terminal::open().run(arguments);
    assert_eq!((run.status, &*run.stdout), (0, "done\n"));
    assert!(seen.contains("[########################] 4/4 0 to go"), "{seen:?}");
    assert!(seen.ends_with("\r\u{1b}[K"), "the line is taken away: {seen:?}");
}

#[test]
fn a_server_that_does_not_answer_is_named_on_a_terminal() {
    let arguments = ["tools", "sh -c 'while read -r line; do :; done'"];
    let named = "waiting for `sh -c while read -r line; do :; done` to answer … ";
    let (run, seen) = Terminal::open().converse(arguments, &[(named, Typed::Interrupt)]);
    assert_eq!(run.status, 130, "{seen:?}");
    let after = "\r\u{1b}[Kerror: interrupted: no call was made\r\n";
    assert!(seen.contains("connecting … ") && seen.ends_with(after), "{seen:?}");
    let (run, seen) = Terminal::open().converse_plainly(arguments, &[(named, Typed::Interrupt)]);
    assert_eq!(run.status, 130, "{seen:?}");
    let all = format!("{named}(Ctrl-C cancels)\r\nerror: interrupted: no call was made\r\n");
    assert_eq!(seen, all);
}

#[test]
fn the_demo_holds_in_both_eras_and_over_http() {
    let run = turnbuckle(["demo", "--fast"]);
    assert_eq!((run.status, &*run.stderr), (0, ""), "{}", run.stdout);
    assert!(
        run.stdout.contains("2026-07-28") && run.stdout.contains("2025-11-25"),
        "{}",
        run.stdout
    );
    assert_eq!(run.stdout.matches("cancelled 1, in flight 0\n").count(), 3, "{}", run.stdout);
    assert_eq!(run.stdout.matches("] 10/10 ").count(), 3, "{}", run.stdout);
    let numbers = |line: &str| -> Vec<u64> {
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let posts = run.stdout.lines().find(|line| line.contains(" POSTs")).unwrap();
    assert!(matches!(numbers(posts)[..], [calls, seen] if calls > 0 && calls == seen), "{posts}");
}
