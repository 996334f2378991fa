//! JSON text that is carried around without being understood.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{Named, wire::read::Word};

/// One JSON value as its text: a cheap, shareable slice, usually of a receive buffer.
///
/// ```
/// use turnbuckle_types::Raw;
/// let raw = Raw::new(&serde_json::json!({"a": 1})).unwrap();
/// assert_eq!(raw.as_str(), r#"{"a":1}"#);
/// #[derive(serde::Deserialize)]
/// struct A { a: u8 }
/// assert_eq!(raw.decode::<A>().unwrap().a, 1);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Raw(
    /// Invariant: exactly one valid JSON value, without surrounding white space and
    /// without line breaks, so that it can be written into a line as it is.
    ByteString,
);

impl Raw {
    /// Encodes a value.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Raw> {
        Ok(Raw(one_line(serde_json::to_string(value)?)))
    }

    /// Takes text that must be one JSON value.
    pub fn from_json(text: impl Into<String>) -> serde_json::Result<Raw> {
        Ok(RawValue::from_string(text.into())?.into())
    }

    /// The empty object.
    pub const fn empty_object() -> Raw {
        Raw(ByteString::from_static("{}"))
    }

    /// `null`.
    pub const fn null() -> Raw {
        Raw(ByteString::from_static("null"))
    }

    /// Takes text that this crate has just encoded.
    #[doc(hidden)]
    pub fn from_encoded(text: Vec<u8>) -> Option<Raw> {
        String::from_utf8(text).ok().map(|text| Raw(ByteString::from(text)))
    }

    /// Takes text that an [`Encode`](crate::Encode) has just written.
    pub(crate) fn from_text(text: String) -> Raw {
        Raw(ByteString::from(text))
    }

    /// A slice of `line` that a JSON parser has just delimited.
    pub(crate) fn slice_of(line: &ByteString, value: &str) -> Raw {
        Raw(line.slice_ref(value))
    }

    pub(crate) fn to_text(&self) -> ByteString {
        self.0.clone()
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of the JSON text.
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Decodes the value into a type that owns its data.
    pub fn decode<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }

    /// Decodes the value into a type that may borrow from this text.
    pub fn decode_borrowed<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }

    /// The members of an object, none of which may appear twice, as slices of this text.
    ///
    /// ```
    /// use turnbuckle_types::Raw;
    /// let raw = Raw::from_json(r#"{"a": [1], "b": 2}"#).unwrap();
    /// assert_eq!(raw.members().unwrap().value("a").unwrap().as_str(), "[1]");
    /// assert!(Raw::from_json(r#"{"a": 1, "a": 1}"#).unwrap().members().is_err());
    /// ```
    pub fn members(&self) -> serde_json::Result<Named<Raw>> {
        let mut deserializer = serde_json::Deserializer::from_str(self.as_str());
        // Nothing can follow the object: a value is all that there is.
        Named::read(&mut deserializer, |value: &RawValue| self.part(value))
    }

    /// A value that was decoded from this text, as a slice of it. Panics for any other.
    #[doc(hidden)]
    pub fn part(&self, value: &RawValue) -> Raw {
        Raw::slice_of(&self.0, value.get())
    }

    /// The text that a JSON string stands for.
    ///
    /// ```
    /// use turnbuckle_types::Raw;
    /// assert_eq!(Raw::from_json(r#""a\/b""#).unwrap().text().unwrap(), "a/b");
    /// assert!(Raw::null().text().is_err());
    /// ```
    pub fn text(&self) -> serde_json::Result<Cow<'_, str>> {
        self.decode_borrowed::<Word<'_>>().map(|word| word.0)
    }
}

/// A line break in JSON text is always white space (in a string it would be escaped), so
/// a space says the same.
fn one_line(text: String) -> ByteString {
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return ByteString::from(text);
    }
    ByteString::from(text.replace(['\n', '\r'], " "))
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Box<RawValue>> for Raw {
    fn from(value: Box<RawValue>) -> Raw {
        Raw(one_line(String::from(Box::<str>::from(value))))
    }
}

impl From<serde_json::Value> for Raw {
    fn from(value: serde_json::Value) -> Raw {
        Raw(ByteString::from(value.to_string()))
    }
}

impl From<&serde_json::Value> for Raw {
    fn from(value: &serde_json::Value) -> Raw {
        Raw(ByteString::from(value.to_string()))
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // serde_json only hands out `&RawValue` from a parse: one scan, no copy.
        serde_json::from_str::<&RawValue>(self.as_str())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        Ok(Box::<RawValue>::deserialize(deserializer)?.into())
    }
}
