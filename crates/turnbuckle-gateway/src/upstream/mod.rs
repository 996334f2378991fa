//! The server behind a gateway: its connections, the clients that use them, and when they are opened.

mod connection;
mod router;
mod sessions;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};
use turnbuckle::{
    __seam::{ClientScope, Forward, ForwardConnection},
    Error, Result,
    http::SessionId,
    types::{Raw, Revision, RpcError},
};

pub(crate) use connection::{LegacyClient, UpstreamConnection};
pub(crate) use router::{ClientChannel, Clients, InFlightGuard, unanswered};
pub(crate) use sessions::SessionConnection;

use crate::{
    call::PendingCalls,
    downstream::DownstreamHandle,
    gateway::{Settings, to_rpc_error},
    translate::{ServerDescription, Sharing},
};
use connection::ConnectPlan;
use sessions::SessionConnections;

/// A server that ends repeatedly is started at most this often within [`START_WINDOW`].
const MAX_STARTS: usize = 5;
const START_WINDOW: Duration = Duration::from_secs(60);
/// How many tasks may wait for a session's connection to be opened.
const MAX_DEFERRED: usize = 64;
/// How long requests have to answer their clients after the server has ended.
const DRAIN: Duration = Duration::from_millis(250);

/// The server behind a gateway.
pub(crate) struct Upstream {
    this: Weak<Upstream>,
    settings: Settings,
    /// The clients of the gateway.
    pub(crate) clients: Clients,
    /// The connection for all requests that do not need one of their own.
    shared: RwLock<Option<Arc<UpstreamConnection>>>,
    /// Held while the shared connection is opened.
    connecting: tokio::sync::Mutex<()>,
    /// Permits for connections of single clients.
    permits: Arc<Semaphore>,
    sessions: Arc<SessionConnections>,
    server: RwLock<Option<ServerDescription>>,
    failed_starts: Mutex<VecDeque<Instant>>,
    pub(crate) pending_calls: Arc<PendingCalls>,
    /// Permits for tasks that wait for a session's connection.
    pub(crate) deferred: Arc<Semaphore>,
    lost: watch::Sender<Option<Arc<Error>>>,
}

impl Upstream {
    pub(crate) fn new(settings: Settings, clients: Clients) -> Arc<Upstream> {
        let pending_calls = PendingCalls::new(settings.waiting_calls, settings.answer_within);
        Arc::new_cyclic(|this| Upstream {
            this: this.clone(),
            clients,
            shared: RwLock::default(),
            connecting: tokio::sync::Mutex::default(),
            permits: Arc::new(Semaphore::new(settings.connections)),
            sessions: Arc::new(SessionConnections::new(settings.idle)),
            server: RwLock::default(),
            failed_starts: Mutex::default(),
            pending_calls: Arc::new(pending_calls),
            deferred: Arc::new(Semaphore::new(MAX_DEFERRED)),
            lost: watch::Sender::new(None),
            settings,
        })
    }

    /// Opens the shared connection before any client is served, so that a server that can't be reached
    /// is an error. Dropping the future stops that.
    pub(crate) async fn connect_first(&self) -> Result<()> {
        let _connecting = self.connecting.lock().await;
        let connection = self.open(None, None).await?;
        *self.shared_mut() = Some(connection);
        Ok(())
    }

    /// Returns the shared connection, and opens it if there is none. Dropping the future stops that.
    pub(crate) async fn connect_shared(&self) -> Result<Arc<UpstreamConnection>, RpcError> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let connection = self.start(None, None).await?;
        *self.shared_mut() = Some(connection.clone());
        Ok(connection)
    }

    /// Returns the shared connection, if it is open.
    pub(crate) fn current(&self) -> Option<Arc<UpstreamConnection>> {
        self.latest().filter(|connection| !connection.is_closed())
    }

    /// Returns the latest shared connection, which may be closed.
    fn latest(&self) -> Option<Arc<UpstreamConnection>> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn shared_mut(&self) -> RwLockWriteGuard<'_, Option<Arc<UpstreamConnection>>> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection for a legacy client: one of its own, if the server keeps settings for
    /// each connection. Dropping the future stops opening it.
    pub(crate) async fn connect_for(
        &self,
        client: LegacyClient<'_>,
    ) -> Result<Arc<UpstreamConnection>, RpcError> {
        let is_shared = |connection: &Arc<UpstreamConnection>| {
            connection.revisions(client.revision).sharing() == Sharing::Shared
        };
        let latest = self.latest();
        // Even if it has ended: the next one is shared again.
        if latest.as_ref().is_some_and(is_shared) {
            return self.connect_shared().await;
        }
        drop(latest);
        self.close_first().await;
        let permit = self.acquire_permit()?;
        let connection = self.start(Some(client), Some(permit)).await?;
        if !is_shared(&connection) {
            return Ok(connection);
        }
        // A connection that introduced itself as one of many clients can't serve the others.
        if self.clients == Clients::Any {
            drop(connection);
            return self.connect_shared().await;
        }
        let mut shared = self.shared_mut();
        match &*shared {
            Some(current) if !current.is_closed() => Ok(current.clone()),
            _ => Ok(shared.insert(connection).clone()),
        }
    }

    /// Closes the connection that was opened before the only client was known, so that the server does
    /// not have to run twice.
    async fn close_first(&self) {
        if self.clients == Clients::Any {
            return;
        }
        let unused = {
            let mut shared = self.shared_mut();
            let unused = shared.take_if(|connection| connection.router.is_idle());
            unused.map(|connection| connection.client.clone())
        };
        if let Some(unused) = unused {
            unused.close().await;
        }
    }

    async fn start(
        &self,
        client: Option<LegacyClient<'_>>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Arc<UpstreamConnection>, RpcError> {
        self.check_starts()?;
        self.open(client, permit).await.map_err(to_rpc_error)
    }

    async fn open(
        &self,
        client: Option<LegacyClient<'_>>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Arc<UpstreamConnection>, Error> {
        let Settings { connect, limits, .. } = &self.settings;
        let clients = if client.is_some() { Clients::One } else { self.clients };
        let client = client.map(|client| client.initialize);
        let plan = ConnectPlan { connect, limits, client, clients, permit };
        let opened = UpstreamConnection::open(plan).await;
        let connection = opened.inspect_err(|_| self.count_failed_start())?;
        let mut server = self.server.write().unwrap_or_else(PoisonError::into_inner);
        *server = Some(connection.server.clone());
        drop(server);
        self.watch_end(&connection);
        Ok(connection)
    }

    /// Reports the end of a connection that is still in use.
    fn watch_end(&self, connection: &Arc<UpstreamConnection>) {
        let mut closed = connection.router.closed();
        let (connection, upstream) = (Arc::downgrade(connection), self.this.clone());
        tokio::spawn(async move {
            let error = match closed.wait_for(Option::is_some).await {
                Ok(error) => error.clone(),
                Err(_) => return,
            };
            // A connection without owners was closed by the gateway.
            let (Some(connection), Some(upstream)) = (connection.upgrade(), upstream.upgrade())
            else {
                return;
            };
            upstream.count_failed_start();
            // Its requests answer their clients first.
            let _ = tokio::time::timeout(DRAIN, connection.router.wait_idle()).await;
            upstream.lost.send_replace(error);
        });
    }

    /// Returns why a connection that was in use has ended, once one has.
    pub(crate) fn lost(&self) -> watch::Receiver<Option<Arc<Error>>> {
        self.lost.subscribe()
    }

    fn check_starts(&self) -> Result<(), RpcError> {
        let mut starts = self.failed_starts.lock().unwrap_or_else(PoisonError::into_inner);
        while starts.front().is_some_and(|start| start.elapsed() > START_WINDOW) {
            starts.pop_front();
        }
        if starts.len() < MAX_STARTS {
            return Ok(());
        }
        Err(RpcError::internal(format!(
            "the server behind this gateway has ended {MAX_STARTS} times within {} s, and is not \
             started again for a while",
            START_WINDOW.as_secs()
        )))
    }

    fn count_failed_start(&self) {
        self.failed_starts.lock().unwrap_or_else(PoisonError::into_inner).push_back(Instant::now());
    }

    /// Acquires a permit for another connection; if there is none, closes the connection of the session
    /// that has been idle for longest.
    fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Ok(permit);
        }
        drop(self.sessions.evict());
        self.permits.clone().try_acquire_owned().map_err(|_| {
            RpcError::internal(format!(
                "too many clients are connected: the limit is {} (connections)",
                self.settings.connections
            ))
        })
    }

    /// Returns the connection that a session keeps between its requests.
    pub(crate) fn session(&self, id: SessionId) -> Arc<SessionConnection> {
        self.sessions.get(id)
    }

    /// Closes the connection of a session that has ended.
    pub(crate) fn end_session(&self, id: SessionId) {
        self.sessions.remove(id);
    }
}

impl Forward for Upstream {
    fn connect(&self, client: ClientScope) -> Arc<dyn ForwardConnection> {
        Arc::new(DownstreamHandle::new(self.this.clone(), client))
    }

    fn initialize(&self, revision: Revision) -> Result<Raw, RpcError> {
        let server = self.server.read().unwrap_or_else(PoisonError::into_inner);
        match &*server {
            Some(server) => Ok(server.initialize(revision)),
            None => Err(RpcError::internal("the server behind this gateway is not connected yet")),
        }
    }
}
