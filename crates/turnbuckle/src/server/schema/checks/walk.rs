//! Runs the nodes of [`Checks`](crate::server::schema::Checks) over the text of a value, without building a tree.

use std::{borrow::Cow, collections::HashSet, fmt};

use super::{kinds::Kinds, number::Number};
use crate::{
    protocol::place::without_position,
    server::schema::{
        checks::{Applies, ArrayRule, Node, ObjectRule, Size},
        problem::{Problem, count, must_be_one_of, push_index, push_key, shorten},
    },
};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

/// How many violations are reported; the rest would only repeat them.
const MOST_PROBLEMS: usize = 8;

/// The key that stands for a number when serde_json is built with `arbitrary_precision`.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// Which rules are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those that decoding does not enforce.
    Constraints,
    /// All of them, to explain why a text cannot be decoded.
    Everything,
}

/// Returns the violations in the text of one JSON value.
pub(crate) fn walk(nodes: &[Node], text: &str, scope: Scope) -> Vec<Problem> {
    // Reading a part again, for each branch of a union, costs its length. Nested unions must not
    // multiply that without bound.
    let budget = 64 * 1024 + 16 * text.len();
    let mut run = Run { nodes, scope, problems: Vec::new(), unreadable: None, budget };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let walk =
        PendingCheck { run: &mut run, node: 0, place: &InstancePath::Root, takes_null: false };
    let outcome = walk.deserialize(&mut deserializer);
    if let Err(error) = outcome.and_then(|()| deserializer.end())
        && (scope == Scope::Everything || run.problems.is_empty())
    {
        let message = format!("is not JSON that can be read: {}", without_position(&error));
        return vec![Problem::new(run.unreadable.unwrap_or_default(), message)];
    }
    run.problems
}

pub(crate) struct Run<'c> {
    pub(crate) nodes: &'c [Node],
    scope: Scope,
    pub(crate) problems: Vec<Problem>,
    /// The path of the innermost value that could not be read.
    unreadable: Option<String>,
    /// How many bytes may be read again.
    budget: usize,
}

impl Run<'_> {
    /// Checks a text that was read before.
    fn check(
        &mut self,
        node: usize,
        text: &str,
        place: &InstancePath<'_>,
    ) -> serde_json::Result<()> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let walk = PendingCheck { run: self, node, place, takes_null: false };
        walk.deserialize(&mut deserializer)
    }

    /// Returns the problems of a value under one node, and `None` when the budget is used up.
    pub(crate) fn attempt(
        &mut self,
        node: usize,
        text: &str,
        place: &InstancePath<'_>,
    ) -> serde_json::Result<Option<Vec<Problem>>> {
        let Some(budget) = self.budget.checked_sub(text.len()) else { return Ok(None) };
        self.budget = budget;
        let before = std::mem::take(&mut self.problems);
        let outcome = self.check(node, text, place);
        let problems = std::mem::replace(&mut self.problems, before);
        outcome.map(|()| Some(problems))
    }

    /// Checks a value by every node that applies to it.
    fn check_all(
        &mut self,
        node: usize,
        text: &str,
        place: &InstancePath<'_>,
        takes_null: bool,
    ) -> serde_json::Result<()> {
        let mut own = serde_json::Deserializer::from_str(text);
        own.deserialize_any(PendingCheck { run: &mut *self, node, place, takes_null })?;
        if text == "null" && takes_null {
            return Ok(());
        }
        let node = &self.nodes[node];
        for (other, applies) in &node.also {
            let counts = self.concerns(*other) && (*applies == Applies::Always || text != "null");
            if counts && self.scope == Scope::Everything {
                let problems = self.attempt(*other, text, place)?.unwrap_or_default();
                problems.into_iter().for_each(|problem| self.push(problem));
            } else if counts {
                self.check(*other, text, place)?;
            }
        }
        if self.scope == Scope::Everything && !node.union.is_empty() {
            self.union(node, text, place)?;
        }
        Ok(())
    }

    /// Whether a node has to be looked at.
    fn concerns(&self, node: usize) -> bool {
        self.scope == Scope::Everything || self.nodes[node].constrains
    }

    pub(crate) fn report(&mut self, place: &InstancePath<'_>, message: String) {
        let mut path = String::new();
        place.write(&mut path);
        self.push(Problem::new(path, message));
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        if self.problems.len() < MOST_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn size(&mut self, size: Size, has: u64, noun: &str, place: &InstancePath<'_>) {
        if let Some(least) = size.least.filter(|least| has < *least) {
            self.report(place, format!("must have at least {}, has {has}", count(least, noun)));
        }
        if let Some(most) = size.most.filter(|most| has > *most) {
            self.report(place, format!("must have at most {}, has {has}", count(most, noun)));
        }
    }

    /// Checks the type of a value and whether it is one of the choices. Returns whether the other
    /// rules are worth looking at.
    fn fits(
        &mut self,
        node: &Node,
        kind: Kinds,
        place: &InstancePath<'_>,
        is: &dyn Fn(&Value) -> bool,
        shown: &dyn Fn() -> String,
    ) -> bool {
        let everything = self.scope == Scope::Everything;
        if let Some(choices) =
            node.choices.as_ref().filter(|choices| everything || !choices.decoded)
        {
            if !choices.values.iter().any(is) {
                self.report(place, must_be_one_of(&choices.values, &shown()));
                return !everything;
            }
        } else if everything && !node.kinds.take(kind) {
            let is_fraction = node.kinds.has_numbers() && kind == Kinds::NUMBER;
            let got = if is_fraction { shown() } else { kind.words() };
            self.report(place, format!("expected {}, got {got}", node.kinds.words()));
            return false;
        }
        true
    }

    fn number(&mut self, node: &Node, number: Number, place: &InstancePath<'_>) {
        let is = |choice: &Value| Number::of(choice) == Some(number);
        if !self.fits(node, Kinds::of_number(number), place, &is, &|| number.to_string()) {
            return;
        }
        let Some(rule) = &node.number else { return };
        if self.scope == Scope::Everything {
            if let Some((least, most)) = rule.range
                && (number < Number::Whole(least) || number > Number::Whole(most))
            {
                let message = match most {
                    i128::MAX => format!("expected an integer of at least {least}, got {number}"),
                    _ => format!("expected an integer from {least} to {most}, got {number}"),
                };
                self.report(place, message);
                return;
            }
            if rule.excluded.contains(&number) {
                self.report(place, format!("must not be {number}"));
            }
        }
        let limits = [
            (rule.minimum, "at least", rule.minimum.is_some_and(|limit| number < limit)),
            (
                rule.exclusive_minimum,
                "more than",
                rule.exclusive_minimum.is_some_and(|limit| number <= limit),
            ),
            (rule.maximum, "at most", rule.maximum.is_some_and(|limit| number > limit)),
            (
                rule.exclusive_maximum,
                "less than",
                rule.exclusive_maximum.is_some_and(|limit| number >= limit),
            ),
        ];
        for (limit, relation, violated) in limits {
            if let Some(limit) = limit.filter(|_| violated) {
                self.report(place, format!("must be {relation} {limit}, is {number}"));
            }
        }
        if let Some(step) = rule.multiple_of.filter(|step| !number.is_multiple_of(*step)) {
            self.report(place, format!("must be a multiple of {step}, is {number}"));
        }
    }

    fn text(&mut self, node: &Node, text: &str, place: &InstancePath<'_>) {
        let shown = || shorten(&Value::from(text).to_string());
        if !self.fits(node, Kinds::STRING, place, &|choice| choice == text, &shown) {
            return;
        }
        let Some(rule) = &node.text else { return };
        if !rule.size.is_any() {
            self.size(rule.size, text.chars().count() as u64, "character", place);
        }
        if let Some(pattern) = rule.pattern.as_ref().filter(|regex| !regex.is_match(text)) {
            self.report(place, format!("must match the pattern `{pattern}`"));
        }
    }
}

/// Where a value stands: the way back to the root, written down only for a violation.
#[derive(Clone, Copy)]
pub(crate) enum InstancePath<'a> {
    Root,
    Member(&'a InstancePath<'a>, &'a str),
    Item(&'a InstancePath<'a>, usize),
}

impl InstancePath<'_> {
    fn write(&self, path: &mut String) {
        match self {
            InstancePath::Root => {}
            InstancePath::Member(parent, key) => {
                parent.write(path);
                push_key(path, key);
            }
            InstancePath::Item(parent, index) => {
                parent.write(path);
                push_index(path, *index);
            }
        }
    }
}

/// One value that is about to be read, and the node that checks it.
struct PendingCheck<'r, 'c> {
    run: &'r mut Run<'c>,
    node: usize,
    place: &'r InstancePath<'r>,
    /// Whether decoding takes `null` for a member that is left out.
    takes_null: bool,
}

impl<'c> PendingCheck<'_, 'c> {
    fn rules(&self) -> &'c Node {
        &self.run.nodes[self.node]
    }

    /// Whether several nodes check this value, so that it is read once for each.
    fn is_read_again(&self) -> bool {
        let node = self.rules();
        node.also.iter().any(|(other, _)| self.run.concerns(*other))
            || (self.run.scope == Scope::Everything && !node.union.is_empty())
    }
}

impl<'de> DeserializeSeed<'de> for PendingCheck<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let PendingCheck { run, node, place, takes_null } = self;
        let walk = PendingCheck { run: &mut *run, node, place, takes_null };
        let outcome = if walk.is_read_again() {
            <&RawValue>::deserialize(deserializer).and_then(|text| {
                run.check_all(node, text.get(), place, takes_null).map_err(Error::custom)
            })
        } else {
            deserializer.deserialize_any(walk)
        };
        if outcome.is_err() && run.unreadable.is_none() {
            let mut path = String::new();
            place.write(&mut path);
            run.unreadable = Some(path);
        }
        outcome
    }
}

impl<'de> Visitor<'de> for PendingCheck<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        let is = |choice: &Value| *choice == value;
        self.run.fits(self.rules(), Kinds::BOOLEAN, self.place, &is, &|| value.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.run.number(self.rules(), Number::Whole(value.into()), self.place);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.run.number(self.rules(), Number::Whole(value.into()), self.place);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.run.number(self.rules(), Number::Real(value), self.place);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.run.text(self.rules(), value, self.place);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        if !(self.takes_null && self.run.scope == Scope::Everything) {
            let shown = || "null".to_owned();
            self.run.fits(self.rules(), Kinds::NULL, self.place, &Value::is_null, &shown);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let node = self.rules();
        let shown = || Kinds::ARRAY.words();
        match (self.run.fits(node, Kinds::ARRAY, self.place, &|_| false, &shown), &node.array) {
            (true, Some(rule)) => walk_array(self.run, rule, items, self.place),
            _ => {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(())
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let node = self.rules();
        let first: Option<Key<'de>> = members.next_key()?;
        if first.as_ref().is_some_and(|key| key.0 == NUMBER_TOKEN) {
            let text: String = members.next_value()?;
            if let Some(number) = Number::parse(&text) {
                self.run.number(node, number, self.place);
            }
            return Ok(());
        }
        let shown = || Kinds::OBJECT.words();
        match (self.run.fits(node, Kinds::OBJECT, self.place, &|_| false, &shown), &node.object) {
            (true, Some(rule)) => walk_object(self.run, rule, first, members, self.place),
            _ => {
                if first.is_some() {
                    members.next_value::<IgnoredAny>()?;
                    while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                }
                Ok(())
            }
        }
    }
}

fn walk_array<'de, A: SeqAccess<'de>>(
    run: &mut Run<'_>,
    rule: &ArrayRule,
    mut items: A,
    place: &InstancePath<'_>,
) -> Result<(), A::Error> {
    let mut seen = HashSet::new();
    let mut twice = None;
    let mut length = 0;
    loop {
        let place = &InstancePath::Item(place, length);
        let node = rule.node_of(length).filter(|node| run.concerns(*node));
        let more = if rule.unique {
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
            items.next_element_seed(PendingCheck { run, node, place, takes_null: false })?.is_some()
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
            &InstancePath::Item(place, index),
            "must not be there twice: all items must differ".to_owned(),
        );
    }
    if !rule.is_tuple || run.scope == Scope::Everything {
        run.size(rule.size, length as u64, "item", place);
    }
    Ok(())
}

fn walk_object<'de, A: MapAccess<'de>>(
    run: &mut Run<'_>,
    rule: &ObjectRule,
    first: Option<Key<'de>>,
    mut members: A,
    place: &InstancePath<'_>,
) -> Result<(), A::Error> {
    let mut length = 0;
    let mut next = first;
    // The properties that are there, noted only to explain.
    let mut present: Vec<Cow<'de, str>> = Vec::new();
    while let Some(Key(key)) = next {
        let member = &InstancePath::Member(place, &key);
        let property = rule.property(&key);
        if let Some(names) = rule.names {
            run.text(&run.nodes[names], &key, member);
        }
        if run.scope == Scope::Everything && property.is_none() {
            refuse_unknown(run, rule, &key, place);
        }
        if rule.patterns.is_empty() {
            let node = property.map_or(rule.additional, |property| Some(property.node));
            let takes_null = property.is_some_and(|property| property.takes_null);
            match node.filter(|node| run.concerns(*node)) {
                Some(node) => {
                    members.next_value_seed(PendingCheck {
                        run,
                        node,
                        place: member,
                        takes_null,
                    })?;
                }
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        } else {
            let text: &RawValue = members.next_value()?;
            for node in rule.nodes_of(&key) {
                if run.concerns(node) {
                    run.check(node, text.get(), member).map_err(Error::custom)?;
                }
            }
        }
        if run.scope == Scope::Everything && property.is_some() {
            if present.contains(&key) {
                run.report(member, "is given twice".to_owned());
            } else {
                present.push(key);
            }
        }
        length += 1;
        next = members.next_key()?;
    }
    if run.scope == Scope::Everything {
        for index in &rule.required {
            let name = &*rule.properties[*index].name;
            if !present.iter().any(|key| **key == *name) {
                run.report(&InstancePath::Member(place, name), "is missing".to_owned());
            }
        }
    }
    run.size(rule.size, length, "member", place);
    Ok(())
}

/// Refuses a member that is no property, if the object is closed.
fn refuse_unknown(run: &mut Run<'_>, rule: &ObjectRule, key: &str, place: &InstancePath<'_>) {
    if !rule.is_closed || rule.patterns.iter().any(|(pattern, _)| pattern.is_match(key)) {
        return;
    }
    let properties = rule.properties.iter().map(|property| format!("`{}`", property.name));
    let patterns = rule.patterns.iter().map(|(pattern, _)| format!("names that match `{pattern}`"));
    let expected: Vec<String> = properties.chain(patterns).collect();
    let expected = match &expected[..] {
        [] => "none is expected".to_owned(),
        [only] => format!("expected {only}"),
        several => format!("expected one of {}", several.join(", ")),
    };
    run.report(place, format!("unknown field `{}`, {expected}", shorten(key)));
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

/// Returns the same text for equal values, whatever their spacing, escapes and order of members are.
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
