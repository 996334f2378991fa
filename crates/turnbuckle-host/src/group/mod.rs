//! Groups of clients: many servers that start, fail and stop independently, and can be used as one.

mod call;
mod follow;
mod health;
mod list;
mod members;
mod names;

use std::{fmt, sync::Arc, time::Duration};

pub use call::{GroupCall, Routed};
pub use health::{Health, HealthStream, Status};
pub use list::{GroupPrompt, GroupPrompts, GroupResources, GroupTool, GroupTools};

use turnbuckle::{
    __seam::copy_error, Client, ClientBuilder, Error, ErrorKind, Result,
    transport::child_process::ExitReport,
};

use crate::{McpConfig, ServerConfig};
use list::all;
use members::{Opener, Phase, Shared};

/// Many servers that start, fail and stop independently.
///
/// It is cheap to clone. Dropping the last clone aborts starts and drops all clients; a client without
/// other owners closes its connection and shuts down its process.
///
/// ```
/// use turnbuckle::{Client, Server, tool};
/// use turnbuckle_host::ClientGroup;
///
/// /// Find something.
/// #[tool]
/// async fn search() -> &'static str {
///     "found"
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// let group = ClientGroup::new();
/// for name in ["notes", "web"] {
///     let server = Server::new(name, "1.0").tool(search);
///     group.add(name, Client::in_process(&server).await?)?;
/// }
/// let names: Vec<String> = group.tools().await.tools.into_iter().map(|tool| tool.name).collect();
/// assert_eq!(names, ["notes_search", "web_search"]);
/// assert_eq!(group.call_tool("web_search", ()).await?.to_text(), "found");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ClientGroup(Arc<Shared>);

/// Settings of a group.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle_host::{ClientGroup, GroupOptions};
/// let group = ClientGroup::with(GroupOptions::default().patience(Duration::from_secs(5)));
/// # let _ = group;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GroupOptions {
    /// How many servers start at once: 16. The others wait; a server that takes more than five seconds no
    /// longer counts.
    pub starts_at_once: usize,
    /// How long a listing waits for one server including its start, and a call for the start of its
    /// server: 30 seconds.
    pub patience: Duration,
}

impl Default for GroupOptions {
    fn default() -> GroupOptions {
        GroupOptions { starts_at_once: 16, patience: Duration::from_secs(30) }
    }
}

impl GroupOptions {
    /// Sets [`starts_at_once`](GroupOptions::starts_at_once); at least one.
    #[must_use]
    pub fn starts_at_once(mut self, servers: usize) -> GroupOptions {
        self.starts_at_once = servers;
        self
    }

    /// Sets [`patience`](GroupOptions::patience).
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> GroupOptions {
        self.patience = patience;
        self
    }
}

/// The result of stopping the servers of a group.
///
/// ```
/// use turnbuckle_host::GroupReport;
/// fn show(report: &GroupReport) {
///     for (server, exit) in &report.stopped {
///         println!("{server}: {}", exit.as_ref().map(|exit| exit.to_string()).unwrap_or_default());
///     }
///     report.late.iter().for_each(|server| eprintln!("{server} is still ending"));
/// }
/// # let _ = show;
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GroupReport {
    /// The servers that ended in time, and how their processes ended.
    pub stopped: Vec<(String, Option<ExitReport>)>,
    /// The servers that are still ending.
    pub late: Vec<String>,
}

impl Default for ClientGroup {
    fn default() -> ClientGroup {
        ClientGroup::new()
    }
}

impl ClientGroup {
    /// Creates a group without servers.
    pub fn new() -> ClientGroup {
        ClientGroup::with(GroupOptions::default())
    }

    /// Creates a group without servers, with settings.
    pub fn with(options: GroupOptions) -> ClientGroup {
        ClientGroup(Shared::new(options))
    }

    /// Creates a group and starts all servers of a configuration. It returns immediately; see
    /// [`start_from`](ClientGroup::start_from).
    ///
    /// ```no_run
    /// # async fn example() -> turnbuckle::Result<()> {
    /// use turnbuckle::Client;
    /// use turnbuckle_host::{ClientGroup, McpConfig};
    /// let config = McpConfig::read("mcp.json")?;
    /// let group = ClientGroup::start_all(&config, |_| Client::builder().info("my-host", "2.1"))?;
    /// for tool in group.tools().await.tools {
    ///     println!("{} of {}", tool.name, tool.server);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn start_all(
        config: &McpConfig,
        builder: impl Fn(&str) -> ClientBuilder + Send + Sync + 'static,
    ) -> Result<ClientGroup> {
        let group = ClientGroup::new();
        group.start_from(config, builder)?;
        Ok(group)
    }

    /// Starts all servers of a configuration concurrently, as far as
    /// [`starts_at_once`](GroupOptions::starts_at_once) allows. It returns immediately. A broken entry is
    /// a server that failed to start, a disabled one is a stopped server that can be
    /// [started](ClientGroup::start_again). A server whose name is in use is skipped.
    ///
    /// # Errors
    ///
    /// Outside of a Tokio runtime it fails and starts nothing.
    pub fn start_from(
        &self,
        config: &McpConfig,
        builder: impl Fn(&str) -> ClientBuilder + Send + Sync + 'static,
    ) -> Result<()> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(members::no_runtime());
        }
        let builder = Arc::new(builder);
        for (name, server) in config.servers() {
            let done = match server {
                Err(error) => self.0.put(name, Phase::Failed(Arc::new(copy_error(error))), None),
                Ok(server) => {
                    let (builder, own) = (builder.clone(), name.to_owned());
                    let opener = opener(move || builder(&own), server.clone());
                    if config.is_disabled(name) {
                        self.0.put(name, Phase::Stopped, Some(opener))
                    } else {
                        self.0.start(name, opener)
                    }
                }
            };
            if let Err(error) = done {
                tracing::debug!(server = name, %error, "a server of a configuration is left out");
            }
        }
        Ok(())
    }

    /// Starts a server, and returns immediately. `builder` is called for each start.
    ///
    /// # Errors
    ///
    /// It fails if a server of that name is starting or running, and outside of a Tokio runtime.
    pub fn start(
        &self,
        name: &str,
        builder: impl Fn() -> ClientBuilder + Send + Sync + 'static,
        server: impl Into<ServerConfig>,
    ) -> Result<()> {
        self.0.start(name, opener(builder, server.into()))
    }

    /// Starts a server that `open` connects to; otherwise like [`start`](ClientGroup::start). The future is
    /// dropped if the server is stopped before it is ready.
    pub fn start_with<F, Fut>(&self, name: &str, open: F) -> Result<()>
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Client>> + Send + 'static,
    {
        self.0.start(name, Arc::new(move || Box::pin(open())))
    }

    /// Starts a server again that failed or was stopped. It fails for a server that was
    /// [added](ClientGroup::add).
    pub fn start_again(&self, name: &str) -> Result<()> {
        self.0.start_again(name)
    }

    /// Adds a connected client. It fails if a server of that name is starting or running.
    pub fn add(&self, name: &str, client: Client) -> Result<()> {
        self.0.add(name, client)
    }

    /// Returns the client of a server that is ready.
    pub fn client(&self, name: &str) -> Option<Client> {
        self.ready_now(name).and_then(Result::ok)
    }

    /// Waits until a server has started, and returns its client, or the error of its start. Dropping the
    /// future changes nothing.
    pub async fn ready(&self, name: &str) -> Result<Client> {
        let mut changes = self.0.changes();
        loop {
            if let Some(ready) = self.ready_now(name) {
                return ready;
            }
            // This handle owns the sender.
            let _ = changes.changed().await;
        }
    }

    /// Waits until no server is starting, and returns the health of all servers. Dropping the future
    /// changes nothing.
    pub async fn settled(&self) -> Vec<Health> {
        let mut changes = self.0.changes();
        loop {
            let servers = self.servers();
            if servers.iter().all(|server| server.status != Status::Starting) {
                return servers;
            }
            let _ = changes.changed().await;
        }
    }

    /// Returns all servers in the order in which they were added, including failed and stopped ones.
    pub fn servers(&self) -> Vec<Health> {
        self.0.state().members.iter().map(|member| member.health()).collect()
    }

    /// Returns a stream of the health of the servers: first of all servers, then of each that changes.
    pub fn health(&self) -> HealthStream {
        HealthStream::new(Arc::downgrade(&self.0), self.0.changes())
    }

    /// Stops a server: aborts its start, or closes its connection for all clones of its client. Returns
    /// how its process ended, if there was one. For an unknown or stopped server it does nothing.
    ///
    /// The server is stopped when the future is first polled; dropping the future after that does not
    /// interrupt the closing.
    pub async fn stop(&self, name: &str) -> Option<ExitReport> {
        end(self.0.retire(name)?).await
    }

    /// Stops all servers concurrently, and waits until they have ended, at most until the deadline. Late
    /// servers continue to end. Dropping the future after the first poll does not interrupt the closing.
    pub async fn stop_all(&self, deadline: Duration) -> GroupReport {
        let names: Vec<String> = self.servers().into_iter().map(|health| health.server).collect();
        let deadline = tokio::time::Instant::now().checked_add(deadline);
        let running = names.into_iter().filter_map(|name| {
            let phase = self.0.retire(&name)?;
            Some(async move {
                let ended = match deadline {
                    Some(deadline) => tokio::time::timeout_at(deadline, end(phase)).await.ok(),
                    None => Some(end(phase).await),
                };
                (name, ended)
            })
        });
        let mut report = GroupReport::default();
        for (name, ended) in all(running).await {
            match ended {
                Some(exit) => report.stopped.push((name, exit)),
                None => report.late.push(name),
            }
        }
        report
    }

    fn shared(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for ClientGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGroup").field("servers", &self.servers()).finish_non_exhaustive()
    }
}

fn opener(
    builder: impl Fn() -> ClientBuilder + Send + Sync + 'static,
    server: ServerConfig,
) -> Opener {
    let server = Arc::new(server);
    Arc::new(move || {
        let (builder, server) = (builder(), server.clone());
        Box::pin(async move { server.connect(builder).await })
    })
}

async fn end(phase: Phase) -> Option<ExitReport> {
    match phase {
        Phase::Starting(task) => {
            task.abort();
            // When the task has ended, so has everything that it started.
            let _ = task.await;
            None
        }
        Phase::Ready(client, _) => client.close().await,
        Phase::Failed(_) | Phase::Stopped => None,
    }
}

/// Returns the error for something that the group refuses to do.
fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    turnbuckle::__seam::error(ErrorKind::Refused, message)
}

/// Describes a timeout.
fn timed_out(after: Duration) -> String {
    format!("timed out after {after:?}")
}
