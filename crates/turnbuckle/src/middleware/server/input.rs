//! Requests that a handler sends to its client, as middleware sees them.

use crate::{
    middleware::{
        BoxError, RequestKind, Response, Stack,
        sealed::Sealed,
        {self},
    },
    rpc::BoxFuture,
    server::Ctx,
};
use turnbuckle_types::Raw;

/// A request that a handler sends to its client, on its way through the middleware of
/// [`ToolDef::input_request_layer`](crate::server::ToolDef::input_request_layer),
/// [`Group::input_request_layer`](crate::server::Group::input_request_layer) and
/// [`Server::input_request_layer`](crate::Server::input_request_layer). The method is
/// `elicitation/create`, `sampling/createMessage`, `roots/list`, or one of the handler's own.
///
/// ```
/// use turnbuckle::middleware::server::InputRequest;
/// fn costs_money(request: &InputRequest) -> bool {
///     request.method() == "sampling/createMessage"
/// }
/// # let _ = costs_money;
/// ```
pub type InputRequest = middleware::Request<OutgoingInput>;

/// The service inside of middleware for input requests.
pub type InputNext = middleware::Next<OutgoingInput>;

/// Marks requests that a handler sends to its client: see [`InputRequest`].
#[derive(Debug)]
pub struct OutgoingInput {
    ctx: Ctx,
}

impl InputRequest {
    /// Returns the context of the request whose handler sends this one.
    pub fn ctx(&self) -> &Ctx {
        &self.kind.ctx
    }
}

impl Sealed for OutgoingInput {}

impl RequestKind for OutgoingInput {
    type Error = BoxError;

    fn on_error(
        _: &InputRequest,
    ) -> impl FnOnce(BoxError) -> Result<Response, BoxError> + Send + 'static {
        Err
    }
}

/// Sends an input request with these params.
pub(crate) type SendInput =
    Box<dyn FnOnce(Ctx, Raw) -> BoxFuture<'static, Result<Raw, BoxError>> + Send>;

impl Ctx {
    /// Sets the middleware for the input requests of the handler that is about to run.
    pub(crate) fn set_input_middleware(&self, middleware: &Stack<OutgoingInput>) {
        let mut said = self.said();
        if !middleware.is_empty() {
            said.middleware.get_or_insert_default().input = middleware.clone();
        } else if let Some(state) = &mut said.middleware {
            state.input = Stack::default();
        }
    }

    pub(crate) fn has_input_middleware(&self) -> bool {
        let of_server = self.0.app.as_ref().is_some_and(|app| !app.middleware.input.is_empty());
        of_server || self.said().middleware.as_ref().is_some_and(|state| !state.input.is_empty())
    }

    /// Passes an input request through the middleware to `send`, which is given its params.
    pub(crate) fn send_through_middleware(
        &self,
        method: &str,
        params: Raw,
        send: SendInput,
    ) -> impl Future<Output = Result<Raw, BoxError>> + Send + 'static {
        let kind = OutgoingInput { ctx: self.clone() };
        let request = InputRequest::new(method.into(), None, Some(params), kind);
        let inner = self.said().middleware.as_ref().map(|state| state.input.clone());
        let outer = self.0.app.as_ref().map(|app| app.middleware.input.clone());
        let answered = inner.unwrap_or_default().run(request, move |request| {
            outer.unwrap_or_default().run(request, |request| {
                let sending = send(request.kind.ctx, request.params);
                Box::pin(async { sending.await.map(Response::new) })
            })
        });
        async { answered.await.map(Response::into_result) }
    }
}
