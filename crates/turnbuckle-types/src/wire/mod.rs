//! How the model becomes JSON text, and comes back.
//!
//! Owns: [`At`], [`Encode`], and what differs between revisions beyond the marks on a
//! field (`legacy`, `modern`). Does not own: the fields themselves, nor which revision
//! a connection speaks.

mod decode;
mod encode;
pub(crate) mod json;
pub(crate) mod legacy;
pub(crate) mod modern;
pub(crate) mod read;
#[cfg(test)]
mod tests;

pub use decode::Decode;
pub use encode::Encode;

use crate::{Raw, Revision};

/// What an encoder may write: everything the model knows, or what one revision knows.
///
/// ```
/// use turnbuckle_types::{At, Revision};
/// let at = At::Revision(Revision::V2025_03_26);
/// assert!(at.since(Revision::V2025_03_26) && !at.since(Revision::V2025_06_18));
/// assert!(At::Everything.since(Revision::V2025_06_18));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Every field that is set. This is what `Serialize` writes.
    Everything,
    /// The fields and shapes of this revision.
    Revision(Revision),
}

impl At {
    /// Whether something that came with `first` may be written.
    pub fn since(self, first: Revision) -> bool {
        match self {
            At::Everything => true,
            At::Revision(revision) => revision >= first,
        }
    }

    /// Whether something that `last` was the last to have may be written.
    pub fn until(self, last: Revision) -> bool {
        match self {
            At::Everything => true,
            At::Revision(revision) => revision <= last,
        }
    }

    /// Whether this is a revision from `first` on, which may therefore demand something.
    pub(crate) fn demands_since(self, first: Revision) -> bool {
        self != At::Everything && self.since(first)
    }
}

impl From<Revision> for At {
    fn from(revision: Revision) -> At {
        At::Revision(revision)
    }
}

/// Appends `value` as JSON text, in the shape that `at` gives it.
///
/// ```
/// use turnbuckle_types::{Revision, TextContent, write_at};
/// let mut line = Vec::new();
/// write_at(&TextContent::new("hello"), Revision::V2024_11_05, &mut line);
/// assert_eq!(line, br#"{"type":"text","text":"hello"}"#);
/// ```
pub fn write_at<T: Encode + ?Sized>(value: &T, at: impl Into<At>, out: &mut Vec<u8>) {
    value.write(at.into(), out);
}

impl Raw {
    /// The JSON text of `value`, in the shape that `at` gives it.
    ///
    /// ```
    /// use turnbuckle_types::{Raw, Revision, Root};
    /// let mut root = Root::new("file:///srv");
    /// root.meta.insert("com.example/color", "\"red\"".parse::<serde_json::Value>().unwrap());
    /// let old = Raw::at(&root, Revision::V2025_03_26);
    /// assert_eq!(old.as_str(), r#"{"uri":"file:///srv"}"#);
    /// ```
    pub fn at<T: Encode + ?Sized>(value: &T, at: impl Into<At>) -> Raw {
        Raw::from_text(encode::to_text(value, at.into()))
    }
}
