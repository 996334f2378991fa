//! Owns when a stream may be taken up again and how often. Pure: the time is given.
//! Does not own the taking up.

use std::time::Duration;

use tokio::time::Instant;

use crate::transport::http::client::timing::{POLLING, RECONNECT};

/// How often streams that broke off are taken up again: what the client's policy says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resuming {
    /// How many connections may be made for it at once, and how many in a row may bring nothing.
    pub(crate) attempts: u32,
    /// In which time so many may be made again, one by one.
    pub(crate) healthy_after: Duration,
    /// The longest that failures alone make us wait. What the server asks for always counts.
    pub(crate) longest_pause: Duration,
}

impl Resuming {
    /// How long one takes to be given back. Never, if there are none.
    fn share(&self) -> Duration {
        self.healthy_after.checked_div(self.attempts).unwrap_or(Duration::MAX)
    }

    /// So many in a row bring nothing, for who does not give up for want of luck.
    pub(super) fn at_most(&self, fruitless: u32) -> u32 {
        fruitless.min(self.attempts.saturating_sub(1))
    }
}

/// What all streams of a connection are taken up again from.
#[derive(Debug, Default)]
pub(super) struct ResumeBudget {
    spent: u32,
    /// Since when a token has been on its way back.
    since: Option<Instant>,
}

impl ResumeBudget {
    /// Spends one, if there is one.
    pub(super) fn spend(&mut self, policy: &Resuming, now: Instant) -> bool {
        self.refill(policy.share(), now);
        if self.spent >= policy.attempts {
            return false;
        }
        self.spent += 1;
        self.since.get_or_insert(now);
        true
    }

    /// How long it takes until there is one more.
    pub(super) fn more_in(&self, policy: &Resuming, now: Instant) -> Duration {
        self.since.map_or(Duration::ZERO, |since| {
            policy.share().saturating_sub(now.saturating_duration_since(since))
        })
    }

    fn refill(&mut self, share: Duration, now: Instant) {
        while let Some(since) = self.since {
            if now.saturating_duration_since(since) < share {
                return;
            }
            self.spent -= 1;
            self.since = (self.spent > 0).then(|| since + share);
        }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    Clean,
    Broken,
}

/// What a reconnect takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResumePlan {
    pub(super) wait: Duration,
    pub(super) cost: Cost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cost {
    Free,
    One,
}

/// What the server asked to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RetryDelay {
    #[default]
    Never,
    /// On an earlier connection.
    Before(Duration),
    /// On this very connection.
    Now(Duration),
}

impl RetryDelay {
    pub(super) fn time(self) -> Option<Duration> {
        match self {
            RetryDelay::Never => None,
            RetryDelay::Before(time) | RetryDelay::Now(time) => Some(time),
        }
    }
}

/// What the next attempt takes; `None` if there were enough. `fruitless` is how many attempts in
/// a row brought nothing, `chance` any number.
pub(super) fn plan(
    policy: &Resuming,
    (ended, retry): (ConnectionEnd, RetryDelay),
    fruitless: u32,
    chance: u64,
) -> Option<ResumePlan> {
    let polled =
        ended == ConnectionEnd::Clean && matches!(retry, RetryDelay::Now(time) if time >= POLLING);
    let is_free = polled && fruitless == 0;
    if fruitless >= policy.attempts && !is_free {
        return None;
    }
    let longest = policy.longest_pause;
    let usual = match (ended, retry.time()) {
        // Whoever can't be reached at all is better known at once.
        (ConnectionEnd::Broken, None) if fruitless == 0 => Duration::ZERO,
        (_, retry) => retry.unwrap_or(RECONNECT.min(longest)),
    };
    let wait = match fruitless {
        0 => usual,
        _ => {
            let longer = usual.saturating_mul(1 << fruitless.min(16)).min(longest / 5 * 4);
            // Many clients that lost one server must not come back as one.
            let spread = longer / 4 * u32::from(chance.to_le_bytes()[0]) / 255;
            usual.max(longer + spread)
        }
    };
    let cost = if is_free { Cost::Free } else { Cost::One };
    Some(ResumePlan { wait, cost })
}

/// A number that differs from time to time, without a generator of our own.
pub(super) fn chance() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    const POLICY: Resuming =
        Resuming { attempts: 8, healthy_after: Duration::from_secs(120), longest_pause: LONGEST };
    const LONGEST: Duration = Duration::from_secs(30);

    #[test]
    fn a_budget_lasts_for_as_many_as_it_is_told_and_grows_back_one_by_one() {
        let (mut budget, start) = (ResumeBudget::default(), Instant::now());
        assert_eq!((0..20).filter(|_| budget.spend(&POLICY, start)).count(), 8);
        assert!(!budget.spend(&POLICY, start + 14 * SECOND));
        assert_eq!(budget.more_in(&POLICY, start + 14 * SECOND), SECOND);
        assert!(budget.spend(&POLICY, start + 15 * SECOND));
        assert!(!budget.spend(&POLICY, start + 15 * SECOND));
        let later = start + 60 * SECOND;
        assert_eq!((0..20).filter(|_| budget.spend(&POLICY, later)).count(), 3);
        let much_later = start + 100_000 * SECOND;
        assert_eq!((0..20).filter(|_| budget.spend(&POLICY, much_later)).count(), 8);
        // Time that does not run forwards is no gain.
        assert!(!budget.spend(&POLICY, start));
        let none = Resuming { attempts: 0, ..POLICY };
        assert!(!ResumeBudget::default().spend(&none, start));
    }

    #[test]
    fn the_server_is_never_asked_earlier_than_it_wished() {
        for ended in [ConnectionEnd::Clean, ConnectionEnd::Broken] {
            for retry in [Duration::ZERO, SECOND / 2, 100 * SECOND] {
                for fruitless in 0..POLICY.attempts {
                    for chance in [0, 255] {
                        let how = (ended, RetryDelay::Now(retry));
                        let plan = plan(&POLICY, how, fruitless, chance).unwrap();
                        assert!(plan.wait >= retry, "{plan:?}");
                    }
                }
            }
        }
        assert_eq!(
            plan(&POLICY, (ConnectionEnd::Clean, RetryDelay::Never), 0, 0).unwrap().wait,
            SECOND
        );
    }

    #[test]
    fn only_a_broken_connection_is_tried_at_once_and_only_once() {
        let wait = |ended, fruitless| {
            plan(&POLICY, (ended, RetryDelay::Never), fruitless, 0).unwrap().wait
        };
        assert_eq!(wait(ConnectionEnd::Broken, 0), Duration::ZERO);
        assert_eq!(wait(ConnectionEnd::Broken, 1), 2 * SECOND);
        assert_eq!(wait(ConnectionEnd::Clean, 2), 4 * SECOND);
        let most = plan(&POLICY, (ConnectionEnd::Clean, RetryDelay::Never), 7, 255).unwrap().wait;
        assert_eq!((wait(ConnectionEnd::Clean, 7), most), (LONGEST / 5 * 4, LONGEST));
        let hasty = Resuming { longest_pause: SECOND / 2, ..POLICY };
        let plan = plan(&hasty, (ConnectionEnd::Clean, RetryDelay::Never), 3, 0).unwrap();
        assert_eq!(plan.wait, SECOND / 2);
    }

    #[test]
    fn a_server_that_wants_to_be_polled_is() {
        let cost =
            |ended, retry, fruitless| plan(&POLICY, (ended, retry), fruitless, 0).unwrap().cost;
        assert_eq!(cost(ConnectionEnd::Clean, RetryDelay::Now(SECOND), 0), Cost::Free);
        assert_eq!(cost(ConnectionEnd::Clean, RetryDelay::Before(SECOND), 0), Cost::One);
        assert_eq!(cost(ConnectionEnd::Clean, RetryDelay::Now(SECOND), 1), Cost::One);
        assert_eq!(cost(ConnectionEnd::Broken, RetryDelay::Now(SECOND), 0), Cost::One);
        assert_eq!(cost(ConnectionEnd::Clean, RetryDelay::Now(Duration::ZERO), 0), Cost::One);
        // That is no loss, whatever the policy says of losses.
        let none = Resuming { attempts: 0, ..POLICY };
        assert!(plan(&none, (ConnectionEnd::Clean, RetryDelay::Now(SECOND)), 0, 0).is_some());
        assert!(plan(&none, (ConnectionEnd::Broken, RetryDelay::Now(SECOND)), 0, 0).is_none());
    }

    #[test]
    fn there_is_an_end() {
        assert_eq!(
            plan(&POLICY, (ConnectionEnd::Clean, RetryDelay::Never), POLICY.attempts, 0),
            None
        );
        let spread = plan(&POLICY, (ConnectionEnd::Clean, RetryDelay::Never), 3, 255).unwrap().wait;
        assert_eq!(spread, 10 * SECOND);
        assert!(
            plan(&POLICY, (ConnectionEnd::Clean, RetryDelay::Now(Duration::MAX)), 3, 255).is_some()
        );
    }
}
