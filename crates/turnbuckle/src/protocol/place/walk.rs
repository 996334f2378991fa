//! Walks through a JSON text up to some byte.
//!
//! The text counts as JSON as far as it is walked. Where it is not, the place means little, but
//! nothing goes wrong.

use std::ops::Range;

use super::{push_index, push_key};

/// serde_json refuses deeper nesting, except in values that it skips. There, one place stands for all.
const DEEPEST: usize = 128;

/// Which value an error is about if its position allows for two.
///
/// Behind the end of an array or object, and behind the comma after an item, an error is about the
/// last value inside if a decoder refused that value once it was read. It is about the array or object
/// if that is incomplete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Culprit {
    /// The last value: the array or object is known to be complete.
    Value,
    /// Unknown: the place is the one that has both.
    Around,
}

/// The way from the root to a value.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ValuePath(pub(super) Vec<PathStep>);

/// One step from a value into it.
#[derive(Debug, PartialEq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
}

impl ValuePath {
    /// Appends the place to a path.
    pub(crate) fn write(&self, path: &mut String) {
        for step in &self.0 {
            match step {
                PathStep::Key(key) => push_key(path, key),
                PathStep::Index(index) => push_index(path, *index),
            }
        }
    }
}

/// An array or object that the walk is in, or has just left.
struct OpenContainer {
    is_object: bool,
    commas: usize,
    key: Range<usize>,
    is_empty: bool,
}

impl OpenContainer {
    fn step(&self, text: &str) -> PathStep {
        match self.is_object {
            true => PathStep::Key(unquoted(text.get(self.key.clone()).unwrap_or_default())),
            false => PathStep::Index(self.commas),
        }
    }
}

/// What the walk passed last.
enum Last {
    /// The start of the text, or of an array or object.
    Start,
    Comma,
    Key,
    Colon,
    Scalar,
    End(OpenContainer),
}

/// Where a walk ended.
pub(super) struct WalkEnd {
    open: Vec<OpenContainer>,
    last: Last,
    /// Whether a comma comes next.
    goes_on: bool,
}

/// Walks up to a byte, or to the end of the token that it is within.
pub(super) fn walk(text: &str, to: usize) -> WalkEnd {
    let bytes = text.as_bytes();
    let mut walk = WalkEnd { open: Vec::new(), last: Last::Start, goes_on: false };
    let (mut at, mut deeper) = (0, 0_usize);
    loop {
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let Some(byte) = bytes.get(at).copied() else { break };
        if at >= to {
            walk.goes_on = byte == b',';
            break;
        }
        let end = end_of_token(bytes, at);
        match byte {
            b'{' | b'[' if walk.open.len() >= DEEPEST => deeper += 1,
            b'}' | b']' if deeper > 0 => deeper -= 1,
            _ if deeper > 0 => {}
            _ => walk.pass(byte, at..end),
        }
        at = end;
    }
    walk
}

impl WalkEnd {
    fn pass(&mut self, byte: u8, token: Range<usize>) {
        let is_key = matches!(self.last, Last::Start | Last::Comma)
            && self.open.last().is_some_and(|open| open.is_object);
        if let Some(open) = self.open.last_mut()
            && !matches!(byte, b'}' | b']')
        {
            open.is_empty = false;
        }
        self.last = match (byte, self.open.last_mut()) {
            (b'{' | b'[', _) => {
                let is_object = byte == b'{';
                self.open.push(OpenContainer { is_object, commas: 0, key: 0..0, is_empty: true });
                Last::Start
            }
            (b'}' | b']', _) => self.open.pop().map_or(Last::Scalar, Last::End),
            (b',', Some(open)) => {
                open.commas += 1;
                Last::Comma
            }
            (b':', _) => Last::Colon,
            (b'"', Some(open)) if is_key => {
                open.key = token;
                Last::Key
            }
            _ => Last::Scalar,
        };
    }

    /// Returns the place that an error at the end of this walk is about.
    pub(super) fn place(&self, text: &str, culprit: Culprit) -> ValuePath {
        let mut steps: Vec<PathStep> = self.open.iter().map(|open| open.step(text)).collect();
        match &self.last {
            Last::Colon | Last::Scalar => {}
            // Refused as a whole: otherwise the comma would have been passed.
            Last::End(closed) if culprit == Culprit::Value && !self.goes_on && !closed.is_empty => {
                steps.push(closed.step(text));
            }
            Last::End(_) => {}
            Last::Comma if culprit == Culprit::Value => {
                if let Some(PathStep::Index(index)) = steps.last_mut() {
                    *index -= 1;
                } else {
                    steps.pop();
                }
            }
            Last::Comma | Last::Start | Last::Key => {
                steps.pop();
            }
        }
        ValuePath(steps)
    }
}

/// Returns the string that a string in JSON stands for; as it is written, if it stands for none.
fn unquoted(string: &str) -> String {
    serde_json::from_str(string).unwrap_or_else(|_| string.trim_matches('"').to_owned())
}

fn end_of_token(bytes: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",:[]{}\"".contains(byte);
    match bytes[start] {
        b'"' => end_of_string(bytes, start),
        b',' | b':' | b'[' | b']' | b'{' | b'}' => start + 1,
        _ => bytes[start + 1..].iter().position(ends).map_or(bytes.len(), |end| start + 1 + end),
    }
}

/// Returns where the string ends that starts at `start`.
pub(crate) fn end_of_string(bytes: &[u8], start: usize) -> usize {
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
