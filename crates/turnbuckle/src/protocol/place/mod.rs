//! Reads JSON into a type and, where that fails, finds the place of the error in the text.
//!
//! A decoder that kept track of its place would be compiled a second time for every type. So the place
//! is derived from the line and column that serde_json leaves in its error: the position of the decoder
//! when the error passed the array or object around the value that failed. See [`Culprit`] for the cases
//! in which a position does not tell two values apart.

#[cfg(any(feature = "server", feature = "validate"))]
mod unique;
mod walk;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Deserializer, Error, de::StrRead, error::Category};

#[cfg(any(feature = "server", feature = "validate"))]
pub(crate) use unique::check_unique_members;
#[cfg(feature = "server")]
pub(crate) use walk::end_of_string;
pub(crate) use walk::{Culprit, ValuePath};

/// The longest piece of input that an error repeats, in characters.
const LONGEST_ECHO: usize = 40;

/// Why a text did not become a type, and how far the decoder got.
pub(crate) struct DecodeFailure {
    error: Error,
    reached: usize,
}

impl DecodeFailure {
    #[cold]
    fn new(error: Error, decoder: Deserializer<StrRead<'_>>) -> DecodeFailure {
        DecodeFailure { error, reached: decoder.into_iter::<IgnoredAny>().byte_offset() }
    }

    /// Returns serde_json's message without line and column: the sender has no lines.
    pub(crate) fn message(&self) -> String {
        without_position(&self.error)
    }

    /// Returns the place of the error in the text that was read.
    #[cold]
    pub(crate) fn place(&self, text: &str, culprit: Culprit) -> ValuePath {
        if self.error.line() == 0 {
            return ValuePath::default();
        }
        let at = self.offset(text);
        if self.error.classify() != Category::Data {
            // The position is one byte further or not, depending on what was unexpected: only the
            // array or object around it is certain.
            let mut place = walk::walk(text, at).place(text, Culprit::Around);
            place.0.pop();
            return place;
        }
        // A decoder may have read a text inside of this text: the position is one in there. The
        // decoder of this text itself only went on over the ends of arrays and objects.
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
        let passed = text.as_bytes().get(at..self.reached);
        if passed.is_some_and(|bytes| bytes.iter().all(is_end)) {
            walk::walk(text, at).place(text, culprit)
        } else {
            walk::walk(text, self.reached).place(text, Culprit::Around)
        }
    }

    /// Returns the number of bytes before the error's position. serde_json counts lines from 1, and
    /// the bytes before a column.
    fn offset(&self, text: &str) -> usize {
        let start = match self.error.line() {
            0 | 1 => Some(0),
            line => text.match_indices('\n').nth(line - 2).map(|(newline, _)| newline + 1),
        };
        let offset = start.map(|start| start.saturating_add(self.error.column()));
        offset.map_or(text.len(), |offset| offset.min(text.len()))
    }
}

/// Returns the message of an error without its line and column.
pub(crate) fn without_position(error: &Error) -> String {
    let message = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&suffix).unwrap_or(&message).to_owned()
}

/// Reads a text that is one JSON value. There is one decoder of each type.
#[inline(never)]
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, DecodeFailure> {
    read_with(text, |decoder| T::deserialize(decoder))
}

/// Reads a text that is one JSON value with a decoder of a type.
pub(crate) fn read_with<T>(
    text: &str,
    decode: impl FnOnce(&mut Deserializer<StrRead<'_>>) -> serde_json::Result<T>,
) -> Result<T, DecodeFailure> {
    let mut decoder = Deserializer::from_str(text);
    let error = match decode(&mut decoder) {
        Ok(value) => match decoder.end() {
            Ok(()) => return Ok(value),
            Err(error) => error,
        },
        Err(error) => error,
    };
    Err(DecodeFailure::new(error, decoder))
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

/// Returns the text cut to the length that an error may repeat.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_ECHO) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
