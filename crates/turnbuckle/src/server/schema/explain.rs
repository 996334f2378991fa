//! Owns turning serde's messages into sentences that whoever sent the arguments can act on.
//! Does not own decoding. Rust's names of types never pass, nor more than a glimpse of the input.

use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::problem::{ArgumentError, Problem, count, push_index, push_key, shorten};
use crate::envelope::place::{Failure, Place, Step, end_of_string, failure_of, find, unquoted};

/// Longer texts of somebody's own error types are cut.
const LONGEST_MESSAGE: usize = 300;

/// How messages start that name a Rust enum none of whose forms fits.
const NO_VARIANT: [&str; 2] = ["data did not match any variant", "no variant of enum"];

/// What is wrong with arguments that were read and failed. `again` reads into the same type.
pub(super) fn explain(
    text: &str,
    failure: &Failure,
    again: fn(&str) -> Option<Failure>,
) -> ArgumentError {
    ArgumentError::one(explain_one(&find(text, failure, again), failure, text))
}

fn explain_one(found: &Place<'_>, failure: &Failure, text: &str) -> Problem {
    let place = write_path(&found.steps);
    let message = failure.message();
    if failure.error.classify() != Category::Data {
        return Problem::new(place, explain_syntax(found, &message, text));
    }
    if let Some(field) = quoted(&message, "missing field `", "`") {
        return Problem::new(with_key(&place, field), "is missing");
    }
    if let Some(field) = quoted(&message, "duplicate field `", "`") {
        return Problem::new(with_key(&place, field), "is given twice");
    }
    if message.starts_with("invalid type: unit variant, expected") && found.rest.starts_with('"') {
        let variant = unquoted(&found.rest[..end_of_string(found.rest.as_bytes(), 0)]);
        let sentence = format!("expected an object {{\"{variant}\": …}}, got a string");
        return Problem::new(place, sentence);
    }
    let sentence = if let Some(rest) = message.strip_prefix("unknown field `") {
        explain_unknown("field", rest)
    } else if let Some(rest) = message.strip_prefix("unknown variant `") {
        explain_unknown("choice", rest)
    } else if let Some(rest) = message.strip_prefix("invalid type: ") {
        explain_mismatch(rest, Got::Kind)
    } else if let Some(rest) = message.strip_prefix("invalid value: ") {
        explain_mismatch(rest, Got::Value)
    } else if let Some(rest) = message.strip_prefix("invalid length ") {
        explain_length(rest)
    } else if NO_VARIANT.iter().any(|start| message.starts_with(start)) {
        "expected one of the forms that its schema lists".to_owned()
    } else {
        own_words(&message)
    };
    Problem::new(place, sentence)
}

/// What is wrong with arguments that are not an object.
pub(super) fn not_an_object(text: &str) -> Problem {
    match failure_of::<IgnoredAny>(text) {
        Some(failure) => {
            explain_one(&find(text, &failure, failure_of::<IgnoredAny>), &failure, text)
        }
        None => {
            let got = kind_by_first_byte(text.trim_ascii_start().bytes().next());
            Problem::new("", format!("expected an object, got {}", got.unwrap_or("nothing")))
        }
    }
}

fn write_path(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(key) => push_key(&mut path, key),
            Step::Index(index) => push_index(&mut path, *index),
        }
    }
    path
}

fn with_key(place: &str, key: &str) -> String {
    let mut path = place.to_owned();
    push_key(&mut path, key);
    path
}

fn quoted<'m>(message: &'m str, before: &str, after: &str) -> Option<&'m str> {
    message.strip_prefix(before)?.strip_suffix(after)
}

/// serde_json calls some mismatches syntax errors, although the text is JSON.
fn explain_syntax(found: &Place<'_>, message: &str, text: &str) -> String {
    let is_json = || serde_json::from_str::<&RawValue>(text).is_ok();
    let sentence = match message {
        "recursion limit exceeded" => "is nested too deeply",
        "number out of range" => "is a number too large to be represented",
        "trailing characters" if found.steps.is_empty() && !is_json() => {
            "expected one JSON object and nothing after it"
        }
        _ if !is_json() => return format!("is not valid JSON: {message}"),
        "expected value" => {
            // An object may be one of them, if it has one member.
            let first = found.rest.bytes().next().filter(|first| *first != b'{');
            let got = kind_by_first_byte(first).map(|kind| format!(", got {kind}"));
            return format!("expected one of its named choices{}", got.unwrap_or_default());
        }
        "trailing characters" | "trailing comma" => "expected fewer items",
        // The latter is said of a number with something behind it.
        _ if message.contains("key") || message == "expected `\"`" => {
            "expected other keys, such as numbers or named choices"
        }
        _ => "expected another kind of value",
    };
    sentence.to_owned()
}

/// `rest` is the name, then `` `, expected … `` or `` `, there are no … ``.
fn explain_unknown(noun: &str, rest: &str) -> String {
    let (name, expected) = match rest.rfind("`, expected ") {
        Some(end) => (&rest[..end], &rest[end + "`, expected ".len()..]),
        None => (rest.rsplit_once("`, ").map_or(rest, |(name, _)| name), ""),
    };
    let name = shorten(name);
    match expected {
        "" => format!("unknown {noun} `{name}`, none is expected"),
        expected => format!("unknown {noun} `{name}`, expected {expected}"),
    }
}

/// How much to say of what came instead.
enum Got {
    Kind,
    Value,
}

/// `rest` is `<unexpected>, expected <expectation>`.
fn explain_mismatch(rest: &str, got: Got) -> String {
    let Some((unexpected, expected)) = rest.rsplit_once(", expected ") else {
        return own_words(rest);
    };
    match got {
        Got::Kind if unexpected.starts_with("floating point") => {
            format!("expected {}, got {}", expectation(expected), value_of(unexpected))
        }
        Got::Kind => format!("expected {}, got {}", expectation(expected), kind_of(unexpected)),
        Got::Value => {
            let expected = range_of(expected).unwrap_or_else(|| expectation(expected));
            format!("expected {expected}, got {}", value_of(unexpected))
        }
    }
}

/// `rest` is `<number>, expected <expectation>`.
fn explain_length(rest: &str) -> String {
    let Some((length, expected)) = rest.split_once(", expected ") else {
        return own_words(rest);
    };
    if expected.starts_with("struct ") {
        return "expected an object, got an array".to_owned();
    }
    format!("expected {}, got {length}", expectation(expected))
}

/// The kinds of values, as serde calls them.
const KINDS: &[(&str, &str)] = &[
    ("string", "a string"),
    ("character", "a string"),
    ("integer", "an integer"),
    ("floating point", "a number"),
    ("boolean", "a boolean"),
    ("null", "null"),
    ("unit value", "null"),
    ("sequence", "an array"),
    ("map", "an object"),
    ("Option value", "an optional value"),
    ("unit variant", "a string"),
    ("newtype variant", "an object"),
    ("tuple variant", "an object"),
    ("struct variant", "an object"),
];

fn kind_of(unexpected: &str) -> &'static str {
    let known = KINDS.iter().find(|(kind, _)| unexpected.starts_with(kind));
    known.map_or("something else", |(_, kind)| kind)
}

/// The value itself, as far as it may be shown.
fn value_of(unexpected: &str) -> String {
    let inside = |quote: char| {
        let (start, end) = (unexpected.find(quote)?, unexpected.rfind(quote)?);
        (start < end).then(|| &unexpected[start + 1..end])
    };
    match unexpected.starts_with("string") {
        true => inside('"').map(|value| format!("\"{}\"", shorten(value))),
        false => inside('`').map(shorten),
    }
    .unwrap_or_else(|| kind_of(unexpected).to_owned())
}

fn kind_by_first_byte(byte: Option<u8>) -> Option<&'static str> {
    Some(match byte {
        Some(b'"') => "a string",
        Some(b'0'..=b'9' | b'-') => "a number",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ => return None,
    })
}

/// What serde's own decoders say they expect, without the names of Rust.
const EXPECTATIONS: &[(&str, &str)] = &[
    ("a string", "a string"),
    ("a borrowed string", "a string"),
    ("a character", "a single character"),
    ("a boolean", "a boolean"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("unit", "null"),
    ("a sequence", "an array"),
    ("sequence", "an array"),
    ("a map", "an object"),
    ("map", "an object"),
    ("option", "a value or nothing"),
    ("path string", "a path"),
    ("variant identifier", "a choice by name"),
    ("field identifier", "a field by name"),
    ("variant of enum", "one of its named choices"),
    ("string or map", "one of its named choices"),
    ("any valid JSON value", "a JSON value"),
];

fn expectation(expected: &str) -> String {
    if let Some((_, phrase)) = EXPECTATIONS.iter().find(|(known, _)| *known == expected) {
        return (*phrase).to_owned();
    }
    if integer_range(expected).is_some() {
        return "an integer".to_owned();
    }
    if expected.strip_prefix("a nonzero ").is_some_and(|name| integer_range(name).is_some()) {
        return "an integer other than 0".to_owned();
    }
    if let Some(items) = item_count(expected) {
        return format!("an array of {}", count(items, "item"));
    }
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| expected.starts_with(prefix));
    if starts(&["unit struct "]) {
        "null".to_owned()
    } else if starts(&["tuple "]) {
        "an array".to_owned()
    } else if starts(&["enum ", "variant "]) {
        "one of its named choices".to_owned()
    } else if starts(&["struct ", "internally tagged enum ", "adjacently tagged enum "]) {
        "an object".to_owned()
    } else if expected.contains("::") || starts(&["newtype ", "unit ", "untagged "]) {
        "another kind of value".to_owned()
    } else {
        own_words(expected)
    }
}

/// The size in `a tuple of size 3`, `an array of length 3`, `tuple struct Name with 3 elements`.
fn item_count(expected: &str) -> Option<u64> {
    let number = expected
        .strip_prefix("a tuple of size ")
        .or_else(|| expected.strip_prefix("an array of length "))
        .or_else(|| {
            let (_, counted) = expected.strip_prefix("tuple ")?.split_once(" with ")?;
            counted.split(' ').next()
        })?;
    number.parse().ok()
}

/// Spells out the range of an integer type: said when the value was an integer but did not fit.
fn range_of(expected: &str) -> Option<String> {
    let (least, most) = integer_range(expected)?;
    Some(match most {
        Some(most) => format!("an integer from {least} to {most}"),
        None => format!("an integer of at least {least}"),
    })
}

fn integer_range(name: &str) -> Option<(i128, Option<i128>)> {
    Some(match name {
        "i8" => (i8::MIN.into(), Some(i8::MAX.into())),
        "i16" => (i16::MIN.into(), Some(i16::MAX.into())),
        "i32" => (i32::MIN.into(), Some(i32::MAX.into())),
        "i64" | "isize" => (i64::MIN.into(), Some(i64::MAX.into())),
        "i128" => (i128::MIN, Some(i128::MAX)),
        "u8" => (0, Some(u8::MAX.into())),
        "u16" => (0, Some(u16::MAX.into())),
        "u32" => (0, Some(u32::MAX.into())),
        "u64" | "usize" => (0, Some(u64::MAX.into())),
        "u128" => (0, None),
        _ => return None,
    })
}

/// The words of a type's own decoder: they are meant to be read.
fn own_words(message: &str) -> String {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}…", &message[..end]),
    }
}
