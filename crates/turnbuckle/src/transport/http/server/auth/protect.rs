//! Owns how an endpoint that does not let everyone in treats requests: who comes is found out before
//! anything is read, and what a message needs before anything runs. Does not own how tokens are
//! checked, nor what an offer needs.

use std::{
    convert::Infallible,
    fmt,
    future::{Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use crate::{
    principal::Principal,
    rpc::{BoxFuture, HttpHead, Outcome},
    transport::http::server::{HttpBody, answer, future::Check},
};
use bytes::Bytes;
use http::{
    Extensions, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE,
    },
    request,
};
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};
use turnbuckle_auth::{
    Scopes,
    resource_server::{Caller, Denied, Identity, ResourceServer},
};
use turnbuckle_types::{
    RpcError,
    jsonrpc::{self, Message, Params},
};

/// The proof that a token's key is there: worth nothing to anyone else, and not theirs to see.
const PROOF: HeaderName = HeaderName::from_static("dpop");

/// No more than these are served of one batch.
const MOST_OF_A_BATCH: usize = 1000;

/// How long a stream may last whose token is good for ever: whether it still is, is asked again then.
const LONGEST_STREAM: Duration = Duration::from_secs(60 * 60);

/// What a stream ends with whose client must show another token.
const EXPIRED: &str = "the token has expired: get another one, and listen again";

/// What stands before an endpoint that does not let everyone in.
#[derive(Clone)]
pub(crate) struct Protection {
    server: Arc<ResourceServer>,
    needs: Arc<dyn Needs>,
}

/// Knows what a request needs.
pub(crate) trait Needs: Send + Sync {
    /// What the token must be good for, besides what everything needs. Must not wait.
    fn needs(&self, method: &str, params: &Params) -> Scopes;
    /// Whether it is about something that this sender may not know of, whatever their token is good
    /// for. Must not wait.
    fn hides(&self, method: &str, params: &Params, sender: &Arc<HttpHead>) -> bool;
}

impl Protection {
    pub(crate) fn new(server: ResourceServer, needs: Arc<dyn Needs>) -> Protection {
        Protection { server: Arc::new(server), needs }
    }

    /// Finds out who comes. What is given back says so, and has no token any more. Dropping the
    /// future gives it up.
    pub(crate) fn check(&self, mut head: request::Parts) -> Check {
        let server = self.server.clone();
        Box::pin(async move {
            let (identity, caller) = server.admit(&head).await.map_err(refused)?;
            head.headers.remove(AUTHORIZATION);
            head.headers.remove(PROOF);
            head.extensions.insert(Granted::These(identity.scopes.clone()));
            head.extensions.insert(Sender(caller));
            // A subject means nothing without its issuer.
            let name = format!("{}|{}", identity.issuer, identity.subject);
            Principal::new(name).with_claims(identity).attach(&mut head.extensions);
            Ok(head)
        })
    }

    /// The answer to a message that needs more than its sender's token is good for. What is hidden
    /// from them for another reason is left to be answered as if it were not there.
    pub(crate) fn refuse(
        &self,
        sender: &Arc<HttpHead>,
        message: &Message,
    ) -> Option<Response<HttpBody>> {
        let granted = sender.extensions.get::<Granted>();
        let (mut needed, mut is_lacking) = (Scopes::none(), false);
        let mut add = |frame: &jsonrpc::Frame| {
            let jsonrpc::Frame::Request(jsonrpc::Request { method, params, .. }) = frame else {
                return;
            };
            let more = self.needs.needs(method, params);
            if more.is_empty() {
                return;
            }
            let is_covered = granted.is_some_and(|granted| granted.covers(&more));
            if is_covered || !self.needs.hides(method, params, sender) {
                needed = needed.union(&more);
                is_lacking |= !is_covered;
            }
        };
        match message {
            Message::Single(frame) => add(frame),
            // All of it or nothing: one answer has one status.
            Message::Batch(frames) => {
                let requests = frames.iter().flatten();
                let requests = requests.filter(|frame| matches!(frame, jsonrpc::Frame::Request(_)));
                requests.take(MOST_OF_A_BATCH).for_each(add);
            }
        }
        // With what everything needs: the client asks for a token that is good for all of it.
        is_lacking.then(|| refused(self.server.insufficient(&needed.union(self.server.required()))))
    }

    /// Ends something that would go on for longer than its sender's token is good.
    pub(crate) fn until_expiry(
        &self,
        sender: &Extensions,
        running: BoxFuture<'static, Outcome>,
    ) -> BoxFuture<'static, Outcome> {
        let Some(left) = self.time_left(sender) else { return running };
        Box::pin(async move {
            tokio::select! {
                biased;
                outcome = running => outcome,
                () = sleep(left) => Err(RpcError::internal(EXPIRED)),
            }
        })
    }

    /// The same for a stream of events, which ends with a comment.
    pub(crate) fn stream_until_expiry(
        &self,
        sender: &Extensions,
        response: Response<HttpBody>,
    ) -> Response<HttpBody> {
        match self.time_left(sender) {
            Some(left) if response.status() == StatusCode::OK => response.map(|stream| {
                let until = Box::pin(sleep(left));
                HttpBody::other(Expiring { stream: Some(stream), until, is_within: false })
            }),
            _ => response,
        }
    }

    fn time_left(&self, sender: &Extensions) -> Option<Duration> {
        let principal = sender.get::<Principal<Identity>>()?;
        Some(self.server.time_left(principal.claims()).unwrap_or(LONGEST_STREAM))
    }

    /// What the server tells of itself, if that is what is asked for.
    pub(crate) fn metadata(&self, method: &Method, uri: &Uri) -> Option<Response<HttpBody>> {
        (uri.path() == self.server.metadata_path()).then(|| self.told(method))
    }

    fn told(&self, method: &Method) -> Response<HttpBody> {
        if *method == Method::OPTIONS {
            // Clients in pages say which revision they speak, and so their browsers ask first.
            let mut response = answer::empty(StatusCode::NO_CONTENT);
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
            return response;
        }
        if *method != Method::GET && *method != Method::HEAD {
            let mut response = answer::empty(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let mut response = Response::new(whole(self.server.metadata()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        // It is for everyone who wants to come in, pages among them.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        response
    }
}

fn refused(denied: Denied) -> Response<HttpBody> {
    denied.into_response().map(whole)
}

fn whole(bytes: Bytes) -> HttpBody {
    HttpBody::pieces([bytes, Bytes::new(), Bytes::new()])
}

/// What the token of a request's sender is good for.
#[derive(Clone)]
pub(crate) enum Granted {
    These(Scopes),
    /// So that nothing is hidden for want of a scope.
    Everything,
}

impl Granted {
    pub(crate) fn covers(&self, needed: &Scopes) -> bool {
        match self {
            Granted::These(scopes) => scopes.contains_all(needed),
            Granted::Everything => true,
        }
    }
}

/// Who sent a request, for whoever exchanges their token. The type is this crate's own, so that
/// nobody else finds it among what came with a request.
#[derive(Clone)]
pub(crate) struct Sender(pub(crate) Caller);

/// A stream that ends when its client's token does.
struct Expiring {
    /// `None` once it has ended.
    stream: Option<HttpBody>,
    until: Pin<Box<Sleep>>,
    /// Whether what was sent so far ends within an event.
    is_within: bool,
}

impl Body for Expiring {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else { return Poll::Ready(None) };
        if this.until.as_mut().poll(context).is_ready() {
            this.stream = None;
            // An event that is cut off is none; with this behind it, it would be one.
            let comment = || Ok(Frame::data(format!(": {EXPIRED}\n\n").into()));
            return Poll::Ready((!this.is_within).then(comment));
        }
        let frame = ready!(Pin::new(stream).poll_frame(context));
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            this.is_within = !data.ends_with(b"\n\n");
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.stream.as_ref().is_none_or(Body::is_end_stream)
    }
}

/// A service for what a protected server tells of itself: see
/// [`Server::metadata_service`](crate::Server::metadata_service). It answers GET at whatever path it
/// is mounted; [`path`](MetadataService::path) is where clients look.
///
/// ```
/// use turnbuckle::{Server, auth::resource_server::ResourceServer};
/// let server = Server::new("demo", "1.0").protect(
///     ResourceServer::new("https://mcp.example.com/mcp").issuer("https://auth.example.com"),
/// );
/// let path = "/.well-known/oauth-protected-resource/mcp";
/// assert_eq!(server.metadata_service().path(), path);
/// ```
#[derive(Clone)]
pub struct MetadataService(Option<Protection>);

impl MetadataService {
    pub(crate) fn new(protection: Option<Protection>) -> MetadataService {
        MetadataService(protection)
    }

    /// Where clients look for it, on the resource's own host.
    pub fn path(&self) -> &str {
        let path = self.0.as_ref().map(|protection| protection.server.metadata_path());
        path.unwrap_or("/.well-known/oauth-protected-resource")
    }
}

impl<B> tower_service::Service<Request<B>> for MetadataService {
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Ready<Result<Response<HttpBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(match &self.0 {
            Some(protection) => protection.told(request.method()),
            None => answer::empty(StatusCode::NOT_FOUND),
        }))
    }
}

impl fmt::Debug for MetadataService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataService").field("path", &self.path()).finish_non_exhaustive()
    }
}
