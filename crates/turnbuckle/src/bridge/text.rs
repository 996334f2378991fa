//! Owns changes to JSON objects that are carried as text: a member replaced, added or left out, and
//! every other byte as it was. Does not own which members.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use turnbuckle_types::Raw;

/// The text with the value of one member replaced, or the member added at the end.
pub(super) fn with(object: &str, name: &str, value: &str) -> String {
    if let Some(found) = member(object, name) {
        return spliced(object, found, value).unwrap_or_else(|| object.to_owned());
    }
    let mut text = object.strip_suffix('}').unwrap_or("{").trim_end().to_owned();
    if !text.ends_with('{') {
        text.push(',');
    }
    text.push_str(&quoted(name));
    text.push(':');
    text.push_str(value);
    text.push('}');
    text
}

/// The text without these members.
pub(super) fn without<'a>(object: &'a str, names: &[&str]) -> Cow<'a, str> {
    let Some(Members(members)) = members(object) else { return Cow::Borrowed(object) };
    if !members.iter().any(|(name, _)| names.contains(&&**name)) {
        return Cow::Borrowed(object);
    }
    let mut text = String::with_capacity(object.len());
    text.push('{');
    for (name, value) in members.iter().filter(|(name, _)| !names.contains(&&**name)) {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&quoted(name));
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    Cow::Owned(text)
}

/// The value of a member, as a slice of the text.
pub(super) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let Members(members) = members(object)?;
    members.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value.get())
}

/// The text with a slice of it replaced; `None` if that is no slice of it.
pub(super) fn spliced(whole: &str, part: &str, value: &str) -> Option<String> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let (before, after) = (whole.get(..at)?, whole.get(at + part.len()..)?);
    Some([before, value, after].concat())
}

/// Where a slice of a text begins; `None` if it is none.
pub(super) fn place(whole: &str, part: &str) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    whole.get(at..at + part.len()).map(|_| at)
}

/// Text that was made of sound JSON by sound changes.
pub(super) fn raw(text: String) -> Raw {
    Raw::from_encoded(text.into_bytes()).unwrap_or_else(Raw::empty_object)
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The members of an object in their order, with values that are slices of its text.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

fn members(object: &str) -> Option<Members<'_>> {
    serde_json::from_str(object).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        #[derive(serde::Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str = r#"{"b": 1.50e+3, "a\u0062":[ 1,2 ],"c":123456789012345678901234567890}"#;

    #[test]
    fn a_member_is_replaced_where_it_stands_and_nothing_else_changes() {
        assert_eq!(with(ODD, "b", "true"), ODD.replace("1.50e+3", "true"));
        assert_eq!(with(ODD, "ab", "{}"), ODD.replace("[ 1,2 ]", "{}"));
        let added = with(ODD, "d", "null");
        assert_eq!(added, format!("{},\"d\":null}}", ODD.strip_suffix('}').unwrap()));
        assert_eq!(with("{}", "d", "1"), r#"{"d":1}"#);
        assert_eq!(with("{ }", "d", "1"), r#"{"d":1}"#);
    }

    #[test]
    fn what_is_left_out_takes_no_digit_of_the_rest_along() {
        let rest = without(ODD, &["ab"]);
        assert_eq!(rest, r#"{"b":1.50e+3,"c":123456789012345678901234567890}"#);
        assert!(matches!(without(ODD, &["x"]), Cow::Borrowed(ODD)));
        assert_eq!(without(r#"{"a":1}"#, &["a"]), "{}");
        assert_eq!(without("[1]", &["a"]), "[1]");
    }

    #[test]
    fn only_a_slice_is_spliced() {
        let text = String::from("abc");
        assert_eq!(spliced(&text, &text[1..2], "xx").as_deref(), Some("axxc"));
        assert_eq!(place(&text, &text[1..]), Some(1));
        let other = String::from("a text of another place, and a longer one too");
        assert_eq!(spliced(&text, &other, ""), None);
    }
}
