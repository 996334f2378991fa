//! The sentences on arguments that cannot be decoded.

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

use super::zoo::*;
use crate::server::schema::{ArgumentError, Problem, decode_arguments, input_schema_of};

fn decode<T: DeserializeOwned + JsonSchema>(text: &str) -> Result<T, ArgumentError> {
    decode_arguments(text, Some(&input_schema_of::<T>().unwrap().checks))
}

fn refused<T: DeserializeOwned + JsonSchema>(text: &str) -> ArgumentError {
    decode::<T>(text).err().unwrap()
}

/// Compares the first problem.
macro_rules! assert_says {
    ($type:ty, $text:expr, $sentence:expr) => {{
        let error = refused::<$type>($text);
        assert_eq!(error.problems[0].to_string(), $sentence, "for {}", $text);
    }};
}

#[test]
fn a_wrong_kind_of_value_is_named_with_its_path() {
    assert_says!(Point, r#"{"x":"1","y":1}"#, "`x`: expected a number, got a string");
    assert_says!(
        Strict,
        r#"{"query":"a","limit":true}"#,
        "`limit`: expected an integer, got a boolean"
    );
    assert_says!(Strict, r#"{"query":null}"#, "`query`: expected a string, got null");
    assert_says!(Primitives, r#"{"flag":"yes"}"#, "`flag`: expected a boolean, got a string");
    assert_says!(Primitives, r#"{"nothing":1}"#, "`nothing`: expected null, got an integer");
    assert_says!(
        Nested,
        r#"{"startingPoint":5}"#,
        "`startingPoint`: expected an object, got an integer"
    );
    assert_says!(
        Nested,
        r#"{"startingPoint":[1]}"#,
        "`startingPoint`: expected an object, got an array"
    );
    assert_says!(
        Nested,
        r#"{"wayPoints":[{"x":1,"y":2},{"x":[],"y":1}]}"#,
        "`wayPoints[1].x`: expected a number, got an array"
    );
    assert_says!(Sequences, r#"{"set":{}}"#, "`set`: expected an array, got an object");
    assert_says!(Maps, r#"{"free":[]}"#, "`free`: expected an object, got an array");
}

#[test]
fn the_whole_must_be_an_object() {
    assert_says!(Point, "[1,2]", "expected an object, got an array");
    assert_says!(Point, " [1,2]", "expected an object, got an array");
    assert_says!(Point, "[1.0,2]", "expected an object, got an array");
    assert_says!(Point, "null", "expected an object, got null");
    assert_says!(Point, "7", "expected an object, got a number");
    assert_says!(serde_json::Value, "[]", "expected an object, got an array");
    assert_says!(Empty, "[]", "expected an object, got an array");
}

#[test]
fn a_missing_an_unknown_and_a_repeated_field_are_named() {
    assert_says!(Point, r#"{"y":1}"#, "`x` is missing");
    assert_says!(Nested, r#"{"wayPoints":[{"x":1,"y":2},{"x":1}]}"#, "`wayPoints[1].y` is missing");
    assert_says!(Maps, r#"{"points":{"p q":{}}}"#, "`points[\"p q\"].y` is missing");
    assert_says!(
        Strict,
        r#"{"query":"a","colour":1}"#,
        "unknown field `colour`, expected one of `limit`, `query`, `verbose`"
    );
    assert_says!(
        Strict,
        r#"{"a`, expected `b":1}"#,
        "unknown field `a`, expected `b`, expected one of `limit`, `query`, `verbose`"
    );
    assert_says!(Point, r#"{"x":1,"y":1,"x":2}"#, "`x` is given twice");
    let rest = r#""points":{},"by_number":{}"#;
    let counts = format!(r#"{{{rest},"counts":{{"a":1,"a":2}},"free":{{}}}}"#);
    assert_says!(Maps, &counts, "`a` is given twice");
    let free = format!(r#"{{{rest},"counts":{{}},"free":{{"a":[{{"b":1,"b":2}}]}}}}"#);
    assert_says!(Maps, &free, "`b` is given twice");
    assert_says!(serde_json::Value, r#"{"x":1,"x":2}"#, "`x` is given twice");

    #[derive(Debug, Deserialize, JsonSchema)]
    struct WithRest {
        #[expect(dead_code, reason = "only its decoding matters")]
        #[serde(flatten)]
        rest: serde_json::Map<String, serde_json::Value>,
    }
    assert_says!(WithRest, r#"{"x":1,"x":2}"#, "`x` is given twice");

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Outer {
        #[expect(dead_code, reason = "only its decoding matters")]
        inner: Vec<Closed>,
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Closed {}
    assert_says!(
        Outer,
        r#"{"inner":[{},{"a":1}]}"#,
        "`inner[1]`: unknown field `a`, none is expected"
    );
}

#[test]
fn an_integer_that_does_not_fit_is_told_the_range() {
    assert_says!(Integers, r#"{"z":200}"#, "`z`: expected an integer from -128 to 127, got 200");
    assert_says!(
        Strict,
        r#"{"limit":-1}"#,
        "`limit`: expected an integer from 0 to 4294967295, got -1"
    );
    assert_says!(Integers, r#"{"n":0}"#, "`n` must be at least 1, is 0");
    assert_says!(Strict, r#"{"limit":1.5}"#, "`limit`: expected an integer, got 1.5");
    assert_says!(Integers, r#"{"s":1e30}"#, "`s`: expected an integer, got 1e30");
    assert_says!(
        Strict,
        r#"{"query":"\ud800"}"#,
        "`query` is not JSON that can be read: unexpected end of hex escape"
    );
    assert_says!(Point, r#"{"x":1e999}"#, "`x` is not JSON that can be read: number out of range");
}

#[test]
fn sizes_of_tuples_and_arrays_are_told() {
    assert_says!(Sequences, r#"{"pair":[1]}"#, "`pair` must have at least 2 items, has 1");
    assert_says!(Sequences, r#"{"pair":[1,"a","b"]}"#, "`pair` must have at most 2 items, has 3");
    assert_says!(Sequences, r#"{"triple":[1,2]}"#, "`triple` must have at least 3 items, has 2");
    assert_says!(Primitives, r#"{"letter":"ab"}"#, "`letter` must have at most 1 character, has 2");
}

#[test]
fn choices_are_listed() {
    assert_says!(
        Enums,
        r#"{"plain":"dog"}"#,
        "`plain` must be one of \"zebra\", \"ant\", is \"dog\""
    );
    assert_says!(
        Enums,
        "{\"many\":[\"celsius\",\n  7]}",
        "`many[1]` must be one of \"fahrenheit\", \"celsius\", \"kelvin\", is 7"
    );
    assert_says!(
        Tagged,
        r#"{"internal":{"kind":"oval"}}"#,
        "`internal.kind` must be one of \"circle\", \"rectangle\", \"nothing\", is \"oval\""
    );
    assert_says!(Tagged, r#"{"internal":{"kind":"circle"}}"#, "`internal.radius` is missing");
    assert_says!(Tagged, r#"{"internal":{}}"#, "`internal.kind` is missing");
    assert_says!(Tagged, r#"{"internal":5}"#, "`internal`: expected an object, got an integer");
    assert_says!(
        Tagged,
        r#"{"adjacent":[{"t":"One","c":300}]}"#,
        "`adjacent[0].c`: expected an integer from 0 to 255, got 300"
    );
    assert_says!(Tagged, r#"{"external":{"Fields":{}}}"#, "`external.Fields.b` is missing");
    assert_says!(
        Tagged,
        r#"{"external":"Newtype"}"#,
        "`external`: expected an object {\"Newtype\": …}, got a string"
    );
    assert_says!(
        Tagged,
        r#"{"external":{"Unit":1}}"#,
        "`external` must be one of \"Unit\", {\"Newtype\": …}, {\"Pair\": …}, {\"Fields\": …}, is an object"
    );
    assert_says!(
        Maps,
        r#"{"by_number":{"x":"a"}}"#,
        "`by_number`: unknown field `x`, expected names that match `^\\d+$`"
    );
    assert_says!(
        Maps,
        r#"{"by_number":{"1x":"a"}}"#,
        "`by_number`: unknown field `1x`, expected names that match `^\\d+$`"
    );
    assert_says!(
        Maps,
        r#"{"counts":{},"points":{},"free":{},"by_number":{"1":"a","70000":"b"}}"#,
        "`by_number`: invalid value: integer `70000`, expected u16"
    );
    assert_says!(
        Tagged,
        r#"{"external":{"Newtype":"a","Unit":null}}"#,
        "`external`: unknown field `Unit`, expected `Newtype`"
    );
    assert_says!(
        Tagged,
        r#"{"external":{}}"#,
        "`external` must be one of \"Unit\", {\"Newtype\": …}, {\"Pair\": …}, {\"Fields\": …}, is an object"
    );
}

#[test]
fn what_is_not_json_is_said_to_be_so() {
    assert_says!(
        Point,
        r#"{"x":1,"#,
        "the arguments object is not JSON that can be read: EOF while parsing a value"
    );
    assert_says!(
        Point,
        r#"{"x":1,"y":1}}"#,
        "the arguments object is not JSON that can be read: trailing characters"
    );
    let deep =
        format!(r#"{{"name":"","children":{}1{}"#, "[{\"children\":".repeat(90), "}]".repeat(90));
    let error = refused::<Tree>(&format!("{deep}}}"));
    assert_eq!(error.problems[0].message, "is not JSON that can be read: recursion limit exceeded");
}

#[test]
fn long_input_is_not_repeated_in_full() {
    let long = "long".repeat(50);
    let texts = [
        format!(r#"{{"{long}":1}}"#),
        format!(r#"{{"query":"a","limit":"{long}"}}"#),
        format!(r#"{{"query":["{long}"]}}"#),
    ];
    for text in &texts {
        let error = refused::<Strict>(text);
        assert!(!error.to_string().contains(&"long".repeat(11)), "{error}");
    }
    let choice = format!(r#"{{"plain":"{long}"}}"#);
    assert_says!(
        Enums,
        &choice,
        format!("`plain` must be one of \"zebra\", \"ant\", is \"{}lon…", "long".repeat(9))
    );
    let letter = format!(r#"{{"letter":"{long}"}}"#);
    assert_says!(Primitives, &letter, "`letter` must have at most 1 character, has 200");
    let key = format!(r#"{{"counts":{{"{long}":"x"}}}}"#);
    let error = refused::<Maps>(&key);
    assert_eq!(error.problems[0].path, format!("counts.{}…", "long".repeat(10)));
}

#[test]
fn names_of_rust_types_do_not_leak() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct SecretOuter {
        #[expect(dead_code, reason = "only its decoding matters")]
        field: SecretChoice,
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    enum SecretChoice {
        Tuple(
            #[expect(dead_code, reason = "as above")] u8,
            #[expect(dead_code, reason = "as above")] u8,
        ),
        Fields {
            #[expect(dead_code, reason = "as above")]
            a: SecretUnit,
        },
        Newtype(#[expect(dead_code, reason = "as above")] Box<SecretOuter>),
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    struct SecretUnit;

    let values = [
        "1",
        "null",
        "\"x\"",
        "\"Tuple\"",
        "\"Fields\"",
        "[]",
        "{}",
        r#"{"Tuple":1}"#,
        r#"{"Tuple":[]}"#,
        r#"{"Tuple":{}}"#,
        r#"{"Fields":1}"#,
        r#"{"Fields":[]}"#,
        r#"{"Fields":{"a":1}}"#,
        r#"{"Fields":{"a":[]}}"#,
        r#"{"Newtype":1}"#,
        r#"{"Newtype":[]}"#,
    ];
    for value in values {
        let text = format!(r#"{{"field":{value}}}"#);
        let said = refused::<SecretOuter>(&text).to_string();
        assert!(!said.contains("Secret") && !said.contains("struct"), "{text}: {said}");
        assert!(!said.contains("enum") && !said.contains("variant"), "{text}: {said}");
    }
}

#[test]
fn the_words_of_a_type_of_ones_own_are_kept() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(try_from = "u8")]
    #[schemars(with = "u8")]
    struct Even;
    impl TryFrom<u8> for Even {
        type Error = String;
        fn try_from(number: u8) -> Result<Even, String> {
            if number.is_multiple_of(2) { Ok(Even) } else { Err(format!("{number} is not even")) }
        }
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Pair {
        #[expect(dead_code, reason = "only its decoding matters")]
        even: Even,
        #[expect(dead_code, reason = "as above")]
        evens: Vec<Even>,
    }
    assert_says!(Pair, r#"{"evens":[],"even":3}"#, "`even`: 3 is not even");
    assert_says!(Pair, r#"{"even":3,"evens":[]}"#, "`even`: 3 is not even");
    assert_says!(Pair, r#"{"even":2,"evens":[4,5,6]}"#, "`evens[1]`: 5 is not even");
    assert_says!(Pair, "{\"even\":2, \"evens\":[4 ,\n5 ] }", "`evens[1]`: 5 is not even");
    assert_says!(
        Addresses,
        r#"{"gateway":"127.0.0.1","address":"x"}"#,
        "`address`: invalid IP address syntax"
    );
}

#[test]
fn whole_numbers_may_be_written_with_a_fraction_or_an_exponent() {
    for number in ["7", "7.0", "0.7e1", "70e-1", "7.000E0"] {
        let text = format!(r#"{{"query":"1.0 \" 2.0","limit":{number}}}"#);
        let strict: Strict = decode(&text).unwrap();
        assert_eq!(strict.limit, 7, "{number}");
        assert_eq!(strict.query, "1.0 \" 2.0", "strings stay as they are");
    }
    let zero: Strict = decode(r#"{"query":"","limit":-0}"#).unwrap();
    assert_eq!(zero.limit, 0);
    // The second number is still wrong, and its path is still named.
    assert_says!(Integers, r#"{"z":1.0,"y":2.5}"#, "`y`: expected an integer, got 2.5");
    assert_says!(Integers, r#"{"z":1.0000000,"y":[]}"#, "`y`: expected an integer, got an array");
    assert_says!(Integers, r#"{"z":1.0000000,"y":1}"#, "`x` is missing");
    // The checks see such numbers too.
    let checks = input_schema_of::<Constrained>().unwrap().checks;
    let text = r#"{"count":1e3,"code":"ab","word":"a","tags":[],"steps":5.0}"#;
    let error = decode_arguments::<Constrained>(text, Some(&checks)).unwrap_err();
    assert_eq!(error.to_string(), "`count` must be at most 100, is 1000.0");
}

#[test]
fn several_problems_are_a_list() {
    let checks = input_schema_of::<Constrained>().unwrap().checks;
    let text = r#"{"count":0,"code":"a","word":"a","tags":[],"steps":5}"#;
    let error = decode_arguments::<Constrained>(text, Some(&checks)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there are 2 problems:\n\
         - `count` must be at least 1, is 0\n\
         - `code` must have at least 2 characters, has 1"
    );
    assert_eq!(error.problems[0], Problem::new("count", "must be at least 1, is 0"));
}

#[test]
fn null_stands_for_an_optional_field_that_is_absent() {
    let text = r#"{"second":null,"third":null,"unit":null,"point":null,"holes":[null,1]}"#;
    let optional: Optional = decode(text).unwrap();
    assert_eq!(optional.second, None);
    assert_eq!(optional.holes, [None, Some(1)]);
}
