use super::*;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use turnbuckle_types::code;

fn of(schema: &Value) -> Result<Annotations, String> {
    Annotations::of(&schema.to_string())
}

fn properties(properties: &Value) -> Result<Annotations, String> {
    of(&json!({ "type": "object", "properties": properties }))
}

fn region() -> Annotations {
    properties(&json!({ "region": { "type": "string", "x-mcp-header": "Region" } })).unwrap()
}

fn every_type() -> Annotations {
    properties(&json!({
        "text": { "type": "string", "x-mcp-header": "Text" },
        "count": { "type": "integer", "x-mcp-header": "Count" },
        "flag": { "type": "boolean", "x-mcp-header": "Flag" },
        "plain": { "type": "number" },
        "outer": {
            "type": "object",
            "properties": {
                "inner": { "type": "string", "x-mcp-header": "Inner" },
                "deep": {
                    "type": "object",
                    "properties": { "er": { "type": "integer", "x-mcp-header": "Er" } },
                },
            },
        },
    }))
    .unwrap()
}

fn headers(annotations: &Annotations, arguments: &str) -> String {
    let mut lines: Vec<String> = annotations
        .headers(arguments)
        .into_iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    lines.sort();
    lines.join("\n")
}

fn map(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

#[test]
fn the_specification_s_example_is_mirrored() {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {
                "type": "string",
                "description": "The region to execute the query in",
                "x-mcp-header": "Region"
            },
            "query": { "type": "string", "description": "The SQL query to execute" }
        },
        "required": ["region", "query"]
    });
    let annotations = of(&schema).unwrap();
    let arguments = r#"{"region": "us-west1", "query": "SELECT * FROM users"}"#;
    assert_eq!(headers(&annotations, arguments), "mcp-param-region: us-west1");
}

#[test]
fn a_schema_without_annotations_has_none() {
    for schema in [
        r#"{"type":"object"}"#,
        "true",
        "not even JSON, which is for others to say",
        r#"{"type":"object","properties":{"a":{"type":"string","description":"caf\u00e9"}}}"#,
        // Data that looks like a schema, and a property with the keyword's name.
        r#"{"description":"x-mcp-header"}"#,
        r#"{"properties":{"x-mcp-header":{"type":"object"}}}"#,
        r#"{"properties":{"a":{"enum":[{"x-mcp-header":"A"}]}}}"#,
        r#"{"properties":{"a":{"const":{"x-mcp-header":""}}}}"#,
        r#"{"properties":{"a":{"default":{"properties":{"b":{"x-mcp-header":"A"}}}}}}"#,
        r#"{"properties":{"a":{"examples":[{"items":{"x-mcp-header":"A"}}]}}}"#,
        r#"{"required":["x-mcp-header"]}"#,
        r#"{"$defs":{"x-mcp-header":{"type":"number"}}}"#,
        r#"{"patternProperties":{"x-mcp-header":{"type":"number"}}}"#,
        r#"{"dependencies":{"x-mcp-header":["a"]}}"#,
        r#"{"x-of-ours":{"x-mcp-header":"A"}}"#,
    ] {
        let annotations = Annotations::of(schema).unwrap();
        assert!(annotations.is_empty(), "{schema}");
        assert_eq!(annotations, Annotations::default());
        assert_eq!(annotations.headers(r#"{"a":"b"}"#), []);
        assert!(annotations.check(r#"{"a":"b"}"#, &map(&[("mcp-param-a", "c")])).is_ok());
    }
}

#[test]
fn properties_may_have_the_names_of_keywords() {
    let annotations = properties(&json!({
        "properties": { "type": "string", "x-mcp-header": "One" },
        "items": { "type": "string", "x-mcp-header": "Two" },
        "x-mcp-header": { "type": "string", "x-mcp-header": "Three" },
        "enum": { "type": "string", "x-mcp-header": "Four" },
    }))
    .unwrap();
    let arguments = r#"{"properties":"1","items":"2","x-mcp-header":"3","enum":"4"}"#;
    assert_eq!(
        headers(&annotations, arguments),
        "mcp-param-four: 4\nmcp-param-one: 1\nmcp-param-three: 3\nmcp-param-two: 2"
    );
}

#[test]
fn an_escaped_keyword_is_the_keyword() {
    let schema = r#"{"properties":{"a":{"type":"string","\u0078-mcp\u002Dheader":"A"}}}"#;
    assert_eq!(headers(&Annotations::of(schema).unwrap(), r#"{"a":"b"}"#), "mcp-param-a: b");
}

#[test]
fn a_name_must_be_a_token_and_its_own() {
    let every_mark = "!#$%&'*+-.^_`|~09azAZ";
    let fine = properties(&json!({ "a": { "type": "string", "x-mcp-header": every_mark } }));
    assert_eq!(headers(&fine.unwrap(), r#"{"a":"b"}"#), "mcp-param-!#$%&'*+-.^_`|~09azaz: b");
    for (name, reason) in [
        (json!(""), "empty"),
        (json!("My Region"), "header's name"),
        (json!("Region:Primary"), "header's name"),
        (json!("Région"), "header's name"),
        (json!("Region\t1"), "header's name"),
        (json!("Region\r\nX-Evil: 1"), "header's name"),
        (json!("a/b"), "header's name"),
        (json!(7), "not a string"),
        (json!(null), "not a string"),
        (json!(["Region"]), "not a string"),
    ] {
        let error = properties(&json!({ "region": { "type": "string", "x-mcp-header": name } }));
        let error = error.unwrap_err();
        assert!(error.contains(reason) && error.contains("`region`"), "{name}: {error}");
    }
    for (one, two) in [("Region", "Region"), ("Region", "REGION")] {
        let error = properties(&json!({
            "a": { "type": "string", "x-mcp-header": one },
            "b": { "type": "object", "properties": {
                "c": { "type": "string", "x-mcp-header": two },
            } },
        }))
        .unwrap_err();
        assert!(error.contains("`b.c`") && error.contains("`a`"), "{error}");
    }
}

#[test]
fn only_a_string_an_integer_or_a_boolean_can_be_a_header() {
    for kind in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!("String"),
        json!(["string"]),
        json!(["string", "null"]),
        json!(7),
    ] {
        let error = properties(&json!({ "a": { "type": kind, "x-mcp-header": "A" } }));
        assert!(error.unwrap_err().contains("whose type is"), "{kind}");
    }
    for property in [
        json!({ "x-mcp-header": "A" }),
        json!({ "$ref": "#/$defs/Region", "x-mcp-header": "A" }),
        json!({ "enum": ["a", "b"], "x-mcp-header": "A" }),
    ] {
        assert!(properties(&json!({ "a": property })).unwrap_err().contains("no type"));
    }
}

#[test]
fn an_annotation_off_the_way_of_properties_is_invalid() {
    let annotated = json!({ "type": "string", "x-mcp-header": "A" });
    let holder = json!({ "type": "object", "properties": { "a": annotated } });
    let one = |keyword: &str, value: Value| json!({ "properties": { "p": { keyword: value } } });
    let mut schemas = vec![json!({ "type": "string", "x-mcp-header": "A" })];
    for keyword in [
        "items",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
    ] {
        schemas.push(json!({ keyword: annotated }));
        schemas.push(one(keyword, holder.clone()));
    }
    for keyword in ["items", "prefixItems", "oneOf", "anyOf", "allOf"] {
        schemas.push(json!({ keyword: [true, annotated] }));
        schemas.push(one(keyword, json!([holder])));
    }
    for keyword in ["$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"]
    {
        schemas.push(json!({ keyword: { "x": annotated } }));
        schemas.push(one(keyword, json!({ "properties": holder })));
    }
    // What is fine itself is not so below what is not.
    schemas.push(json!({ "anyOf": [{ "properties": { "b": { "items": { "properties": {
        "a": annotated
    } } } } }] }));
    for schema in schemas {
        let error = of(&schema).unwrap_err();
        assert!(
            error.contains("properties") || error.contains("whole schema"),
            "{schema}: {error}"
        );
    }
}

#[test]
fn what_is_too_deep_is_a_reason_and_no_overflow() {
    let deep =
        format!("{}true{}", r#"{"x-mcp-header":"A","not":"#.repeat(100_000), "}".repeat(100_000));
    assert!(Annotations::of(&deep).unwrap_err().contains("can't be read"));
    let nested = |levels: usize| {
        let end = r#"{"type":"string","x-mcp-header":"A"}"#;
        let schema =
            format!("{}{end}{}", r#"{"properties":{"a":"#.repeat(levels), "}}".repeat(levels));
        let arguments = format!("{}\"b\"{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        (schema, arguments)
    };
    let (schema, arguments) = nested(50);
    assert_eq!(headers(&Annotations::of(&schema).unwrap(), &arguments), "mcp-param-a: b");
    let (schema, _) = nested(10_000);
    assert!(Annotations::of(&schema).unwrap_err().contains("can't be read"));
}

#[test]
fn values_are_spelt_by_what_they_are() {
    let all = every_type();
    for (arguments, expected) in [
        ("{}", ""),
        ("null", ""),
        ("[]", ""),
        ("\"text\"", ""),
        ("", ""),
        (r#"{"text": "#, ""),
        (r#"{"text":null,"count":null,"flag":null,"outer":null}"#, ""),
        (r#"{"text":"","plain":1.5}"#, "mcp-param-text: "),
        (r#"{"text":"a b"}"#, "mcp-param-text: a b"),
        (r#"{"text":" padded "}"#, "mcp-param-text: =?base64?IHBhZGRlZCA=?="),
        (r#"{"text":"Hello, 世界"}"#, "mcp-param-text: =?base64?SGVsbG8sIOS4lueVjA==?="),
        (r#"{"text":"Hello, \u4e16\u754c"}"#, "mcp-param-text: =?base64?SGVsbG8sIOS4lueVjA==?="),
        (r#"{"text":"line1\nline2"}"#, "mcp-param-text: =?base64?bGluZTEKbGluZTI=?="),
        (r#"{"t\u0065xt":"a"}"#, "mcp-param-text: a"),
        (r#"{"count":42,"flag":true}"#, "mcp-param-count: 42\nmcp-param-flag: true"),
        (r#"{"count":-7.0,"flag":false}"#, "mcp-param-count: -7\nmcp-param-flag: false"),
        (r#"{"count":1e3}"#, "mcp-param-count: 1000"),
        (r#"{"count":9007199254740991}"#, "mcp-param-count: 9007199254740991"),
        (r#"{"count":9007199254740992}"#, ""),
        (r#"{"count":-9007199254740992}"#, ""),
        (r#"{"count":1.5}"#, ""),
        (r#"{"text":["a"],"count":{}}"#, ""),
        // The wrong type, but one that a header can say.
        (r#"{"text":5,"count":"five"}"#, "mcp-param-count: five\nmcp-param-text: 5"),
        (
            r#"{"outer":{"inner":"x","other":[{"inner":"no"}],"deep":{"er":3}},"inner":"no"}"#,
            "mcp-param-er: 3\nmcp-param-inner: x",
        ),
        (r#"{"outer":[{"inner":"x"}]}"#, ""),
        (r#"{"outer":"inner"}"#, ""),
        (r#"{"outer":{"deep":7}}"#, ""),
        // Neither of two counts: the server refuses them.
        (r#"{"text":"a","text":"b"}"#, ""),
        (r#"{"text":"a","text":null}"#, ""),
        (r#"{"outer":{"inner":"x"},"outer":{}}"#, ""),
    ] {
        assert_eq!(headers(&all, arguments), expected, "{arguments}");
    }
}

#[test]
fn a_property_may_be_annotated_and_have_properties() {
    // A value is either text or an object, so at most one of the two is there.
    let annotations = properties(&json!({
        "a": { "type": "string", "x-mcp-header": "A", "properties": {
            "b": { "type": "string", "x-mcp-header": "B" },
        } },
        "a-": { "type": "string", "x-mcp-header": "Minus" },
    }))
    .unwrap();
    assert_eq!(headers(&annotations, r#"{"a":"x"}"#), "mcp-param-a: x");
    assert_eq!(
        headers(&annotations, r#"{"a":{"b":"y"},"a-":"z"}"#),
        "mcp-param-b: y\nmcp-param-minus: z"
    );
}

#[test]
fn what_a_client_writes_a_server_accepts() {
    let all = every_type();
    for arguments in [
        r#"{"text":"=?base64?literal?=","count":-0,"flag":true,"outer":{"inner":"\t"}}"#,
        r#"{"text":"","count":42.0,"flag":null}"#,
        r#"{"text":{"wrong":1},"count":[]}"#,
        "{}",
        "[]",
    ] {
        let pairs = all.headers(arguments);
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert!(all.check(arguments, &map(&pairs)).is_ok(), "{arguments}");
    }
}

#[test]
fn an_argument_that_is_given_twice_is_refused() {
    for sent in [&["a"][..], &["b"], &[]] {
        let pairs: Vec<_> = sent.iter().map(|value| ("mcp-param-region", *value)).collect();
        let outcome = region().check(r#"{"region":"a","region":"b"}"#, &map(&pairs));
        assert_eq!(outcome.unwrap_err().code, code::INVALID_PARAMS, "{sent:?}");
    }
}

#[test]
fn a_header_must_say_what_the_argument_says() {
    for (arguments, sent) in [
        (r#"{"region":"Hello"}"#, &["=?base64?SGVsbG8=?="][..]),
        (r#"{"region":"Hello"}"#, &["Hello"]),
        (r#"{"region":"Hello"}"#, &["  Hello\t"]),
        (r#"{"region":"SGVsbG8="}"#, &["SGVsbG8="]),
        (r#"{"region":"=?base64?SGVsbG8="}"#, &["=?base64?SGVsbG8="]),
        (r#"{"region":""}"#, &[""]),
        (r#"{"region":null}"#, &[]),
        ("{}", &[]),
        (r#"{"region":42}"#, &["42"]),
        (r#"{"region":42}"#, &["42.0"]),
        (r#"{"region":42.0}"#, &["42"]),
        (r#"{"region":true}"#, &["true"]),
        (r#"{"region":["wrong"]}"#, &[]),
        (r#"{"region":1.5}"#, &[]),
    ] {
        let pairs: Vec<_> = sent.iter().map(|value| ("Mcp-Param-REGION", *value)).collect();
        let outcome = region().check(arguments, &map(&pairs));
        assert!(outcome.is_ok(), "{arguments} {sent:?}: {outcome:?}");
    }
    for (arguments, sent, reason) in [
        (r#"{"region":"Hello"}"#, &[][..], "is not"),
        (r#"{"region":""}"#, &[], "is not"),
        (r#"{"region":false}"#, &[], "is not"),
        (r#"{"region":"Hello"}"#, &["hello"], "says `hello`"),
        (r#"{"region":"Hello"}"#, &["Hello", "Hello"], "more than once"),
        (r#"{"region":null}"#, &["a", "b"], "more than once"),
        (r#"{"region":"Hello"}"#, &["=?base64?SGVsbG8?="], "encoded"),
        (r#"{"region":"Hello"}"#, &["=?base64?SGVs!!!bG8=?="], "encoded"),
        (r#"{"region":"café"}"#, &["café"], "encoded"),
        (r#"{"region":null}"#, &["Hello"], "`region` is not"),
        ("{}", &[""], "`region` is not"),
        (r#"{"region":42}"#, &["43"], "says `43`"),
        (r#"{"region":42}"#, &["42.5"], "says"),
        (r#"{"region":42}"#, &["4.2e1"], "says"),
        (r#"{"region":42}"#, &["0x2a"], "says"),
        (r#"{"region":"42"}"#, &["42.0"], "says"),
        (r#"{"region":9007199254740993}"#, &["9007199254740993"], "2^53"),
        (r#"{"region":9007199254740993}"#, &[], "2^53"),
        (r#"{"region":true}"#, &["True"], "says"),
        (r#"{"region":["a"]}"#, &["a"], "no header can say"),
    ] {
        let pairs: Vec<_> = sent.iter().map(|value| ("mcp-param-region", *value)).collect();
        let error = region().check(arguments, &map(&pairs)).unwrap_err();
        assert_eq!(error.code, code::HEADER_MISMATCH);
        assert!(error.message.contains(reason), "{arguments} {sent:?}: {}", error.message);
        assert!(error.message.contains("Mcp-Param-region"), "{}", error.message);
    }
}

#[test]
fn headers_that_no_annotation_names_are_ignored() {
    let headers =
        map(&[("mcp-param-other", "x"), ("mcp-param-other", "y"), ("mcp-param-region", "a")]);
    assert!(region().check(r#"{"region":"a","other":"z"}"#, &headers).is_ok());
}

#[test]
fn an_argument_in_an_object_is_named_by_its_path() {
    let error = every_type().check(r#"{"outer":{"deep":{"er":3}}}"#, &map(&[])).unwrap_err();
    assert!(error.message.contains("`outer.deep.er`"), "{}", error.message);
}
