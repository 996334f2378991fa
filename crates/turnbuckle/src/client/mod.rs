//! Everything a host author needs to talk to a server.
//!
//! Owns: connecting, calling, timeouts, progress. Does not own: wires, framing, which
//! requests are in flight.

mod answer;
mod call;
mod callbacks;
mod clock;
mod connect;
mod failure;
#[cfg(feature = "http")]
mod http;
mod input;
mod listed;
mod listen;
mod negotiate;
mod open;
#[cfg(feature = "http")]
mod prior;
#[cfg(feature = "http")]
mod repeated;
mod verbs;

use std::{fmt, sync::Arc, time::Duration};

use turnbuckle_types::{Implementation, Revision, ServerCapabilities};

pub use answer::ServerRequest;
pub use call::Call;
pub use connect::{ClientBuilder, IntoSpawn};
pub use listed::{Listed, Tools};
pub use listen::{Happened, Listening, Watch};
#[cfg(feature = "http")]
pub use prior::Prior;

use crate::{
    dispatch::{Counters, Transport},
    envelope::stamp::Stamp,
    transport::child::{ChildHandle, ExitReport},
};
use answer::Answering;
use callbacks::Callbacks;

/// A connection to a server: cheap to clone, shared by everyone who calls.
///
/// When the last clone is dropped the connection is closed; a server that was spawned is
/// then shut down, in stages and without waiting.
///
/// ```
/// # use turnbuckle::{Args, Client, Server, tool};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Add { a: i64, b: i64 }
/// # async fn add(Args(add): Args<Add>) -> i64 { add.a + add.b }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// # let server = Server::new("calc", "1.0").tool(tool("add", add));
/// let client = Client::in_process(&server).await?;
/// let sum = client.call_tool("add", serde_json::json!({"a": 1, "b": 2})).await?;
/// assert_eq!(sum.to_text(), "3");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    transport: Arc<dyn Transport>,
    stamp: Stamp,
    server: ServerFacts,
    timeouts: Timeouts,
    answering: Arc<Answering>,
    /// Who answers what comes as a result.
    callbacks: Callbacks,
    child: Option<ChildHandle>,
    /// `None` on wires that have no headers.
    #[cfg(feature = "http")]
    repeated: Option<repeated::Repeated>,
    /// Where what this connection believes is remembered.
    #[cfg(feature = "http")]
    remembered: std::sync::OnceLock<prior::Key>,
}

/// What the server said about itself when the connection was made.
#[derive(Clone, Debug, Default)]
struct ServerFacts {
    info: Option<Implementation>,
    capabilities: Option<ServerCapabilities>,
    instructions: Option<String>,
    /// The whole of what a modern server said.
    #[cfg(feature = "http")]
    discovered: Option<turnbuckle_types::Raw>,
}

/// How long calls may take unless they say otherwise.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    /// From the last sign of life.
    idle: Option<Duration>,
    /// In all.
    total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { idle: Some(Duration::from_secs(60)), total: Some(Duration::from_secs(30 * 60)) }
    }
}

impl Client {
    /// Settings for a connection: who we are, timeouts, limits, a pinned revision.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// The revision that was agreed on.
    pub fn revision(&self) -> Revision {
        self.0.stamp.revision()
    }

    /// Who the server says it is.
    pub fn server_info(&self) -> Option<&Implementation> {
        self.0.server.info.as_ref()
    }

    /// What the server says it can do; `None` where a pinned revision skipped the question.
    pub fn server_capabilities(&self) -> Option<&ServerCapabilities> {
        self.0.server.capabilities.as_ref()
    }

    /// What the server says a model should know about using it.
    pub fn instructions(&self) -> Option<&str> {
        self.0.server.instructions.as_deref()
    }

    /// Counts of what this connection dropped.
    pub fn counters(&self) -> Counters {
        self.0.transport.counters()
    }

    /// The last lines that a spawned server wrote to its stderr.
    pub fn last_stderr(&self) -> Vec<String> {
        self.0.child.as_ref().map(ChildHandle::last_stderr).unwrap_or_default()
    }

    /// Closes the connection for every clone: calls in flight fail, what waits is flushed
    /// within a second, a spawned server is shut down in stages. Returns how that server
    /// ended. Dropping the future does not stop the closing.
    pub async fn close(self) -> Option<ExitReport> {
        // The end of its input is what asks a server to leave; only then do the stages begin.
        self.0.transport.close().await;
        match &self.0.child {
            Some(child) => Some(child.shutdown().await),
            None => None,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.transport.close_now();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .field("server", &self.0.server.info)
            .finish_non_exhaustive()
    }
}
