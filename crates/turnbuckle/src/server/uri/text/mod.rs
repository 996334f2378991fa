//! Decodes the texts of variables and prompt arguments into types: numbers, enums, lists.

use std::fmt;

use serde::{
    de::{
        self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, Visitor, value::StrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value as Json};
use turnbuckle_types::Raw;

use super::variables::TextValue;
use crate::server::schema::{ArgumentError, Problem, shorten};

/// Decodes texts into the fields of a struct, or the entries of a map, by their names.
///
/// A field that is an `Option` may be absent; a list accepts a single text, too.
pub(crate) fn from_text<T: DeserializeOwned>(
    values: &[(String, TextValue)],
) -> Result<T, ArgumentError> {
    T::deserialize(NamedValues { values }).map_err(|error| ArgumentError::one(error.0))
}

/// Returns the texts as a JSON object of strings, and of lists where a name has several.
pub(crate) fn as_object(values: &[(String, TextValue)]) -> Raw {
    let value = |value: &TextValue| match value {
        TextValue::One(text) => Json::from(text.as_str()),
        TextValue::Many(texts) => Json::from(texts.clone()),
    };
    let mut object = Map::new();
    for (name, text) in values {
        object.insert(name.clone(), value(text));
    }
    Json::Object(object).into()
}

/// A problem, with the variable if that is known already.
#[derive(Debug)]
struct TextError(Problem);

impl TextError {
    fn new(message: impl Into<String>) -> TextError {
        TextError(Problem::new("", message))
    }

    fn at(self, path: impl FnOnce(&str) -> String) -> TextError {
        TextError(Problem::new(path(&self.0.path), self.0.message))
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for TextError {}

impl de::Error for TextError {
    fn custom<M: fmt::Display>(message: M) -> TextError {
        TextError::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> TextError {
        match unexpected {
            Unexpected::Map => TextError::new("the arguments have names, and none is expected"),
            Unexpected::Seq => TextError::new("expected one value, got several"),
            _ => TextError::new(format!("expected {expected}, got a text")),
        }
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> TextError {
        let got = match unexpected {
            Unexpected::Str(text) => format!("`{}`", shorten(text)),
            Unexpected::Unsigned(number) => format!("`{number}`"),
            Unexpected::Signed(number) => format!("`{number}`"),
            _ => "another".to_owned(),
        };
        TextError::new(format!("expected {expected}, got {got}"))
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> TextError {
        TextError::new(format!("expected {expected}, got {length}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> TextError {
        TextError::new(format!("unknown choice `{}`, {}", shorten(variant), one_of(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> TextError {
        TextError::new(format!("unknown field `{}`, {}", shorten(field), one_of(expected)))
    }

    fn missing_field(field: &'static str) -> TextError {
        TextError(Problem::new(field, "is missing"))
    }

    fn duplicate_field(field: &'static str) -> TextError {
        TextError(Problem::new(field, "is given twice"))
    }
}

fn one_of(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match &names[..] {
        [] => "none is expected".to_owned(),
        [name] => format!("expected {name}"),
        names => format!("expected one of {}", names.join(", ")),
    }
}

/// All values.
struct NamedValues<'v> {
    values: &'v [(String, TextValue)],
}

impl<'de> de::Deserializer<'de> for NamedValues<'_> {
    type Error = TextError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_map(Entries { rest: self.values.iter(), value: None })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Entries<'v> {
    rest: std::slice::Iter<'v, (String, TextValue)>,
    value: Option<&'v (String, TextValue)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = TextError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, TextError> {
        self.value = self.rest.next();
        let name = |(name, _): &(String, TextValue)| seed.deserialize(text(name));
        self.value.map(name).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, TextError> {
        let missing = || TextError::new("a value was asked for before its name");
        let (name, value) = self.value.take().ok_or_else(missing)?;
        let value = seed.deserialize(TextPart { value });
        value.map_err(|error| error.at(|path| format!("{name}{path}")))
    }
}

fn text(text: &str) -> StrDeserializer<'_, TextError> {
    text.into_deserializer()
}

/// One value.
#[derive(Clone, Copy)]
struct TextPart<'v> {
    value: &'v TextValue,
}

impl<'v> TextPart<'v> {
    fn one(self) -> Result<&'v str, TextError> {
        match self.value {
            TextValue::One(text) => Ok(text),
            TextValue::Many(texts) => match &texts[..] {
                [text] => Ok(text),
                _ => Err(TextError::new("expected one value, got several")),
            },
        }
    }

    fn parse<T: std::str::FromStr>(self, what: impl fmt::Display) -> Result<T, TextError> {
        let text = self.one()?;
        text.parse().map_err(|_| TextError::new(format!("`{}` is not {what}", shorten(text))))
    }

    fn number(self) -> Result<f64, TextError> {
        let number: f64 = self.parse("a number")?;
        // Rust parses words such as `inf`.
        let is_written_out = self.one()?.bytes().any(|byte| byte.is_ascii_digit());
        if number.is_finite() && is_written_out {
            return Ok(number);
        }
        Err(TextError::new(format!("`{}` is not a number", shorten(self.one()?))))
    }
}

macro_rules! whole_numbers {
    ($($deserialize:ident $visit:ident $type:ident)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            let is_whole = {
                let text = self.one()?;
                let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            };
            visitor.$visit(match is_whole {
                true => self.parse::<$type>(format_args!(
                    "a whole number from {} to {}", $type::MIN, $type::MAX
                ))?,
                false => self.parse::<$type>("a whole number")?,
            })
        }
    )*};
}

impl<'de> de::Deserializer<'de> for TextPart<'_> {
    type Error = TextError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        match self.value {
            TextValue::One(text) => visitor.visit_str(text),
            TextValue::Many(_) => self.deserialize_seq(visitor),
        }
    }

    whole_numbers! {
        deserialize_i8 visit_i8 i8
        deserialize_i16 visit_i16 i16
        deserialize_i32 visit_i32 i32
        deserialize_i64 visit_i64 i64
        deserialize_i128 visit_i128 i128
        deserialize_u8 visit_u8 u8
        deserialize_u16 visit_u16 u16
        deserialize_u32 visit_u32 u32
        deserialize_u64 visit_u64 u64
        deserialize_u128 visit_u128 u128
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_bool(self.parse("`true` or `false`")?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_char(self.parse("a single character")?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_str(self.one()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_str(self.one()?)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_bytes(self.one()?.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_bytes(self.one()?.as_bytes())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        let texts = match self.value {
            TextValue::One(text) => std::slice::from_ref(text),
            TextValue::Many(texts) => texts,
        };
        let mut items = Items { texts, at: 0 };
        let value = visitor.visit_seq(&mut items)?;
        match items.texts.len() - items.at {
            0 => Ok(value),
            _ => Err(TextError::new(format!("expected {} values, got {}", items.at, texts.len()))),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, TextError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_enum(text(self.one()?))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit unit_struct map struct identifier }
}

struct Items<'v> {
    texts: &'v [String],
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = TextError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TextError> {
        let Some(item) = self.texts.get(self.at) else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        let value = seed.deserialize(TextPart { value: &TextValue::One(item.clone()) });
        value.map(Some).map_err(|error| error.at(|path| format!("[{at}]{path}")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.texts.len() - self.at)
    }
}

#[cfg(test)]
mod tests;
