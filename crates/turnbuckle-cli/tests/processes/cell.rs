//! One command with one server.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Write as _},
    os::{fd::OwnedFd, unix::process::ExitStatusExt as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::Receiver,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal},
};
use serde_json::{Value, json};
use tokio::runtime::{self, Runtime};
use turnbuckle::{Client, Revision};

use super::{Fate, Promise, Server, State};
use crate::support::{TOO_LONG, command, folder, lines_through, modern_call, script};

const QUESTION: &str = r#"printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}\n'"#;

/// A command in a state, with a server.
pub(super) struct Cell {
    command: Child,
    /// What the server receives.
    received: Receiver<String>,
    server: Process,
    child: Option<Process>,
    _stdout: BufReader<ChildStdout>,
    _client: Option<BridgeClient>,
}

/// The client of a bridge, which stays connected.
#[expect(dead_code, reason = "they are held")]
enum BridgeClient {
    Http(Runtime, Client),
    Stdio(ChildStdin),
}

impl Cell {
    /// Starts a command, and returns when it has come to its state.
    pub(super) fn start(name: &str, state: State, server: Server) -> Cell {
        let folder = folder(name, &[("server.sh", "")]);
        let (path, pipe) = (folder.join("server.sh"), folder.join("received"));
        std::fs::write(&path, text(state, server, &pipe)).unwrap();
        let reports = lines_through(&pipe);
        let path = path.to_str().unwrap();
        let words: &[&str] = match state {
            State::Calling => &["call", &format!("sh '{path}'"), "t"],
            State::Listening => &["listen", &format!("sh '{path}'")],
            State::Bridging => &["bridge", "--stdio", "--", "sh", path],
            State::Idle | State::Parked => {
                &["bridge", "--http", "127.0.0.1:0", "--output", "json", "--", "sh", path]
            }
        };
        let mut command = spawn(command(words), state);
        let mut stdout = BufReader::new(command.stdout.take().unwrap());
        let client = reach(&mut command, &mut stdout, state);
        let mut has_come = !matches!(state, State::Calling | State::Bridging);
        let has_child = matches!(server, Server::Forks | Server::Setsid);
        let (mut leader, mut child) = (None, None);
        while leader.is_none() || has_child && child.is_none() || !has_come {
            let report = reports.recv_timeout(TOO_LONG).unwrap();
            match report.split_once(' ') {
                Some(("server", id)) => leader = Some(Process::new(id)),
                Some(("child", id)) => child = Some(Process::new(id)),
                _ => has_come |= report == "called",
            }
        }
        let (received, server) = (reports, leader.unwrap());
        Cell { command, received, server, child, _stdout: stdout, _client: client }
    }

    /// Sends the signal, and checks what comes of it.
    pub(super) fn end(mut self, state: State, signal: Signal, promise: &Promise) {
        let id = Process::new(&self.command.id().to_string());
        pidfd_send_signal(&id.0, signal).unwrap();
        assert!(id.ends(), "the command does not end");
        let status = self.command.wait().unwrap();
        let is_bridge = matches!(state, State::Idle | State::Parked | State::Bridging);
        let expected = match signal {
            Signal::KILL => (None, Some(signal.as_raw())),
            _ if is_bridge => (Some(0), None),
            _ => (Some(128 + signal.as_raw()), None),
        };
        assert_eq!((status.code(), status.signal()), expected);
        let received: Vec<String> = match promise.server {
            Fate::Ends => {
                // The command waits for the end of its server, if it can.
                assert!(signal == Signal::KILL || self.server.has_ended(), "the server is left");
                assert!(self.server.ends(), "the server stays");
                self.received.iter().collect()
            }
            Fate::Stays => {
                // In any order, and SIGTERM may come once for each thread of the command.
                let mut received = BTreeSet::new();
                while promise.received.into_iter().flatten().any(|&one| !received.contains(one)) {
                    received.insert(self.received.recv_timeout(TOO_LONG).unwrap());
                }
                assert!(!self.server.has_ended(), "the server ends: {received:?}");
                received.into_iter().collect()
            }
        };
        if let Some(expected) = promise.received {
            assert_eq!(received, expected);
        }
        if let (Some(child), Some(fate)) = (&self.child, promise.child) {
            assert_eq!(child.has_ended(), fate == Fate::Ends, "the child of the server");
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        // Those that have ended already can't be killed, and need not be.
        let _ = self.command.kill();
        let _ = self.command.wait();
        if !self.server.has_ended() {
            let _ = kill_process_group(self.server.1, Signal::KILL);
        }
        if let Some(child) = &self.child {
            let _ = pidfd_send_signal(&child.0, Signal::KILL);
        }
    }
}

/// A process that is watched, and its id.
struct Process(OwnedFd, Pid);

impl Process {
    fn new(id: &str) -> Process {
        let id = Pid::from_raw(id.parse().unwrap()).unwrap();
        Process(pidfd_open(id, PidfdFlags::empty()).unwrap(), id)
    }

    /// Waits until it has ended.
    fn ends(&self) -> bool {
        self.ends_within(TOO_LONG.as_secs())
    }

    fn has_ended(&self) -> bool {
        self.ends_within(0)
    }

    fn ends_within(&self, seconds: u64) -> bool {
        let limit = Timespec { tv_sec: seconds.try_into().unwrap(), tv_nsec: 0 };
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut watched, Some(&limit)).unwrap() == 1
    }
}

/// The script of a server. It reports on descriptor 3, which no other process keeps.
fn text(state: State, server: Server, pipe: &Path) -> String {
    let start = match server {
        Server::Obeys => "",
        Server::IgnoresEof => "trap 'echo term >&3; exit' TERM",
        Server::IgnoresTerm => "trap 'echo term >&3' TERM",
        Server::Forks => r#"sleep 1000000 3>&- & echo "child $!" >&3"#,
        Server::Setsid => r#"setsid sh -c 'echo "child $$" >&3; exec sleep 1000000 3>&-' &"#,
    };
    let end = match server {
        Server::IgnoresEof | Server::IgnoresTerm => "while :; do sleep 1000000 3>&- & wait; done",
        Server::Obeys | Server::Forks | Server::Setsid => "",
    };
    let called = match state {
        State::Parked => QUESTION,
        _ => "echo called >&3",
    };
    let tools = r#"answer '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'"#;
    let cases = [(r#""tools/list""#, tools), (r#""tools/call""#, called)];
    let talk = script(r#"{"tools":{"listChanged":true}}"#, &cases);
    let pipe = pipe.display();
    format!("exec 3>'{pipe}'\necho \"server $$\" >&3\n{start}\n{talk}\necho eof >&3\n{end}\n")
}

fn spawn(mut command: Command, state: State) -> Child {
    if state == State::Bridging {
        command.stdin(Stdio::piped());
    }
    command.spawn().unwrap()
}

/// Waits until a command has come to its state, as far as the command tells, and brings a bridge to it.
fn reach(
    command: &mut Child,
    stdout: &mut BufReader<ChildStdout>,
    state: State,
) -> Option<BridgeClient> {
    let mut line = || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        line
    };
    match state {
        State::Calling => None,
        State::Listening => {
            assert_eq!(line(), "granted: tools\n");
            None
        }
        State::Bridging => {
            let mut stdin = command.stdin.take().unwrap();
            writeln!(stdin, "{}", modern_call("t", "{}")).unwrap();
            Some(BridgeClient::Stdio(stdin))
        }
        State::Idle => {
            assert!(line().contains("\"url\""));
            None
        }
        State::Parked => {
            let bridge: Value = serde_json::from_str(&line()).unwrap();
            Some(parked(bridge["url"].as_str().unwrap()))
        }
    }
}

/// A client that has made a call, and was asked a question.
fn parked(url: &str) -> BridgeClient {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let capabilities = serde_json::from_value(json!({"elicitation": {"form": {}}})).unwrap();
    let builder = Client::builder().no_proxy().capabilities(capabilities);
    let client = runtime.block_on(async {
        let client = builder.revision(Revision::V2026_07_28).connect(url).await.unwrap();
        let asked = client.request("tools/call", json!({"name": "t"})).await.unwrap();
        let asked: Value = asked.decode().unwrap();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        client
    });
    BridgeClient::Http(runtime, client)
}
