//! Owns one connection to the server behind a bridge, and what is told to it once for all clients
//! that share it: log level, subscriptions. Does not own the requests that it carries.

use std::sync::Arc;

use serde_json::json;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::AbortHandle,
};
use turnbuckle_types::{
    ClientCapabilities, ElicitationCapability, Implementation, Initialize, LogLevel, Method, Raw,
    Revision, RootsCapability, RpcError, SamplingCapability,
};

use super::{
    Dial, failed,
    router::{Clients, Router},
    translate::{Facts, Sides},
};
use crate::{
    Client, Limits, Reconnect,
    client::{Hear, Watched},
    dispatch::Note,
    error::{Error, Result},
};

/// How many notifications may wait to be sent.
const WAITING: usize = 1024;

/// A connection to the server.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) router: Arc<Router>,
    pub(super) facts: Facts,
    notes: mpsc::Sender<Note>,
    /// What sends them.
    sending: AbortHandle,
    shared: tokio::sync::Mutex<Shared>,
    /// Its place among all connections.
    _place: Option<OwnedSemaphorePermit>,
}

/// What is settled with the server for all who share it. Locked while it is being settled.
#[derive(Default)]
struct Shared {
    level: Option<LogLevel>,
}

/// A client that has shaken hands.
#[derive(Clone, Copy)]
pub(super) struct Guest<'a> {
    pub(super) revision: Revision,
    pub(super) client: &'a Initialize,
}

/// How a connection is made.
pub(super) struct Plan<'a> {
    pub(super) dial: &'a Dial,
    pub(super) limits: &'a Limits,
    /// Who introduces itself; the bridge if it is shared.
    pub(super) client: Option<&'a Initialize>,
    /// Whose requests it will carry.
    pub(super) clients: Clients,
    pub(super) place: Option<OwnedSemaphorePermit>,
}

impl Link {
    /// Connects. Dropping the future gives that up.
    pub(super) async fn open(plan: Plan<'_>) -> Result<Arc<Link>> {
        let router = Arc::new(Router::new(plan.clients, plan.limits.queued_notifications));
        let (asked, hears) = (router.clone(), router.clone());
        let builder = Client::builder()
            .capabilities(plan.client.map_or_else(everything, |client| client.capabilities.clone()))
            .limits(plan.limits.clone())
            .no_timeouts()
            // What its client told the connection before would be unknown to another.
            .reconnect(Reconnect::never())
            .on_request(move |request| asked.ask(request))
            .hears(hears as Arc<dyn Hear>);
        let info = plan.client.map(|client| client.client_info.clone());
        let builder = builder.described(info.unwrap_or_else(|| {
            Implementation::new("turnbuckle-bridge", env!("CARGO_PKG_VERSION"))
        }));
        let client = (plan.dial)(builder).await?;
        let facts = facts(&client).await?;
        let (notes, waiting) = mpsc::channel(WAITING);
        let sending = tokio::spawn(send(client.clone_weakly(), waiting)).abort_handle();
        Ok(Arc::new(Link {
            client,
            router,
            facts,
            notes,
            sending,
            shared: tokio::sync::Mutex::default(),
            _place: plan.place,
        }))
    }

    /// Both sides, for a client that speaks this revision.
    pub(super) fn sides(&self, near: Revision) -> Sides {
        Sides { near, far: self.facts.revision }
    }

    /// Whether it has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.router.ended().borrow().is_some()
    }

    /// Sends a notification when its turn comes. It must not wait.
    pub(super) fn note(&self, note: Note) {
        if self.notes.try_send(note).is_err() {
            tracing::warn!("the server does not read: a notification of a client is dropped");
        }
    }

    /// Has the server send messages that are at least this severe, besides those that others want.
    pub(super) async fn want_logs(&self, level: LogLevel) {
        if self.facts.capabilities.logging.is_none() {
            return;
        }
        let mut shared = self.shared.lock().await;
        if shared.level.is_some_and(|known| known <= level) {
            return;
        }
        let told = self.client.request(Method::SetLevel.as_str(), json!({"level": level})).await;
        match told {
            Ok(_) => shared.level = Some(level),
            Err(error) => tracing::debug!(%error, "the server takes no log level"),
        }
    }

    /// Has the server tell of a resource, for as long as what is returned lives. Dropping the
    /// future leaves nothing behind.
    pub(super) async fn watch(&self, uri: &str) -> Result<Watched, RpcError> {
        let watched = self.client.watched(uri);
        watched.answered().await.map_err(failed)?;
        Ok(watched)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // It may wait for a server that does not read, and would keep the connection for it.
        self.sending.abort();
    }
}

/// Sends what waits, one after another, for as long as the connection is in use.
async fn send(client: crate::client::WeakClient, mut waiting: mpsc::Receiver<Note>) {
    while let Some(note) = waiting.recv().await {
        let Some(client) = client.upgrade() else { return };
        client.forward_note(note).await;
    }
}

/// What the server says about itself.
async fn facts(client: &Client) -> Result<Facts> {
    let revision = client.revision();
    if let (Some(info), Some(capabilities)) = (client.server_info(), client.server_capabilities()) {
        let (info, capabilities) = (info.clone(), capabilities.clone());
        let instructions = client.instructions();
        return Ok(Facts { revision, info, capabilities, instructions });
    }
    // A revision that was pinned has skipped the question.
    if !Method::Discover.sent_by_client(revision) {
        return Err(Error::protocol("the server did not say what it is"));
    }
    let found = client.discover().await?;
    let info = found.meta.server_info().ok().flatten();
    Ok(Facts {
        revision,
        info: info.unwrap_or_else(|| Implementation::new("unknown", "0")),
        capabilities: found.capabilities,
        instructions: found.instructions,
    })
}

/// What is declared to a server that is shared: whatever any client may be able to do. A question
/// that the client of a request can't answer is refused when it comes.
fn everything() -> ClientCapabilities {
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
