//! Owns what a hand-written output schema may be, and what is said of output that breaks it.
//! Does not own what the client is told then.

use serde_json::{Value, json};
use turnbuckle_types::{CallToolResult, Raw};

use crate::server::schema::OutputCheck;

fn compile(schema: Value) -> OutputCheck {
    OutputCheck::compile(&Raw::from(schema)).unwrap()
}

fn refused(schema: Value) -> String {
    OutputCheck::compile(&Raw::from(schema)).unwrap_err().to_string()
}

fn result(content: Value) -> CallToolResult {
    let mut result = CallToolResult::new([]);
    result.structured_content = Some(content.into());
    result
}

fn fits(schema: &Value, content: Value) -> bool {
    compile(schema.clone()).check(&result(content)).is_ok()
}

// req: mcpserver:output-schema:server-validate
#[test]
fn a_broken_promise_is_told_with_its_places() {
    let check = compile(json!({
        "type": "object",
        "properties": {"items": {"items": {"required": ["name"]}}, "sum": {"type": "integer"}},
    }));
    assert_eq!(check.check(&result(json!({"sum": 3, "items": [{"name": 1}]}))), Ok(()));
    assert_eq!(
        check.check(&result(json!({"sum": "3", "items": [{"name": 1}, {}]}))).unwrap_err(),
        "the structured content does not fit the output schema: \
         at `items[1].name`: is missing; at `sum`: expected an integer, got a string"
    );
    assert_eq!(
        check.check(&result(json!([]))).unwrap_err(),
        "the structured content does not fit the output schema: \
         at its root: expected an object, got an array"
    );
}

// req: mcpserver:output-schema:missing-structured
#[test]
fn nothing_is_no_output() {
    let missing = "there is no structured content, but the tool has an output schema";
    let check = compile(json!({}));
    assert_eq!(check.check(&CallToolResult::new([])).unwrap_err(), missing);
    let mut success = CallToolResult::new([]);
    success.is_error = Some(false);
    assert_eq!(check.check(&success).unwrap_err(), missing);
    for present in [json!(null), json!(0), json!(false), json!("")] {
        assert_eq!(check.check(&result(present)), Ok(()), "a value that is there");
    }
}

// req: mcpserver:output-schema:skip-on-error
#[test]
fn an_error_promises_nothing() {
    let check = compile(json!({"type": "integer"}));
    for mut failed in [CallToolResult::new([]), result(json!("no"))] {
        failed.is_error = Some(true);
        assert_eq!(check.check(&failed), Ok(()));
        failed.is_error = Some(false);
        assert!(check.check(&failed).is_err());
    }
}

#[test]
fn the_root_may_be_of_any_kind() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    assert!(fits(&list, json!([1, 2])) && !fits(&list, json!(["1"])));
    let either = json!({"anyOf": [{"type": "object"}, {"type": "null"}]});
    assert!(fits(&either, json!(null)) && !fits(&either, json!(1)));
    for root in [json!(true), json!(false), json!([]), json!(1)] {
        assert_eq!(
            refused(root),
            "the schema of a tool's output must be a JSON object: write `{}` for any value"
        );
    }
}

#[test]
fn every_draft_since_the_fourth_means_what_it_meant() {
    let tuple = |dialect: &str| json!({"$schema": dialect, "items": [{"type": "string"}]});
    for dialect in [
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
    ] {
        let schema = tuple(dialect);
        assert!(fits(&schema, json!(["a", 1])) && !fits(&schema, json!([1])), "{dialect}");
    }
    // Only the fourth has a boolean here.
    let fourth =
        |dialect: &str| json!({"$schema": dialect, "minimum": 1, "exclusiveMinimum": true});
    assert!(!fits(&fourth("http://json-schema.org/draft-04/schema#"), json!(1)));
    for other in
        ["http://json-schema.org/draft-06/schema#", "https://json-schema.org/draft/2020-12/schema"]
    {
        assert!(refused(fourth(other)).contains("`/exclusiveMinimum`"), "{other}");
    }
}

#[test]
fn dialects_that_nobody_knows_are_refused_inside_too() {
    let sentence = "the dialect `https://example.com/dialect` in `$schema` is not supported: \
                    use https://json-schema.org/draft/2020-12/schema, or leave `$schema` out";
    assert_eq!(refused(json!({"$schema": "https://example.com/dialect"})), sentence);
    let inside = json!({"$defs": {"a": {
        "$id": "https://example.com/a", "$schema": "https://example.com/dialect",
    }}});
    assert_eq!(refused(inside), sentence);
    assert!(refused(json!({"$schema": 7})).contains("at `/$schema`"));
    assert!(fits(&json!({"const": {"$schema": "x"}}), json!({"$schema": "x"})), "data is data");
}

#[test]
fn references_within_the_document_are_followed() {
    let schema = json!({
        "properties": {
            "pointer": {"$ref": "#/$defs/name"},
            "anchor": {"$ref": "#name"},
            "id": {"$ref": "https://example.com/name"},
        },
        "$defs": {"name": {
            "$anchor": "name", "$id": "https://example.com/name", "type": "string",
        }},
    });
    // An `$id` makes a document of its own: its anchor is found there only.
    assert!(refused(schema.clone()).contains("name"), "{}", refused(schema.clone()));
    let mut schema = schema;
    schema["properties"]["anchor"] = json!({"$ref": "https://example.com/name#name"});
    for member in ["pointer", "anchor", "id"] {
        assert!(fits(&schema, json!({member: "a"})) && !fits(&schema, json!({member: 1})));
    }
    let tree = json!({
        "$id": "https://example.com/strict", "$dynamicAnchor": "node", "$ref": "tree",
        "unevaluatedProperties": false,
        "$defs": {"tree": {
            "$id": "tree", "$dynamicAnchor": "node", "type": "object",
            "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
        }},
    });
    assert!(fits(&tree, json!({"children": [{"children": []}]})));
    assert!(!fits(&tree, json!({"children": [{"chidlren": []}]})), "the outer anchor decides");
}

#[test]
fn what_lies_elsewhere_is_named_and_not_fetched() {
    let sentence = |named: &str| {
        format!(
            "the schema refers to `{named}`, which is not in it, and nothing is fetched: \
             copy that into `$defs` and refer to it there"
        )
    };
    let remote = "https://example.com/schema.json";
    for keyword in ["$ref", "$dynamicRef"] {
        assert_eq!(refused(json!({"properties": {"v": {keyword: remote}}})), sentence(remote));
    }
    assert_eq!(refused(json!({"$ref": "other.json"})), sentence("other.json"));
    assert_eq!(refused(json!({"$ref": "file:///dev/null"})), sentence("file:///dev/null"));
    let data = json!({"$ref": remote});
    assert!(fits(&json!({"enum": [data], "default": data}), data), "data refers to nothing");
}

#[test]
fn patterns_take_linear_time_or_are_refused() {
    let nested = json!({"pattern": "^(a+)+$"});
    assert!(!fits(&nested, json!(format!("{}!", "a".repeat(100_000)))));
    for (keyword, schema) in [
        ("pattern", json!({"pattern": "^(?=a)"})),
        ("pattern", json!({"pattern": "(a)\\1"})),
        ("patternProperties", json!({"patternProperties": {"(?!x)y": {}}})),
        ("pattern", json!({"pattern": "(a{1000}){1000}"})),
    ] {
        let said = refused(schema);
        assert!(said.starts_with("the pattern `") && said.contains("linear time"), "{said}");
        assert!(said.contains(&format!("`/{keyword}")), "{said}");
    }
}

#[test]
fn patterns_are_written_as_javascript_has_them() {
    for (pattern, good, bad) in [
        (r"^\d{4}-\d{2}$", "2026-07", "2026-7"),
        (r"^https?:\/\/", "http://a", "ftp://a"),
        (r"^\p{L}+$", "\u{e4}b", "1"),
        (r"^[\u00e4\-]\w$", "\u{e4}a", "aa"),
        (r"^(?:a|(?<year>b))$", "b", "c"),
    ] {
        let schema = json!({"pattern": pattern});
        assert!(fits(&schema, json!(good)) && !fits(&schema, json!(bad)), "{pattern}");
    }
}

#[test]
fn schemas_and_values_are_bounded() {
    let many = |count: usize| json!({"allOf": vec![json!({}); count]});
    compile(many(9_999));
    assert_eq!(
        refused(many(10_000)),
        "the schema is made of 10001 objects and may be made of 10000: \
         make it smaller, or use `$defs` and `$ref`"
    );
    assert!(refused(json!({"title": "x".repeat(256 * 1024)})).contains("may have 262144"));
    let mut deep = json!({});
    (0..64).for_each(|_| deep = json!({"not": deep}));
    assert!(refused(deep).contains("64 levels"));

    let check = compile(json!({"items": {"$ref": "#"}}));
    let nested = |levels: usize| {
        let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let mut result = CallToolResult::new([]);
        result.structured_content = Some(Raw::from_json(text).unwrap());
        result
    };
    assert_eq!(check.check(&nested(120)), Ok(()));
    let said = check.check(&nested(1_000)).unwrap_err();
    assert!(said.contains("at its root: is not JSON that can be checked: recursion"), "{said}");
}

/// As deep as a schema may be, on a value as deep as it may be, on a worker's small stack.
#[test]
fn the_deepest_there_is_fits_a_workers_stack() {
    let mut schema = json!({"$ref": "#"});
    (0..28).for_each(|_| schema = json!({"allOf": [schema]}));
    let check = compile(json!({"items": schema}));
    let text = format!("{}1{}", "[".repeat(127), "]".repeat(127));
    let worker = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let checked = worker.spawn(move || {
        let mut result = CallToolResult::new([]);
        result.structured_content = Some(Raw::from_json(text).unwrap());
        check.check(&result)
    });
    assert_eq!(checked.unwrap().join().unwrap(), Ok(()));
}

#[test]
fn a_schema_that_doubles_with_each_definition_does_not_block() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d40".into(), json!({"type": "object"}));
    let check = compile(json!({"$ref": "#/$defs/d0", "$defs": definitions}));
    let mut result = CallToolResult::new([]);
    result.structured_content = Some(json!({}).into());
    let error = check.check(&result).unwrap_err();
    assert!(error.contains("too many steps"), "{error}");
}
