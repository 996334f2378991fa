//! Owns what is said about a value that does not fit its schema, and how a place in it is written.
//! Does not own finding the problems.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// The longest piece of somebody's input that is repeated to them.
const LONGEST_ECHO: usize = 40;

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

/// Appends the name of a member to a path.
pub(crate) fn push_key(path: &mut String, key: &str) {
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
pub(crate) fn push_index(path: &mut String, index: usize) {
    let _ = write!(path, "[{index}]");
}

/// Text that may be repeated to whoever sent it: no longer than some forty characters.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_ECHO) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// `1 item`, `2 items`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `must be one of "a", "b"`, with a long list cut short.
pub(crate) fn must_be_one_of(choices: &[Value]) -> String {
    const MOST: usize = 20;
    let listed: Vec<String> =
        choices.iter().take(MOST).map(|choice| shorten(&choice.to_string())).collect();
    let more = if choices.len() > MOST { ", …" } else { "" };
    let one_of = if choices.len() == 1 { "" } else { "one of " };
    format!("must be {one_of}{}{more}", listed.join(", "))
}
