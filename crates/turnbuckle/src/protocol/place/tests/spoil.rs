//! Owns JSON texts with something wrong in them. Does not own what is said of them.

use serde_json::{Value, value::RawValue};
use turnbuckle_types::{Named, Raw};

use super::types::OTHERS;

/// A JSON value whose members have an order, and may be there twice.
#[derive(Clone)]
enum Tree {
    Scalar(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

fn tree(text: &str) -> Tree {
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
        return Tree::Array(items.iter().map(|item| tree(item.get())).collect());
    }
    match serde_json::from_str::<Named<Raw>>(text) {
        Ok(members) => Tree::Object(
            members.iter().map(|(name, value)| (name.to_string(), tree(value.as_str()))).collect(),
        ),
        Err(_) => Tree::Scalar(text.to_owned()),
    }
}

/// Choices that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

impl Tree {
    fn size(&self) -> usize {
        1 + match self {
            Tree::Scalar(_) => 0,
            Tree::Array(items) => items.iter().map(Tree::size).sum(),
            Tree::Object(members) => members.iter().map(|(_, value)| value.size()).sum::<usize>(),
        }
    }

    /// The value of that number, counted from the root.
    fn at(&mut self, mut number: usize) -> Option<&mut Tree> {
        if number == 0 {
            return Some(self);
        }
        number -= 1;
        let inner: Vec<&mut Tree> = match self {
            Tree::Scalar(_) => Vec::new(),
            Tree::Array(items) => items.iter_mut().collect(),
            Tree::Object(members) => members.iter_mut().map(|(_, value)| value).collect(),
        };
        for tree in inner {
            let size = tree.size();
            if number < size {
                return tree.at(number);
            }
            number -= size;
        }
        None
    }

    fn shuffle(&mut self, dice: &mut Dice) {
        match self {
            Tree::Scalar(_) => {}
            Tree::Array(items) => items.iter_mut().for_each(|item| item.shuffle(dice)),
            Tree::Object(members) => {
                for index in (1..members.len()).rev() {
                    members.swap(index, dice.below(index + 1));
                }
                members.iter_mut().for_each(|(_, value)| value.shuffle(dice));
            }
        }
    }

    fn spoil(&mut self, dice: &mut Dice) {
        let other = tree(OTHERS[dice.below(OTHERS.len())]);
        match self {
            Tree::Array(items) if !items.is_empty() && dice.one_in(2) => {
                let index = dice.below(items.len());
                match dice.below(2) {
                    0 => drop(items.remove(index)),
                    _ => items.insert(index, other),
                }
            }
            Tree::Object(members) if !members.is_empty() && dice.one_in(2) => {
                let index = dice.below(members.len());
                match dice.below(4) {
                    0 => drop(members.remove(index)),
                    1 => members.insert(index, ("stranger".to_owned(), other)),
                    2 => members.insert(0, members[index].clone()),
                    _ => members[index].0 = "70000".to_owned(),
                }
            }
            tree => *tree = other,
        }
    }

    fn write(&self, dice: &mut Dice, out: &mut String) {
        let space = |dice: &mut Dice, out: &mut String| match dice.below(8) {
            0 => out.push(' '),
            1 => out.push_str("\n \t"),
            _ => {}
        };
        space(dice, out);
        let list = |dice: &mut Dice, out: &mut String, index: usize| {
            if index > 0 {
                out.push(',');
            }
            space(dice, out);
        };
        match self {
            Tree::Scalar(text) => out.push_str(text),
            Tree::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    list(dice, out, index);
                    item.write(dice, out);
                }
                out.push(']');
            }
            Tree::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    list(dice, out, index);
                    out.push_str(&Value::from(&**name).to_string());
                    space(dice, out);
                    out.push(':');
                    value.write(dice, out);
                }
                out.push('}');
            }
        }
        space(dice, out);
    }
}

/// A text with that many things wrong in it.
pub(super) fn spoilt(text: &str, seed: u64, wrongs: usize) -> String {
    let mut dice = Dice(seed);
    let mut tree = tree(text);
    if dice.one_in(2) {
        tree.shuffle(&mut dice);
    }
    for _ in 0..wrongs {
        let number = dice.below(tree.size());
        if let Some(value) = tree.at(number) {
            value.spoil(&mut dice);
        }
    }
    let mut text = String::new();
    tree.write(&mut dice, &mut text);
    text
}

/// One member of an object, as an object.
pub(super) fn one_of(text: &str, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut alone = tree(text);
    if let Tree::Object(members) = &mut alone {
        let chosen = dice.below(members.len());
        *members = vec![members.swap_remove(chosen)];
    }
    let mut text = String::new();
    alone.write(&mut dice, &mut text);
    text
}
