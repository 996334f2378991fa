//! The members of an object that the model has no field for.

use std::fmt;

use serde::de::MapAccess;

use crate::{
    At, Encode, Raw,
    wire::{json, read::Word},
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
    Option<Box<Vec<Member>>>,
);

#[derive(Clone, PartialEq)]
struct Member {
    name: Box<str>,
    value: Raw,
}

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
        match members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.value = value,
            None => members.push(Member { name, value }),
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) -> Option<Raw> {
        let members = self.0.as_mut()?;
        let index = members.iter().position(|member| *member.name == *name)?;
        Some(members.remove(index).value)
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.0
            .iter()
            .flat_map(|members| members.iter())
            .map(|member| (&*member.name, &member.value))
    }

    /// Reads the member whose name has just been read.
    pub(crate) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: Word<'de>,
        access: &mut A,
    ) -> Result<(), A::Error> {
        let value = access.next_value()?;
        self.0.get_or_insert_default().push(Member { name: name.0.into(), value });
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
