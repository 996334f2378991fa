//! Streamable HTTP.
//!
//! Owns: the wire on which one POST is one exchange. Does not own: what is said on it, nor
//! which era is spoken.

#[cfg(feature = "client")]
pub(crate) mod client;
mod sse;
