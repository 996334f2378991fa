//! Owns one live connection to a server: its wire, what was agreed on it, what the server said of
//! itself. Does not own what comes after it: `supervise` does.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use turnbuckle_types::{Implementation, Revision, ServerCapabilities};

use super::{answer::Answering, connect::Kind, known::KnownTools, listen::Subscriptions};
use crate::{
    dispatch::Transport,
    envelope::stamp::Stamp,
    transport::child::{ChildHandle, ExitReport},
};

#[cfg(feature = "http")]
use super::{prior, repeated};

/// One connection. When the last who hold it let go, it is closed.
pub(crate) struct Link {
    /// Counted from one; each connection of a client has its own.
    pub(super) generation: u64,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) stamp: Stamp,
    pub(super) server: ServerFacts,
    pub(super) answering: Arc<Answering>,
    /// What is subscribed to on it, in the legacy era.
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) child: Option<ChildHandle>,
    /// Whether anyone has ever answered on it. A revision that is pinned, or known, needs nobody's
    /// answer for a connection to count as made.
    pub(super) answered: AtomicBool,
    /// What listings said of the server's tools.
    pub(super) known: Arc<KnownTools>,
    pub(super) carried: Carried,
    /// `None` on wires that have no headers.
    #[cfg(feature = "http")]
    pub(super) repeated: Option<repeated::Repeated>,
    /// Where what this connection believes is remembered.
    #[cfg(feature = "http")]
    pub(super) remembered: Option<prior::DiscoveryKey>,
}

/// What carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    #[cfg(feature = "http")]
    ByHttp,
    /// Standard streams, sockets, or nothing at all.
    Otherwise,
}

impl Carried {
    pub(super) fn of(kind: Kind) -> Carried {
        match kind {
            #[cfg(feature = "http")]
            Kind::Http => Carried::ByHttp,
            Kind::Process | Kind::Stream => Carried::Otherwise,
        }
    }
}

/// What the server said about itself when the connection was made.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerFacts {
    pub(super) info: Option<Implementation>,
    pub(super) capabilities: Option<ServerCapabilities>,
    pub(super) instructions: Option<String>,
    /// The whole of what a modern server said.
    #[cfg(feature = "http")]
    pub(super) discovered: Option<turnbuckle_types::Raw>,
}

impl Link {
    pub(super) fn revision(&self) -> Revision {
        self.stamp.revision()
    }

    /// Somebody has answered.
    pub(super) fn is_answered(&self) {
        // Most often it is known.
        if !self.has_answered() {
            self.answered.store(true, Relaxed);
        }
    }

    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Relaxed)
    }

    /// Closes it for everyone. Dropping the future does not stop the closing.
    pub(super) async fn close(&self) -> Option<ExitReport> {
        // The end of its input is what asks a server to leave; only then do the stages begin.
        self.transport.close().await;
        match &self.child {
            Some(child) => Some(child.shutdown().await),
            None => None,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.transport.close_now();
    }
}
