//! Bounds the steps of a validation before it runs.
//!
//! References let a small schema describe exponentially many steps: each of forty definitions may
//! apply the next one twice. The number of steps for a value is computed without making them, by
//! counting how often each schema applies at each place of the value.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

/// The most steps of one validation, each a schema that is applied to a value.
const MOST_STEPS: u64 = 4_000_000;
/// The most references of a schema that lead back to itself without going into the value.
const MOST_CIRCLES: usize = 4;
/// The steps that the schema of schemas takes at each place of a value.
const STEPS_OF_META_SCHEMA: u64 = 200;
/// How many bytes are matched against a pattern in the time of a step.
const BYTES_OF_STEP: u64 = 16;

/// The graph of the schemas in a schema, in an order in which those that apply to the same value
/// come later.
pub(crate) struct SchemaSteps {
    nodes: Vec<SchemaNode>,
    root: usize,
}

/// One schema. Other schemas are given by their places.
#[derive(Default)]
struct SchemaNode {
    /// Those that apply to the same value.
    in_place: Vec<usize>,
    /// How often those are applied: twice where their annotations are collected, too.
    rounds: u64,
    properties: HashMap<String, usize>,
    /// Those that may apply to any member of an object.
    members: Vec<usize>,
    patterns: u64,
    names: Option<usize>,
    /// Those that apply to the first items of an array, one each.
    prefix: Vec<usize>,
    /// Those that may apply to any item.
    items: Vec<usize>,
    has_pattern: bool,
    /// The values that are compared.
    compared: u64,
}

/// The steps of a validation have a bound, and this value needs more.
#[derive(Debug, PartialEq)]
pub(crate) struct TooManySteps;

impl SchemaSteps {
    /// Reads a schema. Returns `None` if its references can't be followed, or lead back to the same
    /// schema too often without going into the value.
    pub(crate) fn new(schema: &Value) -> Option<SchemaSteps> {
        let mut reader = SchemaGraphReader::default();
        let root = reader.read(schema, schema);
        reader.resolve()?;
        let order = reader.order()?;
        let mut places = vec![0; order.len()];
        for (place, node) in order.iter().enumerate() {
            places[*node] = place;
        }
        let mut nodes: Vec<Option<SchemaNode>> = reader.nodes.into_iter().map(Some).collect();
        let ordered = order.iter().filter_map(|node| nodes[*node].take());
        let nodes = ordered.map(|node| node.moved(&places)).collect();
        Some(SchemaSteps { nodes, root: places[root] })
    }

    /// Fails if the validation of a value needs too many steps.
    pub(crate) fn check(&self, value: &Value) -> Result<(), TooManySteps> {
        let mut steps = 0;
        self.count(value, BTreeMap::from([(self.root, 1)]), &mut steps)
    }

    /// Counts the steps at a value to which each of these schemas applies that often.
    fn count(
        &self,
        value: &Value,
        mut applied: BTreeMap<usize, u64>,
        steps: &mut u64,
    ) -> Result<(), TooManySteps> {
        let mut here = Vec::new();
        while let Some((node, times)) = applied.pop_first() {
            let schema = &self.nodes[node];
            add(steps, times.saturating_mul(1 + schema.compared + schema.bytes(value)))?;
            for other in &schema.in_place {
                let count = applied.entry(*other).or_default();
                *count = count.saturating_add(times.saturating_mul(schema.rounds));
            }
            here.push((schema, times));
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let (mut inside, mut names) = (BTreeMap::new(), BTreeMap::new());
                    for (schema, times) in &here {
                        let matched = schema.patterns * (1 + name.len() as u64 / BYTES_OF_STEP);
                        add(steps, times.saturating_mul(matched))?;
                        let named = schema.properties.get(name);
                        for other in named.into_iter().chain(&schema.members) {
                            put(&mut inside, *other, *times);
                        }
                        if let Some(other) = schema.names {
                            put(&mut names, other, *times);
                        }
                    }
                    if !names.is_empty() {
                        self.count(&Value::String(name.clone()), names, steps)?;
                    }
                    if !inside.is_empty() {
                        self.count(member, inside, steps)?;
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let mut inside = BTreeMap::new();
                    for (schema, times) in &here {
                        let first = schema.prefix.get(index);
                        for other in first.into_iter().chain(&schema.items) {
                            put(&mut inside, *other, *times);
                        }
                    }
                    if !inside.is_empty() {
                        self.count(item, inside, steps)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn add(steps: &mut u64, more: u64) -> Result<(), TooManySteps> {
    *steps = steps.saturating_add(more);
    if *steps > MOST_STEPS { Err(TooManySteps) } else { Ok(()) }
}

fn put(applied: &mut BTreeMap<usize, u64>, node: usize, times: u64) {
    let count = applied.entry(node).or_default();
    *count = count.saturating_add(times);
}

impl SchemaNode {
    /// The steps in which a text is matched.
    fn bytes(&self, value: &Value) -> u64 {
        match value {
            Value::String(text) if self.has_pattern => text.len() as u64 / BYTES_OF_STEP,
            _ => 0,
        }
    }

    fn moved(mut self, places: &[usize]) -> SchemaNode {
        let all = self.in_place.iter_mut().chain(self.properties.values_mut());
        let all = all.chain(&mut self.members).chain(&mut self.names);
        for node in all.chain(&mut self.prefix).chain(&mut self.items) {
            *node = places[*node];
        }
        self
    }
}

/// Reads the schemas of a schema.
#[derive(Default)]
struct SchemaGraphReader<'a> {
    nodes: Vec<SchemaNode>,
    known: HashMap<*const Value, usize>,
    /// Documents by their `$id`.
    documents: HashMap<&'a str, &'a Value>,
    anchors: HashMap<&'a str, &'a Value>,
    /// A schema, the document that it is in, and its reference.
    references: Vec<(usize, &'a Value, &'a str)>,
}

impl<'a> SchemaGraphReader<'a> {
    /// Reads a schema in a document, and all schemas in it.
    fn read(&mut self, schema: &'a Value, document: &'a Value) -> usize {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return *known;
        }
        let place = self.nodes.len();
        self.nodes.push(SchemaNode { rounds: 1, ..SchemaNode::default() });
        self.known.insert(schema, place);
        let Value::Object(members) = schema else { return place };
        let mut document = document;
        if let Some(Value::String(id)) = members.get("$id") {
            document = schema;
            self.documents.insert(id, schema);
        }
        for anchor in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(anchor)) = members.get(anchor) {
                self.anchors.insert(anchor, schema);
            }
        }
        let mut node = SchemaNode { rounds: 1, ..SchemaNode::default() };
        for (keyword, value) in members {
            self.keyword(&mut node, place, (keyword, value), document);
        }
        self.nodes[place] = node;
        place
    }

    fn keyword(
        &mut self,
        node: &mut SchemaNode,
        place: usize,
        (keyword, value): (&'a str, &'a Value),
        document: &'a Value,
    ) {
        match (keyword, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                self.references.push((place, document, reference));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                node.in_place.extend(self.read_all(schemas, document));
            }
            ("not" | "if" | "then" | "else", schema) => {
                node.in_place.push(self.read(schema, document));
            }
            ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                node.in_place.extend(self.read_all(named.values(), document));
            }
            ("properties", Value::Object(named)) => node.properties = self.named(named, document),
            ("patternProperties", Value::Object(named)) => {
                node.patterns = named.len() as u64;
                node.members.extend(self.read_all(named.values(), document));
            }
            ("unevaluatedProperties", schema) => {
                node.rounds = 2;
                node.members.push(self.read(schema, document));
            }
            ("additionalProperties", schema) => node.members.push(self.read(schema, document)),
            ("propertyNames", schema) => node.names = Some(self.read(schema, document)),
            ("prefixItems" | "items", Value::Array(schemas)) => {
                node.prefix = self.read_all(schemas, document);
            }
            ("unevaluatedItems", schema) => {
                node.rounds = 2;
                node.items.push(self.read(schema, document));
            }
            ("items" | "additionalItems" | "contains", schema) => {
                node.items.push(self.read(schema, document));
            }
            ("$defs" | "definitions", Value::Object(named)) => {
                self.read_all(named.values(), document);
            }
            ("enum", Value::Array(values)) => node.compared += values.len() as u64,
            ("pattern" | "format", _) => node.has_pattern = true,
            _ => {}
        }
    }

    fn read_all(
        &mut self,
        schemas: impl IntoIterator<Item = &'a Value>,
        document: &'a Value,
    ) -> Vec<usize> {
        schemas.into_iter().map(|schema| self.read(schema, document)).collect()
    }

    fn named(
        &mut self,
        named: &'a Map<String, Value>,
        document: &'a Value,
    ) -> HashMap<String, usize> {
        named.iter().map(|(name, schema)| (name.clone(), self.read(schema, document))).collect()
    }

    /// Follows the references, also into parts of the schema that are no schemas otherwise.
    fn resolve(&mut self) -> Option<()> {
        while let Some((place, document, reference)) = self.references.pop() {
            let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
            if uri.starts_with("https://json-schema.org/")
                || uri.starts_with("http://json-schema.org/")
            {
                let meta = self.nodes.len();
                self.nodes.push(SchemaNode {
                    rounds: 1,
                    members: vec![meta],
                    items: vec![meta],
                    compared: STEPS_OF_META_SCHEMA,
                    ..SchemaNode::default()
                });
                self.nodes[place].in_place.push(meta);
                continue;
            }
            let document = match uri {
                "" => document,
                uri => self.document(uri)?,
            };
            let target = match fragment {
                "" => document,
                pointer if pointer.starts_with('/') => {
                    document.pointer(&percent_decoded(pointer)?)?
                }
                anchor => self.anchors.get(anchor)?,
            };
            let target = self.read(target, document);
            self.nodes[place].in_place.push(target);
        }
        Some(())
    }

    /// Returns the document of a URI, which may be relative to another one.
    fn document(&self, uri: &str) -> Option<&'a Value> {
        let exact = self.documents.get(uri).copied();
        exact.or_else(|| {
            let name = uri.rsplit('/').next()?;
            let found = self.documents.iter().find(|(id, _)| id.rsplit('/').next() == Some(name));
            found.map(|(_, document)| *document)
        })
    }

    /// Returns the nodes in an order in which those that apply to the same value come later. The
    /// validator does not go round in circles; the references that close them are removed. Returns
    /// `None` if there are too many.
    fn order(&mut self) -> Option<Vec<usize>> {
        let mut state = vec![NodeVisit::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut circles = 0;
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((node, next)) = stack.pop() {
                if next == 0 {
                    if state[node] != NodeVisit::New {
                        continue;
                    }
                    state[node] = NodeVisit::Open;
                }
                match self.nodes[node].in_place.get(next).copied() {
                    None => {
                        state[node] = NodeVisit::Done;
                        order.push(node);
                    }
                    Some(other) if state[other] == NodeVisit::Open => {
                        circles += 1;
                        self.nodes[node].in_place.remove(next);
                        stack.push((node, next));
                        // It was entered before.
                        if next == 0 {
                            state[node] = NodeVisit::New;
                        }
                    }
                    Some(other) => {
                        stack.push((node, next + 1));
                        stack.push((other, 0));
                    }
                }
            }
        }
        order.reverse();
        (circles <= MOST_CIRCLES).then_some(order)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum NodeVisit {
    New,
    Open,
    Done,
}

/// Decodes a fragment; `None` if that is no text.
fn percent_decoded(fragment: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        (rest, _) = match byte.filter(|_| *first == b'%') {
            Some(byte) => (&after[2..], decoded.push(byte)),
            None => (after, decoded.push(*first)),
        };
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Result<(), TooManySteps> {
        SchemaSteps::new(schema).unwrap().check(value)
    }

    /// Each definition applies the next one twice.
    fn doubling(levels: usize, apply: impl Fn(Value) -> Value) -> Value {
        let mut definitions = Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), apply(next));
        }
        definitions.insert(format!("d{levels}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    #[test]
    fn definitions_that_apply_each_other_twice_are_counted_and_not_run() {
        let twice = |next: Value| json!({"allOf": [next, next]});
        assert_eq!(check(&doubling(10, twice), &json!({})), Ok(()));
        assert_eq!(check(&doubling(40, twice), &json!({})), Err(TooManySteps));
        let choice = |next: Value| json!({"anyOf": [next], "oneOf": [next], "not": next});
        assert_eq!(check(&doubling(40, choice), &json!({})), Err(TooManySteps));
    }

    #[test]
    fn a_recursive_schema_may_double_with_the_depth_of_the_value() {
        let next = json!({"properties": {"a": {"$ref": "#"}}});
        let schema = json!({"allOf": [next, next]});
        let mut value = json!({});
        for _ in 0..10 {
            value = json!({"a": value});
        }
        assert_eq!(check(&schema, &value), Ok(()));
        for _ in 0..40 {
            value = json!({"a": value});
        }
        assert_eq!(check(&schema, &value), Err(TooManySteps));
    }

    #[test]
    fn patterns_are_counted_by_names_and_bytes() {
        let patterns: Map<String, Value> =
            (0..3000).map(|number| (format!("a{number}$"), json!({}))).collect();
        let schema = json!({"patternProperties": patterns});
        let names = |length: usize| -> Value {
            let member = |number: usize| (format!("{number}{}", "a".repeat(length)), json!(1));
            Value::Object((0..3000).map(member).collect())
        };
        assert_eq!(check(&schema, &json!({"a": 1})), Ok(()));
        assert_eq!(check(&schema, &names(1000)), Err(TooManySteps));
    }

    #[test]
    fn large_values_of_plain_schemas_are_within_the_bound() {
        let schema = json!({
            "type": "object",
            "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
            "$defs": {"row": {
                "type": "object",
                "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
                "additionalProperties": false,
            }},
        });
        let rows: Vec<Value> = (0..100_000).map(|id| json!({"id": id, "name": "x"})).collect();
        assert_eq!(check(&schema, &json!({"rows": rows})), Ok(()));
    }

    #[test]
    fn references_of_all_kinds_are_followed() {
        for schema in [
            json!({"$ref": "#a", "$defs": {"x": {"$anchor": "a"}}}),
            json!({"$id": "https://example.com/s", "$ref": "t#/$defs/y",
                "$defs": {"t": {"$id": "t", "$defs": {"y": {}}}}}),
            json!({"properties": {"a": {"$ref": "#/definitions/b"}}, "definitions": {"b": {}}}),
            json!({"properties": {"a": {"$dynamicRef": "#n"}}, "$dynamicAnchor": "n"}),
            json!({"$ref": "#/x-own/part", "x-own": {"part": {"type": "object"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/a%20b~1"}}, "$defs": {"a b/": {}}}),
        ] {
            assert_eq!(check(&schema, &json!({"a": {}})), Ok(()), "{schema}");
        }
        let meta =
            json!({"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}});
        assert_eq!(check(&meta, &json!({"a": {"items": {"type": "string"}}})), Ok(()));
    }

    #[test]
    fn few_circles_are_cut_and_many_are_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#/$defs/a"}],
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        ] {
            assert_eq!(check(&schema, &json!({})), Ok(()), "{schema}");
        }
        let all: Vec<Value> = (0..9).map(|n| json!({"$ref": format!("#/$defs/d{n}")})).collect();
        let definitions: Map<String, Value> =
            (0..9).map(|n| (format!("d{n}"), json!({"allOf": all}))).collect();
        assert!(SchemaSteps::new(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).is_none());
    }
}
