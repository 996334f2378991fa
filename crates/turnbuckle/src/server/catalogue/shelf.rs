//! Owns the offers of one kind at one moment: their order, their names, which of them are enabled,
//! and the pages of their list. Does not own what an offer is, nor who may see it.

use std::{
    collections::HashMap,
    ops::Deref,
    panic::Location,
    sync::{Arc, OnceLock},
};

use turnbuckle_types::{Raw, Revision};

use super::item::Item;
use crate::server::extract::States;

/// One text a revision.
type Texts = [OnceLock<Raw>; Revision::ALL.len()];

/// One thing that is offered. It is the same in every snapshot until it is replaced.
pub(crate) struct Entry<T> {
    /// Its place among its kind. Numbers start at one, are given out in order and never twice.
    pub(crate) number: u64,
    item: T,
    /// As it is listed.
    texts: Texts,
}

impl<T> Deref for Entry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Item> Entry<T> {
    fn new(number: u64, item: T) -> Arc<Entry<T>> {
        Arc::new(Entry { number, item, texts: Texts::default() })
    }

    /// As it is listed in this revision.
    pub(crate) fn text(&self, revision: Revision) -> &Raw {
        self.texts[index(revision)].get_or_init(|| self.item.text(revision))
    }
}

/// Whether something that is registered is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

pub(super) struct Slot<T> {
    pub(super) entry: Arc<Entry<T>>,
    pub(super) switch: Switch,
}

/// The offers of one kind.
pub(crate) struct Shelf<T> {
    /// Invariant: sorted by number.
    slots: Vec<Slot<T>>,
    /// Invariant: the number of every name that is taken, also of what is disabled.
    names: HashMap<Arc<str>, u64>,
    next: u64,
    /// What is enabled, in order. Made when everything is in its place.
    listed: Vec<Arc<Entry<T>>>,
    /// What is enabled, by name.
    by_name: HashMap<Arc<str>, Arc<Entry<T>>>,
    /// Pages that are the same for everyone.
    pages: Vec<Texts>,
    has_rules: bool,
}

impl<T: Item> Shelf<T> {
    pub(super) fn new() -> Shelf<T> {
        Shelf {
            slots: Vec::new(),
            names: HashMap::new(),
            next: 1,
            listed: Vec::new(),
            by_name: HashMap::new(),
            // An empty list has a page too.
            pages: vec![Texts::default()],
            has_rules: false,
        }
    }

    /// Puts something behind all others.
    pub(super) fn push(&mut self, item: T, states: &States, problems: &mut Vec<String>) -> u64 {
        let item = item.checked(states, problems);
        self.check(&item, None, problems);
        let number = self.next;
        self.next += 1;
        self.names.insert(item.name().into(), number);
        self.slots.push(Slot { entry: Entry::new(number, item), switch: Switch::On });
        number
    }

    /// Puts something in the place of another, which must be there.
    pub(super) fn replace(
        &mut self,
        number: u64,
        mut item: T,
        states: &States,
        problems: &mut Vec<String>,
    ) {
        let Some(at) = self.position(number) else { return };
        item.succeed(&self.slots[at].entry);
        let item = item.checked(states, problems);
        self.check(&item, Some(number), problems);
        self.names.remove(self.slots[at].entry.name());
        self.names.insert(item.name().into(), number);
        self.slots[at].entry = Entry::new(number, item);
    }

    pub(super) fn remove(&mut self, number: u64) {
        if let Some(at) = self.position(number) {
            let slot = self.slots.remove(at);
            self.names.remove(slot.entry.name());
        }
    }

    pub(super) fn switch(&mut self, number: u64, switch: Switch) {
        if let Some(at) = self.position(number) {
            self.slots[at].switch = switch;
        }
    }

    /// Makes what follows from what is there now.
    pub(super) fn settle(&mut self, page_size: usize) {
        let on = self.slots.iter().filter(|slot| slot.switch == Switch::On);
        self.listed = on.map(|slot| slot.entry.clone()).collect();
        self.has_rules = self.listed.iter().any(|entry| !entry.rules().is_empty());
        let pages = self.listed.len().div_ceil(page_size).max(1);
        self.pages = std::iter::repeat_with(Texts::default).take(pages).collect();
        let by_number: HashMap<u64, &Arc<Entry<T>>> =
            self.listed.iter().map(|entry| (entry.number, entry)).collect();
        self.by_name = (self.names.iter())
            .filter_map(|(name, number)| {
                by_number.get(number).map(|entry| (name.clone(), Arc::clone(entry)))
            })
            .collect();
    }

    /// What is enabled and has this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Entry<T>>> {
        self.by_name.get(name)
    }

    /// What is registered under this name, enabled or not.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.names.get(name).copied()
    }

    pub(super) fn slot(&self, number: u64) -> Option<&Slot<T>> {
        self.position(number).map(|at| &self.slots[at])
    }

    /// Everything that is registered, enabled or not, in order.
    pub(super) fn slots(&self) -> &[Slot<T>] {
        &self.slots
    }

    /// What is enabled, in order.
    pub(crate) fn listed(&self) -> &[Arc<Entry<T>>] {
        &self.listed
    }

    /// Where among what is enabled that begins which comes after a number.
    pub(crate) fn after(&self, number: u64) -> usize {
        self.listed.partition_point(|entry| entry.number <= number)
    }

    /// Whether it takes a rule to tell who sees something of it.
    pub(crate) fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// The page with this number, made once for each revision.
    pub(crate) fn page(&self, page: usize, revision: Revision, make: impl FnOnce() -> Raw) -> Raw {
        match self.pages.get(page) {
            Some(texts) => texts[index(revision)].get_or_init(make).clone(),
            None => make(),
        }
    }

    /// Whether both are listed alike, for everyone.
    pub(super) fn is_listed_like(&self, other: &Shelf<T>) -> bool {
        let alike = |(one, other): (&Arc<Entry<T>>, &Arc<Entry<T>>)| {
            Arc::ptr_eq(one, other) || one.number == other.number && one.is_listed_like(other)
        };
        self.listed.len() == other.listed.len() && self.listed.iter().zip(&other.listed).all(alike)
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.entry.number).ok()
    }

    /// Whether something can stand beside all others, but the one whose place it takes.
    fn check(&self, item: &T, replaced: Option<u64>, problems: &mut Vec<String>) {
        let taken = self.number(item.name()).filter(|number| Some(*number) != replaced);
        if let Some(before) = taken.and_then(|number| self.slot(number)) {
            problems.push(format!(
                "there are two {}s named `{}`: one{}, one{}",
                T::KIND.word(),
                item.name(),
                at(before.entry.place()),
                at(item.place()),
            ));
            return;
        }
        let others = self.slots.iter().filter(|slot| Some(slot.entry.number) != replaced);
        problems.extend(others.filter_map(|slot| item.clash(&slot.entry)));
    }
}

impl<T> Clone for Shelf<T> {
    /// What follows from the slots is made again when they have changed.
    fn clone(&self) -> Shelf<T> {
        let slot = |slot: &Slot<T>| Slot { entry: slot.entry.clone(), switch: slot.switch };
        Shelf {
            slots: self.slots.iter().map(slot).collect(),
            names: self.names.clone(),
            next: self.next,
            listed: Vec::new(),
            by_name: HashMap::new(),
            pages: Vec::new(),
            has_rules: false,
        }
    }
}

/// Where something was registered, as sentences have it.
pub(super) fn at(place: Option<&'static Location<'static>>) -> String {
    place.map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()))
}

fn index(revision: Revision) -> usize {
    Revision::ALL.iter().position(|known| *known == revision).unwrap_or_default()
}
