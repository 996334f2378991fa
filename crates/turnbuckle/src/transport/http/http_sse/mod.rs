//! The transport of 2024-11-05, HTTP with server-sent events.
//!
//! Owns: one stream of events down, one POST a message up, and what joins the two. Does not own:
//! what is said; it is a stream wire like any other.

#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "server")]
pub(crate) mod server;
