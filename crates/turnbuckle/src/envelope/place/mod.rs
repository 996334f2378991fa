//! Owns reading JSON into a type, and finding the value that an error of that is about.
//! Does not own what is said of it.
//!
//! A decoder that kept track of where it is would be compiled a second time for every type. So the
//! place is worked out afterwards, from the line and column that serde_json leaves in its error.
//! They are where the decoder stood when the error got its position, which is not always where it
//! arose:
//!
//! - A scalar that does not fit: right behind it. An array or object: right before it.
//! - A field that is unknown or there twice: behind its name.
//! - What an array or object says of itself, such as a missing field: behind its end.
//! - What somebody says of a value once it was read (`try_from`, untagged and internally tagged
//!   enums): the array or object around it gives the error its position, so behind that, if the
//!   value is the last in it, and behind the comma that follows an item.
//!
//! The last two look alike. They are told apart by decoding again what comes before the end: only a
//! value that was read whole can be refused without it.

mod walk;

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Deserializer, Error, de::StrRead, error::Category};

#[cfg(feature = "server")]
pub(crate) use walk::end_of_string;
use walk::{Next, walk};
pub(crate) use walk::{Step, unquoted};

/// Why a text did not become a type, and how far the decoder got.
pub(crate) struct Failure {
    pub(crate) error: Error,
    reached: usize,
}

impl Failure {
    #[cold]
    fn new(error: Error, decoder: Deserializer<StrRead<'_>>) -> Failure {
        Failure { error, reached: decoder.into_iter::<IgnoredAny>().byte_offset() }
    }

    /// serde_json's message without the line and column, which mean nothing to the sender.
    pub(crate) fn message(&self) -> String {
        let message = self.error.to_string();
        let suffix = format!(" at line {} column {}", self.error.line(), self.error.column());
        message.strip_suffix(&suffix).unwrap_or(&message).to_owned()
    }

    /// The number of bytes before the error's position. serde_json counts lines from 1, and the bytes
    /// before a column.
    fn offset(&self, text: &str) -> usize {
        let start = match self.error.line() {
            0 | 1 => Some(0),
            line => text.match_indices('\n').nth(line - 2).map(|(newline, _)| newline + 1),
        };
        let offset = start.map(|start| start.saturating_add(self.error.column()));
        offset.map_or(text.len(), |offset| offset.min(text.len()))
    }
}

/// Reads a text that is one JSON value. The one decoder that there is of a type.
#[inline(never)]
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let mut decoder = Deserializer::from_str(text);
    let error = match T::deserialize(&mut decoder) {
        Ok(value) => match decoder.end() {
            Ok(()) => return Ok(value),
            Err(error) => error,
        },
        Err(error) => error,
    };
    Err(Failure::new(error, decoder))
}

/// How a text fails to be a `T`: what [`find`] asks about the beginning of a text.
pub(crate) fn failure_of<T: DeserializeOwned>(text: &str) -> Option<Failure> {
    read::<T>(text).err()
}

/// A value in a text.
#[derive(Debug, PartialEq)]
pub(crate) struct Place<'t> {
    /// The way to it from the root.
    pub(crate) steps: Vec<Step>,
    /// The text from where it starts.
    pub(crate) rest: &'t str,
}

/// How often at most an error is looked for further inside, where nothing but the end is known.
const DEEPEST_SEARCH: usize = 16;

/// A text that is longer is not searched in that way: each look decodes it once more, and who sends
/// what is wrong should not have it read that often.
const LONGEST_SEARCH: usize = 64 << 10;

/// Finds the value that a failure is about. `again` decodes into the same type.
#[cold]
pub(crate) fn find<'t>(
    text: &'t str,
    failure: &Failure,
    again: fn(&str) -> Option<Failure>,
) -> Place<'t> {
    let at = failure.offset(text);
    let message = failure.message();
    match failure.error.classify() {
        Category::Data => find_value(text, failure, &message, at, again),
        Category::Eof | Category::Io => find_syntax(text, &message, at),
        // The byte before is the one that was unexpected, or is the last one that was expected:
        // an enum wants its object to end, but the decoder has not gone on to what is there instead.
        Category::Syntax => {
            let goes_on = message == "expected value" && walk(text, at).next == Next::End;
            let before = text.get(..at).unwrap_or_default();
            if goes_on && again(before).is_none_or(|other| other.message() != message) {
                return walk(text, at).holder(text);
            }
            find_syntax(text, &message, at.saturating_sub(1))
        }
    }
}

fn find_value<'t>(
    text: &'t str,
    failure: &Failure,
    message: &str,
    at: usize,
    again: fn(&str) -> Option<Failure>,
) -> Place<'t> {
    // A text inside of the text may have been decoded on its own: the position is then one in there.
    // Without any position, the root refused. The decoder itself went on over ends only.
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
    let passed = text.as_bytes().get(at..failure.reached);
    let is_own = failure.error.line() > 0 && passed.is_some_and(|bytes| bytes.iter().all(is_end));
    let at = if is_own { at } else { failure.reached };
    let same = |text: &str| again(text).filter(|other| other.message() == message);
    let before = |end: usize| text.get(..end).unwrap_or_default();
    let fits = |value: &Range<usize>| {
        let value = text.get(value.clone()).unwrap_or_default();
        fits(message, value) || (!is_own && value.starts_with('"'))
    };
    let mut walk = walk(text, at);
    let is_searched = !is_own && text.len() <= LONGEST_SEARCH;
    for _ in 0..if is_searched { DEEPEST_SEARCH } else { 1 } {
        let Some(last) = walk.last().filter(fits) else { break };
        if same(before(last.end)).is_none() {
            break;
        }
        walk = self::walk(text, last.end);
    }
    let current = walk.current();
    let is_of_holder = match walk.next {
        Next::Key => true,
        // A number in quotes, for one, is refused as soon as it was read.
        Next::Colon => !walk.is_in_key(at),
        // An array that is no array to its type is refused before its first item was looked at.
        Next::Value => walk.is_first_item() && same(before(current.start)).is_some(),
        // Only what refuses a value from outside of it goes over a space.
        Next::End if fits(&current) => false,
        Next::End => {
            let spaced = format!("{} ", before(current.end));
            same(&spaced).is_some_and(|other| other.offset(&spaced) == spaced.len())
        }
    };
    if is_of_holder { walk.holder(text) } else { walk.value(text) }
}

/// Whether a message can be about a value. Those of an array or object can be about anything in it.
fn fits(message: &str, value: &str) -> bool {
    const OF_OBJECTS: [&str; 3] = ["missing field", "duplicate field", "unknown field"];
    const OF_SCALARS: [(&str, &str); 7] = [
        ("unit variant", "\""),
        ("integer", "-0123456789"),
        ("floating point", "-0123456789"),
        ("boolean", "tf"),
        ("null", "n"),
        ("map", ""),
        ("sequence", ""),
    ];
    if value.starts_with(['{', '[']) {
        return true;
    }
    let kind = message.strip_prefix("invalid type: ");
    let Some(kind) = kind.or_else(|| message.strip_prefix("invalid value: ")) else {
        return !OF_OBJECTS.iter().any(|start| message.starts_with(start));
    };
    if let Some(string) = kind.strip_prefix("string ") {
        // Its own decoder may have changed it a little before it looked.
        let value = if value.starts_with('"') { unquoted(value) } else { return false };
        let shown = string.rsplit_once(", expected ").map_or(string, |(shown, _)| shown);
        let is_shown = |value: &str| format!("{value:?}").eq_ignore_ascii_case(shown);
        return is_shown(&value) || is_shown(value.trim());
    }
    let known = OF_SCALARS.iter().find(|(name, _)| kind.starts_with(name));
    known.is_none_or(|(_, first)| value.starts_with(|byte| first.contains(byte)))
}

/// Where the text is not what it should be at `at`.
fn find_syntax<'t>(text: &'t str, message: &str, at: usize) -> Place<'t> {
    const OF_HOLDERS: [&str; 4] =
        ["trailing ", "expected `,` or", "EOF while parsing a list", "EOF while parsing an object"];
    let walk = walk(text, at);
    let is_in_key = matches!(walk.next, Next::Key | Next::Colon) && message != "expected `:`";
    match is_in_key || OF_HOLDERS.iter().any(|start| message.starts_with(start)) {
        true => walk.holder(text),
        false => walk.value(text),
    }
}
