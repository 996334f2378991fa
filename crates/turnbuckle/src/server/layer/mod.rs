//! What stands between requests and handlers: [tower](https://docs.rs/tower) layers, and some that
//! most servers want.
//!
//! Owns: requests and answers as layers see them, how layers are put around handlers. Does not
//! own: the handlers, nor how a request reaches them.
//!
//! A layer is given to [`Server::layer`](crate::Server::layer), and then sees every request but
//! `initialize` and `ping`, of either era and on every wire; or to a group, or to one tool, prompt,
//! resource or template, and then sees what is asked of those. The first that was given sees a
//! request first; the server's come before the group's, those before the tool's.
//!
//! What is asked of a resource or a template is `resources/read` and `resources/subscribe`; the
//! layers of a template that lists its members see a `resources/list` too, with the template's
//! text as its name, and what they refuse costs these members only. A `subscriptions/listen` is
//! about many things at once: the server's layers see it once as a whole, without a name, and then
//! once for each resource that it names, with the URI as its name, as do the layers of that resource
//! and of its groups. What one of them does not let pass is not granted; the rest of the stream is.
//!
//! The other direction is what handlers ask their clients. An `ask_layer` of a tool, prompt, resource
//! or template sees a [`Question`] first, then those of its groups, then those of the server
//! ([`Server::ask_layer`](crate::Server::ask_layer)). In the legacy era a question passes once, and
//! its answer on the way back. In the modern era the answer comes with another request: the question
//! passes when it is put, and fails further in because the answer has yet to come; and it passes once
//! more when the answer is there. An answer that was taken is not shown to layers again, however
//! often the handler is run.
//!
//! ```
//! use std::time::Duration;
//! use turnbuckle::{Server, layer::{Concurrency, RateLimit, Timeout}};
//! let server = Server::new("demo", "1.0")
//!     .layer(RateLimit::new(100, Duration::from_secs(1)).per_principal())
//!     .layer(Concurrency::new(64).waiting(256))
//!     .layer(Timeout::new(Duration::from_secs(30)));
//! # let _ = server;
//! ```
//!
//! One of your own is any [`tower_layer::Layer`] whose service takes a [`Request`] and gives a
//! [`Response`]; tower's work too. What it does not pass on never reaches a handler. An
//! [`RpcError`](crate::RpcError) that it fails with is answered as it is, a
//! [`ToolError`](crate::ToolError) is told to the model, and anything else to the log only.
//! Dropping its future is how a request is cancelled.
//!
//! ```
//! use std::task::{Context, Poll};
//! use tower_service::Service;
//! use turnbuckle::{RpcError, Server, layer::{Next, Request, Response}};
//!
//! /// Lets nobody delete anything.
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

mod apply;
mod audit;
mod concurrency;
mod next;
mod question;
mod rate;
mod request;
#[cfg(all(test, feature = "http", feature = "client"))]
mod tests;
mod timeout;
mod trace;
mod who;

pub use apply::Applied;
#[doc(hidden)]
pub use apply::Policy;
pub use audit::{Audit, AuditEntry};
pub use concurrency::{BUSY, Concurrency};
pub use next::Next;
pub use question::{NextQuestion, Question};
pub use rate::{RATE_LIMITED, RateLimit};
pub use request::{Request, Response};
pub use timeout::Timeout;
pub use trace::Trace;

pub(super) use next::Stack;
pub(super) use question::Questions;
