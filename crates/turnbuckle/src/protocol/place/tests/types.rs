//! Owns a type that has everything in it which serde can decode. Does not own what is done with it.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Unexpected, Visitor},
};
use serde_json::{Value, value::RawValue};

#[derive(Deserialize)]
#[expect(dead_code, reason = "only its decoding matters, here and below")]
pub(super) struct All {
    text: String,
    small: u8,
    large: u128,
    ratio: f64,
    flag: bool,
    nothing: (),
    letter: char,
    optional: Option<i8>,
    list: Vec<Item>,
    matrix: Vec<Vec<Even>>,
    pair: (u8, String, Unit),
    #[serde(rename = "by \"name\" \u{e4}")]
    by_name: BTreeMap<String, Item>,
    by_number: BTreeMap<u16, Option<Unit>>,
    by_choice: BTreeMap<Unit, u8>,
    tagged: Vec<Tagged>,
    even: Even,
    range: Ordered,
    flat: Flat,
    embedded: Embedded,
    address: std::net::IpAddr,
    lenient: Lenient,
    lenients: Vec<Lenient>,
    #[serde(deserialize_with = "lower")]
    lower: String,
    any: Value,
    raw: Box<RawValue>,
    content: Vec<turnbuckle_types::ContentBlock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "as above")]
pub(super) struct Item {
    name: String,
    size: Option<u32>,
    #[serde(default)]
    choice: Option<External>,
    even: Option<Even>,
    below: Option<Box<Item>>,
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    One,
    Two,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
pub(super) enum External {
    Unit,
    Newtype(Even),
    Inner(Box<External>),
    Held(Box<Item>),
    Pair(u8, Even),
    Fields { a: u8, b: Even },
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
pub(super) struct Tagged {
    internal: Internal,
    adjacent: Adjacent,
    untagged: Untagged,
    external: External,
}

#[derive(Deserialize)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "as above")]
pub(super) enum Internal {
    Circle { radius: f64 },
    Point { x: u8, y: Even },
}

#[derive(Deserialize)]
#[serde(tag = "t", content = "c")]
#[expect(dead_code, reason = "as above")]
pub(super) enum Adjacent {
    One(u8),
    Many { list: Vec<u8> },
}

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "as above")]
pub(super) enum Untagged {
    Number(u8),
    Object { a: bool },
}

#[derive(Deserialize)]
#[serde(try_from = "u8")]
pub(super) struct Even;

impl TryFrom<u8> for Even {
    type Error = String;
    fn try_from(number: u8) -> Result<Even, String> {
        if number.is_multiple_of(2) { Ok(Even) } else { Err(format!("{number} is not even")) }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Pair")]
pub(super) struct Ordered;

#[derive(Deserialize)]
pub(super) struct Pair {
    low: u8,
    high: u8,
}

impl TryFrom<Pair> for Ordered {
    type Error = &'static str;
    fn try_from(pair: Pair) -> Result<Ordered, &'static str> {
        if pair.low <= pair.high { Ok(Ordered) } else { Err("not in order") }
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "as above")]
pub(super) struct Flat {
    own: u8,
    #[serde(flatten)]
    pair: Pair,
}

/// An enum of the names that [`All`] has.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "as above")]
pub(super) enum Root {
    List(Vec<Item>),
    Even(Even),
    Range(Ordered),
    Text(String),
    Tagged(Vec<Tagged>),
    Small(u8),
    Pair(u8, u8),
}

/// A text that is JSON itself.
pub(super) struct Embedded;

impl<'de> Deserialize<'de> for Embedded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Embedded, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str::<Pair>(&text).map_err(D::Error::custom)?;
        Ok(Embedded)
    }
}

/// A number, or a text that has one.
pub(super) struct Lenient;

impl Visitor<'_> for Lenient {
    type Value = Lenient;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number in some form")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Lenient, E> {
        let number = u8::try_from(number);
        number.map(|_| Lenient).map_err(|_| E::invalid_value(Unexpected::Unsigned(300), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Lenient, E> {
        let text = text.to_lowercase();
        self.visit_u64(text.parse().map_err(|_| E::invalid_type(Unexpected::Str(&text), &Lenient))?)
    }
}

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lenient, D::Error> {
        deserializer.deserialize_any(Lenient)
    }
}

fn lower<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.chars().all(char::is_lowercase) {
        true => Ok(text),
        false => Err(D::Error::invalid_value(Unexpected::Str(text.trim()), &"small letters")),
    }
}

/// What is fine as [`All`].
pub(super) const FINE: &str = r#"{
    "text": "a", "small": 1, "large": 1, "ratio": 0.5, "flag": true, "nothing": null, "letter": "x",
    "optional": 5,
    "list": [{"name": "a", "size": 5, "choice": {"Newtype": 2}},
             {"name": "b", "choice": "Unit", "even": 4},
             {"name": "c", "choice": {"Fields": {"a": 1, "b": 4}},
              "below": {"name": "d", "even": 2, "choice": {"Inner": {"Inner": {"Pair": [1, 2]}}}}}],
    "matrix": [[2, 4], [], [6]],
    "pair": [1, "b", "One"],
    "by \"name\" \u00e4": {"a b": {"name": "a"}, "": {"name": "b"}, "q\n": {"name": "c", "choice": {"Newtype": 2}}},
    "by_number": {"1": "One", "2": {"Two": null}},
    "by_choice": {"One": 1, "Two": 2},
    "tagged": [{"internal": {"kind": "Circle", "radius": 1},
                "adjacent": {"t": "One", "c": 5},
                "untagged": 5,
                "external": {"Held": {"name": "x", "choice": {"Inner": "Unit"}}}},
               {"external": {"Inner": {"Newtype": 2}},
                "untagged": {"a": true},
                "adjacent": {"c": {"list": [1]}, "t": "Many"},
                "internal": {"x": 1, "y": 2, "kind": "Point"}}],
    "even": 2,
    "range": {"low": 1, "high": 2},
    "flat": {"own": 1, "low": 1, "high": 2},
    "embedded": "{\"low\": 1,\n \"high\": 2}",
    "address": "127.0.0.1",
    "lenient": "5", "lenients": [5, "6"], "lower": "abc",
    "any": {"a": [1, {}, null]},
    "raw": [{"a": "\\"}],
    "content": [{"type": "text", "text": "a"}, {"text": "b", "type": "text"}]
}"#;

/// What is mostly not fine in there.
pub(super) const OTHERS: &[&str] = &[
    "null",
    "true",
    "3",
    "-1",
    "300",
    "1.5",
    "1e999",
    "\"\"",
    "\"One\"",
    "\"300\"",
    "\"Newtype\"",
    "\"Fields\"",
    "\"Many\"",
    "\"\\ud83d\\ude00\\\"\"",
    "\"{\\\"low\\\": 1}\"",
    "\"{\\n\\n\\\"low\\\": 1, \\\"high\\\": -1}\"",
    "[]",
    "[3]",
    "[[3], 5]",
    "[1, \"a\", \"One\", 4]",
    "{}",
    "{\"a\": 1}",
    "{\"low\": 5, \"high\": 1}",
    "{\"Newtype\": 3}",
    "{\"Newtype\": 2, \"Unit\": null}",
    "{\"Inner\": \"Newtype\"}",
    "{\"Inner\": {\"Newtype\": 3}}",
    "{\"Held\": {\"name\": 1}}",
    "{\"Wrong\": 1}",
    "{\"c\": 300, \"t\": \"One\"}",
    "{\"c\": {}, \"t\": \"Many\"}",
    "{\"kind\": \"Circle\"}",
    "{\"text\": 5, \"type\": \"text\"}",
    "{\"type\": \"text\", \"text\": 5}",
];
