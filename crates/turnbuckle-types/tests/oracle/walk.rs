//! Owns the comparison of an object's members with those that a schema names, both ways.
//! Schemas allow other members; this project does not write them. Does not own validity.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use turnbuckle_types::Revision;

use crate::spec::Schema;

/// Members whose content is anyone's.
const FREE: [&str; 2] = ["inputSchema", "outputSchema"];

/// Pointers to members.
#[derive(Default)]
pub(crate) struct Findings {
    /// Written, but not named.
    pub(crate) unnamed: BTreeSet<String>,
    /// Named, but not written.
    pub(crate) missing: BTreeSet<String>,
}

impl Findings {
    fn add(&mut self, more: Findings) {
        self.unnamed.extend(more.unnamed);
        self.missing.extend(more.missing);
    }

    fn weight(&self) -> (usize, usize) {
        (self.unnamed.len(), self.missing.len())
    }
}

/// Compares `value` with a definition.
pub(crate) fn compare(schema: &Schema, definition: &str, value: &Value) -> Findings {
    let node = &schema.definitions()[definition];
    if definition.ends_with("MetaObject") {
        return meta(schema, node, value, "");
    }
    let mut found = walk(schema, node, value, "");
    // Until 2025-11-25 some params leave `_meta` to the base type of all of them.
    if schema.revision <= Revision::V2025_11_25 {
        found.unnamed.remove("/params/_meta");
    }
    found
}

fn walk(schema: &Schema, node: &Value, value: &Value, at: &str) -> Findings {
    if let Some(reference) = node["$ref"].as_str() {
        return walk(schema, schema.resolve(reference), value, at);
    }
    let each = |key: &str| {
        let nodes = node[key].as_array()?.iter();
        Some(nodes.map(|node| walk(schema, node, value, at)).collect::<Vec<_>>())
    };
    if let Some(branches) = each("anyOf").or_else(|| each("oneOf")) {
        return branches.into_iter().min_by_key(Findings::weight).unwrap();
    }
    if let Some(branches) = each("allOf") {
        let both = |a: Findings, b: Findings| Findings {
            unnamed: &a.unnamed & &b.unnamed,
            missing: &a.missing | &b.missing,
        };
        return branches.into_iter().reduce(both).unwrap();
    }
    match value {
        Value::Array(items) => {
            let mut found = Findings::default();
            for (index, item) in items.iter().enumerate() {
                found.add(walk(schema, &node["items"], item, &format!("{at}/{index}")));
            }
            found
        }
        Value::Object(members) => object(schema, node, members, at),
        _ => Findings::default(),
    }
}

fn object(schema: &Schema, node: &Value, members: &Map<String, Value>, at: &str) -> Findings {
    let mut found = Findings::default();
    let others = node.get("additionalProperties");
    if let Some(Value::Object(shape)) = others
        && !shape.is_empty()
    {
        // A map: values of one shape by any name.
        for (name, value) in members {
            found.add(walk(schema, &others.cloned().unwrap(), value, &format!("{at}/{name}")));
        }
        return found;
    }
    let Some(named) = node["properties"].as_object() else { return found };
    if named.is_empty() && others.is_some() {
        return found;
    }
    for (name, value) in members {
        let pointer = format!("{at}/{name}");
        match named.get(name) {
            Some(_) if FREE.contains(&name.as_str()) => {}
            Some(node) if name == "_meta" => found.add(meta(schema, node, value, &pointer)),
            Some(node) => found.add(walk(schema, node, value, &pointer)),
            None => drop(found.unnamed.insert(pointer)),
        }
    }
    let absent = named.keys().filter(|name| !members.contains_key(*name));
    found.missing.extend(absent.map(|name| format!("{at}/{name}")));
    found
}

/// `_meta` is anyone's but for the keys that the protocol has reserved.
fn meta(schema: &Schema, node: &Value, value: &Value, at: &str) -> Findings {
    let node = node["$ref"].as_str().map_or(node, |reference| schema.resolve(reference));
    let mut found = Findings::default();
    for (name, value) in value.as_object().unwrap() {
        let pointer = format!("{at}/{name}");
        match node["properties"].get(name) {
            Some(node) => found.add(walk(schema, node, value, &pointer)),
            None if name.starts_with("io.modelcontextprotocol/") => {
                found.unnamed.insert(pointer);
            }
            None => {}
        }
    }
    found
}
