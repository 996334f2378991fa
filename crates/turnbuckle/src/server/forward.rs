//! Owns the place where everything that a server is asked can be handed to someone else, after the
//! era of a request has been found and before any method is looked at. Does not own who that is.

use std::collections::BTreeSet;

use turnbuckle_types::{
    Initialize, LogLevel, Meta, Raw, RequestId, Revision, RpcError,
    jsonrpc::{Params, Text},
};

use super::context::Ctx;
#[cfg(feature = "http")]
use crate::SessionId;
use crate::dispatch::{
    BoxFuture, Note, Outcome, Peer,
    duplex::{Permit, Replies},
};

/// Answers everything in a server's stead.
pub(crate) trait Forward: Send + Sync + 'static {
    /// What answers one connection, or one session. It has to be cheap, and may be called where
    /// there is no runtime.
    fn line(&self, near: Near) -> std::sync::Arc<dyn Line>;
    /// The answer to a handshake that opens a session: nothing can be waited for there.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has sessions"))]
    fn initialize(&self, revision: Revision) -> Result<Raw, RpcError>;
}

/// Answers one connection. Nothing here may wait, except in the futures.
pub(crate) trait Line: Send + Sync + 'static {
    /// A client has opened the connection.
    fn initialize(&self, revision: Revision, client: Initialize) -> BoxFuture<'static, Outcome>;
    /// Anything else but `ping`. Dropping the future is cancelling the request.
    fn request(&self, request: Visitor) -> BoxFuture<'static, Outcome>;
    fn note(&self, note: Note);
    fn connected(&self, peer: Peer);
    /// The client has ended its session for good.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has sessions"))]
    fn ended(&self);
    /// The resources that the client is subscribed to.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has sessions"))]
    fn subscriptions(&self) -> BTreeSet<String>;
}

/// Whom a connection is with.
pub(crate) enum Near {
    /// One client, whose own it is.
    Own,
    /// Whoever sends a request that stands for itself.
    #[cfg(feature = "http")]
    Many,
    /// One client, in a session that was opened like this.
    #[cfg(feature = "http")]
    Session { id: SessionId, client: Box<Initialize>, memory: Memory },
}

/// What a session has told, in case that has to be told again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    pub(crate) level: Option<LogLevel>,
    pub(crate) subscriptions: BTreeSet<String>,
}

/// A request on its way to whoever answers it.
pub(crate) struct Visitor {
    pub(crate) method: Text,
    pub(crate) params: Params,
    pub(crate) ctx: Ctx,
    pub(crate) permit: Permit,
}

/// What others than handlers need of a request.
impl Ctx {
    pub(crate) fn replies(&self) -> &Replies {
        &self.0.replies
    }

    /// Under which progress is reported, if it is wanted.
    pub(crate) fn token(&self) -> Option<&RequestId> {
        self.0.token.as_ref()
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.0.log_level
    }

    /// What the client said in its handshake, in the legacy era.
    pub(crate) fn handshake(&self) -> Option<&Initialize> {
        self.0.opened.as_ref().map(|opened| &opened.client)
    }

    pub(crate) fn own_meta(&self) -> &Meta {
        &self.0.meta
    }
}
