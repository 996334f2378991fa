//! Connections on which every byte is written by hand.

pub(crate) mod endpoint;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod message;
