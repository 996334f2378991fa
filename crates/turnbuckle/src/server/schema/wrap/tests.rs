//! A validator says the same of a value and of its wrapped form.

use jsonschema::Validator;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::*;
use crate::server::schema::output_schema_of;

fn compiled(schema: &Value) -> Validator {
    jsonschema::options()
        .offline()
        .build(schema)
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn wrapped(schema: &Value) -> Value {
    wrap(&schema.into(), "result").decode().unwrap()
}

/// The plain schema and the wrapped one agree about each value; some fit and some don't.
fn agree(schema: &Value, values: &[Value]) {
    let (plain, whole) = (compiled(schema), compiled(&wrapped(schema)));
    for value in values {
        let inside = json!({"result": value});
        assert_eq!(plain.is_valid(value), whole.is_valid(&inside), "{schema}: {value}");
    }
    let fits = values.iter().filter(|value| plain.is_valid(value)).count();
    assert!(fits > 0 && fits < values.len(), "{schema}: the values tell nothing");
    assert!(!whole.is_valid(&json!({})) && !whole.is_valid(&json!([])), "{schema}");
}

// req: 2025:jsonschema:ref-rewrite-on-wrap
#[test]
fn references_hold_wherever_they_point() {
    let tree = |reference: &str, definitions: &str| {
        json!({
            "type": "array",
            "items": {"$ref": reference},
            definitions: {"node": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "inner": {"$ref": "#"}},
                "required": ["name"],
            }},
        })
    };
    let values = [
        json!([]),
        json!([{"name": "a", "inner": [{"name": "b"}]}]),
        json!([{"name": "a", "inner": [{"name": 1}]}]),
        json!([{"name": "a", "inner": {}}]),
        json!({}),
    ];
    agree(&tree("#/$defs/node", "$defs"), &values);
    let mut older = tree("#/definitions/node", "definitions");
    older["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    agree(&older, &values);
    assert_eq!(wrapped(&older)["$schema"], older["$schema"]);
    assert!(wrapped(&older)["properties"]["result"].get("$schema").is_none());
}

// req: 2025:jsonschema:ref-rewrite-scope
#[test]
fn anchors_and_documents_of_their_own_stay_as_they_are() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "array",
        "prefixItems": [{"$ref": "#word"}, {"$ref": "https://a.test/count"}],
        "items": {"$ref": "#/prefixItems/0"},
        "$defs": {
            "word": {"$anchor": "word", "type": "string"},
            "count": {
                "$id": "https://a.test/count",
                "$ref": "#/$defs/least",
                "$defs": {"least": {"type": "integer", "minimum": 1}},
            },
        },
    });
    let values = [json!(["a", 1, "b"]), json!(["a", 0]), json!([1]), json!(["a", 1, 2]), json!(1)];
    agree(&schema, &values);
    let own = json!({"$id": "https://a.test/all", "type": "array", "items": {"$ref": "#/$defs/x"},
        "$defs": {"x": {"type": "null"}}});
    agree(&own, &[json!([null]), json!([1])]);
    assert_eq!(wrapped(&own)["properties"]["result"], own);
}

// req: 2025:jsonschema:ref-rewrite-scope
#[test]
fn only_what_is_a_reference_is_changed() {
    let schema = json!({
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "other": {"$ref": "#/properties/$ref"}},
        "required": ["$ref"],
        "default": {"$ref": "#/x"},
        "examples": [{"$ref": "#"}],
        "enum": [{"$ref": "#", "other": "a"}, {"$ref": "#", "other": 5}],
    });
    agree(&schema, &[json!({"$ref": "#", "other": "a"}), json!({"$ref": "#", "other": 5})]);
    let inside = &wrapped(&schema)["properties"]["result"];
    for keyword in ["default", "examples", "enum"] {
        assert_eq!(inside[keyword], schema[keyword]);
    }
}

#[test]
fn a_schema_that_refers_to_itself_by_the_word_of_2019_09_still_does() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "type": ["array", "string"],
        "items": {"$recursiveRef": "#"},
    });
    agree(&schema, &[json!([["a"], "b"]), json!([[1]]), json!("a"), json!(1)]);
}

#[test]
fn the_order_of_members_and_odd_names_are_kept() {
    let text = r##"{"required":["b"],"properties":{"b":{"$ref":"#"},"a":true}}"##;
    let schema = Raw::from_json(text).unwrap();
    assert_eq!(
        wrap(&schema, "a/b %").as_str(),
        concat!(
            r##"{"type":"object","properties":{"a/b %":{"required":["b"],"properties":"##,
            r##"{"b":{"$ref":"#/properties/a~1b%20%25"},"a":true}}},"required":["a/b %"]}"##
        )
    );
    let strange = json!({"result": {"$ref": "#"}, "type": "array"});
    let whole: Value = wrap(&(&strange).into(), "a/b %").decode().unwrap();
    assert!(compiled(&whole).is_valid(&json!({"a/b %": []})));
    assert_eq!(wrapped(&json!(true))["properties"]["result"], json!(true));
}

/// A type that contains itself, directly and through another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
enum Nest {
    Leaf(i64),
    Several(Vec<Nest>),
    Named(Box<Name>),
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Name {
    name: String,
    inner: Option<Nest>,
}

fn nests() -> impl Strategy<Value = Nest> {
    any::<i64>().prop_map(Nest::Leaf).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Nest::Several),
            ("[a-z]{0,4}", proptest::option::of(inner))
                .prop_map(|(name, inner)| Nest::Named(Box::new(Name { name, inner }))),
        ]
    })
}

proptest! {
    #[test]
    fn a_wrapped_schema_takes_the_wrapped_values_of_its_type(
        nest in nests(),
        list in prop::collection::vec(nests(), 0..4),
    ) {
        fn check<T: Serialize + JsonSchema>(value: &T) {
            let schema = output_schema_of::<T>().unwrap().wrapped("result");
            let whole = compiled(&schema.decode().unwrap());
            let good = json!({"result": value});
            assert!(whole.is_valid(&good), "{schema}: {good}");
            assert!(!whole.is_valid(&json!(value)), "{schema}");
            assert!(!whole.is_valid(&json!({"result": {"Several": [{"Leaf": "x"}]}})), "{schema}");
        }
        check(&nest);
        check(&list);
    }
}
