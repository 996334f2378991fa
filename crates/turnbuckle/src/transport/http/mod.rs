//! Streamable HTTP.
//!
//! Owns: the wire on which one POST is one exchange: server-sent events, media types, who may
//! speak to an endpoint. Does not own: what a request says about itself; `envelope` does.

#[cfg(feature = "server")]
mod authority;
#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(any(feature = "client", all(feature = "auth", feature = "server")))]
pub(crate) mod connect;
#[cfg(feature = "sse-2024")]
pub(crate) mod http_sse;
mod media_type;
#[cfg(feature = "server")]
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod sse;
#[cfg(feature = "server")]
pub(crate) mod timing;
#[cfg(any(feature = "client", all(feature = "auth", feature = "server")))]
pub(crate) mod tls;
