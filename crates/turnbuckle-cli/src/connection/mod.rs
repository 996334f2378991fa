//! Connecting to a server: its address or configuration, logging in, and the client's roots.

pub(crate) mod config;
pub(crate) mod connect;
#[cfg(target_os = "linux")]
pub(crate) mod launch;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod roots;
pub(crate) mod session;
pub(crate) mod target;
