//! Results of earlier connections of this program, limited in number and time.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a result is used.
const FRESH: Duration = Duration::from_secs(3600);
/// How many results are kept.
const MOST: usize = 256;

/// A map whose entries expire.
pub(crate) struct Findings<K, V>(LazyLock<Mutex<FindingsMap<K, V>>>);

type FindingsMap<K, V> = HashMap<K, (V, Instant)>;

impl<K: Eq + Hash, V: Clone> Findings<K, V> {
    pub(crate) const fn new() -> Findings<K, V> {
        Findings(LazyLock::new(Mutex::default))
    }

    fn entries(&self) -> MutexGuard<'_, FindingsMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn recall(&self, key: &K) -> Option<V> {
        self.recall_at(key, Instant::now())
    }

    fn recall_at(&self, key: &K, now: Instant) -> Option<V> {
        let entries = self.entries();
        let (value, since) = entries.get(key)?;
        is_fresh(*since, now).then(|| value.clone())
    }

    /// Removes a result that the server contradicts.
    pub(crate) fn forget(&self, key: &K) {
        self.entries().remove(key);
    }

    pub(crate) fn remember(&self, key: K, value: V) {
        self.remember_at(key, value, Instant::now());
    }

    fn remember_at(&self, key: K, value: V, now: Instant) {
        let mut entries = self.entries();
        if entries.len() >= MOST {
            entries.retain(|_, (_, since)| is_fresh(*since, now));
        }
        if entries.len() < MOST || entries.contains_key(&key) {
            entries.insert(key, (value, now));
        }
    }
}

fn is_fresh(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) < FRESH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_recalled_until_it_is_forgotten_or_an_hour_old() {
        let findings = Findings::new();
        let now = Instant::now();
        assert_eq!(findings.recall_at(&"a", now), None);
        findings.remember_at("a", 1, now);
        assert_eq!(findings.recall_at(&"a", now + FRESH / 2), Some(1));
        assert_eq!(findings.recall_at(&"a", now + FRESH), None);
        findings.remember_at("a", 2, now + FRESH);
        assert_eq!(findings.recall_at(&"a", now + FRESH), Some(2));
        findings.forget(&"a");
        assert_eq!(findings.recall_at(&"a", now + FRESH), None);
    }

    #[test]
    fn the_number_of_results_is_limited() {
        let findings = Findings::new();
        let now = Instant::now();
        (0..MOST).for_each(|key| findings.remember_at(key, key, now));
        findings.remember_at(MOST, MOST, now);
        assert_eq!(findings.recall_at(&MOST, now), None);
        findings.remember_at(0, 7, now);
        assert_eq!(findings.recall_at(&0, now), Some(7));
        findings.remember_at(MOST, MOST, now + FRESH);
        assert_eq!(findings.recall_at(&MOST, now + FRESH), Some(MOST));
        assert_eq!(findings.entries().len(), 1);
    }
}
