//! Owns the way of one request: which method, which params, which handler.
//! Does not own the handlers, nor how their answers travel.

use std::sync::{Arc, OnceLock, Weak};

use crate::{
    middleware::server::serve,
    protocol::{
        classify::{ClientHello, Envelope, RequestRoute, invalid},
        params::decode,
    },
    rpc::{Incoming, Note, Outcome, Peer, Replies, Reply, Serve, memory::MemoryBudget},
    server::{
        connection::forward::{
            Caller, ClientPeer, ClientScope, ForwardConnection, ForwardedRequest,
        },
        connection::handshake::HandshakeState,
        handler::{
            context::{ConnectionContext, Ctx, Inner},
            reply::not_found,
        },
        items::ToolDef,
        methods::{
            HandlerRequest, {self},
        },
        notify::{
            listen,
            roots::{HookState, RootsChanged},
            subscriptions::ConnectionSubscriptions,
        },
        registry::{Definition, lists},
        shared::App,
    },
};
use turnbuckle_types::{
    EmptyResult, Initialize, ListTools, Listen, LogLevel, Meta, Method, Raw, Revision, RpcError,
    SetLevel, Subscribe, Unsubscribe,
    jsonrpc::{Fault, Params, Text},
};

#[cfg(feature = "http")]
use crate::{protocol::http_checks::route_http_request, rpc::RequestOrigin};

/// Serves one connection.
pub(crate) struct ServerConnection {
    /// Itself, for what outlives the moment in which it is asked.
    me: Weak<ServerConnection>,
    app: Arc<App>,
    /// The revisions that this wire speaks, oldest first.
    served: Arc<[Revision]>,
    handshake: HandshakeState,
    peer: OnceLock<Peer>,
    /// What a legacy client is told of.
    subscriptions: Arc<ConnectionSubscriptions>,
    connection: Arc<ConnectionContext>,
    /// How it is with telling of its client's roots. Few speak of them, so that it is made when it is
    /// needed.
    roots: OnceLock<Arc<HookState>>,
    /// Answers all requests, where the server forwards them.
    forward: Option<Arc<dyn ForwardConnection>>,
}

/// What a request brought along, whatever its era.
pub(crate) struct RequestFacts {
    revision: Revision,
    meta: Arc<Meta>,
    opened: Option<Arc<ClientHello>>,
    log_level: Option<LogLevel>,
}

/// A request to be answered.
pub(crate) enum Arrived {
    /// As it came: there is no middleware.
    Plain { request: Incoming, asked: RequestFacts, replies: Replies },
    /// It has passed the middleware.
    Passed(Text, HandlerRequest),
}

impl Arrived {
    fn revision(&self) -> Revision {
        match self {
            Arrived::Plain { asked, .. } => asked.revision,
            Arrived::Passed(_, visit) => visit.ctx.revision(),
        }
    }

    pub(crate) fn method(&self) -> &str {
        match self {
            Arrived::Plain { request, .. } => &request.method,
            Arrived::Passed(method, _) => method,
        }
    }

    fn params(&self) -> &Params {
        match self {
            Arrived::Plain { request, .. } => &request.params,
            Arrived::Passed(_, visit) => &visit.params,
        }
    }
}

impl ServerConnection {
    pub(crate) fn new(app: Arc<App>, served: Arc<[Revision]>) -> ServerConnection {
        ServerConnection::near(app, served, ClientScope::Connection)
    }

    /// Serves someone in particular.
    pub(crate) fn near(
        app: Arc<App>,
        served: Arc<[Revision]>,
        client: ClientScope,
    ) -> ServerConnection {
        ServerConnection {
            forward: app.forward.as_ref().map(|forward| forward.connect(client)),
            me: Weak::new(),
            app,
            served,
            handshake: HandshakeState::default(),
            peer: OnceLock::new(),
            subscriptions: Arc::default(),
            connection: Arc::default(),
            roots: OnceLock::new(),
        }
    }

    /// Serves a connection that began with something.
    pub(crate) fn with(self, connection: ConnectionContext) -> ServerConnection {
        ServerConnection { connection: Arc::new(connection), ..self }
    }

    /// Ready to serve.
    pub(crate) fn shared(self) -> Arc<ServerConnection> {
        Arc::new_cyclic(|me| ServerConnection { me: me.clone(), ..self })
    }

    /// Serves a session that was opened before.
    #[cfg(feature = "http")]
    pub(crate) fn restored(
        app: Arc<App>,
        served: Arc<[Revision]>,
        (handshake, client): (HandshakeState, ClientScope),
        subscriptions: std::collections::BTreeSet<String>,
    ) -> ServerConnection {
        let subscriptions = Arc::new(ConnectionSubscriptions::restored(subscriptions));
        ServerConnection { handshake, subscriptions, ..ServerConnection::near(app, served, client) }
    }

    fn classify(&self, request: &Incoming) -> Result<RequestRoute, RpcError> {
        let Incoming { method, params, .. } = request;
        let known = &self.app.envelopes;
        #[cfg(feature = "http")]
        if let RequestOrigin::ByPost(head) = &request.came {
            return route_http_request(known, method, params, &head.headers, &self.served);
        }
        // Nearly every request is sound: only one that is not has to know of a handshake.
        known.classify(method, params, &self.served).or_else(|error| {
            match self.handshake.opened() {
                Some(_) => known.classify_opened(method, params, &self.served),
                None => Err(error),
            }
        })
    }

    fn legacy(
        &self,
        request: Incoming,
        meta: Arc<Meta>,
        replies: Replies,
    ) -> Result<Reply, RpcError> {
        match Method::from_name(&request.method) {
            Some(Method::Initialize) => {
                let client: Initialize = decode(&request.params)?;
                let Some(forward) = &self.forward else {
                    let revision = self.handshake.open(client, &self.served)?;
                    return Ok(Reply::Now(Ok(self.app.initialize(revision))));
                };
                let revision = self.handshake.open(client.clone(), &self.served)?;
                return Ok(Reply::Later(forward.initialize(revision, client)));
            }
            // 2025-11-25 basic/utilities/ping: either side may ping at any time.
            Some(Method::Ping) => return Ok(Reply::Now(Ok(Raw::empty_object()))),
            _ => {}
        }
        let Some(opened) = self.handshake.opened() else {
            let message = format!(
                "`{}` came before `initialize`; send that first, or declare a revision in `_meta`",
                request.method
            );
            return Err(RpcError::invalid_request(message));
        };
        let asked = RequestFacts {
            revision: opened.revision,
            meta,
            opened: Some(opened),
            log_level: self.handshake.log_level(),
        };
        self.dispatch(request, asked, replies)
    }

    fn dispatch(
        &self,
        request: Incoming,
        asked: RequestFacts,
        replies: Replies,
    ) -> Result<Reply, RpcError> {
        if !self.app.middleware.is_active(asked.log_level) {
            return self.answer(Arrived::Plain { request, asked, replies });
        }
        // Whoever calls holds it: without it a request would get past its layers.
        let server = self.me.upgrade().ok_or_else(|| RpcError::internal("internal error"))?;
        let method = request.method.clone();
        let visit = self.handler_request(Arrived::Plain { request, asked, replies })?;
        Ok(serve(method, visit, move |method, visit| {
            let answered = server.answer(Arrived::Passed(method, visit));
            answered.unwrap_or_else(|error| Reply::Now(Err(error)))
        }))
    }

    /// Answers a request, or has it answered. Nothing reaches this but what passed all layers.
    pub(crate) fn answer(&self, arrived: Arrived) -> Result<Reply, RpcError> {
        if let Some(connection) = &self.forward {
            return self.forward(connection, arrived);
        }
        let (revision, params) = (arrived.revision(), arrived.params());
        let method = Method::from_name(arrived.method())
            .filter(|method| method.sent_by_client(revision) && self.app.offers(*method))
            .ok_or_else(|| RpcError::method_not_found(arrived.method()))?;
        match method {
            Method::Discover => Ok(Reply::Now(Ok(self.app.discover(revision, &self.served)))),
            Method::ListTools => self.list::<ToolDef>(arrived),
            Method::CallTool => methods::call_tool(self.handler_request(arrived)?),
            Method::Listen => {
                let Listen { notifications, .. } = decode(params)?;
                listen::open(self.handler_request(arrived)?, notifications).map(Reply::Later)
            }
            Method::SetLevel => {
                let level: SetLevel = decode(params)?;
                self.handshake.set_log_level(level.level);
                Ok(done(revision))
            }
            _ => self.app.method_sets().answer(self, method, arrived),
        }
    }

    /// Has someone else answer a request.
    fn forward(
        &self,
        connection: &Arc<dyn ForwardConnection>,
        arrived: Arrived,
    ) -> Result<Reply, RpcError> {
        let known = Method::from_name(arrived.method());
        if known == Some(Method::SetLevel)
            && known.is_some_and(|method| method.sent_by_client(arrived.revision()))
        {
            let SetLevel { level, .. } = decode(arrived.params())?;
            self.handshake.set_log_level(level);
        }
        let method = match &arrived {
            Arrived::Plain { request, .. } => request.method.clone(),
            Arrived::Passed(method, _) => method.clone(),
        };
        let HandlerRequest { ctx, params, permit, .. } = self.handler_request(arrived)?;
        let caller = Caller(ctx);
        let request = ForwardedRequest { method, params, caller, _permit: permit };
        Ok(Reply::Later(connection.request(request)))
    }

    pub(crate) fn list<T: Definition>(&self, arrived: Arrived) -> Result<Reply, RpcError> {
        // The params of all lists are the same.
        let ListTools { cursor, .. } = decode(arrived.params())?;
        let list = lists::ListRequest { cursor, revision: arrived.revision() };
        lists::list::<T>(&self.app, list, || self.handler_request(arrived))
    }

    pub(crate) fn subscribe(&self, arrived: Arrived) -> Result<Reply, RpcError> {
        let Subscribe { uri, .. } = decode(arrived.params())?;
        let (revision, subscriptions) = (arrived.revision(), self.subscriptions.clone());
        let found = self.app.snapshot().find(&uri).ok_or_else(|| not_found(&uri, revision))?;
        if !methods::is_guarded(&self.app, &found) {
            subscriptions.add(&self.app, uri)?;
            self.tell_changes();
            return Ok(done(revision));
        }
        self.tell_changes();
        let visit = self.handler_request(arrived)?;
        Ok(methods::reach_found(visit, Method::Subscribe, (found, uri), move |visit, (_, uri)| {
            match subscriptions.add(&visit.app, uri) {
                Ok(()) => done(revision),
                Err(error) => Reply::Now(Err(error)),
            }
        }))
    }

    pub(crate) fn unsubscribe(&self, arrived: &Arrived) -> Result<Reply, RpcError> {
        let Unsubscribe { uri, .. } = decode(arrived.params())?;
        self.subscriptions.remove(&self.app, uri);
        Ok(done(arrived.revision()))
    }

    /// Returns the request with the context that its handler gets.
    pub(crate) fn handler_request(&self, arrived: Arrived) -> Result<HandlerRequest, RpcError> {
        let (request, asked, replies) = match arrived {
            Arrived::Plain { request, asked, replies } => (request, asked, replies),
            Arrived::Passed(_, visit) => return Ok(visit),
        };
        let Incoming { id, params, permit, came, .. } = request;
        let token = asked.meta.progress_token().map_err(|error| invalid(&error))?;
        let peer = asked.opened.as_ref().and_then(|_| self.peer.get().cloned());
        let ctx = Ctx(Arc::new(Inner {
            id,
            revision: asked.revision,
            meta: asked.meta,
            opened: asked.opened,
            token,
            log_level: asked.log_level,
            replies,
            came,
            connection: self.connection.clone(),
            app: Some(self.app.clone()),
            outer: None,
            in_flight: permit.counter(),
            cancelled: false.into(),
            cancel: Default::default(),
            said: Default::default(),
            panicked: false.into(),
            asking: Default::default(),
            peer,
        }));
        Ok(HandlerRequest { app: self.app.clone(), ctx, params, permit })
    }
}

/// The result that says no more than that it is done.
fn done(revision: Revision) -> Reply {
    Reply::Now(Ok(Raw::at(&EmptyResult::new(), revision)))
}

impl ServerConnection {
    /// A legacy client is told of changed lists without having asked: its handshake did.
    fn tell_changes(&self) {
        if let (Some(opened), Some(peer)) = (self.handshake.opened(), self.peer.get()) {
            self.subscriptions.tell(&self.app, peer, opened.revision);
        }
    }
}

impl ServerConnection {
    /// Only a legacy client says so, and only once its connection is open.
    fn tell_of_roots(&self) {
        if let (Some(hook), Some(opened)) = (&self.app.roots, self.handshake.opened()) {
            let course = self.roots.get_or_init(Arc::default);
            hook.tell(course, RootsChanged::new(opened, self.connection.clone()));
        }
    }
}

#[cfg(feature = "http")]
impl crate::transport::http::session::Session for ServerConnection {
    fn record(&self) -> crate::http::SessionRecord {
        crate::http::SessionRecord {
            ended: false,
            log_level: self.handshake.log_level(),
            subscriptions: match &self.forward {
                Some(connection) => connection.subscriptions(),
                None => self.subscriptions.uris(),
            },
        }
    }

    fn ended(&self) {
        if let Some(connection) = &self.forward {
            connection.ended();
        }
    }

    /// It must neither collect changes for a client without a stream nor hold much memory.
    fn can_wait(&self) -> bool {
        self.forward.is_none() && self.peer.get().is_none() && self.subscriptions.is_empty()
    }
}

impl Serve for ServerConnection {
    fn serve(&self, request: Incoming, replies: Replies) -> Reply {
        let reply = match self.classify(&request) {
            Ok(RequestRoute::Modern(Envelope { revision, meta })) => {
                meta.log_level().map_err(|error| invalid(&error)).and_then(|log_level| {
                    let asked = RequestFacts { revision, meta, opened: None, log_level };
                    self.dispatch(request, asked, replies)
                })
            }
            Ok(RequestRoute::Legacy(meta)) => self.legacy(request, meta, replies),
            Err(error) => Err(error),
        };
        reply.unwrap_or_else(|error| Reply::Now(Outcome::Err(error)))
    }

    fn note(&self, note: Note) {
        tracing::trace!(method = %note.method, "a notification");
        match Method::from_name(&note.method) {
            Some(Method::Initialized) => self.tell_changes(),
            Some(Method::RootsListChanged) => self.tell_of_roots(),
            _ => {}
        }
        if let Some(connection) = &self.forward {
            connection.notification(note);
        }
    }

    fn connected(&self, peer: Peer) {
        if let Some(connection) = &self.forward {
            connection.connected(ClientPeer(peer.clone()));
        }
        let _ = self.peer.set(peer);
        // A session that was opened before has no handshake to wait for.
        self.tell_changes();
    }

    fn memory(&self) -> Option<Arc<MemoryBudget>> {
        Some(self.app.memory.clone())
    }

    fn answers(&self, _: &Fault) -> bool {
        true
    }

    fn batches(&self) -> bool {
        self.handshake.opened().is_some_and(|opened| opened.revision.has_batches())
    }
}
