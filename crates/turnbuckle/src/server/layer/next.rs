//! Owns what layers around requests stand around, and what becomes of their errors.
//! Does not own any one layer.

use std::{
    error::Error as StdError,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
};

use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_types::{Method, RpcError};

use super::request::{Request, Response};
use crate::{
    dispatch::{BoxFuture, Outcome, duplex::panicked},
    error::find,
    layers::{self, Answer, Onward, Passing, Then},
    server::{app::App, context::Ctx, reply::ToolError},
};

pub(super) use crate::layers::BoxError;

/// What a layer stands around: further layers, then the handler.
///
/// It is always ready, and cheap to clone. A handler that panics ends with an internal error here.
#[derive(Clone, Debug)]
pub struct Next(());

layers::next!(Next: Request => Response, RpcError);

/// Layers around requests, the outermost first; none, most of the time.
#[derive(Clone, Default)]
pub(crate) struct Stack(layers::Stack<Request>);

impl Stack {
    pub(crate) fn push<L>(&mut self, layer: L)
    where
        L: Layer<Next>,
        L::Service: Service<Request, Response = Response> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        self.0.push(layer.layer(Next(())));
    }

    /// Puts other layers around these.
    pub(crate) fn within(&mut self, outer: &Stack) {
        self.0.within(&outer.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a request through the layers, and then to `then`. Dropping the future drops whatever
    /// it has come to.
    pub(crate) fn run(
        &self,
        request: Request,
        then: impl FnOnce(Request) -> BoxFuture<'static, Outcome> + Send + 'static,
    ) -> BoxFuture<'static, Outcome> {
        if self.0.is_empty() {
            return then(request);
        }
        let answered = self.0.run(request, |request| {
            let answering = then(request);
            Box::pin(async { answering.await.map(Response::new) })
        });
        Box::pin(async { answered.await.map(Response::into_result) })
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an error of a layer is turned into depends on what was asked.
pub(crate) struct Edge {
    app: Arc<App>,
    ctx: Ctx,
    method: Option<Method>,
}

impl Passing for Request {
    type Answer = Response;
    type Refusal = RpcError;
    type Edge = Edge;

    fn edge(&self) -> Edge {
        Edge { app: self.app.clone(), ctx: self.ctx.clone(), method: self.known() }
    }

    fn settle(edge: Edge, error: BoxError) -> Answer<Request> {
        if let Some(error) = find::<RpcError>(&*error) {
            return Err(error.clone());
        }
        match find::<ToolError>(&*error) {
            Some(error) if edge.method == Some(Method::CallTool) => {
                let result = error.clone().into_result();
                Ok(Response::new(edge.app.finish(&result, edge.ctx.revision())))
            }
            Some(error) => Err(RpcError::internal(error.to_string())),
            None => {
                let method = edge.method.map(Method::as_str);
                tracing::error!(method, error = &*error as &dyn StdError, "a layer failed");
                Err(RpcError::internal("internal error"))
            }
        }
    }

    fn onward(&mut self) -> &mut Onward<Request> {
        &mut self.onward
    }

    /// A panic further in is an answer to the layers that it would unwind.
    fn go(self, then: Then<Request>) -> BoxFuture<'static, Answer<Request>> {
        let ctx = self.ctx.clone();
        let mut running = None;
        let mut start = Some((then, self));
        Box::pin(poll_fn(move |context| {
            let polled = catch_unwind(AssertUnwindSafe(|| {
                if let Some((then, request)) = start.take() {
                    running = Some(then(request));
                }
                running.as_mut().map_or(Poll::Pending, |running| running.as_mut().poll(context))
            }));
            polled.unwrap_or_else(|payload| {
                ctx.panicked();
                Poll::Ready(Err(panicked(ctx.request_id(), &*payload)))
            })
        }))
    }
}
