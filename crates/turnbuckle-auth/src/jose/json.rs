//! Reading JSON where two readers must never see two things: a member that comes twice is refused.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// An object, the whole of the bytes, in which no member comes twice, however deep.
pub(crate) fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice::<Strict>(bytes).ok()?.0 {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON in which no member comes twice")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Strict(value))) = members.next_entry::<String, Strict>()? {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a member comes twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_comes_twice_is_refused_however_deep() {
        let fine = br#"{"a":[{"b":1,"c":-1.5,"d":null,"e":"x\u0041","f":true}],"b":{}}"#;
        let same: Value = serde_json::from_slice(fine).unwrap();
        assert_eq!(object(fine).map(Value::Object), Some(same));
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"{"a":[[{"b":1,"b":2}]]}"#,
            r#"{"a":1}x"#,
            r#"{"a":1}{}"#,
            "[]",
            "1",
            "",
        ] {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(object(deep.as_bytes()), None);
    }
}
