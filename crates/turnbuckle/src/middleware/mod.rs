//! Middleware for servers and clients: [tower](https://docs.rs/tower) layers, metrics and spans.
//!
//! Any [`tower_layer::Layer`] whose service takes a [`Request`] and returns a [`Response`] is
//! [`Middleware`]; tower's own layers are too. There are four places for it:
//!
//! | Requests | Method | Types |
//! |---|---|---|
//! | that a server receives | `Server::layer`, also of groups, tools, prompts, resources and templates | `server::Request`, `server::Next` |
//! | that a handler sends to its client (elicitation, sampling, roots) | `Server::input_request_layer`, also of groups and the rest | `server::InputRequest`, `server::InputNext` |
//! | that a client sends | `ClientBuilder::layer` | `client::Request`, `client::Next` |
//! | that a client receives from a server | `ClientBuilder::input_request_layer` | `client::InputRequest`, `client::InputNext` |
//!
//! All four are one type, [`Request`], with a type parameter for what is known in that place. The
//! module of each side says which requests pass and what becomes of errors.
//!
//! [`Metrics`] count requests on either side. Requests that are handled and calls that are made
//! have `tracing` spans with the targets `turnbuckle::request` and `turnbuckle::call`.

#[cfg(feature = "client")]
pub mod client;
#[cfg(test)]
#[path = "../../tests/common/heard.rs"]
pub(crate) mod heard;
#[cfg(feature = "logs")]
mod log_forwarding;
mod metrics;
mod observer;
mod outcome;
#[cfg(feature = "server")]
pub mod server;
mod span;
mod stack;
#[cfg(feature = "server")]
mod task_context;

use std::{
    error::Error as StdError,
    fmt,
    marker::PhantomData,
    task::{Context, Poll},
};

use crate::rpc::BoxFuture;
use serde::de::DeserializeOwned;
use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_types::{Method, Raw, jsonrpc::Text};

pub use crate::protocol::trace_context::{InvalidTraceParent, TraceParent};
#[cfg(feature = "logs")]
pub use log_forwarding::ForwardLogs;
pub use metrics::{Metrics, RequestFinished, RequestStarted};
pub use outcome::RequestOutcome;

pub(crate) use stack::Stack;
#[cfg(feature = "server")]
pub(crate) use task_context::TaskContext;

use stack::NextFn;

/// An error of any type, as tower's own layers have it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A request on its way through middleware. `K` is the place of the middleware and has what is
/// known there: see `server::Request`, `server::InputRequest`, `client::Request` and
/// `client::InputRequest`.
pub struct Request<K: RequestKind> {
    method: Text,
    name: Option<String>,
    params: Raw,
    kind: K,
    /// The middleware further in, and the end of the stack.
    rest: Option<NextFn<K>>,
}

impl<K: RequestKind> Request<K> {
    pub(crate) fn new(method: Text, name: Option<String>, params: Option<Raw>, kind: K) -> Self {
        let params = params.unwrap_or_else(Raw::empty_object);
        Request { method, name, params, kind, rest: None }
    }

    /// Returns the method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the name of the tool or prompt, or the URI of the resource, that the request is
    /// about.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the params; `{}` if there are none. On a client they are without what the protocol
    /// adds to them.
    pub fn params(&self) -> &Raw {
        &self.params
    }

    fn known_method(&self) -> Option<Method> {
        Method::from_name(&self.method)
    }
}

impl<K: RequestKind + Clone> Clone for Request<K> {
    fn clone(&self) -> Self {
        let Request { method, name, params, kind, rest } = self;
        Request {
            method: method.clone(),
            name: name.clone(),
            params: params.clone(),
            kind: kind.clone(),
            rest: rest.clone(),
        }
    }
}

impl<K: RequestKind> fmt::Debug for Request<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The result of a request.
///
/// ```
/// use turnbuckle::middleware::Response;
/// let response = Response::new(serde_json::json!({"content": []}));
/// assert_eq!(response.result().as_str(), r#"{"content":[]}"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    result: Raw,
}

impl Response {
    /// Creates a response from a result in the form of the request's revision, for middleware that
    /// answers a request itself.
    pub fn new(result: impl Into<Raw>) -> Response {
        Response { result: result.into() }
    }

    /// Returns the result as JSON.
    pub fn result(&self) -> &Raw {
        &self.result
    }

    /// Converts the response into its result as JSON.
    pub fn into_result(self) -> Raw {
        self.result
    }

    /// Decodes the result, for example as one of [`types`](crate::types).
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        self.result.decode()
    }
}

/// The service inside of a middleware: the middleware further in, then the handler, the server or
/// the client that answers. It is always ready and cheap to clone. Dropping its future cancels the
/// request.
pub struct Next<K>(PhantomData<fn(K)>);

impl<K: RequestKind> Service<Request<K>> for Next<K> {
    type Response = Response;
    type Error = K::Error;
    type Future = BoxFuture<'static, Result<Response, K::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), K::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<K>) -> Self::Future {
        match request.rest.take() {
            Some(rest) => K::proceed(request, rest),
            None => stack::already_sent(&request),
        }
    }
}

impl<K> Clone for Next<K> {
    fn clone(&self) -> Self {
        Next(PhantomData)
    }
}

impl<K> fmt::Debug for Next<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Next")
    }
}

/// A tower layer that can be given to a server or a client.
///
/// It is implemented for every [`tower_layer::Layer`] of [`Next`] whose service takes a
/// [`Request`], returns a [`Response`] and can be cloned and sent. A layer is applied once, when it
/// is given, so its service and clones of that handle all requests of that place.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no middleware for these requests",
    note = "middleware is a `tower_layer::Layer<Next>` whose service is `Clone + Send + Sync`, takes a \
            `Request` of the same module and returns a `Response`"
)]
pub trait Middleware<K: RequestKind>: Layer<Next<K>, Service = Self::RequestService> {
    /// The service that handles requests.
    type RequestService: Service<Request<K>, Response = Response, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static;
}

impl<K, L, S> Middleware<K> for L
where
    K: RequestKind,
    L: Layer<Next<K>, Service = S>,
    S: Service<Request<K>, Response = Response, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
{
    type RequestService = S;
}

/// Returns the name of the tool or prompt, or the URI of the resource, that a request is about.
fn request_target(method: Option<Method>, params: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ByName {
        name: String,
    }
    #[derive(serde::Deserialize)]
    struct ByUri {
        uri: String,
    }
    /// Not the model's type: only servers that complete something need that.
    #[derive(serde::Deserialize)]
    struct ByReference {
        #[serde(rename = "ref")]
        reference: Reference,
    }
    #[derive(serde::Deserialize)]
    struct Reference {
        r#type: String,
        name: Option<String>,
        uri: Option<String>,
    }
    match method? {
        Method::CallTool | Method::GetPrompt => {
            serde_json::from_str(params).ok().map(|ByName { name }| name)
        }
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe => {
            serde_json::from_str(params).ok().map(|ByUri { uri }| uri)
        }
        Method::Complete => {
            let ByReference { reference } = serde_json::from_str(params).ok()?;
            match &*reference.r#type {
                "ref/prompt" => reference.name,
                "ref/resource" => reference.uri,
                _ => None,
            }
        }
        _ => None,
    }
}

/// The place of a middleware: `server::IncomingRequest`, `server::OutgoingInput`,
/// `client::OutgoingRequest` or `client::IncomingInput`.
pub trait RequestKind: sealed::Sealed + fmt::Debug + Sized + Send + 'static {
    /// The error of [`Next`].
    type Error: Into<BoxError> + Send + 'static;

    /// Returns the function that turns an error of middleware into the answer to `request`.
    #[doc(hidden)]
    fn on_error(
        request: &Request<Self>,
    ) -> impl FnOnce(BoxError) -> Result<Response, Self::Error> + Send + 'static;

    /// Continues with the rest of the stack. Nothing runs before the future is polled.
    #[doc(hidden)]
    fn proceed(
        request: Request<Self>,
        rest: NextFn<Self>,
    ) -> BoxFuture<'static, Result<Response, Self::Error>> {
        rest(request)
    }
}

mod sealed {
    pub trait Sealed {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_request_is_in_its_params() {
        let of = |method, params| request_target(Method::from_name(method), params);
        assert_eq!(of("tools/call", r#"{"name":"a","uri":"b"}"#).as_deref(), Some("a"));
        assert_eq!(of("resources/read", r#"{"name":"a","uri":"b"}"#).as_deref(), Some("b"));
        let prompt = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x"}}"#;
        assert_eq!(of("completion/complete", prompt).as_deref(), Some("p"));
        assert_eq!(of("tools/list", r#"{"name":"a"}"#), None);
        assert_eq!(of("tools/call", ""), None);
    }
}
