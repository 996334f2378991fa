//! The server side of HTTP with server-sent events: a service that opens event streams and takes
//! the messages that are posted for them.

mod session;
mod stream;

use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{
    error::{Error, Result},
    principal::Principal,
    rpc::{BoxFuture, HttpHead},
    transport::http::server::{
        HttpBody, HttpService, ServingHttp, SideEndpoint, receive::Discarding, security::front,
    },
};
use bytes::{Buf, Bytes};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, request, uri::PathAndQuery};
use http_body::Body;
use hyper::body::Incoming;
use memchr::memchr2;
use session::{Full, Posted, SseSession, SseSessions};
use turnbuckle_types::{RpcError, jsonrpc};

/// How many sessions may be open at once by default.
const SESSIONS: usize = 1000;
/// The parameter of the query that names a session.
const PARAMETER: &str = "sessionId=";

/// A service for clients that only know the transport of revision 2024-11-05, HTTP with
/// server-sent events, to be mounted beside the endpoint that all other clients use.
///
/// A GET opens a stream of events. Its first event names the address to post messages to: the path
/// of this service with the id of the session. So both are requests to this service, and it must be
/// mounted at that path, as clients see it. The session ends with its stream.
///
/// It serves the same hosts and origins as the [`HttpService`] that it is created from. A session
/// accepts messages only from the [`Principal`] that opened it.
///
/// ```
/// use turnbuckle::Server;
/// let endpoint = Server::new("demo", "1.0").http_service().public_host("mcp.example.com");
/// let app: axum::Router = axum::Router::new()
///     .route_service("/sse", endpoint.sse_service("/sse"))
///     .nest_service("/mcp", endpoint);
/// # let _ = app;
/// ```
///
/// It needs the tokio runtime with its timers.
#[derive(Clone)]
pub struct SseService(Arc<SseRoute>);

#[derive(Clone)]
struct SseRoute {
    service: HttpService,
    problem: Option<String>,
    path: String,
    sessions: Arc<SseSessions>,
    most: usize,
}

impl HttpService {
    /// Returns a service for clients that only know the transport of revision 2024-11-05, HTTP
    /// with server-sent events, for the same hosts and origins. `path` is where the returned
    /// service is mounted, as clients see it. The transport carries every legacy revision that
    /// the server serves.
    ///
    /// If the server has a problem, so has the service: see [`SseService::check`].
    pub fn sse_service(&self, path: impl Into<String>) -> SseService {
        SseService::new(self.clone(), path.into())
    }
}

impl ServingHttp {
    /// Also serves clients that only know the transport of revision 2024-11-05, HTTP with
    /// server-sent events, at this path; see [`HttpService::sse_service`].
    ///
    /// ```no_run
    /// # async fn serve(server: turnbuckle::Server) -> turnbuckle::Result<()> {
    /// server.serve_http("127.0.0.1:8080").with_sse("/sse").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_sse(self, path: impl Into<String>) -> ServingHttp {
        let path = path.into();
        self.with_side(Box::new(move |service| Arc::new(service.sse_service(path))))
    }
}

impl SideEndpoint for SseService {
    fn path(&self) -> &str {
        &self.0.path
    }

    fn check(&self) -> Result<()> {
        SseService::check(self)
    }

    fn respond(&self, request: Request<Incoming>) -> BoxFuture<'static, Response<HttpBody>> {
        let future = self.answer(request);
        Box::pin(async move { future.await.unwrap_or_else(|never| match never {}) })
    }

    fn drain(&self) {
        self.shutdown();
    }

    fn end(&self) {
        self.0.sessions.end();
    }

    fn ended(&self) -> (u64, u64) {
        self.0.sessions.ended()
    }
}

impl SseService {
    fn new(service: HttpService, path: String) -> SseService {
        let problem = if service.host().has_handshake() {
            path_problem(&path)
        } else {
            Some(MODERN.to_owned())
        };
        let sessions = Arc::default();
        SseService(Arc::new(SseRoute { service, problem, path, sessions, most: SESSIONS }))
    }

    /// Sets how many sessions may be open at once, 1,000 by default. One more is refused with
    /// status 503.
    #[must_use]
    pub fn sessions(mut self, most: usize) -> SseService {
        Arc::make_mut(&mut self.0).most = most;
        self
    }

    /// Checks the configuration: the server's tools, revisions, hosts, origins and the path. A
    /// service with a problem answers every request with status 500.
    pub fn check(&self) -> Result<()> {
        match self.0.problem() {
            Some(problem) => Err(Error::refused(problem.to_owned())),
            None => Ok(()),
        }
    }

    /// Ends every session as soon as nothing runs in it and refuses new ones, for all clones of the
    /// service.
    pub fn shutdown(&self) {
        self.0.sessions.drain();
    }

    fn answer<B>(&self, request: Request<B>) -> SseFuture
    where
        B: Body + Send + 'static,
    {
        let route = &self.0;
        if route.problem().is_some() {
            tracing::error!(problem = route.problem(), "this server can't serve");
            let error = RpcError::internal("internal error");
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return SseFuture::ready(front::refused(status, &error));
        }
        let (head, body) = request.into_parts();
        let sharing = route.service.cors_headers(&head.headers);
        let future = match (route.service.refuse_head(&head), route.service.protection()) {
            (Some(refused), _) => SseFuture::ready(refused),
            (None, None) => route.admit(&head, body),
            (None, Some(protection)) => match protection.metadata(&head.method, &head.uri) {
                Some(metadata) => SseFuture::ready(metadata),
                None => {
                    let otherwise = Discarding::new(&head.headers);
                    let check = protection.check(head);
                    SseFuture::later(checked(route.clone(), check, body, otherwise))
                }
            },
        };
        SseFuture { sharing, ..future }
    }
}

/// Answers someone once it is known that they are let in. Nothing is read before.
async fn checked<B>(
    route: Arc<SseRoute>,
    check: BoxFuture<'static, Result<request::Parts, Response<HttpBody>>>,
    body: B,
    mut otherwise: Discarding,
) -> Response<HttpBody>
where
    B: Body + Send + 'static,
{
    match check.await {
        Ok(head) => route.admit(&head, body).response.await,
        Err(refused) => {
            let mut body = std::pin::pin!(body);
            poll_fn(|context| otherwise.poll(body.as_mut(), context)).await;
            refused
        }
    }
}

impl SseRoute {
    fn problem(&self) -> Option<&str> {
        self.service.problem().or(self.problem.as_deref())
    }

    /// Answers someone who was let in.
    fn admit<B>(self: &Arc<Self>, head: &request::Parts, body: B) -> SseFuture
    where
        B: Body + Send + 'static,
    {
        if head.method == Method::GET {
            let opened = self.open(head);
            return SseFuture::ready(match self.service.protection() {
                Some(protection) => protection.stream_until_expiry(&head.extensions, opened),
                None => opened,
            });
        }
        match self.find(head) {
            Ok(session) => {
                let head = Arc::new(as_head(head));
                SseFuture::later(post(self.clone(), session, head, body))
            }
            Err((status, why)) => {
                SseFuture::ready(front::refused(status, &RpcError::invalid_request(why)))
            }
        }
    }

    /// Opens a session. The answer's body is its stream.
    fn open(&self, head: &request::Parts) -> Response<HttpBody> {
        let (id, session, inbox) = match self.sessions.open(owner(head), self.most) {
            Ok(opened) => opened,
            Err(full) => {
                let message = match full {
                    Full::Closed => "server is shutting down".to_owned(),
                    Full::Most => {
                        format!("too many sessions are open: the limit is {} (sessions)", self.most)
                    }
                };
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return front::refused(status, &RpcError::internal(message));
            }
        };
        let endpoint = format!("{}?{PARAMETER}{id}", self.path);
        let place = self.sessions.place(id);
        let limits = self.service.limits();
        let connection = self.service.host().connection(as_head(head));
        let sessions = self.sessions.clone();
        let serve = session::Attended::new(connection, session, sessions, limits.http_in_flight);
        front::events(stream::open(
            &endpoint,
            place,
            inbox,
            Arc::new(serve),
            limits.clone(),
            self.service.keep_alive_window(),
        ))
    }

    /// The session that something is posted to. Someone else's is not told from one that is not.
    fn find(&self, head: &request::Parts) -> Result<Arc<SseSession>, (StatusCode, &'static str)> {
        let id = session_of(&head.uri).ok_or((StatusCode::BAD_REQUEST, MISSING))?;
        self.sessions.find(id, owner(head).as_ref()).ok_or((StatusCode::NOT_FOUND, GONE))
    }
}

const MISSING: &str = "the session is missing: open the stream with GET, and post to where its \
                       first event says";
const MODERN: &str = "HTTP with server-sent events carries the revisions until 2025-11-25, and this \
                      server serves none of them";
const GONE: &str = "there is no such session: it ends with its stream";

/// Takes a message to its session; waits while that has not taken those before.
async fn post<B: Body>(
    route: Arc<SseRoute>,
    session: Arc<SseSession>,
    head: Arc<HttpHead>,
    body: B,
) -> Response<HttpBody> {
    let text = match route.service.receive(body).await {
        Ok(text) => text,
        Err(refused) => return refused,
    };
    match jsonrpc::parse(text.clone(), route.service.limits().json_depth) {
        // What names a request is answered on the stream, as everything is that is right.
        Err(fault) if fault.id.is_none() => {
            return front::refused(StatusCode::BAD_REQUEST, &fault.error);
        }
        Err(_) => {}
        Ok(message) => {
            let protection = route.service.protection();
            let refused = protection.and_then(|it| it.refuse(&head, &message));
            if let Some(refused) = refused {
                return refused;
            }
        }
    }
    // Whoever reads it on counts on there being none.
    let text = without_line_breaks(text);
    match session.take_in(Posted { message: text, head }).await {
        Ok(()) => front::accepted(),
        Err(_) => front::refused(StatusCode::NOT_FOUND, &RpcError::invalid_request(GONE)),
    }
}

/// Between the parts of a message a line break is a space, and within a text there is none: one that can
/// be read stays the same message.
fn without_line_breaks(text: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let space = |byte: u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
    text.iter().copied().map(space).collect()
}

fn as_head(parts: &request::Parts) -> HttpHead {
    HttpHead { headers: parts.headers.clone(), extensions: parts.extensions.clone() }
}

fn owner(head: &request::Parts) -> Option<Principal> {
    head.extensions.get::<Principal>().cloned()
}

fn session_of(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|parameter| parameter.strip_prefix(PARAMETER))
}

/// What is wrong with a path that clients are told.
fn path_problem(path: &str) -> Option<String> {
    let wrong = if !path.starts_with('/') {
        "it must begin with a slash"
    } else if path.starts_with("//") {
        "two slashes would begin with a host"
    } else if path.contains(['?', '#']) || path.parse::<PathAndQuery>().is_err() {
        "it must be the path of a URL, and no more"
    } else {
        return None;
    };
    Some(format!("the path `{path}` of the event stream can't be served: {wrong}"))
}

impl<B> tower_service::Service<Request<B>> for SseService
where
    B: Body + Send + 'static,
    B::Data: Buf,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = SseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> SseFuture {
        self.answer(request)
    }
}

impl fmt::Debug for SseService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseService").field("path", &self.0.path).finish_non_exhaustive()
    }
}

/// The answer to one HTTP request to an [`SseService`]. Dropping it before a message was taken in
/// drops the message.
///
/// ```
/// fn is_a_future(future: turnbuckle::http::SseFuture) -> impl Future + Send {
///     future
/// }
/// # let _ = is_a_future;
/// ```
#[must_use = "nothing is served until this is polled"]
pub struct SseFuture {
    response: BoxFuture<'static, Response<HttpBody>>,
    /// What the answer gets besides, where pages may read answers.
    sharing: Option<Box<HeaderMap>>,
}

impl SseFuture {
    fn ready(response: Response<HttpBody>) -> SseFuture {
        SseFuture::later(std::future::ready(response))
    }

    fn later(response: impl Future<Output = Response<HttpBody>> + Send + 'static) -> SseFuture {
        SseFuture { response: Box::pin(response), sharing: None }
    }
}

impl Future for SseFuture {
    type Output = Result<Response<HttpBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = std::task::ready!(self.response.as_mut().poll(context));
        if let Some(headers) = self.sharing.take() {
            response.headers_mut().extend(*headers);
        }
        Poll::Ready(Ok(response))
    }
}

impl fmt::Debug for SseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseFuture").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_that_clients_can_be_told() {
        for good in ["/", "/sse", "/a/b-c", "/with%20space"] {
            assert_eq!(path_problem(good), None, "{good}");
        }
        for bad in ["", "sse", "//evil.example", "/a?b", "/a#b", "/a b", "/a\nb"] {
            assert!(path_problem(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn the_session_is_found_wherever_it_stands_in_the_query() {
        let of = |uri: &'static str| session_of(&Uri::from_static(uri)).map(str::to_owned);
        assert_eq!(of("/sse?sessionId=abc").as_deref(), Some("abc"));
        assert_eq!(of("/sse?a=b&sessionId=abc&c").as_deref(), Some("abc"));
        assert_eq!(of("http://localhost/sse?sessionId=").as_deref(), Some(""));
        assert_eq!(of("/sse?xsessionId=abc"), None);
        assert_eq!(of("/sse"), None);
    }
}
