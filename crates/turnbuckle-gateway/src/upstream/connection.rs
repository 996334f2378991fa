//! One connection to the server, with the settings that all of its clients share: log level and
//! subscriptions.

use std::sync::Arc;

use serde_json::json;
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, mpsc},
    task::AbortHandle,
};
use turnbuckle::{
    __seam::{self, Note, ResourceClaim, ServerEvents, claim_resource},
    Client, ErrorKind, Limits, Result,
    client::Reconnect,
    types::{
        ClientCapabilities, ElicitationCapability, Implementation, Initialize, LogLevel, Method,
        Raw, Revision, RootsCapability, RpcError, SamplingCapability,
    },
};

use super::router::{Clients, Router};
use crate::{
    gateway::{Connect, to_rpc_error},
    translate::{Revisions, ServerDescription},
};

/// The most notifications that wait to be sent.
const UNSENT: usize = 1024;

/// A connection to the server.
pub(crate) struct UpstreamConnection {
    pub(crate) client: Client,
    pub(crate) router: Arc<Router>,
    pub(crate) server: ServerDescription,
    notes: mpsc::Sender<Note>,
    /// The task that sends them.
    sending: AbortHandle,
    /// The log level that was set for all clients. Locked while it is being set.
    log_level: Mutex<Option<LogLevel>>,
    /// Counts it among all connections.
    _permit: Option<OwnedSemaphorePermit>,
}

/// A client that has sent `initialize`.
#[derive(Clone, Copy)]
pub(crate) struct LegacyClient<'a> {
    pub(crate) revision: Revision,
    pub(crate) initialize: &'a Initialize,
}

/// The settings of a connection.
pub(super) struct ConnectPlan<'a> {
    pub(super) connect: &'a Connect,
    pub(super) limits: &'a Limits,
    /// The client that is introduced to the server; the gateway itself if the connection is shared.
    pub(super) client: Option<&'a Initialize>,
    /// The clients whose requests it carries.
    pub(super) clients: Clients,
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

impl UpstreamConnection {
    /// Connects. Dropping the future stops that.
    pub(super) async fn open(plan: ConnectPlan<'_>) -> Result<Arc<UpstreamConnection>> {
        let router = Arc::new(Router::new(plan.clients, plan.limits.queued_notifications));
        let info = plan.client.map(|client| client.client_info.clone()).unwrap_or_else(|| {
            Implementation::new("turnbuckle-gateway", env!("CARGO_PKG_VERSION"))
        });
        let builder = Client::builder()
            .capabilities(
                plan.client.map_or_else(all_capabilities, |client| client.capabilities.clone()),
            )
            .limits(plan.limits.clone())
            .no_timeouts()
            // A new connection would not have the settings that its client made on this one.
            .reconnect(Reconnect::never());
        let builder = __seam::observe(builder, router.clone() as Arc<dyn ServerEvents>);
        let client = (plan.connect)(__seam::describe(builder, info)).await?;
        let server = describe_server(&client).await?;
        let (notes, unsent) = mpsc::channel(UNSENT);
        let sending = tokio::spawn(send_notifications(client.clone(), unsent)).abort_handle();
        Ok(Arc::new(UpstreamConnection {
            client,
            router,
            server,
            notes,
            sending,
            log_level: Mutex::default(),
            _permit: plan.permit,
        }))
    }

    /// Returns the revisions of both sides, for a client that speaks `downstream`.
    pub(crate) fn revisions(&self, downstream: Revision) -> Revisions {
        Revisions { downstream, upstream: self.server.revision }
    }

    /// Returns whether it has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.router.closed().borrow().is_some()
    }

    /// Queues a notification of a client, if the server's revision has its method.
    pub(crate) fn notify(&self, note: Note) {
        let known = Method::from_name(&note.method);
        if known.is_some_and(|method| !method.sent_by_client(self.server.revision)) {
            return;
        }
        if self.notes.try_send(note).is_err() {
            tracing::warn!("the server does not read: a notification of a client is dropped");
        }
    }

    /// Has the server log messages that are at least this severe, in addition to those that other
    /// clients want.
    pub(crate) async fn request_logs(&self, level: LogLevel) {
        if self.server.capabilities.logging.is_none() {
            return;
        }
        let mut current = self.log_level.lock().await;
        if current.is_some_and(|current| current <= level) {
            return;
        }
        let params = json!({"level": level});
        match self.client.request(Method::SetLevel.as_str(), params).await {
            Ok(_) => *current = Some(level),
            Err(error) => tracing::debug!(%error, "the server did not accept the log level"),
        }
    }

    /// Subscribes to a resource until the returned claim is dropped. Dropping the future leaves
    /// nothing behind.
    pub(crate) async fn subscribe(&self, uri: &str) -> Result<ResourceClaim, RpcError> {
        let claim = claim_resource(&self.client, uri);
        claim.answered().await.map_err(to_rpc_error)?;
        Ok(claim)
    }
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        // The task may wait for a server that does not read, and holds the client.
        self.sending.abort();
    }
}

async fn send_notifications(client: Client, mut unsent: mpsc::Receiver<Note>) {
    while let Some(note) = unsent.recv().await {
        __seam::notify(&client, note).await;
    }
}

async fn describe_server(client: &Client) -> Result<ServerDescription> {
    let revision = client.revision();
    if let (Some(info), Some(capabilities)) = (client.server_info(), client.server_capabilities()) {
        let (info, capabilities) = (info.clone(), capabilities.clone());
        let instructions = client.instructions();
        return Ok(ServerDescription { revision, info, capabilities, instructions });
    }
    // A client with a pinned revision does not ask the server for its description.
    if !Method::Discover.sent_by_client(revision) {
        return Err(__seam::error(
            ErrorKind::Protocol,
            "the server did not describe itself: its `initialize` result is missing",
        ));
    }
    let found = client.discover().await?;
    let info = found.meta.server_info().ok().flatten();
    Ok(ServerDescription {
        revision,
        info: info.unwrap_or_else(|| Implementation::new("unknown", "0")),
        capabilities: found.capabilities,
        instructions: found.instructions,
    })
}

/// Returns the capabilities for a shared connection: everything that any client may support. Questions
/// that the client of a request can't answer are refused one by one.
fn all_capabilities() -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::new();
    capabilities.roots = Some(RootsCapability::new());
    let mut sampling = SamplingCapability::new();
    sampling.tools = Some(Raw::empty_object());
    sampling.context = Some(Raw::empty_object());
    capabilities.sampling = Some(sampling);
    let mut elicitation = ElicitationCapability::new();
    elicitation.form = Some(Raw::empty_object());
    elicitation.url = Some(Raw::empty_object());
    capabilities.elicitation = Some(elicitation);
    capabilities
}
