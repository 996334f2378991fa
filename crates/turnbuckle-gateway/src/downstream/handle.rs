//! The value that the serving side holds for a client's connection or session. The tasks that run for
//! it end when it is dropped.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use tokio::{sync::mpsc, task::AbortHandle};
use turnbuckle::{
    __seam::{ClientPeer, ClientScope, ForwardConnection, ForwardedRequest, Note},
    types::{Initialize, Method, Revision},
};

use super::{Downstream, server_ended};
use crate::{
    gateway::{BoxFuture, Outcome},
    upstream::{LegacyClient, Upstream},
};

/// The most notifications that wait for a client that does not read.
const UNSENT: usize = 1024;
/// How long a task waits for the connection of a session to be opened.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// A client, as the serving side holds it.
pub(crate) struct DownstreamHandle {
    downstream: Arc<Downstream>,
    /// Sends the client its notifications.
    sending: OnceLock<AbortHandle>,
    /// Connects to the server.
    connecting: Mutex<Option<AbortHandle>>,
}

impl DownstreamHandle {
    pub(crate) fn new(upstream: Weak<Upstream>, client: ClientScope) -> DownstreamHandle {
        let downstream = Downstream::new(upstream, client);
        DownstreamHandle { downstream, sending: OnceLock::new(), connecting: Mutex::default() }
    }

    /// Starts to relay changes, unless that is under way. It must not wait.
    fn start_relay(&self) {
        if self.downstream.may_defer() {
            return self.defer(|downstream, _| downstream.start_relay());
        }
        let mut connecting = self.connecting.lock().unwrap_or_else(PoisonError::into_inner);
        if connecting.as_ref().is_none_or(AbortHandle::is_finished) {
            let task = tokio::spawn(self.downstream.clone().start_relay());
            *connecting = Some(task.abort_handle());
        }
    }

    /// Spawns a task for a session that may have to open a connection first. The task outlives this
    /// handle by at most [`CONNECT_TIMEOUT`]: a session has no handle between its requests, and the
    /// next request uses the connection.
    fn defer<F>(&self, task: impl FnOnce(Arc<Downstream>, Arc<Upstream>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(upstream) = self.downstream.upstream.upgrade() else { return };
        let Ok(permit) = upstream.deferred.clone().try_acquire_owned() else {
            tracing::warn!("too many sessions wait for the server: a message is dropped");
            return;
        };
        let task = task(self.downstream.clone(), upstream);
        tokio::spawn(async move {
            let _permit = permit;
            if tokio::time::timeout(CONNECT_TIMEOUT, task).await.is_err() {
                tracing::debug!("the server took too long to connect for a session");
            }
        });
    }
}

/// Forwards a notification of a session once its connection is open.
async fn forward_notification(downstream: Arc<Downstream>, upstream: Arc<Upstream>, note: Note) {
    let Some((revision, initialize)) = downstream.handshake.get() else { return };
    let client = LegacyClient { revision: *revision, initialize };
    match downstream.connect_legacy(&upstream, client).await {
        Ok(connection) => connection.notify(note),
        Err(error) => tracing::debug!(%error, "a notification is dropped"),
    }
}

impl Drop for DownstreamHandle {
    fn drop(&mut self) {
        let connecting = self.connecting.get_mut().unwrap_or_else(PoisonError::into_inner);
        for task in self.sending.get().into_iter().chain(connecting.as_ref()) {
            task.abort();
        }
    }
}

impl ForwardConnection for DownstreamHandle {
    fn initialize(&self, revision: Revision, client: Initialize) -> BoxFuture<'static, Outcome> {
        let downstream = self.downstream.clone();
        let _ = downstream.handshake.set((revision, client));
        Box::pin(async move {
            let upstream = downstream.upstream.upgrade().ok_or_else(server_ended)?;
            let (revision, initialize) = downstream.handshake.get().ok_or_else(server_ended)?;
            let client = LegacyClient { revision: *revision, initialize };
            let connection = downstream.connect_legacy(&upstream, client).await?;
            Ok(connection.server.initialize(*revision))
        })
    }

    fn request(&self, request: ForwardedRequest) -> BoxFuture<'static, Outcome> {
        Box::pin(self.downstream.clone().answer(request))
    }

    fn notification(&self, note: Note) {
        match Method::from_name(&note.method) {
            // The request has been dropped already.
            Some(Method::Cancelled) => return,
            Some(Method::Initialized) => return self.start_relay(),
            _ => {}
        }
        match self.downstream.current_connection() {
            Some(connection) => connection.notify(note),
            None if self.downstream.may_defer() => {
                self.defer(|downstream, upstream| forward_notification(downstream, upstream, note))
            }
            None => tracing::debug!("a notification is dropped: there is no server for it"),
        }
    }

    fn connected(&self, peer: ClientPeer) {
        self.downstream.channel.get_or_init(|| {
            let (sender, unsent) = mpsc::channel(UNSENT);
            let task = tokio::spawn(send_notifications(peer.clone(), unsent));
            let _ = self.sending.set(task.abort_handle());
            (peer, sender)
        });
        // A session has been opened before; on a stream `initialize` is still to come.
        if self.downstream.handshake.get().is_some() {
            self.start_relay();
        }
    }

    fn ended(&self) {
        self.downstream.end();
    }

    fn subscriptions(&self) -> BTreeSet<String> {
        self.downstream.subscriptions()
    }
}

async fn send_notifications(peer: ClientPeer, mut unsent: mpsc::Receiver<Note>) {
    while let Some(note) = unsent.recv().await {
        if peer.notify(note).await.is_none() {
            return;
        }
    }
}
