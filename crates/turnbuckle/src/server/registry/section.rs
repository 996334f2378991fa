//! The items of one kind: their order, their names, which of them are enabled, and the cached pages
//! of their list.

use std::{
    collections::HashMap,
    ops::Deref,
    panic::Location,
    sync::{Arc, OnceLock},
};

use turnbuckle_types::{Raw, Revision};

use super::definition::Definition;
use crate::server::handler::extract::States;

/// One text per revision.
type Texts = [OnceLock<Raw>; Revision::ALL.len()];

/// An item of the registry. Snapshots share it until it is replaced.
pub(crate) struct Entry<T> {
    /// The position among its kind. Numbers start at one and are never reused.
    pub(crate) number: u64,
    item: T,
    /// The description in lists.
    texts: Texts,
}

impl<T> Deref for Entry<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Definition> Entry<T> {
    fn new(number: u64, item: T) -> Arc<Entry<T>> {
        Arc::new(Entry { number, item, texts: Texts::default() })
    }

    /// Returns the description in the lists of this revision.
    pub(crate) fn text(&self, revision: Revision) -> &Raw {
        self.texts[index(revision)].get_or_init(|| self.item.text(revision))
    }
}

/// Whether an item is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

pub(super) struct RegisteredItem<T> {
    pub(super) entry: Arc<Entry<T>>,
    pub(super) switch: Switch,
}

/// The items of one kind.
pub(crate) struct Section<T> {
    /// Invariant: sorted by number.
    slots: Vec<RegisteredItem<T>>,
    /// Invariant: the numbers of all items by name, also of disabled ones.
    names: HashMap<Arc<str>, u64>,
    next: u64,
    /// The enabled items, in order. Set by `settle`.
    listed: Vec<Arc<Entry<T>>>,
    /// The enabled items, by name.
    by_name: HashMap<Arc<str>, Arc<Entry<T>>>,
    /// Pages that are the same for all callers.
    pages: Vec<Texts>,
    has_rules: bool,
}

impl<T: Definition> Section<T> {
    pub(super) fn new() -> Section<T> {
        Section {
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

    /// Adds an item after all others.
    pub(super) fn push(&mut self, item: T, states: &States, problems: &mut Vec<String>) -> u64 {
        let item = item.checked(states, problems);
        self.check(&item, None, problems);
        let number = self.next;
        self.next += 1;
        self.names.insert(item.name().into(), number);
        self.slots.push(RegisteredItem { entry: Entry::new(number, item), switch: Switch::On });
        number
    }

    /// Replaces an item, which must exist.
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

    /// Rebuilds the lists and indexes after a change.
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

    /// Returns the enabled item with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Entry<T>>> {
        self.by_name.get(name)
    }

    /// Returns the number of the item with this name, enabled or not.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.names.get(name).copied()
    }

    pub(super) fn registered_item(&self, number: u64) -> Option<&RegisteredItem<T>> {
        self.position(number).map(|at| &self.slots[at])
    }

    /// Returns all items, enabled or not, in order.
    pub(super) fn registered(&self) -> &[RegisteredItem<T>] {
        &self.slots
    }

    /// Returns the enabled items, in order.
    pub(crate) fn listed(&self) -> &[Arc<Entry<T>>] {
        &self.listed
    }

    /// Returns the index of the first enabled item after a number.
    pub(crate) fn after(&self, number: u64) -> usize {
        self.listed.partition_point(|entry| entry.number <= number)
    }

    /// Returns whether a rule decides who may see some of the items.
    pub(crate) fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// Returns the page with this number, made once for each revision.
    pub(crate) fn page(&self, page: usize, revision: Revision, make: impl FnOnce() -> Raw) -> Raw {
        match self.pages.get(page) {
            Some(texts) => texts[index(revision)].get_or_init(make).clone(),
            None => make(),
        }
    }

    /// Returns whether the lists of both are equal for all callers.
    pub(super) fn is_listed_like(&self, other: &Section<T>) -> bool {
        let alike = |(one, other): (&Arc<Entry<T>>, &Arc<Entry<T>>)| {
            Arc::ptr_eq(one, other) || one.number == other.number && one.is_listed_like(other)
        };
        self.listed.len() == other.listed.len() && self.listed.iter().zip(&other.listed).all(alike)
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.slots.binary_search_by_key(&number, |slot| slot.entry.number).ok()
    }

    /// Checks an item against all others but the one that it replaces.
    fn check(&self, item: &T, replaced: Option<u64>, problems: &mut Vec<String>) {
        let taken = self.number(item.name()).filter(|number| Some(*number) != replaced);
        if let Some(before) = taken.and_then(|number| self.registered_item(number)) {
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

impl<T> Clone for Section<T> {
    /// Copies the items; `settle` rebuilds the rest.
    fn clone(&self) -> Section<T> {
        let slot = |slot: &RegisteredItem<T>| RegisteredItem {
            entry: slot.entry.clone(),
            switch: slot.switch,
        };
        Section {
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

/// Returns the place of a registration for messages.
pub(super) fn at(place: Option<&'static Location<'static>>) -> String {
    place.map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()))
}

fn index(revision: Revision) -> usize {
    Revision::ALL.iter().position(|known| *known == revision).unwrap_or_default()
}
