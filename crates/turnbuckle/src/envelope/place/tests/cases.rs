//! Owns one case for each kind of error that serde_json has. Does not own how many there are.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::value::RawValue;

use super::{
    super::{Failure, failure_of, find, read},
    types::{Even, External, Internal, Item, Lenient, Ordered, Root, Tagged, Unit},
    written,
};

macro_rules! assert_at {
    ($type:ty, $text:expr, [$($step:expr),*], $rest:expr) => {{
        let text = $text;
        let failure = read::<$type>(&text).err().unwrap();
        let place = find(&text, &failure, failure_of::<$type>);
        let steps: Vec<String> = vec![$(format!("{:?}", $step)),*];
        assert_eq!(written(&place.steps), steps, "{} in {text}", failure.error);
        assert!(place.rest.starts_with($rest), "{} is not at {}", place.rest, $rest);
    }};
}

type Map<T> = BTreeMap<String, T>;

#[test]
fn values_of_another_kind() {
    assert_at!(Map<u8>, r#"{"a":1,"b":"x"}"#, ["b"], "\"x\"}");
    assert_at!(Map<u8>, "{\"a\":1,\n \"b\" :\n [ 1 ] , \"c\": 1}", ["b"], "[ 1 ]");
    assert_at!(Map<u8>, r#"{"b": {"c": 1}}"#, ["b"], "{\"c\"");
    assert_at!(Map<Vec<u8>>, r#"{"b": [1, 2, 300, 4]}"#, ["b", 2], "300, 4");
    assert_at!(Map<Vec<u8>>, r#"{"b": [1, [2]]}"#, ["b", 1], "[2]]");
    assert_at!(Map<Vec<u8>>, r#"{"b": [[1]]}"#, ["b", 0], "[1]]");
    assert_at!(Map<Option<i128>>, r#"{"b": "1"}"#, ["b"], "\"1\"");
    assert_at!(Map<u128>, r#"{"b": -1}"#, ["b"], "-1");
    assert_at!(Map<f64>, r#"{"a": 1, "b": 1e999 }"#, ["b"], "1e999");
    assert_at!(Map<std::net::IpAddr>, r#"{"b": "x" , "c": ""}"#, ["b"], "\"x\"");
    assert_at!(Map<()>, r#"{"b": true}"#, ["b"], "true");
}

#[test]
fn arrays_and_objects_for_a_visitor_that_takes_neither() {
    assert_at!(Map<Vec<Lenient>>, r#"{"a": [1, [[2], 3]]}"#, ["a", 1], "[[2]");
    assert_at!(Map<Vec<Lenient>>, r#"{"a": [ [ ] ]}"#, ["a", 0], "[ ]");
    assert_at!(Map<Lenient>, r#"{"a": [1]}"#, ["a"], "[1]");
    assert_at!(Map<Lenient>, r#"{"a": {"b": 1}}"#, ["a"], "{\"b\"");
    // What it says may be of another kind than what it was given.
    assert_at!(Map<Lenient>, r#"{"a": "300" , "b": 1}"#, ["a"], "\"300\"");
    assert_at!(Map<Lenient>, r#"{"a": "X"}"#, ["a"], "\"X\"");
}

#[test]
fn fields_that_are_missing_unknown_or_there_twice() {
    assert_at!(Vec<Item>, r#"[{"name": "a"}, {"size": 1} ]"#, [1], "{\"size\"");
    assert_at!(Vec<Item>, r#"[{"name": "a", "below": {}}]"#, [0, "below"], "{}");
    assert_at!(Vec<Item>, r#"[{"name": "a", "other" : 1}]"#, [0], "{\"name\"");
    assert_at!(Vec<Item>, r#"[{"name": "a", "name" : 1}]"#, [0], "{\"name\"");
    assert_at!(Item, r#"{"below": {"name": "", "even": 2}}"#, [], "{\"below\"");
}

#[test]
fn arrays_of_another_length() {
    assert_at!(Map<(u8, u8)>, r#"{"a": [1], "b": [1, 2]}"#, ["a"], "[1]");
    assert_at!(Map<(u8, u8)>, r#"{"a": [1, 2, 3]}"#, ["a"], "[1, 2");
    assert_at!(Map<[u8; 2]>, r#"{"a": []}"#, ["a"], "[]");
}

#[test]
fn choices() {
    assert_at!(Vec<Unit>, r#"["One", "Three"]"#, [1], "\"Three\"");
    assert_at!(Vec<Unit>, r#"["One", 3, "Two"]"#, [1], "3");
    assert_at!(Vec<Unit>, r#"[["One"]]"#, [0], "[\"One");
    assert_at!(Vec<Unit>, r#"[{"Three": null}]"#, [0], "{\"Three");
    assert_at!(Vec<Unit>, r#"["One", {}]"#, [1], "{}");
    assert_at!(Vec<External>, r#"["Unit", "Newtype", "Unit"]"#, [1], "\"Newtype\", ");
    assert_at!(
        Map<External>,
        r#"{"a": {"Inner": {"Inner": "Held"}}}"#,
        ["a", "Inner", "Inner"],
        "\"Held\""
    );
    assert_at!(Map<External>, r#"{"a": {"Pair": [1]}}"#, ["a", "Pair"], "[1]");
    assert_at!(Map<External>, r#"{"a": {"Fields": {"a": 1}}}"#, ["a", "Fields"], "{\"a\": 1}");
    assert_at!(Map<External>, r#"{"a": {"Fields": 5}}"#, ["a", "Fields"], "5");
    assert_at!(Map<External>, r#"{"a": {"Unit": 5}}"#, ["a", "Unit"], "5");
    assert_at!(Map<External>, r#"{"a": {"Newtype": 2, "Unit": null}}"#, ["a"], "{\"Newtype");
    assert_at!(Map<External>, r#"{"a": {"Inner": 2, "Unit": null}}"#, ["a", "Inner"], "2");
    assert_at!(Root, r#"{"even": 3}"#, ["even"], "3");
    assert_at!(Root, r#"{"range": {"low": 2, "high": 1}}"#, ["range"], "{\"low");
}

#[test]
fn what_is_refused_once_it_was_read() {
    assert_at!(Map<Even>, r#"{"a": 2, "b": 3}"#, ["b"], "3");
    assert_at!(Map<Even>, r#"{"a": 3 , "b": 2}"#, ["a"], "3");
    assert_at!(Vec<Even>, "[2, 3]", [1], "3]");
    assert_at!(Vec<Even>, "[2, 3 , 4]", [1], "3 ,");
    assert_at!(Vec<Vec<Even>>, "[[2], [4, 3], []]", [1, 1], "3]");
    assert_at!(Vec<Ordered>, r#"[{"low": 2, "high": 1}, {}]"#, [0], "{\"low");
    assert_at!(Map<Ordered>, r#"{"a": {"low": 2, "high": 1}}"#, ["a"], "{\"low");
    assert_at!(Map<Ordered>, r#"{"a": {"low": 2, "high": 300}}"#, ["a", "high"], "300");
    assert_at!(Ordered, r#"{"low": 2, "high": 1}"#, [], "{\"low");
    assert_at!(
        Map<External>,
        r#"{"a": {"Inner": {"Newtype": 3}}}"#,
        ["a", "Inner", "Newtype"],
        "3"
    );
}

#[test]
fn what_is_read_before_it_is_known_what_it_is() {
    let text =
        r#"{"external": "Unit", "adjacent": {"t": "One", "c": 1}, "untagged": 1, "internal":"#;
    let tagged = |internal: &str| format!("{text} {internal}}}");
    assert_at!(Tagged, tagged(r#"{"kind": "Circle"}"#), ["internal"], "{\"kind");
    assert_at!(Tagged, tagged(r#"{"kind": "Circle", "radius": "x"}"#), ["internal"], "{\"kind");
    assert_at!(Tagged, tagged(r#"{"kind": "Oval"}"#), ["internal", "kind"], "\"Oval");
    assert_at!(Tagged, tagged("{}"), ["internal"], "{}");
    assert_at!(Internal, r#"{"kind": "Circle"}"#, [], "{\"kind");
    assert_at!(Tagged, r#"{"untagged": {"a": 1}, "internal": 5}"#, ["untagged"], "{\"a");
    assert_at!(Tagged, r#"{"untagged": 300}"#, ["untagged"], "300");
    assert_at!(Tagged, r#"{"adjacent": {"t": "One", "c": 300}}"#, ["adjacent", "c"], "300");
    assert_at!(Tagged, r#"{"adjacent": {"c": 300, "t": "One"}}"#, ["adjacent"], "{\"c");
    assert_at!(Tagged, r#"{"adjacent": {"c": "x", "t": "One", "d": 1}}"#, ["adjacent"], "{\"c");
}

/// Text, or a raw value, that is decoded on its own: the position that comes out is one in there.
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
fn positions_in_another_text() {
    assert_at!(Map<Within>, r#"{"a": [1], "b": [1,     -1], "c": [-1]}"#, ["b"], "[1,     -1]");
    assert_at!(Map<Within>, r#"{"a": [1], "b": [-1]}"#, ["b"], "[-1]");
    assert_at!(Map<Vec<Map<Within>>>, r#"{"a": [{"b": [-1]}]}"#, ["a", 0, "b"], "[-1]");
    assert_at!(Map<Vec<Map<Within>>>, r#"{"a": [{"b": {}}, {}]}"#, ["a", 0, "b"], "{}");
}

#[test]
fn keys() {
    assert_at!(Map<BTreeMap<u16, u8>>, r#"{"a": {"1": 1, "b": 2}}"#, ["a"], "{\"1\"");
    assert_at!(Map<BTreeMap<u16, u8>>, r#"{"a": {"1": 1, "2b": 2}}"#, ["a"], "{\"1\"");
    assert_at!(Map<BTreeMap<u16, u8>>, r#"{"a": {"70000": 2}}"#, ["a", "70000"], "");
    assert_at!(Map<BTreeMap<bool, u8>>, r#"{"a": {"maybe": 2}}"#, ["a"], "{\"maybe\"");
    assert_at!(Map<BTreeMap<Unit, u8>>, r#"{"a": {"Three" : 2}}"#, ["a"], "{\"Three\"");
    assert_at!(Map<BTreeMap<u16, u8>>, r#"{"a": {"7": true}}"#, ["a", "7"], "true");
    assert_at!(Map<u8>, r#"{"\"\u00e4\ud83d\ude00\n\\": true}"#, ["\"ä😀\n\\"], "true");
    assert_at!(Map<u8>, r#"{"": true}"#, [""], "true");
    // One that stands for no text can be skipped, but not decoded.
    assert_at!(Map<u8>, r#"{"a\ud800": 1}"#, [], "{");
    assert_at!(Skipping, r#"{"a\ud800": 1, "b": 1}"#, [], "{");
    assert_at!(Map<String>, r#"{"a": "\ud800"}"#, ["a"], "\"\\ud800");
}

#[derive(Debug, Deserialize)]
struct Skipping {
    #[expect(dead_code, reason = "only its decoding matters")]
    wanted: u8,
}

#[test]
fn what_is_no_json() {
    assert_at!(Map<u8>, "", [], "");
    assert_at!(Map<u8>, r#"{"a": 1}}"#, [], "{");
    assert_at!(Map<u8>, r#"{"a": 1,"#, [], "{");
    assert_at!(Map<u8>, r#"{"a": @}"#, ["a"], "@");
    assert_at!(Map<Vec<u8>>, r#"{"a": [1, 2"#, ["a"], "[1");
    assert_at!(Map<Vec<u8>>, r#"{"a": [1 2]}"#, ["a"], "[1");
    assert_at!(Map<Vec<u8>>, r#"{"a": [1, nul]}"#, ["a", 1], "nul");
    assert_at!(Map<String>, r#"{"a": "b"#, ["a"], "\"b");
}

#[test]
fn depth() {
    let (open, close) = ("[".repeat(200), "]".repeat(200));
    // Too deep for its type.
    let failure = read::<serde_json::Value>(&open).err().unwrap();
    assert_eq!(find(&open, &failure, failure_of::<serde_json::Value>).steps.len(), 127);
    // Skipped, however deep.
    assert_at!(
        Skipping,
        format!(r#"{{"a": {open}{{"wanted": "x"}}{close}, "wanted": "y"}}"#),
        ["wanted"],
        "\"y"
    );
    assert_at!(Skipping, format!(r#"{{"a": {open}{close}}}"#), [], "{");
    // Wrong where nobody could say where.
    let text = format!(r#"{{"a": {open}@{close}}}"#);
    let failure = read::<Skipping>(&text).err().unwrap();
    assert_eq!(find(&text, &failure, failure_of::<Skipping>).steps.len(), 128);
}

/// Refuses without a position, and whatever it was given of the text.
struct Never;

std::thread_local! {
    static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Never, D::Error> {
        READS.set(READS.get() + 1);
        let _ = serde::de::IgnoredAny::deserialize(deserializer);
        Err(D::Error::custom("never"))
    }
}

#[test]
fn what_is_wrong_and_long_is_not_read_often() {
    let reads = |padding: usize| {
        let text = format!("{}\"{}\"{}", "[".repeat(40), "x".repeat(padding), "]".repeat(40));
        let failure = read::<Never>(&text).err().unwrap();
        READS.set(0);
        find(&text, &failure, failure_of::<Never>);
        READS.get()
    };
    assert!((5..20).contains(&reads(10)), "{}", reads(10));
    assert!(reads(100_000) < 4, "{}", reads(100_000));
}

#[test]
fn no_position_is_the_root() {
    let error = serde_json::from_value::<Map<u8>>(serde_json::json!({"a": "x"})).unwrap_err();
    let failure = Failure { error, reached: 0 };
    assert_eq!(find(r#"{"a": "x"}"#, &failure, failure_of::<Map<u8>>).steps, []);
}
