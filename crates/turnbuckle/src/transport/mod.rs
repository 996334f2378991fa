//! The wires.
//!
//! Owns: framing, child processes, the standard streams, in-memory pairs. Does not own:
//! what is said on them, nor who is the client and who the server.

pub(crate) mod line;
