//! Owns the list of keywords a schema may use, the order they are written in, and where schemas nest.
//! Does not own what any keyword means.

use serde_json::{Map, Value};

/// What stands behind a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// Plain data.
    Data,
    /// One schema.
    Schema,
    /// An array of schemas.
    Schemas,
    /// An object whose members are schemas.
    NamedSchemas,
}

/// Every keyword of JSON Schema 2020-12 and MCP's own `x-mcp-header`, in the order they are written.
pub(super) const KEYWORDS: &[(&str, Holds)] = &[
    ("$schema", Holds::Data),
    ("$id", Holds::Data),
    ("$anchor", Holds::Data),
    ("$dynamicAnchor", Holds::Data),
    ("$vocabulary", Holds::Data),
    ("$comment", Holds::Data),
    ("$ref", Holds::Data),
    ("$dynamicRef", Holds::Data),
    ("type", Holds::Data),
    ("title", Holds::Data),
    ("description", Holds::Data),
    ("deprecated", Holds::Data),
    ("readOnly", Holds::Data),
    ("writeOnly", Holds::Data),
    // 2026-07-28 server/tools §x-mcp-header: an annotation of a property.
    ("x-mcp-header", Holds::Data),
    ("enum", Holds::Data),
    ("const", Holds::Data),
    ("format", Holds::Data),
    ("minimum", Holds::Data),
    ("exclusiveMinimum", Holds::Data),
    ("maximum", Holds::Data),
    ("exclusiveMaximum", Holds::Data),
    ("multipleOf", Holds::Data),
    ("minLength", Holds::Data),
    ("maxLength", Holds::Data),
    ("pattern", Holds::Data),
    ("contentEncoding", Holds::Data),
    ("contentMediaType", Holds::Data),
    ("contentSchema", Holds::Schema),
    ("default", Holds::Data),
    ("examples", Holds::Data),
    ("properties", Holds::NamedSchemas),
    ("patternProperties", Holds::NamedSchemas),
    ("required", Holds::Data),
    ("additionalProperties", Holds::Schema),
    ("unevaluatedProperties", Holds::Schema),
    ("propertyNames", Holds::Schema),
    ("dependentRequired", Holds::Data),
    ("dependentSchemas", Holds::NamedSchemas),
    ("minProperties", Holds::Data),
    ("maxProperties", Holds::Data),
    ("prefixItems", Holds::Schemas),
    ("items", Holds::Schema),
    ("contains", Holds::Schema),
    ("minContains", Holds::Data),
    ("maxContains", Holds::Data),
    ("unevaluatedItems", Holds::Schema),
    ("minItems", Holds::Data),
    ("maxItems", Holds::Data),
    ("uniqueItems", Holds::Data),
    ("allOf", Holds::Schemas),
    ("anyOf", Holds::Schemas),
    ("oneOf", Holds::Schemas),
    ("not", Holds::Schema),
    ("if", Holds::Schema),
    ("then", Holds::Schema),
    ("else", Holds::Schema),
    ("$defs", Holds::NamedSchemas),
];

/// The formats that JSON Schema 2020-12 defines.
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// What clients may stumble over in a schema: keywords and formats that are not JSON Schema 2020-12.
///
/// Each entry is one sentence with the place; an empty list means there is nothing to complain about.
///
/// ```
/// use turnbuckle::schema::lint;
/// let schema = serde_json::json!({"properties": {"n": {"type": "integer", "format": "uint32"}}});
/// assert_eq!(lint(&schema), ["the format `uint32` at `/properties/n` is not standard"]);
/// ```
pub fn lint(schema: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    lint_at(schema, "/", &mut complaints);
    complaints.sort_unstable();
    complaints
}

fn lint_at(schema: &Value, at: &str, complaints: &mut Vec<String>) {
    let Value::Object(members) = schema else {
        return;
    };
    let inside = at.trim_end_matches('/');
    for (keyword, value) in members {
        match holds(keyword) {
            None => complaints.push(format!("the keyword `{keyword}` at `{at}` is not standard")),
            Some(Holds::Data) => {
                let format = value.as_str().filter(|_| keyword == "format");
                if let Some(format) = format.filter(|format| !is_standard_format(format)) {
                    complaints.push(format!("the format `{format}` at `{at}` is not standard"));
                }
            }
            Some(Holds::Schema) => lint_at(value, &format!("{inside}/{keyword}"), complaints),
            Some(Holds::Schemas) => {
                for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
                    lint_at(schema, &format!("{inside}/{keyword}/{index}"), complaints);
                }
            }
            Some(Holds::NamedSchemas) => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    lint_at(schema, &format!("{inside}/{keyword}/{name}"), complaints);
                }
            }
        }
    }
}

/// What stands behind this keyword, if it is one.
pub(super) fn holds(keyword: &str) -> Option<Holds> {
    KEYWORDS.iter().find(|(name, _)| *name == keyword).map(|(_, holds)| *holds)
}

/// Whether JSON Schema 2020-12 defines this format.
pub(super) fn is_standard_format(format: &str) -> bool {
    FORMATS.contains(&format)
}

/// Calls `visit` for each schema that stands directly inside this one.
pub(super) fn each_inner(schema: &Map<String, Value>, mut visit: impl FnMut(&Value)) {
    for (keyword, value) in schema {
        match holds(keyword) {
            None | Some(Holds::Data) => {}
            Some(Holds::Schema) => visit(value),
            Some(Holds::Schemas) => value.as_array().into_iter().flatten().for_each(&mut visit),
            Some(Holds::NamedSchemas) => {
                value.as_object().into_iter().flat_map(Map::values).for_each(&mut visit);
            }
        }
    }
}

/// As [`each_inner`], for changing them.
pub(super) fn each_inner_mut(schema: &mut Map<String, Value>, mut visit: impl FnMut(&mut Value)) {
    for (keyword, value) in schema {
        match holds(keyword) {
            None | Some(Holds::Data) => {}
            Some(Holds::Schema) => visit(value),
            Some(Holds::Schemas) => {
                value.as_array_mut().into_iter().flatten().for_each(&mut visit);
            }
            Some(Holds::NamedSchemas) => {
                value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(&mut visit);
            }
        }
    }
}
