//! Child processes: the client's end of a server that is started as a program.
//!
//! Owns: starting a program, its pipes, its environment, and ending it with all its
//! descendants. Does not own: what is said over the pipes.
//!
//! # How a child ends
//!
//! A child leads a process group of its own (on Windows: a job). Ending it takes
//! these steps, and stops at the first that works:
//!
//! 1. its standard input is closed, by dropping [`ChildStdin`];
//! 2. after a grace period, 2 s by default, its whole group gets SIGTERM;
//! 3. after another one, 2 s by default, its whole group gets SIGKILL.
//!
//! What counts is that the child itself has exited, not that its pipes are closed:
//! a grandchild may hold those. When the child has exited, for whatever reason, those
//! of its group that outlived it get SIGTERM at once and SIGKILL after the grace
//! period. The child is always reaped. A grandchild that moved to a session or group
//! of its own has left, and is left alone.
//!
//! All this is done by one thread of this library, which no runtime is needed for.
//!
//! # When this program ends first
//!
//! Then that thread ends with it, wherever the steps above were. The operating system
//! closes the child's standard input, and a server that obeys the protocol exits by
//! itself; one that ignores the end of its input stays. A program that wants to be
//! sure calls [`settle`] at its end, when its runtime is gone. Against SIGKILL this does
//! not help. On Linux a program can then have the kernel send a signal to the child:
//! [`Spawn::before_spawn`] can replace the command by a launcher that sets the
//! parent-death signal and executes the server, as the `turnbuckle` command does. On
//! Windows the job is closed with the program, which ends the child in any case.
//!
//! # Windows
//!
//! There is no SIGTERM: step 2 is skipped. The Windows code is not compiled by this
//! project's continuous integration.

mod env;
mod error;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod platform;
mod reaper;
mod report;
mod shutdown;
mod spawn;
mod stderr;

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
};

pub(crate) use platform::UnreadInput;

pub use error::{SpawnError, SpawnErrorKind};
pub use reaper::Settled;
pub use report::{ExitMethod, ExitReport};
pub use spawn::Spawn;

use reaper::{ChildStatus, ChildTicket};
use stderr::Tail;

/// A child process that runs.
///
/// The parts are independent and can be moved apart. Dropping all of it closes the
/// child's input and starts its orderly end.
///
/// ```
/// # #[cfg(unix)] {
/// use std::process::Command;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use turnbuckle::transport::child_process::{Child, Spawn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let Child { mut stdin, mut stdout, handle, .. } = Spawn::new(Command::new("cat")).spawn()?;
/// stdin.write_all(b"meow").await?;
/// drop(stdin);
///
/// let mut said = String::new();
/// stdout.read_to_string(&mut said).await?;
/// assert_eq!(said, "meow");
/// assert!(handle.shutdown().await.is_success());
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap(); }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Child {
    /// Writes to the child's standard input.
    pub stdin: ChildStdin,
    /// Reads the child's standard output.
    pub stdout: ChildStdout,
    /// Keeps the child alive, and ends it.
    pub handle: ChildHandle,
}

/// Keeps a child process alive, and ends it.
///
/// Dropping the handle starts the [orderly end](self#how-a-child-ends) and returns at
/// once. It needs no runtime, does not wait and does not panic. The first step, closing
/// the child's input, is done by whoever drops [`ChildStdin`]: while somebody holds it,
/// the child is left in peace for the first grace period and then gets SIGTERM.
///
/// ```
/// # #[cfg(unix)] {
/// use std::process::Command;
/// use turnbuckle::transport::child_process::Spawn;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let child = Spawn::new(Command::new("cat")).spawn()?;
/// let observer = child.handle.observer();
///
/// drop(child);
/// assert!(observer.gone().await.is_success());
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap(); }
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle ends the child"]
pub struct ChildHandle {
    ticket: ChildTicket,
    observer: Observer,
}

impl ChildHandle {
    /// The process id that the child has or had. It also names the process group.
    pub fn id(&self) -> u32 {
        self.observer.id
    }

    /// Somebody who sees how the child is, and neither keeps it alive nor ends it.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// See [`Observer::exited`].
    pub fn exited(&self) -> impl Future<Output = ExitReport> + Send + 'static + use<> {
        self.observer.exited()
    }

    /// See [`Observer::try_exit`].
    pub fn try_exit(&self) -> Option<ExitReport> {
        self.observer.try_exit()
    }

    /// See [`Observer::last_stderr`].
    pub fn last_stderr(&self) -> Vec<String> {
        self.observer.last_stderr()
    }

    /// Ends the child [in order](self#how-a-child-ends), and waits until nobody of its
    /// group is left. Drop [`ChildStdin`] first, or the first grace period is spent in
    /// vain.
    ///
    /// The end begins when this is called, not when it is awaited, and goes on when the
    /// future is dropped: it is cancel-safe, and can be called again.
    pub fn shutdown(&self) -> impl Future<Output = ExitReport> + Send + 'static + use<> {
        reaper::ask_to_end(self.ticket);
        self.observer.gone()
    }
}

impl Drop for ChildHandle {
    fn drop(&mut self) {
        reaper::ask_to_end(self.ticket);
    }
}

/// Sees how a child process is, and neither keeps it alive nor ends it.
///
/// Its futures need no runtime, and are cancel-safe.
///
/// ```
/// # #[cfg(unix)] {
/// use std::process::Command;
/// use turnbuckle::transport::child_process::Spawn;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let child = Spawn::new(Command::new("cat")).spawn()?;
/// let observer = child.handle.observer();
/// assert!(observer.try_exit().is_none());
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap(); }
/// ```
#[derive(Debug, Clone)]
pub struct Observer {
    id: u32,
    tail: Arc<Tail>,
    progress: watch::Receiver<ChildStatus>,
}

impl Observer {
    /// The process id that the child has or had.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Waits until the child itself has exited, whoever else still holds its pipes.
    pub fn exited(&self) -> impl Future<Output = ExitReport> + Send + 'static + use<> {
        self.report_when(|progress| progress.report.is_some())
    }

    /// Waits until the child has exited and nobody of its group is left. Those who
    /// outlived the child are ended in order, so this comes soon after its exit.
    pub fn gone(&self) -> impl Future<Output = ExitReport> + Send + 'static + use<> {
        self.report_when(|progress| progress.gone)
    }

    /// How the child ended, if it has.
    pub fn try_exit(&self) -> Option<ExitReport> {
        self.progress.borrow().report.clone()
    }

    /// The last lines that the child wrote to its standard error, oldest first.
    pub fn last_stderr(&self) -> Vec<String> {
        self.tail.lines()
    }

    fn report_when(
        &self,
        is_reached: fn(&ChildStatus) -> bool,
    ) -> impl Future<Output = ExitReport> + Send + 'static + use<> {
        let mut progress = self.progress.clone();
        async move {
            let reached = progress.wait_for(is_reached).await;
            let report = reached.ok().and_then(|progress| progress.report.clone());
            // Only if the reaper itself failed on this child.
            report.unwrap_or_else(ExitReport::unknown)
        }
    }
}

/// Blocks until every child whose handle was dropped or shut down is gone, or the time
/// is over. For the end of `main`, after the runtime: connections that were dropped let
/// go of their children when their tasks get a turn, or with the runtime at the latest.
/// Do not call it on a thread that drives one.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::transport::child_process;
///
/// fn main() {
///     let runtime = tokio::runtime::Runtime::new().unwrap();
///     runtime.block_on(async { /* … start servers, call them … */ });
///     drop(runtime);
///     if child_process::settle(Duration::from_secs(5)) == child_process::Settled::StillWaiting {
///         eprintln!("a server did not end");
///     }
/// }
/// ```
pub fn settle(limit: Duration) -> Settled {
    reaper::settle(limit)
}

/// Writes to a child's standard input. Dropping it, or shutting it down, is the end of
/// the child's input.
///
/// See [`Child`] for an example.
#[derive(Debug)]
pub struct ChildStdin(platform::StdinPipe);

impl AsyncWrite for ChildStdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}

/// Reads a child's standard output.
///
/// See [`Child`] for an example.
#[derive(Debug)]
pub struct ChildStdout(platform::StdoutPipe);

impl AsyncRead for ChildStdout {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}
