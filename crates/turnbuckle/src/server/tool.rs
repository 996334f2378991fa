//! Owns what a tool is: its description, its handler, how it is stopped.
//! Does not own the tools of a server, nor how a call reaches one.

use std::{any::TypeId, sync::Arc, time::Duration};

use turnbuckle_types::{CallToolResult, Raw, ToolAnnotations};

use super::{
    extract::{Call, Description, FromCall},
    reply::{Failure, IntoReply},
    schema::{Checks, SchemaError},
    structured::Structured,
};
use crate::dispatch::BoxFuture;
#[cfg(feature = "http")]
use crate::envelope::annotations::Annotations;

/// A tool, to be given to [`Server::tool`](crate::Server::tool).
#[derive(Clone)]
pub struct Tool {
    pub(super) spec: turnbuckle_types::Tool,
    pub(super) handler: Arc<dyn Handle>,
    pub(super) on_cancel: OnCancel,
    pub(super) check: Check,
    pub(super) needs: Vec<(TypeId, &'static str)>,
    /// What is wrong with it: told when the server starts.
    pub(super) problems: Vec<String>,
    /// What its structured output is where only objects are known; found when the server starts.
    pub(super) structured: Structured,
    /// Arguments that HTTP repeats in headers; read when the server starts.
    #[cfg(feature = "http")]
    pub(super) repeated: Annotations,
}

/// How arguments are checked before the handler runs.
#[derive(Clone)]
pub(super) enum Check {
    /// By decoding them, plus the constraints that decoding does not know.
    Decoding(Option<Arc<Checks>>),
    #[cfg(feature = "validate")]
    Schema(Arc<super::schema::HandWritten>),
}

/// What happens to a handler whose request is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnCancel {
    /// Its future is dropped.
    Drop,
    /// Its token fires, and it has this long to end by itself.
    Cooperate(Duration),
    /// It is a sync function: its token fires, and it ends when it ends.
    Finish,
}

/// Makes a tool from an `async fn` whose arguments are extractors.
///
/// ```
/// use turnbuckle::{Args, Ctx, Server, tool};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet { name: String }
/// async fn greet(Args(greet): Args<Greet>, ctx: Ctx) -> String {
///     format!("hello {} (request {})", greet.name, ctx.request_id())
/// }
/// let server = Server::new("demo", "1.0").tool(tool("greet", greet).description("Say hello."));
/// # let _ = server;
/// ```
pub fn tool<M: 'static, F: ToolFn<M>>(name: impl Into<String>, handler: F) -> Tool {
    Tool::new(
        name.into(),
        Arc::new(Asynchronous { handler, marker: marker::<M>() }),
        OnCancel::Drop,
        F::describe,
    )
}

/// Makes a tool from a sync function, which runs on a thread where it may block.
///
/// A cancelled call's output is discarded; the function itself ends when it ends, and can
/// ask [`Ctx::is_cancelled`](crate::Ctx::is_cancelled).
pub fn blocking_tool<M: 'static, F: BlockingFn<M>>(name: impl Into<String>, handler: F) -> Tool {
    Tool::new(
        name.into(),
        Arc::new(Blocking { handler, marker: marker::<M>() }),
        OnCancel::Finish,
        F::describe,
    )
}

/// What [`Server::tool`](crate::Server::tool) takes: a [`Tool`], or a function that
/// carries `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function, or wrap it: `tool(\"name\", function)`"
)]
pub trait IntoTool {
    /// Makes the tool.
    fn into_tool(self) -> Tool;
}

impl IntoTool for Tool {
    fn into_tool(self) -> Tool {
        self
    }
}

impl Tool {
    fn new(
        name: String,
        handler: Arc<dyn Handle>,
        on_cancel: OnCancel,
        describe: fn(&mut Description),
    ) -> Tool {
        let mut description = Description::default();
        describe(&mut description);
        let mut problems = Vec::new();
        let mut sound = |schema: Result<Raw, SchemaError>| match schema {
            Ok(schema) => Some(schema),
            Err(error) => {
                problems.push(error.to_string());
                None
            }
        };
        let mut checks = None;
        let input = description.input.map(|input| {
            input.map(|input| {
                checks = input.checks.map(Arc::new);
                input.schema
            })
        });
        let input = input.and_then(&mut sound).unwrap_or_else(no_arguments);
        let mut spec = turnbuckle_types::Tool::new(name, input);
        spec.output_schema = description.output.and_then(sound);
        if let Some(problem) = name_problem(&spec.name) {
            problems.push(problem);
        }
        let check = Check::Decoding(checks);
        Tool {
            spec,
            handler,
            on_cancel,
            check,
            needs: description.needs,
            problems,
            structured: Structured::default(),
            #[cfg(feature = "http")]
            repeated: Annotations::default(),
        }
    }

    /// What the tool does, for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Tool {
        self.spec.description = Some(description.into());
        self
    }

    /// The name that people read.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Tool {
        self.spec.title = Some(title.into());
        self
    }

    /// How the tool behaves: read-only, idempotent and so on.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Tool {
        self.spec.annotations = Some(annotations);
        self
    }

    /// Replaces the schema of the arguments with a hand-written one. With the `validate`
    /// feature, arguments are checked against it before the handler runs.
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<Raw>) -> Tool {
        let schema = schema.into();
        #[cfg(feature = "validate")]
        match super::schema::HandWritten::compile(&schema) {
            Ok(compiled) => self.check = Check::Schema(Arc::new(compiled)),
            Err(error) => self.problems.push(error.to_string()),
        }
        #[cfg(not(feature = "validate"))]
        {
            self.check = Check::Decoding(None);
        }
        self.spec.input_schema = schema;
        self
    }

    /// Sets the schema of the structured output by hand. Revisions that know only objects see
    /// output of any other schema as the member `result` of one.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Raw>) -> Tool {
        self.spec.output_schema = Some(schema.into());
        self
    }

    /// Lets a cancelled handler end by itself: its [`Ctx`](crate::Ctx) says so, and after
    /// `grace` it is dropped as any other would have been at once.
    #[must_use]
    pub fn cooperative(mut self, grace: Duration) -> Tool {
        if self.on_cancel == OnCancel::Drop {
            self.on_cancel = OnCancel::Cooperate(grace);
        }
        self
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

fn no_arguments() -> Raw {
    serde_json::json!({"type": "object"}).into()
}

/// Hosts send names to model APIs that take letters, digits, `_`, `-`, `.` and `/`, 64 or
/// 128 of them.
fn name_problem(name: &str) -> Option<String> {
    let fits = (1..=128).contains(&name.len());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
    (!fits || !plain).then(|| {
        format!("the tool name `{name}` must be 1 to 128 letters, digits, `_`, `-`, `.` or `/`")
    })
}

/// A handler whose type is forgotten.
pub(super) trait Handle: Send + Sync {
    fn call(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<CallToolResult, Failure>>;
}

type Marker<M> = std::marker::PhantomData<fn() -> M>;

fn marker<M>() -> Marker<M> {
    std::marker::PhantomData
}

struct Asynchronous<M, F> {
    handler: F,
    marker: Marker<M>,
}

impl<M: 'static, F: ToolFn<M>> Handle for Asynchronous<M, F> {
    fn call(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<CallToolResult, Failure>> {
        let _ = self.marker;
        Box::pin(async move { self.handler.call(call).await })
    }
}

struct Blocking<M, F> {
    handler: F,
    marker: Marker<M>,
}

impl<M: 'static, F: BlockingFn<M>> Handle for Blocking<M, F> {
    fn call(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<CallToolResult, Failure>> {
        let _ = self.marker;
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || self.handler.call(call)).await {
                Ok(replied) => replied,
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => std::panic::resume_unwind(payload),
                    Err(error) => Err(Failure::Internal(error.into())),
                },
            }
        })
    }
}

/// An `async fn` that can be a tool: up to eight extractors in, a reply out.
#[diagnostic::on_unimplemented(
    message = "this function can't be a tool",
    label = "not a tool's handler",
    note = "a handler is an `async fn` whose arguments are extractors (`Args<T>`, `RawArgs`, \
            `Ctx`, `State<S>`) and whose result is a tool's reply",
    note = "put `#[tool]` on the function to take plain arguments and to see what is wrong",
    note = "a sync function goes to `blocking_tool`"
)]
pub trait ToolFn<M>: Send + Sync + 'static {
    /// Runs it.
    #[doc(hidden)]
    fn call(&self, call: Call) -> impl Future<Output = Result<CallToolResult, Failure>> + Send;
    /// Says what its signature says.
    #[doc(hidden)]
    fn describe(description: &mut Description);
}

/// A sync function that can be a tool: up to eight extractors in, a reply out.
#[diagnostic::on_unimplemented(
    message = "this function can't be a blocking tool",
    label = "not a tool's handler",
    note = "a blocking handler is a plain `fn` whose arguments are extractors; an `async fn` \
            goes to `tool`"
)]
pub trait BlockingFn<M>: Send + Sync + 'static {
    /// Runs it.
    #[doc(hidden)]
    fn call(&self, call: Call) -> Result<CallToolResult, Failure>;
    /// Says what its signature says.
    #[doc(hidden)]
    fn describe(description: &mut Description);
}

macro_rules! handlers {
    ($($kind:ident $argument:ident),*) => {
        impl<F, Fut, R, $($kind,)*> ToolFn<(R, $($kind,)*)> for F
        where
            F: Fn($($kind),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send,
            R: IntoReply + 'static,
            $($kind: FromCall,)*
        {
            async fn call(&self, mut call: Call) -> Result<CallToolResult, Failure> {
                let made = make(&mut call, |_call| Ok(($($kind::from_call(_call)?,)*)));
                // What the arguments were made from is not kept while the handler runs.
                drop(call);
                let ($($argument,)*) = made?;
                self($($argument),*).await.into_reply()
            }

            fn describe(description: &mut Description) {
                $($kind::describe(description);)*
                R::describe(description);
            }
        }

        impl<F, R, $($kind,)*> BlockingFn<(R, $($kind,)*)> for F
        where
            F: Fn($($kind),*) -> R + Send + Sync + 'static,
            R: IntoReply + 'static,
            $($kind: FromCall,)*
        {
            fn call(&self, mut call: Call) -> Result<CallToolResult, Failure> {
                let ($($argument,)*) = make(&mut call, |_call| Ok(($($kind::from_call(_call)?,)*)))?;
                self($($argument),*).into_reply()
            }

            fn describe(description: &mut Description) {
                $($kind::describe(description);)*
                R::describe(description);
            }
        }
    };
}

/// Gives a closure its types.
fn make<T>(
    call: &mut Call,
    arguments: impl FnOnce(&mut Call) -> Result<T, Failure>,
) -> Result<T, Failure> {
    arguments(call)
}

handlers!();
handlers!(A a);
handlers!(A a, B b);
handlers!(A a, B b, C c);
handlers!(A a, B b, C c, D d);
handlers!(A a, B b, C c, D d, E e);
handlers!(A a, B b, C c, D d, E e, G g);
handlers!(A a, B b, C c, D d, E e, G g, H h);
handlers!(A a, B b, C c, D d, E e, G g, H h, I i);
