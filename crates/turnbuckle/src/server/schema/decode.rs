//! Decodes arguments into their type, and says what is wrong when that fails.

use serde::de::DeserializeOwned;

use super::{
    checks::Checks,
    problem::{ArgumentError, Problem},
};
use crate::{
    protocol::place::{Culprit, DecodeFailure, end_of_string, read},
    server::schema::checks::number::EXACT,
};

/// The longest text of a type's own decoder that is repeated.
const LONGEST_MESSAGE: usize = 300;

/// Decodes a tool's arguments, given as the text of one JSON value, and runs the checks.
///
/// A whole number may be written as `1.0` or `1e3` where an integer is expected, as JSON Schema has it.
///
/// ```
/// use turnbuckle::server::schema::{decode_arguments, input_schema_of};
///
/// #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
/// struct Page {
///     #[schemars(range(min = 1, max = 100))]
///     size: u32,
/// }
///
/// let checks = input_schema_of::<Page>()?.checks;
/// assert_eq!(decode_arguments::<Page>(r#"{"size": 20}"#, Some(&checks))?.size, 20);
/// let error = decode_arguments::<Page>(r#"{"size": 0}"#, Some(&checks)).unwrap_err();
/// assert_eq!(error.to_string(), "`size` must be at least 1, is 0");
/// let error = decode_arguments::<Page>(r#"{"size": "all"}"#, Some(&checks)).unwrap_err();
/// assert_eq!(error.to_string(), "`size`: expected an integer, got a string");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_arguments<T: DeserializeOwned>(
    text: &str,
    checks: Option<&Checks>,
) -> Result<T, ArgumentError> {
    // serde would take the items of an array for the fields of a struct.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(not_an_object(text));
    }
    let arguments = match read(text) {
        Ok(arguments) => arguments,
        Err(failure) => read_again(text, failure, checks)?,
    };
    checks.map_or(Ok(()), |checks| checks.run(text))?;
    Ok(arguments)
}

/// Tries once more with whole numbers written plainly, or says what is wrong.
#[cold]
fn read_again<T: DeserializeOwned>(
    text: &str,
    failure: DecodeFailure,
    checks: Option<&Checks>,
) -> Result<T, ArgumentError> {
    match write_whole_numbers_plainly(text) {
        None => Err(explain(text, &failure, checks)),
        Some(plain) => read(&plain).map_err(|failure| explain(&plain, &failure, checks)),
    }
}

/// Says which rules of the schema the text violates. If it violates none, a decoder has rules of its
/// own, and its words are passed on.
fn explain(text: &str, failure: &DecodeFailure, checks: Option<&Checks>) -> ArgumentError {
    let problems = checks.map(|checks| checks.explain(text)).unwrap_or_default();
    if !problems.is_empty() {
        return ArgumentError { problems };
    }
    let mut path = String::new();
    failure.place(text, Culprit::Value).write(&mut path);
    let mut message = failure.message();
    if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
    ArgumentError::one(Problem::new(path, message))
}

#[cold]
fn not_an_object(text: &str) -> ArgumentError {
    let got = match text.trim_ascii_start().bytes().next() {
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'-' | b'0'..=b'9') => "a number",
        _ => "no JSON",
    };
    ArgumentError::one(Problem::new("", format!("expected an object, got {got}")))
}

/// The text with numbers such as `1.0` and `1e3` written as integers; `None` when there are none.
fn write_whole_numbers_plainly(text: &str) -> Option<String> {
    let is_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().position(|byte| !is_number(*byte));
                let end = length.map_or(bytes.len(), |length| at + length);
                if let Some(whole) = plain_whole_number(&text[at..end]) {
                    out.push_str(&text[copied..at]);
                    out.push_str(&whole);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    out.push_str(&text[copied..]);
    (copied > 0).then_some(out)
}

/// `1` for `1.0`; `None` for what is written plainly already, is not whole or is not exact.
fn plain_whole_number(text: &str) -> Option<String> {
    if text != "-0" && !text.contains(['.', 'e', 'E']) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then(|| format!("{}", number as i64))
}
