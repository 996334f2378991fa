//! Request ids: what may be one, how it is echoed, and when two are the same.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The id of a request, or a progress token: a string or an integer.
///
/// An id from the wire keeps its exact token, so that it is echoed as it came.
/// `RequestId::from("7")` and `RequestId::from(7)` are different ids; for matching an
/// answer to its request they share one [`Key`].
///
/// ```
/// use turnbuckle_types::RequestId;
/// assert_ne!(RequestId::from("7"), RequestId::from(7u64));
/// assert_eq!(RequestId::from("7").key(), RequestId::from(7u64).key());
/// assert_eq!(RequestId::from("7").to_string(), "\"7\"");
/// ```
#[derive(Clone)]
pub struct RequestId(Token);

#[derive(Clone)]
enum Token {
    Int(i64),
    /// Invariant: greater than `i64::MAX`.
    Large(u64),
    /// Invariant: a JSON string token, quotes and escapes as they stand on the wire.
    Str(Box<str>),
}

/// What correlation compares: a canonical decimal string and its integer are one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// An integer, or a string that is the canonical decimal form of one.
    Int(i64),
    /// The same, above `i64::MAX`.
    Large(u64),
    /// Any other string.
    Str(Box<str>),
}

impl RequestId {
    /// The length of the longest token that is read as an id, in bytes. An id is kept for as long as
    /// its request is known, so that a peer must not choose its size.
    pub const LONGEST: usize = 1024;

    /// Reads an id from its JSON token; `None` for null, booleans, floats, arrays, objects, and for
    /// tokens that are longer than [`LONGEST`](RequestId::LONGEST).
    pub fn from_token(token: &str) -> Option<RequestId> {
        if token.len() > RequestId::LONGEST {
            return None;
        }
        match token.as_bytes().first()? {
            b'"' => Some(RequestId(Token::Str(token.into()))),
            // `-0` is the float negative zero to JSON parsers, not an integer.
            b'-' | b'0'..=b'9' if token != "-0" => {
                if let Ok(value) = token.parse::<i64>() {
                    return Some(RequestId(Token::Int(value)));
                }
                token.parse::<u64>().ok().map(|value| RequestId(Token::Large(value)))
            }
            _ => None,
        }
    }

    /// The key under which answers, cancellations and progress find this id.
    pub fn key(&self) -> Key {
        match &self.0 {
            Token::Int(value) => Key::Int(*value),
            Token::Large(value) => Key::Large(*value),
            Token::Str(token) => {
                let text = unquote(token);
                match canonical_integer(&text) {
                    Some(key) => key,
                    None => Key::Str(text.into()),
                }
            }
        }
    }

    /// The text of a string id.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        match &self.0 {
            Token::Str(token) => Some(unquote(token)),
            Token::Int(_) | Token::Large(_) => None,
        }
    }

    /// Appends the token, exactly as it stands on the wire.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match &self.0 {
            // Writing an integer to a Vec can't fail.
            Token::Int(value) => drop(serde_json::to_writer(out, value)),
            Token::Large(value) => drop(serde_json::to_writer(out, value)),
            Token::Str(token) => out.extend_from_slice(token.as_bytes()),
        }
    }
}

/// One write for an integer: each request is looked up several times.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Key::Int(value) => state.write_i64(*value),
            Key::Large(value) => state.write_u64(*value),
            Key::Str(text) => text.hash(state),
        }
    }
}

impl Key {
    /// The id that is minted for this key.
    pub fn to_id(&self) -> RequestId {
        match self {
            Key::Int(value) => RequestId::from(*value),
            Key::Large(value) => RequestId::from(*value),
            Key::Str(text) => RequestId::from(&**text),
        }
    }
}

/// `"7"` is a key of its own only where it is not how an integer is written:
/// `"07"`, `"+7"`, `"-0"` and `"7.0"` stay strings.
fn canonical_integer(text: &str) -> Option<Key> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    let int = text.parse().ok().map(Key::Int);
    int.or_else(|| text.parse().ok().map(Key::Large))
}

fn unquote(token: &str) -> Cow<'_, str> {
    let inner = &token[1..token.len() - 1];
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    // The invariant on `Token::Str` says this parses; a lone surrogate is the exception,
    // and then the escaped text itself is the only faithful reading.
    serde_json::from_str::<String>(token).map_or(Cow::Borrowed(inner), Cow::Owned)
}

impl PartialEq for RequestId {
    fn eq(&self, other: &RequestId) -> bool {
        match (&self.0, &other.0) {
            (Token::Int(a), Token::Int(b)) => a == b,
            (Token::Large(a), Token::Large(b)) => a == b,
            (Token::Str(a), Token::Str(b)) => a == b || unquote(a) == unquote(b),
            _ => false,
        }
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl From<i64> for RequestId {
    fn from(value: i64) -> RequestId {
        RequestId(Token::Int(value))
    }
}

impl From<u64> for RequestId {
    fn from(value: u64) -> RequestId {
        RequestId(i64::try_from(value).map_or(Token::Large(value), Token::Int))
    }
}

impl From<i32> for RequestId {
    fn from(value: i32) -> RequestId {
        RequestId(Token::Int(value.into()))
    }
}

impl From<u32> for RequestId {
    fn from(value: u32) -> RequestId {
        RequestId(Token::Int(value.into()))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> RequestId {
        let mut token = String::with_capacity(text.len() + 2);
        if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
            token.push('"');
            token.push_str(text);
            token.push('"');
        } else {
            token = serde_json::Value::from(text).to_string();
        }
        RequestId(Token::Str(token.into()))
    }
}

impl From<String> for RequestId {
    fn from(text: String) -> RequestId {
        RequestId::from(text.as_str())
    }
}

/// Strings print with their quotes, so that `7` and `"7"` can be told apart.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Token::Int(value) => value.fmt(f),
            Token::Large(value) => value.fmt(f),
            Token::Str(token) => f.write_str(token),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Token::Int(value) => serializer.serialize_i64(*value),
            Token::Large(value) => serializer.serialize_u64(*value),
            Token::Str(token) => serde_json::from_str::<&RawValue>(token)
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RequestId, D::Error> {
        let token = Box::<RawValue>::deserialize(deserializer)?;
        RequestId::from_token(token.get()).ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "an id must be a string of at most {} bytes or an integer, not `{:.40}`",
                RequestId::LONGEST,
                token.get(),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> RequestId {
        RequestId::from_token(text).unwrap()
    }

    #[test]
    fn ids_are_echoed_exactly_as_they_came() {
        for text in
            ["7", "-7", "0", "\"7\"", "\"\"", r#""\u0037\/""#, "18446744073709551615", "\"é\""]
        {
            let mut out = Vec::new();
            token(text).write_to(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert_eq!(serde_json::to_string(&token(text)).unwrap(), text);
        }
    }

    #[test]
    fn booleans_floats_null_and_containers_are_never_ids() {
        for text in ["true", "false", "null", "1.0", "1e3", "-0", "[1]", "{}", "1e400", ""] {
            assert!(RequestId::from_token(text).is_none(), "{text}");
        }
        assert!(RequestId::from_token("18446744073709551616").is_none());
        let quoted = |length: usize| format!("\"{}\"", "a".repeat(length - 2));
        assert!(RequestId::from_token(&quoted(RequestId::LONGEST)).is_some());
        assert!(RequestId::from_token(&quoted(RequestId::LONGEST + 1)).is_none());
    }

    #[test]
    fn a_canonical_decimal_string_and_its_integer_share_a_key() {
        for (string, integer) in [
            ("\"7\"", "7"),
            ("\"-7\"", "-7"),
            ("\"0\"", "0"),
            ("\"18446744073709551615\"", "18446744073709551615"),
            (r#""\u0037""#, "7"),
        ] {
            assert_eq!(token(string).key(), token(integer).key());
            assert_ne!(token(string), token(integer));
        }
        for other in ["\"07\"", "\"+7\"", "\"7.0\"", "\" 7\"", "\"-0\"", "\"\"", "\"-\""] {
            assert!(matches!(token(other).key(), Key::Str(_)), "{other}");
        }
    }

    #[test]
    fn an_escaped_string_equals_its_plain_spelling() {
        assert_eq!(token(r#""\u0061""#), token("\"a\""));
        assert_eq!(RequestId::from("a\"b"), token(r#""a\"b""#));
    }
}
