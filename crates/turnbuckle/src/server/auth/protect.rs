//! Owns whom a server lets in over HTTP, and what each of its offers demands of a token. Does not own
//! how tokens are checked, nor how a request is turned away.

use crate::{
    error::{Error, ErrorKind, Result},
    protocol::{
        classify::{Envelope, EnvelopeCache, RequestRoute},
        params::decode,
    },
    rpc::{HttpHead, RequestOrigin},
    server::{
        Server,
        handler::context::Ctx,
        items::{PromptDef, ResourceDef, TemplateDef, ToolDef},
        methods,
        registry::{Definition, Entry, FoundResource, RegistrySnapshot},
        shared::App,
    },
    transport::http::{
        server::auth::{
            issuers::Issuers,
            protect::{Granted, MetadataService, Needs, Protection, Sender},
        },
        tls,
    },
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use turnbuckle_auth::{
    Scopes,
    resource_server::{ExchangedToken, ResourceServer, TokenExchange},
};
use turnbuckle_types::{
    Complete, CompletionReference, Meta, Method, ReadResource, Revision, Subscribe, jsonrpc::Params,
};

/// Whom a server lets in.
#[derive(Clone, Default)]
pub(crate) struct Doorkeeper {
    server: Option<ResourceServer>,
    /// What is wrong with it that shows before it is served.
    problem: Option<String>,
    required: Vec<String>,
}

impl Doorkeeper {
    pub(crate) fn is_there(&self) -> bool {
        self.server.is_some()
    }
}

impl Server {
    /// Lets nobody in over HTTP who does not bring a token for this resource: every request is
    /// checked before its body is read, and turned away with a challenge from which a client learns
    /// where to get one. Who came is the handler's [`Principal`](crate::Principal), named
    /// `issuer|subject`, with an [`Identity`](turnbuckle_auth::resource_server::Identity) as claims;
    /// the token itself is shown to nobody behind this. Wires that are one client's own, such as the
    /// standard streams, are not touched.
    ///
    /// What the server tells of itself is served by [`serve_http`](Server::serve_http); beside a
    /// service that is mounted elsewhere, mount [`metadata_service`](Server::metadata_service) too.
    /// Issuers are asked through the proxy that `HTTPS_PROXY` and `NO_PROXY` name, and trusted by the
    /// system's certificates and [those that were added](ResourceServer::tls_root), unless the
    /// resource server was given something else to [ask with](ResourceServer::fetch).
    ///
    /// ```
    /// use turnbuckle::{
    ///     Principal, Server,
    ///     auth::resource_server::{Identity, ResourceServer},
    ///     tool,
    /// };
    /// async fn whoami(who: Principal<Identity>) -> String { who.claims().subject.clone() }
    /// async fn wipe() {}
    /// let server = Server::new("files", "1.0")
    ///     .protect(
    ///         ResourceServer::new("https://mcp.example.com/mcp").issuer("https://auth.example.com"),
    ///     )
    ///     .tool(tool("whoami", whoami))
    ///     .tool(tool("wipe", wipe).scopes(["files:write"]));
    /// # server.http_service().check().unwrap();
    /// ```
    #[must_use]
    #[track_caller]
    pub fn protect(self, server: ResourceServer) -> Server {
        let problem = tls::check(server.tls_roots()).err().map(|error| error.to_string());
        let server = server.or_fetch(|roots| Arc::new(Issuers::new(roots.to_vec())));
        self.changed(|changed| {
            changed.doorkeeper.server = Some(server);
            changed.doorkeeper.problem = problem;
        })
    }

    /// Lets nobody in over HTTP whose token is not good for all of these, besides those that the
    /// resource server [requires](ResourceServer::require) itself. It must be
    /// [protected](Server::protect).
    #[must_use]
    #[track_caller]
    pub fn required_scopes<S: Into<String>>(self, scopes: impl IntoIterator<Item = S>) -> Server {
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        self.changed(|server| server.doorkeeper.required.extend(scopes))
    }

    /// A service for what a [protected](Server::protect) server tells of itself (RFC 9728), to be
    /// mounted at the root, beside a service that is mounted under a path. Where the server is not
    /// protected there is nothing to be found.
    ///
    /// ```
    /// use turnbuckle::{Server, auth::resource_server::ResourceServer};
    /// let server = Server::new("demo", "1.0").protect(
    ///     ResourceServer::new("https://mcp.example.com/mcp").issuer("https://auth.example.com"),
    /// );
    /// let metadata = server.metadata_service();
    /// let app: axum::Router = axum::Router::new()
    ///     .nest_service("/mcp", server.http_service().public_host("mcp.example.com"))
    ///     .route_service(&metadata.path().to_owned(), metadata);
    /// # let _ = app;
    /// ```
    pub fn metadata_service(&self) -> MetadataService {
        let protection = self.app().and_then(|app| self.protection(&app));
        MetadataService::new(protection.ok().flatten())
    }

    /// What stands before it on HTTP.
    pub(crate) fn protection(&self, app: &Arc<App>) -> Result<Option<Protection>> {
        let Doorkeeper { server, problem, required } = &self.doorkeeper;
        let Some(server) = server else {
            return match unguarded(&app.snapshot(), required) {
                Some(what) => Err(Error::refused(format!(
                    "{what} scopes, but nothing looks at tokens: call Server::protect"
                ))),
                None => Ok(None),
            };
        };
        if let Some(problem) = problem {
            return Err(Error::refused(format!("the server can't be protected: {problem}")));
        }
        let own = read_scopes(required.iter().cloned()).map_err(Error::refused)?;
        let all = server.required().union(&own);
        let server = server.clone().require(all);
        server.ready().map_err(|error| {
            Error::refused(format!("the server can't be protected: {error}")).with_source(error)
        })?;
        Ok(Some(Protection::new(server, app.clone())))
    }
}

/// What demands scopes.
fn unguarded(snapshot: &RegistrySnapshot, required: &[String]) -> Option<String> {
    fn one<T: Definition>(snapshot: &RegistrySnapshot) -> Option<String> {
        let listed = snapshot.section::<T>().listed();
        let needs = listed.iter().find(|entry| !entry.demands().is_empty())?;
        Some(format!("the {} `{}` needs", T::KIND.word(), needs.name()))
    }
    let server = (!required.is_empty()).then(|| "the server needs".to_owned());
    server
        .or_else(|| one::<ToolDef>(snapshot))
        .or_else(|| one::<PromptDef>(snapshot))
        .or_else(|| one::<ResourceDef>(snapshot))
        .or_else(|| one::<TemplateDef>(snapshot))
}

/// Each of them has to be one: what is left out would demand nothing.
pub(crate) fn read_scopes(scopes: impl Iterator<Item = String>) -> Result<Scopes, String> {
    let mut all = Scopes::none();
    for scope in scopes {
        let one = Scopes::from_iter([scope.as_str()]);
        if one.is_empty() {
            return Err(format!("`{scope}` is no scope: RFC 6749 §3.3"));
        }
        all = all.union(&one);
    }
    Ok(all)
}

impl Ctx {
    /// Whether its sender's token is good for all of these; on a wire that is one client's own there
    /// is no token.
    pub(crate) fn is_granted(&self, needed: &Scopes) -> bool {
        if self.is_local() {
            return true;
        }
        self.came_with::<Granted>().is_some_and(|granted| granted.covers(needed))
    }

    /// A token that another server takes, for whoever sent this request: theirs is exchanged (RFC
    /// 8693) at an authorization server where this server is a client. That is the only way on: a
    /// token that was made for this server can't be read here, nor passed on.
    ///
    /// The server must be [protected](Server::protect), and the request have come over HTTP. What
    /// comes back is a bearer token, good for what the exchange asked for; it is kept for the same
    /// caller until shortly before it expires. Dropping the future gives up the wait.
    ///
    /// ```
    /// use turnbuckle::{
    ///     Ctx, Server, State, ToolError,
    ///     auth::{
    ///         Secret,
    ///         resource_server::{ResourceServer, TokenExchange},
    ///     },
    ///     tool,
    /// };
    /// async fn orders(ctx: Ctx, State(orders): State<TokenExchange>) -> Result<String, ToolError> {
    ///     let token = ctx.token_exchange(&orders).await;
    ///     let token = token.map_err(|error| ToolError::new(error.to_string()))?;
    ///     let request = http::Request::get("https://api.example.com/orders")
    ///         .header("authorization", token.header());
    ///     // … send it …
    /// #   let _ = request;
    ///     Ok("none".into())
    /// }
    /// let exchange =
    ///     TokenExchange::basic("https://auth.example.com", "mcp-server", Secret::new("s3cr3t"))
    ///         .resource("https://api.example.com")
    ///         .scopes(["orders:read"]);
    /// let server = Server::new("shop", "1.0")
    ///     .protect(
    ///         ResourceServer::new("https://mcp.example.com/mcp").issuer("https://auth.example.com"),
    ///     )
    ///     .state(exchange)
    ///     .tool(tool("orders", orders));
    /// # server.http_service().check().unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) where there is no token, and
    /// [`ErrorKind::Authorization`](crate::ErrorKind::Authorization) if the authorization server
    /// refuses, can't be reached, or gives something else. No token is in what is said of it.
    pub async fn token_exchange(&self, exchange: &TokenExchange) -> Result<ExchangedToken> {
        let Some(Sender(caller)) = self.came_with::<Sender>() else {
            return Err(Error::refused(
                "there is no token to exchange: the request did not come over HTTP to a server \
                 that is protected",
            ));
        };
        caller.exchange(exchange).await.map_err(|error| {
            let message = format!("the caller's token could not be exchanged: {error}");
            Error::new(ErrorKind::Authorization, message).with_source(error)
        })
    }

    /// What the door left with this request, else with what opened its connection.
    fn came_with<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let mut heads = self.0.came.head().into_iter().chain(&self.0.connection.head);
        heads.find_map(|head| head.extensions.get())
    }
}

impl Needs for App {
    fn needs(&self, method: &str, params: &Params) -> Scopes {
        let target = ScopeTarget::of(&self.snapshot(), method, params);
        target.map(|target| target.demands().clone()).unwrap_or_default()
    }

    fn hides(&self, method: &str, params: &Params, sender: &Arc<HttpHead>) -> bool {
        let Some(target) = ScopeTarget::of(&self.snapshot(), method, params) else { return true };
        // What can't be read is told so further on, without a word of what it is about.
        let Some((revision, meta)) = declared(&self.envelopes, method, params) else { return true };
        let mut head = HttpHead::clone(sender);
        head.extensions.insert(Granted::Everything);
        // Rules see the request as it came. What a handshake said and what layers would add they
        // don't: who is hidden something for want of those is told no more than that it is unknown.
        let ctx = Ctx::unheard_of(revision, meta, RequestOrigin::InSession(Arc::new(head)));
        let shown = catch_unwind(AssertUnwindSafe(|| target.is_shown(self, &ctx)));
        !shown.unwrap_or(false)
    }
}

/// In which revision a request is, as far as it says so itself, and its `_meta`.
fn declared(known: &EnvelopeCache, method: &str, params: &Params) -> Option<(Revision, Arc<Meta>)> {
    match known.classify(method, params, &Revision::ALL) {
        Ok(RequestRoute::Modern(Envelope { revision, meta })) => Some((revision, meta)),
        Ok(RequestRoute::Legacy(meta)) => Some((Revision::LATEST_LEGACY, meta)),
        Err(_) => None,
    }
}

/// What a request is about.
enum ScopeTarget {
    Tool(Arc<Entry<ToolDef>>),
    Prompt(Arc<Entry<PromptDef>>),
    Template(Arc<Entry<TemplateDef>>),
    At(FoundResource),
}

impl ScopeTarget {
    /// Nothing if it can't be read, or leads nowhere.
    fn of(snapshot: &RegistrySnapshot, method: &str, params: &Params) -> Option<ScopeTarget> {
        match Method::from_name(method)? {
            Method::CallTool => named::<ToolDef>(snapshot, params).map(ScopeTarget::Tool),
            Method::GetPrompt => named::<PromptDef>(snapshot, params).map(ScopeTarget::Prompt),
            Method::ReadResource => {
                let ReadResource { uri, .. } = decode(params).ok()?;
                snapshot.find(&uri).map(ScopeTarget::At)
            }
            Method::Subscribe => {
                let Subscribe { uri, .. } = decode(params).ok()?;
                snapshot.find(&uri).map(ScopeTarget::At)
            }
            // What demands something is completed by those who may have it.
            Method::Complete => match decode::<Complete>(params).ok()?.reference {
                CompletionReference::Prompt(prompt) => {
                    snapshot.prompt(&prompt.name).cloned().map(ScopeTarget::Prompt)
                }
                CompletionReference::Resource(template) => {
                    snapshot.template(&template.uri).cloned().map(ScopeTarget::Template)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn demands(&self) -> &Scopes {
        match self {
            ScopeTarget::Tool(tool) => tool.demands(),
            ScopeTarget::Prompt(prompt) => prompt.demands(),
            ScopeTarget::Template(template) => template.demands(),
            ScopeTarget::At(FoundResource::Resource(resource)) => resource.demands(),
            ScopeTarget::At(FoundResource::Template(template, _)) => template.demands(),
        }
    }

    fn is_shown(&self, app: &App, ctx: &Ctx) -> bool {
        match self {
            ScopeTarget::Tool(tool) => app.rules.show(&***tool, ctx),
            ScopeTarget::Prompt(prompt) => app.rules.show(&***prompt, ctx),
            ScopeTarget::Template(template) => app.rules.show(&***template, ctx),
            ScopeTarget::At(found) => app.shows(found, ctx),
        }
    }
}

/// A tool or a prompt. What has no rules demands nothing: scopes are rules among others.
fn named<T: Definition>(snapshot: &RegistrySnapshot, params: &Params) -> Option<Arc<Entry<T>>> {
    let section = Some(snapshot.section::<T>()).filter(|section| section.has_rules())?;
    let name = methods::text(params.name.as_ref()?)?;
    section.find(&name).cloned()
}
