//! The real binary at a protected server: logging in, what the other commands make of it, logging
//! out.

mod world;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Output, Stdio},
};

use turnbuckle_auth::testing::Endpoint;

use self::world::{World, visited};

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
    let mut command = world.command(&["login", &world.url, "--no-browser"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = command.spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let (_, url) = line.split_once(": ").unwrap();
    let sent_to = visited(&world.provider, url);
    writeln!(login.stdin.take().unwrap(), "{sent_to}").unwrap();
    let (status, stdout, _) = said(login.wait_with_output().unwrap());
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!((status, stdout), (0, format!("logged in at {}\n", world.url)), "{rest:?}");
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
