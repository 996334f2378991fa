//! Owns the text of a JSON value that does not depend on how it was written.
//! Does not own what it is compared with.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// Writes a JSON value so that white space, escapes, the order of members and `1.0` for `1`
/// make no difference, and anything else does. A client may write its request anew when it retries.
pub(crate) fn write(text: &str, out: &mut Vec<u8>) {
    // What most tools that ask are called with: nothing to read or to sort.
    if text == "{}" {
        return add_length(b'{', 0, out);
    }
    match serde_json::from_str::<JsonTree>(text) {
        Ok(tree) => tree.add(out),
        // Deeper than can be read, or with numbers that can't be told apart once they are read: then
        // its text has to be the same.
        Err(_) => add_text(b'?', text, out),
    }
}

enum JsonTree {
    Null,
    Bool(bool),
    /// In the spelling that all spellings of the number share.
    Number(String),
    Text(String),
    List(Vec<JsonTree>),
    /// By name. A name that appears twice stays so: it is not the same as once.
    Object(Vec<(String, JsonTree)>),
}

impl JsonTree {
    /// Each kind has its mark and each length comes first, so that no two values give the same.
    fn add(&self, out: &mut Vec<u8>) {
        match self {
            JsonTree::Null => out.push(b'n'),
            JsonTree::Bool(true) => out.push(b't'),
            JsonTree::Bool(false) => out.push(b'f'),
            JsonTree::Number(text) => add_text(b'd', text, out),
            JsonTree::Text(text) => add_text(b's', text, out),
            JsonTree::List(items) => {
                add_length(b'[', items.len(), out);
                items.iter().for_each(|item| item.add(out));
            }
            JsonTree::Object(members) => {
                add_length(b'{', members.len(), out);
                for (name, value) in members {
                    add_text(b'k', name, out);
                    value.add(out);
                }
            }
        }
    }
}

fn add_text(mark: u8, text: &str, out: &mut Vec<u8>) {
    add_length(mark, text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

fn add_length(mark: u8, length: usize, out: &mut Vec<u8>) {
    out.push(mark);
    out.extend_from_slice(&(length as u64).to_be_bytes());
}

impl<'de> Deserialize<'de> for JsonTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonTree, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = JsonTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<JsonTree, E> {
        Ok(JsonTree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonTree, E> {
        Ok(JsonTree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<JsonTree, E> {
        Ok(JsonTree::Number(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<JsonTree, E> {
        Ok(JsonTree::Number(value.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<JsonTree, E> {
        // From 2^53 on one number stands for several integers.
        if value.abs() >= 9_007_199_254_740_992.0 {
            return Err(E::custom("too large a number"));
        }
        // `{}` writes a whole number without a fraction and without an exponent.
        let zero = value == 0.0;
        Ok(JsonTree::Number(if zero { "0".to_owned() } else { value.to_string() }))
    }

    fn visit_str<E>(self, value: &str) -> Result<JsonTree, E> {
        Ok(JsonTree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<JsonTree, E> {
        Ok(JsonTree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<JsonTree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(JsonTree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<JsonTree, A::Error> {
        let mut members: Vec<(String, JsonTree)> = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(JsonTree::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write(text, &mut out);
        out
    }

    #[test]
    fn spelling_makes_no_difference() {
        for (one, other) in [
            (r#"{"a":1,"b":{"c":[],"d":2}}"#, "{ \"b\": {\"d\":2, \"c\":[ ]},\n\"a\":1}"),
            (r#""a/b""#, r#""\u0061\/b""#),
            ("1", "1.0"),
            ("100", "1e2"),
            ("0", "-0.0"),
            ("-3", "-3.0"),
            ("0.5", "5e-1"),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn every_other_difference_does() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let texts = [
            "{}",
            "[]",
            "null",
            "true",
            "false",
            "0",
            "1",
            "-1",
            "0.5",
            "\"\"",
            "\"0\"",
            "\"n\"",
            "[[]]",
            "[null]",
            "[[],[]]",
            "[[[]]]",
            r#"{"a":1}"#,
            r#"{"a":2}"#,
            r#"{"b":1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{},"b":1}"#,
            r#"["a",1]"#,
            "18446744073709551615",
            "9223372036854775807",
            "100000000000000000000000000000000000001",
            "100000000000000000000000000000000000002",
            r#"{"a":-100000000000000000000000000000000000001}"#,
            r#"{"a":-100000000000000000000000000000000000002}"#,
            &deep,
            "",
        ];
        for (index, one) in texts.iter().enumerate() {
            for other in &texts[..index] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
    }
}
