//! Logging in with a browser, which is a program that the test stands behind.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
    sync::mpsc::Receiver,
};

use serde_json::json;
use turnbuckle_auth::testing::{Endpoint, Fault};

use super::{
    run, said,
    world::{World, visited},
};
use crate::support::{TOO_LONG, Terminal, folder, lines_through};

/// A browser that tells what it was started with, and does nothing by itself.
struct Browser {
    /// What `$BROWSER` says.
    command: String,
    started: Receiver<String>,
}

impl Browser {
    fn new(name: &str) -> Browser {
        let folder = folder(name, &[]);
        std::fs::create_dir_all(&folder).unwrap();
        let (script, pipe) = (folder.join("browser.sh"), folder.join("started"));
        let started = lines_through(&pipe);
        let text = format!("printf '%s\\n' $# \"$@\" > '{}'\n", pipe.display());
        std::fs::write(&script, text).unwrap();
        Browser { command: format!("/bin/sh {}", script.display()), started }
    }

    /// Waits for it to be started: with which arguments?
    fn arguments(&self) -> Vec<String> {
        let next = || self.started.recv_timeout(TOO_LONG).expect("no browser is started");
        let count: usize = next().parse().unwrap();
        (0..count).map(|_| next()).collect()
    }
}

/// Goes to a page of the authorization server, and to where that sends a browser.
fn visit(world: &World, url: &str) -> String {
    let sent_to = visited(&world.provider, url);
    let rest = sent_to.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// What a shell would make something of stays what it is.
const QUIRKS: &str = "quirk=$(touch${IFS}pwned);`id`|cat&more=*~{a,b}!";

// req: flow:oauth:authorization-code-roundtrip
#[test]
fn a_browser_is_started_and_its_answer_is_heard_on_this_machine() {
    let (world, browser) = (World::new("browser"), Browser::new("browser-program"));
    let page = format!("{}/authorize?{QUIRKS}", world.provider.issuer());
    let says = Fault::Says("authorization_endpoint".into(), json!(page));
    world.provider.fail(Endpoint::Metadata, says);
    let mut command = world.command(&["login", &world.url]);
    command.env("BROWSER", &browser.command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let login = command.spawn().unwrap();
    let arguments = browser.arguments();
    assert_eq!(arguments.len(), 1, "no shell has made more of it: {arguments:?}");
    assert!(arguments[0].contains(QUIRKS), "{arguments:?}");
    let shown = visit(&world, &arguments[0]);
    assert!(shown.starts_with("HTTP/1.1 200 "), "{shown}");
    let (status, stdout, stderr) = said(login.wait_with_output().unwrap());
    assert_eq!((status, stdout), (0, format!("logged in at {}\n", world.url)), "{stderr}");
    assert_eq!(stderr, format!("log in with your browser: {}\n", arguments[0]));
    for secret in world.provider.secrets() {
        // The state is in the address of the page, and that has to be shown.
        let is_hidden = arguments[0].contains(secret.expose()) || !stderr.contains(secret.expose());
        assert!(is_hidden && !shown.contains(secret.expose()), "{stderr} {shown}");
    }
    world.provider.heal();
    assert_eq!(run(&world, &["call", &world.url, "echo", "text=hi"]).1, "hi\n");
}

#[test]
fn a_command_in_a_terminal_begins_a_login() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let name = format!("begun-{revision}");
        let (world, browser) = (World::new(&name), Browser::new(&format!("{name}-program")));
        let call = ["call", &world.url, "echo", "text=hi", "--revision", revision];
        let mut command = world.command(&call);
        command.env("BROWSER", &browser.command);
        let asked = &world;
        let (run, seen) = std::thread::scope(|scope| {
            let visitor = scope.spawn(move || visit(asked, &browser.arguments()[0]));
            let ended = Terminal::open().converse_with(command, &[]);
            assert!(visitor.join().unwrap().starts_with("HTTP/1.1 200 "));
            ended
        });
        assert_eq!((run.status, &*run.stdout), (0, "hi\n"), "{seen}");
        assert!(seen.contains("log in with your browser: http://"), "{seen}");
        assert_eq!(super::run(&world, &call).1, "hi\n", "it was kept");
        // The next command in a terminal needs no browser, and one that was told so begins none.
        let none = ["call", &world.url, "echo", "text=hi", "--no-input"];
        let (run, seen) = Terminal::open().converse_with(world.command(&none), &[]);
        assert_eq!((run.status, &*run.stdout), (0, "hi\n"), "{seen}");
    }
    let world = World::new("not-begun");
    let command = world.command(&["call", &world.url, "echo", "text=hi", "--no-input"]);
    let (run, seen) = Terminal::open().converse_with(command, &[]);
    assert_eq!((run.status, &*run.stdout), (4, ""), "{seen}");
    assert!(!seen.contains("log in with your browser"), "{seen}");
}

#[test]
fn a_person_is_waited_for_as_long_as_was_said() {
    let (world, browser) = (World::new("late"), Browser::new("late-program"));
    let mut command = world.command(&["login", &world.url, "--timeout", "300ms"]);
    command.env("BROWSER", &browser.command);
    let (status, stdout, stderr) = said(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!((status, &*stdout), (3, ""), "{stderr}");
    assert!(stderr.lines().last().unwrap().contains("nobody logged in"), "{stderr}");
    assert_eq!(browser.arguments().len(), 1);
    assert_eq!(run(&world, &["tools", &world.url]).0, 4);
}

#[test]
fn where_there_is_no_browser_the_address_can_still_be_visited() {
    let world = World::new("no-browser");
    let mut command = world.command(&["login", &world.url]);
    command.env("BROWSER", "/nonexistent/browser").env("PATH", "/nonexistent");
    for desktop in ["XDG_CURRENT_DESKTOP", "DESKTOP_SESSION", "KDE_FULL_SESSION"] {
        command.env_remove(desktop);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(login.stderr.take().unwrap()));
    let line = lines.next().unwrap().unwrap();
    let note = lines.next().unwrap().unwrap();
    assert!(note.ends_with("open the address yourself"), "{note}");
    visit(&world, line.strip_prefix("log in with your browser: ").unwrap());
    let (status, stdout, _) = said(login.wait_with_output().unwrap());
    assert_eq!((status, stdout), (0, format!("logged in at {}\n", world.url)));
}
