//! A second reader of JSON.

use std::{cell::Cell, collections::BTreeSet, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Returns the value, or `None` if the text is not JSON or has an object with a member twice.
pub fn unique(text: &[u8]) -> Option<Value> {
    let value = serde_json::from_slice(text).ok()?;
    let repeated = Cell::new(false);
    let mut reader = serde_json::Deserializer::from_slice(text);
    Names(&repeated).deserialize(&mut reader).ok()?;
    (!repeated.get()).then_some(value)
}

/// Returns whether a value has a `null` in it.
pub fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// Returns a value in which equal numbers are written alike, or `None` if it has a number beyond the
/// integers that a double holds exactly.
pub fn normal(value: &Value) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    Some(match value {
        Value::Number(number) => match number.as_f64()? {
            float if float.abs() >= EXACT => return None,
            float if float.fract() == 0.0 => Value::from(float as i64),
            float => Value::from(float),
        },
        Value::Array(items) => items.iter().map(normal).collect::<Option<Vec<_>>>()?.into(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| Some((name.clone(), normal(value)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        other => other.clone(),
    })
}

/// Notes whether an object has a member twice.
#[derive(Clone, Copy)]
struct Names<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for Names<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Names<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            members.next_value_seed(self)?;
            if !names.insert(name) {
                self.0.set(true);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Returns whether the object in a text has a member of this name twice.
pub fn occurs_twice(text: &[u8], name: &str) -> bool {
    struct Count<'a>(&'a str);
    impl<'de> Visitor<'de> for Count<'_> {
        type Value = usize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<usize, A::Error> {
            let mut count = 0;
            while let Some((name, _)) = members.next_entry::<String, serde::de::IgnoredAny>()? {
                count += usize::from(name == self.0);
            }
            Ok(count)
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    reader.deserialize_map(Count(name)).is_ok_and(|count| count > 1)
}
