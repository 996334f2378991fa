//! The server and its settings.

use std::{
    panic::Location,
    sync::{Arc, OnceLock},
};

use turnbuckle_types::Implementation;

#[cfg(all(feature = "auth", feature = "http"))]
use crate::server::auth;
use crate::{
    error::{Error, ErrorKind, Result},
    limits::Limits,
    middleware::{
        Metrics, Middleware,
        server::{IncomingRequest, OutgoingInput, ServerMiddleware},
    },
    protocol::sealed::KeyRing,
    rpc::Serve,
    server::{
        connection::{dispatch::ServerConnection, forward::Forward},
        elicit::Asking,
        handler::{context::ConnectionContext, extract::States},
        items::{Group, IntoGroup, IntoPrompt, IntoResource, IntoTemplate, IntoTool, Rules},
        methods::cache_hints::{CachePolicy, Nature},
        notify::{
            bus::SubscriptionBus,
            changes::Changes,
            roots::{RootsChanged, RootsHook},
        },
        revisions::Revisions,
        shared::App,
    },
};

/// The default number of items in a page of a list.
const PAGE_SIZE: usize = 1_000;

/// A server: a name, and the tools, resources and prompts it offers.
///
/// It serves both eras of the protocol at once, on any number of connections.
///
/// ```no_run
/// use turnbuckle::{Args, Server, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// async fn add(Args(add): Args<Add>) -> i64 { add.a + add.b }
///
/// #[tokio::main]
/// async fn main() -> turnbuckle::Result<()> {
///     Server::new("calc", "1.0")
///         .tool(tool("add", add).description("Add two integers."))
///         .serve_stdio()
///         .await
/// }
/// ```
#[derive(Clone)]
#[doc(alias = "ServerHandler")]
#[doc(alias = "McpServer")]
#[doc(alias = "FastMCP")]
pub struct Server {
    pub(super) info: Implementation,
    pub(super) instructions: Option<String>,
    pub(super) offers: Group,
    pub(super) states: States,
    pub(super) limits: Limits,
    pub(super) changes: Changes,
    pub(super) revisions: Revisions,
    pub(super) middleware: ServerMiddleware,
    pub(super) asking: Asking,
    /// The callback for changed roots.
    pub(super) roots: Option<RootsHook>,
    pub(super) rules: Rules,
    pub(super) caching: CachePolicy,
    pub(super) page_size: usize,
    /// The keys that seal cursors and request states.
    pub(super) keys: KeyRing,
    /// The first change after the registry was taken, which is an error.
    pub(super) late: Option<&'static Location<'static>>,
    /// The authorization of HTTP requests.
    #[cfg(all(feature = "auth", feature = "http"))]
    pub(super) doorkeeper: auth::protect::Doorkeeper,
    /// Answers all requests of a gateway.
    pub(super) forward: Option<Arc<dyn Forward>>,
    /// The data of all connections. The first connection creates it, for all clones.
    pub(super) app: Arc<OnceLock<Arc<App>>>,
}

impl Server {
    /// Creates a server without tools, prompts and resources.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Server {
        Server {
            info: Implementation::new(name, version),
            instructions: None,
            offers: Group::new(),
            states: States::default(),
            limits: Limits::default(),
            changes: Changes::default(),
            revisions: Revisions::default(),
            middleware: ServerMiddleware::default(),
            asking: Asking::default(),
            roots: None,
            rules: Rules::default(),
            caching: CachePolicy::default(),
            page_size: PAGE_SIZE,
            keys: KeyRing::random(),
            late: None,
            #[cfg(all(feature = "auth", feature = "http"))]
            doorkeeper: auth::protect::Doorkeeper::default(),
            forward: None,
            app: Arc::default(),
        }
    }

    /// Adds a tool: a function that carries `#[tool]`, or a [`tool`](crate::tool()).
    #[must_use]
    #[track_caller]
    pub fn tool(mut self, tool: impl IntoTool) -> Server {
        let offers = std::mem::take(&mut self.offers).tool(tool);
        self.changed(|server| server.offers = offers)
    }

    /// Adds several tools of one type.
    #[must_use]
    #[track_caller]
    pub fn tools<T: IntoTool>(mut self, tools: impl IntoIterator<Item = T>) -> Server {
        let mut offers = std::mem::take(&mut self.offers);
        // Not a fold: that would be the place where each was registered.
        for tool in tools {
            offers = offers.tool(tool);
        }
        self.changed(|server| server.offers = offers)
    }

    /// Adds a prompt: a function that carries `#[prompt]`, or a [`prompt`](crate::prompt()).
    #[must_use]
    #[track_caller]
    pub fn prompt(mut self, prompt: impl IntoPrompt) -> Server {
        let offers = std::mem::take(&mut self.offers).prompt(prompt);
        self.changed(|server| server.offers = offers)
    }

    /// Adds a resource: a function that carries `#[resource]`, or a
    /// [`resource`](crate::resource()).
    #[must_use]
    #[track_caller]
    pub fn resource(mut self, resource: impl IntoResource) -> Server {
        let offers = std::mem::take(&mut self.offers).resource(resource);
        self.changed(|server| server.offers = offers)
    }

    /// Adds a family of resources: a [`template`](crate::template()).
    #[must_use]
    #[track_caller]
    pub fn template(mut self, template: impl IntoTemplate) -> Server {
        let offers = std::mem::take(&mut self.offers).template(template);
        self.changed(|server| server.offers = offers)
    }

    /// Adds all items of a group: a [`Group`], or a value whose `impl` carries `#[tools]`.
    #[must_use]
    #[track_caller]
    pub fn group(mut self, group: impl IntoGroup) -> Server {
        let offers = std::mem::take(&mut self.offers).group(group);
        self.changed(|server| server.offers = offers)
    }

    /// Adds a value that handlers take as [`State`](crate::State).
    #[must_use]
    #[track_caller]
    pub fn state<S: Clone + Send + Sync + 'static>(self, state: S) -> Server {
        self.changed(|server| server.states.insert(state))
    }

    /// Sets the instructions for the model: how to use this server.
    #[must_use]
    #[track_caller]
    pub fn instructions(self, instructions: impl Into<String>) -> Server {
        self.changed(|server| server.instructions = Some(instructions.into()))
    }

    /// Sets the description of the server: title, website, icons.
    #[must_use]
    #[track_caller]
    pub fn info(self, info: Implementation) -> Server {
        self.changed(|server| server.info = info)
    }

    /// Sets the limits of each connection.
    #[must_use]
    #[track_caller]
    pub fn limits(self, limits: Limits) -> Server {
        self.changed(|server| server.limits = limits)
    }

    /// Sets the rules for requests of handlers to their clients: the number of rounds, the time for an
    /// answer, and whether an answer can be used more than once.
    #[must_use]
    #[track_caller]
    pub fn asking(self, asking: Asking) -> Server {
        self.changed(|server| server.asking = asking)
    }

    /// Sets the keys that seal cursors and request states. The default is a random key, so that other
    /// replicas, and this one after a restart, refuse them.
    #[must_use]
    #[track_caller]
    pub fn keys(self, keys: KeyRing) -> Server {
        self.changed(|server| server.keys = keys)
    }

    /// Sets the revisions of the protocol that are served; by default all. A client that speaks none
    /// of them is told which the server has.
    #[must_use]
    #[track_caller]
    pub fn revisions(self, revisions: Revisions) -> Server {
        self.changed(|server| server.revisions = revisions)
    }

    /// Adds middleware for every request of this server, in either era and on every transport,
    /// except `initialize` and `ping`: see [`middleware::server`](crate::middleware::server). The
    /// middleware that is added first sees a request first.
    #[must_use]
    #[track_caller]
    pub fn layer(self, middleware: impl Middleware<IncomingRequest>) -> Server {
        self.changed(|server| server.middleware.requests.push(middleware))
    }

    /// Adds middleware for every request that handlers send to their clients (elicitation,
    /// sampling, roots): see [`InputRequest`](crate::middleware::server::InputRequest). The
    /// middleware that is added first sees a request first, after that of the tool, prompt,
    /// resource or template and that of its groups. A request that it does not pass on is not sent.
    #[must_use]
    #[track_caller]
    pub fn input_request_layer(self, middleware: impl Middleware<OutgoingInput>) -> Server {
        self.changed(|server| server.middleware.input.push(middleware))
    }

    /// Sets the receiver of metrics: the start and the end of every request. Calling this again
    /// replaces the receiver.
    #[must_use]
    #[track_caller]
    pub fn metrics(self, metrics: impl Metrics) -> Server {
        self.changed(|server| server.middleware.metrics = Some(Arc::new(metrics)))
    }

    /// Sets the callback for changed roots, so that a program can discard data that it derived from them. A
    /// handler that [asks](crate::elicit::roots) always gets the current roots. Calling this again replaces
    /// the callback.
    ///
    /// Only handshake revisions have the notification `notifications/roots/list_changed`. The callback runs
    /// in its own task, once at a time per connection; several changes during a run cause one more run. At
    /// most 256 connections are served at once. Further notifications are dropped and logged.
    ///
    /// ```
    /// use turnbuckle::Server;
    /// let server = Server::new("demo", "1.0").on_roots_changed(async |changed| {
    ///     println!("{} works elsewhere now", changed.client_info().name);
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn on_roots_changed<F, Fut>(self, hear: F) -> Server
    where
        F: Fn(RootsChanged) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.changed(|server| server.roots = Some(RootsHook::new(hear)))
    }

    /// Sets the number of items in a page of a list, at least one. The default is 1,000.
    #[must_use]
    #[track_caller]
    pub fn page_size(self, items: usize) -> Server {
        self.changed(|server| server.page_size = items.max(1))
    }

    /// Sets the bus that carries changes to every replica of this server. The default is a
    /// [`MemoryBus`](crate::server::MemoryBus). The bus gets the listeners of this replica at once. Handles from
    /// [`changes`](Server::changes) use it, also those that were taken before.
    #[must_use]
    pub fn bus(self, bus: impl SubscriptionBus) -> Server {
        self.changes.go_by(bus);
        self
    }

    /// Returns a handle that notifies clients of changes.
    pub fn changes(&self) -> Changes {
        self.changes.clone()
    }

    /// Checks names, schemas and state of all registered items. Serving does this first.
    pub fn check(&self) -> Result<()> {
        self.app().map(drop)
    }

    #[track_caller]
    pub(super) fn changed(mut self, change: impl FnOnce(&mut Server)) -> Server {
        if self.app.get().is_some_and(|app| app.nature() == Nature::Changing) {
            self.late.get_or_insert(Location::caller());
        }
        change(&mut self);
        self.app = Arc::default();
        self
    }

    pub(crate) fn app(&self) -> Result<Arc<App>> {
        if let Some(app) = self.app.get() {
            return Ok(app.clone());
        }
        let app =
            Arc::new(App::new(self).map_err(|problem| Error::new(ErrorKind::Refused, problem))?);
        Ok(self.app.get_or_init(|| app).clone())
    }

    /// Returns the cache policy with the defaults of this server.
    pub(super) fn own_caching(&self) -> CachePolicy {
        let caching = self.caching.clone();
        #[cfg(all(feature = "auth", feature = "http"))]
        if self.doorkeeper.is_there() {
            return caching.protected();
        }
        caching
    }

    /// Returns the service of one connection.
    #[cfg(feature = "client")]
    pub(crate) fn connection(&self) -> Result<Arc<dyn Serve>> {
        self.connection_with(ConnectionContext::default())
    }

    /// Returns the service of one connection with a context.
    pub(super) fn connection_with(&self, connection: ConnectionContext) -> Result<Arc<dyn Serve>> {
        Ok(ServerConnection::new(self.app()?, self.revisions.revisions().into())
            .with(connection)
            .shared())
    }

    pub(crate) fn connection_limits(&self) -> Limits {
        self.limits.clone()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("info", &self.info)
            .field("offers", &self.offers)
            .finish_non_exhaustive()
    }
}
