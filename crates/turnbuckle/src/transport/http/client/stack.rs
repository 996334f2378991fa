//! Owns how a request reaches a server: the pool of connections, or a service of the user's.
//! Does not own what the request says, nor how connections are made: `dial` makes them.

use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use tower_service::Service;

use super::{
    progress::SendProgress,
    timing::{PIECE, POOL_IDLE},
};
use crate::{
    error::{Error, ErrorKind, Executed},
    rpc::BoxFuture,
    transport::http::connect::{Connector, Dialing},
};
#[cfg(feature = "auth")]
use crate::{transport::http::connect::Allows, transport::http::connect::Via};

pub(crate) use crate::transport::http::connect::ConnectError;

/// What sends requests.
pub(crate) enum HttpSender {
    Pooled(Box<ConnectionPool>),
    /// A service of the user's.
    Own(Arc<dyn UserService>),
}

/// Connections of our own, and what makes more of them.
#[derive(Clone)]
pub(crate) struct ConnectionPool {
    client: legacy::Client<Connector, PostBody>,
    connector: Connector,
}

impl ConnectionPool {
    fn new(connector: Connector) -> Box<ConnectionPool> {
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .build(connector.clone());
        Box::new(ConnectionPool { client, connector })
    }
}

impl HttpSender {
    /// A pool of connections of our own. HTTP/2 where the server offers it.
    pub(crate) fn pooled(dialing: Dialing) -> crate::error::Result<HttpSender> {
        Ok(HttpSender::Pooled(ConnectionPool::new(Connector::new(dialing)?)))
    }

    /// The same way with connections of its own, so that nothing on the one waits for the
    /// other. A service of the user's is shared: its connections are its business.
    pub(crate) fn apart(&self) -> HttpSender {
        match self {
            HttpSender::Pooled(pool) => {
                HttpSender::Pooled(ConnectionPool::new(pool.connector.clone()))
            }
            HttpSender::Own(service) => {
                HttpSender::Own(service.apart().unwrap_or_else(|| service.clone()))
            }
        }
    }

    /// Connections of its own by another way, with the same TLS and only to addresses that
    /// `allows` allows. None if connections are a service's business.
    #[cfg(feature = "auth")]
    pub(crate) fn guarded(&self, via: Via, allows: Allows) -> Option<HttpSender> {
        match self {
            HttpSender::Pooled(pool) => {
                Some(HttpSender::Pooled(ConnectionPool::new(pool.connector.guarded(via, allows))))
            }
            HttpSender::Own(_) => None,
        }
    }

    /// The same way over the same connections.
    pub(crate) fn shared(&self) -> HttpSender {
        match self {
            HttpSender::Pooled(pool) => HttpSender::Pooled(pool.clone()),
            HttpSender::Own(service) => HttpSender::Own(service.clone()),
        }
    }

    /// Nothing is sent before the first poll of what this returns; dropping that closes it.
    pub(crate) fn send(&self, request: http::Request<PostBody>) -> PendingResponse {
        match self {
            HttpSender::Pooled(pool) => PendingResponse::Pooled(pool.client.request(request)),
            HttpSender::Own(service) => PendingResponse::Own(service.send(request)),
        }
    }
}

/// A user's service with its types forgotten.
pub(crate) trait UserService: Send + Sync {
    fn send(
        &self,
        request: http::Request<PostBody>,
    ) -> BoxFuture<'static, Result<http::Response<Body>, ConnectError>>;

    /// The same with connections of its own, if it has any.
    fn apart(&self) -> Option<Arc<dyn UserService>> {
        None
    }
}

/// Any service that takes our requests.
pub(crate) struct OwnService<S>(pub(crate) S);

impl<S, B> UserService for OwnService<S>
where
    S: Service<http::Request<PostBody>, Response = http::Response<B>>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<ConnectError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<ConnectError>,
{
    fn send(
        &self,
        request: http::Request<PostBody>,
    ) -> BoxFuture<'static, Result<http::Response<Body>, ConnectError>> {
        let mut service = self.0.clone();
        Box::pin(async move {
            std::future::poll_fn(|context| service.poll_ready(context))
                .await
                .map_err(Into::into)?;
            let response = service.call(request).await.map_err(Into::into)?;
            Ok(response.map(|body| Body::Own(Box::pin(OwnBody(Box::pin(body))))))
        })
    }
}

/// A request on its way, until the head of its response has come.
pub(crate) enum PendingResponse {
    Pooled(legacy::ResponseFuture),
    Own(BoxFuture<'static, Result<http::Response<Body>, ConnectError>>),
}

impl Future for PendingResponse {
    type Output = Result<http::Response<Body>, SendFailure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            PendingResponse::Pooled(sending) => Pin::new(sending)
                .poll(context)
                .map_ok(|response| response.map(Body::Pooled))
                .map_err(SendFailure::from_pool),
            PendingResponse::Own(sending) => {
                sending.as_mut().poll(context).map_err(SendFailure::from_own)
            }
        }
    }
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) struct SendFailure {
    executed: Executed,
    source: ConnectError,
}

impl SendFailure {
    fn from_pool(error: legacy::Error) -> SendFailure {
        let never_sent = error.is_connect()
            || error
                .source()
                .and_then(|source| source.downcast_ref::<hyper::Error>())
                .is_some_and(hyper::Error::is_canceled);
        let executed = if never_sent { Executed::No } else { Executed::Maybe };
        SendFailure { executed, source: error.into() }
    }

    /// Known to whoever is around the connections.
    #[cfg(feature = "auth")]
    pub(crate) fn of(error: Error) -> SendFailure {
        SendFailure { executed: Executed::No, source: error.into() }
    }

    /// What is around our own connections passes on what they failed with.
    fn from_own(source: ConnectError) -> SendFailure {
        match source.downcast() {
            Ok(failure) => *failure,
            Err(source) => SendFailure { executed: Executed::Maybe, source },
        }
    }

    /// The connection broke while the answer was being read.
    pub(crate) fn in_body(source: ConnectError) -> SendFailure {
        SendFailure { executed: Executed::Maybe, source }
    }

    /// As a caller is told, with where it was going.
    pub(crate) fn into_error(self, place: &str) -> Error {
        let source = match self.source.downcast::<Error>() {
            // Whoever is around the connections knows better what it means.
            Ok(error) => return *error,
            Err(source) => source,
        };
        let why = root(&*source);
        let message = match self.executed {
            Executed::No => format!("can't reach {place}: {why}"),
            _ => format!("the connection to {place} was lost: {why}"),
        };
        Error::new(ErrorKind::Closed, message).with_executed(self.executed).with_source(source)
    }
}

impl fmt::Display for SendFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&root(&*self.source))
    }
}

impl StdError for SendFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.source)
    }
}

/// The innermost cause: what went wrong, not who passed it on.
fn root(error: &(dyn StdError + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = inner(innermost) {
        innermost = source;
    }
    match innermost.downcast_ref() {
        // The first byte of an answer in plain text is no type that a record of TLS has.
        Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) => {
            format!("{innermost}; the server may speak plain http")
        }
        _ => innermost.to_string(),
    }
}

/// What an error comes from. An I/O error that was made of another passes itself over for that.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(made_of) => Some(made_of),
        None => error.source(),
    }
}

/// The body of a request: one message, whole, or nothing.
///
/// What a service of one's own is given to send.
#[derive(Clone)]
pub struct PostBody {
    rest: Option<Bytes>,
    /// Told how far it has come, where someone wants to know.
    progress: Option<Arc<SendProgress>>,
}

impl PostBody {
    pub(crate) fn new(message: Bytes) -> PostBody {
        PostBody { rest: Some(message), progress: None }
    }

    /// For a request that has none.
    pub(crate) fn empty() -> PostBody {
        PostBody { rest: None, progress: None }
    }

    /// Tells `progress` how far it has come.
    pub(crate) fn telling(self, progress: Option<Arc<SendProgress>>) -> PostBody {
        PostBody { progress, ..self }
    }

    /// Whether nobody waits for an answer to it.
    #[cfg(feature = "auth")]
    pub(crate) fn is_unwanted(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.is_unwanted())
    }

    /// The server refused it without running it, and it may be sent again. `false`: nobody waits for
    /// that.
    #[cfg(feature = "auth")]
    pub(crate) fn anew(&self) -> bool {
        self.progress.as_ref().is_none_or(|progress| progress.anew())
    }

    /// The message.
    pub fn into_bytes(self) -> Bytes {
        if let Some(progress) = &self.progress {
            if !progress.begin() {
                return Bytes::new();
            }
            progress.finish();
        }
        self.rest.unwrap_or_default()
    }
}

impl http_body::Body for PostBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(progress) = &self.progress
            && !progress.begin()
        {
            // Nobody waits for it any more. Whoever sends it is being dropped.
            return Poll::Pending;
        }
        let piece = match &mut self.rest {
            Some(rest) if rest.len() > PIECE => Some(rest.split_to(PIECE)),
            rest => rest.take(),
        };
        if let (Some(progress), None) = (&self.progress, &self.rest) {
            progress.finish();
        }
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.as_ref().map_or(0, |message| message.len() as u64))
    }
}

/// Messages are not for logs.
impl fmt::Debug for PostBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostBody").field("bytes", &self.size_hint().exact()).finish()
    }
}

/// The body of a response.
pub(crate) enum Body {
    Pooled(hyper::body::Incoming),
    Own(Pin<Box<dyn http_body::Body<Data = Bytes, Error = ConnectError> + Send>>),
}

impl Body {
    /// The next bytes; `None` at the end.
    pub(crate) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ConnectError>>> {
        loop {
            let frame = match self {
                Body::Pooled(body) => Pin::new(body)
                    .poll_frame(context)
                    .map_err(|error| Box::new(error) as ConnectError),
                Body::Own(body) => body.as_mut().poll_frame(context),
            };
            return match frame {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => Poll::Ready(Some(Ok(data))),
                    // Trailers say nothing here.
                    Err(_) => continue,
                },
            };
        }
    }
}

/// A user's body with its error forgotten.
struct OwnBody<B>(Pin<Box<B>>);

impl<B> http_body::Body for OwnBody<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<ConnectError>,
{
    type Data = Bytes;
    type Error = ConnectError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectError>>> {
        self.0.as_mut().poll_frame(context).map_err(Into::into)
    }
}
