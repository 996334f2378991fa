//! Owns what the compiled checks find in arguments. Does not own decoding.

use serde_json::{Value, json};

use super::zoo::*;
use crate::server::schema::{Checks, input_schema_of};

fn checks(schema: &Value) -> Checks {
    let checks = Checks::compile(schema).unwrap();
    assert!(!checks.is_empty(), "there is something to check");
    checks
}

/// What is said of this value of the property `v`.
fn said(schema: &Value, value: &str) -> Vec<String> {
    let checks = checks(&json!({"properties": {"v": schema}}));
    match checks.run(&format!(r#"{{"other": [1, {{}}], "v": {value}}}"#)) {
        Ok(()) => Vec::new(),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

macro_rules! assert_said {
    ($schema:tt, $($value:literal => [$($sentence:literal),*]),+ $(,)?) => {{
        let schema = json!($schema);
        $(
            let expected: &[&str] = &[$($sentence),*];
            assert_eq!(said(&schema, $value), expected, "{} under {schema}", $value);
        )+
    }};
}

#[test]
fn numbers() {
    assert_said!({"minimum": 1},
        "1" => [], "1.0" => [], "\"0\"" => [], "null" => [], "[0]" => [],
        "0" => ["`v` must be at least 1, is 0"],
        "-3" => ["`v` must be at least 1, is -3"],
        "0.5" => ["`v` must be at least 1, is 0.5"]);
    assert_said!({"maximum": 2.5},
        "2.5" => [], "3" => ["`v` must be at most 2.5, is 3"],
        "1e300" => ["`v` must be at most 2.5, is 1e300"]);
    assert_said!({"exclusiveMinimum": 0, "exclusiveMaximum": 2},
        "1" => [], "0" => ["`v` must be more than 0, is 0"], "2" => ["`v` must be less than 2, is 2"]);
    assert_said!({"multipleOf": 5}, "-10" => [], "0" => [], "7" => ["`v` must be a multiple of 5, is 7"]);
    assert_said!({"multipleOf": 0.1}, "0.3" => [], "1" => [], "0.35" => ["`v` must be a multiple of 0.1, is 0.35"]);
    // Exact where doubles are not.
    assert_said!({"maximum": 9007199254740992_u64},
        "9007199254740992" => [],
        "9007199254740993" => ["`v` must be at most 9007199254740992, is 9007199254740993"]);
}

#[test]
fn texts() {
    assert_said!({"minLength": 2, "maxLength": 3},
        "\"ab\"" => [], "\"äöü\"" => [], "\"\\u00e4b\"" => [], "5" => [],
        "\"a\"" => ["`v` must have at least 2 characters, has 1"],
        "\"abcd\"" => ["`v` must have at most 3 characters, has 4"]);
    assert_said!({"minLength": 1}, "\"\"" => ["`v` must have at least 1 character, has 0"]);
    assert_said!({"pattern": "b+"},
        "\"abc\"" => [], "\"ac\"" => ["`v` must match the pattern `b+`"]);
}

#[test]
fn choices() {
    assert_said!({"enum": ["a", 1, true, null]},
        "\"a\"" => [], "1" => [], "1.0" => [], "true" => [], "null" => [],
        "\"b\"" => ["`v` must be one of \"a\", 1, true, null, is \"b\""],
        "false" => ["`v` must be one of \"a\", 1, true, null, is false"],
        "2" => ["`v` must be one of \"a\", 1, true, null, is 2"],
        "[]" => ["`v` must be one of \"a\", 1, true, null, is an array"],
        "{}" => ["`v` must be one of \"a\", 1, true, null, is an object"]);
    assert_said!({"const": "a"}, "\"a\"" => [], "null" => ["`v` must be \"a\", is null"]);
}

#[test]
fn arrays() {
    assert_said!({"minItems": 1, "maxItems": 2, "items": {"minimum": 0}},
        "[1]" => [], "{}" => [],
        "[]" => ["`v` must have at least 1 item, has 0"],
        "[1, -1, 2]" => ["`v[1]` must be at least 0, is -1", "`v` must have at most 2 items, has 3"]);
    assert_said!({"prefixItems": [{"minimum": 0}, {}], "items": {"maximum": 9}, "minItems": 2},
        "[0, -5, 9]" => [],
        "[-1, 10, 10]" => ["`v[0]` must be at least 0, is -1", "`v[2]` must be at most 9, is 10"]);
    assert_said!({"uniqueItems": true, "items": {"maxLength": 2}},
        "[\"a\", \"b\", 1, [1], {}]" => [],
        "[\"a\", \"abc\", \"\\u0061\"]" => ["`v[1]` must have at most 2 characters, has 3",
            "`v[2]` must not be there twice: all items must differ"],
        "[1, 1.0]" => ["`v[1]` must not be there twice: all items must differ"],
        "[{\"a\":1,\"b\":[2]}, {\"b\": [2.0], \"a\": 1}]" =>
            ["`v[1]` must not be there twice: all items must differ"]);
}

#[test]
fn objects() {
    assert_said!({"minProperties": 1, "maxProperties": 1},
        "{\"a\":1}" => [], "[]" => [],
        "{}" => ["`v` must have at least 1 member, has 0"],
        "{\"a\":1,\"b\":2}" => ["`v` must have at most 1 member, has 2"]);
    assert_said!({"properties": {"a": {}, "b c": {"minimum": 0}}, "additionalProperties": {"maximum": 0}},
        "{\"a\":5,\"b c\":5,\"d\":0}" => [],
        "{\"b\\u0020c\":-1,\"d\":1}" =>
            ["`v[\"b c\"]` must be at least 0, is -1", "`v.d` must be at most 0, is 1"]);
    assert_said!({"patternProperties": {"^a": {"minimum": 1}, "z$": {"minimum": 2}}, "propertyNames": {"maxLength": 2},
                  "properties": {"az": {"maximum": 3}}, "additionalProperties": {"maximum": 0}},
        "{\"a\":1,\"z\":2,\"az\":3,\"b\":0}" => [],
        "{\"az\":0}" => ["`v.az` must be at least 1, is 0", "`v.az` must be at least 2, is 0"],
        "{\"az\":4,\"b\":1}" => ["`v.az` must be at most 3, is 4", "`v.b` must be at most 0, is 1"],
        "{\"abc\":1}" => ["`v.abc` must have at most 2 characters, has 3"]);
}

#[test]
fn what_stands_in_all_of_and_behind_references_is_checked() {
    assert_said!({"minimum": 0, "allOf": [{"maximum": 9}, {"multipleOf": 2}]},
        "8" => [],
        "-1" => ["`v` must be at least 0, is -1", "`v` must be a multiple of 2, is -1"],
        "10" => ["`v` must be at most 9, is 10"]);
    let checks = checks(&json!({
        "properties": {
            "tree": {"$ref": "#/$defs/a%7E0b~1c", "description": "a reference"},
            "top": {"$ref": "#/$defs/a%7E0b~1c", "maxProperties": 1},
        },
        "$defs": {"a~0b/c": {}, "a~b/c": {
            "properties": {"name": {"minLength": 1}, "in": {"items": {"$ref": "#/$defs/a%7E0b~1c"}}}
        }},
    }));
    let said = |text: &str| checks.run(text).unwrap_err().to_string();
    assert!(checks.run(r#"{"tree": {"name": "a", "in": [{"name": "b"}]}, "top": {}}"#).is_ok());
    assert_eq!(
        said(r#"{"tree": {"in": [{}, {"in": [{"name": ""}]}]}}"#),
        "`tree.in[1].in[0].name` must have at least 1 character, has 0"
    );
    assert_eq!(
        said(r#"{"top": {"name": "", "in": []}}"#),
        "there are 2 problems:\n\
         - `top` must have at most 1 member, has 2\n\
         - `top.name` must have at least 1 character, has 0"
    );
}

#[test]
fn a_nullable_value_is_checked_unless_it_is_null() {
    assert_said!({"anyOf": [{"minimum": 1, "enum": [0, 1]}, {"type": "null"}]},
        "null" => [], "1" => [], "0" => ["`v` must be at least 1, is 0"]);
}

#[test]
fn unions_are_left_to_decoding() {
    for keyword in ["oneOf", "anyOf"] {
        let schema = json!({"properties": {"v": {keyword: [{"minimum": 1}, {"maximum": 0}]}}});
        assert!(Checks::compile(&schema).unwrap().is_empty(), "{keyword}");
    }
}

#[test]
fn the_root_is_checked_too_and_reports_are_bounded() {
    let checks = checks(&json!({"minProperties": 1, "additionalProperties": {"minimum": 0}}));
    assert_eq!(
        checks.run("{}").unwrap_err().to_string(),
        "the arguments object must have at least 1 member, has 0"
    );
    let many: Vec<String> = (0..100).map(|number| format!("\"k{number}\": -1")).collect();
    let error = checks.run(&format!("{{{}}}", many.join(","))).unwrap_err();
    assert_eq!(error.problems.len(), 8);
    assert_eq!(
        checks.run("{").unwrap_err().to_string(),
        "the arguments object is not JSON that can be read: EOF while parsing an object"
    );
}

#[test]
fn only_what_decoding_does_not_enforce_is_compiled() {
    macro_rules! assert_nothing_to_check {
        ($($type:ty),*) => { $(
            assert!(input_schema_of::<$type>().unwrap().checks.is_empty(), stringify!($type));
        )* };
    }
    assert_nothing_to_check!(
        Empty, Optional, Point, Nested, Twice, Enums, Tagged, Maps, Strict, Flat
    );
    macro_rules! assert_something_to_check {
        ($($type:ty),*) => { $(
            assert!(!input_schema_of::<$type>().unwrap().checks.is_empty(), stringify!($type));
        )* };
    }
    assert_something_to_check!(Constrained, Tree, Forest, Sapling, Sequences, Extended);
}

#[test]
fn an_enum_that_no_type_decodes_is_checked() {
    let checks = input_schema_of::<Extended>().unwrap().checks;
    assert!(checks.run(r#"{"region": "eu"}"#).is_ok());
    let error = checks.run(r#"{"region": "asia"}"#).unwrap_err();
    assert_eq!(error.to_string(), "`region` must be one of \"eu\", \"us\", is \"asia\"");
}

#[test]
fn a_schema_that_cannot_be_checked_is_refused() {
    let refused = |schema: Value| Checks::compile(&schema).unwrap_err().to_string();
    let look_ahead = json!({"properties": {"a": {"items": {"pattern": "(?=x)"}}}});
    let said = refused(look_ahead);
    assert!(said.starts_with("the pattern `(?=x)` of `/a[]` cannot be checked ("), "{said}");
    assert!(said.ends_with("or check it in the handler"), "{said}");
    assert_eq!(
        refused(json!({"properties": {"a": {"$ref": "#/$defs/none"}}})),
        "the reference `#/$defs/none` leads nowhere: define it in `$defs` of the same schema"
    );
    let mut deep = json!({"minimum": 1});
    for _ in 0..70 {
        deep = json!({"items": deep});
    }
    let said = refused(deep);
    assert!(said.starts_with("the schema nests more than 64 levels deep at `[][]["), "{said}");
    // References that never arrive anywhere end nevertheless.
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    assert!(Checks::compile(&circle).unwrap().is_empty());
}

#[test]
fn the_range_of_an_integer_type_is_not_checked_but_any_tighter_one_is() {
    let ranges = [
        ("int8", i128::from(i8::MIN), i128::from(i8::MAX)),
        ("int16", i16::MIN.into(), i16::MAX.into()),
        ("int32", i32::MIN.into(), i32::MAX.into()),
        ("int64", i64::MIN.into(), i64::MAX.into()),
        ("uint8", 0, u8::MAX.into()),
        ("uint16", 0, u16::MAX.into()),
        ("uint32", 0, u32::MAX.into()),
        ("uint64", 0, u64::MAX.into()),
    ];
    for (format, least, most) in ranges {
        let schema = |minimum: i128, maximum: i128| {
            let text = format!(
                r#"{{"items": {{"format": "{format}", "minimum": {minimum}, "maximum": {maximum}}}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        assert!(Checks::compile(&schema(least, most)).unwrap().is_empty(), "{format}");
        let tighter = checks(&schema(least + 1, most - 1));
        assert!(tighter.run(&format!("[{}, {}]", least + 1, most - 1)).is_ok(), "{format}");
        let error = tighter.run(&format!("[{least}, {most}]")).unwrap_err();
        assert_eq!(error.problems.len(), 2, "{format}");
    }
}
