//! Owns the stream wire as a whole: lines on a pair of byte streams.
//! Does not own what is said on it.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::line::LineReader;
use crate::{
    dispatch::{
        Serve,
        duplex::driver::{self, Obituary, Wire},
    },
    limits::Limits,
};

/// Starts a connection on a running runtime.
pub(crate) fn start(
    read: impl AsyncRead + Unpin + Send + 'static,
    write: impl AsyncWrite + Unpin + Send + 'static,
    serve: Arc<dyn Serve>,
    limits: Limits,
    obituary: Option<Obituary>,
) -> Wire {
    let lines = LineReader::new(read, limits.line_bytes);
    driver::start(lines, write, serve, limits, obituary)
}
