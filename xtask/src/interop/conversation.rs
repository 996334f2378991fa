//! Owns: one cell as it happens: starting server and client, reading what the client prints, seeing
//! to it that both end. Does not own: what is expected.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::cells::{Cell, Wire};
use super::peers::{Program, Programs};
use crate::common::files::{create, read};
use crate::common::process::{Output, command, file, run_until};
use crate::common::serving::RunningServer;

/// The clients give up earlier, and say what took so long.
const ONE: Duration = Duration::from_secs(90);

/// A line that a client prints.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Line {
    pub(crate) check: String,
    pub(crate) outcome: Outcome,
    #[serde(default)]
    pub(crate) detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Pass,
    Fail,
    /// The server declares that it has no such thing.
    Absent,
}

/// Where a cell's conversation leaves what was said.
pub(crate) fn folder(programs: &Programs, cell: &Cell) -> PathBuf {
    programs.home.join("results").join(cell.to_string().replace(' ', "."))
}

/// Runs a cell and returns what the client printed, corrected by how both ended.
pub(crate) fn run(programs: &Programs, cell: &Cell) -> Result<Vec<Line>, String> {
    let folder = folder(programs, cell);
    create(&folder)?;
    let (server, client) = (programs.server(cell)?, programs.client(cell)?);
    let log = folder.join("server.log");
    let mut command = start(&client);
    if let Some(revision) = cell.pinned() {
        command.args(["--revision", revision]);
    }
    let running = match cell.wire {
        Wire::Stdio => {
            command.arg("--command").args(&server).arg("--stdio").arg(&log);
            None
        }
        Wire::Http => {
            let mut serve = start(&server);
            let stderr = file(&folder.join("server.err"))?;
            let running = RunningServer::start(serve.arg("--http").stderr(stderr));
            let running = running.map_err(|error| format!("{cell}: {error}"))?;
            command.args(["--url", &running.url]);
            Some(running)
        }
    };
    let (stdout, stderr) = (folder.join("client.jsonl"), folder.join("client.err"));
    let output = Output::Apart { stdout: &stdout, stderr: &stderr };
    let status = run_until(&mut command, output, Instant::now() + ONE)?;
    drop(running);
    let mut lines = parse(&read(&stdout)?)?;
    let mut ending = match status {
        None => Err("the client did not end".to_owned()),
        Some(status) if !status.success() => Err(format!("the client ended with {status}")),
        Some(_) => Ok(()),
    };
    if cell.wire == Wire::Stdio {
        let left = end_leftovers(&log);
        ending = ending.and_then(|()| ended(&log)).and(left);
    }
    end_with(&mut lines, ending);
    Ok(lines)
}

fn start(program: &Program) -> Command {
    let mut command = command(&program[0]);
    command.args(&program[1..]);
    command
}

fn parse(text: &str) -> Result<Vec<Line>, String> {
    let line = |line: &str| {
        serde_json::from_str(line).map_err(|error| format!("a client printed `{line}`: {error}"))
    };
    text.lines().map(line).collect()
}

/// A server over stdio writes to its log when it starts and when it ends by itself. A client may
/// have started another one before, to find out what it speaks.
fn ended(log: &Path) -> Result<(), String> {
    let said = fs::read_to_string(log).unwrap_or_default();
    match said.lines().last() {
        Some("ended") => Ok(()),
        _ => Err("the server did not end by itself".to_owned()),
    }
}

/// Ends the servers of this cell that still run, which is an error. They may be in a group of their
/// own, and are known by the log that is theirs alone.
fn end_leftovers(log: &Path) -> Result<(), String> {
    let mut found = Ok(());
    #[cfg(target_os = "linux")]
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if !serves_with(&words, log.as_os_str().as_encoded_bytes()) {
            continue;
        }
        if let Some(id) = rustix::process::Pid::from_raw(id) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            found = Err("the server was still running".to_owned());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = log;
    found
}

/// Whether this is the command line of a server with that log. The client's, which is on its way
/// out, has the server's in it.
#[cfg(target_os = "linux")]
fn serves_with(command_line: &[u8], log: &[u8]) -> bool {
    let words: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    words.contains(&log) && !words.contains(&b"--command".as_slice())
}

/// What the client did not see of the end is added to what it said about it.
fn end_with(lines: &mut Vec<Line>, ending: Result<(), String>) {
    let Err(detail) = ending else { return };
    let last = lines.iter_mut().find(|line| line.check == "shutdown");
    match last {
        Some(line) if line.outcome == Outcome::Pass => {
            (line.outcome, line.detail) = (Outcome::Fail, detail);
        }
        Some(_) => {}
        None => lines.push(Line { check: "shutdown".to_owned(), outcome: Outcome::Fail, detail }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(check: &str, outcome: Outcome, detail: &str) -> Line {
        Line { check: check.to_owned(), outcome, detail: detail.to_owned() }
    }

    #[test]
    fn a_client_prints_json_and_nothing_else() {
        let text = r#"{"check": "connect", "outcome": "pass", "detail": "2025-11-25"}"#;
        assert_eq!(parse(text), Ok(vec![line("connect", Outcome::Pass, "2025-11-25")]));
        assert!(parse("hello").is_err());
    }

    #[test]
    fn a_bad_end_is_not_a_clean_shutdown() {
        let mut lines = vec![line("shutdown", Outcome::Pass, "")];
        end_with(&mut lines, Ok(()));
        assert_eq!(lines[0].outcome, Outcome::Pass);
        end_with(&mut lines, Err("killed".to_owned()));
        assert_eq!(lines, [line("shutdown", Outcome::Fail, "killed")]);
        // The first complaint stays, and one is made where the client made none.
        end_with(&mut lines, Err("code 1".to_owned()));
        assert_eq!(lines, [line("shutdown", Outcome::Fail, "killed")]);
        let mut none = Vec::new();
        end_with(&mut none, Err("killed".to_owned()));
        assert_eq!(none, lines);
    }

    #[test]
    fn a_log_says_whether_the_last_server_ended_by_itself() {
        let log = std::env::temp_dir().join(format!("xtask-interop-log-{}", std::process::id()));
        for (text, good) in [("started\nended\n", true), ("started\nstarted\n", false), ("", false)]
        {
            fs::write(&log, text).unwrap();
            assert_eq!(ended(&log).is_ok(), good, "{text}");
        }
        fs::remove_file(&log).unwrap();
        assert!(ended(&log).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_server_that_stays_is_ended() {
        let log = std::env::temp_dir().join(format!("xtask-interop-stays-{}", std::process::id()));
        let script = "while :; do read line; done";
        let mut child = Command::new("sh");
        child.args(["-c", script, "sh"]).arg(&log).stdin(std::process::Stdio::piped());
        let mut child = child.spawn().unwrap();
        // It takes a moment until the process is what it will be.
        let patience = Instant::now() + ONE;
        while end_leftovers(&log).is_ok() {
            assert!(Instant::now() < patience, "it is not found");
        }
        assert!(!child.wait().unwrap().success());
        assert_eq!(end_leftovers(&log), Ok(()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_is_not_taken_for_its_server() {
        assert!(serves_with(b"server\0--stdio\0/log\0", b"/log"));
        assert!(!serves_with(b"server\0--stdio\0/log2\0", b"/log"));
        assert!(!serves_with(b"client\0--command\0server\0--stdio\0/log\0", b"/log"));
    }
}
