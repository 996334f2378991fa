//! Owns how a handler reads what its own server offers. Does not own what reading is: that goes the
//! way of any request.

use std::sync::{Arc, Mutex};

use super::{
    context::{Ctx, Inner, MiddlewareState, SentNotifications},
    reply::not_found,
};
use crate::{
    middleware::server::Request,
    rpc::{Permit, Reply},
    server::methods::{
        HandlerRequest, {self},
    },
};
use serde_json::json;
use turnbuckle_types::{Method, ReadResourceResult, RpcError, jsonrpc::Params};

/// How deep resources may read each other.
const DEEPEST: usize = 16;

impl Ctx {
    /// Reads a resource of this server, as whoever sent this request would: the error is the one
    /// that they would get, also for what is not there and for what is hidden from them. The
    /// server's layers see it as a request of its own, with what they have added to this one. A
    /// resource that asks the client something can't be read in this way.
    ///
    /// Dropping the future gives the reading up.
    ///
    /// ```
    /// use turnbuckle::{Ctx, RpcError, Server, resource, tool, types::ReadResourceResult};
    /// async fn motto() -> &'static str { "hold fast" }
    /// async fn count(ctx: Ctx) -> Result<String, RpcError> {
    ///     let ReadResourceResult { contents, .. } = ctx.read_resource("demo://motto").await?;
    ///     Ok(format!("{} piece(s)", contents.len()))
    /// }
    /// let server = Server::new("demo", "1.0")
    ///     .resource(resource("demo://motto", motto))
    ///     .tool(tool("count", count));
    /// # let _ = server;
    /// ```
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, RpcError> {
        let Some(app) = &self.0.app else { return Err(not_found(uri, self.revision())) };
        if self.depth() >= DEEPEST {
            tracing::error!(uri, "resources read each other without end");
            return Err(RpcError::internal("internal error"));
        }
        let params = Params::of(json!({ "uri": uri }).into())?;
        // It belongs to a request that was let in, but it may outlive that.
        let permit = Permit::another(&self.0.in_flight);
        let visit = HandlerRequest { app: app.clone(), ctx: self.within(), params, permit };
        let method = Method::ReadResource.as_str();
        let request = Request::of(&visit, method.into(), Some(uri.to_owned()));
        let read = || methods::read_resource(visit).unwrap_or_else(|error| Reply::Now(Err(error)));
        let outcome = app.middleware.requests.reply(request, read).await;
        outcome?.decode().map_err(|error| {
            tracing::error!(uri, %error, "a resource has no contents that a handler could read");
            RpcError::internal("internal error")
        })
    }

    /// The same request, for a part of its work: what that part adds to its own result and how
    /// far it has come are not what the whole says.
    pub(crate) fn within(&self) -> Ctx {
        let Inner { id, meta, opened, replies, came, connection, app, peer, .. } = &*self.0;
        let added = self.said().added();
        let state = |added| Box::new(MiddlewareState { added, ..MiddlewareState::default() });
        Ctx(Arc::new(Inner {
            id: id.clone(),
            revision: self.0.revision,
            meta: meta.clone(),
            opened: opened.clone(),
            token: None,
            log_level: self.0.log_level,
            replies: replies.clone(),
            came: came.clone(),
            connection: connection.clone(),
            app: app.clone(),
            outer: Some(self.clone()),
            in_flight: self.0.in_flight.clone(),
            cancelled: false.into(),
            cancel: self.bell().clone().into(),
            said: Mutex::new(SentNotifications {
                middleware: added.map(state),
                ..SentNotifications::default()
            }),
            panicked: false.into(),
            asking: Default::default(),
            peer: peer.clone(),
        }))
    }
}
