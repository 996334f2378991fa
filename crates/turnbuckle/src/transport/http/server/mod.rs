//! The server's side of HTTP.
//!
//! Owns: the service that answers HTTP requests, and the listener of the short way. Does not
//! own: what the requests mean, nor any connection that it did not accept itself.

pub(super) mod answer;
pub(crate) mod auth;
mod body;
pub(super) mod future;
pub(crate) mod listen;
pub(crate) mod receive;
pub(super) mod response_stream;
pub(super) mod running;
pub(crate) mod security;
pub(super) mod shutdown;

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, atomic::AtomicUsize},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Buf;
use http::{Method, Request, Response, StatusCode, request};
use http_body::Body;
use turnbuckle_types::{
    Raw, Revision, RpcError,
    jsonrpc::{Fault, Params},
};

use super::timing::KEEP_ALIVE;
#[cfg(feature = "auth")]
pub use crate::transport::http::server::auth::protect::MetadataService;
#[cfg(feature = "sse-2024")]
pub(crate) use crate::transport::http::server::listen::serve::SideEndpoint;
pub use crate::transport::http::server::{
    listen::{
        address::HttpAddress,
        serve::{BoundHttp, ServingHttp},
    },
    shutdown::HttpReport,
};
use crate::{
    error::{Error, Result},
    limits::Limits,
    principal::Principal,
    protocol::classify::ClientHello,
    rpc::{
        HttpHead, Incoming, Note, Replies, Reply, Serve,
        memory::{MemoryBudget, PrincipalShares},
    },
    transport::http::{
        server::{
            auth::protect::Protection,
            security::gate::Gate,
            shutdown::{Drain, EndpointPhase},
        },
        session::{
            Session, SessionEndpoint,
            server::{
                Legacy, Settings, {self as legacy},
            },
            store::{SessionId, SessionRecord},
        },
    },
};
pub use body::HttpBody;
pub use future::HttpFuture;
use future::RequestHead;
use receive::Discarding;

/// A server as a service for HTTP requests, to be mounted in axum, hyper or anything that
/// speaks tower.
///
/// It serves one endpoint, whatever the path: the router in front of it decides that. Until
/// it is told otherwise it serves loopback names only, so that no page on the web can reach a
/// local server by another name.
///
/// ```
/// use turnbuckle::Server;
/// let server = Server::new("demo", "1.0");
/// let app: axum::Router = axum::Router::new()
///     .nest_service("/mcp", server.http_service().public_host("mcp.example.com"));
/// # let _ = app;
/// ```
///
/// It needs the tokio runtime with its timers.
#[derive(Clone)]
#[doc(alias = "StreamableHttpService")]
#[doc(alias = "StreamableHTTPServerTransport")]
pub struct HttpService(Arc<Endpoint>);

/// What all requests to one endpoint share.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(super) host: Arc<dyn SessionEndpoint>,
    /// What serves the modern era.
    serve: Arc<dyn Serve>,
    /// Why nothing can be served.
    problem: Option<Arc<str>>,
    gate: Gate,
    /// Whom it lets in, if not everyone.
    pub(super) protection: Option<Protection>,
    pub(super) limits: Limits,
    pub(super) keep_alive: Duration,
    pub(super) in_flight: Arc<AtomicUsize>,
    /// The memory of messages on connections that the endpoint does not know.
    pub(super) memory: Arc<MemoryBudget>,
    principals: Arc<PrincipalShares>,
    pub(super) drain: Arc<Drain>,
    /// The state for sessions and for stateless requests of the legacy era.
    pub(super) legacy: Legacy,
}

impl HttpService {
    pub(crate) fn new(host: Result<Arc<dyn SessionEndpoint>>, limits: Limits) -> HttpService {
        let (host, problem) = match host {
            Ok(host) => (host, None),
            Err(error) => {
                (Arc::new(Nothing) as Arc<dyn SessionEndpoint>, Some(error.to_string().into()))
            }
        };
        let serve = host.stateless();
        HttpService(Arc::new(Endpoint {
            legacy: Legacy::new(host.served()),
            protection: host.protection(),
            host,
            problem,
            memory: serve.memory().unwrap_or_else(|| MemoryBudget::new(limits.memory_bytes)),
            serve,
            gate: Gate::new(limits.body_bytes),
            limits,
            keep_alive: KEEP_ALIVE,
            in_flight: Arc::default(),
            principals: Arc::default(),
            drain: Arc::default(),
        }))
    }

    /// States a name under which clients reach this server: `mcp.example.com`, or with a
    /// port. May be called again for each further name. Loopback names stay allowed.
    #[must_use]
    pub fn public_host(self, host: impl Into<String>) -> HttpService {
        self.changed(|endpoint| endpoint.gate.allow_host(host.into()))
    }

    /// Lets requests through that pages of this origin (`https://app.example.com`) cause.
    /// Requests from any other foreign origin are refused, always.
    #[must_use]
    pub fn allow_origin(self, origin: impl Into<String>) -> HttpService {
        self.changed(|endpoint| endpoint.gate.allow_origin(origin.into()))
    }

    /// Lets pages of these origins call this server from a browser: they are allowed as by
    /// [`allow_origin`](HttpService::allow_origin), and may read the answers.
    #[must_use]
    pub fn cors<O: Into<String>>(self, origins: impl IntoIterator<Item = O>) -> HttpService {
        let origins = origins.into_iter().map(Into::into);
        self.changed(|endpoint| endpoint.gate.allow_readers(origins))
    }

    /// How long an answer may be silent: 15 s. Then it becomes an event stream, if it is not
    /// one yet; a stream is sent a comment.
    #[must_use]
    pub fn keep_alive(self, window: Duration) -> HttpService {
        self.changed(|endpoint| endpoint.keep_alive = window)
    }

    pub(super) fn legacy(self, change: impl FnOnce(&mut Settings)) -> HttpService {
        self.changed(|endpoint| change(&mut endpoint.legacy.settings))
    }

    pub(super) fn live_sessions(&self) -> usize {
        self.0.legacy.live.len()
    }

    /// Looks whether everything that was said fits together: the server's tools, hosts,
    /// origins. A service with a problem answers every request with status 500.
    pub fn check(&self) -> Result<()> {
        match self.0.problem() {
            Some(problem) => Err(Error::refused(problem.to_owned())),
            None => Ok(()),
        }
    }

    /// Ends every listen stream in good order, now and from now on; calls are not disturbed.
    ///
    /// For programs that stop the listener themselves: without it, streams that would never
    /// end keep a graceful shutdown waiting. It waits for running calls all the same, for as long as
    /// the listener's owner lets it. All clones of the service are meant.
    pub fn shutdown(&self) {
        self.0.drain.advance(EndpointPhase::Draining);
    }

    fn changed(mut self, change: impl FnOnce(&mut Endpoint)) -> HttpService {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Answers a request that counts towards the memory of its connection.
    fn answer<B>(&self, request: Request<B>, memory: &Arc<MemoryBudget>) -> HttpFuture<B> {
        let endpoint = &self.0;
        if let Some(problem) = endpoint.problem() {
            tracing::error!(problem, "this server can't serve");
            let error = RpcError::internal("internal error");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return HttpFuture::ready(answer::error(status, None, &error));
        }
        let (head, body) = request.into_parts();
        if let Some(response) = endpoint.gate.preflight(&head) {
            return HttpFuture::ready(response);
        }
        let sharing = endpoint.gate.sharing(&head.headers);
        let refused = endpoint.gate.judge_authority(&head).or_else(|| match head.method {
            Method::POST => endpoint.gate.judge(&head),
            _ => endpoint.gate.judge_caller(&head.uri, &head.headers),
        });
        let future = match (refused, &endpoint.protection) {
            (Some(refused), _) => HttpFuture::ready(refused),
            (None, None) => self.admit(head, body, memory),
            (None, Some(protection)) => match protection.metadata(&head.method, &head.uri) {
                Some(metadata) => HttpFuture::ready(metadata),
                None => {
                    let otherwise = Discarding::new(&head.headers);
                    let waiting = (self.clone(), body, otherwise, memory.clone());
                    HttpFuture::checking(protection.check(head), waiting)
                }
            },
        };
        future.sharing(sharing).counting(memory.clone())
    }

    /// Answers someone who was let in.
    fn admit<B>(&self, head: request::Parts, body: B, memory: &Arc<MemoryBudget>) -> HttpFuture<B> {
        let memory = match head.extensions.get::<Principal>() {
            None => memory.clone(),
            Some(principal) => {
                let limit = self.0.limits.memory_bytes;
                self.0.principals.request(memory, principal.name(), limit)
            }
        };
        let future = if head.method == Method::POST {
            HttpFuture::read(self.asked(head, &memory), body)
        } else {
            self.answer_method(head, &memory)
        };
        future.counting(memory)
    }

    /// Answers what is no POST: only sessions know such requests.
    fn answer_method<B>(&self, head: request::Parts, memory: &Arc<MemoryBudget>) -> HttpFuture<B> {
        let endpoint = &self.0;
        if let Some(refusal) = endpoint.legacy.refuse_method(&head.method, &head.headers) {
            return HttpFuture::ready(answer::refused(refusal));
        }
        let method = head.method.clone();
        HttpFuture::begun(legacy::begin_method(self.asked(head, memory), &method))
    }

    fn asked(&self, head: request::Parts, memory: &Arc<MemoryBudget>) -> RequestHead {
        let head = Arc::new(HttpHead { headers: head.headers, extensions: head.extensions });
        RequestHead { endpoint: self.0.clone(), head, memory: memory.clone(), held: None }
    }
}

impl Endpoint {
    fn problem(&self) -> Option<&str> {
        self.problem.as_deref().or_else(|| self.gate.problem())
    }
}

/// Stands in for a server that has a problem. It is never asked.
struct Nothing;

impl SessionEndpoint for Nothing {
    fn served(&self) -> &[Revision] {
        &[]
    }

    fn stateless(&self) -> Arc<dyn Serve> {
        Arc::new(Nothing)
    }

    fn initialize(&self, _: &Params) -> Result<(Raw, ClientHello), RpcError> {
        Err(RpcError::internal("internal error"))
    }

    #[cfg(feature = "sse-2024")]
    fn has_handshake(&self) -> bool {
        true
    }

    #[cfg(feature = "sse-2024")]
    fn connection(&self, _: HttpHead) -> Arc<dyn Serve> {
        Arc::new(Nothing)
    }

    fn session(
        &self,
        _: Option<SessionId>,
        _: Arc<ClientHello>,
        _: SessionRecord,
    ) -> Arc<dyn Session> {
        Arc::new(Nothing)
    }
}

impl Session for Nothing {
    fn record(&self) -> SessionRecord {
        SessionRecord::default()
    }
}

impl Serve for Nothing {
    fn serve(&self, _: Incoming, _: Replies) -> Reply {
        Reply::Never
    }

    fn note(&self, _: Note) {}

    fn answers(&self, _: &Fault) -> bool {
        false
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Buf,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = HttpFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> HttpFuture<B> {
        self.answer(request, &self.0.memory)
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("gate", &self.0.gate).finish_non_exhaustive()
    }
}
