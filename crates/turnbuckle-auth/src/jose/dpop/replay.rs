//! Owns remembering which proofs were used, in bounded memory. Does not own which proofs are right.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Mutex, PoisonError},
};

use crate::jose::sha256;

/// The proofs that were used. When there are too many, the oldest is forgotten and no proof that is
/// as old is taken any more: what is not remembered can't be used again.
pub(crate) struct Replays {
    most: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// Invariant: at most `most`, and each later than `horizon`.
    proofs: BTreeSet<(u64, [u8; 16])>,
    horizon: Option<u64>,
}

impl Replays {
    pub(crate) fn new(most: usize) -> Replays {
        Replays { most: most.max(1), used: Mutex::default() }
    }

    /// Whether this is the first time. `oldest` is the time before which no proof is taken anyway.
    pub(crate) fn first_time(&self, thumbprint: &str, id: &str, issued: u64, oldest: u64) -> bool {
        let digest = sha256(format!("{thumbprint} {id}"));
        let mut short = [0; 16];
        short.copy_from_slice(&digest.as_ref()[..16]);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.proofs = used.proofs.split_off(&(oldest, [0; 16]));
        if used.horizon.is_some_and(|horizon| issued <= horizon) {
            return false;
        }
        let first = used.proofs.insert((issued, short));
        if used.proofs.len() > self.most
            && let Some((forgotten, _)) = used.proofs.pop_first()
        {
            used.horizon = Some(forgotten);
            used.proofs.retain(|(issued, _)| *issued > forgotten);
        }
        first
    }
}

impl fmt::Debug for Replays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replays").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_good_once() {
        let replays = Replays::new(8);
        assert!(replays.first_time("key", "a", 100, 50));
        assert!(!replays.first_time("key", "a", 100, 50));
        assert!(replays.first_time("key", "b", 100, 50));
        assert!(replays.first_time("other", "a", 100, 50));
    }

    #[test]
    fn what_had_to_be_forgotten_can_not_be_used_again() {
        let replays = Replays::new(2);
        assert!(replays.first_time("key", "a", 100, 0));
        assert!(replays.first_time("key", "b", 101, 0));
        assert!(replays.first_time("key", "c", 102, 0), "a is forgotten");
        assert!(!replays.first_time("key", "a", 100, 0));
        assert!(!replays.first_time("key", "new and as old", 100, 0));
        assert!(!replays.first_time("key", "c", 102, 0));
    }

    #[test]
    fn what_is_too_old_takes_no_room() {
        let replays = Replays::new(2);
        for at in 0..100 {
            assert!(replays.first_time("key", "x", at, at.saturating_sub(1)), "{at}");
        }
        assert!(replays.used.lock().unwrap().horizon.is_none());
    }
}
