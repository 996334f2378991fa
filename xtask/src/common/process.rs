//! Child processes that end with this program and within their time, and servers among them.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::{Duration, Instant},
};

/// Runs a program and kills its process group when this process ends, in whatever way: the pipe to
/// standard input is closed then.
#[cfg(unix)]
const GUARDED: &str = "exec 3<&0
    (cat <&3; kill -9 0) > /dev/null 2>&1 &
    \"$0\" \"$@\" < /dev/null 3<&-";

/// A command for [`Family::start`].
pub(crate) fn command(program: &Path) -> Command {
    #[cfg(unix)]
    let command = {
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED]).arg(program);
        // The group that is killed has to be its own.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    };
    #[cfg(not(unix))]
    let command = Command::new(program);
    command
}

/// Whether this is the command line of the shell that [`command`] puts around a program.
pub(crate) fn is_guard(words: &[&[u8]]) -> bool {
    #[cfg(unix)]
    return words.contains(&GUARDED.as_bytes());
    #[cfg(not(unix))]
    return words.is_empty();
}

/// A child and its descendants. Dropping it kills them all.
#[derive(Debug)]
pub(crate) struct Family(Child);

impl Family {
    /// Starts a command, usually of [`command`].
    pub(crate) fn start(command: &mut Command) -> Result<Family, String> {
        let child = command.stdin(Stdio::piped()).spawn();
        child.map(Family).map_err(|error| format!("a child could not be started: {error}"))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Waits for the end, but not past `deadline`.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // Descendants are still in the group if the child has ended.
        #[cfg(unix)]
        if let Some(group) =
            i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command with its output in files, until `deadline`; `None` if it takes longer.
pub(crate) fn run_until(
    command: &mut Command,
    stdout: File,
    stderr: File,
    deadline: Instant,
) -> Result<Option<ExitStatus>, String> {
    let mut family = Family::start(command.stdout(stdout).stderr(stderr))?;
    family.wait_until(deadline).map_err(|error| format!("a child is lost: {error}"))
}

/// Creates a file for a child to write.
pub(crate) fn file(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("{} is not written: {error}", path.display()))
}

/// Returns a command that is killed if it takes longer than `time`. A signal to the child reaches the
/// command.
pub(crate) fn within(time: Duration, command: &Command) -> Command {
    let mut timeout = Command::new("timeout");
    timeout.args(["--foreground", "--signal=KILL", &time.as_secs_f64().to_string()]);
    through(timeout, command)
}

/// Returns `outer` with the command as its arguments, in the same environment.
pub(crate) fn through(mut outer: Command, command: &Command) -> Command {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Connects to a port of this machine as soon as a server listens on it.
pub(crate) fn connect(port: u16, patience: Duration) -> Result<TcpStream, String> {
    let waiting = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return Ok(stream),
            Err(error) if waiting.elapsed() > patience => {
                return Err(format!("the server does not listen: {error}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) url: String,
    /// Held for its end.
    _family: Family,
}

impl RunningServer {
    /// Starts a command of [`command`] and waits for the URL that it prints.
    pub(crate) fn start(command: &mut Command) -> Result<RunningServer, String> {
        let mut family = Family::start(command.stdout(Stdio::piped()))?;
        let stdout = family.child().stdout.take().ok_or("a server without stdout")?;
        let (send, receive) = sync_channel(1);
        // Ends with the first line, or with the server.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = send.send(read.map(|_| line.trim().to_owned()));
        });
        match receive.recv_timeout(Duration::from_secs(30)) {
            Ok(Ok(url)) if url.starts_with("http") => Ok(RunningServer { url, _family: family }),
            Err(RecvTimeoutError::Timeout) => Err("the server took too long to start".to_owned()),
            _ => Err("the server ended before it printed its URL".to_owned()),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = command(Path::new("sh"));
        command.args(["-c", script]);
        command
    }

    fn soon(milliseconds: u64) -> Instant {
        Instant::now() + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_command_has_its_time() {
        let minute = Duration::from_secs(60);
        let output = within(minute, Command::new("echo").arg("hi")).output().unwrap();
        assert_eq!(output.stdout, b"hi\n");
        let mut hangs = Command::new("tail");
        hangs.args(["-f", "/dev/null"]);
        assert!(!within(Duration::from_millis(1), &hangs).status().unwrap().success());
    }

    /// A family whose grandchild holds the returned pipe without end.
    fn with_grandchild() -> (Family, std::process::ChildStdout) {
        let mut command = shell("cat /dev/zero > /dev/null & echo started; wait");
        let mut family = Family::start(command.stdout(Stdio::piped())).unwrap();
        let mut pipe = family.child().stdout.take().unwrap();
        let mut started = [0; 8];
        io::Read::read_exact(&mut pipe, &mut started).unwrap();
        assert_eq!(family.wait_until(soon(0)).unwrap(), None);
        (family, pipe)
    }

    /// The pipe ends when no process can write to it.
    fn ends(mut pipe: std::process::ChildStdout) -> bool {
        io::Read::read(&mut pipe, &mut [0; 8]).unwrap() == 0
    }

    #[test]
    fn a_grandchild_goes_with_its_family() {
        let (family, pipe) = with_grandchild();
        drop(family);
        assert!(ends(pipe));
    }

    #[test]
    fn the_family_goes_when_this_process_is_killed() {
        let (mut family, pipe) = with_grandchild();
        // A process that is killed closes its pipes.
        drop(family.child().stdin.take());
        assert!(ends(pipe));
        drop(family);
    }
}
