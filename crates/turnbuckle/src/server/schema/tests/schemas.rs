//! Owns what the schema of each kind of type looks like, to the letter.
//! Does not own how arguments are decoded.

use std::fmt;

use schemars::JsonSchema;
use serde::{
    Deserialize, Serialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::zoo::*;
use crate::server::schema::{input_schema_of, lint, output_schema_of};

/// The members of a JSON object as text, in the order they are written.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Members, A::Error> {
                let mut list = Vec::new();
                while let Some(member) = members.next_entry()? {
                    list.push(member);
                }
                Ok(Members(list))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

fn members(text: &str) -> Vec<(String, String)> {
    let Members(list) = serde_json::from_str(text).unwrap();
    list.into_iter().map(|(name, text)| (name, text.get().to_owned())).collect()
}

/// Asserts the members of the root in their order, then the properties in theirs.
#[track_caller]
fn assert_schema(schema: &str, root: &[(&str, &str)], properties: &[(&str, &str)]) {
    let mut found = members(schema);
    let at = found.iter().position(|(keyword, _)| keyword == "properties").unwrap();
    let (_, found_properties) = found.remove(at);
    let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    assert_eq!(found, pairs(root));
    assert_eq!(members(&found_properties), pairs(properties));
}

macro_rules! input {
    ($type:ty) => {
        input_schema_of::<$type>().unwrap().schema.as_str()
    };
}

const OBJECT: (&str, &str) = ("type", r#""object""#);
const POINT: &str = r#"{"type":"object","properties":{"y":{"type":"number"},"x":{"type":"number"}},"required":["y","x"]}"#;

#[test]
fn no_arguments() {
    assert_eq!(input!(Empty), r#"{"type":"object","properties":{}}"#);
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Closed {}
    assert_eq!(input!(Closed), r#"{"type":"object","properties":{},"additionalProperties":false}"#);
}

#[test]
fn integers_have_bounds_and_no_formats() {
    assert_schema(
        input!(Integers),
        &[OBJECT, ("required", r#"["z","y","x","w","v","u","t","s","r","q","p","o","n","m"]"#)],
        &[
            ("z", r#"{"type":"integer","minimum":-128,"maximum":127}"#),
            ("y", r#"{"type":"integer","minimum":0,"maximum":255}"#),
            ("x", r#"{"type":"integer","minimum":-32768,"maximum":32767}"#),
            ("w", r#"{"type":"integer","minimum":0,"maximum":65535}"#),
            ("v", r#"{"type":"integer","minimum":-2147483648,"maximum":2147483647}"#),
            ("u", r#"{"type":"integer","minimum":0,"maximum":4294967295}"#),
            ("t", r#"{"type":"integer"}"#),
            ("s", r#"{"type":"integer","minimum":0}"#),
            ("r", r#"{"type":"integer"}"#),
            ("q", r#"{"type":"integer","minimum":0}"#),
            ("p", r#"{"type":"integer"}"#),
            ("o", r#"{"type":"integer","minimum":0}"#),
            ("n", r#"{"type":"integer","minimum":1,"maximum":255}"#),
            (
                "m",
                r#"{"type":"integer","minimum":-2147483648,"maximum":2147483647,"not":{"enum":[0]}}"#,
            ),
        ],
    );
}

#[test]
fn primitives_keep_standard_formats_and_descriptions() {
    assert_schema(
        input!(Primitives),
        &[
            OBJECT,
            ("description", r#""Everything that is not an integer.""#),
            ("required", r#"["text","single","double","flag","letter","nothing","anything"]"#),
        ],
        &[
            ("text", r#"{"type":"string","description":"A short text."}"#),
            ("single", r#"{"type":"number"}"#),
            ("double", r#"{"type":"number"}"#),
            ("flag", r#"{"type":"boolean"}"#),
            ("letter", r#"{"type":"string","minLength":1,"maxLength":1}"#),
            ("nothing", r#"{"type":"null"}"#),
            ("anything", "{}"),
        ],
    );
    assert_schema(
        input!(Addresses),
        &[OBJECT, ("required", r#"["address","gateway"]"#)],
        &[("address", r#"{"type":"string"}"#), ("gateway", r#"{"type":"string","format":"ipv4"}"#)],
    );
}

#[test]
fn optional_fields_are_not_required_and_not_null() {
    assert_schema(
        input!(Optional),
        &[OBJECT, ("required", r#"["holes"]"#)],
        &[
            ("second", r#"{"type":"string"}"#),
            ("first", r#"{"type":"integer","minimum":0,"maximum":255}"#),
            ("third", r#"{"type":"integer"}"#),
            ("unit", r#"{"type":"string","enum":["zebra","ant"]}"#),
            (
                "unit_with_docs",
                concat!(
                    r#"{"type":"string","description":"A scale of temperature.\n\n- `celsius`: Water freezes "#,
                    r#"at 0.\n- `kelvin`: Nothing is below 0.","enum":["fahrenheit","celsius","kelvin"]}"#
                ),
            ),
            ("point", POINT),
            (
                "holes",
                r#"{"type":"array","items":{"type":["integer","null"],"minimum":-2147483648,"maximum":2147483647}}"#,
            ),
        ],
    );
}

#[test]
fn results_keep_their_nulls_and_require_what_is_always_written() {
    let output = output_schema_of::<Optional>().unwrap();
    assert!(output.is_object);
    let schema: Value = serde_json::from_str(output.schema.as_str()).unwrap();
    assert_eq!(
        schema["required"],
        serde_json::json!(["second", "first", "third", "unit", "unit_with_docs", "point", "holes"])
    );
    assert_eq!(schema["properties"]["second"], serde_json::json!({"type": ["string", "null"]}));
    assert_eq!(
        schema["properties"]["unit"],
        serde_json::json!({"anyOf": [{"type": "string", "enum": ["zebra", "ant"]}, {"type": "null"}]})
    );
}

#[test]
fn small_definitions_and_those_used_once_are_written_in_place() {
    let point_with_description = POINT.replacen(
        r#""type":"object","#,
        r#""type":"object","description":"Where to start.","#,
        1,
    );
    assert_schema(
        input!(Nested),
        &[OBJECT, ("required", r#"["startingPoint","wayPoints","end","once"]"#)],
        &[
            ("startingPoint", &point_with_description),
            ("wayPoints", &format!(r#"{{"type":"array","items":{POINT}}}"#)),
            ("end", POINT),
            (
                "once",
                concat!(
                    r#"{"type":"object","description":"Used in one place only, and too long to be small: it has "#,
                    r#"a good deal of documentation.","properties":{"field":{"type":"string","description":"A "#,
                    r#"field whose documentation makes the definition longer than what counts as small, "#,
                    r#"which\ntakes a few sentences. This is one of them. And this is another one, to be on "#,
                    r#"the safe side."}},"required":["field"]}"#
                ),
            ),
        ],
    );
}

#[test]
fn large_definitions_used_twice_stay_definitions() {
    let root = members(input!(Twice));
    assert_eq!(root.last().unwrap().0, "$defs");
    assert_eq!(
        root[1].1,
        r##"{"one":{"$ref":"#/$defs/Large"},"two":{"$ref":"#/$defs/Large","description":"The other."}}"##
    );
}

#[test]
fn recursive_types_keep_their_references() {
    assert_eq!(
        input!(Tree),
        concat!(
            r##"{"type":"object","properties":{"name":{"type":"string","minLength":1},"##,
            r##""children":{"type":"array","items":{"$ref":"#"}},"parent":{"$ref":"#"}},"##,
            r##""required":["name","children"]}"##
        )
    );
    let definition = concat!(
        r##"{"type":"object","properties":{"name":{"type":"string","minLength":1},"children":{"type":"array","##,
        r##""items":{"$ref":"#/$defs/Tree"}},"parent":{"$ref":"#/$defs/Tree"}},"required":["name","children"]}"##
    );
    assert_eq!(
        input!(Forest),
        format!(
            "{}{definition}}}}}",
            concat!(
                r##"{"type":"object","properties":{"trees":{"type":"array","items":{"$ref":"#/$defs/Tree"}}},"##,
                r##""required":["trees"],"$defs":{"Tree":"##
            )
        )
    );
    let sapling = members(input!(Sapling));
    assert_eq!(sapling[0], ("type".to_owned(), r#""object""#.to_owned()), "a newtype is unwrapped");
    assert_eq!(sapling.last().unwrap().1, format!(r#"{{"Tree":{definition}}}"#));
}

#[test]
fn enums_are_lists_of_names_in_order_of_declaration() {
    assert_schema(
        input!(Enums),
        &[OBJECT, ("required", r#"["plain","documented","single","many"]"#)],
        &[
            ("plain", r#"{"type":"string","enum":["zebra","ant"]}"#),
            (
                "documented",
                concat!(
                    r#"{"type":"string","description":"How it is measured.\n\nA scale of temperature.\n\n- "#,
                    r#"`celsius`: Water freezes at 0.\n- `kelvin`: Nothing is below 0.","#,
                    r#""enum":["fahrenheit","celsius","kelvin"]}"#
                ),
            ),
            ("single", r#"{"type":"string","enum":["Only"]}"#),
            (
                "many",
                concat!(
                    r#"{"type":"array","items":{"type":"string","description":"A scale of temperature.\n\n- "#,
                    r#"`celsius`: Water freezes at 0.\n- `kelvin`: Nothing is below 0.","#,
                    r#""enum":["fahrenheit","celsius","kelvin"]}}"#
                ),
            ),
        ],
    );
}

// req: mcpserver:tool:schema-variants
#[test]
fn tagged_enums_in_a_field_are_unions() {
    let byte = r#"{"type":"integer","minimum":0,"maximum":255}"#;
    assert_schema(
        input!(Tagged),
        &[OBJECT, ("required", r#"["internal","adjacent"]"#)],
        &[
            (
                "internal",
                concat!(
                    r#"{"oneOf":[{"type":"object","description":"Round.","properties":{"kind":{"type":"string","#,
                    r#""enum":["circle"]},"radius":{"type":"number"}},"required":["kind","radius"]},"#,
                    r#"{"type":"object","properties":{"kind":{"type":"string","enum":["rectangle"]},"#,
                    r#""width":{"type":"integer","minimum":0,"maximum":4294967295},"#,
                    r#""height":{"type":"integer","minimum":0,"maximum":4294967295}},"required":["kind","width"]},"#,
                    r#"{"type":"object","properties":{"kind":{"type":"string","enum":["nothing"]}},"required":["kind"]}]}"#
                ),
            ),
            (
                "external",
                &format!(
                    "{}{byte},{byte}{}",
                    concat!(
                        r#"{"oneOf":[{"type":"string","enum":["Unit"]},{"type":"object","properties":{"Newtype":"#,
                        r#"{"type":"string"}},"required":["Newtype"],"additionalProperties":false},{"type":"object","#,
                        r#""properties":{"Pair":{"type":"array","prefixItems":["#
                    ),
                    concat!(
                        r#"],"minItems":2,"maxItems":2}},"required":["Pair"],"additionalProperties":false},"#,
                        r#"{"type":"object","properties":{"Fields":{"type":"object","properties":{"b":{"type":"boolean"},"#,
                        r#""a":{"type":"boolean"}},"required":["b"]}},"required":["Fields"],"additionalProperties":false}]}"#
                    )
                ),
            ),
            (
                "adjacent",
                &format!(
                    "{}{byte}{}",
                    r#"{"type":"array","items":{"oneOf":[{"type":"object","properties":{"t":{"type":"string","enum":["One"]},"c":"#,
                    concat!(
                        r#"},"required":["t","c"]},{"type":"object","properties":{"t":{"type":"string","enum":["Two"]}},"#,
                        r#""required":["t"]}]}}"#
                    )
                ),
            ),
        ],
    );
}

#[test]
fn maps() {
    assert_schema(
        input!(Maps),
        &[OBJECT, ("required", r#"["counts","points","by_number","free"]"#)],
        &[
            (
                "counts",
                r#"{"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":4294967295}}"#,
            ),
            ("points", &format!(r#"{{"type":"object","additionalProperties":{POINT}}}"#)),
            (
                "by_number",
                r#"{"type":"object","patternProperties":{"^\\d+$":{"type":"string"}},"additionalProperties":false}"#,
            ),
            ("free", r#"{"type":"object"}"#),
        ],
    );
}

#[test]
fn defaults_and_closed_structs() {
    assert_schema(
        input!(Strict),
        &[OBJECT, ("required", r#"["query"]"#), ("additionalProperties", "false")],
        &[
            ("verbose", r#"{"type":"boolean","default":false}"#),
            ("limit", r#"{"type":"integer","minimum":0,"maximum":4294967295,"default":10}"#),
            ("query", r#"{"type":"string"}"#),
        ],
    );
}

#[test]
fn sequences() {
    assert_schema(
        input!(Sequences),
        &[OBJECT, ("required", r#"["pair","triple","set","list"]"#)],
        &[
            (
                "pair",
                concat!(
                    r#"{"type":"array","prefixItems":[{"type":"integer","minimum":0,"maximum":255},"#,
                    r#"{"type":"string"}],"minItems":2,"maxItems":2}"#
                ),
            ),
            (
                "triple",
                concat!(
                    r#"{"type":"array","items":{"type":"integer","minimum":-2147483648,"maximum":2147483647},"#,
                    r#""minItems":3,"maxItems":3}"#
                ),
            ),
            ("set", r#"{"type":"array","items":{"type":"string"},"uniqueItems":true}"#),
            ("list", r#"{"type":"array","items":{"type":"array","items":{"type":"number"}}}"#),
        ],
    );
}

#[test]
fn constraints() {
    assert_schema(
        input!(Constrained),
        &[OBJECT, ("required", r#"["count","code","word","tags","steps"]"#)],
        &[
            ("count", r#"{"type":"integer","minimum":1,"maximum":100}"#),
            ("ratio", r#"{"type":"number","minimum":-0.5}"#),
            ("code", r#"{"type":"string","minLength":2,"maxLength":5}"#),
            ("word", r#"{"type":"string","pattern":"^[a-z]+$"}"#),
            ("tags", r#"{"type":"array","items":{"type":"string","minLength":1},"maxItems":2}"#),
            ("steps", r#"{"type":"integer","exclusiveMaximum":50,"multipleOf":5}"#),
            ("email", r#"{"type":"string","format":"email"}"#),
        ],
    );
}

#[test]
fn foreign_keywords_are_dropped_save_that_of_mcp() {
    assert_schema(
        input!(Extended),
        &[OBJECT, ("required", r#"["region"]"#)],
        &[
            ("region", r#"{"type":"string","x-mcp-header":"Region","enum":["eu","us"]}"#),
            (
                "old",
                concat!(
                    r#"{"type":"integer","title":"Old","deprecated":true,"minimum":0,"maximum":255,"#,
                    r#""examples":[3]}"#
                ),
            ),
        ],
    );
}

#[test]
fn a_flattened_struct_has_its_required_fields_first() {
    let byte = r#"{"type":"integer","minimum":0,"maximum":255}"#;
    let number = r#"{"type":"number"}"#;
    assert_schema(
        input!(Flat),
        &[OBJECT, ("required", r#"["b","y","x"]"#)],
        &[("b", byte), ("y", number), ("x", number), ("a", byte)],
    );
}

#[test]
fn types_that_nest_in_themselves_without_a_struct_end() {
    #[derive(Deserialize, JsonSchema)]
    struct Lists(#[expect(dead_code, reason = "only its schema matters")] Vec<Lists>);
    #[derive(Deserialize, JsonSchema)]
    struct Holder {
        #[expect(dead_code, reason = "only its schema matters")]
        lists: Lists,
        #[expect(dead_code, reason = "only its schema matters")]
        by_choice: std::collections::BTreeMap<String, std::collections::BTreeMap<u8, Holder>>,
    }
    assert_eq!(
        input!(Holder),
        concat!(
            r##"{"type":"object","properties":{"lists":{"$ref":"#/$defs/Lists"},"by_choice":{"type":"object","##,
            r##""additionalProperties":{"type":"object","patternProperties":{"^\\d+$":{"$ref":"#"}},"##,
            r##""additionalProperties":false}}},"required":["lists","by_choice"],"##,
            r##""$defs":{"Lists":{"type":"array","items":{"$ref":"#/$defs/Lists"}}}}"##
        )
    );
}

#[test]
fn a_title_of_ones_own_is_kept() {
    #[derive(Deserialize, JsonSchema)]
    #[schemars(title = "Nothing at all")]
    struct Titled {}
    assert_eq!(input!(Titled), r#"{"type":"object","title":"Nothing at all","properties":{}}"#);
}

#[test]
fn a_constraint_beside_a_definition_that_contradicts_it_holds_too() {
    #[derive(Deserialize, JsonSchema)]
    #[schemars(extend("minLength" = 1))]
    struct Name(#[expect(dead_code, reason = "only its schema matters")] String);
    #[derive(Deserialize, JsonSchema)]
    struct Person {
        #[schemars(extend("minLength" = 3))]
        #[expect(dead_code, reason = "only its schema matters")]
        name: Name,
    }
    assert_eq!(
        input!(Person),
        concat!(
            r#"{"type":"object","properties":{"name":{"minLength":3,"allOf":[{"type":"string","minLength":1}]}},"#,
            r#""required":["name"]}"#
        )
    );
}

#[test]
fn results_that_are_always_objects_say_so() {
    let union = output_schema_of::<Internal>().unwrap();
    assert!(union.is_object);
    assert!(union.schema.as_str().starts_with(r#"{"type":"object","oneOf":[{"type":"object","#));
    for schema in [
        output_schema_of::<External>().unwrap(),
        output_schema_of::<Plain>().unwrap(),
        output_schema_of::<Option<Point>>().unwrap(),
        output_schema_of::<Value>().unwrap(),
        output_schema_of::<()>().unwrap(),
    ] {
        assert!(!schema.is_object, "{}", schema.schema);
    }
    assert_eq!(output_schema_of::<i64>().unwrap().schema.as_str(), r#"{"type":"integer"}"#);
}

#[test]
fn a_wrapped_result_keeps_its_references() {
    #[derive(Serialize, JsonSchema)]
    enum Nest {
        #[expect(dead_code, reason = "only its schema matters")]
        Leaf,
        #[expect(dead_code, reason = "only its schema matters")]
        Inner(Vec<Nest>),
    }
    let nest = output_schema_of::<Nest>().unwrap();
    assert!(nest.schema.as_str().contains(r##"{"$ref":"#"}"##));
    assert_eq!(
        nest.wrapped("result").as_str(),
        concat!(
            r##"{"type":"object","properties":{"result":{"oneOf":[{"type":"string","enum":["Leaf"]},"##,
            r##"{"type":"object","properties":{"Inner":{"type":"array","items":"##,
            r##"{"$ref":"#/properties/result"}}},"required":["Inner"],"##,
            r##""additionalProperties":false}]}},"required":["result"]}"##
        )
    );
    let trees = output_schema_of::<Vec<Tree>>().unwrap().wrapped("result");
    let item = r##"{"type":"array","items":{"$ref":"#/properties/result/$defs/Tree"},"$defs":"##;
    assert!(trees.as_str().contains(item), "{trees}");
}

#[test]
fn every_schema_is_standard_stable_and_compiles() {
    fn check(name: &str, schema: &str, again: &str) {
        assert_eq!(schema, again, "{name}");
        let tree: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(lint(&tree), Vec::<String>::new(), "{name}");
        assert_eq!(tree["type"], "object", "{name}");
        assert!(tree.get("$schema").is_none(), "{name}");
        jsonschema::options().offline().build(&tree).expect(name);
    }
    macro_rules! each {
        ($($type:ident),*) => { $(
            let name = stringify!($type);
            check(name, input!($type), input!($type));
            let output = || output_schema_of::<$type>().unwrap();
            check(name, output().schema.as_str(), output().schema.as_str());
            check(name, output().wrapped("r").as_str(), output().wrapped("r").as_str());
        )* };
    }
    for_each_argument_type!(each);
}

#[test]
fn lint_names_what_is_not_standard_and_where() {
    let schema = serde_json::json!({
        "nullable": true,
        "properties": {"nullable": {"format": "date"}, "format": {"format": "double"}},
        "items": {"oneOf": [{}, {"x-order": 1}]},
    });
    assert_eq!(
        lint(&schema),
        [
            "the format `double` at `/properties/format` is not standard",
            "the keyword `nullable` at `/` is not standard",
            "the keyword `x-order` at `/items/oneOf/1` is not standard",
        ]
    );
}
