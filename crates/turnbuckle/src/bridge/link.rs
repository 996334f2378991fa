//! Owns one connection to the server behind a bridge, and what is told to it once for all clients
//! that share it: log level, subscriptions. Does not own the requests that it carries.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use turnbuckle_types::{
    ClientCapabilities, ElicitationCapability, Era, Implementation, Initialize, LogLevel, Method,
    Raw, Revision, RootsCapability, RpcError, SamplingCapability,
};

use super::{
    Dial, failed,
    router::{Clients, Router},
    translate::Facts,
};
use crate::{
    Client, Limits, Reconnect,
    client::Hear,
    dispatch::Note,
    error::{Error, Result},
};

/// How many notifications, and ends of subscriptions, may wait to be sent.
const WAITING: usize = 1024;

/// A connection to the server.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) router: Arc<Router>,
    pub(super) facts: Facts,
    jobs: mpsc::Sender<Job>,
    shared: tokio::sync::Mutex<Shared>,
    /// How many streams want to hear of a resource.
    watched: Mutex<HashMap<String, usize>>,
    /// Its place among all connections.
    _place: Option<OwnedSemaphorePermit>,
}

/// What is settled with the server for all who share it. Locked while it is being settled.
#[derive(Default)]
struct Shared {
    level: Option<LogLevel>,
}

enum Job {
    Note(Note),
    Unsubscribe(String),
}

/// How a connection is made.
pub(super) struct Plan<'a> {
    pub(super) dial: &'a Dial,
    pub(super) limits: &'a Limits,
    /// Whose it will be; nobody's in particular if it is shared.
    pub(super) client: Option<&'a Initialize>,
    pub(super) place: Option<OwnedSemaphorePermit>,
}

impl Link {
    /// Connects. Dropping the future gives that up.
    pub(super) async fn open(plan: Plan<'_>) -> Result<Arc<Link>> {
        let clients = if plan.client.is_some() { Clients::One } else { Clients::Any };
        let router = Arc::new(Router::new(clients, plan.limits.queued_notifications));
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
        let (jobs, waiting) = mpsc::channel(WAITING);
        tokio::spawn(work(client.clone_weakly(), waiting));
        Ok(Arc::new(Link {
            client,
            router,
            facts,
            jobs,
            shared: tokio::sync::Mutex::default(),
            watched: Mutex::default(),
            _place: plan.place,
        }))
    }

    pub(super) fn revision(&self) -> Revision {
        self.client.revision()
    }

    pub(super) fn era(&self) -> Era {
        self.revision().era()
    }

    /// Whether it has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.router.ended().borrow().is_some()
    }

    /// Sends a notification when its turn comes. It must not wait.
    pub(super) fn note(&self, note: Note) {
        if self.jobs.try_send(Job::Note(note)).is_err() {
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

    /// Has the server tell of a resource, unless it does already.
    pub(super) async fn watch(self: &Arc<Self>, uri: &str) -> Result<Watching, RpcError> {
        // Entered first, so that dropping this future leaves nothing behind.
        let watching = Watching { link: self.clone(), uri: uri.to_owned() };
        let count = {
            let mut watched = self.watched();
            let count = watched.entry(uri.to_owned()).or_default();
            *count += 1;
            *count
        };
        if count == 1 {
            let asked = self.client.request(Method::Subscribe.as_str(), json!({"uri": uri})).await;
            asked.map_err(failed)?;
        }
        Ok(watching)
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A resource that someone wants to hear of, for as long as this lives.
pub(super) struct Watching {
    link: Arc<Link>,
    uri: String,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watched = self.link.watched();
        let Some(count) = watched.get_mut(&self.uri) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        watched.remove(&self.uri);
        drop(watched);
        let _ = self.link.jobs.try_send(Job::Unsubscribe(std::mem::take(&mut self.uri)));
    }
}

/// Sends what waits, one after another, for as long as the connection is in use.
async fn work(client: crate::client::WeakClient, mut waiting: mpsc::Receiver<Job>) {
    while let Some(job) = waiting.recv().await {
        let Some(client) = client.upgrade() else { return };
        match job {
            Job::Note(note) => client.forward_note(note).await,
            Job::Unsubscribe(uri) => {
                let request = client.request(Method::Unsubscribe.as_str(), json!({"uri": uri}));
                if let Err(error) = request.await {
                    tracing::debug!(%error, "a subscription could not be ended");
                }
            }
        }
    }
}

/// What the server says about itself.
async fn facts(client: &Client) -> Result<Facts> {
    if let (Some(info), Some(capabilities)) = (client.server_info(), client.server_capabilities()) {
        let (info, capabilities) = (info.clone(), capabilities.clone());
        let instructions = client.instructions();
        return Ok(Facts { info, capabilities, instructions });
    }
    // A revision that was pinned has skipped the question.
    if client.revision().era() == Era::Legacy {
        return Err(Error::protocol("the server did not say what it is"));
    }
    let found = client.discover().await?;
    let info = found.meta.server_info().ok().flatten();
    Ok(Facts {
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
