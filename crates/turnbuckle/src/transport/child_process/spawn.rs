//! The builder that starts a child.
//!
//! Owns: what is set on the command before it starts, and putting the parts of the
//! child together. Does not own: any part.

use std::{ffi::OsString, fmt, io, process::Command, sync::Arc, time::Duration};

use super::{
    Child, ChildHandle, ChildStdin, ChildStdout, Observer,
    env::{self, Environment},
    error::SpawnError,
    platform::{self, Launched, UnreadInput},
    reaper::{self, Charge, ChildStatus},
    stderr::{self, OnLine, Tail, TailLimits},
};
use crate::transport::child_process::shutdown::Graces;
use tokio::{runtime::Handle, sync::watch};

/// Starts a child process.
///
/// A program and its arguments are given apart, so no shell ever reads them. The
/// working directory and variables that were set on the [`Command`] hold. Of this
/// program's own environment the child sees an allow-list only (on Unix: `HOME`,
/// `LANG`, `LANGUAGE`, `LC_*`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `USER`,
/// `XDG_*`), so that a server does not learn secrets that were meant for others.
///
/// ```
/// # #[cfg(unix)] {
/// use std::process::Command;
/// use std::time::Duration;
/// use turnbuckle::transport::child_process::Spawn;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut command = Command::new("sh");
/// command.args(["-c", "exit 0"]).env("LOG", "debug");
/// let child = Spawn::new(command)
///     .allow_env("HTTPS_PROXY")
///     .close_grace(Duration::from_secs(10))
///     .on_stderr(|line| eprintln!("server: {line}"))
///     .spawn()?;
/// assert!(child.handle.exited().await.is_success());
/// # Ok::<(), turnbuckle::transport::child_process::SpawnError>(())
/// # }).unwrap(); }
/// ```
#[must_use = "nothing is started until `spawn` is called"]
pub struct Spawn {
    /// The program that was given. A hook may start it by way of another one.
    program: String,
    command: Command,
    environment: Environment,
    graces: Graces,
    limits: TailLimits,
    on_line: Option<OnLine>,
    hook: Option<Hook>,
    /// Whether environment and hook are on the command already, from an earlier spawn.
    is_prepared: bool,
}

type Hook = Box<dyn FnOnce(&mut Command) + Send>;

impl Spawn {
    /// What will be started.
    #[cfg(feature = "client")]
    pub(crate) fn command(&self) -> &Command {
        &self.command
    }

    /// Returns the program that was given.
    #[cfg(feature = "client")]
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Will start this command. Its standard input, output and error are set by us.
    pub fn new(command: Command) -> Self {
        Self {
            program: command.get_program().to_string_lossy().into_owned(),
            command,
            environment: Environment::Allowed(Vec::new()),
            graces: Graces::default(),
            limits: TailLimits::default(),
            on_line: None,
            hook: None,
            is_prepared: false,
        }
    }

    /// Lets the child see the whole environment of this program.
    pub fn inherit_env(mut self) -> Self {
        self.environment = Environment::Inherited;
        self
    }

    /// Lets the child see one more variable of this program, if it is set.
    pub fn allow_env(mut self, name: impl Into<OsString>) -> Self {
        if let Environment::Allowed(names) = &mut self.environment {
            names.push(name.into());
        }
        self
    }

    /// How long the child may take to exit when its input has ended, before it gets
    /// SIGTERM. Default: 2 s.
    pub fn close_grace(mut self, grace: Duration) -> Self {
        self.graces.close = grace;
        self
    }

    /// How long the child may take to exit after SIGTERM, before it gets SIGKILL.
    /// Default: 2 s.
    pub fn terminate_grace(mut self, grace: Duration) -> Self {
        self.graces.terminate = grace;
        self
    }

    /// How many of the last lines of standard error are kept. Default: 32.
    pub fn stderr_lines(mut self, count: usize) -> Self {
        self.limits.lines = count;
        self
    }

    /// How many bytes of a line of standard error are kept; the rest is cut.
    /// Default: 4,096.
    pub fn stderr_line_bytes(mut self, count: usize) -> Self {
        self.limits.line_bytes = count;
        self
    }

    /// Calls this with each line of standard error, on a thread that does nothing else.
    /// A callback that panics is not called again.
    pub fn on_stderr(mut self, on_line: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_line = Some(Arc::new(on_line));
        self
    }

    /// Changes the command when everything but its pipes and its group is set: resource
    /// limits, another user, another program that starts it. Runs once, before the first start.
    pub fn before_spawn(mut self, hook: impl FnOnce(&mut Command) + Send + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Starts the child. Can be called again for another one.
    ///
    /// # Panics
    /// If the Tokio runtime of this thread was built without its I/O driver.
    ///
    /// # Errors
    /// See [`SpawnErrorKind`](super::SpawnErrorKind). When it fails, nothing runs.
    pub fn spawn(&mut self) -> Result<Child, SpawnError> {
        self.spawn_watched().map(|(child, _)| child)
    }

    /// Starts the child like [`spawn`](Spawn::spawn), and also returns what tells whether it has
    /// read its input, where the platform can tell.
    pub(crate) fn spawn_watched(&mut self) -> Result<(Child, Option<UnreadInput>), SpawnError> {
        if Handle::try_current().is_err() {
            return Err(SpawnError::no_runtime(&self.command));
        }
        if !self.is_prepared {
            platform::prepare(&mut self.command);
            env::apply(&self.environment, &mut self.command);
            if let Some(hook) = self.hook.take() {
                hook(&mut self.command);
            }
            self.is_prepared = true;
        }
        platform::launch(&mut self.command)
            .and_then(|launched| self.assemble(launched))
            .map_err(|source| SpawnError::explain(&self.command, source))
    }

    fn assemble(&self, launched: Launched) -> io::Result<(Child, Option<UnreadInput>)> {
        let Launched { group, waiter, stdin, unread, stdout, stderr } = launched;
        let id = group.process();
        let tail = Arc::new(Tail::new(self.limits));
        // A failure from here on drops the group, which ends it.
        let (stdin, stdout) = platform::pipes(stdin, stdout)?;
        let catch_up = stderr::drain(stderr, Arc::clone(&tail), self.on_line.clone(), id)?;
        let (progress, receiver) = watch::channel(ChildStatus::default());
        let observer = Observer { id, tail: Arc::clone(&tail), progress: receiver };
        let charge = Charge { group, graces: self.graces, catch_up, tail, progress };
        let ticket = reaper::adopt(charge, waiter)?;
        let child = Child {
            stdin: ChildStdin(stdin),
            stdout: ChildStdout(stdout),
            handle: ChildHandle { ticket, observer },
        };
        Ok((child, unread))
    }
}

impl From<Command> for Spawn {
    fn from(command: Command) -> Self {
        Self::new(command)
    }
}

impl fmt::Debug for Spawn {
    // The command's own `Debug` prints its environment, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("program", &self.program)
            .field("graces", &self.graces)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    /// The child reads its input when it has read from another pipe, and not before.
    #[tokio::test]
    async fn input_is_unread_until_the_child_has_read_it() {
        let script = "place=$(mktemp -d); mkfifo $place/go; echo $place/go; read go < $place/go; \
            rm -r $place; read line; echo $line; cat";
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (mut child, unread) = Spawn::new(command).spawn_watched().unwrap();
        let unread = unread.unwrap();
        assert!(!unread.is_unread(), "nothing is written yet");
        child.stdin.write_all(b"hello\n").await.unwrap();
        let mut lines = BufReader::new(&mut child.stdout).lines();
        let go = lines.next_line().await.unwrap().unwrap();
        assert!(unread.is_unread());
        std::fs::write(go, "\n").unwrap();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("hello"));
        assert!(!unread.is_unread());
        // It does not keep the input of the child open.
        drop(child.stdin);
        assert!(child.handle.exited().await.is_success());
    }
}
