//! Owns what of a message may be shown: secrets are masked, long strings cut short, in one pass over
//! its text. Does not own messages, nor who is shown them.
//!
//! It can't know every secret. It knows members by what they are called, and strings by how they
//! look; a secret that is neither called nor looks like one is shown.

mod names;
mod words;

use std::borrow::Cow;

use names::{Naming, naming};

/// What stands in the place of a secret.
pub(super) const MASK: &str = "[redacted]";

/// The longest string that is shown whole, and how much of a longer one is.
const LONGEST: usize = 512;

/// How deep text that is JSON itself is looked into.
const DEEPEST: usize = 4;

/// The text of a JSON value as it may be shown. Members stay in their order.
pub(super) fn json(text: &str) -> String {
    value(text, 0)
}

/// A plain text as it may be shown.
pub(super) fn text(text: &str) -> String {
    words::scrubbed(text).into_owned()
}

fn value(text: &str, depth: usize) -> String {
    let mut walk = Walk { text, at: 0, out: String::with_capacity(text.len().min(8_192)), depth };
    walk.run();
    walk.out
}

/// What is done to the values of a member, and to all inside of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masked {
    No,
    /// Strings and numbers are.
    All,
    /// It is the schema of a secret: all but what describes it is.
    Schema,
    /// Strings are cut to their ends.
    Middle,
}

/// An object or an array that is open.
struct Open {
    is_object: bool,
    masked: Masked,
    /// Whether its members are the properties of a schema.
    properties: bool,
    /// Whether the next string is a member's name.
    naming: bool,
    /// What the name that was last read says of its value.
    member: Masked,
    member_properties: bool,
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
    out: String,
    depth: usize,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut open: Vec<Open> = Vec::new();
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'{' | b'[' => {
                    let is_object = byte == b'{';
                    let (masked, properties) =
                        open.last().map_or((Masked::No, false), |open| inside(open, is_object));
                    open.push(Open {
                        is_object,
                        masked,
                        properties,
                        naming: is_object,
                        member: masked,
                        member_properties: false,
                    });
                    self.copy(1);
                }
                b'}' | b']' => {
                    open.pop();
                    self.copy(1);
                }
                b',' => {
                    if let Some(open) = open.last_mut() {
                        open.naming = open.is_object;
                    }
                    self.copy(1);
                }
                b':' => {
                    if let Some(open) = open.last_mut() {
                        open.naming = false;
                    }
                    self.copy(1);
                }
                b'"' => self.string(open.last_mut()),
                b'-' | b'0'..=b'9' => self.number(open.last()),
                _ => {
                    let step = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
                    self.copy(step);
                }
            }
        }
    }

    fn copy(&mut self, bytes: usize) {
        self.out.push_str(&self.text[self.at..self.at + bytes]);
        self.at += bytes;
    }

    fn string(&mut self, open: Option<&mut Open>) {
        let quoted = &self.text[self.at..self.at + string_length(&self.text[self.at..])];
        self.at += quoted.len();
        let Ok(plain) = serde_json::from_str::<Cow<'_, str>>(quoted) else {
            // No string of JSON: nobody knows what it is.
            return self.put(MASK);
        };
        match open {
            Some(open) if open.naming => {
                (open.member, open.member_properties) = member(open, &plain);
                self.put(&words::scrubbed(&plain));
            }
            open => match open.map_or(Masked::No, |open| held(open)) {
                Masked::All => self.put(MASK),
                Masked::Middle => self.put(&ends(&plain)),
                Masked::No | Masked::Schema => self.shown(&plain),
            },
        }
    }

    /// A string that is no secret by its name.
    fn shown(&mut self, plain: &str) {
        let trimmed = plain.trim_start();
        if self.depth < DEEPEST
            && trimmed.starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(plain).is_ok()
        {
            let inner = value(plain, self.depth + 1);
            return self.put(&shortened(&inner));
        }
        let scrubbed = words::scrubbed(plain);
        self.put(&shortened(&scrubbed));
    }

    fn number(&mut self, open: Option<&Open>) {
        let rest = &self.text[self.at..];
        let length = rest
            .find(|letter: char| !matches!(letter, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len());
        if open.is_some_and(|open| held(open) == Masked::All) {
            self.at += length;
            return self.put(MASK);
        }
        self.copy(length);
    }

    fn put(&mut self, plain: &str) {
        // A string can always be written.
        self.out.push_str(&serde_json::to_string(plain).unwrap_or_default());
    }
}

/// What is done to a plain value in `open`.
fn held(open: &Open) -> Masked {
    match open.member {
        // A schema is an object.
        Masked::Schema if open.properties => Masked::All,
        masked => masked,
    }
}

/// What an object or array inherits that is a value in `open`.
fn inside(open: &Open, is_object: bool) -> (Masked, bool) {
    let masked = if is_object { open.member } else { held(open) };
    (masked, is_object && open.is_object && open.member_properties)
}

/// What a member's name says of its value.
fn member(open: &Open, name: &str) -> (Masked, bool) {
    let properties = name == "properties" && !open.properties;
    let masked = match open.masked {
        Masked::All => Masked::All,
        Masked::Schema => match name {
            "$ref" | "anyOf" | "description" | "format" | "items" | "maxLength" | "minLength"
            | "oneOf" | "pattern" | "properties" | "required" | "title" | "type" => Masked::Schema,
            _ => Masked::All,
        },
        Masked::No | Masked::Middle => match naming(name) {
            Naming::Plain => Masked::No,
            Naming::Opaque => Masked::Middle,
            Naming::Secret if open.properties => Masked::Schema,
            Naming::Secret => Masked::All,
        },
    };
    (masked, properties)
}

/// How long the string is that the text begins with, quotes and all.
fn string_length(text: &str) -> usize {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The ends of something opaque, which tell one from another.
fn ends(plain: &str) -> String {
    let letters = plain.chars().count();
    if letters <= 16 {
        return MASK.to_owned();
    }
    let head: String = plain.chars().take(4).collect();
    let tail: String = plain.chars().skip(letters - 4).collect();
    format!("{head}…{tail} ({letters} characters)")
}

fn shortened(plain: &str) -> Cow<'_, str> {
    if plain.len() <= LONGEST {
        return Cow::Borrowed(plain);
    }
    let shown = crate::limits::prefix(plain, LONGEST);
    Cow::Owned(format!("{shown}… ({} bytes more)", plain.len() - shown.len()))
}

#[cfg(test)]
mod tests;
