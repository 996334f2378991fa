//! Owns that texts are checked as what they are read as. Does not own reading them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::server::{
    schema::{input_schema_of, output_schema_of},
    uri::TextValue,
};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only their schema counts")]
struct Everything {
    #[schemars(range(min = 1, max = 9))]
    count: Option<u32>,
    #[schemars(range(max = 0.5))]
    share: Option<f64>,
    /// A number to look at, and yet a text.
    #[schemars(length(max = 3), regex(pattern = "^[0-9]+$"))]
    code: Option<String>,
    #[schemars(length(max = 2), inner(range(min = 10)))]
    sizes: Option<Vec<u8>>,
    #[schemars(inner(length(max = 2)))]
    names: Option<Vec<String>>,
    #[schemars(extend("enum" = [1, 2]))]
    one_or_two: Option<u8>,
    huge: Option<Huge>,
    #[serde(flatten)]
    rest: BTreeMap<String, String>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema counts")]
struct Huge(#[schemars(range(min = 9_223_372_036_854_775_808u64))] u64);

#[track_caller]
fn said(name: &str, value: impl Into<TextValue>) -> String {
    let checks = input_schema_of::<Everything>().unwrap().checks.of_texts();
    let outcome = checks.run_on_texts(&[(name.to_owned(), value.into())]);
    outcome.map_or_else(|error| error.to_string(), |()| String::new())
}

#[test]
fn a_text_is_checked_as_what_it_is_read_as() {
    for (name, value, expected) in [
        ("count", "9", ""),
        ("count", "+007", ""),
        ("count", "10", "`count` must be at most 9, is 10"),
        ("share", "5e-1", ""),
        ("share", "0.51", "`share` must be at most 0.5, is 0.51"),
        ("code", "123", ""),
        ("code", "1234", "`code` must have at most 3 characters, has 4"),
        ("code", "a", "`code` must match the pattern `^[0-9]+$`"),
        ("one_or_two", "2", ""),
        ("one_or_two", "3", "`one_or_two` must be one of 1, 2, is 3"),
        ("huge", "9223372036854775808", ""),
        ("huge", "1", "`huge` must be at least 9223372036854775808, is 1"),
        ("unheard_of", "1234", ""),
    ] {
        assert_eq!(said(name, value), expected, "{name} {value}");
    }
}

#[test]
fn one_text_may_be_a_list_as_well() {
    assert_eq!(said("sizes", "10"), "");
    assert_eq!(said("sizes", "9"), "`sizes[0]` must be at least 10, is 9");
    assert_eq!(said("sizes", ["10", "9"]), "`sizes[1]` must be at least 10, is 9");
    assert_eq!(said("sizes", ["10", "11", "12"]), "`sizes` must have at most 2 items, has 3");
    assert_eq!(said("names", ["12", "123"]), "`names[1]` must have at most 2 characters, has 3");
}

#[test]
fn output_is_checked_for_what_its_type_does_not_keep() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    struct Plain {
        count: u8,
        text: Option<String>,
        kind: Kind,
        pair: (u8, String),
        set: std::collections::HashSet<u32>,
    }
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    enum Kind {
        One,
        Two,
    }
    assert!(output_schema_of::<Plain>().unwrap().checks.is_none(), "serialising keeps all of it");
    let checks = output_schema_of::<Vec<Everything>>().unwrap().checks.unwrap();
    assert!(checks.problems(r#"[{"count": 9}, {"count": null}]"#).is_empty());
    let problems = checks.problems(r#"[{"count": 9}, {"count": 10, "code": "x"}]"#);
    let paths: Vec<&str> = problems.iter().map(|problem| &*problem.path).collect();
    assert_eq!(paths, ["[1].count", "[1].code"]);
}
