//! Owns the stream wire as a whole: lines on a pair of byte streams.
//! Does not own what is said on it.

use std::sync::Arc;

use crate::{
    limits::Limits,
    rpc::{
        Serve,
        connection::io::{
            ConnectionTasks, Obituary, {self},
        },
    },
    transport::framing::LineReader,
};
use tokio::io::{AsyncRead, AsyncWrite};

/// Starts a connection on a running runtime.
pub(crate) fn start(
    read: impl AsyncRead + Unpin + Send + 'static,
    write: impl AsyncWrite + Unpin + Send + 'static,
    serve: Arc<dyn Serve>,
    limits: Limits,
    obituary: Option<Obituary>,
) -> ConnectionTasks {
    let lines = LineReader::new(read, limits.line_bytes);
    io::start(lines, write, serve, limits, obituary)
}
