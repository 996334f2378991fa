//! Owns what hand-written schemas may be, and what is said about arguments under them.
//! Does not own derived schemas.

use serde_json::{Value, json};
use turnbuckle_types::Raw;

use crate::server::schema::HandWritten;

fn compile(schema: Value) -> HandWritten {
    HandWritten::compile(&Raw::from(schema)).unwrap()
}

fn refused(schema: Value) -> String {
    HandWritten::compile(&Raw::from(schema)).unwrap_err().to_string()
}

#[track_caller]
fn assert_says(schema: Value, arguments: &str, sentence: &str) {
    let error = compile(schema).validate(arguments).unwrap_err();
    assert_eq!(error.to_string(), sentence, "for {arguments}");
}

/// The sentence about the property `v` under this schema.
#[track_caller]
fn assert_says_of_v(schema: Value, value: &str, sentence: &str) {
    let root = json!({"type": "object", "properties": {"v": schema}});
    assert_says(root, &format!("{{\"v\":{value}}}"), &format!("`v`{sentence}"));
}

#[test]
fn a_schema_with_a_member_twice_is_refused() {
    let schema = r#"{"$schema":"https://example.com/","type":"a","type":"object"}"#;
    let error = HandWritten::compile(&Raw::from_json(schema).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "in the schema `type` is given twice: remove one of the two");
}

#[test]
fn a_member_that_is_given_twice_is_refused() {
    let schema = json!({"type": "object", "properties": {"v": {"minimum": 1}}});
    assert_says(schema.clone(), r#"{"v":0,"v":2}"#, "`v` is given twice");
    assert_says(schema, r#"{"v":2,"w":[{"a":1,"a":1}]}"#, "`a` is given twice");
}

#[test]
fn every_violation_is_a_sentence_with_its_path() {
    assert_says_of_v(json!({"type": "string"}), "1", ": expected a string, got a number");
    assert_says_of_v(
        json!({"type": ["integer", "null"]}),
        "\"\"",
        ": expected null or an integer, got a string",
    );
    assert_says_of_v(json!({"minimum": 1}), "0", " must be at least 1, is 0");
    assert_says_of_v(json!({"maximum": 1}), "2.5", " must be at most 1, is 2.5");
    assert_says_of_v(json!({"exclusiveMinimum": 1}), "1", " must be more than 1, is 1");
    assert_says_of_v(json!({"exclusiveMaximum": 1}), "1", " must be less than 1, is 1");
    assert_says_of_v(json!({"multipleOf": 5}), "7", " must be a multiple of 5, is 7");
    assert_says_of_v(json!({"minLength": 2}), "\"ä\"", " must have at least 2 characters, has 1");
    assert_says_of_v(json!({"maxLength": 1}), "\"ab\"", " must have at most 1 character, has 2");
    assert_says_of_v(json!({"pattern": "^a|c$"}), "\"b\"", " must match the pattern `^a|c$`");
    assert_says_of_v(json!({"minItems": 1}), "[]", " must have at least 1 item, has 0");
    assert_says_of_v(json!({"maxItems": 1}), "[1,2]", " must have at most 1 item, has 2");
    assert_says_of_v(json!({"minProperties": 1}), "{}", " must have at least 1 member, has 0");
    assert_says_of_v(
        json!({"maxProperties": 0}),
        "{\"a\":1}",
        " must have at most 0 members, has 1",
    );
    assert_says_of_v(json!({"uniqueItems": true}), "[1,1]", " must not have the same item twice");
    assert_says_of_v(json!({"enum": ["a", 2]}), "3", " must be one of \"a\", 2, is 3");
    assert_says_of_v(json!({"const": "a"}), "3", " must be \"a\", is 3");
    assert_says_of_v(json!(false), "3", " must be left out");
    assert_says_of_v(json!({"not": {}}), "3", " must not match the form that its schema excludes");
    assert_says_of_v(
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        "3",
        " must match one of the forms that its schema lists",
    );
    assert_says_of_v(
        json!({"oneOf": [{}, {}]}),
        "3",
        " must match only one of the forms that its schema lists",
    );
}

#[test]
fn places_inside_are_named() {
    let schema = json!({
        "type": "object",
        "properties": {"items": {"items": {"$ref": "#/$defs/item"}}},
        "additionalProperties": false,
        "$defs": {"item": {"required": ["name"], "properties": {"name": {"type": "string"}}}},
    });
    assert_says(schema.clone(), r#"{"items":[{"name":""},{}]}"#, "`items[1].name` is missing");
    assert_says(
        schema.clone(),
        r#"{"items":[{"name":[]}]}"#,
        "`items[0].name`: expected a string, got an array",
    );
    assert_says(schema.clone(), r#"{"colour":1}"#, "unknown fields: leave out `colour`");
    assert_says(schema, "[]", "expected an object, got an array");
    let closed = json!({"type": "object", "additionalProperties": false});
    assert_says(closed, r#"{"a":1}"#, "unknown fields: none is expected");
    let named = json!({"type": "object", "propertyNames": {"maxLength": 1}});
    assert_says(named, r#"{"ab":1}"#, "`ab` is not a name that is allowed here");
}

#[test]
fn reports_are_bounded_and_long_values_cut() {
    let schema = compile(json!({"type": "object", "additionalProperties": {"const": "x"}}));
    let many: Vec<String> = (0..100).map(|number| format!("\"k{number}\":1")).collect();
    let error = schema.validate(&format!("{{{}}}", many.join(","))).unwrap_err();
    assert_eq!(error.problems.len(), 8);

    let schema = compile(json!({"type": "object", "properties": {"n": {"maximum": 1}}}));
    let error = schema.validate(&format!("{{\"n\":1{}}}", "0".repeat(200))).unwrap_err();
    assert!(error.to_string().starts_with("`n` must be at most 1, is 1"), "{error}");
    assert!(error.to_string().len() < 80, "{error}");
    let schema =
        compile(json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}));
    let error = schema.validate(&format!("{{\"{}\":1}}", "k".repeat(200))).unwrap_err();
    assert_eq!(error.to_string(), format!("unknown fields: leave out `{}…`", "k".repeat(40)));
}

#[test]
fn arguments_that_are_not_json_are_refused() {
    let schema = compile(json!({"type": "object"}));
    let said = schema.validate("{").unwrap_err().to_string();
    assert!(
        said.starts_with("the arguments object is not JSON that can be checked: EOF"),
        "{said}"
    );
    assert!(schema.validate("{}").is_ok());
}

#[test]
fn the_root_must_be_an_object() {
    let sentence =
        "the schema of a tool's arguments must have `\"type\": \"object\"` at its root: add it";
    assert_eq!(refused(json!({})), sentence);
    assert_eq!(refused(json!(true)), sentence);
    assert_eq!(refused(json!({"type": "array"})), sentence);
    assert_eq!(refused(json!({"type": ["object", "null"]})), sentence);
}

#[test]
fn the_declared_dialect_is_honoured() {
    let root = |dialect: Option<&str>| {
        let mut schema =
            json!({"type": "object", "properties": {"v": {"items": [{"type": "string"}]}}});
        if let Some(dialect) = dialect {
            schema["$schema"] = dialect.into();
        }
        schema
    };
    // An array in `items` was a tuple once; since 2020-12 it is an error.
    let old = compile(root(Some("http://json-schema.org/draft-07/schema#")));
    assert!(old.validate(r#"{"v":[1]}"#).is_err());
    for dialect in [None, Some("https://json-schema.org/draft/2020-12/schema")] {
        let said = refused(root(dialect));
        assert!(
            said.starts_with("the schema is not valid JSON Schema at `/properties/v/items` ("),
            "{said}"
        );
    }
    assert_eq!(
        refused(root(Some("https://example.com/dialect"))),
        "the dialect `https://example.com/dialect` in `$schema` is not supported: \
         use https://json-schema.org/draft/2020-12/schema, or leave `$schema` out"
    );
}

#[test]
fn nothing_is_fetched() {
    for reference in [
        "https://example.com/schema.json",
        "http://127.0.0.1:9/schema.json#/a",
        "file:///dev/null",
        "other.json",
        "#/$defs/none",
    ] {
        let said = refused(json!({"type": "object", "properties": {"v": {"$ref": reference}}}));
        assert!(said.starts_with("the schema refers to "), "{said}");
        assert!(said.ends_with("copy that into `$defs` and refer to it there"), "{said}");
    }
    // A meta-schema is known without fetching it.
    compile(json!({"type": "object", "properties": {
        "schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    }}));
}

#[test]
fn references_in_circles_end() {
    let circle = compile(json!({
        "type": "object",
        "allOf": [{"$ref": "#/$defs/a"}],
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}},
    }));
    assert!(circle.validate("{}").is_ok());
    assert!(compile(json!({"type": "object", "$ref": "#"})).validate("{}").is_ok());
}

#[test]
fn schemas_that_are_too_deep_or_too_large_are_refused() {
    let nested = |levels: usize| {
        let mut schema = json!({});
        for _ in 0..levels {
            schema = json!({"items": schema});
        }
        json!({"type": "object", "properties": {"v": schema}})
    };
    let sentence = "the schema nests more than 64 levels deep: \
                    make it flatter, or use `$defs` and `$ref`";
    compile(nested(61));
    assert_eq!(refused(nested(62)), sentence);
    let beyond_the_parser = format!("{}{}{}", "[".repeat(500), "1", "]".repeat(500));
    let raw = Raw::from_json(format!(r#"{{"type":"object","enum":{beyond_the_parser}}}"#)).unwrap();
    assert_eq!(HandWritten::compile(&raw).unwrap_err().to_string(), sentence);

    let said = refused(json!({"type": "object", "description": "x".repeat(256 * 1024)}));
    assert_eq!(said, "the schema has 262178 bytes and may have 262144: make it smaller");
}
