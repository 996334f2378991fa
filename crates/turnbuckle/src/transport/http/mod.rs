//! Streamable HTTP.
//!
//! Owns: the wire on which one POST is one exchange: server-sent events, media types, who may
//! speak to an endpoint. Does not own: what a request says about itself; `envelope` does.

#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "server")]
pub(crate) mod cors;
#[cfg(feature = "server")]
pub(crate) mod guard;
#[cfg(feature = "server")]
mod host;
pub(crate) mod media;
pub(crate) mod sse;
