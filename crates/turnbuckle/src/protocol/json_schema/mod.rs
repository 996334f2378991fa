//! Parts of JSON Schema that both sides need: keywords, rewriting a schema, sentences on a value that
//! does not fit, and validation.

pub(crate) mod keywords;
pub(crate) mod problem;
pub(crate) mod rewrite;
#[cfg(feature = "validate")]
pub(crate) mod validator;

use std::fmt;

/// A schema that cannot be used for a tool: one sentence that says what to write instead.
///
/// ```
/// use turnbuckle::server::schema::input_schema_of;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// enum Shape { Circle, Square }
///
/// assert_eq!(
///     input_schema_of::<Shape>().unwrap_err().to_string(),
///     "the arguments of a tool must be an object, but `Shape` is an enum: \
///      put it in a field of a struct and take that struct"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    sentence: Box<str>,
}

impl SchemaError {
    pub(crate) fn new(sentence: impl Into<Box<str>>) -> SchemaError {
        SchemaError { sentence: sentence.into() }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for SchemaError {}
