//! The sentences on a value that does not fit its schema.

use std::fmt::{self, Write as _};

use crate::protocol::place::shorten;
use serde_json::Value;

/// One thing that is wrong with some arguments.
///
/// ```
/// use std::collections::BTreeMap;
/// use turnbuckle::server::schema::{decode_arguments, input_schema_of};
///
/// type Colors = BTreeMap<String, Vec<u8>>;
/// let checks = input_schema_of::<Colors>()?.checks;
/// let error = decode_arguments::<Colors>(r#"{"red": [0, 256]}"#, Some(&checks)).unwrap_err();
/// assert_eq!(error.problems[0].path, "red[1]");
/// assert_eq!(error.problems[0].message, "expected an integer from 0 to 255, got 256");
/// # Ok::<(), turnbuckle::server::schema::SchemaError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Where, such as `items[2].name`; empty for the arguments as a whole.
    pub path: String,
    /// What, such as `must be at least 1, is 0`.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let says_of_it = ["is ", "must "].iter().any(|verb| self.message.starts_with(verb));
        match (self.path.is_empty(), says_of_it) {
            (true, true) => write!(f, "the arguments object {}", self.message),
            (true, false) => f.write_str(&self.message),
            (false, true) => write!(f, "`{}` {}", self.path, self.message),
            (false, false) => write!(f, "`{}`: {}", self.path, self.message),
        }
    }
}

/// What the log is told of output that does not fit its schema, if there is anything to tell.
pub(crate) fn unfit_output(problems: &[Problem]) -> Option<String> {
    if problems.is_empty() {
        return None;
    }
    let mut sentence = "the structured content does not fit the output schema".to_owned();
    for (index, problem) in problems.iter().enumerate() {
        sentence.push_str(if index == 0 { ": at " } else { "; at " });
        // Writing into a `String` does not fail.
        let _ = match &*problem.path {
            "" => write!(sentence, "its root: {}", problem.message),
            path => write!(sentence, "`{path}`: {}", problem.message),
        };
    }
    Some(sentence)
}

/// `1 item`, `2 items`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `must be one of "a", "b", is "c"`, with a long list cut short.
pub(crate) fn must_be_one_of(choices: &[Value], is: &str) -> String {
    let choices = choices.iter().map(|choice| shorten(&choice.to_string())).collect();
    format!("must be {}, is {is}", one_of(choices))
}

/// `one of "a", "b"`, with a long list cut short.
pub(crate) fn one_of(mut choices: Vec<String>) -> String {
    const MOST: usize = 20;
    let more = if choices.len() > MOST { ", …" } else { "" };
    let one_of = if choices.len() == 1 { "" } else { "one of " };
    choices.truncate(MOST);
    format!("{one_of}{}{more}", choices.join(", "))
}
