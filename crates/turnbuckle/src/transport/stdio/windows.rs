//! Standard handles on Windows.
//!
//! Owns: duplicating and replacing them. Does not own: that this happens once.
//!
//! This file is not compiled by the project's continuous integration.

#![expect(unsafe_code, reason = "replacing a standard handle has no safe interface")]

use std::{
    fs::File,
    io,
    os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, IntoRawHandle},
    pin::Pin,
};

use tokio::io::{AsyncRead, AsyncWrite};
use windows_sys::Win32::{
    Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation},
    System::Console::{STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle},
};

use super::bridge::{BridgeReader, BridgeWriter};

/// Moves input and output to private handles and puts harmless ones in their place.
pub(super) fn take() -> io::Result<(StdinSource, Sink)> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    // Duplicates are not inherited by children.
    let input = File::from(stdin.as_handle().try_clone_to_owned()?);
    let output = File::from(stdout.as_handle().try_clone_to_owned()?);
    let null = File::options().read(true).write(true).open("NUL")?;
    let noise = File::from(stderr.as_handle().try_clone_to_owned()?);
    let (source, sink) = (BridgeReader::new(input)?, BridgeWriter::new(output)?);

    // The originals stay open, as others may know them, but reach no child.
    keep_from_children(stdin.as_handle())?;
    keep_from_children(stdout.as_handle())?;
    replace(STD_INPUT_HANDLE, null)?;
    replace(STD_OUTPUT_HANDLE, noise)?;
    Ok((StdinSource(source), Sink(sink)))
}

fn keep_from_children(handle: BorrowedHandle<'_>) -> io::Result<()> {
    // SAFETY: the handle is borrowed, so it is open for the whole call.
    let done = unsafe { SetHandleInformation(handle.as_raw_handle(), HANDLE_FLAG_INHERIT, 0) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The standard library asks for the standard handles each time it uses them, and so
/// does whoever starts a child.
fn replace(which: STD_HANDLE, file: File) -> io::Result<()> {
    // SAFETY: the handle is open, and stays so for ever: nobody owns it any more.
    let done = unsafe { SetStdHandle(which, file.into_raw_handle()) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// How standard input is read.
#[derive(Debug)]
pub(super) struct StdinSource(BridgeReader);

impl StdinSource {
    pub(super) fn half(&mut self) -> Pin<&mut (dyn AsyncRead + Unpin)> {
        Pin::new(&mut self.0)
    }
}

/// How standard output is written.
#[derive(Debug)]
pub(super) struct Sink(BridgeWriter);

impl Sink {
    pub(super) fn half(&mut self) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        Pin::new(&mut self.0)
    }

    pub(super) fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}
