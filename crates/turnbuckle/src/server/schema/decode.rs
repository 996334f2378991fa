//! Owns decoding arguments into their type and saying what is wrong when that fails.
//! Does not own the wording of single failures, nor the checks that follow decoding.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::checks::Checks;
use super::explain;
use super::problem::{ArgumentError, Problem};

/// Decodes a tool's arguments, given as the text of one JSON value, and runs the checks.
///
/// A whole number may be written as `1.0` or `1e3` where an integer is expected, as JSON Schema has it.
///
/// ```
/// use turnbuckle::schema::{decode_arguments, input_schema_of};
///
/// #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
/// struct Page {
///     #[schemars(range(min = 1, max = 100))]
///     size: u32,
/// }
///
/// let checks = input_schema_of::<Page>()?.checks;
/// assert_eq!(decode_arguments::<Page>(r#"{"size": 20}"#, checks.as_ref())?.size, 20);
/// let error = decode_arguments::<Page>(r#"{"size": 0}"#, checks.as_ref()).unwrap_err();
/// assert_eq!(error.to_string(), "`size` must be at least 1, is 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decode_arguments<T: DeserializeOwned>(
    text: &str,
    checks: Option<&Checks>,
) -> Result<T, ArgumentError> {
    // serde would take the items of an array for the fields of a struct.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(ArgumentError::one(first_problem::<T>(text)));
    }
    let Ok(arguments) = serde_json::from_str(text) else {
        return decode_again(text, checks);
    };
    checks.map_or(Ok(()), |checks| checks.run(text))?;
    Ok(arguments)
}

/// Tries once more with whole numbers written plainly, or says what is wrong.
#[cold]
fn decode_again<T: DeserializeOwned>(
    text: &str,
    checks: Option<&Checks>,
) -> Result<T, ArgumentError> {
    let rewritten = write_whole_numbers_plainly(text);
    match rewritten.as_deref().map(serde_json::from_str) {
        Some(Ok(arguments)) => {
            checks.map_or(Ok(()), |checks| checks.run(text))?;
            Ok(arguments)
        }
        _ => Err(ArgumentError::one(first_problem::<T>(rewritten.as_deref().unwrap_or(text)))),
    }
}

fn first_problem<T: DeserializeOwned>(text: &str) -> Problem {
    if !text.trim_ascii_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
    {
        return explain::not_an_object(text);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) => explain::explain(error.path(), error.inner(), text),
        // Decoding itself is fine, so something follows the value.
        Ok(_) => Problem::new("", "expected one JSON object and nothing after it"),
    }
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

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `1` for `1.0`; `None` for what is written plainly already, is not whole or is not exact.
fn plain_whole_number(text: &str) -> Option<String> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if text != "-0" && !text.contains(['.', 'e', 'E']) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then(|| format!("{}", number as i64))
}
