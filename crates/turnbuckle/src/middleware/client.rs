//! Middleware of clients: the requests that a client sends, and those that it receives from
//! servers. See [`middleware`](super) for what middleware is.
//!
//! [`ClientBuilder::layer`](crate::ClientBuilder::layer) applies middleware to every call of every
//! method, in either era and on every transport: each page of a list, the opening of a
//! [`listen`](crate::Client::listen) stream, requests written by hand. The middleware that was
//! added first sees a call first. It does not see the requests that open a connection or keep it
//! alive. The opening of a stream is `subscriptions/listen` in either era; a legacy server is sent
//! `resources/subscribe` and later `resources/unsubscribe` instead, each of which passes
//! separately. A call that a modern server answers with input requests passes once, with all its
//! rounds.
//!
//! An [`Error`] of middleware is the error of the call. Any other error becomes the
//! source of one of kind [`Refused`](crate::ErrorKind::Refused). Dropping the future of a call
//! cancels it. A [`Request`] can be cloned and sent again, as tower's `Retry` does; each time is a
//! call of its own. Whether that is safe, the middleware has to know
//! ([`maybe_executed`](crate::Error::maybe_executed)). The final error says that the call may have
//! been executed if any of its attempts may have been.
//!
//! ```
//! use std::task::{Context, Poll};
//! use tower_service::Service;
//! use turnbuckle::{
//!     Client, Error, RpcError,
//!     middleware::{
//!         Response,
//!         client::{Next, Request},
//!     },
//! };
//!
//! /// Rejects every tool that deletes something, and adds the tenant to each call.
//! #[derive(Clone)]
//! struct Careful(Next);
//!
//! impl Service<Request> for Careful {
//!     type Response = Response;
//!     type Error = Error;
//!     type Future = <Next as Service<Request>>::Future;
//!
//!     fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
//!         self.0.poll_ready(context)
//!     }
//!
//!     fn call(&mut self, mut request: Request) -> Self::Future {
//!         if request.name().is_some_and(|name| name.starts_with("delete_")) {
//!             return Box::pin(async { Err(RpcError::invalid_params("not here").into()) });
//!         }
//!         request.meta_mut().insert("example.com/tenant", serde_json::json!("blue"));
//!         self.0.call(request)
//!     }
//! }
//!
//! let builder = Client::builder().layer(tower_layer::layer_fn(Careful));
//! # let _ = builder;
//! ```
//!
//! [`ClientBuilder::input_request_layer`](crate::ClientBuilder::input_request_layer) applies
//! middleware to the requests of servers (elicitation, sampling, roots).

use std::{
    borrow::Cow,
    error::Error as StdError,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use tracing::Instrument as _;
use turnbuckle_types::{Meta, Method, Raw, RequestId, Revision, RpcError};

use super::{
    BoxError, Metrics, Middleware, RequestKind, RequestOutcome, Response, Stack,
    observer::{CallSide, ObservedRequest, RequestObserver},
    request_target,
    sealed::Sealed,
    span,
    stack::NextFn,
};
use crate::{
    client::ClientBuilder,
    error::{Error, ErrorKind, Executed, Result, find},
    protocol::trace_context::TraceContext,
    rpc::BoxFuture,
};

/// A call on its way through the middleware of a client.
///
/// A clone is the same call once more: that is how tower's `Retry` repeats it. Each attempt has the
/// timeouts of the call, and its id if the caller chose one: two attempts at once are possible only
/// without one.
///
/// ```
/// use turnbuckle::middleware::client::Request;
/// fn is_call_of(request: &Request, tool: &str) -> bool {
///     request.method() == "tools/call" && request.name() == Some(tool)
/// }
/// # let _ = is_call_of;
/// ```
pub type Request = super::Request<OutgoingRequest>;

/// The service inside of a client's middleware.
pub type Next = super::Next<OutgoingRequest>;

/// A request of a server on its way through the middleware of
/// [`ClientBuilder::input_request_layer`](crate::ClientBuilder::input_request_layer). The method is
/// `elicitation/create`, `sampling/createMessage`, `roots/list`, or one of the server's own.
///
/// ```
/// use turnbuckle::middleware::client::InputRequest;
/// fn costs_money(request: &InputRequest) -> bool {
///     request.method() == "sampling/createMessage"
/// }
/// # let _ = costs_money;
/// ```
pub type InputRequest = super::Request<IncomingInput>;

/// The service inside of middleware for input requests.
pub type InputNext = super::Next<IncomingInput>;

/// Marks requests that a client sends: see [`Request`].
#[derive(Clone)]
pub struct OutgoingRequest {
    /// Whether middleware has replaced the caller's params.
    has_new_params: bool,
    meta: Meta,
    #[cfg(feature = "http")]
    headers: Headers,
    revision: Revision,
    /// Whether any attempt was passed on.
    passed_on: Arc<AtomicBool>,
}

/// Marks requests that a client receives from a server: see [`InputRequest`].
#[derive(Debug)]
pub struct IncomingInput {
    revision: Revision,
}

#[cfg(feature = "http")]
type Headers = Vec<(http::HeaderName, http::HeaderValue)>;

impl Request {
    /// Replaces the params, which have to be an object without `_meta`: see
    /// [`meta_mut`](Request::meta_mut).
    pub fn set_params(&mut self, params: impl Into<Raw>) -> Result<()> {
        let params = params.into();
        let fits = turnbuckle_types::jsonrpc::Params::of(params.clone());
        if !params.is_object() || fits.is_ok_and(|params| params.meta.is_some()) {
            let message = "the params of a call must be an object without `_meta`; use `meta_mut`";
            return Err(Error::new(ErrorKind::Codec, message));
        }
        self.name = request_target(self.known_method(), params.as_str());
        self.params = params;
        self.kind.has_new_params = true;
        Ok(())
    }

    /// Returns the caller's part of `_meta`, without what the protocol adds.
    pub fn meta(&self) -> &Meta {
        &self.kind.meta
    }

    /// Returns the caller's part of `_meta`, to be changed.
    pub fn meta_mut(&mut self) -> &mut Meta {
        &mut self.kind.meta
    }

    /// Returns a header that the caller, or middleware further out, has added to this call.
    #[cfg(feature = "http")]
    pub fn header(&self, name: &str) -> Option<&http::HeaderValue> {
        let mut found = self.kind.headers.iter().rev().filter(|(own, _)| own.as_str() == name);
        found.next().map(|(_, value)| value)
    }

    /// Sets a header of this call, for transports that have headers.
    #[cfg(feature = "http")]
    pub fn set_header(&mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Result<()> {
        let (name, value) = crate::client::http::own_header(name.as_ref(), value.as_ref())?;
        self.kind.headers.retain(|(own, _)| *own != name);
        self.kind.headers.push((name, value));
        Ok(())
    }

    /// Returns the revision of the connection.
    pub fn revision(&self) -> Revision {
        self.kind.revision
    }

    /// The params, if middleware has replaced the caller's.
    pub(crate) fn new_params(&self) -> Option<&Raw> {
        Some(&self.params).filter(|_| self.kind.has_new_params)
    }

    #[cfg(feature = "http")]
    pub(crate) fn take_headers(&mut self) -> Headers {
        std::mem::take(&mut self.kind.headers)
    }
}

impl fmt::Debug for OutgoingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `_meta` and headers may hold secrets.
        f.debug_struct("OutgoingRequest").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl Sealed for OutgoingRequest {}

impl RequestKind for OutgoingRequest {
    type Error = Error;

    fn on_error(request: &Request) -> impl FnOnce(BoxError) -> Result<Response> + Send + 'static {
        let (method, passed_on) = (request.method.clone(), request.kind.passed_on.clone());
        move |error| {
            let executed = if passed_on.load(Relaxed) { Executed::Maybe } else { Executed::No };
            Err(match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(error) => Error::of_middleware(&method, error, executed),
            })
        }
    }

    fn proceed(
        request: Request,
        rest: NextFn<OutgoingRequest>,
    ) -> BoxFuture<'static, Result<Response>> {
        Box::pin(async move {
            request.kind.passed_on.store(true, Relaxed);
            rest(request).await
        })
    }
}

impl InputRequest {
    /// Returns the revision of the connection. In the modern era the request is part of the answer
    /// to a call.
    pub fn revision(&self) -> Revision {
        self.kind.revision
    }
}

impl Sealed for IncomingInput {}

impl RequestKind for IncomingInput {
    type Error = RpcError;

    fn on_error(
        request: &InputRequest,
    ) -> impl FnOnce(BoxError) -> Result<Response, RpcError> + Send + 'static {
        let method = request.method.clone();
        move |error| {
            if let Some(error) = find::<RpcError>(&*error) {
                return Err(error.clone());
            }
            tracing::error!(%method, error = &*error as &dyn StdError, "middleware failed");
            Err(RpcError::internal("internal error"))
        }
    }
}

impl Stack<IncomingInput> {
    /// Passes a request of a server through the middleware to the callback behind `answer`.
    pub(crate) fn answer(
        &self,
        method: &str,
        params: Option<Raw>,
        revision: Revision,
        answer: BoxFuture<'static, Result<Raw, RpcError>>,
    ) -> BoxFuture<'static, Result<Raw, RpcError>> {
        if self.is_empty() {
            return answer;
        }
        let request = InputRequest::new(method.into(), None, params, IncomingInput { revision });
        let answered = self.run(request, |_| Box::pin(async { answer.await.map(Response::new) }));
        Box::pin(async { answered.await.map(Response::into_result) })
    }
}

/// The middleware of a client.
#[derive(Clone, Default)]
pub(crate) struct ClientMiddleware {
    calls: Stack<OutgoingRequest>,
    metrics: Option<Arc<dyn Metrics>>,
    trace: Option<Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>>,
}

impl ClientBuilder {
    /// Adds middleware for every call: see [`middleware::client`](crate::middleware::client). The
    /// middleware that is added first sees a call first.
    pub fn layer(mut self, middleware: impl Middleware<OutgoingRequest>) -> ClientBuilder {
        self.middleware.calls.push(middleware);
        self
    }

    /// Adds middleware for every request of a server (elicitation, sampling, roots), in both eras.
    /// A request that it does not pass on does not reach a callback. An
    /// [`RpcError`](crate::RpcError) of the middleware is the answer to the server; any other error
    /// is logged and reported as `internal error`. The middleware that is added first sees a
    /// request first.
    pub fn input_request_layer(
        mut self,
        middleware: impl Middleware<IncomingInput>,
    ) -> ClientBuilder {
        self.callbacks.middleware.push(middleware);
        self
    }

    /// Sets the receiver of metrics: the start and the end of every call. A call that is dropped
    /// ends as cancelled. Calling this again replaces the receiver.
    pub fn metrics(mut self, metrics: impl Metrics) -> ClientBuilder {
        self.middleware.metrics = Some(Arc::new(metrics));
        self
    }

    /// Sets the source of trace contexts. It is called for each call, inside its span, and the
    /// context is sent in `_meta` as `traceparent`, `tracestate` and `baggage`. A call that has a
    /// trace context ([`Call::trace`](crate::Call::trace)) keeps it.
    ///
    /// ```
    /// use turnbuckle::{Client, TraceContext};
    /// fn of_my_tracing_system() -> Option<TraceContext> {
    ///     let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01".parse().ok()?;
    ///     Some(TraceContext::new(parent))
    /// }
    /// let builder = Client::builder().trace_context(of_my_tracing_system);
    /// # let _ = builder;
    /// ```
    pub fn trace_context(
        mut self,
        source: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) -> ClientBuilder {
        self.middleware.trace = Some(Arc::new(source));
        self
    }
}

/// A call before it passes the middleware.
pub(crate) struct NewCall {
    pub(crate) method: Cow<'static, str>,
    /// The text of an object, or empty for none.
    pub(crate) params: String,
    pub(crate) meta: Meta,
    #[cfg(feature = "http")]
    pub(crate) headers: Headers,
    pub(crate) id: Option<RequestId>,
    pub(crate) revision: Revision,
    pub(crate) is_http: bool,
}

/// A call that has passed the middleware.
pub(crate) enum Passed<V> {
    /// Nothing has changed the server's answer: the value that it was decoded into.
    Unchanged(V),
    /// The answer of middleware.
    Replaced(Raw),
}

impl ClientMiddleware {
    /// Whether there is any, or anything observes calls. This is all that a call costs if not.
    pub(crate) fn is_active(&self) -> bool {
        !self.calls.is_empty()
            || self.metrics.is_some()
            || self.trace.is_some()
            || span::wanted(CallSide::Client)
    }

    /// Passes a call through the middleware to `send`, which returns the decoded answer of the
    /// server and its text. Middleware may reach `send` several times. Dropping the future cancels
    /// the call.
    pub(crate) async fn send<V, F>(
        &self,
        mut call: NewCall,
        send: impl Fn(Request) -> F + Send + Sync + 'static,
    ) -> Result<Passed<V>>
    where
        V: Send + 'static,
        F: Future<Output = Result<(V, Raw)>> + Send + 'static,
    {
        let method = Method::from_name(&call.method);
        let name = request_target(method, &call.params);
        let trace = TraceContext::from_meta(&call.meta);
        let observed = ObservedRequest {
            side: CallSide::Client,
            method,
            name: name.as_deref(),
            id: call.id.as_ref(),
            revision: call.revision,
            is_http: call.is_http,
            trace: &trace,
            bytes_in: call.params.len(),
        };
        let observer = RequestObserver::start(&observed, self.metrics.clone());
        let span = observer.span().clone();
        let sending = async move {
            if let Some(source) = self.trace.as_ref().filter(|_| trace.is_empty())
                && let Some(trace) = source()
            {
                trace.write_to(&mut call.meta);
            }
            let passed = self.pass(call.into_request(name), send).await;
            observer.finish(|| match &passed {
                Ok((_, raw)) => (RequestOutcome::of_call(Ok(raw)), raw.as_str().len()),
                Err(error) => (RequestOutcome::of_call(Err(error)), 0),
            });
            passed.map(|(passed, _)| passed)
        };
        sending.instrument(span).await
    }

    async fn pass<V, F>(
        &self,
        request: Request,
        send: impl Fn(Request) -> F + Send + Sync + 'static,
    ) -> Result<(Passed<V>, Raw)>
    where
        V: Send + 'static,
        F: Future<Output = Result<(V, Raw)>> + Send + 'static,
    {
        if self.calls.is_empty() {
            return send(request).await.map(|(value, raw)| (Passed::Unchanged(value), raw));
        }
        let attempts = Arc::<CallAttempts<V>>::default();
        let own = attempts.clone();
        let answered = self.calls.run_repeatable(request, move |request| {
            let attempt = CallAttempt { attempts: own.clone(), maybe_executed: true };
            Box::pin(attempt.run(send(request)))
        });
        let answered = answered.await;
        let result = answered.map_err(|error| attempts.amend(error))?.into_result();
        let last = attempts.last().take();
        Ok(match last {
            Some((value, raw)) if raw == result => (Passed::Unchanged(value), result),
            _ => (Passed::Replaced(result.clone()), result),
        })
    }
}

impl NewCall {
    fn into_request(self, name: Option<String>) -> Request {
        let method = match self.method {
            Cow::Borrowed(method) => method.into(),
            Cow::Owned(method) => method.into(),
        };
        let params = Some(self.params).filter(|params| !params.is_empty());
        let kind = OutgoingRequest {
            has_new_params: false,
            meta: self.meta,
            #[cfg(feature = "http")]
            headers: self.headers,
            revision: self.revision,
            passed_on: Arc::default(),
        };
        // The text is what a call has encoded, so it is valid.
        let params = params.and_then(|text| Raw::from_encoded(text.into_bytes()));
        Request::new(method, name, params, kind)
    }
}

/// The attempts at one call. Middleware may make none, or several.
struct CallAttempts<V> {
    /// The last answer, decoded and as text. Middleware sees the text; the decoded answer is used
    /// if the text comes back unchanged.
    last: Mutex<Option<(V, Raw)>>,
    /// Whether any attempt may have been executed.
    maybe_executed: AtomicBool,
}

impl<V> Default for CallAttempts<V> {
    fn default() -> CallAttempts<V> {
        CallAttempts { last: Mutex::default(), maybe_executed: AtomicBool::default() }
    }
}

impl<V> CallAttempts<V> {
    fn last(&self) -> MutexGuard<'_, Option<(V, Raw)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the final error say whether any attempt may have been executed.
    fn amend(&self, error: Error) -> Error {
        if self.maybe_executed.load(Relaxed) && !error.maybe_executed() {
            return error.with_executed(Executed::Maybe);
        }
        error
    }
}

/// One attempt. If it is dropped before its end, it may have been executed.
struct CallAttempt<V> {
    attempts: Arc<CallAttempts<V>>,
    maybe_executed: bool,
}

impl<V> CallAttempt<V> {
    async fn run(mut self, sending: impl Future<Output = Result<(V, Raw)>>) -> Result<Response> {
        let (value, raw) = sending.await.inspect_err(|error| {
            self.maybe_executed = error.maybe_executed();
        })?;
        let response = Response::new(raw.clone());
        let before = self.attempts.last().replace((value, raw));
        // Outside of the lock: it may be a stream, which ends when it is dropped.
        drop(before);
        Ok(response)
    }
}

impl<V> Drop for CallAttempt<V> {
    fn drop(&mut self) {
        if self.maybe_executed {
            self.attempts.maybe_executed.store(true, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_says_whether_any_attempt_may_have_been_executed() {
        let attempts = Arc::<CallAttempts<u32>>::default();
        let attempt = || CallAttempt { attempts: attempts.clone(), maybe_executed: true };
        let maybe_executed = || attempts.amend(Error::refused("no")).maybe_executed();
        let refused = attempt().run(async { Err(Error::refused("not sent")) }).await;
        assert!(refused.is_err() && !maybe_executed());
        drop(attempt().run(std::future::pending()));
        assert!(maybe_executed(), "it was dropped on its way");
        let sent = attempt().run(async { Ok((7, Raw::empty_object())) }).await;
        let last = attempts.last().take();
        assert!(sent.is_ok() && last.is_some_and(|(value, _)| value == 7));
    }
}
