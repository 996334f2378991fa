//! Writes a generated schema as text, with keywords and properties in a fixed order.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use turnbuckle_types::Raw;

use super::{
    SchemaError,
    keywords::{KEYWORDS, KeywordValue, is_standard_format},
    portable::ORDER,
};

/// The schema as text: the same for the same type, whichever map serde_json is built with.
pub(super) fn write(schema: &Value) -> Result<Raw, SchemaError> {
    let mut out = String::new();
    write_schema(&mut out, schema);
    Raw::from_json(out).map_err(|error| {
        SchemaError::new(format!("the generated schema is not valid JSON ({error}): report this"))
    })
}

fn write_schema(out: &mut String, schema: &Value) {
    let Value::Object(members) = schema else {
        write_data(out, schema);
        return;
    };
    let mut list = List::open(out, '{');
    for (keyword, holds) in KEYWORDS {
        let Some(value) = members.get(*keyword) else {
            continue;
        };
        if *keyword == "format" && !value.as_str().is_some_and(is_standard_format) {
            continue;
        }
        list.key(out, keyword);
        match (holds, value) {
            (KeywordValue::Schema, schema) => write_schema(out, schema),
            (KeywordValue::Schemas, Value::Array(schemas)) => {
                let mut inner = List::open(out, '[');
                for schema in schemas {
                    inner.item(out);
                    write_schema(out, schema);
                }
                out.push(']');
            }
            (KeywordValue::NamedSchemas, Value::Object(named)) => {
                let names = if *keyword == "properties" {
                    order(members, named)
                } else {
                    let mut names: Vec<&str> = named.keys().map(String::as_str).collect();
                    names.sort_unstable();
                    names
                };
                let mut inner = List::open(out, '{');
                for name in names {
                    inner.key(out, name);
                    write_schema(out, &named[name]);
                }
                out.push('}');
            }
            (_, data) => write_data(out, data),
        }
    }
    out.push('}');
}

/// Returns the names of properties in the order of declaration, as far as it is known, then the
/// others by name.
fn order<'a>(schema: &'a Map<String, Value>, properties: &'a Map<String, Value>) -> Vec<&'a str> {
    let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
    names.sort_unstable();
    let known = schema.get(ORDER).or_else(|| schema.get("required")).and_then(Value::as_array);
    put_in_order(&mut names, known);
    names
}

/// Moves the names of a list to the front, in its order.
pub(crate) fn put_in_order(names: &mut [&str], order: Option<&Vec<Value>>) {
    let place = |name: &str| order?.iter().position(|field| field == name);
    names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
}

fn write_data(out: &mut String, data: &Value) {
    // Writing into a `String` does not fail.
    let _ = write!(out, "{data}");
}

struct List {
    is_empty: bool,
}

impl List {
    fn open(out: &mut String, bracket: char) -> List {
        out.push(bracket);
        List { is_empty: true }
    }

    fn item(&mut self, out: &mut String) {
        if !self.is_empty {
            out.push(',');
        }
        self.is_empty = false;
    }

    fn key(&mut self, out: &mut String, key: &str) {
        self.item(out);
        write_data(out, &Value::from(key));
        out.push(':');
    }
}
