//! Owns reading single arguments out of the text of all of them, without building a tree of
//! values. Does not own which arguments.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    Annotation,
    decimal::{self, Decimal},
};

/// What stands at the place of one annotation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Picked<'a> {
    /// `null` counts as nothing.
    Nothing,
    Text(Cow<'a, str>),
    Whole(i64),
    Truth(bool),
    /// An integer beyond what a header may carry.
    Unsafe,
    /// An array, an object, a fraction.
    Other,
}

impl fmt::Display for Picked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Picked::Text(text) => write!(f, "`{text}`"),
            Picked::Whole(number) => write!(f, "`{number}`"),
            Picked::Truth(truth) => write!(f, "`{truth}`"),
            Picked::Nothing => f.write_str("nothing"),
            Picked::Unsafe | Picked::Other => f.write_str("something no header can say"),
        }
    }
}

/// Reads the values of these annotations, in their order. Text that is no object has none. Returns
/// `None` if they can't be read, or if one appears twice.
pub(super) fn pick<'a>(annotations: &[Annotation], arguments: &'a str) -> Option<Vec<Picked<'a>>> {
    let mut values = vec![Picked::Nothing; annotations.len()];
    if !annotations.is_empty() {
        inner(annotations, 0, &mut values, arguments).ok()?;
    }
    Some(values)
}

fn inner<'a>(
    annotations: &[Annotation],
    depth: usize,
    values: &mut [Picked<'a>],
    text: &'a str,
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    ParamPick { annotations, depth, values }.deserialize(&mut deserializer)
}

/// A value that is about to be read, and the annotations at it and below it.
struct ParamPick<'p, 'a> {
    /// Invariant: sorted by path, and alike in the first `depth` keys.
    annotations: &'p [Annotation],
    depth: usize,
    values: &'p mut [Picked<'a>],
}

impl<'a> DeserializeSeed<'a> for ParamPick<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        // The shortest path comes first, so only the first annotation can be this value's own.
        if self.annotations[0].path.len() > self.depth {
            return deserializer.deserialize_any(self);
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        self.values[0] = scalar(text).map_err(D::Error::custom)?;
        if self.annotations.len() > 1 {
            let (annotations, values) = (&self.annotations[1..], &mut self.values[1..]);
            inner(annotations, self.depth, values, text).map_err(D::Error::custom)?;
        }
        Ok(())
    }
}

impl<'a> Visitor<'a> for ParamPick<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = Vec::new();
        while let Some(key) = members.next_key::<MemberKey<'a>>()? {
            let key_of = |annotation: &Annotation| key.0.as_ref().cmp(&annotation.path[self.depth]);
            let first = self.annotations.partition_point(|one| key_of(one).is_gt());
            let past = self.annotations.partition_point(|one| key_of(one).is_ge());
            if first == past {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            if seen.contains(&first) {
                return Err(A::Error::custom("a member is given twice"));
            }
            seen.push(first);
            let values = &mut self.values[first..past];
            let annotations = &self.annotations[first..past];
            members.next_value_seed(ParamPick { annotations, depth: self.depth + 1, values })?;
        }
        Ok(())
    }

    // Below anything but an object there is nothing to pick.

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn scalar(text: &str) -> serde_json::Result<Picked<'_>> {
    Ok(match text.as_bytes().first() {
        Some(b'"') => Picked::Text(serde_json::from_str::<MemberKey<'_>>(text)?.0),
        Some(b't') => Picked::Truth(true),
        Some(b'f') => Picked::Truth(false),
        Some(b'n') | None => Picked::Nothing,
        Some(b'[' | b'{') => Picked::Other,
        Some(_) => match decimal::read(text) {
            Some(Decimal::Whole(number)) => Picked::Whole(number),
            Some(Decimal::Unsafe) => Picked::Unsafe,
            Some(Decimal::Fraction) | None => Picked::Other,
        },
    })
}

/// A string that borrows from the text unless it has escapes.
struct MemberKey<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for MemberKey<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<MemberKey<'a>, D::Error> {
        struct PickKey;

        impl<'a> Visitor<'a> for PickKey {
            type Value = MemberKey<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<MemberKey<'a>, E> {
                Ok(MemberKey(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<MemberKey<'a>, E> {
                Ok(MemberKey(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(PickKey)
    }
}
