//! The trait that writes a value at a revision, and its implementations for the values that the
//! model is made of.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{At, json};
use crate::{Raw, RequestId};

/// A value that knows how it is written at each revision.
///
/// Writing goes straight to text and can't fail. `Serialize` on the model's types is
/// this trait at [`At::Everything`].
///
/// ```
/// use turnbuckle_types::{At, Encode};
/// let mut out = Vec::new();
/// vec![Some("a"), None].write(At::Everything, &mut out);
/// assert_eq!(out, br#"["a",null]"#);
/// ```
pub trait Encode {
    /// Appends the JSON text of this value.
    fn write(&self, at: At, out: &mut Vec<u8>);

    /// Whether an optional member with this value is left out of its object.
    fn is_absent(&self, at: At) -> bool {
        let _ = at;
        false
    }

    /// Hands the same text to a serde serializer, which must be one for JSON.
    fn encode<S: Serializer>(&self, at: At, serializer: S) -> Result<S::Ok, S::Error>
    where
        Self: Sized,
    {
        let text = to_text(self, at);
        let raw: &RawValue = serde_json::from_str(&text).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

pub(super) fn to_text<T: Encode + ?Sized>(value: &T, at: At) -> String {
    let mut out = Vec::with_capacity(128);
    value.write(at, &mut out);
    as_text(out)
}

/// Not a part of [`to_text`], which is compiled for every type.
fn as_text(out: Vec<u8>) -> String {
    match String::from_utf8(out) {
        Ok(text) => text,
        // Only an `Encode` outside this crate can write bytes that are not text.
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

impl Encode for bool {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

impl Encode for i64 {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        json::write_integer(*self, out);
    }
}

impl Encode for u64 {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        json::write_integer(*self, out);
    }
}

impl Encode for f64 {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        json::write_number(*self, out);
    }
}

impl Encode for str {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        json::write_string(self, out);
    }
}

impl Encode for String {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        json::write_string(self, out);
    }
}

impl Encode for Raw {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_str().as_bytes());
    }
}

impl Encode for RequestId {
    fn write(&self, _: At, out: &mut Vec<u8>) {
        self.write_to(out);
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        (**self).write(at, out);
    }

    fn is_absent(&self, at: At) -> bool {
        (**self).is_absent(at)
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        (**self).write(at, out);
    }

    fn is_absent(&self, at: At) -> bool {
        (**self).is_absent(at)
    }
}

impl<T: Encode> Encode for Option<T> {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(at, out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn is_absent(&self, at: At) -> bool {
        self.as_ref().is_none_or(|value| value.is_absent(at))
    }
}

impl<T: Encode> Encode for [T] {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        json::write_array(self.iter(), at, out);
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        json::write_array(self.iter(), at, out);
    }
}
