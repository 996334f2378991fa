//! The real binary over HTTP, client and server as real processes.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    self,
    http::{Served, Wire},
    server, turnbuckle,
};

#[test]
fn a_url_is_a_target() {
    let served = Served::new();
    let run = turnbuckle(["tools", served.url()]);
    assert_eq!((run.status, &*run.stderr), (0, ""));
    assert!(run.stdout.contains("offers 10 tools (revision 2026-07-28)"), "{}", run.stdout);
    assert_eq!(served.call(&["add", "a=2", "b=40"]).stdout, "{\"sum\":42}\n");
    assert_eq!(served.call(&["fail", "message=no"]).status, 1);
    assert_eq!(served.call(&["add", "a=one", "b=2"]).status, 2);
    assert_eq!(served.call(&["panic"]).status, 3);
    let run = served.call(&["countdown", "from=3", "delay_ms=1", "--output", "json"]);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "done");
}

#[test]
fn headers_and_a_token_go_with_every_request() {
    let served = Served::new();
    let wire = Wire::to(&served);
    let url = wire.url();
    let arguments =
        vec!["call", &url, "echo", "text=hi", "--header", "X-Tenant: acme", "--bearer-env", "KEY"];
    let run = support::with_environment(&[("KEY", "hunter2")], arguments.clone());
    assert_eq!((run.status, &*run.stdout), (0, "hi\n"), "{}", run.stderr);
    // What the server speaks, its tools, the call.
    assert_eq!(wire.count("POST /mcp "), 3);
    assert_eq!(wire.count("x-tenant: acme\r\n"), 3);
    assert_eq!(wire.count("authorization: Bearer hunter2\r\n"), 3);
    let run = support::with_environment(&[("KEY", " ")], arguments);
    assert_eq!(run.status, 2);
    assert_eq!(run.sentence(), "the variable KEY has no token in it (--bearer-env)");
}

/// With every command that talks to a server, and in nothing that it prints.
#[test]
fn a_token_goes_along_with_each_command_and_is_never_shown() {
    let served = Served::new();
    let commands: [&[&str]; 10] = [
        &["info"],
        &["tools"],
        &["call", "echo", "text=hi"],
        &["resources"],
        &["read", "demo://readme"],
        &["prompts"],
        &["prompt", "review", "language=rust", "code=x"],
        &["complete", "prompt:review", "language", "ru"],
        &["listen", "--tools", "--timeout", "2s"],
        &["bridge"],
    ];
    for words in commands {
        let wire = Wire::to(&served);
        let url = wire.url();
        let mut arguments = vec![words[0], &url];
        arguments.extend(&words[1..]);
        arguments.extend(["--header", "X-Key: hide-key", "--bearer-env", "KEY"]);
        if words[0] != "bridge" {
            arguments.push("--wire");
        }
        let run = support::with_environment(&[("KEY", "hide-token")], arguments);
        assert_eq!(run.status, 0, "{words:?}: {}", run.stderr);
        let posts = wire.count("POST /mcp ");
        assert!(posts > 0, "{words:?}");
        assert_eq!(wire.count("x-key: hide-key\r\n"), posts, "{words:?}");
        assert_eq!(wire.count("authorization: Bearer hide-token\r\n"), posts, "{words:?}");
        assert!(!run.stdout.contains("hide-"), "{words:?}: {}", run.stdout);
        assert!(!run.stderr.contains("hide-"), "{words:?}: {}", run.stderr);
        let help = support::with_environment(&[("KEY", "hide-token")], vec![words[0], "--help"]);
        assert_eq!(help.status, 0, "{words:?}: {}", help.stderr);
        assert!(help.stdout.contains("--bearer-env") && help.stdout.contains("--header"));
        assert!(!help.stdout.contains("hide-"), "{}", help.stdout);
    }
}

/// Also by a server that turns it away, and says so.
#[test]
fn a_token_that_is_refused_is_not_repeated() {
    let refusals = [
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer error=\"invalid_token\"\r\n\
         content-length: 0\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "no HTTP at all\r\n\r\n",
    ];
    for answer in refusals {
        let wire = Wire::to_stranger(answer);
        let url = wire.url();
        let arguments = vec!["tools", &url, "--bearer-env", "KEY", "--wire", "--timeout", "9s"];
        let run = support::with_environment(&[("KEY", "hide-token")], arguments);
        assert_ne!(run.status, 0, "{answer}");
        assert!(wire.count("authorization: Bearer hide-token\r\n") > 0, "{answer}");
        assert!(!run.stdout.contains("hide-"), "{}", run.stdout);
        assert!(!run.stderr.contains("hide-") && !run.stderr.is_empty(), "{}", run.stderr);
        assert!(!run.stderr.lines().last().unwrap().contains("ClientBuilder"), "{}", run.stderr);
    }
    // Nor one that can't be sent.
    let arguments = vec!["tools", "http://127.0.0.1:9/mcp", "--bearer-env", "KEY"];
    let run = support::with_environment(&[("KEY", "hide-\u{7}-token")], arguments);
    assert_eq!(run.status, 2, "{}", run.stderr);
    assert!(!run.stderr.contains("hide-"), "{}", run.stderr);
}

#[test]
fn settings_that_do_not_fit_the_target_exit_with_2() {
    let (program, url) = (server(), "http://127.0.0.1:9/mcp".to_owned());
    for (arguments, flag) in [
        ([&program, "--header", "A: b"], "--header"),
        ([&program, "--bearer-env", "KEY"], "--bearer-env"),
        ([&program, "--unix-socket", "/a"], "--unix-socket"),
        ([&url, "--env", "A=b"], "--env"),
        ([&url, "--header", "Host: elsewhere"], "`Host`"),
        ([&url, "--header", "no colon"], "'Name: value'"),
        (["http://me:hunter2@localhost/", "--timeout", "9s"], "a password"),
    ] {
        let run = turnbuckle(["tools"].iter().chain(&arguments));
        assert_eq!((run.status, &*run.stdout), (2, ""), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(flag), "{arguments:?}: {}", run.stderr);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
        assert!(!run.stderr.contains(".header("), "{}", run.stderr);
    }
}

#[test]
fn a_url_that_can_not_be_reached_exits_with_3() {
    // Bound and let go again: nobody listens there now.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = turnbuckle(["tools", &format!("http://{address}/mcp")]);
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn what_is_no_server_of_any_revision_exits_with_3_and_each_attempt_is_told() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    ] {
        let wire = Wire::to_stranger(answer);
        for command in ["tools", "listen"] {
            let run = turnbuckle([command, &wire.url()]);
            assert_eq!((run.status, &*run.stdout), (3, ""));
            for attempt in ["`server/discover`", "`initialize`", "HTTP+SSE (2024-11-05)"] {
                assert!(run.sentence().contains(attempt), "{}", run.stderr);
            }
        }
    }
    let refusing = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let url = Wire::to_stranger(refusing).url();
    let run = turnbuckle(["tools", &url]);
    assert_eq!(run.status, 4);
    assert!(run.sentence().ends_with(&format!("turnbuckle login {url}")), "{}", run.stderr);
}

#[test]
fn a_unix_socket_serves_and_is_reached() {
    let path = std::env::temp_dir().join(format!("turnbuckle-cli-{}.sock", std::process::id()));
    let path = path.to_str().unwrap();
    let served = Served::at(&[&format!("unix:{path}")]);
    let run =
        turnbuckle(["call", "http://localhost/mcp", "echo", "text=hi", "--unix-socket", path]);
    assert_eq!((run.status, &*run.stdout), (0, "hi\n"), "{}", run.stderr);
    served.signal(Signal::INT);
    assert_eq!(served.wait().status, 0);
    assert!(!std::path::Path::new(path).exists());
}

#[test]
fn ctrl_c_closes_the_post_and_sends_nothing_to_cancel() {
    let served = Served::new();
    let wire = Wire::to(&served);
    let running = support::start(["call", &wire.url(), "sleep", "ms=3600000"]);
    wire.wait_for("\"name\":\"sleep\"");
    served.wait_for_count("in_flight", 1);
    running.interrupt();
    let run = running.wait();
    assert_eq!((run.status, run.sentence()), (130, "interrupted: the call was cancelled"));
    served.wait_for_count("cancelled", 1);
    assert_eq!(wire.count("POST /mcp "), 3, "what the server speaks, its tools, the call");
    assert_eq!(wire.count("notifications/cancelled"), 0);
}

#[test]
fn sigterm_cancels_the_call_of_a_session_before_it_ends() {
    let served = Served::new();
    let arguments = ["call", served.url(), "sleep", "ms=3600000", "--revision", "2025-11-25"];
    let running = support::start(arguments);
    served.wait_for_count("in_flight", 1);
    running.signal(Signal::TERM);
    let run = running.wait();
    assert_eq!((run.status, run.sentence()), (143, "ended by SIGTERM: the call was cancelled"));
    served.wait_for_count("cancelled", 1);
    served.wait_for_count("in_flight", 0);
}

#[test]
fn listening_prints_what_is_granted_and_then_each_change_until_ctrl_c() {
    let served = Served::new();
    let mut running = support::start(["listen", served.url()]);
    let mut lines = running.lines();
    assert_eq!(lines.next().unwrap(), "granted: tools, prompts, resources");
    for _ in 0..2 {
        assert_eq!(served.call(&["announce"]).stdout, "told 1 stream\n");
        assert_eq!(lines.next().unwrap(), "tools changed");
    }
    running.interrupt();
    let run = running.wait();
    assert_eq!((run.status, run.sentence()), (130, "interrupted: the stream was closed"));
    assert_eq!(lines.next(), None);
    let mut left = std::iter::from_fn(|| Some(served.call(&["announce"]).stdout));
    assert!(left.by_ref().take(500).any(|told| told == "told 0 streams\n"), "it still listens");
}

#[test]
fn a_server_that_stops_ends_its_streams_in_good_order() {
    let served = Served::new();
    let arguments = ["listen", served.url(), "--tools", "--output", "json"];
    let mut running = support::start(arguments);
    let mut lines = running.lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap()).unwrap();
    let granted = next();
    assert_eq!(granted["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(granted["params"], json!({"notifications": {"toolsListChanged": true}}));
    served.call(&["announce"]);
    assert_eq!(next()["method"], "notifications/tools/list_changed");
    served.signal(Signal::TERM);
    let run = running.wait();
    assert_eq!((run.status, &*run.stderr), (0, "the server ended the stream\n"));
    let run = served.wait();
    assert_eq!(run.status, 0);
    assert!(run.stderr.ends_with("1 listen streams were ended\n"), "{}", run.stderr);
}

#[test]
fn listening_works_on_a_child_process_too() {
    let server = server();
    let run = turnbuckle(["listen", &server, "--timeout", "2s"]);
    assert_eq!(
        (run.status, &*run.stdout, &*run.stderr),
        (0, "granted: tools, prompts, resources\n", "")
    );
    let run = turnbuckle(["listen", &server, "--resource", "demo://nothing"]);
    assert_eq!((run.status, &*run.stdout), (3, "granted: nothing\n"));
    assert_eq!(run.sentence(), "the server tells nothing of what was asked for");
    let run = turnbuckle(["listen", &server, "--revision", "2025-11-25", "--timeout", "2s"]);
    assert_eq!(
        (run.status, &*run.stdout, &*run.stderr),
        (0, "granted: tools, prompts, resources\n", "")
    );
    let nothing = ["--revision", "2025-11-25", "--resource", "demo://nothing"];
    let run = turnbuckle(["listen", &server].into_iter().chain(nothing));
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert!(run.sentence().contains("there is no such resource"), "{}", run.stderr);
}

#[test]
fn a_public_address_needs_a_public_name() {
    let run = turnbuckle(["serve", "--http", "0.0.0.0:0"]);
    assert_eq!((run.status, &*run.stdout), (2, ""));
    assert!(run.sentence().contains("--public-host mcp.example.com"), "{}", run.stderr);
    let run = turnbuckle(["serve", "--http", "127.0.0.1:0", "--public-host", "https://a"]);
    assert_eq!(run.status, 2);
    assert!(run.sentence().contains("`https://a` is not a host"), "{}", run.stderr);
    assert_eq!(turnbuckle(["serve", "--public-host", "a"]).status, 2);
    let served = Served::at(&["0.0.0.0:0", "--public-host", "mcp.example.com"]);
    let here = served.url().replace("0.0.0.0", "127.0.0.1");
    assert_eq!(turnbuckle(["call", &here, "echo", "text=hi"]).stdout, "hi\n");
}

#[test]
fn an_address_that_is_taken_exits_with_3() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = turnbuckle(["serve", "--http", &address]);
    assert_eq!((run.status, &*run.stdout), (3, ""));
    assert!(run.sentence().contains(&address), "{}", run.stderr);
}

#[test]
fn a_server_that_is_told_to_stop_lets_calls_finish() {
    let served = Served::new();
    let running = support::start(["call", served.url(), "sleep", "ms=3000"]);
    served.wait_for_count("in_flight", 1);
    served.signal(Signal::TERM);
    let run = running.wait();
    assert_eq!((run.status, &*run.stdout), (0, "slept for 3000 ms\n"), "{}", run.stderr);
    let run = served.wait();
    assert_eq!((run.status, &*run.stdout), (0, ""));
    assert!(run.stderr.contains("stopped: 1 running calls finished"), "{}", run.stderr);
}

#[test]
fn a_second_ctrl_c_does_not_wait() {
    let mut served = Served::new();
    let running = support::start(["call", served.url(), "sleep", "ms=3600000"]);
    served.wait_for_count("in_flight", 1);
    served.signal(Signal::INT);
    assert!(served.line().starts_with("stopping: "));
    served.signal(Signal::INT);
    let run = served.wait();
    assert_eq!(
        (run.status, run.sentence()),
        (130, "interrupted: running calls were not waited for")
    );
    assert_eq!(running.wait().status, 3);
}

#[test]
fn the_clock_of_the_demo_can_be_watched() {
    let served = Served::new();
    let mut running = support::start(["listen", served.url(), "--resource", "demo://clock"]);
    let mut lines = running.lines();
    assert_eq!(lines.next().unwrap(), "granted: demo://clock");
    assert_eq!(lines.next().unwrap(), "demo://clock changed");
    running.interrupt();
    assert_eq!(running.wait().status, 130);
}
