//! Owns asking a type's decoder what it decodes: the fields of its structs, the variants of its enums.
//! Does not own schemas; it answers what a schema cannot: order, and what serde enforces by itself.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// How far into a type to look; a type that nests deeper loses only niceties.
const LONGEST_ROUTE: usize = 24;
const MOST_ROUTES: usize = 4096;

/// The lists of names that a decoder asked for.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    structs: Vec<&'static [&'static str]>,
    enums: Vec<&'static [&'static str]>,
}

impl Shape {
    /// The declared fields of the struct that has these properties.
    pub(crate) fn fields_with<'a>(
        &self,
        properties: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<&'static [&'static str]> {
        let fitting = self
            .structs
            .iter()
            .filter(|fields| properties.clone().all(|property| fields.contains(&property)));
        // Aliases stand in the list too, so it may be longer than the properties.
        fitting.min_by_key(|fields| fields.len()).copied()
    }

    /// The declared variants of the enum that has these names.
    pub(crate) fn variants_with<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<&'static [&'static str]> {
        let fitting =
            self.enums.iter().filter(|variants| names.clone().all(|name| variants.contains(&name)));
        fitting.min_by_key(|variants| variants.len()).copied()
    }
}

/// Decodes `T` again and again from an input that follows one route into the type and then fails,
/// noting what was asked for at its end. No value is ever made.
pub(crate) fn shape_of<T: DeserializeOwned>() -> Shape {
    let mut shape = Shape::default();
    let mut routes = VecDeque::from([Vec::new()]);
    for _ in 0..MOST_ROUTES {
        let Some(route) = routes.pop_front() else {
            break;
        };
        let asked = Cell::new(None);
        drop(T::deserialize(Probe { route: &route, asked: &asked }));
        let branches = match asked.take() {
            None => 0,
            Some(Asked::Element) => 1,
            Some(Asked::Struct(names)) => note(&mut shape.structs, names),
            Some(Asked::Enum(names)) => note(&mut shape.enums, names),
        };
        if route.len() < LONGEST_ROUTE {
            routes.extend((0..branches).map(|branch| [&route[..], &[branch]].concat()));
        }
    }
    shape
}

/// How many branches are new: none for a type that has been seen, so that recursion ends.
fn note(lists: &mut Vec<&'static [&'static str]>, names: &'static [&'static str]) -> usize {
    if lists.iter().any(|known| std::ptr::eq(*known, names)) {
        return 0;
    }
    lists.push(names);
    names.len()
}

/// What the decoder asked for at the end of a route.
enum Asked {
    Struct(&'static [&'static str]),
    Enum(&'static [&'static str]),
    /// A sequence or a map: something with elements of one type.
    Element,
}

#[derive(Clone, Copy)]
struct Probe<'p> {
    /// Which field, variant or element to take at each level.
    route: &'p [usize],
    asked: &'p Cell<Option<Asked>>,
}

impl<'p> Probe<'p> {
    /// The branch to take here and the probe for beyond it, or the end of the route.
    fn step(self, asked: Asked) -> Result<(usize, Probe<'p>), Stop> {
        match self.route.split_first() {
            Some((branch, route)) => Ok((*branch, Probe { route, asked: self.asked })),
            None => {
                self.asked.set(Some(asked));
                Err(Stop)
            }
        }
    }

    fn into_elements<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let (_, beyond) = self.step(Asked::Element)?;
        visitor.visit_seq(One { key: None, beyond: Some(beyond) })
    }

    fn into_fields<'de, V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let (branch, beyond) = self.step(Asked::Struct(fields))?;
        visitor.visit_map(One { key: fields.get(branch).copied(), beyond: Some(beyond) })
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(Stop)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.into_elements(visitor)
    }

    // Only the first item can be reached: a second needs a first that succeeds.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        self.into_elements(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.into_elements(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let (_, beyond) = self.step(Asked::Element)?;
        visitor.visit_map(One { key: None, beyond: Some(beyond) })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.into_fields(fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let (branch, beyond) = self.step(Asked::Enum(variants))?;
        let name = variants.get(branch).copied().ok_or(Stop)?;
        visitor.visit_enum(Variant { name, beyond })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct identifier ignored_any
    }
}

/// A sequence or a map with the one element that lies on the route.
struct One<'p> {
    /// The name of the field; a map of unknown keys gets one that suits strings and numbers.
    key: Option<&'static str>,
    beyond: Option<Probe<'p>>,
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Stop;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Stop> {
        self.beyond.take().map(|beyond| seed.deserialize(beyond)).transpose()
    }
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Stop;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Stop> {
        if self.beyond.is_none() {
            return Ok(None);
        }
        match self.key {
            Some(key) => {
                let key: StrDeserializer<'_, Stop> = key.into_deserializer();
                seed.deserialize(key).map(Some)
            }
            None => seed.deserialize(AnyKey).map(Some),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Stop> {
        seed.deserialize(self.beyond.take().ok_or(Stop)?)
    }
}

/// A key that reads as the text "0" or the number 0.
struct AnyKey;

impl<'de> Deserializer<'de> for AnyKey {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str("0")
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_u64(0)
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Variant<'p> {
    name: &'static str,
    beyond: Probe<'p>,
}

impl<'de, 'p> EnumAccess<'de> for Variant<'p> {
    type Error = Stop;
    type Variant = Probe<'p>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Probe<'p>), Stop> {
        let name: StrDeserializer<'_, Stop> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.beyond))
    }
}

impl<'de> VariantAccess<'de> for Probe<'_> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        Err(Stop)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Stop> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        self.into_elements(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.into_fields(fields, visitor)
    }
}

/// How every probe ends.
#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the probe has seen enough")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Stop {
        Stop
    }
}
