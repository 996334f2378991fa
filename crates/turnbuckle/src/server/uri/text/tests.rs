use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::server::uri::{PathSegment, SafePath, UriTemplate};

fn values<const N: usize>(values: [(&str, TextValue); N]) -> Vec<(String, TextValue)> {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

#[derive(Debug, PartialEq, Deserialize)]
struct Number(i64);

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Everything {
    text: String,
    small: u8,
    number: Number,
    ratio: f64,
    single: f32,
    flag: bool,
    letter: char,
    colour: Colour,
    absent: Option<i64>,
    present: Option<i64>,
    #[serde(default)]
    size: usize,
    tags: Vec<u32>,
    one: Vec<Colour>,
    pair: (i32, String),
    path: SafePath,
    segment: PathSegment,
}

#[test]
fn every_kind_of_value() {
    let everything: Everything = from_text(&values([
        ("text", "12".into()),
        ("small", "255".into()),
        ("number", "-7".into()),
        ("ratio", "1e3".into()),
        ("single", "0.5".into()),
        ("flag", "true".into()),
        ("letter", "é".into()),
        ("colour", "green".into()),
        ("present", "5".into()),
        ("tags", ["1", "2"].into()),
        ("one", "red".into()),
        ("pair", ["1", "x"].into()),
        ("path", "a/b.md".into()),
        ("segment", "c".into()),
        ("unknown", "is ignored".into()),
    ]))
    .unwrap();
    let expected = Everything {
        text: "12".into(),
        small: 255,
        number: Number(-7),
        ratio: 1000.0,
        single: 0.5,
        flag: true,
        letter: 'é',
        colour: Colour::Green,
        absent: None,
        present: Some(5),
        size: 0,
        tags: vec![1, 2],
        one: vec![Colour::Red],
        pair: (1, "x".into()),
        path: SafePath::new("a/b.md").unwrap(),
        segment: PathSegment::new("c").unwrap(),
    };
    assert_eq!(everything, expected);
}

#[test]
fn maps_units_and_wrappers() {
    let given = values([("a", "1".into()), ("b", "2".into())]);
    let map: BTreeMap<String, u8> = from_text(&given).unwrap();
    assert_eq!(map, BTreeMap::from([("a".into(), 1), ("b".into(), 2)]));
    from_text::<()>(&given).unwrap();
    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(BTreeMap<String, String>);
    assert_eq!(from_text::<Wrapped>(&given).unwrap().0["b"], "2");
    assert!(from_text::<Option<BTreeMap<String, u8>>>(&given).unwrap().is_some());
}

#[test]
fn what_is_wrong_is_said_with_the_name() {
    fn wrong<T: DeserializeOwned + fmt::Debug>(value: impl Into<TextValue>) -> String {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct One<T> {
            #[expect(dead_code, reason = "only errors are looked at")]
            id: T,
        }
        from_text::<One<T>>(&values([("id", value.into())])).unwrap_err().to_string()
    }
    assert_eq!(wrong::<i64>("abc"), "`id`: `abc` is not a whole number");
    assert_eq!(wrong::<i64>(""), "`id`: `` is not a whole number");
    assert_eq!(wrong::<i64>("1.5"), "`id`: `1.5` is not a whole number");
    assert_eq!(wrong::<u8>("256"), "`id`: `256` is not a whole number from 0 to 255");
    assert_eq!(wrong::<u8>("-1"), "`id`: `-1` is not a whole number from 0 to 255");
    assert_eq!(wrong::<f64>("x"), "`id`: `x` is not a number");
    assert_eq!(wrong::<f64>("inf"), "`id`: `inf` is not a number");
    assert_eq!(wrong::<f64>("1e999"), "`id`: `1e999` is not a number");
    assert_eq!(wrong::<bool>("yes"), "`id`: `yes` is not `true` or `false`");
    assert_eq!(wrong::<char>("ab"), "`id`: `ab` is not a single character");
    assert_eq!(
        wrong::<Colour>("blue"),
        "`id`: unknown choice `blue`, expected one of `red`, `green`"
    );
    assert_eq!(wrong::<String>(["a", "b"]), "`id`: expected one value, got several");
    assert_eq!(wrong::<Vec<i32>>(["1", "b"]), "`id[1]`: `b` is not a whole number");
    assert_eq!(wrong::<(i32, i32)>(["1", "2", "3"]), "`id`: expected 2 values, got 3");
    assert_eq!(wrong::<SafePath>("../x"), "`id` must not have `.` or `..` in it");
    assert_eq!(wrong::<Option<Number>>("x"), "`id`: `x` is not a whole number");
    assert_eq!(
        wrong::<std::net::IpAddr>("x"),
        "`id`: invalid IP address syntax",
        "a type's own words"
    );
    let long = wrong::<i64>("9".repeat(1000) + "x");
    assert!(long.len() < 120 && long.contains('…'), "{long}");

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Two {
        a: i32,
        b: i32,
    }
    let error = from_text::<Two>(&values([("a", "1".into())])).unwrap_err();
    assert_eq!(error.to_string(), "`b` is missing");
    assert_eq!(error.problems[0].path, "b");
    let error = from_text::<Two>(&values([("c", "1".into())])).unwrap_err();
    assert_eq!(error.to_string(), "unknown field `c`, expected one of `a`, `b`");
    let error = from_text::<i32>(&values([("a", "1".into())])).unwrap_err();
    assert_eq!(error.to_string(), "the arguments have names, and none is expected");
}

#[test]
fn from_an_address_to_a_type() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Item {
        id: u32,
        tag: Vec<String>,
        page: Option<u8>,
    }
    let template = UriTemplate::parse("demo://items/{id}{?tag*,page}").unwrap();
    let variables = template.matches("demo://items/7?tag=a&tag=b%20c").unwrap();
    let item: Item = from_text(&variables.into_texts()).unwrap();
    assert_eq!(item, Item { id: 7, tag: vec!["a".into(), "b c".into()], page: None });
}
