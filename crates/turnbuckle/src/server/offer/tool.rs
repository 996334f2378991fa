//! Owns what a tool is: its description, its handler, how its arguments are checked.
//! Does not own the tools of a server, nor how a call reaches one.

use std::sync::Arc;

use turnbuckle_types::{CallToolResult, Icon, Raw, ToolAnnotations};

use super::{Offer, name_problem, offered};
#[cfg(feature = "http")]
use crate::envelope::annotations::Annotations;
use crate::server::{
    extract::Description,
    handler::{BlockingFn, HandlerFn},
    schema::Checks,
    structured::Structured,
};

/// A tool, to be given to [`Server::tool`](crate::Server::tool).
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: turnbuckle_types::Tool,
    pub(crate) offer: Offer<CallToolResult>,
    pub(crate) check: Check,
    pub(crate) promise: Promise,
    /// What its structured output is where only objects are known; found when the server starts.
    pub(crate) structured: Structured,
    /// Arguments that HTTP repeats in headers; read when the server starts.
    #[cfg(feature = "http")]
    pub(crate) repeated: Annotations,
}

/// How arguments are checked before the handler runs.
#[derive(Clone)]
pub(crate) enum Check {
    /// By decoding them, plus the constraints that decoding does not know.
    Decoding(Option<Arc<Checks>>),
    #[cfg(feature = "validate")]
    Schema(Arc<crate::server::schema::HandWritten>),
}

/// What of its output schema a tool might not keep.
#[derive(Clone)]
pub(crate) enum Promise {
    /// There is none, or its type can't but keep it.
    Kept,
    /// Constraints of the type that serialising does not know.
    Checks(Checks),
    #[cfg(feature = "validate")]
    Schema(crate::server::schema::OutputCheck),
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
pub fn tool<M: 'static, F>(name: impl Into<String>, handler: F) -> Tool
where
    F: HandlerFn<CallToolResult, M>,
{
    Tool::new(name.into(), Offer::asynchronous(handler))
}

/// Makes a tool from a sync function, which runs on a thread where it may block.
///
/// A cancelled call's output is discarded; the function itself ends when it ends, and can
/// ask [`Ctx::is_cancelled`](crate::Ctx::is_cancelled).
pub fn blocking_tool<M: 'static, F>(name: impl Into<String>, handler: F) -> Tool
where
    F: BlockingFn<CallToolResult, M>,
{
    Tool::new(name.into(), Offer::blocking(handler))
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
    fn new(name: String, (mut offer, description): (Offer<CallToolResult>, Description)) -> Tool {
        offer.problems.extend(name_problem("tool", &name));
        let (schema, checks) = match offer.sound(description.input) {
            Some(input) => (input.schema, input.checks.map(Arc::new)),
            None => (no_arguments(), None),
        };
        let mut spec = turnbuckle_types::Tool::new(name, schema);
        let output = offer.sound(description.output);
        let (schema, promised) = output.map(|output| (output.schema, output.checks)).unzip();
        spec.output_schema = schema;
        Tool {
            spec,
            offer,
            check: Check::Decoding(checks),
            promise: promised.flatten().map_or(Promise::Kept, Promise::Checks),
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

    /// Adds a picture of it.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Tool {
        self.spec.icons.get_or_insert_default().push(icon);
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
        match crate::server::schema::HandWritten::compile(&schema) {
            Ok(compiled) => self.check = Check::Schema(Arc::new(compiled)),
            Err(error) => self.offer.problems.push(error.to_string()),
        }
        #[cfg(not(feature = "validate"))]
        {
            self.check = Check::Decoding(None);
        }
        self.spec.input_schema = schema;
        self
    }

    /// Sets the schema of the structured output by hand. Revisions that know only objects see
    /// output of any other schema as the member `result` of one. With the `validate` feature,
    /// output that does not fit it, or is missing, is an internal error, told to the log.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Raw>) -> Tool {
        let schema = schema.into();
        #[cfg(feature = "validate")]
        match crate::server::schema::OutputCheck::compile(&schema) {
            Ok(compiled) => self.promise = Promise::Schema(compiled),
            Err(error) => self.offer.problems.push(error.to_string()),
        }
        #[cfg(not(feature = "validate"))]
        {
            self.promise = Promise::Kept;
        }
        self.spec.output_schema = Some(schema);
        self
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

offered!(Tool);

fn no_arguments() -> Raw {
    serde_json::json!({"type": "object"}).into()
}
