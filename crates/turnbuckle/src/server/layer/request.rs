//! Owns a request and its answer as layers see them. Does not own how either is made.

use std::{fmt, sync::Arc, sync::Mutex};

use serde::de::DeserializeOwned;
use turnbuckle_types::{Method, Raw, jsonrpc::Text};

use crate::{
    dispatch::{BoxFuture, Outcome},
    principal::Principal,
    server::{app::App, calls::Visit, context::Ctx},
};

/// What runs when a request has passed all layers.
pub(in crate::server) type Then = Box<dyn FnOnce(Request) -> BoxFuture<'static, Outcome> + Send>;

/// A request on its way through the layers of a server.
///
/// ```
/// use turnbuckle::layer::Request;
/// // `request.insert(…)` hands a value on to handlers, which take it as `Extension<T>`.
/// fn is_call_of(request: &Request, tool: &str) -> bool {
///     request.method() == "tools/call" && request.name() == Some(tool)
/// }
/// # let _ = is_call_of;
/// ```
pub struct Request {
    pub(in crate::server) app: Arc<App>,
    pub(in crate::server) ctx: Ctx,
    method: Text,
    name: Option<String>,
    params: Raw,
    arguments: Option<Raw>,
    /// Locked never: it only makes requests fit to be shared.
    then: Mutex<Option<Then>>,
}

impl Request {
    pub(in crate::server) fn of(visit: &Visit, method: Text, name: Option<String>) -> Request {
        Request {
            app: visit.app.clone(),
            ctx: visit.ctx.clone(),
            method,
            name,
            params: visit.params.raw.clone().unwrap_or_else(Raw::empty_object),
            arguments: visit.params.arguments.clone(),
            then: Mutex::new(None),
        }
    }

    /// The method, as the client wrote it.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// What it is about: the name of a tool or a prompt, the uri of a resource.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The params as they came; `{}` if there were none.
    pub fn params(&self) -> &Raw {
        &self.params
    }

    /// The arguments of a tool or a prompt.
    pub fn arguments(&self) -> Option<&Raw> {
        self.arguments.as_ref()
    }

    /// Who asks, and how to talk back.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Adds a value that layers and handlers further in can take, as
    /// [`Extension`](crate::Extension); one of the same type that was there is hidden by it. Who
    /// asks says [`set_principal`](Request::set_principal).
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.ctx.said().layered.get_or_insert_default().added.insert(value);
    }

    /// Says who asks: for handlers, and for all that is bound to one principal or counted for each
    /// further in.
    ///
    /// ```
    /// use turnbuckle::{Principal, layer::Request};
    /// #[derive(Clone)]
    /// struct Claims { admin: bool }
    /// fn known(request: &mut Request) {
    ///     request.set_principal(Principal::new("alice").with_claims(Claims { admin: true }));
    /// }
    /// # let _ = known;
    /// ```
    pub fn set_principal<C: Clone + Send + Sync + 'static>(&mut self, who: Principal<C>) {
        self.insert(Principal::new(who.name()));
        self.insert(who);
    }

    /// A value that came with the request, or that a layer has added.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.ctx.extension()
    }

    /// The name of whoever asks, if that is known.
    pub(super) fn principal(&self) -> Option<String> {
        self.ctx.principal::<()>().map(|principal| principal.name().to_owned())
    }

    pub(super) fn known(&self) -> Option<Method> {
        Method::from_name(&self.method)
    }

    /// Whether it stays open until someone ends it, as a stream of changes does.
    pub(super) fn is_long_lived(&self) -> bool {
        self.known().is_some_and(|method| method.row().long_lived)
    }

    pub(super) fn before(self, then: Then) -> Request {
        Request { then: Mutex::new(Some(then)), ..self }
    }

    pub(super) fn take_then(&mut self) -> Option<Then> {
        self.then.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method())
            .field("name", &self.name)
            .field("ctx", &self.ctx)
            .finish_non_exhaustive()
    }
}

/// The result of a request on its way back through the layers.
///
/// ```
/// use turnbuckle::layer::Response;
/// let response = Response::new(serde_json::json!({"content": []}));
/// assert_eq!(response.result().as_str(), r#"{"content":[]}"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    result: Raw,
}

impl Response {
    /// A result, as the revision of the request has it: what a layer that answers by itself says.
    pub fn new(result: impl Into<Raw>) -> Response {
        Response { result: result.into() }
    }

    /// The result as JSON.
    pub fn result(&self) -> &Raw {
        &self.result
    }

    /// The result as JSON, to keep.
    pub fn into_result(self) -> Raw {
        self.result
    }

    /// The result as a type of the protocol's model.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        self.result.decode()
    }
}
