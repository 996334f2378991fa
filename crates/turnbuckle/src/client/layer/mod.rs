//! What stands between a client's calls and the server: [tower](https://docs.rs/tower) layers.
//!
//! Owns: calls and questions as layers see them, how layers are put around them. Does not own: the
//! calls, nor how they reach the server.
//!
//! A layer is given to [`ClientBuilder::layer`](crate::ClientBuilder::layer), and then sees every
//! call of every verb, of either era and on every wire: each page of a list, the opening of a
//! [`listen`](crate::Client::listen) stream, requests written by hand. It does not see what opens a
//! connection or looks after it. The opening of a stream is `subscriptions/listen` in either era; a
//! legacy server is sent nothing for it but `resources/subscribe` and, later,
//! `resources/unsubscribe`, which pass after it, each by itself. A call that a modern server answers with questions passes once,
//! with all its rounds. The first layer that was given sees a call first.
//!
//! It is any [`tower_layer::Layer`] whose service takes a [`Request`] and gives a [`Response`];
//! tower's own work too. What it does not pass on never reaches the server: it can answer by itself,
//! or fail. An [`Error`](crate::Error) that it fails with is the caller's, as it is; anything else
//! becomes one of kind [`Refused`](crate::ErrorKind::Refused) that has it as its source. Dropping its
//! future is how a call is cancelled. A [`Request`] can be cloned and passed on again, as tower's
//! `Retry` does; whether that is wise the layer has to know
//! ([`maybe_executed`](crate::Error::maybe_executed)). What the call then ends with still says that
//! it may have run if any of its attempts may have.
//!
//! ```
//! use std::task::{Context, Poll};
//! use tower_service::Service;
//! use turnbuckle::{Client, Error, RpcError, client_layer::{Next, Request, Response}};
//!
//! /// Lets nobody delete anything, and says for whom each call is made.
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
//! The other direction, what a server asks this client, has layers of its own:
//! [`ClientBuilder::question_layer`](crate::ClientBuilder::question_layer).

mod question;
mod request;

use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_types::Raw;

pub use crate::layers::Response;
use crate::layers::{BoxError, Stack};
pub use question::{NextQuestion, Question};
pub use request::{Next, Request};

pub(super) use request::Said;

use super::ClientBuilder;

impl ClientBuilder {
    /// Puts a layer around every call: see [`client_layer`](crate::client_layer). The first that is
    /// given sees a call first.
    pub fn layer<L>(mut self, layer: L) -> ClientBuilder
    where
        L: Layer<Next>,
        L::Service: Service<Request, Response = Response> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.around.layers.push(layer.layer(Next(())));
        self
    }

    /// Puts a layer around everything that servers ask this client, in both eras: its service takes
    /// a [`Question`] and gives the answer's JSON. What it does not pass on no callback hears of. An
    /// [`RpcError`](crate::RpcError) that it fails with is answered as it is, anything else is told
    /// to the log only. The first that is given sees a question first.
    pub fn question_layer<L>(mut self, layer: L) -> ClientBuilder
    where
        L: Layer<NextQuestion>,
        L::Service: Service<Question, Response = Raw> + Clone + Send + Sync + 'static,
        <L::Service as Service<Question>>::Error: Into<BoxError>,
        <L::Service as Service<Question>>::Future: Send + 'static,
    {
        self.callbacks.layers.push(layer.layer(NextQuestion(())));
        self
    }
}

/// Layers around calls.
pub(super) type Calls = Stack<Request>;
/// Layers around what a server asks.
pub(super) type Questions = Stack<Question>;
