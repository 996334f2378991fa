//! Owns the way through a JSON text up to some byte. Does not own which byte, nor why.
//!
//! The text is taken for JSON as far as it is walked. Where it is not, the way means little, but
//! nothing goes wrong.

use std::ops::Range;

use super::Place;

/// serde_json refuses what is deeper, except in what it skips. There, one place stands for all.
const DEEPEST: usize = 128;

/// One step from a value into it.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// What has to come next.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Next {
    Value,
    Key,
    Colon,
    /// A comma or the end: the value is complete, or this is within it.
    End,
}

/// An array or object, or the text as a whole, which holds the root.
#[derive(Default)]
struct Open {
    is_object: bool,
    commas: usize,
    key: Range<usize>,
    /// The value inside that was come to last.
    inner: Range<usize>,
}

/// Where a walk ended.
pub(super) struct Walk {
    pub(super) next: Next,
    /// Never empty.
    open: Vec<Open>,
    /// What ended right before.
    closed: Option<Open>,
    /// The item before the comma that is right before.
    before: Range<usize>,
}

/// Walks up to a byte, or to the end of what it is within.
pub(super) fn walk(text: &str, to: usize) -> Walk {
    let bytes = text.as_bytes();
    let open = vec![Open::default()];
    let mut walk = Walk { next: Next::Value, open, closed: None, before: 0..0 };
    let (mut at, mut deeper) = (0, 0_usize);
    loop {
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let Some(byte) = bytes.get(at).copied().filter(|_| at < to) else { break };
        let end = end_of_token(bytes, at);
        match byte {
            b'{' | b'[' if walk.open.len() > DEEPEST => deeper += 1,
            b'}' | b']' if deeper > 0 => deeper -= 1,
            _ if deeper > 0 => {}
            _ => walk.pass(byte, at..end),
        }
        at = end;
    }
    if walk.next == Next::Value {
        walk.before = walk.come_to(at..at);
    }
    walk
}

impl Walk {
    fn pass(&mut self, byte: u8, token: Range<usize>) {
        self.closed = None;
        match (byte, self.open.last_mut()) {
            (b'{' | b'[', _) => {
                self.come_to(token.clone());
                let is_object = byte == b'{';
                self.open.push(Open { is_object, ..Open::default() });
                self.next = if is_object { Next::Key } else { Next::Value };
            }
            (b'}' | b']', _) => {
                self.closed = if self.open.len() > 1 { self.open.pop() } else { None };
                if let Some(open) = self.open.last_mut() {
                    open.inner.end = token.end;
                }
                self.next = Next::End;
            }
            (b',', Some(open)) => {
                open.commas += 1;
                self.next = if open.is_object { Next::Key } else { Next::Value };
            }
            (b':', _) => self.next = Next::Value,
            (b'"', Some(open)) if self.next == Next::Key => {
                open.key = token;
                self.next = Next::Colon;
            }
            _ => {
                self.come_to(token);
                self.next = Next::End;
            }
        }
    }

    /// Notes a value, and says which one was there before.
    fn come_to(&mut self, value: Range<usize>) -> Range<usize> {
        let inner = self.open.last_mut().map(|open| &mut open.inner);
        inner.map_or(0..0, |inner| std::mem::replace(inner, value))
    }

    /// The value that the walk ended in, behind or right before.
    pub(super) fn current(&self) -> Range<usize> {
        self.open.last().map_or(0..0, |open| open.inner.clone())
    }

    /// The last value in what ended right before, or the item before the comma right before.
    pub(super) fn last(&self) -> Option<Range<usize>> {
        let last = match (&self.closed, self.open.last(), self.next) {
            (Some(closed), ..) => &closed.inner,
            (None, Some(open), Next::Value) if !open.is_object => &self.before,
            _ => return None,
        };
        (!last.is_empty()).then(|| last.clone())
    }

    /// Whether a byte is within the name that was come to last.
    pub(super) fn is_in_key(&self, at: usize) -> bool {
        self.open.last().is_some_and(|open| at < open.key.end)
    }

    /// Whether the first item of an array comes next.
    pub(super) fn is_first_item(&self) -> bool {
        let is_first = |open: &Open| !open.is_object && open.commas == 0;
        self.next == Next::Value && self.open.len() > 1 && self.open.last().is_some_and(is_first)
    }

    /// The place of the current value.
    pub(super) fn value<'t>(&self, text: &'t str) -> Place<'t> {
        place(text, &self.open)
    }

    /// The place of the array or object around the current value.
    pub(super) fn holder<'t>(&self, text: &'t str) -> Place<'t> {
        match &self.open[..] {
            [around @ .., _] if !around.is_empty() => place(text, around),
            open => place(text, open),
        }
    }
}

/// The place of the value that the innermost of these came to last.
fn place<'t>(text: &'t str, open: &[Open]) -> Place<'t> {
    let step = |open: &Open| match open.is_object {
        true => Step::Key(unquoted(text.get(open.key.clone()).unwrap_or_default())),
        false => Step::Index(open.commas),
    };
    let start = open.last().map_or(0, |open| open.inner.start);
    Place {
        steps: open.iter().skip(1).map(step).collect(),
        rest: text.get(start..).unwrap_or_default(),
    }
}

/// What a string in JSON stands for; as it is written, if it stands for nothing.
pub(crate) fn unquoted(string: &str) -> String {
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

/// Where the string ends that starts at `start`.
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
