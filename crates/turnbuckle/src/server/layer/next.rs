//! Owns how layers are put around what runs, and what becomes of their errors.
//! Does not own any one layer.

use std::{
    error::Error as StdError,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use tower_layer::Layer;
use tower_service::Service;
use turnbuckle_types::{Method, RpcError};

use super::request::{Request, Response, Then};
use crate::{
    dispatch::{BoxFuture, Outcome, duplex::panicked},
    server::{app::App, context::Ctx, reply::ToolError},
};

pub(super) type BoxError = Box<dyn StdError + Send + Sync>;
type Answer = Result<Response, RpcError>;

/// What a layer stands around: further layers, then the handler.
///
/// It is always ready, and cheap to clone. A handler that panics ends with an internal error here.
#[derive(Clone)]
pub struct Next(Arc<dyn Erased>);

impl Service<Request> for Next {
    type Response = Response;
    type Error = RpcError;
    type Future = BoxFuture<'static, Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RpcError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.0.clone().call(request)
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

/// Layers, the outermost first; none, most of the time.
///
/// Each stands around the end of its own way, where a request carries on with the next layer. So a
/// layer is put up once, when it is given, and whatever it makes then is shared by all that it
/// stands around.
#[derive(Clone, Default)]
pub(in crate::server) struct Stack(Option<Arc<[Next]>>);

impl Stack {
    pub(in crate::server) fn push<L>(&mut self, layer: L)
    where
        L: Layer<Next>,
        L::Service: Service<Request, Response = Response> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let layered = Next(Arc::new(Layered(layer.layer(Next(Arc::new(Innermost))))));
        self.around(&Stack(Some(Arc::new([layered]))), Order::After);
    }

    /// Puts other layers around these.
    pub(in crate::server) fn within(&mut self, outer: &Stack) {
        self.around(outer, Order::Before);
    }

    fn around(&mut self, others: &Stack, order: Order) {
        let own = self.layers().iter().cloned();
        let others = others.layers().iter().cloned();
        let all: Arc<[Next]> = match order {
            Order::Before => others.chain(own).collect(),
            Order::After => own.chain(others).collect(),
        };
        self.0 = (!all.is_empty()).then_some(all);
    }

    fn layers(&self) -> &[Next] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(in crate::server) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Takes a request through the layers, and then to `then`. Dropping the future drops whatever
    /// it has come to.
    pub(in crate::server) fn run(
        &self,
        request: Request,
        then: impl FnOnce(Request) -> BoxFuture<'static, Outcome> + Send + 'static,
    ) -> BoxFuture<'static, Outcome> {
        match &self.0 {
            None => then(request),
            Some(layers) => pass(layers.clone(), 0, request, Box::new(then)),
        }
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layers", self.layers().len())
    }
}

enum Order {
    Before,
    After,
}

fn pass(
    layers: Arc<[Next]>,
    at: usize,
    request: Request,
    then: Then,
) -> BoxFuture<'static, Outcome> {
    let Some(layer) = layers.get(at).cloned() else { return then(request) };
    let then: Then = Box::new(move |request| pass(layers, at + 1, request, then));
    let answer = layer.0.call(request.before(then));
    Box::pin(async move { answer.await.map(Response::into_result) })
}

/// A service whose type is forgotten.
trait Erased: Send + Sync {
    /// Runs nothing yet: this is called in the reader.
    fn call(self: Arc<Self>, request: Request) -> BoxFuture<'static, Answer>;
}

struct Layered<S>(S);

impl<S> Erased for Layered<S>
where
    S: Service<Request, Response = Response> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn call(self: Arc<Self>, request: Request) -> BoxFuture<'static, Answer> {
        Box::pin(async move {
            let mut service = self.0.clone();
            let edge = Edge::of(&request);
            let answered = async {
                poll_fn(|context| service.poll_ready(context)).await?;
                service.call(request).await
            };
            answered.await.or_else(|error| edge.settle(error.into()))
        })
    }
}

/// What an error of a layer is turned into depends on what was asked.
struct Edge {
    app: Arc<App>,
    ctx: Ctx,
    method: Option<Method>,
}

impl Edge {
    fn of(request: &Request) -> Edge {
        Edge { app: request.app.clone(), ctx: request.ctx.clone(), method: request.known() }
    }

    fn settle(&self, error: BoxError) -> Answer {
        if let Some(error) = find::<RpcError>(&*error) {
            return Err(error.clone());
        }
        match find::<ToolError>(&*error) {
            Some(error) if self.method == Some(Method::CallTool) => {
                let result = error.clone().into_result();
                Ok(Response::new(self.app.finish(&result, self.ctx.revision())))
            }
            Some(error) => Err(RpcError::internal(error.to_string())),
            None => {
                let method = self.method.map(Method::as_str);
                tracing::error!(method, error = &*error as &dyn StdError, "a layer failed");
                Err(RpcError::internal("internal error"))
            }
        }
    }
}

/// Some layers wrap the errors of what they stand around.
pub(super) fn find<'a, E: StdError + 'static>(
    mut error: &'a (dyn StdError + 'static),
) -> Option<&'a E> {
    loop {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        error = error.source()?;
    }
}

/// Runs what the request came for.
struct Innermost;

impl Erased for Innermost {
    fn call(self: Arc<Self>, mut request: Request) -> BoxFuture<'static, Answer> {
        let Some(then) = request.take_then() else {
            // Layers hand on what they were given, and it can be handed on only once.
            return Box::pin(async { Err(RpcError::internal("internal error")) });
        };
        let ctx = request.ctx.clone();
        let mut running = None;
        let mut start = Some((then, request));
        Box::pin(poll_fn(move |context| {
            let polled = catch_unwind(AssertUnwindSafe(|| {
                if let Some((then, request)) = start.take() {
                    running = Some(then(request));
                }
                running.as_mut().map_or(Poll::Pending, |running| running.as_mut().poll(context))
            }));
            match polled {
                Ok(polled) => polled.map_ok(Response::new),
                Err(payload) => {
                    ctx.panicked();
                    Poll::Ready(Err(panicked(ctx.request_id(), &*payload)))
                }
            }
        }))
    }
}
