//! Objects whose members are named by the sender and have values of one type.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

use crate::{
    At, Encode,
    wire::{json, read},
};

/// Values of one type by names that the sender chose, in their order.
///
/// No name appears twice; decoding refuses an object in which one does.
///
/// ```
/// use turnbuckle_types::{Named, Raw};
/// let mut extensions = Named::<Raw>::new();
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
        self.remove_entry(name).map(|(_, value)| value)
    }

    /// Takes a value out, with its name.
    pub fn remove_entry(&mut self, name: &str) -> Option<(String, T)> {
        let index = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.remove(index))
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

impl<N: Into<String>, V: Into<T>, T, const LENGTH: usize> From<[(N, V); LENGTH]> for Named<T> {
    fn from(values: [(N, V); LENGTH]) -> Named<T> {
        values.into_iter().map(|(name, value)| (name, value.into())).collect()
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

impl<T: Encode> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encode(At::Everything, serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Named::read(deserializer, |value: T| value)
    }
}

impl<T> Named<T> {
    /// Reads an object, and makes something of each value as it comes.
    pub(crate) fn read<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
        make: impl Fn(V) -> T,
    ) -> Result<Named<T>, D::Error> {
        deserializer.deserialize_map(NamedVisitor { make, value: PhantomData })
    }
}

struct NamedVisitor<V, F> {
    make: F,
    value: PhantomData<V>,
}

impl<'de, V: Deserialize<'de>, T, F: Fn(V) -> T> Visitor<'de> for NamedVisitor<V, F> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Named<T>, A::Error> {
        let mut values = Vec::new();
        while let Some((name, value)) = access.next_entry()? {
            values.push((name, (self.make)(value)));
        }
        let named = Named(values);
        match read::duplicate(named.iter().map(|(name, _)| name)) {
            None => Ok(named),
            Some(name) => Err(read::appears_twice(name)),
        }
    }
}
