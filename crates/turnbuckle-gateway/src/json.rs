//! Edits of JSON objects that are carried as text: a member is replaced, added or removed, and every
//! other byte stays as it is.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use turnbuckle::types::Raw;

/// Returns the object with the value of one member replaced, or with the member added at the end.
pub(crate) fn with(object: &str, name: &str, value: &str) -> String {
    if let Some(found) = member(object, name) {
        return splice(object, found, value).unwrap_or_else(|| object.to_owned());
    }
    let mut text = object.strip_suffix('}').unwrap_or("{").trim_end().to_owned();
    if !text.ends_with('{') {
        text.push(',');
    }
    text.push_str(&quote(name));
    text.push(':');
    text.push_str(value);
    text.push('}');
    text
}

/// Returns the object without these members.
pub(crate) fn without<'a>(object: &'a str, names: &[&str]) -> Cow<'a, str> {
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
        text.push_str(&quote(name));
        text.push(':');
        text.push_str(value.get());
    }
    text.push('}');
    Cow::Owned(text)
}

/// Returns the value of a member, as a slice of the object's text.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let Members(members) = members(object)?;
    members.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value.get())
}

/// Returns the text with a slice of it replaced; `None` if `part` is no slice of `whole`.
pub(crate) fn splice(whole: &str, part: &str, value: &str) -> Option<String> {
    let at = offset(whole, part)?;
    Some([&whole[..at], value, &whole[at + part.len()..]].concat())
}

/// Returns where a slice of a text begins; `None` if `part` is no slice of `whole`.
pub(crate) fn offset(whole: &str, part: &str) -> Option<usize> {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    whole.get(at..at + part.len()).map(|_| at)
}

/// Returns text that is known to be valid JSON as a [`Raw`].
pub(crate) fn raw(text: String) -> Raw {
    Raw::from_encoded(text.into_bytes()).unwrap_or_else(Raw::empty_object)
}

/// Returns a string as JSON text.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Decodes the member of an object, which may be missing.
pub(crate) fn decode_member<T: serde::de::DeserializeOwned>(object: &str, name: &str) -> Option<T> {
    serde_json::from_str(member(object, name)?).ok()
}

/// The members of an object in their order. The values are slices of its text.
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
    fn a_member_is_replaced_in_place_and_nothing_else_changes() {
        assert_eq!(with(ODD, "b", "true"), ODD.replace("1.50e+3", "true"));
        assert_eq!(with(ODD, "ab", "{}"), ODD.replace("[ 1,2 ]", "{}"));
        let added = with(ODD, "d", "null");
        assert_eq!(added, format!("{},\"d\":null}}", ODD.strip_suffix('}').unwrap()));
        assert_eq!(with("{}", "d", "1"), r#"{"d":1}"#);
        assert_eq!(with("{ }", "d", "1"), r#"{"d":1}"#);
    }

    #[test]
    fn removing_a_member_keeps_the_digits_of_the_others() {
        let rest = without(ODD, &["ab"]);
        assert_eq!(rest, r#"{"b":1.50e+3,"c":123456789012345678901234567890}"#);
        assert!(matches!(without(ODD, &["x"]), Cow::Borrowed(ODD)));
        assert_eq!(without(r#"{"a":1}"#, &["a"]), "{}");
        assert_eq!(without("[1]", &["a"]), "[1]");
    }

    #[test]
    fn only_a_slice_is_replaced() {
        let text = String::from("abc");
        assert_eq!(splice(&text, &text[1..2], "xx").as_deref(), Some("axxc"));
        assert_eq!(offset(&text, &text[1..]), Some(1));
        let other = String::from("a text of another place, and a longer one too");
        assert_eq!(splice(&text, &other, ""), None);
    }
}
