//! Owns what a legacy client is told of: changed lists, for which it need not ask, and the
//! resources that it subscribed to. Does not own the changes, nor the modern era's streams.

use std::{
    collections::BTreeSet,
    future::poll_fn,
    sync::{Arc, OnceLock},
};

use super::{
    bus::Change,
    listen::{lists, method},
    listeners::{BACKLOG, ListenerHandle},
};
use crate::{
    rpc::{Note, Peer, spawn_boxed},
    server::shared::App,
};
use tokio::task::AbortHandle;
use turnbuckle_types::{Raw, ResourceUpdated, Revision, RpcError};

/// How many resources one connection may be subscribed to. With the lists they are few enough that
/// nobody falls behind: there would be no way to tell a legacy client.
const SUBSCRIPTIONS: usize = 1000;
const LISTS: usize = 3;
const _: () = assert!(SUBSCRIPTIONS + LISTS <= BACKLOG, "a connection must not fall behind");

/// How long a URI may be that is kept.
const URI_BYTES: usize = 4096;

/// Whether a client may subscribe to resources.
pub(crate) fn offered(app: &App) -> bool {
    app.capabilities().resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
}

/// What one legacy connection is told of.
#[derive(Default)]
pub(crate) struct ConnectionSubscriptions {
    /// What it was subscribed to before, elsewhere.
    restored: BTreeSet<String>,
    /// Made when there is someone to tell, or something to tell of.
    listener: OnceLock<Arc<ListenerHandle>>,
    /// Tells the client; ends with the connection.
    teller: OnceLock<Teller>,
}

struct Teller(AbortHandle);

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ConnectionSubscriptions {
    /// Those of a session that was opened before.
    #[cfg(feature = "http")]
    pub(crate) fn restored(uris: BTreeSet<String>) -> ConnectionSubscriptions {
        ConnectionSubscriptions { restored: uris, ..ConnectionSubscriptions::default() }
    }

    /// Subscribes to a resource. Once more changes nothing.
    pub(crate) fn add(&self, app: &App, uri: String) -> Result<(), RpcError> {
        if uri.len() > URI_BYTES {
            return Err(RpcError::invalid_params(format!(
                "`params.uri` is longer than {URI_BYTES} bytes"
            )));
        }
        let limit = SUBSCRIPTIONS + lists(app).len();
        if self.listener(app).add(&Change::Resource(uri), limit) {
            return Ok(());
        }
        Err(RpcError::internal(format!(
            "too many subscriptions on this connection: the limit is {SUBSCRIPTIONS}; unsubscribe from some first"
        )))
    }

    /// Ends a subscription, if there is one.
    pub(crate) fn remove(&self, app: &App, uri: String) {
        self.listener(app).remove(&Change::Resource(uri));
    }

    /// Whether there is nothing to tell of.
    #[cfg(feature = "http")]
    pub(crate) fn is_empty(&self) -> bool {
        self.listener.get().is_none() && self.restored.is_empty()
    }

    /// The resources that it is subscribed to.
    #[cfg(feature = "http")]
    pub(crate) fn uris(&self) -> BTreeSet<String> {
        let Some(listener) = self.listener.get() else { return self.restored.clone() };
        let uri = |topic| match topic {
            Change::Resource(uri) => Some(uri),
            Change::Tools | Change::Prompts | Change::Resources => None,
        };
        listener.topics().into_iter().filter_map(uri).collect()
    }

    /// From now on tells the client, if there is anything that it could be told of.
    pub(crate) fn tell(&self, app: &App, peer: &Peer, revision: Revision) {
        if lists(app).is_empty() && !offered(app) {
            return;
        }
        let telling = || tell(self.listener(app).clone(), peer.clone(), revision);
        self.teller.get_or_init(|| Teller(spawn_boxed(Box::pin(telling())).abort_handle()));
    }

    fn listener(&self, app: &App) -> &Arc<ListenerHandle> {
        self.listener.get_or_init(|| {
            let mut topics = lists(app);
            if offered(app) {
                let uris = self.restored.iter().take(SUBSCRIPTIONS).cloned();
                topics.extend(uris.map(Change::Resource));
            }
            Arc::new(app.changes.here().connection(topics))
        })
    }
}

/// Tells a legacy client of what changes until its connection is gone.
async fn tell(listener: Arc<ListenerHandle>, peer: Peer, revision: Revision) {
    loop {
        poll_fn(|context| listener.poll_ready(context)).await;
        while let Ok(Some(change)) = listener.take() {
            let Some(transport) = peer.transport() else { return };
            let params = match &change {
                Change::Resource(uri) => Some(Raw::at(&ResourceUpdated::new(uri), revision)),
                Change::Tools | Change::Prompts | Change::Resources => None,
            };
            transport.notify(Note::new(method(&change).as_str(), params)).await;
        }
    }
}

#[cfg(test)]
mod tests;
