//! Descriptors 0, 1 and 2 on Unix.
//!
//! Owns: duplicating and replacing them, and the choice of how each kind of file is
//! read or written. Does not own: that this happens once.

use std::{
    fs::{File, Metadata},
    io,
    net::TcpStream as StdTcpStream,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{
            fs::{FileTypeExt, MetadataExt},
            net::UnixStream as StdUnixStream,
        },
    },
    pin::Pin,
};

use rustix::{
    io::fcntl_dupfd_cloexec,
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr, stdin, stdout},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream, unix::pipe},
};

use super::bridge::{BridgeReader, BridgeWriter};
use crate::transport::closing::Closing;

/// Moves 0 and 1 to private descriptors and puts harmless ones in their place.
pub(super) fn take() -> io::Result<(StdinSource, Sink)> {
    let input = duplicate(stdin(), "standard input")?;
    let output = duplicate(stdout(), "standard output")?;
    let null = duplicate(
        File::options().read(true).write(true).open("/dev/null")?.as_fd(),
        "the null device",
    )?;
    let noise = Noise::of(output.as_fd());
    let source = StdinSource::new(input)?;
    let sink = Sink::new(output)?;

    // Last, because these are what cannot be undone. They fail only where the
    // descriptors were never open, and those have just been duplicated.
    dup2_stdin(&null)?;
    match noise {
        Noise::StandardError => dup2_stdout(stderr())?,
        Noise::Discarded => {
            dup2_stdout(&null)?;
            dup2_stderr(&null)?;
        }
    }
    Ok((source, sink))
}

fn duplicate(fd: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    // From 3 on: where standard error was closed, nothing may slip into its place.
    fcntl_dupfd_cloexec(fd, 3).map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("{name} could not be duplicated: {error}"))
    })
}

/// Where `println!` goes from now on.
enum Noise {
    StandardError,
    Discarded,
}

impl Noise {
    fn of(output: BorrowedFd<'_>) -> Self {
        let (Ok(error), Ok(output)) = (metadata(stderr()), metadata(output)) else {
            // There is no standard error.
            return Self::Discarded;
        };
        let is_same = (error.dev(), error.ino()) == (output.dev(), output.ino());
        let is_device = output.file_type().is_char_device();
        if is_same && !is_device { Self::Discarded } else { Self::StandardError }
    }
}

/// How standard input is read.
#[derive(Debug)]
pub(super) enum StdinSource {
    Pipe(pipe::Receiver),
    Unix(UnixStream),
    Tcp(TcpStream),
    Other(BridgeReader),
}

impl StdinSource {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        match Kind::of(fd.as_fd())? {
            Kind::Pipe => pipe::Receiver::from_owned_fd(fd).map(Self::Pipe),
            Kind::Unix => unix_stream(fd).map(Self::Unix),
            Kind::Tcp => tcp_stream(fd).map(Self::Tcp),
            Kind::Other => BridgeReader::new(File::from(fd)).map(Self::Other),
        }
    }

    pub(super) fn half(&mut self) -> Pin<&mut (dyn AsyncRead + Unpin)> {
        Pin::new(match self {
            Self::Pipe(half) => half,
            Self::Unix(half) => half,
            Self::Tcp(half) => half,
            Self::Other(half) => half,
        })
    }
}

/// How standard output is written.
#[derive(Debug)]
pub(super) enum Sink {
    Pipe(Closing<pipe::Sender>),
    Unix(Closing<UnixStream>),
    Tcp(Closing<TcpStream>),
    Other(BridgeWriter),
}

impl Sink {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        match Kind::of(fd.as_fd())? {
            Kind::Pipe => pipe::Sender::from_owned_fd(fd).map(Closing::new).map(Self::Pipe),
            Kind::Unix => unix_stream(fd).map(Closing::new).map(Self::Unix),
            Kind::Tcp => tcp_stream(fd).map(Closing::new).map(Self::Tcp),
            Kind::Other => BridgeWriter::new(File::from(fd)).map(Self::Other),
        }
    }

    pub(super) fn half(&mut self) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        Pin::new(match self {
            Self::Pipe(half) => half,
            Self::Unix(half) => half,
            Self::Tcp(half) => half,
            Self::Other(half) => half,
        })
    }

    pub(super) fn is_write_vectored(&self) -> bool {
        match self {
            Self::Pipe(half) => half.is_write_vectored(),
            Self::Unix(half) => half.is_write_vectored(),
            Self::Tcp(half) => half.is_write_vectored(),
            Self::Other(half) => half.is_write_vectored(),
        }
    }
}

/// What a descriptor is, as far as it matters here.
enum Kind {
    Pipe,
    Unix,
    Tcp,
    /// Terminals and devices, which are shared with others and must stay blocking, and
    /// regular files, which cannot be waited for.
    Other,
}

impl Kind {
    fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let kind = metadata(fd)?.file_type();
        Ok(if kind.is_fifo() {
            Self::Pipe
        } else if kind.is_socket() {
            let fd = fd.try_clone_to_owned()?;
            // Asking for an address of the other family is an error.
            if StdUnixStream::from(fd).local_addr().is_ok() { Self::Unix } else { Self::Tcp }
        } else {
            Self::Other
        })
    }
}

/// Returns the metadata of the file behind a descriptor. The standard library asks an owned one.
fn metadata(fd: BorrowedFd<'_>) -> io::Result<Metadata> {
    File::from(fd.try_clone_to_owned()?).metadata()
}

fn unix_stream(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdUnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

fn tcp_stream(fd: OwnedFd) -> io::Result<TcpStream> {
    let stream = StdTcpStream::from(fd);
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}
