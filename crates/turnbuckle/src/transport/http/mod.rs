//! Streamable HTTP.
//!
//! Owns: the wire on which one POST is one exchange: server-sent events, media types, who may
//! speak to an endpoint. Does not own: what a request says about itself; `envelope` does.

#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "server")]
mod cors;
#[cfg(any(feature = "client", all(feature = "auth", feature = "server")))]
pub(crate) mod dial;
#[cfg(feature = "server")]
mod guard;
#[cfg(feature = "server")]
mod host;
pub(crate) mod legacy;
mod media;
#[cfg(feature = "server")]
pub(crate) mod server;
mod sse;
#[cfg(feature = "server")]
pub(crate) mod timing;
#[cfg(any(feature = "client", all(feature = "auth", feature = "server")))]
pub(crate) mod tls;
