//! Owns how argument and result types become JSON Schemas, and how arguments are decoded and checked.
//! Does not own when that happens (registration, dispatch), nor what a failure becomes on the wire.
//!
//! A type's schema is what schemars derives, brought into a shape that clients and model APIs take
//! without complaint ([`input_schema_of`]). Arguments of such a tool are decoded straight into the
//! type; what decoding does not enforce (ranges, lengths, patterns) is compiled once into [`Checks`].
//! What serialising does not keep of a result is checked in the same way. Behind the feature
//! `validate`, arguments are validated by `HandWritten`, and output by `OutputCheck`, where their
//! schemas were written by hand.

mod checks;
mod decode;
mod explain;
#[cfg(feature = "validate")]
mod handwritten;
mod inline;
mod keywords;
mod number;
mod portable;
mod problem;
mod shape;
mod text;
mod texts;
mod walk;
mod wrap;

#[cfg(test)]
mod tests;

pub(super) use inline::definition_name;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use turnbuckle_types::Raw;

pub use self::checks::Checks;
pub use self::decode::decode_arguments;
#[cfg(feature = "validate")]
pub use self::handwritten::HandWritten;
pub use self::keywords::lint;
pub(crate) use self::problem::shorten;
pub use self::problem::{ArgumentError, Problem};
pub(crate) use self::shape::{Shape, shape_of};
pub(crate) use self::wrap::wrap;
#[cfg(feature = "validate")]
pub use crate::json_schema::OutputCheck;
pub use crate::json_schema::SchemaError;
pub(crate) use crate::json_schema::rewrite::without_keyword;

/// The schema of a tool's arguments, and what must be checked beside decoding them.
///
/// ```
/// use turnbuckle::schema::input_schema_of;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sleep {
///     /// How long, in milliseconds.
///     ms: u64,
///     label: Option<String>,
/// }
///
/// let input = input_schema_of::<Sleep>()?;
/// assert_eq!(
///     input.schema.as_str(),
///     concat!(
///         r#"{"type":"object","properties":{"#,
///         r#""ms":{"type":"integer","description":"How long, in milliseconds.","minimum":0},"#,
///         r#""label":{"type":"string"}},"required":["ms"]}"#,
///     )
/// );
/// assert!(input.checks.is_none(), "decoding enforces all of it");
/// # Ok::<(), turnbuckle::schema::SchemaError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InputSchema {
    /// The schema: always an object at the root.
    pub schema: Raw,
    /// The constraints that decoding into the type does not enforce; `None` when there are none.
    pub checks: Option<Checks>,
}

/// The schema of arguments of type `T`, in the portable shape.
///
/// The root is an object, optional fields are left out of `required` and have no `null`,
/// numeric `format`s give way to bounds, unit enums are plain `enum`s, small definitions are
/// inlined, and properties stand in the order of declaration. Keywords that are not JSON Schema's
/// own are dropped, except `x-mcp-header`.
///
/// Decoding stays a little wider than the schema: `null` is taken for an absent optional field,
/// an array for a nested struct, and `{"Name":null}` for the unit variant `Name`.
pub fn input_schema_of<T: JsonSchema + DeserializeOwned>() -> Result<InputSchema, SchemaError> {
    let shape = shape::shape_of::<T>();
    let tree = portable::input_tree::<T>(&shape)?;
    let checks = Checks::compile_beside(&tree, &shape)?;
    Ok(InputSchema { schema: text::write(&tree, &shape)?, checks })
}

/// The schema of a tool's structured result.
///
/// ```
/// use turnbuckle::schema::output_schema_of;
///
/// let sums = output_schema_of::<Vec<i64>>()?;
/// assert_eq!(sums.schema.as_str(), r#"{"type":"array","items":{"type":"integer"}}"#);
/// assert!(!sums.is_object);
/// assert_eq!(
///     sums.wrapped("result").as_str(),
///     r#"{"type":"object","properties":{"result":{"type":"array","items":{"type":"integer"}}},"required":["result"]}"#
/// );
/// # Ok::<(), turnbuckle::schema::SchemaError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutputSchema {
    /// The schema of the value as it is serialised.
    pub schema: Raw,
    /// Whether every value of the type is an object, and the root says so.
    pub is_object: bool,
    /// The ranges, lengths and patterns, which no type keeps by itself; `None` when there are none.
    pub checks: Option<Checks>,
}

impl OutputSchema {
    /// The schema of an object whose one member, `property`, is this value: what a revision needs
    /// that knows only objects. References keep working, which pasting one schema into another breaks.
    pub fn wrapped(&self, property: &str) -> Raw {
        wrap(&self.schema, property)
    }
}

/// The schema of a result of type `T`, describing how it is serialised.
///
/// An optional field without `skip_serializing_if` is written as `null`, so here, unlike in
/// arguments, it keeps its `null`. Properties stand in the order of declaration, required ones first.
pub fn output_schema_of<T: JsonSchema>() -> Result<OutputSchema, SchemaError> {
    let tree = portable::output_tree::<T>();
    let is_object = tree.get("type").is_some_and(|kind| kind == "object");
    let checks = Checks::compile_output(&tree)?;
    let schema = text::write(&tree, &shape::Shape::default())?;
    Ok(OutputSchema { schema, is_object, checks })
}
