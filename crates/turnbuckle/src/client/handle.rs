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
    /// The log level that each request carries, for revisions that have no `logging/setLevel`.
    pub(super) log_level: LogSetting,
}

impl Inner {
    /// Returns the current connection.
    pub(super) fn link(&self) -> Arc<ClientConnection> {
        self.supervisor.link()
    }

    pub(super) fn settings(&self) -> &ClientBuilder {
        &self.supervisor.settings
    }

    /// Waits until a token that is being renewed is stored.
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
    /// The time since the last message of the call.
    pub(super) idle: Option<Duration>,
    /// The time of the whole call.
    pub(super) total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { idle: Some(Duration::from_secs(60)), total: Some(Duration::from_secs(30 * 60)) }
    }
}

impl Client {
    /// Returns a builder: client info, timeouts, limits, callbacks, a pinned revision.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> Revision {
        self.0.link().revision()
    }

    /// Returns name and version of the server, if it sent them.
    pub fn server_info(&self) -> Option<Implementation> {
        self.0.link().server.info.clone()
    }

    /// Returns the capabilities of the server; `None` if a pinned revision skipped discovery.
    pub fn server_capabilities(&self) -> Option<ServerCapabilities> {
        self.0.link().server.capabilities.clone()
    }

    /// Returns the instructions of the server for the model.
    pub fn instructions(&self) -> Option<String> {
        self.0.link().server.instructions.clone()
    }

    /// Returns the connection state.
    pub fn state(&self) -> ConnectionState {
        self.0.supervisor.state()
    }

    /// Returns a stream of connection states, which starts with the current one. It does not keep the
    /// connection open.
    pub fn states(&self) -> ConnectionStates {
        self.0.supervisor.states()
    }

    /// Returns the counts of messages that this connection dropped.
    pub fn counters(&self) -> Counters {
        self.0.link().transport.counters()
    }

    /// Returns the last lines that a spawned server wrote to its stderr.
    pub fn last_stderr(&self) -> Vec<String> {
        self.0.link().child.as_ref().map(ChildHandle::last_stderr).unwrap_or_default()
    }

    /// Closes the connection for every clone and returns the exit of a spawned server.
    ///
    /// Calls in flight fail. Queued messages are written within a second. A spawned server is shut down in
    /// stages. A token that is being renewed is stored first, within 30 seconds. Dropping the future does
    /// not stop the shutdown.
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
