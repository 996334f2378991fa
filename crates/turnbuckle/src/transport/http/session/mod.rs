//! The legacy era over HTTP: sessions, the GET stream, resumption, and the transport of 2024-11-05.

#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "server")]
pub(crate) mod events;
#[cfg(feature = "server")]
mod expiring;
#[cfg(feature = "server")]
pub(crate) mod id;
#[cfg(feature = "server")]
pub(crate) mod server;
#[cfg(feature = "server")]
pub(crate) mod store;

#[cfg(feature = "server")]
use std::sync::Arc;

#[cfg(feature = "server")]
use turnbuckle_types::{Raw, Revision, RpcError, jsonrpc::Params};

#[cfg(feature = "server")]
use crate::{protocol::classify::ClientHello, rpc::Serve};

/// What an endpoint serves, in both eras.
#[cfg(feature = "server")]
pub(crate) trait SessionEndpoint: Send + Sync + 'static {
    /// The revisions that are served, oldest first.
    fn served(&self) -> &[Revision];
    /// What serves every request that declares its own revision, each for itself.
    fn stateless(&self) -> Arc<dyn Serve>;
    /// Whom it lets in, if not everyone.
    fn protection(&self) -> Option<crate::transport::http::server::auth::protect::Protection> {
        None
    }
    /// Answers `initialize`, and says what its session is.
    fn initialize(&self, params: &Params) -> Result<(Raw, ClientHello), RpcError>;
    /// Returns whether a revision is served that begins with a handshake.
    #[cfg(feature = "sse-2024")]
    fn has_handshake(&self) -> bool;
    /// Returns the service of one connection that begins with a handshake.
    #[cfg(feature = "sse-2024")]
    fn connection(&self, head: crate::rpc::HttpHead) -> Arc<dyn Serve>;
    /// Returns the service of a session that was opened like this. It is created whenever a session
    /// is used after a pause, so that it has to be cheap. Without an id it is for one request.
    fn session(
        &self,
        id: Option<store::SessionId>,
        hello: Arc<ClientHello>,
        record: store::SessionRecord,
    ) -> Arc<dyn Session>;
}

/// What serves one session, for as long as something of it is in use.
#[cfg(feature = "server")]
pub(crate) trait Session: Serve {
    /// What has to be remembered when it is no longer in use.
    fn record(&self) -> store::SessionRecord;
    /// Its client has ended it.
    fn ended(&self) {}
    /// Returns whether it can be kept for the next request while nothing of the session is in use.
    fn can_wait(&self) -> bool {
        false
    }
}
