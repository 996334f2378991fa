//! Owns how a handler's arguments are made from a call. Does not own what runs then.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    sync::Arc,
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use turnbuckle_types::Raw;

use super::{
    context::Ctx,
    reply::Failure,
    schema::{Checks, InputSchema, SchemaError, decode_arguments, input_schema_of},
};

/// Something that a handler can take as an argument.
///
/// Implemented for [`Args`], [`RawArgs`], [`Ctx`] and [`State`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be an argument of a tool",
    label = "not something a call can provide",
    note = "take the tool's arguments as `Args<YourStruct>` (deriving `Deserialize` and \
            `JsonSchema`), the request as `Ctx`, shared state as `State<YourState>`",
    note = "or put `#[tool]` on the function to take plain arguments"
)]
pub trait FromCall: Sized + Send + 'static {
    /// Makes the argument.
    #[doc(hidden)]
    fn from_call(call: &mut Call) -> Result<Self, Failure>;
    /// Says what the tool needs because of this argument.
    #[doc(hidden)]
    fn describe(description: &mut Description) {
        let _ = description;
    }
}

/// One call, while its handler's arguments are made.
#[doc(hidden)]
pub struct Call {
    pub(super) ctx: Ctx,
    pub(super) arguments: Raw,
    pub(super) checks: Option<Arc<Checks>>,
    pub(super) states: Arc<States>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("ctx", &self.ctx).finish_non_exhaustive()
    }
}

/// What a handler's signature says about its tool.
#[doc(hidden)]
#[derive(Default)]
pub struct Description {
    pub(super) input: Option<Result<InputSchema, SchemaError>>,
    pub(super) output: Option<Result<Raw, SchemaError>>,
    pub(super) needs: Vec<(TypeId, &'static str)>,
}

impl std::fmt::Debug for Description {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Description").finish_non_exhaustive()
    }
}

/// The tool's arguments, decoded and checked before the handler runs.
///
/// ```
/// use turnbuckle::{Args, Server, tool};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Mul { a: i64, b: i64 }
/// async fn mul(Args(mul): Args<Mul>) -> i64 { mul.a * mul.b }
/// let server = Server::new("calc", "1.0").tool(tool("mul", mul));
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    fn from_call(call: &mut Call) -> Result<Self, Failure> {
        decode_arguments(call.arguments.as_str(), call.checks.as_deref())
            .map(Args)
            .map_err(Failure::arguments)
    }

    fn describe(description: &mut Description) {
        description.input = Some(input_schema_of::<T>());
    }
}

/// The tool's arguments as the JSON object that came, for a tool with a hand-written
/// schema.
#[derive(Clone, Debug)]
pub struct RawArgs(pub Raw);

impl FromCall for RawArgs {
    fn from_call(call: &mut Call) -> Result<Self, Failure> {
        Ok(RawArgs(call.arguments.clone()))
    }
}

impl FromCall for Ctx {
    fn from_call(call: &mut Call) -> Result<Self, Failure> {
        Ok(call.ctx.clone())
    }
}

/// State that the server was given with [`Server::state`](crate::Server::state).
///
/// A tool that needs state the server was not given is an error when the server starts,
/// not when the tool is called.
#[derive(Clone, Copy, Debug)]
pub struct State<S>(pub S);

impl<S: Clone + Send + Sync + 'static> FromCall for State<S> {
    fn from_call(call: &mut Call) -> Result<Self, Failure> {
        let state = call.states.get::<S>().ok_or_else(|| {
            Failure::Internal(format!("no state of type {} was given", type_name::<S>()).into())
        })?;
        Ok(State(state))
    }

    fn describe(description: &mut Description) {
        description.needs.push((TypeId::of::<S>(), type_name::<S>()));
    }
}

/// Shared values by their type.
#[derive(Clone, Default)]
pub(super) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(super) fn insert<S: Send + Sync + 'static>(&mut self, state: S) {
        self.0.insert(TypeId::of::<S>(), Arc::new(state));
    }

    fn get<S: Clone + 'static>(&self) -> Option<S> {
        self.0.get(&TypeId::of::<S>())?.downcast_ref().cloned()
    }

    pub(super) fn has(&self, id: TypeId) -> bool {
        self.0.contains_key(&id)
    }
}
