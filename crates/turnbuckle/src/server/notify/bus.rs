//! Owns what a change is, and the way by which every replica of a server hears of it.
//! Does not own who listens at this replica: that is [`Listeners`].

use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use super::listeners::Listeners;

/// Something that a server offers has changed.
///
/// It can be serialized, so that a [bus](SubscriptionBus) can carry it to another machine
/// whatever it is.
///
/// ```
/// use turnbuckle::server::Change;
/// let change = Change::Resource("note://7".into());
/// let text = serde_json::to_string(&change).unwrap();
/// assert_eq!(text, r#"{"resource":"note://7"}"#);
/// assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), change);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource with this URI.
    Resource(String),
}

/// Carries changes from wherever one is published to every replica of a server.
///
/// [`MemoryBus`] is enough for one process. A server that runs on several machines needs one
/// over whatever they share; [`Server::bus`](crate::Server::bus) takes it. A change is a cue to
/// ask again, not data: a bus may deliver one twice, but should not lose any.
///
/// Here a channel stands for the network:
///
/// ```
/// use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
/// use turnbuckle::{
///     Server,
///     server::{Change, Listeners, SubscriptionBus},
/// };
///
/// /// Sends to a broker, which sends to every replica, this one included.
/// struct Broker {
///     to_broker: SyncSender<String>,
///     from_broker: std::sync::Mutex<Option<Receiver<String>>>,
/// }
///
/// impl SubscriptionBus for Broker {
///     fn publish(&self, change: Change) {
///         let text = serde_json::to_string(&change).expect("a change is plain data");
///         // Never waits: what the network can't take now is reported, not waited for.
///         if self.to_broker.try_send(text).is_err() {
///             eprintln!("the broker does not take changes");
///         }
///     }
///
///     fn attach(&self, listeners: Listeners) {
///         let Some(incoming) = self.from_broker.lock().unwrap().take() else { return };
///         std::thread::spawn(move || {
///             for text in incoming {
///                 match serde_json::from_str(&text) {
///                     Ok(change) => listeners.deliver(change),
///                     Err(error) => eprintln!("not a change: {error}"),
///                 }
///             }
///         });
///     }
/// }
///
/// // The whole network: what one end is given comes out at the other.
/// let (to_broker, from_broker) = sync_channel(1_024);
/// let bus = Broker { to_broker, from_broker: Some(from_broker).into() };
/// let server = Server::new("demo", "1.0").bus(bus);
/// server.changes().tools();
/// ```
pub trait SubscriptionBus: Send + Sync + 'static {
    /// Tells every replica. It must not wait: handlers call it.
    fn publish(&self, change: Change);

    /// Hands over the listeners of this replica; [`Server::bus`](crate::Server::bus) does so,
    /// once, at once. From then on [`deliver`](Listeners::deliver) is to be called for
    /// every change that is published anywhere, here included.
    fn attach(&self, listeners: Listeners);
}

impl<B: SubscriptionBus + ?Sized> SubscriptionBus for Arc<B> {
    fn publish(&self, change: Change) {
        (**self).publish(change);
    }

    fn attach(&self, listeners: Listeners) {
        (**self).attach(listeners);
    }
}

/// The bus of one process, and every server's own unless it is given another. Servers that are
/// given clones of one hear of each other's changes.
///
/// ```
/// use turnbuckle::{Server, server::MemoryBus};
/// let bus = MemoryBus::default();
/// let public = Server::new("public", "1.0").bus(bus.clone());
/// let inside = Server::new("inside", "1.0").bus(bus);
/// inside.changes().tools(); // clients of `public` are told too
/// # let _ = public;
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryBus(Arc<RwLock<Vec<Listeners>>>);

impl SubscriptionBus for MemoryBus {
    fn publish(&self, change: Change) {
        // Delivering wakes foreign tasks, which nobody's lock should be held for.
        let attached = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        for listeners in attached {
            listeners.deliver(change.clone());
        }
    }

    fn attach(&self, listeners: Listeners) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(listeners);
    }
}
