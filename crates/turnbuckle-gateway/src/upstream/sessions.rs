//! The connections to the server that HTTP sessions of the legacy era keep between their requests.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use serde_json::json;
use tokio::{task::AbortHandle, time::Instant};
use turnbuckle::{
    __seam::SessionMemory,
    http::SessionId,
    types::{Method, Raw, RpcError},
};

use super::{LegacyClient, Upstream, UpstreamConnection};
use crate::translate::Sharing;

/// The connections of all sessions.
pub(super) struct SessionConnections {
    /// Invariant: an entry in use has another owner besides this map.
    all: Mutex<HashMap<SessionId, Arc<SessionConnection>>>,
    /// How long an entry may be unused.
    idle: Duration,
    sweeping: OnceLock<AbortHandle>,
}

impl SessionConnections {
    pub(super) fn new(idle: Duration) -> SessionConnections {
        SessionConnections { all: Mutex::default(), idle, sweeping: OnceLock::new() }
    }

    /// Returns the entry of a session. It is kept while the returned value is held, and until it has
    /// been idle for too long.
    pub(super) fn get(self: &Arc<Self>, id: SessionId) -> Arc<SessionConnection> {
        self.sweeping
            .get_or_init(|| tokio::spawn(sweep(Arc::downgrade(self), self.idle)).abort_handle());
        self.lock().entry(id).or_default().clone()
    }

    /// Removes the entry of a session that has ended.
    pub(super) fn remove(&self, id: SessionId) {
        let session = self.lock().remove(&id);
        if let Some(session) = session {
            session.end();
        }
    }

    /// Removes the entry that has been unused for longest.
    pub(super) fn evict(&self) -> Option<Arc<SessionConnection>> {
        let mut all = self.lock();
        let unused = all.iter().filter(|(_, session)| Arc::strong_count(session) == 1);
        let oldest = unused.min_by_key(|(_, session)| session.last_used()).map(|(id, _)| *id)?;
        all.remove(&oldest)
    }

    fn take_idle(&self) -> Vec<Arc<SessionConnection>> {
        let is_idle = |session: &Arc<SessionConnection>| {
            Arc::strong_count(session) == 1 && session.last_used().elapsed() > self.idle
        };
        self.lock().extract_if(|_, session| is_idle(session)).map(|(_, session)| session).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SessionConnection>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionConnections {
    fn drop(&mut self) {
        if let Some(sweeping) = self.sweeping.get() {
            sweeping.abort();
        }
    }
}

async fn sweep(sessions: Weak<SessionConnections>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 2).await;
        let Some(sessions) = sessions.upgrade() else { return };
        // Not under the lock: dropping them closes connections.
        drop(sessions.take_idle());
    }
}

/// The connection of one session.
#[derive(Default)]
pub(crate) struct SessionConnection {
    /// Locked while it is being opened.
    connection: tokio::sync::Mutex<Option<Arc<UpstreamConnection>>>,
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    last_used: Option<Instant>,
    has_ended: bool,
}

impl SessionConnection {
    /// Returns the session's connection. If there is none, it opens one and repeats the settings of
    /// `memory`. Dropping the future stops that.
    pub(crate) async fn connect(
        &self,
        upstream: &Upstream,
        client: LegacyClient<'_>,
        memory: impl FnOnce() -> SessionMemory,
    ) -> Result<Arc<UpstreamConnection>, RpcError> {
        self.mark_used()?;
        let mut current = self.connection.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        // The permit of a closed connection is for the next one.
        *current = None;
        let connection = upstream.connect_for(client).await?;
        if connection.revisions(client.revision).sharing() == Sharing::Own {
            restore(&connection, memory()).await;
        }
        // The session may have ended while the connection was opened.
        self.mark_used()?;
        *current = Some(connection.clone());
        Ok(connection)
    }

    /// Returns the session's connection, if it is open.
    pub(crate) fn current(&self) -> Option<Arc<UpstreamConnection>> {
        self.mark_used().ok()?;
        let current = self.connection.try_lock().ok()?.clone();
        current.filter(|connection| !connection.is_closed())
    }

    fn mark_used(&self) -> Result<(), RpcError> {
        let mut state = self.lock();
        if state.has_ended {
            return Err(RpcError::internal("this session has ended"));
        }
        state.last_used = Some(Instant::now());
        Ok(())
    }

    fn last_used(&self) -> Instant {
        self.lock().last_used.unwrap_or_else(Instant::now)
    }

    fn end(&self) {
        self.lock().has_ended = true;
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Repeats the settings that the client made on an earlier connection.
async fn restore(connection: &UpstreamConnection, memory: SessionMemory) {
    let level = memory.level.map(|level| (Method::SetLevel, json!({ "level": level })));
    let uris = memory.subscriptions.into_iter();
    let uris = uris.map(|uri| (Method::Subscribe, json!({ "uri": uri })));
    for (method, params) in level.into_iter().chain(uris) {
        if let Err(error) = connection.client.request(method.as_str(), Raw::from(params)).await {
            tracing::warn!(%error, %method, "a setting of a session is lost with its connection");
        }
    }
}
