//! Tools.

use std::sync::Arc;

use turnbuckle_types::{CallToolResult, Icon, Raw, ToolAnnotations};

use super::{Registration, name_problem, registration_methods};
#[cfg(feature = "http")]
use crate::envelope::annotations::Annotations;
use crate::server::{
    extract::Description,
    handler::{BlockingFn, HandlerFn},
    schema::Checks,
    structured::Structured,
};

/// A tool and its handler, for [`Server::tool`](crate::Server::tool).
#[derive(Clone)]
pub struct ToolDef {
    pub(crate) spec: turnbuckle_types::Tool,
    pub(crate) registration: Registration<CallToolResult>,
    pub(crate) check: Check,
    pub(crate) promise: Promise,
    /// The form of structured output in revisions that know only objects; set when the server starts.
    pub(crate) structured: Structured,
    /// Arguments that HTTP repeats in headers; set when the server starts.
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

/// The check of a tool's output against its schema.
#[derive(Clone)]
pub(crate) enum Promise {
    /// No schema, or the type guarantees it.
    Kept,
    /// Constraints of the type that serialising does not know.
    Checks(Checks),
    #[cfg(feature = "validate")]
    Schema(crate::server::schema::OutputCheck),
}

/// Creates a tool from an `async fn` whose arguments are extractors.
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
pub fn tool<M: 'static, F>(name: impl Into<String>, handler: F) -> ToolDef
where
    F: HandlerFn<CallToolResult, M>,
{
    ToolDef::new(name.into(), Registration::asynchronous(handler))
}

/// Creates a tool from a sync function, which runs on a thread where it may block.
///
/// A cancelled call's output is discarded; the function itself ends when it ends, and can
/// ask [`Ctx::is_cancelled`](crate::Ctx::is_cancelled).
pub fn blocking_tool<M: 'static, F>(name: impl Into<String>, handler: F) -> ToolDef
where
    F: BlockingFn<CallToolResult, M>,
{
    ToolDef::new(name.into(), Registration::blocking(handler))
}

/// A value that [`Server::tool`](crate::Server::tool) takes: a [`ToolDef`], or a function with
/// `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on the function, or wrap it: `tool(\"name\", function)`"
)]
pub trait IntoTool {
    /// Returns the tool.
    fn into_tool(self) -> ToolDef;
}

impl IntoTool for ToolDef {
    fn into_tool(self) -> ToolDef {
        self
    }
}

impl ToolDef {
    fn new(
        name: String,
        (mut registration, description): (Registration<CallToolResult>, Description),
    ) -> ToolDef {
        registration.problems.extend(name_problem("tool", &name));
        let (schema, checks) = match registration.sound(description.input) {
            Some(input) => (input.schema, input.checks.map(Arc::new)),
            None => (no_arguments(), None),
        };
        let mut spec = turnbuckle_types::Tool::new(name, schema);
        let output = registration.sound(description.output);
        let (schema, promised) = output.map(|output| (output.schema, output.checks)).unzip();
        spec.output_schema = schema;
        ToolDef {
            spec,
            registration,
            check: Check::Decoding(checks),
            promise: promised.flatten().map_or(Promise::Kept, Promise::Checks),
            structured: Structured::default(),
            #[cfg(feature = "http")]
            repeated: Annotations::default(),
        }
    }

    /// Sets the description for the model.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> ToolDef {
        self.spec.description = Some(description.into());
        self
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> ToolDef {
        self.spec.title = Some(title.into());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> ToolDef {
        self.spec.icons.get_or_insert_default().push(icon);
        self
    }

    /// Sets hints about the tool's behaviour: read-only, idempotent and so on.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> ToolDef {
        self.spec.annotations = Some(annotations);
        self
    }

    /// Replaces the schema of the arguments with a hand-written one. With the `validate`
    /// feature, arguments are checked against it before the handler runs.
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<Raw>) -> ToolDef {
        let schema = schema.into();
        #[cfg(feature = "validate")]
        match crate::server::schema::HandWritten::compile(&schema) {
            Ok(compiled) => self.check = Check::Schema(Arc::new(compiled)),
            Err(error) => self.registration.problems.push(error.to_string()),
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
    /// output that does not fit it, or is missing, is logged and reported as an internal error.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Raw>) -> ToolDef {
        let schema = schema.into();
        #[cfg(feature = "validate")]
        match crate::server::schema::OutputCheck::compile(&schema) {
            Ok(compiled) => self.promise = Promise::Schema(compiled),
            Err(error) => self.registration.problems.push(error.to_string()),
        }
        #[cfg(not(feature = "validate"))]
        {
            self.promise = Promise::Kept;
        }
        self.spec.output_schema = Some(schema);
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

registration_methods!(ToolDef);

fn no_arguments() -> Raw {
    serde_json::json!({"type": "object"}).into()
}
