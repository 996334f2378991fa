//! Runs the binary and looks over its shoulder.

pub(crate) mod http;

use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_turnbuckle");

/// Nothing here takes this long; a test that waits this long has failed.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(60);

/// The command line of the demo server.
pub(crate) fn server() -> String {
    format!("'{BINARY}' serve")
}

/// How a run ended, and what it said.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The sentence on stderr.
    pub(crate) fn sentence(&self) -> &str {
        let first = self.stderr.lines().next().unwrap_or_default();
        first.strip_prefix("error: ").unwrap_or_else(|| panic!("no sentence: {:?}", self.stderr))
    }
}

/// Runs the binary to its end.
pub(crate) fn turnbuckle<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    start(arguments).wait()
}

/// Runs it with these variables in its environment.
pub(crate) fn with_environment(variables: &[(&str, &str)], arguments: Vec<&str>) -> Run {
    let mut command = command(arguments);
    command.envs(variables.iter().copied());
    Running(command.spawn().unwrap()).wait()
}

/// Runs it in this folder.
pub(crate) fn in_folder(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = command(arguments);
    command.current_dir(folder);
    Running(command.spawn().unwrap()).wait()
}

/// A new folder with these files.
pub(crate) fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    for (file, text) in files {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    folder
}

/// The command line of a legacy server that is a shell script: the second of a pair is run for a message
/// with the first in it. `answer RESULT` answers a request; a request without a pair gets an error.
pub(crate) fn scripted(name: &str, capabilities: &str, cases: &[(&str, &str)]) -> String {
    let folder = folder(name, &[("server.sh", &script(capabilities, cases))]);
    format!("sh '{}'", folder.join("server.sh").display())
}

/// The script of such a server. It goes on after this at the end of its input.
pub(crate) fn script(capabilities: &str, cases: &[(&str, &str)]) -> String {
    let initialize = format!(
        r#"answer '{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"script","version":"1"}}}}'"#
    );
    let mut script = String::from(
        r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
"#,
    );
    for (message, command) in [("\"initialize\"", &*initialize)].iter().chain(cases) {
        script.push_str(&format!("  *'{message}'*) {command};;\n"));
    }
    script.push_str(
        r#"  *'"id":'*'"method":'*|*'"method":'*'"id":'*)
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id";;
  esac
done
"#,
    );
    script
}

/// The message of a modern client that calls a tool.
pub(crate) fn modern_call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"test","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// Starts the binary.
pub(crate) fn start<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Running {
    Running(command(arguments).spawn().unwrap())
}

pub(crate) fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    // The tests may run under `nohup`, which the binary would respect.
    let mut command = if cfg!(target_os = "linux") {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", BINARY]);
        command
    } else {
        Command::new(BINARY)
    };
    // Whoever runs this may have servers of their own.
    command.env("XDG_CONFIG_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/none"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) struct Running(Child);

impl Running {
    /// What Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(&self.0, which);
    }

    /// What it writes to stdout, line by line as it comes; [`wait`](Running::wait) then has
    /// none of it.
    pub(crate) fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        let stdout = self.0.stdout.take().expect("the lines are taken once");
        BufReader::new(stdout).lines().map(Result::unwrap)
    }

    pub(crate) fn wait(self) -> Run {
        let output = self.0.wait_with_output().unwrap();
        Run {
            status: code(output.status),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| panic!("it did not exit by itself: {status}"))
}

/// What is written to a pipe that has a name, line by line as it comes.
pub(crate) fn lines_through(pipe: &Path) -> Receiver<String> {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (sender, lines) = sync_channel(1000);
    let pipe = pipe.to_owned();
    // Opening waits for the writer, and so does each line: a thread does the waiting.
    thread::spawn(move || {
        for line in BufReader::new(File::open(pipe).unwrap()).lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    lines
}

/// Sees every message that a client sends to a server, as it is sent.
pub(crate) struct Gate {
    directory: PathBuf,
    messages: Receiver<String>,
}

impl Gate {
    pub(crate) fn new(name: &str) -> Gate {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let messages = lines_through(&directory.join("tap"));
        Gate { directory, messages }
    }

    /// The command line of a server whose input is seen here.
    pub(crate) fn tapped(&self, server: &str) -> String {
        let script = self.directory.join("server.sh");
        let tap = self.directory.join("tap");
        std::fs::write(&script, format!("tee '{}' | {server}\n", tap.display())).unwrap();
        format!("sh '{}'", script.display())
    }

    /// Waits for the next message of this method.
    pub(crate) fn wait_for(&self, method: &str) -> Value {
        loop {
            let message = self.messages.recv_timeout(TOO_LONG);
            let message = message.unwrap_or_else(|_| panic!("no `{method}` was sent"));
            let message: Value = serde_json::from_str(&message).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Everything else, until the client closes the connection.
    pub(crate) fn rest(&self) -> Vec<Value> {
        self.messages.iter().map(|message| serde_json::from_str(&message).unwrap()).collect()
    }
}

/// A terminal to be the stderr of a run, and its stdin if somebody types.
pub(crate) struct Terminal {
    ours: OwnedFd,
    theirs: File,
}

impl Terminal {
    pub(crate) fn open() -> Terminal {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        Terminal { ours, theirs }
    }

    /// Runs the binary with this terminal as its stderr: how it ended, what the terminal got.
    pub(crate) fn run<A: AsRef<OsStr>>(
        self,
        arguments: impl IntoIterator<Item = A>,
    ) -> (Run, String) {
        let mut command = command(arguments);
        command.env("TERM", "xterm").stderr(Stdio::from(self.theirs));
        let running = Running(command.spawn().unwrap());
        // The command keeps a copy of the terminal; the end of all copies ends the reading.
        drop(command);
        let mut ours = File::from(self.ours);
        let reader = thread::spawn(move || {
            let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
            // A terminal that everybody has left reads as an error.
            while let Ok(count @ 1..) = ours.read(&mut buffer) {
                seen.extend_from_slice(&buffer[..count]);
            }
            String::from_utf8(seen).unwrap()
        });
        let run = running.wait();
        (run, reader.join().unwrap())
    }

    /// Runs the binary in this terminal: whenever the first of a pair is shown, the second is
    /// typed. How it ended, what the terminal got.
    pub(crate) fn converse<A: AsRef<OsStr>>(
        self,
        arguments: impl IntoIterator<Item = A>,
        script: &[(&str, Typed)],
    ) -> (Run, String) {
        self.converse_with(command(arguments), script)
    }

    /// The same in a terminal that can't erase what it shows.
    pub(crate) fn converse_plainly<A: AsRef<OsStr>>(
        self,
        arguments: impl IntoIterator<Item = A>,
        script: &[(&str, Typed)],
    ) -> (Run, String) {
        let mut command = command(arguments);
        command.env("TERM", "dumb");
        self.converse_with(command, script)
    }

    /// The same with a command that is made already.
    pub(crate) fn converse_with(
        self,
        mut command: Command,
        script: &[(&str, Typed)],
    ) -> (Run, String) {
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm");
        }
        let theirs = self.theirs.try_clone().unwrap();
        command.stdout(Stdio::piped()).stdin(Stdio::from(theirs)).stderr(Stdio::from(self.theirs));
        let running = Running(command.spawn().unwrap());
        drop(command);
        let mut ours = File::from(self.ours);
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        let mut script = script.iter().peekable();
        let mut answered = 0;
        while let Ok(count @ 1..) = ours.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&seen[answered..]).into_owned();
            if let Some((expected, typed)) = script.peek()
                && text.contains(expected)
            {
                answered = seen.len();
                script.next();
                match typed {
                    Typed::Line(line) => ours.write_all(format!("{line}\n").as_bytes()).unwrap(),
                    Typed::End => ours.write_all(b"\x04").unwrap(),
                    Typed::Interrupt => running.interrupt(),
                }
            }
        }
        let seen = String::from_utf8(seen).unwrap();
        assert!(script.next().is_none(), "not everything was asked: {seen:?}");
        (running.wait(), seen)
    }
}

/// What is typed in a terminal.
pub(crate) enum Typed {
    Line(&'static str),
    /// Ctrl-D.
    End,
    /// Ctrl-C.
    Interrupt,
}
