//! Remembering which proofs were used, in bounded memory, so that no key's owner can keep others
//! out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, PoisonError},
};

use crate::jose::sha256;

/// How many keys that are used up to their share there is room for.
const SHARES: usize = 16;

/// The proofs that were used. Each key has its share of the room. When it has used that up, its oldest
/// proof is forgotten and none of that key that is as old is taken any more: what is not remembered
/// can't be used again. When all of the room is used up, that happens to the key that has most of it.
pub(crate) struct Replays {
    most: usize,
    share: usize,
    used: Mutex<Used>,
}

/// A digest of what stands for a key or a proof.
type ProofDigest = [u8; 16];

#[derive(Default)]
struct Used {
    /// Invariant: at most `most`, at most `share` of one key, and each later than its key's horizon.
    proofs: BTreeSet<(ProofDigest, u64, ProofDigest)>,
    /// The same, the oldest first.
    ages: BTreeSet<(u64, ProofDigest, ProofDigest)>,
    /// Those that have a proof or a horizon.
    keys: BTreeMap<ProofDigest, Key>,
    /// Those that have a proof, the one with the fewest first.
    sizes: BTreeSet<(usize, ProofDigest)>,
    /// Those that have a horizon, the earliest first. Invariant: at most `most`.
    horizons: BTreeSet<(u64, ProofDigest)>,
}

#[derive(Clone, Copy, Default)]
struct Key {
    proofs: usize,
    /// No proof from then or before is taken.
    horizon: Option<u64>,
}

impl Replays {
    pub(crate) fn new(most: usize) -> Replays {
        let most = most.max(1);
        Replays { most, share: most.div_ceil(SHARES), used: Mutex::default() }
    }

    /// Whether this is the first time. `oldest` is the time before which no proof is taken anyway.
    pub(crate) fn first_time(&self, thumbprint: &str, id: &str, issued: u64, oldest: u64) -> bool {
        let [key, id] = [thumbprint, id].map(digest);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.forget_before(oldest);
        let known = used.keys.get(&key).copied().unwrap_or_default();
        if known.horizon.is_some_and(|horizon| issued <= horizon)
            || used.proofs.contains(&(key, issued, id))
        {
            return false;
        }
        let crowded = if known.proofs >= self.share {
            Some(key)
        } else if used.proofs.len() >= self.most {
            match used.sizes.last() {
                Some((2.., largest)) => Some(*largest),
                // Everyone has one: who has none must wait.
                _ if known.proofs == 0 => return false,
                _ => Some(key),
            }
        } else {
            None
        };
        if let Some(crowded) = crowded
            && !used.forget_oldest_of(crowded, self.most)
        {
            return false;
        }
        let horizon = used.keys.get(&key).and_then(|key| key.horizon);
        // One that is as old as what was just forgotten is remembered by that.
        if horizon.is_none_or(|horizon| issued > horizon) {
            used.insert(key, issued, id);
        }
        true
    }
}

impl Used {
    fn insert(&mut self, key: ProofDigest, issued: u64, id: ProofDigest) {
        if self.proofs.insert((key, issued, id)) {
            self.ages.insert((issued, key, id));
            self.resize(key, |proofs| proofs + 1);
        }
    }

    fn remove(&mut self, key: ProofDigest, issued: u64, id: ProofDigest) {
        if self.proofs.remove(&(key, issued, id)) {
            self.ages.remove(&(issued, key, id));
            self.resize(key, |proofs| proofs - 1);
        }
    }

    fn resize(&mut self, key: ProofDigest, change: impl FnOnce(usize) -> usize) {
        let known = self.keys.entry(key).or_default();
        self.sizes.remove(&(known.proofs, key));
        known.proofs = change(known.proofs);
        if known.proofs > 0 {
            self.sizes.insert((known.proofs, key));
        } else if known.horizon.is_none() {
            self.keys.remove(&key);
        }
    }

    fn forget_before(&mut self, oldest: u64) {
        while let Some(&(issued, key, id)) = self.ages.first()
            && issued < oldest
        {
            self.remove(key, issued, id);
        }
        while let Some(&(horizon, key)) = self.horizons.first()
            && horizon < oldest
        {
            self.horizons.pop_first();
            if let Some(known) = self.keys.get_mut(&key) {
                known.horizon = None;
            }
            self.resize(key, |proofs| proofs);
        }
    }

    /// Forgets all of this key's proofs that are as old as its oldest. Not if there is no room to
    /// remember that.
    fn forget_oldest_of(&mut self, key: ProofDigest, most: usize) -> bool {
        let start = (key, 0, ProofDigest::default());
        let first = |used: &Used| used.proofs.range(start..).next().copied();
        let Some((_, forgotten, _)) = first(self).filter(|(of, _, _)| *of == key) else {
            return false;
        };
        let earlier = self.keys.get(&key).and_then(|known| known.horizon);
        if earlier.is_none() && self.horizons.len() >= most {
            return false;
        }
        if let Some(earlier) = earlier {
            self.horizons.remove(&(earlier, key));
        }
        self.horizons.insert((forgotten, key));
        self.keys.entry(key).or_default().horizon = Some(forgotten);
        while let Some((of, issued, id)) = first(self)
            && of == key
            && issued <= forgotten
        {
            self.remove(key, issued, id);
        }
        true
    }
}

fn digest(text: &str) -> ProofDigest {
    let mut short = ProofDigest::default();
    short.copy_from_slice(&sha256(text).as_ref()[..16]);
    short
}

impl fmt::Debug for Replays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replays").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it was a first time, for proofs that are never too old.
    fn first(replays: &Replays, key: &str, id: &str, issued: u64) -> bool {
        replays.first_time(key, id, issued, 0)
    }

    #[test]
    fn a_proof_is_good_once() {
        let replays = Replays::new(64);
        assert!(replays.first_time("key", "a", 100, 50));
        assert!(!replays.first_time("key", "a", 100, 50));
        assert!(replays.first_time("key", "b", 100, 50));
        assert!(replays.first_time("other", "a", 100, 50));
    }

    #[test]
    fn what_had_to_be_forgotten_can_not_be_used_again() {
        let replays = Replays::new(2 * SHARES);
        assert!(first(&replays, "key", "a", 100));
        assert!(first(&replays, "key", "b", 101));
        assert!(first(&replays, "key", "c", 102), "a is forgotten");
        assert!(!first(&replays, "key", "a", 100));
        assert!(!first(&replays, "key", "new and as old", 100));
        for (id, issued) in [("b", 101), ("c", 102)] {
            assert!(!first(&replays, "key", id, issued), "{id}");
        }
    }

    #[test]
    fn whoever_uses_up_its_share_keeps_nobody_else_out() {
        let replays = Replays::new(4 * SHARES);
        assert!(first(&replays, "victim", "a", 100));
        // As late as the clocks may differ, so that everything else is older.
        for id in 0..10 * SHARES {
            first(&replays, "greedy", &id.to_string(), 105);
        }
        assert!(!first(&replays, "greedy", "more", 105));
        for (id, issued) in [("b", 100), ("c", 104), ("d", 90)] {
            assert!(first(&replays, "victim", id, issued), "{id}");
            assert!(!first(&replays, "victim", id, issued), "{id}");
        }
        assert!(!first(&replays, "victim", "a", 100));
    }

    #[test]
    fn when_all_is_used_up_those_give_way_who_have_most_of_it() {
        let replays = Replays::new(4 * SHARES);
        assert!(first(&replays, "victim", "a", 1));
        for key in 0..100 {
            for issued in 100..104 {
                first(&replays, &format!("greedy {key}"), "a", issued);
            }
        }
        assert!(!first(&replays, "victim", "a", 1), "it is still remembered");
        assert!(first(&replays, "victim", "b", 1));
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_taken_twice() {
        let most = 2 * SHARES;
        let replays = Replays::new(most);
        let mut taken = BTreeSet::new();
        // Many keys with a few proofs of one second each, then with one.
        for (key, id) in
            (0..500).flat_map(|key| (0..=u64::from(key < 250)).map(move |id| (key, id)))
        {
            let (key, id, issued) = (key.to_string(), id.to_string(), 100 + id % 2);
            if first(&replays, &key, &id, issued) {
                taken.insert((key, id, issued));
            }
            let used = replays.used.lock().unwrap();
            assert!(used.proofs.len() <= most && used.horizons.len() <= most);
            assert_eq!((used.ages.len(), used.keys.len() <= 2 * most), (used.proofs.len(), true));
        }
        assert!(taken.len() > most);
        for (key, id, issued) in &taken {
            assert!(!first(&replays, key, id, *issued), "{key} {id}");
        }
        // Later there is room again, and nothing is left of what was.
        assert!(replays.first_time("new", "a", 1000, 900));
        let used = replays.used.lock().unwrap();
        assert_eq!((used.proofs.len(), used.keys.len(), used.horizons.len()), (1, 1, 0));
    }

    #[test]
    fn what_is_too_old_takes_no_room() {
        let replays = Replays::new(2);
        for at in 0..100 {
            assert!(replays.first_time("key", "x", at, at), "{at}");
        }
        assert!(replays.used.lock().unwrap().horizons.is_empty());
    }
}
