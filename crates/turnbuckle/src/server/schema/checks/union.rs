//! Says why a value fits no branch of a union.

use super::{
    kinds::Kinds,
    walk::{InstancePath, Run},
};
use crate::server::schema::{
    checks::{Applies, Node},
    problem::{Problem, must_be_one_of, one_of, shorten},
};
use serde_json::Value;

/// What tells a branch from the others.
enum Tag<'c> {
    /// The one member of an externally tagged variant.
    Key(&'c str),
    /// A member with a fixed value.
    Member(&'c str, &'c Value),
}

impl Tag<'_> {
    fn is_on(&self, value: &Value) -> bool {
        match self {
            Tag::Key(key) => value.get(key).is_some(),
            Tag::Member(name, fixed) => value.get(name) == Some(fixed),
        }
    }
}

/// A branch that does not fit.
struct Branch<'c> {
    kinds: Kinds,
    choices: &'c [Value],
    tag: Option<Tag<'c>>,
    problems: Vec<Problem>,
}

impl Run<'_> {
    /// Reports what is wrong with a value that fits none of the branches: by the branch that is
    /// meant, if its tag or its type shows which one that is.
    pub(crate) fn union(
        &mut self,
        node: &Node,
        text: &str,
        place: &InstancePath<'_>,
    ) -> serde_json::Result<()> {
        const ANY_FORM: &str = "must match one of the forms that its schema lists";
        let mut branches = Vec::new();
        for branch in &node.union {
            match self.attempt(*branch, text, place)? {
                Some(problems) if problems.is_empty() => return Ok(()),
                Some(problems) => branches.push(self.branch(*branch, problems)),
                None => {
                    self.report(place, ANY_FORM.to_owned());
                    return Ok(());
                }
            }
        }
        let value: Value = serde_json::from_str(text)?;
        let kind = Kinds::of_value(&value);
        let got = || match kind {
            Kinds::ARRAY | Kinds::OBJECT => kind.words(),
            _ => shorten(text),
        };
        let is_meant =
            |branch: &&Branch<'_>| branch.tag.as_ref().is_some_and(|tag| tag.is_on(&value));
        let fitting: Vec<&Branch<'_>> =
            branches.iter().filter(|branch| branch.kinds.take(kind)).collect();
        let meant: Vec<&Branch<'_>> = fitting.iter().copied().filter(is_meant).collect();
        if let [only] = &meant[..] {
            only.problems.iter().for_each(|problem| self.push(problem.clone()));
        } else if branches.iter().any(|branch| matches!(branch.tag, Some(Tag::Key(_)))) {
            self.report(place, external(&branches, &value, &got()));
        } else if fitting.is_empty() {
            let kinds = branches.iter().fold(Kinds::default(), |kinds, one| kinds.or(one.kinds));
            self.report(place, format!("expected {}, got {}", kinds.words(), kind.words()));
        } else if let [only] = &fitting[..] {
            only.problems.iter().for_each(|problem| self.push(problem.clone()));
        } else if let Some((name, fixed)) = internal(&fitting) {
            let place = &InstancePath::Member(place, name);
            match value.get(name) {
                None => self.report(place, "is missing".to_owned()),
                Some(other) => {
                    let message = must_be_one_of(&fixed, &shorten(&other.to_string()));
                    self.report(place, message);
                }
            }
        } else {
            self.report(place, format!("{ANY_FORM}, is {}", got()));
        }
        Ok(())
    }
}

impl<'c> Run<'c> {
    fn branch(&self, number: usize, problems: Vec<Problem>) -> Branch<'c> {
        let nodes = self.nodes;
        let own = &nodes[number];
        let also = own.also.iter().filter(|(_, applies)| *applies == Applies::Always);
        let all: Vec<&Node> =
            std::iter::once(own).chain(also.map(|(other, _)| &nodes[*other])).collect();
        let kinds = all.iter().map(|node| node.kinds).find(|kinds| *kinds != Kinds::default());
        let choices = all.iter().find_map(|node| node.choices.as_ref());
        Branch {
            kinds: kinds.unwrap_or_default(),
            choices: choices.map_or(&[], |choices| &choices.values),
            tag: all.iter().find_map(|node| tag(nodes, node)),
            problems,
        }
    }
}

fn tag<'c>(nodes: &'c [Node], node: &'c Node) -> Option<Tag<'c>> {
    let object = node.object.as_ref()?;
    let mut required = object.required.iter().map(|index| &object.properties[*index]);
    let fixed = required.find_map(|property| {
        let choices = nodes[property.node].choices.as_ref()?;
        match &*choices.values {
            [only] => Some(Tag::Member(&property.name, only)),
            _ => None,
        }
    });
    fixed.or_else(|| match (&object.properties[..], &object.required[..]) {
        ([only], [_]) if object.is_closed => Some(Tag::Key(&only.name)),
        _ => None,
    })
}

/// The member that tells all of these branches apart, and its values.
fn internal<'c>(branches: &[&Branch<'c>]) -> Option<(&'c str, Vec<Value>)> {
    let tags = branches.iter().map(|branch| match &branch.tag {
        Some(Tag::Member(name, fixed)) => Some((*name, (*fixed).clone())),
        _ => None,
    });
    let (names, fixed): (Vec<&str>, Vec<Value>) =
        tags.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let first = *names.first()?;
    names.iter().all(|name| *name == first).then_some((first, fixed))
}

/// The sentence on a value that is no variant of an externally tagged enum.
fn external(branches: &[Branch<'_>], value: &Value, got: &str) -> String {
    let mut forms = Vec::new();
    for branch in branches {
        forms.extend(branch.choices.iter().map(ToString::to_string));
        if let Some(Tag::Key(key)) = branch.tag {
            let form = format!("{{{}: …}}", Value::from(key));
            if value == key {
                return format!("expected an object {form}, got a string");
            }
            forms.push(form);
        }
    }
    format!("must be {}, is {got}", one_of(forms))
}
