//! Owns what is said about arguments that cannot be used, and how a place in them is written.
//! Does not own finding the problems.

use std::fmt::{self, Write as _};

/// The longest piece of somebody's input that is repeated to them.
const LONGEST_ECHO: usize = 40;

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
    pub(in crate::server) fn one(problem: Problem) -> ArgumentError {
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

/// One thing that is wrong with some arguments.
///
/// ```
/// use turnbuckle::schema::decode_arguments;
///
/// let error = decode_arguments::<std::collections::BTreeMap<String, Vec<u8>>>(
///     r#"{"red": [0, 256]}"#,
///     None,
/// )
/// .unwrap_err();
/// assert_eq!(error.problems[0].path, "red[1]");
/// assert_eq!(error.problems[0].message, "expected an integer from 0 to 255, got 256");
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
    pub(in crate::server) fn new(path: impl Into<String>, message: impl Into<String>) -> Problem {
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

/// Appends the name of a member to a path.
pub(super) fn push_key(path: &mut String, key: &str) {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@');
    let key = shorten(key);
    // Writing into a `String` does not fail.
    if key.is_empty() || !key.chars().all(|c| is_plain(c) || c == '…') {
        let _ = write!(path, "[{key:?}]");
    } else {
        let dot = if path.is_empty() { "" } else { "." };
        let _ = write!(path, "{dot}{key}");
    }
}

/// Appends the number of an item to a path.
pub(super) fn push_index(path: &mut String, index: usize) {
    let _ = write!(path, "[{index}]");
}

/// Text that may be repeated to whoever sent it: no longer than some forty characters.
pub(in crate::server) fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_ECHO) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// `1 item`, `2 items`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
