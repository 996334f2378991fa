//! Owns the handle by which a program tells that something has changed.
//! Does not own the way of the news: the bus carries it, each listener takes what it asked for.

use std::sync::{Arc, PoisonError, RwLock};

use super::{
    bus::{Change, MemoryBus, SubscriptionBus},
    listeners::Listeners,
};

/// Tells every client that listens that something has changed.
///
/// Changes that come faster than a client reads are told once: each list, and each resource,
/// waits at most once for it, in the order in which they first changed. A client for which more
/// than 1,024 resources wait is told so by an error that ends its stream. Telling never waits
/// for anyone.
///
/// ```
/// use turnbuckle::Server;
/// let server = Server::new("demo", "1.0");
/// let changes = server.changes();
/// changes.tools();
/// changes.resource("note://7");
/// assert_eq!(changes.listeners(), 0);
/// ```
#[derive(Clone)]
#[doc(alias = "list_changed")]
#[doc(alias = "notify_tool_list_changed")]
#[doc(alias = "sendToolListChanged")]
pub struct Changes(Arc<Inner>);

struct Inner {
    listeners: Listeners,
    bus: RwLock<Arc<dyn SubscriptionBus>>,
}

impl Default for Changes {
    fn default() -> Changes {
        let listeners = Listeners::default();
        let bus = MemoryBus::default();
        bus.attach(listeners.clone());
        Changes(Arc::new(Inner { listeners, bus: RwLock::new(Arc::new(bus)) }))
    }
}

impl Changes {
    /// The list of tools has changed.
    pub fn tools(&self) {
        self.publish(Change::Tools);
    }

    /// The list of prompts has changed.
    pub fn prompts(&self) {
        self.publish(Change::Prompts);
    }

    /// The list of resources has changed.
    pub fn resources(&self) {
        self.publish(Change::Resources);
    }

    /// The resource with this URI has changed. Told to those who named exactly this URI.
    pub fn resource(&self, uri: impl Into<String>) {
        self.publish(Change::Resource(uri.into()));
    }

    /// Any of these.
    pub fn publish(&self, change: Change) {
        let bus = self.0.bus.read().unwrap_or_else(PoisonError::into_inner).clone();
        bus.publish(change);
    }

    /// How many streams listen at this replica now.
    pub fn listeners(&self) -> usize {
        self.0.listeners.count()
    }

    /// From now on changes go this way, also those told by handles that exist already.
    pub(crate) fn go_by(&self, bus: impl SubscriptionBus) {
        bus.attach(self.0.listeners.clone());
        *self.0.bus.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(bus);
    }

    pub(crate) fn here(&self) -> &Listeners {
        &self.0.listeners
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes").field("listeners", &self.listeners()).finish_non_exhaustive()
    }
}
