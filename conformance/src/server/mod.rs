//! The server that the suite calls: one tool for each thing it wants to see.
//!
//! Owns: which tools there are. Does not own: where they are served.

mod ask;
mod content;
mod speak;

use turnbuckle::Server;

/// The server, to be served.
pub fn server() -> Server {
    let server = Server::new("everything-server", env!("CARGO_PKG_VERSION"));
    ask::offer(speak::offer(content::offer(server)))
}
