//! One case for each kind of error that serde_json has.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use super::{
    super::{Culprit, read},
    types::{Even, External, Item, Lenient, Ordered, Unit},
    written,
};

macro_rules! assert_at {
    ($type:ty, $text:expr, $culprit:expr, [$($step:expr),*]) => {{
        let text = $text;
        let failure = read::<$type>(&text).err().unwrap();
        let steps: Vec<String> = vec![$(format!("{:?}", $step)),*];
        assert_eq!(written(&failure.place(&text, $culprit)), steps, "{} in {text}", failure.message());
    }};
    ($type:ty, $text:expr, [$($step:expr),*]) => {
        assert_at!($type, $text, Culprit::Around, [$($step),*])
    };
}

type Map<T> = BTreeMap<String, T>;

#[test]
fn values_of_another_kind() {
    assert_at!(Map<u8>, r#"{"a":1,"b":"x"}"#, ["b"]);
    assert_at!(Map<u8>, "{\"a\":1,\n \"b\" :\n [ 1 ] , \"c\": 1}", ["b"]);
    assert_at!(Map<u8>, r#"{"b": {"c": 1}}"#, ["b"]);
    assert_at!(Map<Vec<u8>>, r#"{"b": [1, 2, 300, 4]}"#, ["b", 2]);
    // serde_json reports it as a syntax error: only an array or object around it is certain.
    assert_at!(Map<Option<i128>>, r#"{"b": "1"}"#, []);
    assert_at!(Map<std::net::IpAddr>, r#"{"b": "x" , "c": ""}"#, ["b"]);
    assert_at!(Map<Lenient>, r#"{"a": "X"}"#, ["a"]);
    assert_at!(Vec<Unit>, r#"["One", "Three"]"#, [1]);
    assert_at!(Map<u8>, r#"{"\"\u00e4\ud83d\ude00\n\\": true}"#, ["\"ä😀\n\\"]);
    assert_at!(Map<u8>, r#"{"": true}"#, [""]);
}

#[test]
fn fields_that_are_missing_unknown_or_there_twice() {
    assert_at!(Vec<Item>, r#"[{"name": "a"}, {"size": 1} ]"#, [1]);
    assert_at!(Vec<Item>, r#"[{"name": "a", "below": {}}]"#, [0, "below"]);
    assert_at!(Vec<Item>, r#"[{"name": "a", "other" : 1}]"#, [0]);
    assert_at!(Vec<Item>, r#"[{"name": "a", "name" : 1}]"#, [0]);
    assert_at!(Item, r#"{"below": {"name": "", "even": 2}}"#, []);
    assert_at!(Map<(u8, u8)>, r#"{"a": [1], "b": [1, 2]}"#, ["a"]);
    assert_at!(Map<External>, r#"{"a": {"Fields": {"a": 1}}}"#, ["a", "Fields"]);
}

#[test]
fn a_value_that_its_decoder_refuses() {
    // The position does not tell the value from what is around it…
    assert_at!(Map<Even>, r#"{"a": 2, "b": 3}"#, []);
    assert_at!(Vec<Even>, "[2, 3 , 4]", []);
    assert_at!(Map<Even>, r#"{"a": 3 , "b": 2}"#, ["a"]);
    // …unless the latter is known to be complete.
    assert_at!(Map<Even>, r#"{"a": 2, "b": 3}"#, Culprit::Value, ["b"]);
    assert_at!(Map<Even>, r#"{"a": 3 , "b": 2}"#, Culprit::Value, ["a"]);
    assert_at!(Vec<Even>, "[2, 3]", Culprit::Value, [1]);
    assert_at!(Vec<Even>, "[2, 3 , 4]", Culprit::Value, [1]);
    assert_at!(Vec<Vec<Even>>, "[[2], [4, 3]]", Culprit::Value, [1, 1]);
    assert_at!(Map<Ordered>, r#"{"a": {"low": 2, "high": 1}}"#, Culprit::Value, ["a"]);
    assert_at!(Ordered, r#"{"low": 2, "high": 1}"#, Culprit::Value, []);
    // Either of the two could have been refused: both of these have the same position.
    let text = r#"{"a": {"low": 2, "high": 1}, "b": {}}"#;
    assert_at!(Map<Ordered>, text, Culprit::Value, ["a"]);
    assert_at!(Map<Vec<Even>>, r#"{"a": [2, 3], "b": []}"#, Culprit::Value, ["a"]);
}

/// A raw value that is decoded on its own: the position that comes out is one in there.
#[derive(Debug)]
struct Within;

impl<'de> Deserialize<'de> for Within {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Within, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        serde_json::from_str::<Vec<u8>>(raw.get()).map_err(D::Error::custom)?;
        Ok(Within)
    }
}

#[test]
fn a_position_in_another_text_does_not_mislead() {
    for culprit in [Culprit::Around, Culprit::Value] {
        assert_at!(Map<Within>, r#"{"a": [1], "b": [1,     -1], "c": [-1]}"#, culprit, ["b"]);
        assert_at!(Map<Vec<Within>>, r#"{"a": [[1], [-1]]}"#, culprit, []);
    }
}

#[test]
fn text_that_is_not_json_and_depth() {
    assert_at!(Map<u8>, "", []);
    assert_at!(Map<u8>, r#"{"a": 1}}"#, []);
    assert_at!(Map<u8>, r#"{"a": @}"#, []);
    assert_at!(Map<Vec<u8>>, r#"{"a": [1, nul]}"#, []);
    let open = "[".repeat(200);
    let failure = read::<serde_json::Value>(&open).err().unwrap();
    assert!(failure.place(&open, Culprit::Around).0.len() <= 128);
}
