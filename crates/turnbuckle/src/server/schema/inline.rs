//! Owns which definitions of a schema are written in place and which stay in `$defs`.
//! Does not own what the definitions say.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::keywords::{each_inner, each_inner_mut};

/// A definition of at most this many bytes is written wherever it is used…
const SMALL: usize = 256;
/// …unless all its copies together come to more than this.
const SMALL_ALTOGETHER: usize = 2048;

/// Keywords that describe a schema without changing what it accepts.
pub(super) const ANNOTATIONS: [&str; 7] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// Writes definitions in place that are small or used once; recursive ones stay, with the
/// references to them. The root itself is never a reference.
pub(super) fn inline(mut root: Value) -> Value {
    // Here and below one after another: to collect a map sorts first, which takes more code than
    // there is to gain.
    let mut definitions = BTreeMap::new();
    if let Some(Value::Object(own)) = root.as_object_mut().and_then(|root| root.remove("$defs")) {
        definitions.extend(own);
    }
    let mut plan = Plan::new(&root, definitions);
    unwrap_root(&mut root, &plan.definitions);
    plan.resolve_all();
    plan.write_in_place(&mut root);

    let kept = plan.reachable_from(&root);
    if let Value::Object(members) = &mut root
        && !kept.is_empty()
    {
        members.insert("$defs".to_owned(), kept.into());
    }
    root
}

/// Adds what `other` says to a schema. What the schema says itself weighs more; where the two would
/// contradict each other, both hold.
pub(super) fn merge(members: &mut Map<String, Value>, other: Value) {
    let Value::Object(other) = other else {
        members.insert("allOf".to_owned(), json!([other]));
        return;
    };
    let contradicts = |(keyword, value): (&String, &Value)| {
        !ANNOTATIONS.contains(&keyword.as_str())
            && members.get(keyword).is_some_and(|own| own != value)
    };
    if other.iter().any(contradicts) {
        match members.get_mut("allOf") {
            Some(Value::Array(branches)) => branches.push(other.into()),
            _ => {
                members.insert("allOf".to_owned(), json!([other]));
            }
        }
        return;
    }
    for (keyword, value) in other {
        match (keyword.as_str(), members.get_mut(&keyword), value) {
            ("description", Some(Value::String(own)), Value::String(description)) => {
                if *own != description {
                    own.push_str("\n\n");
                    own.push_str(&description);
                }
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                members.insert(keyword, value);
            }
        }
    }
}

struct Plan {
    /// Each definition; those in `resolved` have no reference left that is to be written in place.
    definitions: BTreeMap<String, Value>,
    uses: HashMap<String, usize>,
    recursive: BTreeSet<String>,
    in_place: BTreeSet<String>,
    resolved: BTreeSet<String>,
}

impl Plan {
    fn new(root: &Value, definitions: BTreeMap<String, Value>) -> Plan {
        let mut uses = HashMap::new();
        let mut waiting = references(root);
        while let Some(name) = waiting.pop() {
            let count: &mut usize = uses.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1
                && let Some(definition) = definitions.get(&name)
            {
                waiting.extend(references(definition));
            }
        }
        let mut recursive = BTreeSet::new();
        for (name, schema) in &definitions {
            if reaches(schema, name, &definitions) {
                recursive.insert(name.clone());
            }
        }
        let (in_place, resolved) = (BTreeSet::new(), BTreeSet::new());
        Plan { definitions, uses, recursive, in_place, resolved }
    }

    fn resolve_all(&mut self) {
        for name in self.definitions.keys().cloned().collect::<Vec<_>>() {
            self.resolve(&name);
        }
    }

    /// Resolves what a definition needs, then itself, then decides on its place. Recursion ends:
    /// a recursive definition counts as resolved before what it needs is looked at.
    fn resolve(&mut self, name: &str) {
        let Some(mut schema) = self.definitions.get(name).cloned() else {
            return;
        };
        if !self.resolved.insert(name.to_owned()) {
            return;
        }
        for needed in references(&schema) {
            self.resolve(&needed);
        }
        self.write_in_place(&mut schema);
        let size = schema.to_string().len();
        let uses = self.uses.get(name).copied().unwrap_or_default();
        let small = size <= SMALL && uses * size <= SMALL_ALTOGETHER;
        if !self.recursive.contains(name) && (uses == 1 || small) {
            self.in_place.insert(name.to_owned());
        }
        self.definitions.insert(name.to_owned(), schema);
    }

    fn write_in_place(&self, schema: &mut Value) {
        let Value::Object(members) = schema else {
            return;
        };
        each_inner_mut(members, |inner| self.write_in_place(inner));
        let name = members.get("$ref").and_then(Value::as_str).and_then(definition_name);
        if let Some(name) = name.filter(|name| self.in_place.contains(name))
            && let Some(definition) = self.definitions.get(&name)
        {
            members.remove("$ref");
            merge(members, definition.clone());
        }
    }

    fn reachable_from(&self, root: &Value) -> Map<String, Value> {
        let mut kept = Map::new();
        let mut waiting = references(root);
        while let Some(name) = waiting.pop() {
            if !kept.contains_key(&name)
                && let Some(definition) = self.definitions.get(&name)
            {
                waiting.extend(references(definition));
                kept.insert(name, definition.clone());
            }
        }
        kept
    }
}

/// A newtype's schema is a reference to what it wraps: the root takes its place.
fn unwrap_root(root: &mut Value, definitions: &BTreeMap<String, Value>) {
    // No chain of distinct references is longer than there are definitions.
    for _ in 0..=definitions.len() {
        let Value::Object(members) = root else {
            return;
        };
        let name = members.get("$ref").and_then(Value::as_str).and_then(definition_name);
        let Some(definition) = name.and_then(|name| definitions.get(&name)) else {
            return;
        };
        members.remove("$ref");
        merge(members, definition.clone());
    }
}

fn reaches(from: &Value, goal: &str, definitions: &BTreeMap<String, Value>) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = references(from);
    while let Some(name) = waiting.pop() {
        if name == goal {
            return true;
        }
        if let Some(definition) = definitions.get(&name)
            && seen.insert(name)
        {
            waiting.extend(references(definition));
        }
    }
    false
}

/// The names of the definitions that a schema refers to, as often as it does.
fn references(schema: &Value) -> Vec<String> {
    let Value::Object(members) = schema else {
        return Vec::new();
    };
    let own = members.get("$ref").and_then(Value::as_str).and_then(definition_name);
    let mut names: Vec<String> = own.into_iter().collect();
    each_inner(members, |inner| names.extend(references(inner)));
    names
}

/// The name in a reference such as `#/$defs/Name`, in which it is a percent-encoded JSON pointer.
pub(crate) fn definition_name(reference: &str) -> Option<String> {
    let encoded = reference.strip_prefix("#/$defs/")?;
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    let pointer = String::from_utf8(bytes).ok()?;
    Some(pointer.replace("~1", "/").replace("~0", "~"))
}
