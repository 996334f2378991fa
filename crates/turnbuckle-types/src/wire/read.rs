//! The parts of decoding that every model type shares: member names, one slot per member, kinds
//! told apart by a tag.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};

use super::{At, Encode, json};
use crate::Raw;

/// A JSON string, borrowed from the input wherever it has no escapes.
#[derive(Debug, PartialEq)]
pub(crate) struct Word<'a>(pub(crate) Cow<'a, str>);

impl Word<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(WordVisitor)
    }
}

struct WordVisitor;

impl<'de> Visitor<'de> for WordVisitor {
    type Value = Word<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Word(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Word(Cow::Owned(text.to_owned())))
    }
}

/// A type that is an object with members of its own.
pub(crate) trait Members: Sized {
    /// What it is called in errors.
    const NAME: &'static str;

    /// Reads the members that are left in `access`.
    fn read<'de, A: MapAccess<'de>>(access: &mut A) -> Result<Self, A::Error>;
}

impl<T: Members> Members for Box<T> {
    const NAME: &'static str = T::NAME;

    fn read<'de, A: MapAccess<'de>>(access: &mut A) -> Result<Self, A::Error> {
        T::read(access).map(Box::new)
    }
}

/// Visits an object.
pub(crate) struct ObjectVisitor<T>(pub(crate) PhantomData<T>);

impl<'de, T: Members> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_expected(T::NAME, None, f)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<T, A::Error> {
        T::read(&mut access)
    }
}

/// Says that an object of this name is expected, with this member.
fn write_expected(name: &str, tag: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match tag {
        None => write!(f, "an object ({name})"),
        Some(tag) => write!(f, "an object ({name}) with a `{tag}`"),
    }
}

/// Fills the slot of one member.
pub(crate) fn member<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    slot: &mut Option<T>,
    access: &mut A,
    name: &'static str,
) -> Result<(), A::Error> {
    if slot.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *slot = Some(access.next_value()?);
    Ok(())
}

/// Reads a member that must say `kind`.
pub(crate) fn fixed<'de, A: MapAccess<'de>>(
    access: &mut A,
    name: &'static str,
    kind: &'static str,
) -> Result<(), A::Error> {
    let found: Word<'de> = access.next_value()?;
    if found.as_str() == kind {
        return Ok(());
    }
    Err(A::Error::custom(format_args!("`{name}` must be `{kind}`, not `{}`", found.as_str())))
}

/// The first name that appears twice. Pairwise where that is cheap; a peer decides how
/// many members there are, so it must not stay quadratic.
pub(crate) fn duplicate<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    const FEW: usize = 16;
    if names.clone().nth(FEW).is_none() {
        let mut rest = names;
        while let Some(name) = rest.next() {
            if rest.clone().any(|other| other == name) {
                return Some(name);
            }
        }
        return None;
    }
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// The error for a name that [`duplicate`] found.
pub(crate) fn appears_twice<E: Error>(name: &str) -> E {
    E::custom(format_args!("`{name}` appears twice"))
}

/// A type whose kinds are told apart by the value of one member.
pub(crate) trait Tagged: Sized {
    /// The member that tells the kind.
    const TAG: &'static str;
    /// What the type is called in errors.
    const NAME: &'static str;

    /// Reads the members that are left in `access` as this kind; `None`, with nothing
    /// read, for a kind that the model does not know.
    fn read_kind<'de, A: MapAccess<'de>>(
        kind: &str,
        access: &mut A,
    ) -> Result<Option<Self>, A::Error>;

    /// Keeps a kind that the model does not know.
    fn other(raw: Raw) -> Self;
}

/// Visits an object of some kind. A tag that stands first costs nothing; otherwise the
/// members are kept as text until it is found.
pub(crate) struct TaggedVisitor<T>(pub(crate) PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_expected(T::NAME, Some(T::TAG), f)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<T, A::Error> {
        let mut text = Gathered::new();
        let mut found: Option<String> = None;
        while let Some(name) = access.next_key::<Word<'de>>()? {
            if name.as_str() != T::TAG {
                text.push(name.as_str(), &access.next_value::<Raw>()?);
                continue;
            }
            if found.is_some() {
                return Err(A::Error::duplicate_field(T::TAG));
            }
            let kind: Word<'de> = access.next_value()?;
            if text.is_empty()
                && let Some(value) = T::read_kind(kind.as_str(), &mut access)?
            {
                return Ok(value);
            }
            text.push(T::TAG, kind.as_str());
            found = Some(kind.0.into_owned());
        }
        let kind = found.ok_or_else(|| A::Error::missing_field(T::TAG))?;
        let raw = text.finish().map_err(A::Error::custom)?;
        let replay = &mut serde_json::Deserializer::from_str(raw.as_str());
        let known = KindSeed::<T>(&kind, PhantomData).deserialize(replay);
        Ok(known.map_err(A::Error::custom)?.unwrap_or_else(|| T::other(raw)))
    }
}

/// Reads a whole object as the kind that it was found to be.
struct KindSeed<'a, T>(&'a str, PhantomData<T>);

impl<'de, T: Tagged> DeserializeSeed<'de> for KindSeed<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Tagged> Visitor<'de> for KindSeed<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Option<T>, A::Error> {
        let known = T::read_kind(self.0, &mut access)?;
        if known.is_none() {
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        Ok(known)
    }
}

/// The text of an object, put together again from its members.
struct Gathered(Vec<u8>);

impl Gathered {
    fn new() -> Gathered {
        Gathered(Vec::new())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push<T: Encode + ?Sized>(&mut self, name: &str, value: &T) {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        json::write_name(name, &mut self.0);
        value.write(At::Everything, &mut self.0);
    }

    fn finish(mut self) -> Result<Raw, serde_json::Error> {
        self.0.push(b'}');
        Raw::from_json(String::from_utf8_lossy(&self.0))
    }
}
