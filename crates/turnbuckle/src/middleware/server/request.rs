//! A request that a server receives, as its middleware sees it.

use std::{
    error::Error as StdError,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
};

use crate::{
    error::find,
    middleware::{
        BoxError, RequestKind, Response, Stack,
        sealed::Sealed,
        stack::NextFn,
        {self},
    },
    principal::Principal,
    rpc::{BoxFuture, Outcome, Reply, panicked},
    server::{App, Ctx, HandlerRequest, ToolError},
};
use turnbuckle_types::{Method, Raw, RpcError, jsonrpc::Text};

/// A request on its way through the middleware of a server.
///
/// ```
/// use turnbuckle::middleware::server::Request;
/// // `request.insert(…)` adds a value that handlers take as `Extension<T>`.
/// fn is_call_of(request: &Request, tool: &str) -> bool {
///     request.method() == "tools/call" && request.name() == Some(tool)
/// }
/// # let _ = is_call_of;
/// ```
pub type Request = middleware::Request<IncomingRequest>;

/// The service inside of a server's middleware.
pub type Next = middleware::Next<IncomingRequest>;

/// Marks requests that a server receives: see [`Request`].
pub struct IncomingRequest {
    app: Arc<App>,
    ctx: Ctx,
    arguments: Option<Raw>,
}

impl Request {
    pub(crate) fn of(visit: &HandlerRequest, method: Text, name: Option<String>) -> Request {
        let HandlerRequest { app, ctx, params, .. } = visit;
        let arguments = params.arguments.clone();
        let kind = IncomingRequest { app: app.clone(), ctx: ctx.clone(), arguments };
        Request::new(method, name, params.raw.clone(), kind)
    }

    /// Returns the arguments of a tool or a prompt.
    pub fn arguments(&self) -> Option<&Raw> {
        self.kind.arguments.as_ref()
    }

    /// Returns the context of the request, as its handler takes it.
    pub fn ctx(&self) -> &Ctx {
        &self.kind.ctx
    }

    /// Adds a value that middleware further in and handlers can take as
    /// [`Extension`](crate::server::Extension). It hides an earlier one of the same type. Use
    /// [`set_principal`](Request::set_principal) for the caller's identity.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.kind.ctx.insert(value);
    }

    /// Sets the caller's identity, for handlers and for everything further in that is bound to or
    /// counted for each principal.
    ///
    /// ```
    /// use turnbuckle::{Principal, middleware::server::Request};
    /// #[derive(Clone)]
    /// struct Claims { admin: bool }
    /// fn identify(request: &mut Request) {
    ///     request.set_principal(Principal::new("alice").with_claims(Claims { admin: true }));
    /// }
    /// # let _ = identify;
    /// ```
    pub fn set_principal<C: Clone + Send + Sync + 'static>(&mut self, who: Principal<C>) {
        self.insert(Principal::new(who.name()));
        self.insert(who);
    }

    /// Returns a value that came with the request, or that middleware has added.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.kind.ctx.extension()
    }

    /// The name of the caller, if it is known.
    pub(super) fn principal(&self) -> Option<String> {
        self.kind.ctx.principal::<()>().map(|principal| principal.name().to_owned())
    }

    /// Whether the request stays open until one side ends it, as a `subscriptions/listen` does.
    pub(super) fn is_long_lived(&self) -> bool {
        self.known_method().is_some_and(|method| method.row().long_lived)
    }
}

impl Stack<IncomingRequest> {
    /// Passes a request through the middleware to the handler behind `answer`.
    pub(crate) fn reply(
        &self,
        request: Request,
        answer: impl FnOnce() -> Reply + Send + 'static,
    ) -> BoxFuture<'static, Outcome> {
        if self.is_empty() {
            return answer().into_outcome();
        }
        self.reply_layered(request, Box::new(answer))
    }

    /// The rest of [`reply`](Stack::reply), which is not compiled again for every handler.
    fn reply_layered(
        &self,
        request: Request,
        answer: Box<dyn FnOnce() -> Reply + Send>,
    ) -> BoxFuture<'static, Outcome> {
        let answered = self.run(request, |_| {
            let outcome = answer().into_outcome();
            Box::pin(async { outcome.await.map(Response::new) })
        });
        Box::pin(async { answered.await.map(Response::into_result) })
    }
}

impl fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingRequest").field("ctx", &self.ctx).finish_non_exhaustive()
    }
}

impl Sealed for IncomingRequest {}

impl RequestKind for IncomingRequest {
    type Error = RpcError;

    fn on_error(
        request: &Request,
    ) -> impl FnOnce(BoxError) -> Result<Response, RpcError> + Send + 'static {
        let method = request.known_method();
        let (app, ctx) = (request.kind.app.clone(), request.kind.ctx.clone());
        move |error| {
            if let Some(error) = find::<RpcError>(&*error) {
                return Err(error.clone());
            }
            match find::<ToolError>(&*error) {
                Some(error) if method == Some(Method::CallTool) => {
                    let result = error.clone().into_result();
                    Ok(Response::new(app.finish(&result, ctx.revision())))
                }
                Some(error) => Err(RpcError::internal(error.to_string())),
                None => {
                    let method = method.map(Method::as_str);
                    tracing::error!(method, error = &*error as &dyn StdError, "middleware failed");
                    Err(RpcError::internal("internal error"))
                }
            }
        }
    }

    /// Turns a panic further in into an error, so that the middleware sees an answer.
    fn proceed(
        request: Request,
        rest: NextFn<IncomingRequest>,
    ) -> BoxFuture<'static, Result<Response, RpcError>> {
        let ctx = request.kind.ctx.clone();
        let mut running = None;
        let mut start = Some((rest, request));
        Box::pin(poll_fn(move |context| {
            let polled = catch_unwind(AssertUnwindSafe(|| {
                if let Some((rest, request)) = start.take() {
                    running = Some(rest(request));
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
