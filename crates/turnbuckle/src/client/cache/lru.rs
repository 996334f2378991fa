//! Owns a map that is bounded in number and in weight, and forgets what was used longest ago.
//! Does not own what is in it.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

pub(super) struct Lru<K, V> {
    entries: HashMap<K, Slot<V>>,
    /// Invariant: the sum of the weights of all slots.
    weight: usize,
    uses: u64,
    bounds: Bounds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) entries: usize,
    pub(super) weight: usize,
}

struct Slot<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    pub(super) fn new(bounds: Bounds) -> Lru<K, V> {
        Lru { entries: HashMap::new(), weight: 0, uses: 0, bounds }
    }

    /// Uses it.
    pub(super) fn get<Q>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let slot = self.entries.get_mut(key)?;
        self.uses += 1;
        slot.used = self.uses;
        Some(&slot.value)
    }

    /// Looks at it without using it.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|slot| &slot.value)
    }

    /// What is heavier than everything together may be is not taken at all.
    pub(super) fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        if weight > self.bounds.weight || self.bounds.entries == 0 {
            return;
        }
        while self.entries.len() >= self.bounds.entries || self.weight + weight > self.bounds.weight
        {
            if !self.drop_oldest() {
                break;
            }
        }
        self.uses += 1;
        self.weight += weight;
        self.entries.insert(key, Slot { value, weight, used: self.uses });
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Some(slot) = self.entries.remove(key) {
            self.weight -= slot.weight;
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        let weight = &mut self.weight;
        self.entries.retain(|key, slot| {
            let kept = keep(key);
            if !kept {
                *weight -= slot.weight;
            }
            kept
        });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.weight = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A look at all of them: there are few, and whoever inserts has just waited for a server.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.entries.iter().min_by_key(|(_, slot)| slot.used);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return false };
        self.remove(&key);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let mut lru = Lru::new(Bounds { entries: 2, weight: 10 });
        lru.insert("a", 1, 1);
        lru.insert("b", 2, 1);
        assert_eq!(lru.get("a"), Some(&1));
        lru.insert("c", 3, 1);
        assert_eq!((lru.peek(&"a"), lru.peek(&"b"), lru.peek(&"c")), (Some(&1), None, Some(&3)));
        lru.insert("d", 4, 10);
        assert_eq!((lru.len(), lru.peek(&"d")), (1, Some(&4)), "by weight, too");
        lru.insert("d", 5, 11);
        assert_eq!(lru.len(), 0, "too heavy, and what it replaces is gone");
        lru.insert("e", 6, 10);
        lru.retain(|_| false);
        lru.insert("f", 7, 10);
        assert_eq!(lru.peek(&"f"), Some(&7), "what is gone weighs nothing");
    }
}
