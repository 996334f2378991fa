//! Refuses JSON in which an object has two members of one name: two readers would disagree on the
//! value.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::error::Category;

use super::{shorten, without_position};

/// Fails if an object has two members of one name, at any depth. A text that is not JSON passes: its
/// decoder refuses it.
pub(crate) fn check_unique_members(text: &str) -> Result<(), String> {
    match serde_json::from_str::<UniqueMembers>(text) {
        Err(error) if error.classify() == Category::Data => Err(without_position(&error)),
        _ => Ok(()),
    }
}

/// A value of which nothing is kept.
struct UniqueMembers;

impl<'de> Deserialize<'de> for UniqueMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UniqueMembers, D::Error> {
        deserializer.deserialize_any(UniqueMembers)
    }
}

impl<'de> Visitor<'de> for UniqueMembers {
    type Value = UniqueMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<UniqueMembers, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueMembers, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueMembers, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueMembers, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueMembers, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueMembers, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueMembers, A::Error> {
        while items.next_element::<UniqueMembers>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<UniqueMembers, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if let Some(name) = names.replace(name) {
                return Err(A::Error::custom(format_args!("`{}` is given twice", shorten(&name))));
            }
            members.next_value::<UniqueMembers>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::check_unique_members;

    #[test]
    fn a_name_may_appear_once_in_an_object() {
        for text in [r#"{"a":{"b":1},"b":[{"b":2},{"b":-3.5}]}"#, "null", "[true]", "{", "\"a\""] {
            assert_eq!(check_unique_members(text), Ok(()), "{text}");
        }
        for (text, name) in [
            (r#"{"a":1,"a":1}"#, "a"),
            (r#"{"a":1,"\u0061":2}"#, "a"),
            (r#"[{"a":[{"b":1,"c":2,"b":3}]}]"#, "b"),
        ] {
            let message = format!("`{name}` is given twice");
            assert_eq!(check_unique_members(text), Err(message), "{text}");
        }
    }
}
