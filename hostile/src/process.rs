//! Processes under attack, and the resources that they use.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use crate::wire::endpoint::Endpoint;

/// The address space of a process under attack.
pub(crate) const ADDRESS_SPACE: u64 = 1 << 30;
/// How long a server may take to start.
const START: Duration = Duration::from_secs(30);

/// The resources of a process at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// In KiB.
    pub(crate) rss: u64,
    /// The largest `rss` so far.
    pub(crate) peak: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
}

impl Figures {
    /// Reads the figures of a process; `None` if it has ended.
    pub(crate) fn of(pid: u32) -> Option<Figures> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |all| all.count());
        Some(Figures {
            rss: field("VmRSS:")?,
            peak: field("VmHWM:")?,
            threads: field("Threads:")?,
            descriptors: descriptors as u64,
        })
    }

    /// Keeps the larger of each figure.
    pub(crate) fn raise(&mut self, other: Figures) {
        self.rss = self.rss.max(other.rss);
        self.peak = self.peak.max(other.peak);
        self.threads = self.threads.max(other.threads);
        self.descriptors = self.descriptors.max(other.descriptors);
    }
}

/// Returns the command that runs a program with a limited address space. The process that starts is
/// the program itself.
pub(crate) fn limited(program: &Path, bytes: u64) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--as={bytes}")).arg(program).kill_on_drop(true);
    command
}

/// The kind of socket that a server listens on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Socket {
    Tcp,
    Unix,
}

/// The demo server over HTTP. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) pid: u32,
    pub(crate) endpoint: Endpoint,
    path: Option<PathBuf>,
}

impl Server {
    /// Starts the demo server and waits until it listens.
    pub(crate) async fn start(program: &Path, socket: Socket) -> Result<Server, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let path = (socket == Socket::Unix).then(|| {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            std::env::temp_dir().join(format!("hostile-{}-{number}.sock", std::process::id()))
        });
        let address = match &path {
            Some(path) => format!("unix:{}", path.display()),
            None => "127.0.0.1:0".to_owned(),
        };
        let mut command = limited(program, ADDRESS_SPACE);
        command.args(["serve", "--output", "json", "--http", &address]);
        let mut child = spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()))?;
        let stdout = child.stdout.take().ok_or("a server without standard output")?;
        let mut line = String::new();
        let mut reader = BufReader::new(stdout);
        let read = timeout(START, reader.read_line(&mut line)).await;
        let url = read.ok().and_then(Result::ok).and_then(|_| {
            let printed: Value = serde_json::from_str(&line).ok()?;
            Some(printed["url"].as_str()?.to_owned())
        });
        let url = url.ok_or_else(|| format!("the server did not print its URL: {line:?}"))?;
        let pid = child.id().ok_or("the server has ended")?;
        let endpoint = match &path {
            Some(path) => Endpoint::Unix(path.clone()),
            None => Endpoint::Tcp(authority(&url)?),
        };
        Ok(Server { child, pid, endpoint, path })
    }

    /// Returns an error if the process has ended.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("the server ended: {status}")),
            Err(error) => Err(format!("the server is lost: {error}")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Starts a command, and names it if it can't be started.
pub(crate) fn spawn(command: &mut Command) -> Result<Child, String> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|error| format!("`{name}` could not be started: {error}"))
}

fn authority(url: &str) -> Result<SocketAddr, String> {
    let rest = url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    let address = rest.and_then(|rest| rest.parse().ok());
    address.ok_or_else(|| format!("not a URL with an address: {url}"))
}
