//! What programs read: `--output json` of the commands that print no result of a server, and the wire
//! of a bridge.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{http::Served, server, turnbuckle};

#[test]
fn where_it_is_served_is_an_object_once_it_is_ready() {
    let over_http = ["--http", "127.0.0.1:0", "--output", "json"];
    for what in [vec!["serve"], vec!["bridge", &server()]] {
        let mut served = Served::by(&[&what[..], &over_http].concat());
        let said: Value = serde_json::from_str(&served.printed()).unwrap();
        assert_eq!(said, json!({"url": served.url()}), "{what:?}");
        let run = served.call(&["echo", "text=ready"]);
        assert_eq!((run.status, &*run.stdout), (0, "ready\n"), "{}", run.stderr);
        served.signal(Signal::TERM);
        let run = served.wait();
        assert_eq!((run.status, &*run.stdout), (0, ""), "{}", run.stderr);
    }
}

#[test]
fn where_stdout_is_the_wire_nothing_else_is_printed() {
    for arguments in [
        &["serve", "--output", "json"][..],
        &["bridge", "http://127.0.0.1:9/mcp", "--output", "json"],
        &["bridge", "--stdio", "--output", "json", "--", "my-server"],
    ] {
        let run = turnbuckle(arguments);
        assert_eq!((run.status, &*run.stdout), (2, ""), "{arguments:?}: {}", run.stderr);
        assert!(run.sentence().contains("stdout is the wire"), "{}", run.stderr);
    }
}

#[test]
fn the_demo_tells_a_program_what_it_shows() {
    let run = turnbuckle(["demo", "--output", "json"]);
    assert_eq!((run.status, &*run.stderr), (0, ""), "{}", run.stdout);
    let events: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["event"] == kind).collect()
    };
    let revisions: Vec<_> = of("connected").iter().map(|event| event["revision"].clone()).collect();
    assert_eq!(revisions, ["2026-07-28", "2025-11-25", "2026-07-28"]);
    assert_eq!(of("answered").len(), 6, "{}", run.stdout);
    assert_eq!(of("answered")[0]["result"]["structuredContent"], json!({"sum": 42}));
    assert_eq!(of("progress").len(), 30, "{}", run.stdout);
    for event in of("abandoned") {
        assert_eq!(
            (&event["counts"]["cancelled"], &event["counts"]["in_flight"]),
            (&json!(1), &json!(0))
        );
    }
    assert_eq!((of("running").len(), of("abandoned").len()), (3, 3), "{}", run.stdout);
    let counted = of("counted");
    assert_eq!((counted.len(), &counted[0]["calls"]), (1, &counted[0]["posts"]));
    assert_eq!(events.last().unwrap(), &json!({"event": "done"}));
}

#[test]
fn the_wire_of_a_bridge_is_shown_with_secrets_masked() {
    let mut bridge = Served::by(&["bridge", &server(), "--wire", "--http", "127.0.0.1:0"]);
    let run = bridge.call(&["echo", "text=password=hunter2"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let run = bridge.call(&["echo", "--json", r#"{"text": "seen", "password": "hunter2"}"#]);
    assert_eq!(run.stdout, "seen\n", "{}", run.stderr);
    let mut calls = 0;
    while calls < 2 {
        let line = bridge.line();
        assert!(!line.is_empty(), "it has ended");
        calls += usize::from(line.starts_with("-> request ") && line.contains("tools/call"));
        assert!(!line.contains(r#""password":"hunter2"#), "{line}");
        if calls == 2 {
            assert!(line.contains(r#""password":"[redacted]""#), "{line}");
        }
    }
    bridge.signal(Signal::TERM);
    let run = bridge.wait();
    assert_eq!((run.status, &*run.stdout), (0, ""), "{}", run.stderr);
    assert!(run.stderr.contains("<- "), "{}", run.stderr);
}
