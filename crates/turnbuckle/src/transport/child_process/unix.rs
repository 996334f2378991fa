//! Child processes on Unix.
//!
//! Owns: process groups, signals, waiting and reaping, and pipes as file
//! descriptors. Does not own: when any of it happens.
//!
//! Two things that the platform has are not used. Linux can signal a child when
//! its parent dies (`PR_SET_PDEATHSIG`), but only the child itself can ask for it
//! between fork and exec, which takes `unsafe` code that this crate does without; it
//! also fires when the *thread* that started the child ends, and threads of a runtime
//! end before their program does. The command `turnbuckle` has one thread, and starts
//! itself to ask. And a pidfd would spare the waiting thread, on Linux alone.

use std::{
    borrow::Cow,
    io::{self, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{self, ChildStderr, ChildStdout as RawStdout, Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group,
        test_kill_process_group, waitid, waitpgid,
    },
};
use tokio::net::unix::pipe;

use super::{report::ProcessStatus, stderr::StderrDrain};
use crate::transport::closing::Closing;

/// Variables a child sees by default.
pub(super) const ENV_NAMES: &[&str] =
    &["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];
/// And all that begin like this.
pub(super) const ENV_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Names are compared exactly.
pub(super) fn fold_name(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}

/// Nothing to do: the system finds programs by itself.
pub(super) fn prepare(_command: &mut Command) {}

/// A child that runs, in the pieces its owners take.
pub(super) struct Launched {
    pub(super) stdin: io::PipeWriter,
    pub(super) unread: Option<UnreadInput>,
    pub(super) stdout: RawStdout,
    pub(super) stderr: ChildStderr,
    pub(super) group: ProcessGroup,
    pub(super) waiter: ExitWaiter,
}

/// Starts the command as the leader of a group of its own, with three pipes.
pub(super) fn launch(command: &mut Command) -> io::Result<Launched> {
    let (input, stdin) = io::pipe()?;
    command.stdin(input.try_clone()?).stdout(Stdio::piped()).stderr(Stdio::piped());
    // 0: the group's id is the child's own process id.
    command.process_group(0);
    let spawned = command.spawn();
    // The command would hold the pipe for as long as it lives.
    command.stdin(Stdio::null());
    let mut child = spawned?;
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    match (id, child.stdout.take(), child.stderr.take()) {
        (Some(id), Some(stdout), Some(stderr)) => Ok(Launched {
            stdin,
            unread: Some(UnreadInput(input)),
            stdout,
            stderr,
            group: ProcessGroup { child, id, is_reaped: false },
            waiter: ExitWaiter { id },
        }),
        _ => Err(io::Error::other("the child was started without its pipes")),
    }
}

/// What writes to a child's standard input.
pub(super) type StdinPipe = Closing<pipe::Sender>;
/// What reads a child's standard output.
pub(super) type StdoutPipe = pipe::Receiver;

/// Tells whether a child has read its input. While it exists, writing to a child that has exited
/// does not fail.
pub(crate) struct UnreadInput(io::PipeReader);

impl UnreadInput {
    /// Returns `true` if bytes were written that the child has not read.
    pub(crate) fn is_unread(&self) -> bool {
        rustix::io::ioctl_fionread(&self.0).is_ok_and(|bytes| bytes > 0)
    }
}

/// Registers the pipes with the runtime of this thread.
pub(super) fn pipes(
    stdin: io::PipeWriter,
    stdout: RawStdout,
) -> io::Result<(StdinPipe, StdoutPipe)> {
    // Pipes straight from Tokio's driver, rather than those of `tokio::process`, which
    // brings a reaper and a signal handler of its own.
    let sender = pipe::Sender::from_owned_fd(stdin.into())?;
    let receiver = pipe::Receiver::from_owned_fd(stdout.into())?;
    Ok((Closing::new(sender), receiver))
}

/// Waits for the leader to exit.
pub(super) struct ExitWaiter {
    id: Pid,
}

impl ExitWaiter {
    /// Blocks until the leader has exited, and leaves it unreaped.
    pub(super) fn wait(self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // Any other failure means that there is no such child any more: somebody else
        // in this process reaped it, or told the system to forget its children.
        while let Err(Errno::INTR) = waitid(WaitId::Pid(self.id), options) {}
    }
}

/// A leader and its process group.
pub(super) struct ProcessGroup {
    child: process::Child,
    /// The leader's process id, and therefore the group's, remembered from the start:
    /// the leader may be gone when its group is signalled.
    id: Pid,
    is_reaped: bool,
}

impl ProcessGroup {
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn terminate(&mut self) -> io::Result<()> {
        self.signal(Signal::TERM);
        Ok(())
    }

    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    pub(super) fn reap(&mut self) -> ProcessStatus {
        self.is_reaped = true;
        match self.child.try_wait() {
            Ok(Some(status)) => ProcessStatus { code: status.code(), signal: status.signal() },
            // Reaped behind our back: it did end, and how is not known.
            Ok(None) | Err(_) => ProcessStatus::default(),
        }
    }

    /// The group's id stays taken while it has members, so the answer is about this
    /// group, as long as it is asked often enough: ids are handed out in turn, and do
    /// not come round between two looks.
    pub(super) fn is_empty(&mut self) -> bool {
        // Where this process is the one that inherits orphans (as the first process of
        // a container does), the leader's children are now ours to reap.
        while let Ok(Some(_)) = waitpgid(self.id, WaitOptions::NOHANG) {}
        // A group that may not be signalled is as good as gone to us. Some systems also
        // say so of one that has only zombies left.
        if test_kill_process_group(self.id).is_err() {
            return true;
        }
        // Others count zombies, and whoever inherited those may be slow to reap them.
        let is_dead = has_only_zombies(self.id);
        if is_dead {
            // For one that was born while we looked. The zombies keep the id ours.
            self.kill();
        }
        is_dead
    }

    fn signal(&self, signal: Signal) {
        // The only failures are "nobody there" and "not allowed", and neither leaves
        // anything to be done.
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for ProcessGroup {
    // Only where starting failed halfway: otherwise the reaper holds it until the end.
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a group has members and none of them runs, as far as can be seen.
#[cfg(target_os = "linux")]
fn has_only_zombies(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let mut states = processes
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        // One that cannot be read has just been reaped.
        .filter_map(|entry| std::fs::read(entry.path().join("stat")).ok())
        .filter_map(|stat| state_in_group(&String::from_utf8_lossy(&stat), group))
        .peekable();
    states.peek().is_some() && states.all(|state| matches!(state, 'Z' | 'X'))
}

#[cfg(not(target_os = "linux"))]
fn has_only_zombies(_group: Pid) -> bool {
    false
}

/// The state letter of a process, if it is in this group. The format is
/// `pid (name) state parent group …`, and the name may contain anything.
#[cfg(target_os = "linux")]
fn state_in_group(stat: &str, group: Pid) -> Option<char> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let (state, _parent, its_group) = (fields.next()?, fields.next()?, fields.next()?);
    if its_group.parse() == Ok(group.as_raw_pid()) { state.chars().next() } else { None }
}

/// The name of a signal, as people know it.
pub(super) fn signal_name(number: i32) -> Cow<'static, str> {
    let known = SIGNAL_NAMES.iter().find(|(signal, _)| signal.as_raw() == number);
    known.map_or_else(|| Cow::Owned(format!("signal {number}")), |(_, name)| Cow::Borrowed(*name))
}

const SIGNAL_NAMES: &[(Signal, &str)] = &[
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
    (Signal::XFSZ, "SIGXFSZ"),
    (Signal::SYS, "SIGSYS"),
];

/// Tells a draining thread to read what is there. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct CatchUp(io::PipeWriter);

impl CatchUp {
    pub(super) fn request(&mut self) {
        // One byte into an empty pipe: it neither blocks nor, while the thread lives,
        // fails. If the thread is gone it has read everything.
        let _ = self.0.write(&[1]);
    }
}

/// The draining thread's end of a [`CatchUp`].
pub(super) struct Requests(io::PipeReader);

pub(super) fn catch_up_pair() -> io::Result<(CatchUp, Requests)> {
    let (reader, writer) = io::pipe()?;
    Ok((CatchUp(writer), Requests(reader)))
}

/// Reads a child's standard error until its end, or until nobody wants it any more.
pub(super) fn drain(mut stderr: ChildStderr, mut requests: Requests, mut drain: StderrDrain) {
    // The description of a pipe's read end is ours alone, so this concerns nobody else.
    if rustix::io::ioctl_fionbio(&stderr, true).is_err() {
        return;
    }
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let mut both =
            [PollFd::new(&stderr, PollFlags::IN), PollFd::new(&requests.0, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let is_requested = !both[1].revents().is_empty();
        if !is_requested {
            match read_some(&mut stderr, &mut buffer, &mut drain) {
                ProcessLookup::Bytes(_) | ProcessLookup::Nothing => continue,
                ProcessLookup::End => return,
            }
        }
        // A leader that has exited wrote nothing after the request, so what there is now
        // is all. Those that outlive it may write without end, but no pipe is larger
        // than this.
        let mut left: usize = 1024 * 1024;
        while left > 0 {
            match read_some(&mut stderr, &mut buffer, &mut drain) {
                ProcessLookup::Bytes(count) => left = left.saturating_sub(count),
                ProcessLookup::Nothing => break,
                ProcessLookup::End => return,
            }
        }
        drain.caught_up();
        match requests.0.read(&mut [0]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

enum ProcessLookup {
    Bytes(usize),
    Nothing,
    End,
}

fn read_some(
    stderr: &mut ChildStderr,
    buffer: &mut [u8],
    drain: &mut StderrDrain,
) -> ProcessLookup {
    loop {
        return match stderr.read(buffer) {
            Ok(0) => ProcessLookup::End,
            Ok(count) => {
                drain.feed(&buffer[..count]);
                ProcessLookup::Bytes(count)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock => ProcessLookup::Nothing,
                _ => ProcessLookup::End,
            },
        };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_look_like_the_rest_of_its_line() {
        let group = Pid::from_raw(40).unwrap();
        assert_eq!(state_in_group("41 (a) Z 1 9 () S 1 40 7 0", group), Some('S'));
        assert_eq!(state_in_group("41 (sh) Z 1 40 7 0", group), Some('Z'));
        assert_eq!(state_in_group("41 (sh) S 1 41 40 0", group), None);
        assert_eq!(state_in_group("", group), None);
    }

    #[test]
    fn a_group_that_runs_is_no_group_of_zombies() {
        let ours = rustix::process::getpgrp();
        assert!(!has_only_zombies(ours));
    }
}
