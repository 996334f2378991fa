//! Standard input and output as a private wire.
//!
//! Owns: moving descriptors 0 and 1 out of everybody's reach, once per process. Does
//! not own: framing, or anything that is said over them.
//!
//! # What other code sees afterwards
//!
//! Descriptor 0 is the null device and descriptor 1 is standard error. So `println!`
//! in a handler, a library in C that prints, and a child that inherits both can
//! neither write to the wire nor take bytes from it. The wire's own descriptors are
//! closed on exec.
//!
//! If standard error is the same pipe, socket or file as standard output, as after
//! `2>&1`, it would be a second way to the wire: then 1 and 2 both become the null
//! device. On a terminal they stay.
//!
//! # What the other holders of the same file see
//!
//! Pipes and sockets are made non-blocking, which concerns the whole open file. Their
//! other end is another open file, so the peer is not concerned; a process that
//! was given the very same end, as by a shell that runs several programs in
//! `( … ) | other`, is. Terminals, files and devices are left as they are, and are read and
//! written by a thread each. No runtime waits for these threads, so a read that
//! hangs on a terminal does not keep the process from ending.
//!
//! # Windows
//!
//! Both directions go through threads. The Windows code is not compiled by this
//! project's continuous integration.

mod bridge;
#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod platform;

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::Handle,
};

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes over standard input and output, [for good](self#what-other-code-sees-afterwards).
///
/// Call it early: what is printed before reaches the wire. Bytes that somebody read from
/// [`std::io::stdin`] before, or that it has buffered, are lost to the wire.
///
/// ```no_run
/// use tokio::io::AsyncWriteExt;
/// use turnbuckle::transport::stdio::take_stdio;
///
/// # async fn example() -> std::io::Result<()> {
/// let (_reader, mut writer) = take_stdio()?;
/// println!("this goes to standard error");
/// writer.write_all(b"this goes to standard output\n").await?;
/// writer.flush().await?;
/// # Ok(()) }
/// ```
///
/// # Panics
/// If the Tokio runtime of this thread was built without its I/O driver.
///
/// # Errors
/// If there is no Tokio runtime on this thread, if this was done before in this process,
/// if standard input or output is closed, or if the system refuses. Nothing has changed
/// then.
pub fn take_stdio() -> io::Result<(StdinReader, Writer)> {
    if Handle::try_current().is_err() {
        return Err(io::Error::other(
            "standard input and output must be taken over inside a Tokio runtime",
        ));
    }
    if IS_TAKEN.swap(true, Ordering::AcqRel) {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "standard input and output were already taken over in this process",
        ));
    }
    let taken = platform::take();
    if taken.is_err() {
        IS_TAKEN.store(false, Ordering::Release);
    }
    taken.map(|(source, sink)| (StdinReader(source), Writer(sink)))
}

/// What was standard input.
///
/// ```no_run
/// use tokio::io::AsyncReadExt;
///
/// # async fn example() -> std::io::Result<()> {
/// let (mut reader, _writer) = turnbuckle::transport::stdio::take_stdio()?;
/// let mut all = Vec::new();
/// reader.read_to_end(&mut all).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct StdinReader(platform::StdinSource);

impl AsyncRead for StdinReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().0.half().poll_read(cx, buffer)
    }
}

/// What was standard output. Shutting it down, or dropping it, closes it.
///
/// Flush or shut down before the program ends: for terminals and files a thread does the
/// writing, and what it has not written by then is lost.
///
/// ```no_run
/// use tokio::io::AsyncWriteExt;
///
/// # async fn example() -> std::io::Result<()> {
/// let (_reader, mut writer) = turnbuckle::transport::stdio::take_stdio()?;
/// writer.write_all(b"the end\n").await?;
/// writer.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Writer(platform::Sink);

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().0.half().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().0.half().poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.half().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.half().poll_shutdown(cx)
    }
}
