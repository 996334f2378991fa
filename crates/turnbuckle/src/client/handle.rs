//! The handle of a client.

use std::{fmt, sync::Arc, time::Duration};

use turnbuckle_types::{Implementation, Revision, ServerCapabilities};

use crate::{
    client::{
        api::LogSetting,
        builder::ClientBuilder,
        connection::{ConnectionState, ConnectionStates, Supervisor, handle::ClientConnection},
    },
    rpc::Counters,
    transport::child_process::{ChildHandle, ExitReport},
};

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
#[doc(alias = "ClientHandler")]
#[doc(alias = "ClientSession")]
#[doc(alias = "RunningService")]
#[doc(alias = "Peer")]
pub struct Client(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) supervisor: Arc<Supervisor>,
    /// What servers that are told with each request log.
    pub(super) log_level: LogSetting,
}

impl Inner {
    /// The connection of now.
    pub(super) fn link(&self) -> Arc<ClientConnection> {
        self.supervisor.link()
    }

    pub(super) fn settings(&self) -> &ClientBuilder {
        &self.supervisor.settings
    }

    /// Waits until nothing is left to do that would be lost with the process.
    pub(super) async fn settle(&self, limit: Duration) {
        #[cfg(all(feature = "auth", feature = "http"))]
        self.settings().settle(limit).await;
        #[cfg(not(all(feature = "auth", feature = "http")))]
        let _ = limit;
    }
}

/// How long a token that is being renewed is waited for at the end: as long as one request to an
/// authorization server may take.
const SETTLING: Duration = Duration::from_secs(30);

/// How long calls may take unless they say otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// From the last sign of life.
    pub(super) idle: Option<Duration>,
    /// In all.
    pub(super) total: Option<Duration>,
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
        self.0.link().revision()
    }

    /// Who the server says it is.
    pub fn server_info(&self) -> Option<Implementation> {
        self.0.link().server.info.clone()
    }

    /// What the server says it can do; `None` where a pinned revision skipped the question.
    pub fn server_capabilities(&self) -> Option<ServerCapabilities> {
        self.0.link().server.capabilities.clone()
    }

    /// What the server says a model should know about using it.
    pub fn instructions(&self) -> Option<String> {
        self.0.link().server.instructions.clone()
    }

    /// How the connection is.
    pub fn state(&self) -> ConnectionState {
        self.0.supervisor.state()
    }

    /// How the connection is, and how it goes on. It does not keep the connection open.
    pub fn states(&self) -> ConnectionStates {
        self.0.supervisor.states()
    }

    /// Counts of what this connection dropped.
    pub fn counters(&self) -> Counters {
        self.0.link().transport.counters()
    }

    /// The last lines that a spawned server wrote to its stderr.
    pub fn last_stderr(&self) -> Vec<String> {
        self.0.link().child.as_ref().map(ChildHandle::last_stderr).unwrap_or_default()
    }

    /// Closes the connection for every clone: calls in flight fail, what waits is flushed
    /// within a second, a spawned server is shut down in stages, a token that is being renewed is
    /// kept first if that takes less than 30 seconds. Returns how that server ended. Dropping the
    /// future does not stop the closing.
    pub async fn close(self) -> Option<ExitReport> {
        self.0.supervisor.stop();
        let exit = self.0.link().close().await;
        self.0.settle(SETTLING).await;
        exit
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.supervisor.stop();
        self.link().transport.close_now();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .field("server", &self.server_info())
            .finish_non_exhaustive()
    }
}
