//! What goes wrong between a client, a protected server and an authorization server, over sockets:
//! each time a clear error, no loop, nothing leaked, and whoever else calls is unharmed.

#![cfg(all(feature = "auth", feature = "client", feature = "http", feature = "server"))]

#[path = "../common/heard.rs"]
mod heard;

mod ears;
mod given;
mod keys;
mod login;
mod private;
mod processes;
mod renewal;
mod secure;
mod shown;
mod slow;
mod tls;
mod world;
