//! The error of arguments that cannot be used.

use std::fmt;

pub use crate::protocol::json_schema::problem::Problem;
pub(crate) use crate::protocol::place::shorten;
pub(super) use crate::protocol::{
    json_schema::problem::{count, must_be_one_of, one_of},
    place::{push_index, push_key},
};

/// Arguments that do not fit a tool: what is wrong, and where.
///
/// ```
/// use turnbuckle::server::schema::{decode_arguments, input_schema_of};
///
/// #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let checks = input_schema_of::<Add>()?.checks;
/// let error = decode_arguments::<Add>(r#"{"a": "one"}"#, Some(&checks)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "there are 2 problems:\n- `a`: expected an integer, got a string\n- `b` is missing"
/// );
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentError {
    /// Invariant: never empty, and never more than a few.
    pub problems: Vec<Problem>,
}

impl ArgumentError {
    pub(crate) fn one(problem: Problem) -> ArgumentError {
        ArgumentError { problems: vec![problem] }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = &self.problems[..] {
            return problem.fmt(f);
        }
        write!(f, "there are {} problems:", self.problems.len())?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

impl std::error::Error for ArgumentError {}
