//! Texts as the JSON that [`Checks`](super::Checks) look at: the arguments of a prompt and the variables
//! of a URI arrive as texts, whatever they are decoded into.

use serde_json::{Map, Value};

use super::checks::Node;
use crate::server::{schema::checks::kinds::Kinds, uri::TextValue};

/// Returns the texts as an object, each as the type that its schema has.
pub(super) fn as_json(nodes: &[Node], values: &[(String, TextValue)]) -> Value {
    let roots = with_others(nodes, vec![0]);
    let value = |name: &str, value: &TextValue| {
        let objects = roots.iter().filter_map(|root| nodes[*root].object.as_ref());
        let members = objects.flat_map(|object| object.nodes_of(name));
        Checked(nodes, with_others(nodes, members.collect())).value(value)
    };
    let mut members = Map::new();
    for (name, text) in values {
        members.insert(name.clone(), value(name, text));
    }
    Value::Object(members)
}

/// These nodes, and those that check the same value.
fn with_others(nodes: &[Node], mut numbers: Vec<usize>) -> Vec<usize> {
    let mut at = 0;
    while let Some(number) = numbers.get(at) {
        for (other, _) in &nodes[*number].also {
            if !numbers.contains(other) {
                numbers.push(*other);
            }
        }
        at += 1;
    }
    numbers
}

/// All nodes that check one value.
struct Checked<'c>(&'c [Node], Vec<usize>);

impl Checked<'_> {
    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.1.iter().map(|number| &self.0[*number])
    }

    fn value(&self, value: &TextValue) -> Value {
        let is_array = |node: &Node| node.kinds.has(Kinds::ARRAY) || node.array.is_some();
        let texts: Vec<&str> = value.iter().collect();
        match &texts[..] {
            [text] if !self.nodes().any(is_array) => self.scalar(text),
            texts => texts.iter().enumerate().map(|(at, text)| self.item(at, text)).collect(),
        }
    }

    fn item(&self, at: usize, text: &str) -> Value {
        let arrays = self.nodes().filter_map(|node| node.array.as_ref());
        let items = arrays.filter_map(|array| array.node_of(at));
        Checked(self.0, with_others(self.0, items.collect())).scalar(text)
    }

    /// The text was decoded before it is checked: one that is no number is none for its type either.
    fn scalar(&self, text: &str) -> Value {
        if self.nodes().any(|node| node.kinds.has_numbers() || node.number.is_some()) {
            let whole = text.parse::<i64>().map(Value::from);
            let whole = whole.or_else(|_| text.parse::<u64>().map(Value::from));
            if let Some(number) = whole.ok().or_else(|| text.parse::<f64>().ok().map(Value::from)) {
                return number;
            }
        }
        match text.parse::<bool>() {
            Ok(word) if self.nodes().any(|node| node.kinds.has(Kinds::BOOLEAN)) => word.into(),
            _ => text.into(),
        }
    }
}
