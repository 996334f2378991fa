//! One connection of a server: the handshake and the routing of its requests.

pub(crate) mod dispatch;
pub(crate) mod forward;
pub(crate) mod handshake;
