//! Runs one cell: starts server and client, reads the client's output, checks that both end.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde::Deserialize;

use super::{
    authorized,
    bridge::{RunningBridge, over_stdio},
    cells::{Cell, Way, Wire},
    peers::{Program, Programs},
};
use crate::common::{
    files::{create, read},
    process::{RunningServer, command, file, is_guard, run_until},
};

/// Clients have shorter timeouts of their own.
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

/// Runs a cell and returns the output of the client, corrected by how the programs ended.
pub(crate) fn run(programs: &Programs, cell: &Cell) -> Result<Vec<Line>, String> {
    let folder = programs.home.join("results").join(cell.to_string().replace(' ', "."));
    create(&folder)?;
    let failed = |error| format!("{cell}: {error}");
    if cell.way == Way::Authorized {
        let (servers, mut client) =
            authorized::start_all(programs, cell, &folder).map_err(failed)?;
        return talk(&mut client, cell, &url(&servers[1].url), &folder, || Ok(()));
    }
    let mut command = start(&programs.client(cell)?);
    let others = Others::start(programs, cell, &folder).map_err(failed)?;
    let target = others.target.clone();
    talk(&mut command, cell, &target, &folder, || others.end())
}

/// Runs the client, then the end of the others.
fn talk(
    command: &mut Command,
    cell: &Cell,
    target: &[PathBuf],
    folder: &Path,
    end: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<Line>, String> {
    if let Some(revision) = cell.pinned() {
        command.args(["--revision", revision]);
    }
    command.args(target);
    let stdout = folder.join("client.jsonl");
    let stderr = file(&folder.join("client.err"))?;
    let status = run_until(command, file(&stdout)?, stderr, Instant::now() + ONE)?;
    let ending = match status {
        None => Err("the client did not end".to_owned()),
        Some(status) if !status.success() => Err(format!("the client ended with {status}")),
        Some(_) => Ok(()),
    };
    let others = end();
    let mut lines = parse(&read(&stdout)?)?;
    end_with(&mut lines, ending.and(others));
    Ok(lines)
}

/// All programs but the client.
struct Others {
    /// The arguments with which the client reaches them.
    target: Vec<PathBuf>,
    server: Option<RunningServer>,
    bridge: Option<RunningBridge>,
    /// The log of the program that has to end by itself.
    log: Option<PathBuf>,
}

impl Others {
    fn start(programs: &Programs, cell: &Cell, folder: &Path) -> Result<Others, String> {
        let mut words = programs.server(cell)?;
        let log = folder.join("server.log");
        let server = match cell.far_wire() {
            Wire::Http => {
                let mut serve = start(&words);
                let stderr = file(&folder.join("server.err"))?;
                Some(RunningServer::start(serve.arg("--http").stderr(stderr))?)
            }
            Wire::Stdio => {
                words.extend([PathBuf::from("--stdio"), log.clone()]);
                None
            }
        };
        let (mut bridge, mut logs) = (None, Some(log.clone()));
        let pinned = cell.pinned_far();
        let target = match (cell.way, &server) {
            (Way::Direct | Way::Authorized, None) => commanded(words),
            (Way::Direct | Way::Authorized, Some(server)) => {
                logs = None;
                url(&server.url)
            }
            (Way::Bridge(_), Some(server)) => {
                commanded(over_stdio(&programs.bridge()?, pinned, &server.url, &log))
            }
            (Way::Bridge(_), None) => {
                let stderr = folder.join("bridge.err");
                let started =
                    RunningBridge::start(&programs.bridge()?, pinned, &words, &log, &stderr)?;
                let target = url(&started.url);
                bridge = Some(started);
                target
            }
        };
        Ok(Others { target, server, bridge, log: logs })
    }

    /// Checks, after the end of the client, that the programs that it started have ended, and stops a
    /// bridge that it did not start.
    fn end(self) -> Result<(), String> {
        let stopped = self.bridge.map_or(Ok(()), RunningBridge::stop);
        let Some(log) = self.log else { return Ok(()) };
        let left = end_leftovers(log.as_os_str());
        // Only a bridge over stdio has the address of its server as an argument.
        let bridges =
            self.server.as_ref().map_or(Ok(()), |server| end_leftovers(OsStr::new(&server.url)));
        stopped.and_then(|()| ended(&log)).and(left).and(bridges)
    }
}

fn url(url: &str) -> Vec<PathBuf> {
    vec!["--url".into(), url.into()]
}

fn commanded(words: Program) -> Vec<PathBuf> {
    [PathBuf::from("--command")].into_iter().chain(words).collect()
}

pub(crate) fn start(program: &Program) -> Command {
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
/// have started another one before, to find out which revisions it speaks.
fn ended(log: &Path) -> Result<(), String> {
    let said = fs::read_to_string(log).unwrap_or_default();
    match said.lines().last() {
        Some("ended") => Ok(()),
        _ => Err("the server did not end by itself".to_owned()),
    }
}

/// Kills the programs of this cell that still run, which is an error. They may be in a group of their
/// own, and are found by a unique argument: a log, or an address.
fn end_leftovers(mark: &OsStr) -> Result<(), String> {
    let mark = mark.as_encoded_bytes();
    match signal(Say::End, |words| runs_with(words, mark)).first() {
        None => Ok(()),
        Some(line) => Err(format!("`{line}` was still running")),
    }
}

/// Whether this is the command line of a program with that argument. The command lines of the client
/// and of the guard of a bridge contain the server's, too, and do not count.
fn runs_with(words: &[&[u8]], mark: &[u8]) -> bool {
    words.contains(&mark) && !words.contains(&b"--command".as_slice()) && !is_guard(words)
}

/// The signal for a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Say {
    Stop,
    End,
}

/// Sends a signal to the processes with the chosen command lines, and returns those lines. Finds none
/// on systems without `/proc`.
pub(crate) fn signal(what: Say, chosen: impl Fn(&[&[u8]]) -> bool) -> Vec<String> {
    let mut told = Vec::new();
    #[cfg(target_os = "linux")]
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if !chosen(&line.split(|byte| *byte == 0).collect::<Vec<_>>()) {
            continue;
        }
        let signal = match what {
            Say::Stop => rustix::process::Signal::TERM,
            Say::End => rustix::process::Signal::KILL,
        };
        if let Some(id) = rustix::process::Pid::from_raw(id) {
            let _ = rustix::process::kill_process(id, signal);
            told.push(String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned());
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (&mut told, what, chosen);
    told
}

/// Adds a bad end of the programs to the client's own `shutdown` check.
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
    fn a_bad_end_is_not_a_clean_shutdown() {
        let mut lines = vec![line("shutdown", Outcome::Pass, "")];
        end_with(&mut lines, Ok(()));
        assert_eq!(lines[0].outcome, Outcome::Pass);
        end_with(&mut lines, Err("killed".to_owned()));
        assert_eq!(lines, [line("shutdown", Outcome::Fail, "killed")]);
        // The first complaint stays.
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
        // The new process has the command line of this one for a moment.
        let patience = Instant::now() + ONE;
        while end_leftovers(log.as_os_str()).is_ok() {
            assert!(Instant::now() < patience, "it is not found");
        }
        assert!(!child.wait().unwrap().success());
        assert_eq!(end_leftovers(log.as_os_str()), Ok(()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_is_not_taken_for_its_server() {
        let runs = |line: &[u8]| {
            runs_with(&line.split(|byte| *byte == 0).collect::<Vec<_>>(), b"/log".as_slice())
        };
        assert!(runs(b"server\0--stdio\0/log\0"));
        assert!(!runs(b"server\0--stdio\0/log2\0"));
        assert!(!runs(b"client\0--command\0server\0--stdio\0/log\0"));
    }
}
