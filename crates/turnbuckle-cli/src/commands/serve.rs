//! Owns `turnbuckle serve`. Does not own the server that is served.

use std::io::IsTerminal;

use crate::{demo_server, exit::Failure, output::complain};

pub(crate) async fn run() -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        complain(
            "This serves the demo tools to a client that starts it, such as:\n  \
             turnbuckle call \"turnbuckle serve\" echo text=hello\n\
             On a terminal it waits for JSON-RPC messages, one a line; Ctrl-D ends it.",
        );
    }
    Ok(demo_server::server().serve_stdio().await?)
}
