//! Owns the members of an object that the model has no field for.
//! Does not own the members that it has one for: those are fields.

use std::fmt;

use serde::de::MapAccess;

use crate::{
    At, Encode, Raw,
    wire::{
        json,
        read::{self, Word},
    },
};

/// Members that a peer or a user added: kept as text, in order, and written back.
///
/// Empty, it costs one pointer and no allocation. Never put a name here that the type
/// has a field for: it would be written twice.
///
/// ```
/// use turnbuckle_types::{Raw, Root};
/// let mut root: Root = serde_json::from_str(r#"{"uri":"file:///srv","x-size": 1e2}"#).unwrap();
/// assert_eq!(root.extra.member("x-size").map(Raw::as_str), Some("1e2"));
/// root.extra.insert("x-kind", serde_json::json!("dir"));
/// let text = serde_json::to_string(&root).unwrap();
/// assert_eq!(text, r#"{"uri":"file:///srv","x-size":1e2,"x-kind":"dir"}"#);
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Extra(
    #[expect(clippy::box_collection, reason = "almost always empty, and part of every type")]
    Option<Box<Vec<(Box<str>, Raw)>>>,
);

impl Extra {
    /// No members.
    pub const fn new() -> Extra {
        Extra(None)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Raw> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Adds a member, or replaces the one of this name.
    pub fn insert(&mut self, name: impl Into<Box<str>>, value: impl Into<Raw>) {
        let (name, value) = (name.into(), value.into());
        let members = self.0.get_or_insert_default();
        match members.iter_mut().find(|(found, _)| *found == name) {
            Some(member) => member.1 = value,
            None => members.push((name, value)),
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) -> Option<Raw> {
        let members = self.0.as_mut()?;
        let index = members.iter().position(|(found, _)| **found == *name)?;
        Some(members.remove(index).1)
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.0.iter().flat_map(|members| members.iter()).map(|(name, value)| (&**name, value))
    }

    /// Reads the member whose name has just been read.
    pub(crate) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: Word<'de>,
        access: &mut A,
    ) -> Result<(), A::Error> {
        let value = access.next_value()?;
        self.0.get_or_insert_default().push((name.0.into(), value));
        Ok(())
    }

    /// Appends the members to an object that is being written.
    pub(crate) fn write_members(&self, out: &mut Vec<u8>) {
        for (name, value) in self.iter() {
            json::write_name(name, out);
            value.write(At::Everything, out);
        }
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Values of one type by names that the sender chose, in their order.
///
/// No name appears twice; decoding refuses an object in which one does.
///
/// ```
/// use turnbuckle_types::{Named, Raw};
/// let mut extensions = Named::new();
/// extensions.insert("io.modelcontextprotocol/ui", Raw::empty_object());
/// assert!(extensions.value("io.modelcontextprotocol/ui").is_some());
/// assert!(serde_json::from_str::<Named<Raw>>(r#"{"a":1,"a":2}"#).is_err());
/// ```
#[derive(Clone, PartialEq)]
pub struct Named<T>(
    /// Invariant: the names are distinct.
    Vec<(String, T)>,
);

impl<T> Named<T> {
    /// No values.
    pub const fn new() -> Named<T> {
        Named(Vec::new())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of this name.
    pub fn value(&self, name: &str) -> Option<&T> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Adds a value, or replaces the one of this name.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<T>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(found, _)| *found == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// Takes a value out.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        let index = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.remove(index).1)
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> + Clone {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Where a name appears twice, the later value stands.
impl<N: Into<String>, T> FromIterator<(N, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(values: I) -> Named<T> {
        let mut named = Named::new();
        for (name, value) in values {
            named.insert(name, value);
        }
        named
    }
}

impl<T> IntoIterator for Named<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: Encode> Encode for Named<T> {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        json::write_object(self.iter(), at, out);
    }
}

impl<T: Encode> serde::Serialize for Named<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encode(At::Everything, serializer)
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Named<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor(std::marker::PhantomData))
    }
}

struct NamedVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: serde::Deserialize<'de>> serde::de::Visitor<'de> for NamedVisitor<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Named<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(entry) = access.next_entry()? {
            values.push(entry);
        }
        let named = Named(values);
        match read::duplicate(named.iter().map(|(name, _)| name)) {
            None => Ok(named),
            Some(name) => Err(read::appears_twice(name)),
        }
    }
}
