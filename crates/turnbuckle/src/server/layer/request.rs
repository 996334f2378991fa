//! Owns a request and its answer as layers see them. Does not own how either is made.

use std::{fmt, sync::Arc};

use turnbuckle_types::{Method, Raw, jsonrpc::Text};

pub use crate::layers::Response;
use crate::{
    layers::Onward,
    principal::Principal,
    server::{app::App, calls::Visit, context::Ctx},
};

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
    pub(crate) app: Arc<App>,
    pub(crate) ctx: Ctx,
    method: Text,
    name: Option<String>,
    params: Raw,
    arguments: Option<Raw>,
    pub(super) onward: Onward<Request>,
}

impl Request {
    pub(crate) fn of(visit: &Visit, method: Text, name: Option<String>) -> Request {
        Request {
            app: visit.app.clone(),
            ctx: visit.ctx.clone(),
            method,
            name,
            params: visit.params.raw.clone().unwrap_or_else(Raw::empty_object),
            arguments: visit.params.arguments.clone(),
            onward: Onward::default(),
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
