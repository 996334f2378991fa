//! Owns what is said about arguments that cannot be used. Does not own finding the problems.

use std::fmt;

pub use crate::json_schema::problem::Problem;
pub(crate) use crate::json_schema::problem::shorten;
pub(super) use crate::json_schema::problem::{count, must_be_one_of, push_index, push_key};

/// Arguments that do not fit a tool: what is wrong, and where.
///
/// ```
/// use turnbuckle::schema::decode_arguments;
///
/// #[derive(Debug, serde::Deserialize)]
/// struct Add { a: i64, b: i64 }
///
/// let error = decode_arguments::<Add>(r#"{"a": "one", "b": 2}"#, None).unwrap_err();
/// assert_eq!(error.to_string(), "`a`: expected an integer, got a string");
/// let error = decode_arguments::<Add>(r#"{"a": 1}"#, None).unwrap_err();
/// assert_eq!(error.to_string(), "`b` is missing");
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
