//! Child processes on Windows.
//!
//! Owns: job objects, creation flags, finding programs as a command prompt does, and
//! pipes as handles. Does not own: when any of it happens.
//!
//! This file is not compiled by the project's continuous integration.
//!
//! A child is put in a job that ends all its members when its last handle is closed,
//! which the reaper does to end a child, and the system does if this program dies.
//! The child starts suspended and is in the job before its first instruction, so no
//! descendant escapes.

use std::{
    borrow::Cow,
    env,
    ffi::{OsStr, OsString},
    io::{self, Read},
    mem,
    os::windows::{io::AsRawHandle, process::CommandExt},
    path::{Path, PathBuf},
    process::{
        self, ChildStderr, ChildStdin as RawStdin, ChildStdout as RawStdout, Command, Stdio,
    },
    sync::{Arc, OnceLock},
};

use process_wrap::std::{ChildWrapper, CommandWrap, CommandWrapper, JobObject};
use win32job::{ExtendedLimitInfo, Job};

use super::{report::ProcessStatus, stderr::StderrDrain};
use crate::transport::closing::Closing;

/// Variables a child sees by default: without these many programs do not start.
pub(super) const ENV_NAMES: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];
/// And all that begin like this.
pub(super) const ENV_PREFIXES: &[&str] = &[];

/// Names are compared without regard to case.
pub(super) fn fold_name(name: &str) -> Cow<'_, str> {
    Cow::Owned(name.to_ascii_uppercase())
}

/// Lets `npx` mean `npx.cmd`, as it does at a command prompt. The system itself adds
/// only `.exe`. The standard library quotes arguments for `.cmd` and `.bat` files.
pub(super) fn prepare(command: &mut Command) {
    let program = Path::new(command.get_program());
    if program.extension().is_some() {
        return;
    }
    let variable = |name: &str| {
        let explicit = command.get_envs().find(|(key, _)| key.eq_ignore_ascii_case(name));
        explicit.map_or_else(|| env::var_os(name), |(_, value)| value.map(OsStr::to_owned))
    };
    let endings = variable("PATHEXT").unwrap_or_else(|| OsString::from(".COM;.EXE;.BAT;.CMD"));
    let path = variable("PATH").unwrap_or_default();
    let Some(found) = find(program, &path, &endings) else { return };
    // A command's program cannot be changed, so it is made anew.
    let mut resolved = Command::new(found);
    resolved.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => resolved.env(name, value),
            None => resolved.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        resolved.current_dir(directory);
    }
    *command = resolved;
}

fn find(program: &Path, path: &OsStr, endings: &OsStr) -> Option<PathBuf> {
    let is_bare = program.components().count() == 1;
    let places: Vec<PathBuf> = if is_bare {
        env::split_paths(path).map(|directory| directory.join(program)).collect()
    } else {
        vec![program.to_owned()]
    };
    let endings = endings.to_string_lossy();
    let endings = endings.split(';').filter(|ending| !ending.is_empty());
    places.iter().find_map(|place| {
        endings.clone().find_map(|ending| {
            let mut candidate = place.as_os_str().to_owned();
            candidate.push(ending);
            let candidate = PathBuf::from(candidate);
            candidate.is_file().then_some(candidate)
        })
    })
}

/// A child that runs, in the pieces its owners take.
pub(super) struct Launched {
    pub(super) stdin: RawStdin,
    pub(super) unread: Option<UnreadInput>,
    pub(super) stdout: RawStdout,
    pub(super) stderr: ChildStderr,
    pub(super) group: ProcessGroup,
    pub(super) waiter: ExitWaiter,
}

/// Starts the command in a job of its own, with three pipes and no console window.
pub(super) fn launch(command: &mut Command) -> io::Result<Launched> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = Arc::new(Job::create_with_limit_info(&limits)?);

    // The wrapper wants to own the command, and it may be needed again.
    let mut wrap = CommandWrap::from(mem::replace(command, Command::new("")));
    // In this order: the second replaces the creation flags that the first sets.
    wrap.wrap(JobObject).wrap(KillOnClose { job: Arc::clone(&job) });
    let spawned = wrap.spawn();
    *command = wrap.into_command();

    let mut child = spawned?;
    let process = child.id();
    let (stdin, stdout, stderr) =
        (child.stdin().take(), child.stdout().take(), child.stderr().take());
    let code = Arc::new(OnceLock::new());
    let group = ProcessGroup { process, job: Some(job), code: Arc::clone(&code) };
    match (stdin, stdout, stderr) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            let waiter = ExitWaiter { child, code };
            Ok(Launched { stdin, unread: None, stdout, stderr, group, waiter })
        }
        _ => Err(io::Error::other("the child was started without its pipes")),
    }
}

/// Puts a process that is still suspended into a job that ends with its last handle.
#[derive(Debug)]
struct KillOnClose {
    job: Arc<Job>,
}

impl CommandWrapper for KillOnClose {
    fn pre_spawn(&mut self, command: &mut Command, _core: &CommandWrap) -> io::Result<()> {
        const CREATE_SUSPENDED: u32 = 0x0000_0004;
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        command.creation_flags(CREATE_SUSPENDED | CREATE_NO_WINDOW);
        Ok(())
    }

    fn post_spawn(
        &mut self,
        _command: &mut Command,
        child: &mut process::Child,
        _core: &CommandWrap,
    ) -> io::Result<()> {
        let assigned = self.job.assign_process(child.as_raw_handle() as isize);
        if assigned.is_err() {
            let _ = child.kill();
        }
        assigned.map_err(io::Error::from)
    }
}

/// What writes to a child's standard input.
pub(super) type StdinPipe = Closing<tokio::process::ChildStdin>;
/// What reads a child's standard output.
pub(super) type StdoutPipe = tokio::process::ChildStdout;

/// Tells whether a child has read its input, which can't be observed here.
pub(crate) enum UnreadInput {}

impl UnreadInput {
    pub(crate) fn is_unread(&self) -> bool {
        match *self {}
    }
}

/// Registers the pipes with the runtime of this thread.
pub(super) fn pipes(stdin: RawStdin, stdout: RawStdout) -> io::Result<(StdinPipe, StdoutPipe)> {
    let stdin = tokio::process::ChildStdin::from_std(stdin)?;
    let stdout = tokio::process::ChildStdout::from_std(stdout)?;
    Ok((Closing::new(stdin), stdout))
}

/// Waits for the leader to exit.
pub(super) struct ExitWaiter {
    child: Box<dyn ChildWrapper>,
    code: Arc<OnceLock<Option<i32>>>,
}

impl ExitWaiter {
    /// Blocks until the leader has exited.
    pub(super) fn wait(mut self) {
        // The leader alone: the outer wrapper would wait for its whole job.
        let status = self.child.inner_mut().wait();
        let _ = self.code.set(status.ok().and_then(|status| status.code()));
    }
}

/// A leader and its job.
pub(super) struct ProcessGroup {
    process: u32,
    /// Invariant: the only handle to the job, so that taking it ends the job's members.
    job: Option<Arc<Job>>,
    /// Set when the leader has exited.
    code: Arc<OnceLock<Option<i32>>>,
}

impl ProcessGroup {
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    pub(super) fn terminate(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn kill(&mut self) {
        self.job = None;
    }

    pub(super) fn reap(&mut self) -> ProcessStatus {
        ProcessStatus { code: self.code.get().copied().flatten(), signal: None }
    }

    pub(super) fn is_empty(&mut self) -> bool {
        self.job.is_none()
    }
}

/// There are no signals.
pub(super) fn signal_name(number: i32) -> Cow<'static, str> {
    Cow::Owned(format!("signal {number}"))
}

/// The end of the pipe is all that a draining thread waits for: the job's members are
/// ended with the leader, and nobody is left who could hold it.
#[derive(Debug)]
pub(super) struct CatchUp;

impl CatchUp {
    pub(super) fn request(&mut self) {}
}

/// The draining thread's end of a [`CatchUp`].
pub(super) struct Requests;

pub(super) fn catch_up_pair() -> io::Result<(CatchUp, Requests)> {
    Ok((CatchUp, Requests))
}

/// Reads a child's standard error until its end.
pub(super) fn drain(mut stderr: ChildStderr, _requests: Requests, mut drain: StderrDrain) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = stderr.read(&mut buffer) {
        if count == 0 {
            return;
        }
        drain.feed(&buffer[..count]);
    }
}
