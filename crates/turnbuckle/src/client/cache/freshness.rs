//! Owns for how long an answer may be used, and by whom: pure functions of what the server said
//! and of the time. Does not own a clock, nor the answers.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use serde_json::value::RawValue;
use turnbuckle_types::{CacheScope, Raw, Revision};

/// The longest time that any answer is kept, whatever its server says.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How far the clocks of those who share a store may differ.
const SKEW: Duration = Duration::from_secs(1);

/// What a result says about keeping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(super) ttl_ms: Option<u64>,
    pub(super) scope: Option<CacheScope>,
}

/// What this client makes of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// Where a result says nothing.
    pub(super) default_ttl: Duration,
    pub(super) max_ttl: Duration,
}

/// For how long an answer is kept, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) ttl: Duration,
    pub(super) audience: Audience,
}

/// Who may be given an answer, by the word of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    Everyone,
    Principal,
}

impl Rules {
    /// Whether any answer in this revision could be kept.
    pub(super) fn may_keep(self, revision: Revision) -> bool {
        !self.max_ttl.is_zero() && (revision.has_cache_hints() || !self.default_ttl.is_zero())
    }

    /// `None` if the answer is used once.
    pub(super) fn term(self, hint: Hint, revision: Revision) -> Option<Term> {
        // What a legacy server writes there means nothing in particular.
        let hint =
            if revision.has_cache_hints() { hint } else { Hint { ttl_ms: None, scope: None } };
        let ttl = hint.ttl_ms.map_or(self.default_ttl, Duration::from_millis).min(self.max_ttl);
        let audience = match hint.scope {
            Some(CacheScope::Public) => Audience::Everyone,
            _ => Audience::Principal,
        };
        (!ttl.is_zero()).then_some(Term { ttl, audience })
    }

    /// For how much longer an answer from a store may be used; `None` if it is stale.
    ///
    /// Clocks can be set: an answer that is said to come from the future is not trusted.
    pub(super) fn left(
        self,
        received: SystemTime,
        ttl: Duration,
        now: SystemTime,
    ) -> Option<Duration> {
        let age = match now.duration_since(received) {
            Ok(age) => age,
            Err(ahead) if ahead.duration() <= SKEW => Duration::ZERO,
            Err(_) => return None,
        };
        // 2026-07-28 server/utilities/caching §Freshness Calculation: now < t_received + ttlMs.
        ttl.min(self.max_ttl).checked_sub(age).filter(|left| !left.is_zero())
    }
}

/// A result without a time that is below zero, if it has one: the model knows no such time.
///
/// 2026-07-28 server/utilities/caching §TTL: it is to be ignored.
pub(crate) fn without_negative_ttl(result: &Raw) -> Option<Raw> {
    let mut members: BTreeMap<String, Box<RawValue>> = result.decode().ok()?;
    let ttl = members.remove("ttlMs")?;
    if !ttl.get().starts_with('-') {
        return None;
    }
    Raw::new(&members).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const RULES: Rules = Rules { default_ttl: Duration::ZERO, max_ttl: LONGEST };

    fn hint(ttl_ms: Option<u64>, scope: Option<CacheScope>) -> Hint {
        Hint { ttl_ms, scope }
    }

    #[test]
    fn a_server_says_for_how_long_and_for_whom() {
        use CacheScope::{Private, Public};
        let modern = Revision::V2026_07_28;
        for (ttl_ms, scope, expected) in [
            (Some(1), Some(Public), Some((Duration::from_millis(1), Audience::Everyone))),
            (Some(1), Some(Private), Some((Duration::from_millis(1), Audience::Principal))),
            (Some(1), None, Some((Duration::from_millis(1), Audience::Principal))),
            (Some(u64::MAX), Some(Private), Some((LONGEST, Audience::Principal))),
            (Some(0), Some(Public), None),
            (None, Some(Public), None),
            (None, None, None),
        ] {
            let expected = expected.map(|(ttl, audience)| Term { ttl, audience });
            assert_eq!(RULES.term(hint(ttl_ms, scope), modern), expected, "{ttl_ms:?} {scope:?}");
        }
    }

    #[test]
    fn the_legacy_era_has_no_hints() {
        let legacy = Revision::V2025_11_25;
        let said = hint(Some(60_000), Some(CacheScope::Public));
        assert_eq!(RULES.term(said, legacy), None);
        assert!(!RULES.may_keep(legacy) && RULES.may_keep(Revision::V2026_07_28));
        let rules = Rules { default_ttl: SECOND, ..RULES };
        assert!(rules.may_keep(legacy));
        let term = Term { ttl: SECOND, audience: Audience::Principal };
        assert_eq!(rules.term(said, legacy), Some(term), "neither its time nor its scope");
    }

    #[test]
    fn a_default_is_for_those_who_say_nothing() {
        let rules = Rules { default_ttl: SECOND, max_ttl: 2 * SECOND };
        let ttl = |ttl_ms| rules.term(hint(ttl_ms, None), Revision::LATEST).map(|term| term.ttl);
        assert_eq!(ttl(None), Some(SECOND));
        assert_eq!(ttl(Some(0)), None, "who says zero has said something");
        assert_eq!(ttl(Some(3000)), Some(2 * SECOND));
    }

    #[test]
    fn a_time_below_zero_is_ignored() {
        let without = |text: &str| without_negative_ttl(&Raw::from_json(text).unwrap());
        let sound = without(r#"{"b":[1.50],"ttlMs":-5,"a":{"ttlMs":-1}}"#).unwrap();
        assert_eq!(sound.as_str(), r#"{"a":{"ttlMs":-1},"b":[1.50]}"#);
        for other in [r#"{"ttlMs":5}"#, r#"{"ttlMs":"-5"}"#, "{}", "[]"] {
            assert_eq!(without(other), None, "{other}");
        }
    }

    #[test]
    fn an_answer_is_fresh_until_its_time_is_over() {
        let then = SystemTime::UNIX_EPOCH + 1000 * SECOND;
        let left = |after: i32| {
            let now = match after {
                0.. => then + SECOND * after.unsigned_abs(),
                _ => then - SECOND * after.unsigned_abs(),
            };
            RULES.left(then, 10 * SECOND, now)
        };
        assert_eq!(left(0), Some(10 * SECOND));
        assert_eq!(left(9), Some(SECOND));
        assert_eq!(left(10), None);
        assert_eq!(left(11), None);
        assert_eq!(left(-1), Some(10 * SECOND), "clocks differ a little");
        assert_eq!(left(-2), None, "nobody has seen the future");
        let long = RULES.left(then, 2 * LONGEST, then + LONGEST);
        assert_eq!(long, None, "what a store says is limited, too");
    }
}
