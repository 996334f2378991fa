//! Owns what all that a client does to come back is paid from. The budget is pure: the time is
//! given. Does not own the pauses, nor what is done.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::Reconnect;

/// How many attempts were made since all was well for a while.
#[derive(Debug, Default)]
pub(super) struct RetryBudget {
    spent: u32,
    /// How many of them are being made.
    trying: u32,
    /// When the last of them ended.
    last: Option<Instant>,
}

/// What is paid from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BudgetOwner {
    Attempts,
    Restarts,
}

impl RetryBudget {
    /// Pays for an attempt to have something back that has lasted for so long: which it is, counted
    /// from one; `None` if there were enough. It is whole again when what was lost has lasted, and
    /// nobody had to come back from anything else in that time.
    fn pay(&mut self, most: u32, whole_after: Duration, lost: (Duration, Instant)) -> Option<u32> {
        let (lasted, now) = lost;
        let rested = |last: Instant| now.saturating_duration_since(last) >= whole_after;
        if lasted >= whole_after && self.trying == 0 && self.last.is_none_or(rested) {
            self.spent = 0;
        }
        if self.spent >= most {
            return None;
        }
        self.spent += 1;
        self.trying += 1;
        Some(self.spent)
    }

    fn ended(&mut self, now: Instant) {
        self.trying = self.trying.saturating_sub(1);
        self.last = Some(now);
    }
}

/// An attempt that was paid for. It ends when this is dropped.
pub(crate) struct ReconnectAttempt<'a> {
    of: &'a Mutex<RetryBudget>,
    /// Counted from one.
    pub(crate) number: u32,
}

impl ReconnectAttempt<'_> {
    pub(super) fn paid<'a>(
        of: &'a Mutex<RetryBudget>,
        policy: &Reconnect,
        whose: BudgetOwner,
        lasted: Duration,
    ) -> Option<ReconnectAttempt<'a>> {
        let most = match whose {
            BudgetOwner::Attempts => policy.attempts,
            BudgetOwner::Restarts => policy.restarts,
        };
        let mut budget = of.lock().unwrap_or_else(PoisonError::into_inner);
        let number = budget.pay(most, policy.healthy_after, (lasted, Instant::now()))?;
        Some(ReconnectAttempt { of, number })
    }
}

impl Drop for ReconnectAttempt<'_> {
    fn drop(&mut self) {
        self.of.lock().unwrap_or_else(PoisonError::into_inner).ended(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_is_whole_again_once_something_has_lasted_and_nothing_else_was_lost() {
        let (mut budget, start) = (RetryBudget::default(), Instant::now());
        let pay = |budget: &mut RetryBudget, lasted, at| {
            let paid = budget.pay(2, MINUTE, (lasted, start + at));
            if paid.is_some() {
                budget.ended(start + at);
            }
            paid
        };
        assert_eq!(pay(&mut budget, SECOND, SECOND), Some(1));
        assert_eq!(pay(&mut budget, SECOND, SECOND), Some(2));
        assert_eq!(pay(&mut budget, SECOND, SECOND), None);
        // One that has lasted longer than the others do is no reason.
        assert_eq!(pay(&mut budget, MINUTE, 30 * SECOND), None);
        // Nor is time alone.
        assert_eq!(pay(&mut budget, Duration::ZERO, 10 * MINUTE), None);
        assert_eq!(pay(&mut budget, MINUTE, 10 * MINUTE), Some(1));
    }

    #[test]
    fn nothing_is_given_back_while_somebody_tries() {
        let (mut budget, start) = (RetryBudget::default(), Instant::now());
        assert_eq!(budget.pay(1, MINUTE, (MINUTE, start)), Some(1));
        assert_eq!(budget.pay(1, MINUTE, (MINUTE, start + 5 * MINUTE)), None);
        budget.ended(start + 5 * MINUTE);
        assert_eq!(budget.pay(1, MINUTE, (MINUTE, start + 5 * MINUTE)), None);
        assert_eq!(budget.pay(1, MINUTE, (MINUTE, start + 6 * MINUTE)), Some(1));
    }
}
