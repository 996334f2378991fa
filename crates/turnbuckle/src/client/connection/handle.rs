//! Owns one live connection to a server: its wire, what was agreed on it, what the server said of
//! itself. Does not own what comes after it: `supervise` does.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use crate::{
    client::{
        builder::Kind, handlers::answer::Answering, subscribe::ClientSubscriptions,
        tools::KnownTools,
    },
    protocol::stamp::Stamp,
    rpc::Transport,
    transport::child_process::{ChildHandle, ExitReport},
};
use turnbuckle_types::{Implementation, Revision, ServerCapabilities};

#[cfg(feature = "http")]
use crate::{client::handshake::discovery, client::tools::param_headers};

/// One connection. When the last who hold it let go, it is closed.
pub(crate) struct ClientConnection {
    /// Counted from one; each connection of a client has its own.
    pub(crate) generation: u64,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) stamp: Stamp,
    pub(crate) server: ServerFacts,
    pub(crate) answering: Arc<Answering>,
    /// What is subscribed to on it, in the legacy era.
    pub(crate) subscriptions: Arc<ClientSubscriptions>,
    pub(crate) child: Option<ChildHandle>,
    /// Whether anyone has ever answered on it. A revision that is pinned, or known, needs nobody's
    /// answer for a connection to count as made.
    pub(crate) answered: AtomicBool,
    /// What listings said of the server's tools.
    pub(crate) known: Arc<KnownTools>,
    pub(crate) carried: Carried,
    /// `None` on wires that have no headers.
    #[cfg(feature = "http")]
    pub(crate) repeated: Option<param_headers::ParamHeaderTable>,
    /// Where what this connection believes is remembered.
    #[cfg(feature = "http")]
    pub(crate) remembered: Option<discovery::DiscoveryKey>,
}

/// What carries a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    #[cfg(feature = "http")]
    ByHttp,
    /// Standard streams, sockets, or nothing at all.
    Otherwise,
}

impl Carried {
    pub(crate) fn of(kind: Kind) -> Carried {
        match kind {
            #[cfg(feature = "http")]
            Kind::Http => Carried::ByHttp,
            Kind::Process(_) | Kind::Stream => Carried::Otherwise,
        }
    }
}

/// What the server said about itself when the connection was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFacts {
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: Option<ServerCapabilities>,
    pub(crate) instructions: Option<String>,
    /// The whole of what a modern server said.
    #[cfg(feature = "http")]
    pub(crate) discovered: Option<turnbuckle_types::Raw>,
}

impl ClientConnection {
    pub(crate) fn revision(&self) -> Revision {
        self.stamp.revision()
    }

    /// Somebody has answered.
    pub(crate) fn is_answered(&self) {
        // Most often it is known.
        if !self.has_answered() {
            self.answered.store(true, Relaxed);
        }
    }

    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Relaxed)
    }

    /// Closes it for everyone. Dropping the future does not stop the closing.
    pub(crate) async fn close(&self) -> Option<ExitReport> {
        // The end of its input is what asks a server to leave; only then do the stages begin.
        self.transport.close().await;
        match &self.child {
            Some(child) => Some(child.shutdown().await),
            None => None,
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.transport.close_now();
    }
}
