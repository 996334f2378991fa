//! Owns how a handler's arguments are made from a call. Does not own what runs then.

mod args;
mod request;

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    sync::Arc,
};

use turnbuckle_types::Raw;

use super::{context::Ctx, reply::Failure};
use crate::server::{
    schema::{Checks, InputSchema, OutputSchema, SchemaError},
    uri::TextValue,
};
pub use args::{Args, RawArgs, Typed};
pub use request::{Extension, State};
#[cfg(feature = "http")]
pub use request::{Header, HttpHeader};

/// Something that a handler can take as an argument.
///
/// A type of one's own may implement it: what half the handlers of a program need is then written
/// once. All arguments of a handler are made together, so none may wait for another.
///
/// ```
/// use turnbuckle::{
///     Server, ToolError,
///     server::{Failure, FromCall, Invocation},
///     tool,
/// };
///
/// /// The tenant that a request is for.
/// struct Tenant(String);
///
/// impl FromCall for Tenant {
///     async fn from_call(call: &Invocation) -> Result<Tenant, Failure> {
///         let tenant = call.ctx().meta().value("example.com/tenant");
///         let tenant = tenant.and_then(|name| name.decode().ok());
///         Ok(Tenant(tenant.ok_or_else(|| ToolError::new("say which tenant this is for"))?))
///     }
/// }
///
/// async fn bill(Tenant(name): Tenant) -> String {
///     format!("a bill for {name}")
/// }
/// let server = Server::new("billing", "1.0").tool(tool("bill", bill));
/// # let _ = server;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be an argument of a handler",
    label = "not something a call can provide",
    note = "take the tool's arguments as `Args<YourStruct>` (deriving `Deserialize` and \
            `JsonSchema`), the request as `Ctx`, shared state as `State<YourState>`",
    note = "or put `#[tool]` on the function to take plain arguments"
)]
pub trait FromCall: Sized + Send + 'static {
    /// Makes the argument. Dropping the future gives it up, as it happens when the request is
    /// cancelled.
    fn from_call(call: &Invocation) -> impl Future<Output = Result<Self, Failure>> + Send;
    /// Says what the tool needs because of this argument.
    #[doc(hidden)]
    fn describe(description: &mut Description) {
        let _ = description;
    }
}

/// One call, while its handler's arguments are made.
#[derive(Clone)]
pub struct Invocation {
    pub(crate) ctx: Ctx,
    pub(crate) arguments: Arguments,
    pub(crate) checks: Option<Arc<Checks>>,
    pub(crate) states: Arc<States>,
    /// What has been typed so far, if that is to be completed.
    pub(crate) typed: Option<String>,
}

impl Invocation {
    /// The request.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// What the caller gave.
    pub fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// A value that the server was given with [`Server::state`](crate::Server::state).
    pub fn state<S: Clone + Send + Sync + 'static>(&self) -> Option<S> {
        self.states.get()
    }

    pub(crate) fn into_ctx(self) -> Ctx {
        self.ctx
    }
}

impl std::fmt::Debug for Invocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invocation").field("ctx", &self.ctx).finish_non_exhaustive()
    }
}

/// What a caller gave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arguments {
    /// A tool's: a JSON object.
    Json(Raw),
    /// A prompt's, or the variables of a URI: text by name.
    Text(Vec<(String, TextValue)>),
}

/// What a handler's signature says about itself.
#[doc(hidden)]
#[derive(Default)]
pub struct Description {
    pub(crate) input: Option<Result<InputSchema, SchemaError>>,
    pub(crate) output: Option<Result<OutputSchema, SchemaError>>,
    pub(crate) needs: Vec<(TypeId, &'static str)>,
    /// What can't work, told when the server starts.
    pub(crate) problems: Vec<String>,
}

impl std::fmt::Debug for Description {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Description").finish_non_exhaustive()
    }
}

/// Shared values by their type.
#[derive(Clone, Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn insert<S: Send + Sync + 'static>(&mut self, state: S) {
        self.0.insert(TypeId::of::<S>(), Arc::new(state));
    }

    pub(crate) fn get<S: Clone + 'static>(&self) -> Option<S> {
        self.0.get(&TypeId::of::<S>())?.downcast_ref().cloned()
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.0.contains_key(&id)
    }
}

fn absent<T>(what: &str) -> Failure {
    Failure::internal(format!("no {what} of type {} was given", type_name::<T>()))
}
