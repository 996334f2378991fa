//! How a child ended.
//!
//! Owns: the report and its one sentence. Does not own: finding out.

use std::fmt;

use super::platform;

/// How a child process ended.
///
/// Its `Display` continues a sentence that begins with the name of the program.
///
/// ```
/// # #[cfg(unix)] {
/// use std::process::Command;
/// use turnbuckle::transport::child_process::Spawn;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo out of cheese >&2; exit 3"]);
/// let child = Spawn::new(command).spawn()?;
///
/// let report = child.handle.exited().await;
/// assert_eq!(report.to_string(), "exited with status 3");
/// assert_eq!(report.last_stderr, ["out of cheese"]);
/// # Ok::<(), turnbuckle::transport::child_process::SpawnError>(())
/// # }).unwrap(); }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "TokioChildProcess")]
pub struct ExitReport {
    /// The exit status, if the process ended by exiting and its status could be read.
    pub status: Option<i32>,
    /// The number of the signal that ended it, if one did. Always `None` on Windows.
    pub signal: Option<i32>,
    /// What it took.
    pub how: ExitMethod,
    /// The last lines it wrote to its standard error, oldest first.
    pub last_stderr: Vec<String>,
}

impl ExitReport {
    /// Whether the process exited with status 0.
    pub fn is_success(&self) -> bool {
        self.status == Some(0)
    }

    pub(super) fn new(status: ProcessStatus, how: ExitMethod, last_stderr: Vec<String>) -> Self {
        Self { status: status.code, signal: status.signal, how, last_stderr }
    }

    /// For the case that nobody is left who could know.
    pub(super) fn unknown() -> Self {
        Self::new(ProcessStatus::default(), ExitMethod::Exited, Vec::new())
    }
}

impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = |number| platform::signal_name(number);
        match (self.how, self.status, self.signal) {
            (ExitMethod::Stuck, ..) => f.write_str("was sent SIGKILL but has not ended"),
            (ExitMethod::Exited, Some(status), _) => write!(f, "exited with status {status}"),
            (ExitMethod::Exited, None, Some(number)) => {
                write!(f, "was killed by {}", signal(number))
            }
            (ExitMethod::Exited, None, None) => f.write_str("ended with an unknown status"),
            (ExitMethod::Terminated, Some(status), _) => {
                write!(f, "exited with status {status} after SIGTERM")
            }
            (ExitMethod::Terminated, None, Some(number)) => {
                write!(f, "was ended by {} after ignoring the end of its input", signal(number))
            }
            (ExitMethod::Terminated, None, None) => f.write_str("ended after SIGTERM"),
            (ExitMethod::Killed, Some(status), _) => {
                write!(f, "exited with status {status} after ignoring SIGTERM")
            }
            (ExitMethod::Killed, None, Some(number)) => {
                write!(f, "was killed by {} after ignoring SIGTERM", signal(number))
            }
            (ExitMethod::Killed, None, None) => f.write_str("was killed"),
        }
    }
}

/// What it took to end a child process.
///
/// ```
/// use turnbuckle::transport::child_process::ExitMethod;
/// assert_ne!(ExitMethod::Exited, ExitMethod::Killed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitMethod {
    /// Nothing: it ended before it was sent any signal by us. It may have crashed.
    Exited,
    /// SIGTERM was sent to its group before it ended.
    Terminated,
    /// SIGKILL was sent to its group (on Windows: its job was closed) before it ended.
    Killed,
    /// SIGKILL was sent and the process was still there when we stopped waiting, as
    /// one in an uninterruptible system call is. It is reaped whenever it does end.
    Stuck,
}

/// The raw facts about a process that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ProcessStatus {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn every_ending_is_one_plain_sentence() {
        let exit = |code| ProcessStatus { code: Some(code), signal: None };
        let signal = |number| ProcessStatus { code: None, signal: Some(number) };
        let table = [
            (exit(3), ExitMethod::Exited, "exited with status 3"),
            (signal(11), ExitMethod::Exited, "was killed by SIGSEGV"),
            (signal(99), ExitMethod::Exited, "was killed by signal 99"),
            (ProcessStatus::default(), ExitMethod::Exited, "ended with an unknown status"),
            (exit(0), ExitMethod::Terminated, "exited with status 0 after SIGTERM"),
            (
                signal(15),
                ExitMethod::Terminated,
                "was ended by SIGTERM after ignoring the end of its input",
            ),
            (signal(9), ExitMethod::Killed, "was killed by SIGKILL after ignoring SIGTERM"),
            (ProcessStatus::default(), ExitMethod::Stuck, "was sent SIGKILL but has not ended"),
        ];
        for (status, how, sentence) in table {
            assert_eq!(ExitReport::new(status, how, Vec::new()).to_string(), sentence);
        }
    }
}
