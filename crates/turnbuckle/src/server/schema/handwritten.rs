//! Validates arguments by a hand-written schema.

use std::{fmt, sync::Arc};

use turnbuckle_types::Raw;

use super::{SchemaError, problem::ArgumentError};
pub use crate::protocol::json_schema::validator::OutputCheck;
use crate::protocol::json_schema::validator::{
    compile::{self, CompiledSchema},
    violations::problems,
};

/// A hand-written input schema, compiled.
///
/// The schema is JSON Schema 2020-12 unless its `$schema` names another draft, its root is
/// `"type": "object"`, and it refers to nothing outside itself: nothing is ever fetched.
///
/// ```
/// use turnbuckle::server::schema::HandWritten;
/// use turnbuckle_types::Raw;
///
/// let schema = Raw::from(serde_json::json!({
///     "type": "object",
///     "properties": {"city": {"type": "string", "minLength": 2}},
///     "required": ["city"],
/// }));
/// let schema = HandWritten::compile(&schema)?;
/// assert!(schema.validate(r#"{"city": "Ulm"}"#).is_ok());
/// let error = schema.validate(r#"{"city": 7}"#).unwrap_err();
/// assert_eq!(error.to_string(), "`city`: expected a string, got a number");
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct HandWritten {
    schema: Arc<CompiledSchema>,
}

impl HandWritten {
    /// Compiles a schema, or says what must be changed in it.
    pub fn compile(schema: &Raw) -> Result<HandWritten, SchemaError> {
        let tree = compile::read(schema)?;
        if tree.get("type").is_none_or(|kind| kind != "object") {
            return Err(SchemaError::new(
                "the schema of a tool's arguments must have `\"type\": \"object\"` at its root: add it",
            ));
        }
        Ok(HandWritten { schema: Arc::new(compile::compile(schema, &tree)?) })
    }

    /// Validates arguments, given as the text of one JSON value. Reports a few violations at most.
    pub fn validate(&self, arguments: &str) -> Result<(), ArgumentError> {
        match problems(&self.schema, arguments) {
            problems if problems.is_empty() => Ok(()),
            problems => Err(ArgumentError { problems }),
        }
    }
}

impl fmt::Debug for HandWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandWritten")
            .field("draft", &self.schema.validator.draft())
            .finish_non_exhaustive()
    }
}
