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

/// One text per revision, each made when it is first needed.
#[derive(Default)]
struct Texts([OnceLock<Raw>; Revision::ALL.len()]);

impl Texts {
    fn text(&self, revision: Revision, make: &dyn Fn() -> Raw) -> &Raw {
        let index = Revision::ALL.iter().position(|known| *known == revision);
        self.0[index.unwrap_or_default()].get_or_init(make)
    }
}

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
        self.texts.text(revision, &|| self.item.text(revision))
    }
}

/// Whether an item is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

/// The item with a name. It has no type parameter, so that one map is compiled for all kinds of items.
#[derive(Clone, Copy)]
struct NamedItem {
    number: u64,
    /// The index in `listed`, if it is enabled. Set by `settle`.
    listed: Option<usize>,
}

impl NamedItem {
    fn new(number: u64) -> NamedItem {
        NamedItem { number, listed: None }
    }
}

pub(super) struct RegisteredItem<T> {
    pub(super) entry: Arc<Entry<T>>,
    pub(super) switch: Switch,
}

/// The items of one kind.
pub(crate) struct Section<T> {
    /// Invariant: sorted by number.
    slots: Vec<RegisteredItem<T>>,
    /// Invariant: all items by name, also disabled ones.
    names: HashMap<Arc<str>, NamedItem>,
    next: u64,
    /// The enabled items, in order. Set by `settle`.
    listed: Vec<Arc<Entry<T>>>,
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
        self.names.insert(item.name().into(), NamedItem::new(number));
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
        self.names.insert(item.name().into(), NamedItem::new(number));
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
        for named in self.names.values_mut() {
            let position = |entry: &Arc<Entry<T>>| entry.number;
            named.listed = self.listed.binary_search_by_key(&named.number, position).ok();
        }
    }

    /// Returns the enabled item with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Entry<T>>> {
        self.listed.get(self.names.get(name)?.listed?)
    }

    /// Returns the number of the item with this name, enabled or not.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.names.get(name).map(|named| named.number)
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
    pub(crate) fn page(&self, page: usize, revision: Revision, make: &dyn Fn() -> Raw) -> Raw {
        match self.pages.get(page) {
            Some(texts) => texts.text(revision, make).clone(),
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
            pages: Vec::new(),
            has_rules: false,
        }
    }
}

/// Returns the place of a registration for messages.
pub(super) fn at(place: Option<&'static Location<'static>>) -> String {
    place.map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()))
}
