//! A tool: its description, its handler, and how its arguments and output are checked.

use std::sync::Arc;

use turnbuckle_types::{CallToolResult, Icon, Raw, ToolAnnotations};

use super::{Registration, name_problem, registration_methods};
#[cfg(feature = "http")]
use crate::protocol::param_headers::Annotations;
use crate::server::{
    handler::{
        extract::Description,
        function::{BlockingFn, HandlerFn},
    },
    schema::{ArgumentError, Checks, kept, structured::Structured},
};

/// A tool and its handler, for [`Server::tool`](crate::Server::tool).
#[derive(Clone)]
#[doc(alias = "ToolRoute")]
pub struct ToolDef {
    pub(crate) spec: turnbuckle_types::Tool,
    pub(crate) registration: Registration<CallToolResult>,
    /// The rules of the type that its arguments are decoded into.
    pub(crate) checks: Option<Arc<Checks>>,
    /// Validates the arguments by a hand-written schema, before they are decoded.
    pub(crate) check_input: Option<CheckInput>,
    /// Checks a result for what neither its type nor the handler guarantees.
    pub(crate) check_output: Option<CheckOutput>,
    /// What its structured output is where only objects are known; found when the server starts.
    pub(crate) structured: Structured,
    /// Arguments that HTTP repeats in headers; set when the server starts.
    #[cfg(feature = "http")]
    pub(crate) repeated: Annotations,
}

/// Validates the text of arguments.
pub(crate) type CheckInput = Arc<dyn Fn(&str) -> Result<(), ArgumentError> + Send + Sync>;
/// Checks a result. The error is for the log.
pub(crate) type CheckOutput = Arc<dyn Fn(&CallToolResult) -> Result<(), String> + Send + Sync>;

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
            Some(input) => (input.schema, Some(Arc::new(input.checks))),
            None => (no_arguments(), None),
        };
        let mut spec = turnbuckle_types::Tool::new(name, schema);
        let output = registration.sound(description.output);
        let (schema, promised) = output.map(|output| (output.schema, output.checks)).unzip();
        spec.output_schema = schema;
        let check_output = promised
            .flatten()
            .map(|checks| -> CheckOutput { Arc::new(move |result| kept(&checks, result)) });
        ToolDef {
            spec,
            registration,
            checks,
            check_input: None,
            check_output,
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

    /// Replaces the schema of the arguments with a hand-written one, by which nothing is checked: the
    /// handler, or decoding into its [`Args`](crate::Args), has to refuse arguments that do not fit.
    /// With the feature `validate`, `Tool::input_schema` checks them.
    #[must_use]
    pub fn input_schema_unchecked(mut self, schema: impl Into<Raw>) -> ToolDef {
        self.checks = self.checks.map(|checks| Arc::new(checks.without_constraints()));
        self.check_input = None;
        self.spec.input_schema = schema.into();
        self
    }

    /// Sets the schema of the structured output by hand. Output is not checked by it. Revisions that
    /// know only objects see output of any other schema as the member `result` of one. With the
    /// feature `validate`, `ToolDef::output_schema` checks output.
    #[must_use]
    pub fn output_schema_unchecked(mut self, schema: impl Into<Raw>) -> ToolDef {
        self.check_output = None;
        self.spec.output_schema = Some(schema.into());
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
}

#[cfg(feature = "validate")]
impl ToolDef {
    /// Replaces the schema of the arguments with a hand-written one, by which arguments are validated
    /// before the handler runs.
    #[must_use]
    pub fn input_schema(self, schema: impl Into<Raw>) -> ToolDef {
        let mut tool = self.input_schema_unchecked(schema);
        let validator = crate::server::schema::HandWritten::compile(&tool.spec.input_schema);
        tool.check_input =
            tool.registration.sound(Some(validator)).map(|validator| -> CheckInput {
                Arc::new(move |arguments| validator.validate(arguments))
            });
        tool
    }

    /// Sets the schema of the structured output by hand. Output that does not fit it, or is missing,
    /// is an internal error, and the log says what is wrong. Revisions that know only objects see
    /// output of any other schema as the member `result` of one.
    #[must_use]
    pub fn output_schema(self, schema: impl Into<Raw>) -> ToolDef {
        let schema = schema.into();
        let mut tool = self.output_schema_unchecked(schema.clone());
        let check = crate::server::schema::OutputCheck::compile(&schema);
        tool.check_output = tool
            .registration
            .sound(Some(check))
            .map(|check| -> CheckOutput { Arc::new(move |result| check.check(result)) });
        tool
    }
}

registration_methods!(ToolDef);

fn no_arguments() -> Raw {
    // Many clients read `properties` of every tool.
    serde_json::json!({"type": "object", "properties": {}}).into()
}
