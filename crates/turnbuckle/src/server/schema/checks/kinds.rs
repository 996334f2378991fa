//! The types of JSON, as sets and in words.

use serde_json::Value;

use super::number::Number;

/// The types of JSON Schema, in the order in which they are written, with their words.
const KINDS: [(&str, &str); 7] = [
    ("string", "a string"),
    ("integer", "an integer"),
    ("number", "a number"),
    ("boolean", "a boolean"),
    ("array", "an array"),
    ("object", "an object"),
    ("null", "null"),
];

/// A set of JSON types; the empty set stands for all of them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const STRING: Kinds = Kinds(1);
    const INTEGER: Kinds = Kinds(2);
    pub(crate) const NUMBER: Kinds = Kinds(4);
    pub(crate) const BOOLEAN: Kinds = Kinds(8);
    pub(crate) const ARRAY: Kinds = Kinds(16);
    pub(crate) const OBJECT: Kinds = Kinds(32);
    pub(crate) const NULL: Kinds = Kinds(64);

    /// Reads the value of `type`.
    pub(crate) fn of(types: Option<&Value>) -> Kinds {
        let names = match types {
            Some(Value::Array(names)) => names.as_slice(),
            Some(name) => std::slice::from_ref(name),
            None => &[],
        };
        let bit = |name: &Value| KINDS.iter().position(|(kind, _)| name == kind);
        Kinds(names.iter().filter_map(bit).fold(0, |set, bit| set | 1 << bit))
    }

    pub(crate) fn of_value(value: &Value) -> Kinds {
        match value {
            Value::Null => Kinds::NULL,
            Value::Bool(_) => Kinds::BOOLEAN,
            Value::Number(_) => Number::of(value).map_or(Kinds::NUMBER, Kinds::of_number),
            Value::String(_) => Kinds::STRING,
            Value::Array(_) => Kinds::ARRAY,
            Value::Object(_) => Kinds::OBJECT,
        }
    }

    pub(crate) fn of_number(number: Number) -> Kinds {
        if number.is_whole() { Kinds::INTEGER } else { Kinds::NUMBER }
    }

    pub(crate) fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Whether a value of this kind is in the set. A whole number is a number, too.
    pub(crate) fn take(self, kind: Kinds) -> bool {
        let kind = if kind == Kinds::INTEGER { kind.or(Kinds::NUMBER) } else { kind };
        self.0 == 0 || self.0 & kind.0 != 0
    }

    /// Whether the set has numbers. The set of all types does not count.
    pub(crate) fn has_numbers(self) -> bool {
        self.0 & (Kinds::INTEGER.0 | Kinds::NUMBER.0) != 0
    }

    /// Whether the set has this kind. The set of all types does not count.
    pub(crate) fn has(self, kind: Kinds) -> bool {
        self.0 & kind.0 != 0
    }

    /// `a string or an integer`.
    pub(crate) fn words(self) -> String {
        let kinds = KINDS.iter().enumerate().filter(|(bit, _)| self.0 & 1 << bit != 0);
        kinds.map(|(_, (_, words))| *words).collect::<Vec<_>>().join(" or ")
    }
}
