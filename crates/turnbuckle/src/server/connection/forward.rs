//! The server's half of [`__seam`](crate::__seam): a [`Server`] whose requests are answered by a
//! [`Forward`], after the revision of each request is known and before its method is looked at.

use std::{collections::BTreeSet, future::poll_fn, sync::Arc};

#[cfg(feature = "http")]
use crate::http::SessionId;
use crate::server::Server;
use crate::{
    error::Error,
    rpc::{BoxFuture, Exchange, Note, Outcome, Outgoing, Peer, Permit},
    server::handler::context::Ctx,
};
use turnbuckle_types::{
    ClientCapabilities, Initialize, LogLevel, Meta, Raw, RequestId, Revision, RpcError,
    jsonrpc::{Params, Text},
};

/// Answers all requests of a server.
pub trait Forward: Send + Sync + 'static {
    /// Returns the value that answers one connection or session. It must not wait, and may be called
    /// outside of a runtime.
    fn connect(&self, client: ClientScope) -> Arc<dyn ForwardConnection>;
    /// Answers `initialize` of an HTTP client, which opens a session. It must not wait.
    fn initialize(&self, revision: Revision) -> Result<Raw, RpcError>;
}

/// Answers one connection or session. No method may wait, except in the returned futures.
pub trait ForwardConnection: Send + Sync + 'static {
    /// Answers `initialize`.
    fn initialize(&self, revision: Revision, client: Initialize) -> BoxFuture<'static, Outcome>;
    /// Answers any other request but `ping`. Dropping the future cancels the request.
    fn request(&self, request: ForwardedRequest) -> BoxFuture<'static, Outcome>;
    /// Receives a notification of the client.
    fn notification(&self, note: Note);
    /// The client can be notified and asked outside of its requests from now on.
    fn connected(&self, peer: ClientPeer);
    /// The client has ended its session.
    fn ended(&self);
    /// Returns the resources that the client is subscribed to.
    fn subscriptions(&self) -> BTreeSet<String>;
}

/// The clients whose requests a [`ForwardConnection`] answers.
#[derive(Debug)]
pub enum ClientScope {
    /// The one client of a connection.
    Connection,
    /// Any client: each request stands alone.
    #[cfg(feature = "http")]
    Stateless,
    /// The one client of a session.
    #[cfg(feature = "http")]
    Session {
        /// The id of the session.
        id: SessionId,
        /// The params with which the client opened it.
        client: Box<Initialize>,
        /// The settings that the client has made in it.
        memory: SessionMemory,
    },
}

/// The settings that a client has made in its session. A new connection to the server behind it has to
/// be told them again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionMemory {
    /// The least severe log messages that the client wants.
    pub level: Option<LogLevel>,
    /// The resources that it is subscribed to.
    pub subscriptions: BTreeSet<String>,
}

/// A request to be answered. It counts as in flight until this is dropped.
pub struct ForwardedRequest {
    /// The method.
    pub method: Text,
    /// The params.
    pub params: Params,
    /// The client that sent it.
    pub caller: Caller,
    pub(super) _permit: Permit,
}

impl std::fmt::Debug for ForwardedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForwardedRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// The client that waits for the answer to a request.
#[derive(Clone)]
pub struct Caller(pub(super) Ctx);

impl Caller {
    /// Returns the revision that the client speaks.
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }

    /// Returns the id that the client gave the request.
    pub fn request_id(&self) -> &RequestId {
        self.0.request_id()
    }

    /// Returns the `_meta` of the request.
    pub fn meta(&self) -> &Meta {
        &self.0.0.meta
    }

    /// Returns the params of the client's `initialize`, if it opened its connection so.
    pub fn handshake(&self) -> Option<&Initialize> {
        self.0.0.opened.as_ref().map(|opened| &opened.client)
    }

    /// Returns the capabilities of the client.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.0.client_capabilities()
    }

    /// Returns the least severe log messages that the client wants.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.0.0.log_level
    }

    /// Returns the token of progress notifications, if the client wants any.
    pub fn progress_token(&self) -> Option<&RequestId> {
        self.0.0.token.as_ref()
    }

    /// Returns the name of the principal that sent the request.
    pub fn principal_name(&self) -> Option<String> {
        self.0.principal::<()>().map(|principal| principal.name().to_owned())
    }

    /// Sends a notification that belongs to the request.
    pub async fn notify(&self, method: &str, params: &str) {
        let mut render = |out: &mut Vec<u8>| out.extend_from_slice(params.as_bytes());
        poll_fn(|context| self.0.0.replies.poll_note(context, method, &mut render)).await;
    }

    /// Sends the client a request that belongs to this one.
    pub fn ask(&self, method: impl Into<String>, params: String) -> Exchange {
        self.0.0.replies.ask(Outgoing::new(method.into(), params))
    }

    /// Sets the result that the request ends with if the server shuts down.
    pub fn set_shutdown_result(&self, result: Raw) {
        self.0.0.replies.at_shutdown(result);
    }
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Caller").field(self.request_id()).finish()
    }
}

/// The client of a connection, outside of its requests. It does not keep the connection open.
#[derive(Clone)]
pub struct ClientPeer(pub(super) Peer);

impl ClientPeer {
    /// Sends a notification; returns `None` if the connection has ended.
    pub async fn notify(&self, note: Note) -> Option<()> {
        self.0.transport()?.notify(note).await;
        Some(())
    }

    /// Sends a request to the client.
    pub fn ask(&self, method: impl Into<String>, params: String) -> Exchange {
        match self.0.transport() {
            Some(transport) => transport.open(Outgoing::new(method.into(), params)),
            None => Exchange::failed(Error::refused("the client has no stream to be asked on")),
        }
    }
}

impl std::fmt::Debug for ClientPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientPeer").finish_non_exhaustive()
    }
}

/// Creates a server whose requests are all answered by `forward`.
pub fn forwarding_server(forward: Arc<dyn Forward>) -> Server {
    Server { forward: Some(forward), ..Server::new("gateway", env!("CARGO_PKG_VERSION")) }
}
