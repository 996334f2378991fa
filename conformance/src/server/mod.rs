//! The server that the suite calls: one thing for each that it wants to see.
//!
//! Owns: what there is. Does not own: where it is served.

mod ask;
mod content;
mod input;
mod prompts;
mod resources;
mod speak;

use turnbuckle::Server;

/// The server, to be served.
pub fn server() -> Server {
    let server = Server::new("everything-server", env!("CARGO_PKG_VERSION"));
    let changes = server.changes();
    server
        .state(changes)
        // The first tool is the one that the suite calls when any will do.
        .group(content::group())
        .group(speak::group())
        .group(ask::group())
        .group(input::group())
        .group(resources::group())
        .group(prompts::group())
}
