//! The wires.
//!
//! Owns: framing, child processes, the standard streams, HTTP. Does not own: what is said on
//! them, nor who is the client and who the server.

#[cfg(feature = "client")]
pub mod child_process;
#[cfg(any(feature = "client", feature = "server"))]
mod closing;
pub(crate) mod framing;
#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(feature = "server")]
pub mod stdio;
pub(crate) mod stream;
