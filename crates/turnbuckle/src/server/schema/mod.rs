//! JSON Schemas of argument and result types, and how arguments are decoded and checked.
//!
//! A type's schema is the one that schemars derives, brought into a shape that clients and model APIs
//! take without complaint ([`input_schema_of`]). Arguments are decoded straight into the type; the
//! constraints that decoding does not enforce (ranges, lengths, patterns) are compiled once into
//! [`Checks`]. Where decoding fails, the same [`Checks`] say what is wrong. With the feature `validate`,
//! `HandWritten` validates arguments, and `OutputCheck` output, by hand-written schemas.

mod checks;
mod decode;
#[cfg(feature = "validate")]
mod handwritten;
mod inline;
mod keywords;
mod portable;
mod problem;
pub(crate) mod structured;
mod text;
mod texts;
mod wrap;

#[cfg(test)]
mod tests;

pub(super) use inline::definition_name;
pub(super) use portable::mark_order;
pub(super) use text::put_in_order;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use turnbuckle_types::Raw;

#[cfg(feature = "validate")]
pub use self::handwritten::{HandWritten, OutputCheck};
pub use self::{
    checks::Checks,
    decode::decode_arguments,
    keywords::lint,
    problem::{ArgumentError, Problem},
};
pub(crate) use self::{checks::kept, portable::ORDER, problem::shorten, wrap::wrap};
pub use crate::protocol::json_schema::SchemaError;
pub(crate) use crate::protocol::json_schema::rewrite::without_keyword;

/// The schema of a tool's arguments, and what must be checked beside decoding them.
///
/// ```
/// use turnbuckle::server::schema::input_schema_of;
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
/// assert!(input.checks.is_empty(), "decoding enforces all of it");
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InputSchema {
    /// The schema: always an object at the root.
    pub schema: Raw,
    /// The constraints that decoding into the type does not enforce, and the sentences for arguments
    /// that cannot be decoded.
    pub checks: Checks,
}

/// Returns the schema of arguments of type `T`, in the portable shape.
///
/// The root is an object and always has `properties`, optional fields are left out of `required` and have no `null`,
/// numeric `format`s give way to bounds, unit enums are plain `enum`s, small definitions are
/// inlined, and properties stand in the order of declaration; those that are not always serialized
/// (`skip_serializing_if`) stand last. Keywords that are not JSON Schema's own are dropped, except
/// `x-mcp-header`.
///
/// Decoding stays a little wider than the schema: `null` is taken for an absent optional field,
/// an array for a nested struct, and `{"Name":null}` for the unit variant `Name`.
pub fn input_schema_of<T: JsonSchema + DeserializeOwned>() -> Result<InputSchema, SchemaError> {
    let tree = portable::input_tree::<T>()?;
    Ok(InputSchema { schema: text::write(&tree)?, checks: Checks::compile(&tree)? })
}

/// The schema of a tool's structured result.
///
/// ```
/// use turnbuckle::server::schema::output_schema_of;
///
/// let sums = output_schema_of::<Vec<i64>>()?;
/// assert_eq!(sums.schema.as_str(), r#"{"type":"array","items":{"type":"integer"}}"#);
/// assert!(!sums.is_object);
/// assert_eq!(
///     sums.wrapped("result").as_str(),
///     r#"{"type":"object","properties":{"result":{"type":"array","items":{"type":"integer"}}},"required":["result"]}"#
/// );
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
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
    let checks = Checks::compile_for(&tree, checks::compile::Side::Output)?;
    let checks = (!checks.is_empty()).then_some(checks);
    Ok(OutputSchema { schema: text::write(&tree)?, is_object, checks })
}
