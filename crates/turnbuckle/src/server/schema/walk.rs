//! Owns running compiled checks over the text of arguments, without building a tree of values.
//! Does not own which checks there are.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::checks::{Applies, ArrayCheck, Node, ObjectCheck, Size};
use super::number::Number;
use super::problem::{Problem, count, must_be_one_of, push_index, push_key};

/// How many violations are reported; the rest would only repeat them.
const MOST_PROBLEMS: usize = 8;

/// What stands for a number when serde_json is built with `arbitrary_precision`.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// The violations in the text of one JSON value.
pub(super) fn walk(nodes: &[Node], text: &str) -> Vec<Problem> {
    let mut run = Run { nodes, problems: Vec::new() };
    let outcome = run.check(0, text, &Place::Root);
    if let (Err(error), true) = (outcome, run.problems.is_empty()) {
        run.report(&Place::Root, format!("is not JSON that can be checked: {error}"));
    }
    run.problems
}

struct Run<'c> {
    nodes: &'c [Node],
    problems: Vec<Problem>,
}

impl Run<'_> {
    fn check(&mut self, node: usize, text: &str, place: &Place<'_>) -> serde_json::Result<()> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Walk { run: self, node, place }.deserialize(&mut deserializer)
    }

    fn report(&mut self, place: &Place<'_>, message: String) {
        if self.problems.len() < MOST_PROBLEMS {
            let mut path = String::new();
            place.write(&mut path);
            self.problems.push(Problem::new(path, message));
        }
    }

    fn size(&mut self, size: Size, has: u64, noun: &str, place: &Place<'_>) {
        if let Some(least) = size.least.filter(|least| has < *least) {
            self.report(place, format!("must have at least {}, has {has}", count(least, noun)));
        }
        if let Some(most) = size.most.filter(|most| has > *most) {
            self.report(place, format!("must have at most {}, has {has}", count(most, noun)));
        }
    }

    fn number(&mut self, node: &Node, number: Number, place: &Place<'_>) {
        let check = &node.number;
        let limits = [
            (check.minimum, "at least", check.minimum.is_some_and(|limit| number < limit)),
            (
                check.exclusive_minimum,
                "more than",
                check.exclusive_minimum.is_some_and(|limit| number <= limit),
            ),
            (check.maximum, "at most", check.maximum.is_some_and(|limit| number > limit)),
            (
                check.exclusive_maximum,
                "less than",
                check.exclusive_maximum.is_some_and(|limit| number >= limit),
            ),
        ];
        for (limit, relation, violated) in limits {
            if let Some(limit) = limit.filter(|_| violated) {
                self.report(place, format!("must be {relation} {limit}, is {number}"));
            }
        }
        if let Some(step) = check.multiple_of.filter(|step| !number.is_multiple_of(*step)) {
            self.report(place, format!("must be a multiple of {step}, is {number}"));
        }
        self.choice(node, place, |choice| Number::of(choice) == Some(number));
    }

    fn text(&mut self, node: &Node, text: &str, place: &Place<'_>) {
        if !node.text.size.is_any() {
            self.size(node.text.size, text.chars().count() as u64, "character", place);
        }
        if let Some(pattern) = node.text.pattern.as_ref().filter(|regex| !regex.is_match(text)) {
            self.report(place, format!("must match the pattern `{pattern}`"));
        }
        self.choice(node, place, |choice| choice == text);
    }

    fn choice(&mut self, node: &Node, place: &Place<'_>, is: impl Fn(&Value) -> bool) {
        if let Some(choices) = node.choices.as_ref().filter(|choices| !choices.iter().any(is)) {
            self.report(place, must_be_one_of(choices));
        }
    }
}

/// Where a value stands: the way back to the root, written down only when there is a violation.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Member(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn write(&self, path: &mut String) {
        match self {
            Place::Root => {}
            Place::Member(parent, key) => {
                parent.write(path);
                push_key(path, key);
            }
            Place::Item(parent, index) => {
                parent.write(path);
                push_index(path, *index);
            }
        }
    }
}

/// One value that is about to be read, and the node that checks it.
struct Walk<'r, 'c> {
    run: &'r mut Run<'c>,
    node: usize,
    place: &'r Place<'r>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let nodes = self.run.nodes;
        let also = &nodes[self.node].also;
        if also.is_empty() {
            return deserializer.deserialize_any(self);
        }
        // More than one node checks this value: read it once for each.
        let text = <&RawValue>::deserialize(deserializer)?.get();
        let Walk { run, node, place } = self;
        let mut own = serde_json::Deserializer::from_str(text);
        own.deserialize_any(Walk { run: &mut *run, node, place }).map_err(Error::custom)?;
        for (other, applies) in also {
            if *applies == Applies::Always || text != "null" {
                run.check(*other, text, place).map_err(Error::custom)?;
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.run.choice(&self.run.nodes[self.node], self.place, |choice| *choice == value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.run.number(&self.run.nodes[self.node], Number::Whole(value.into()), self.place);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.run.number(&self.run.nodes[self.node], Number::Whole(value.into()), self.place);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.run.number(&self.run.nodes[self.node], Number::Real(value), self.place);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.run.text(&self.run.nodes[self.node], value, self.place);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.run.choice(&self.run.nodes[self.node], self.place, Value::is_null);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        let node = &self.run.nodes[self.node];
        self.run.choice(node, self.place, |_| false);
        walk_array(self.run, &node.array, items, self.place)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let node = &self.run.nodes[self.node];
        let first: Option<Key<'de>> = members.next_key()?;
        if first.as_ref().is_some_and(|key| key.0 == NUMBER_TOKEN) {
            let text: String = members.next_value()?;
            if let Some(number) = Number::parse(&text) {
                self.run.number(node, number, self.place);
            }
            return Ok(());
        }
        self.run.choice(node, self.place, |_| false);
        walk_object(self.run, &node.object, first, members, self.place)
    }
}

fn walk_array<'de, A: SeqAccess<'de>>(
    run: &mut Run<'_>,
    check: &ArrayCheck,
    mut items: A,
    place: &Place<'_>,
) -> Result<(), A::Error> {
    let mut seen = HashSet::new();
    let mut twice = None;
    let mut length = 0;
    loop {
        let place = &Place::Item(place, length);
        let node = check.node_of(length);
        let more = if check.unique {
            let text: Option<&RawValue> = items.next_element()?;
            if let Some(text) = text.map(RawValue::get) {
                if let Some(node) = node {
                    run.check(node, text, place).map_err(Error::custom)?;
                }
                if !seen.insert(canonical(text).map_err(Error::custom)?) {
                    twice = twice.or(Some(length));
                }
            }
            text.is_some()
        } else if let Some(node) = node {
            items.next_element_seed(Walk { run, node, place })?.is_some()
        } else {
            items.next_element::<IgnoredAny>()?.is_some()
        };
        if !more {
            break;
        }
        length += 1;
    }
    if let Some(index) = twice {
        run.report(
            &Place::Item(place, index),
            "must not be there twice: all items must differ".to_owned(),
        );
    }
    run.size(check.size, length as u64, "item", place);
    Ok(())
}

fn walk_object<'de, A: MapAccess<'de>>(
    run: &mut Run<'_>,
    check: &ObjectCheck,
    first: Option<Key<'de>>,
    mut members: A,
    place: &Place<'_>,
) -> Result<(), A::Error> {
    let mut length = 0;
    let mut next = first;
    while let Some(Key(key)) = next {
        let place = &Place::Member(place, &key);
        if let Some(names) = check.names {
            run.text(&run.nodes[names], &key, place);
        }
        if check.patterns.is_empty() {
            match check.by_name(&key).unwrap_or(check.additional) {
                Some(node) => members.next_value_seed(Walk { run, node, place })?,
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        } else {
            let text: &RawValue = members.next_value()?;
            for node in check.nodes_of(&key) {
                run.check(node, text.get(), place).map_err(Error::custom)?;
            }
        }
        length += 1;
        next = members.next_key()?;
    }
    run.size(check.size, length, "member", place);
    Ok(())
}

/// A key that borrows from the text unless it has escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<'de>, D::Error> {
        struct ReadKey;

        impl<'de> Visitor<'de> for ReadKey {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(ReadKey)
    }
}

/// The same text for equal values: spacing, escapes, `1` or `1.0`, and the order of members aside.
fn canonical(text: &str) -> serde_json::Result<String> {
    let mut out = String::new();
    write_canonical(&serde_json::from_str(text)?, &mut out);
    Ok(out)
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
            names.sort_unstable();
            out.push('{');
            for name in names {
                out.push_str(&Value::from(name).to_string());
                write_canonical(&members[name], out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Number(_) => match Number::of(value) {
            Some(Number::Real(real)) if real.fract() == 0.0 && real.abs() < 1e15 => {
                out.push_str(&(real as i64).to_string());
            }
            Some(number) => out.push_str(&number.to_string()),
            None => out.push_str(&value.to_string()),
        },
        _ => out.push_str(&value.to_string()),
    }
}
