//! Decides which hosts, origins and requests an endpoint accepts.

pub(crate) mod cors;
#[cfg(feature = "sse-2024")]
pub(crate) mod front;
pub(crate) mod gate;
pub(crate) mod guard;
