//! Validates the output of a tool by a hand-written schema.

use std::{fmt, sync::Arc};

use turnbuckle_types::{CallToolResult, Raw};

use super::{
    compile::{self, CompiledSchema},
    violations::problems,
};
use crate::protocol::json_schema::{SchemaError, problem::unfit_output};

/// A hand-written output schema, compiled.
///
/// It is bounded and refers to nothing outside itself, as an input schema is; its root may describe
/// a value of any kind.
///
/// ```
/// use turnbuckle::server::schema::OutputCheck;
/// use turnbuckle_types::{CallToolResult, Raw};
///
/// let check = OutputCheck::compile(&Raw::from(serde_json::json!({
///     "type": "object",
///     "properties": {"sum": {"type": "integer"}},
/// })))?;
/// let mut result = CallToolResult::new([]);
/// assert!(check.check(&result).is_err(), "there is nothing where something was promised");
/// result.structured_content = Some(serde_json::json!({"sum": 3}).into());
/// assert!(check.check(&result).is_ok());
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct OutputCheck {
    schema: Arc<CompiledSchema>,
}

impl OutputCheck {
    /// Compiles a schema, or says what must be changed in it.
    pub fn compile(schema: &Raw) -> Result<OutputCheck, SchemaError> {
        let tree = compile::read(schema)?;
        if !tree.is_object() {
            // Every revision has an object here, even those in which output may be anything.
            return Err(SchemaError::new(
                "the schema of a tool's output must be a JSON object: write `{}` for any value",
            ));
        }
        Ok(OutputCheck { schema: Arc::new(compile::compile(schema, &tree)?) })
    }

    /// Whether a result keeps the promise, or else, for the log, in which places it does not.
    /// A result that is an error promises nothing.
    pub fn check(&self, result: &CallToolResult) -> Result<(), String> {
        if result.is_error == Some(true) {
            return Ok(());
        }
        let Some(content) = &result.structured_content else {
            return Err("there is no structured content, but the tool has an output schema".into());
        };
        unfit_output(&problems(&self.schema, content.as_str())).map_or(Ok(()), Err)
    }
}

impl fmt::Debug for OutputCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputCheck")
            .field("draft", &self.schema.validator.draft())
            .finish_non_exhaustive()
    }
}
