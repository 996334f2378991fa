//! Middleware of servers: the requests that a server receives, and those that its handlers send to
//! clients. See [`middleware`](super) for what middleware is.
//!
//! [`Server::layer`](crate::Server::layer) applies middleware to every request except `initialize`
//! and `ping`, in either era and on every transport. The `layer` method of a group, tool, prompt,
//! resource or template applies it to requests for those. The middleware that was added first sees
//! a request first; the server's comes before the group's, and the group's before the tool's.
//!
//! Requests for a resource or a template are `resources/read` and `resources/subscribe`. The
//! middleware of a template that lists its members also sees a `resources/list` with the template
//! as its name; if it fails, only these members are missing. A `subscriptions/listen` names several
//! resources: the server's middleware sees it once as a whole, without a name, and then once for
//! each resource, with the URI as its name, as does the middleware of the resource and its groups.
//! A resource that one of them rejects is not granted; the rest of the stream is.
//!
//! An [`RpcError`](crate::RpcError) of middleware is the answer to the request, a
//! [`ToolError`](crate::ToolError) is shown to the model, and any other error is logged and
//! reported as `internal error`. A handler that panics ends with an internal error at the [`Next`]
//! of the innermost middleware. Dropping the future of a request cancels it.
//!
//! `input_request_layer` of the same types applies to the requests that a handler sends to its
//! client: elicitation, sampling, roots, and requests written by hand. The middleware of the tool,
//! prompt, resource or template sees an [`InputRequest`] first, then that of its groups, then that
//! of the server. In the legacy era an input request passes once, and its answer on the way back.
//! In the modern era the answer comes with another request: the input request passes when it is
//! made, and fails further in because there is no answer yet; it passes once more when the answer
//! is there. The answer that the middleware returns then is kept, and does not pass again when the
//! handler runs again.
//!
//! ```
//! use std::time::Duration;
//! use turnbuckle::{
//!     Server,
//!     middleware::server::{Concurrency, RateLimit, Timeout},
//! };
//! let server = Server::new("demo", "1.0")
//!     .layer(RateLimit::new(100, Duration::from_secs(1)).per_principal())
//!     .layer(Concurrency::new(64).waiting(256))
//!     .layer(Timeout::new(Duration::from_secs(30)));
//! # let _ = server;
//! ```
//!
//! Middleware of your own is a [`tower_layer::Layer`]:
//!
//! ```
//! use std::task::{Context, Poll};
//! use tower_service::Service;
//! use turnbuckle::{
//!     RpcError, Server,
//!     middleware::{
//!         Response,
//!         server::{Next, Request},
//!     },
//! };
//!
//! /// Rejects every tool that deletes something.
//! #[derive(Clone)]
//! struct ReadOnly(Next);
//!
//! impl Service<Request> for ReadOnly {
//!     type Response = Response;
//!     type Error = RpcError;
//!     type Future = <Next as Service<Request>>::Future;
//!
//!     fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RpcError>> {
//!         self.0.poll_ready(context)
//!     }
//!
//!     fn call(&mut self, request: Request) -> Self::Future {
//!         if request.name().is_some_and(|name| name.starts_with("delete_")) {
//!             return Box::pin(async { Err(RpcError::invalid_params("this server is read-only")) });
//!         }
//!         self.0.call(request)
//!     }
//! }
//!
//! let server = Server::new("files", "1.0").layer(tower_layer::layer_fn(ReadOnly));
//! # let _ = server;
//! ```

mod audit;
mod concurrency;
mod input;
mod policy;
mod rate_limit;
mod request;
mod serve;
#[cfg(all(test, feature = "http", feature = "client"))]
mod tests;
mod timeout;

pub use audit::{Audit, AuditEntry, RequestLog};
pub use concurrency::{BUSY, Concurrency};
pub use input::{InputNext, InputRequest, OutgoingInput};
pub use policy::PolicyService;
#[doc(hidden)]
pub use policy::{Inner, Policy};
pub use rate_limit::{RATE_LIMITED, RateLimit};
pub use request::{IncomingRequest, Next, Request};
pub use timeout::Timeout;

pub(crate) use serve::{ServerMiddleware, serve};
