//! Owns texts as the JSON that checks look at: a prompt's arguments and the variables of a URI come
//! as texts, whatever they are read as. Does not own the checks, nor decoding the texts.

use serde_json::{Map, Value};

use super::checks::Node;
use crate::server::uri::TextValue;

/// The texts as an object: a number where numbers are checked, a list where lists are, else text.
pub(super) fn as_json(nodes: &[Node], values: &[(String, TextValue)]) -> Value {
    let roots = with_others(nodes, vec![0]);
    let value = |name: &str, value: &TextValue| {
        let members = roots.iter().flat_map(|root| nodes[*root].object.nodes_of(name));
        Checked(nodes, with_others(nodes, members.collect())).value(value)
    };
    let members = values.iter().map(|(name, text)| (name.clone(), value(name, text)));
    Value::Object(members.collect::<Map<_, _>>())
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
        let texts: Vec<&str> = value.iter().collect();
        match &texts[..] {
            [text] if !self.nodes().any(|node| node.array.is_checked()) => self.scalar(text),
            texts => texts.iter().enumerate().map(|(at, text)| self.item(at, text)).collect(),
        }
    }

    fn item(&self, at: usize, text: &str) -> Value {
        let items = self.nodes().filter_map(|node| node.array.node_of(at));
        Checked(self.0, with_others(self.0, items.collect())).scalar(text)
    }

    /// Text was decoded before it is checked: what is no number is none for its type either.
    fn scalar(&self, text: &str) -> Value {
        let chosen = |kind: fn(&Value) -> bool| {
            self.nodes().flat_map(|node| node.choices.iter().flatten()).any(kind)
        };
        if self.nodes().any(|node| node.number.is_checked()) || chosen(Value::is_number) {
            let whole = text.parse::<i64>().map(Value::from);
            let whole = whole.or_else(|_| text.parse::<u64>().map(Value::from));
            if let Some(number) = whole.ok().or_else(|| text.parse::<f64>().ok().map(Value::from)) {
                return number;
            }
        }
        match text.parse::<bool>() {
            Ok(word) if chosen(Value::is_boolean) => word.into(),
            _ => text.into(),
        }
    }
}
