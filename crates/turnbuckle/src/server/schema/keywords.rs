//! Owns what clients may stumble over in a schema, and the way to the schemas inside one.
//! Does not own the list of keywords, nor what any of them means.

use serde_json::{Map, Value};

pub(super) use crate::protocol::json_schema::keywords::{KEYWORDS, KeywordValue, holds};

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
/// use turnbuckle::server::schema::lint;
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
            Some(KeywordValue::Data) => {
                let format = value.as_str().filter(|_| keyword == "format");
                if let Some(format) = format.filter(|format| !is_standard_format(format)) {
                    complaints.push(format!("the format `{format}` at `{at}` is not standard"));
                }
            }
            Some(KeywordValue::Schema) => {
                lint_at(value, &format!("{inside}/{keyword}"), complaints)
            }
            Some(KeywordValue::Schemas) => {
                for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
                    lint_at(schema, &format!("{inside}/{keyword}/{index}"), complaints);
                }
            }
            Some(KeywordValue::NamedSchemas) => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    lint_at(schema, &format!("{inside}/{keyword}/{name}"), complaints);
                }
            }
        }
    }
}

/// Whether JSON Schema 2020-12 defines this format.
pub(super) fn is_standard_format(format: &str) -> bool {
    FORMATS.contains(&format)
}

/// Calls `visit` for each schema that stands directly inside this one.
pub(super) fn each_inner(schema: &Map<String, Value>, mut visit: impl FnMut(&Value)) {
    for (keyword, value) in schema {
        match holds(keyword) {
            None | Some(KeywordValue::Data) => {}
            Some(KeywordValue::Schema) => visit(value),
            Some(KeywordValue::Schemas) => {
                value.as_array().into_iter().flatten().for_each(&mut visit)
            }
            Some(KeywordValue::NamedSchemas) => {
                value.as_object().into_iter().flat_map(Map::values).for_each(&mut visit);
            }
        }
    }
}

/// As [`each_inner`], for changing them.
pub(super) fn each_inner_mut(schema: &mut Map<String, Value>, mut visit: impl FnMut(&mut Value)) {
    for (keyword, value) in schema {
        match holds(keyword) {
            None | Some(KeywordValue::Data) => {}
            Some(KeywordValue::Schema) => visit(value),
            Some(KeywordValue::Schemas) => {
                value.as_array_mut().into_iter().flatten().for_each(&mut visit);
            }
            Some(KeywordValue::NamedSchemas) => {
                value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(&mut visit);
            }
        }
    }
}
