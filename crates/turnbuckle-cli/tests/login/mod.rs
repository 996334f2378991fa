//! The real binary at a protected server: logging in, what the other commands make of it, logging
//! out.

mod browser;
mod interrupted;
mod world;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Output, Stdio},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use turnbuckle_auth::testing::{Endpoint, Fault};

use self::world::{World, visited};
use crate::support::http::Served;

fn run(world: &World, arguments: &[&str]) -> (i32, String, String) {
    let mut command = world.command(arguments);
    said(command.stdin(Stdio::null()).output().unwrap())
}

fn said(output: Output) -> (i32, String, String) {
    let [stdout, stderr] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.code().unwrap(), stdout, stderr)
}

/// Logs in as someone does who sits elsewhere.
fn log_in(world: &World) {
    let (stdout, _) = log_in_with(world, &[]);
    assert_eq!(stdout, format!("logged in at {}\n", world.url));
}

/// The same with more arguments: what is printed, and the address of the page.
fn log_in_with(world: &World, arguments: &[&str]) -> (String, String) {
    let mut command = world.command(&["login", &world.url, "--no-browser"]);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = command.spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let (_, url) = line.split_once(": ").unwrap();
    let sent_to = visited(&world.provider, url);
    writeln!(login.stdin.take().unwrap(), "{sent_to}").unwrap();
    let (status, stdout, _) = said(login.wait_with_output().unwrap());
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(status, 0, "{rest:?}");
    (stdout, url.to_owned())
}

// req: flow:oauth:authorization-code-roundtrip
#[test]
fn whoever_logged_in_can_call_until_they_log_out() {
    let world = World::new("login");
    let call = ["call", &world.url, "echo", "text=hi"];
    let advice = format!("turnbuckle login {}\n", world.url);
    let refused = |(status, stdout, stderr): (i32, String, String)| {
        assert_eq!((status, &*stdout), (4, ""), "{stderr}");
        assert!(stderr.ends_with(&advice) && stderr.lines().count() == 1, "{stderr}");
    };
    refused(run(&world, &call));
    for revision in ["2026-07-28", "2025-11-25"] {
        refused(run(&world, &[&call[..], &["--no-input", "--revision", revision]].concat()));
    }
    log_in(&world);
    for revision in ["2026-07-28", "2025-11-25"] {
        let called = run(&world, &[&call[..], &["--revision", revision]].concat());
        assert_eq!(called, (0, "hi\n".to_owned(), String::new()));
    }
    let listed = run(&world, &["tools", &world.url]);
    assert_eq!(listed.0, 0, "{}", listed.2);
    // What is typed goes before what was kept.
    let typed = ["--header", "Authorization: Bearer nonsense"];
    assert_eq!(run(&world, &[&call[..], &typed].concat()).0, 4);

    let logout = ["logout", &world.url];
    assert_eq!(run(&world, &logout).1, format!("logged out from {}\n", world.url));
    assert_eq!(world.provider.requests(Endpoint::Revoke), 1);
    refused(run(&world, &call));
    assert_eq!(run(&world, &logout).1, format!("nobody was logged in at {}\n", world.url));
}

// req: client-auth:refresh:rotation-handling
#[test]
fn two_processes_renew_a_token_once() {
    let world = World::new("renewed");
    log_in(&world);
    let before = world.provider.requests(Endpoint::Token);
    world.clock.forward(2 * 3600);
    world.turns_away_together(2);
    let running: Vec<_> = ["one", "two"]
        .map(|text| {
            let text = format!("text={text}");
            let mut command = world.command(&["call", &world.url, "echo", &text]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .into_iter()
        .collect();
    for (process, text) in running.into_iter().zip(["one\n", "two\n"]) {
        let output = said(process.wait_with_output().unwrap());
        assert_eq!(output, (0, text.to_owned(), String::new()));
    }
    assert_eq!(world.provider.requests(Endpoint::Token), before + 1);
}

// req: client-auth:token-provenance
#[test]
fn a_socket_is_logged_in_at_by_itself() {
    let world = World::new("socket");
    log_in(&world);
    let elsewhere = ["--unix-socket", "/nobody/listens.sock"];
    let logout = run(&world, &[&["logout", &world.url], &elsewhere[..]].concat());
    assert_eq!(logout, (0, format!("nobody was logged in at {}\n", world.url), String::new()));
    // Nobody is there, though somebody is at the address.
    let (status, _, stderr) =
        run(&world, &[&["login", &world.url, "--no-browser"], &elsewhere[..]].concat());
    assert_ne!(status, 0, "{stderr}");
    assert!(!stderr.contains("log in with any browser"), "{stderr}");
    assert_eq!(run(&world, &["call", &world.url, "echo", "text=hi"]).0, 0);
}

// req: client-auth:refresh:rotation-handling
#[test]
fn a_token_that_is_being_renewed_is_kept_before_the_command_ends() {
    let world = World::new("settled");
    log_in(&world);
    let before = world.provider.requests(Endpoint::Token);
    world.clock.forward(2 * 3600);
    world.provider.fail(Endpoint::Token, Fault::Held);
    let mut command = world.command(&["tools", &world.url, "--timeout", "1s"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    // Its time is over, and it says what it still waits for.
    for says in ["--timeout", "a token is being renewed"] {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(says), "{line}");
    }
    assert_eq!(world.provider.requests(Endpoint::Token), before + 1);
    world.provider.heal();
    assert_eq!(process.wait().unwrap().code(), Some(3));
    let called = run(&world, &["call", &world.url, "echo", "text=hi"]);
    assert_eq!(called, (0, "hi\n".to_owned(), String::new()));
    assert_eq!(world.provider.requests(Endpoint::Token), before + 1);
}

#[test]
fn a_program_is_not_logged_in_at() {
    let world = World::new("program");
    for command in ["login", "logout"] {
        let (status, _, stderr) = run(&world, &[command, "notes-server"]);
        assert_eq!(status, 2, "{stderr}");
    }
    let (status, _, stderr) = run(&world, &["login", "http://me:hunter2@localhost/"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

#[test]
fn what_is_asked_for_and_as_whom_can_be_said() {
    let world = World::new("said");
    let scopes = ["--scope", "files:read", "--scope", "files:write"];
    let client = ["--client-id", world::KNOWN_CLIENT];
    let (_, url) = log_in_with(&world, &[&scopes[..], &client].concat());
    assert!(url.contains("scope=files%3Aread%20files%3Awrite"), "{url}");
    assert!(url.contains("client_id=known-client"), "{url}");
    assert_eq!(world.provider.requests(Endpoint::Register), 0);
    assert_eq!(run(&world, &["call", &world.url, "echo", "text=hi"]).1, "hi\n");
    // Who says nothing is registered, and asks for what the server says.
    let world = World::new("unsaid");
    let (_, url) = log_in_with(&world, &[]);
    assert!(!url.contains("scope=") && !url.contains("known-client"), "{url}");
    assert_eq!(world.provider.requests(Endpoint::Register), 1);
}

#[test]
fn programs_are_told_in_objects() {
    let world = World::new("objects");
    let logout = ["logout", &world.url, "--output", "json"];
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let nobody =
        json!({"url": world.url, "loggedIn": false, "wasLoggedIn": false, "revoked": false});
    assert_eq!(read(&run(&world, &logout).1), nobody);
    let (stdout, _) = log_in_with(&world, &["--output", "json"]);
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert_eq!(read(&stdout), json!({"url": world.url, "loggedIn": true}));
    let gone = json!({"url": world.url, "loggedIn": false, "wasLoggedIn": true, "revoked": true});
    assert_eq!(read(&run(&world, &logout).1), gone);
}

#[test]
fn every_command_uses_what_was_granted() {
    let world = World::new("every");
    let url = &*world.url;
    let bridge = format!("'{}' bridge {url}", env!("CARGO_BIN_EXE_turnbuckle"));
    let commands = [
        (vec!["info", url], "protected"),
        (vec!["tools", url], "echo"),
        (vec!["call", url, "echo", "text=hi"], "hi"),
        (vec!["resources", url], "note://1"),
        (vec!["read", url, "note://1"], "buy milk"),
        (vec!["prompts", url], "greet"),
        (vec!["prompt", url, "greet"], "Say hello."),
        // The bridge is a process of its own, with the same home.
        (vec!["read", &bridge, "note://1", "--env", "XDG_DATA_HOME"], "buy milk"),
    ];
    for (command, _) in &commands {
        let (status, stdout, stderr) = run(&world, command);
        let expected = if command[1] == url { 4 } else { 3 };
        assert_eq!((status, &*stdout), (expected, ""), "{command:?}: {stderr}");
    }
    log_in(&world);
    for (command, expected) in &commands {
        let (status, stdout, stderr) = run(&world, command);
        assert_eq!(status, 0, "{command:?}: {stderr}");
        assert!(stdout.contains(expected), "{command:?}: {stdout}");
    }
    // This one goes on until it is told to stop.
    let mut command = world.command(&["listen", url]);
    let mut listening =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let first = BufReader::new(listening.stdout.take().unwrap()).lines().next();
    interrupted::interrupt(&listening);
    assert_eq!(first.unwrap().unwrap(), "granted: tools, prompts, resources");
    assert_eq!(listening.wait().unwrap().code(), Some(130));
}

/// Over HTTP a bridge asks its callers for nothing: who starts it has to know.
#[test]
fn a_bridge_over_http_warns_that_its_callers_act_as_who_logged_in() {
    let world = World::new("warned");
    let bridge = || {
        let mut command = world.command(&["bridge", &world.url, "--http", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let (status, _, stderr) = said(bridge().output().unwrap());
    assert_eq!(status, 4, "{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
    log_in(&world);
    let served = Served::run(&mut bridge());
    let run = served.call(&["echo", "text=as another"]);
    assert_eq!((run.status, &*run.stdout), (0, "as another\n"), "{}", run.stderr);
    served.signal(Signal::TERM);
    let run = served.wait();
    let warning = format!(
        "warning: whoever reaches this acts as the person who logged in at {}\n",
        world.url
    );
    assert!(run.stderr.starts_with(&warning), "{}", run.stderr);
    // A server that wants nobody's name is given none, and nobody is warned.
    let open = Served::new();
    let open = Served::by(&["bridge", open.url(), "--http", "127.0.0.1:0"]);
    open.signal(Signal::TERM);
    let run = open.wait();
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
}
