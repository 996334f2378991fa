//! Owns when a call has waited too long. Does not own what happens then.

use std::time::Duration;

use tokio::time::Instant;

use super::Timeouts;

/// The deadlines of one call. Time in which this side was answering a question of the
/// server does not count.
#[derive(Debug)]
pub(crate) struct Deadlines {
    limits: Timeouts,
    started: Instant,
    last_sign: Instant,
    /// How much of the time before each of these moments did not count.
    paused_at_start: Duration,
    paused_at_sign: Duration,
}

/// Which clock ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RanOut {
    Idle(Duration),
    Total(Duration),
}

impl Deadlines {
    pub(super) fn new(limits: Timeouts, now: Instant, paused: Duration) -> Deadlines {
        Deadlines {
            limits,
            started: now,
            last_sign: now,
            paused_at_start: paused,
            paused_at_sign: paused,
        }
    }

    /// The server gave a sign of life.
    pub(super) fn sign(&mut self, now: Instant, paused: Duration) {
        self.last_sign = now;
        self.paused_at_sign = paused;
    }

    /// From now on nothing runs out: a stream that was acknowledged may last for ever.
    pub(super) fn lift(&mut self) {
        self.limits = Timeouts { idle: None, total: None };
    }

    /// The moment to look again, `None` for never.
    pub(super) fn next(&self, paused: Duration) -> Option<Instant> {
        let (idle, total) = (self.idle_end(paused), self.total_end(paused));
        match (idle, total) {
            (Some(idle), Some(total)) => Some(idle.min(total)),
            (idle, total) => idle.or(total),
        }
    }

    /// What is left of the time in all; `None` where that has no end.
    pub(super) fn total_left(&self, now: Instant, paused: Duration) -> Option<Duration> {
        self.limits.total?;
        let end = self.total_end(paused);
        Some(end.map_or(Duration::MAX, |end| end.saturating_duration_since(now)))
    }

    pub(super) fn ran_out(&self, now: Instant, paused: Duration) -> Option<RanOut> {
        let over = |end: Option<Instant>| end.is_some_and(|end| now >= end);
        if over(self.total_end(paused)) {
            return self.limits.total.map(RanOut::Total);
        }
        if over(self.idle_end(paused)) {
            return self.limits.idle.map(RanOut::Idle);
        }
        None
    }

    /// A time too long to be told never comes.
    fn total_end(&self, paused: Duration) -> Option<Instant> {
        let total = self.limits.total?.checked_add(paused - self.paused_at_start)?;
        self.started.checked_add(total)
    }

    fn idle_end(&self, paused: Duration) -> Option<Instant> {
        let idle = self.limits.idle?.checked_add(paused - self.paused_at_sign)?;
        self.last_sign.checked_add(idle)
    }
}

impl RanOut {
    /// As the peer and the caller are told.
    pub(super) fn reason(self) -> String {
        match self {
            RanOut::Total(limit) => crate::error::timed_out(limit),
            RanOut::Idle(limit) => {
                format!("{} without a sign of life", crate::error::timed_out(limit))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NONE: Duration = Duration::ZERO;

    fn deadlines(idle: Option<u32>, total: Option<u32>) -> (Deadlines, Instant) {
        let now = Instant::now();
        let limits = Timeouts { idle: idle.map(|s| SECOND * s), total: total.map(|s| SECOND * s) };
        (Deadlines::new(limits, now, NONE), now)
    }

    #[test]
    fn progress_resets_the_idle_clock_but_never_the_total() {
        let (mut deadlines, start) = deadlines(Some(2), Some(5));
        assert_eq!(deadlines.next(NONE), Some(start + SECOND * 2));
        for second in [1, 2, 3, 4] {
            assert_eq!(deadlines.ran_out(start + SECOND * second, NONE), None);
            deadlines.sign(start + SECOND * second, NONE);
        }
        assert_eq!(deadlines.next(NONE), Some(start + SECOND * 5));
        assert_eq!(deadlines.ran_out(start + SECOND * 5, NONE), Some(RanOut::Total(SECOND * 5)));
    }

    #[test]
    fn both_clocks_stop_while_this_side_answers() {
        let (deadlines, start) = deadlines(Some(2), Some(5));
        assert_eq!(deadlines.ran_out(start + SECOND * 11, SECOND * 10), None);
        assert_eq!(deadlines.next(SECOND * 10), Some(start + SECOND * 12));
        assert_eq!(deadlines.total_left(start + SECOND * 11, SECOND * 10), Some(SECOND * 4));
        assert_eq!(
            deadlines.ran_out(start + SECOND * 12, SECOND * 10),
            Some(RanOut::Idle(SECOND * 2))
        );
    }

    #[test]
    fn each_clock_can_be_switched_off() {
        let (mut deadlines, start) = deadlines(None, None);
        assert_eq!(
            (deadlines.next(NONE), deadlines.ran_out(start + SECOND * 9999, NONE)),
            (None, None)
        );
        deadlines.lift();
        assert_eq!(deadlines.next(NONE), None);
    }

    #[test]
    fn a_time_too_long_to_be_told_never_comes() {
        let now = Instant::now();
        let limits = Timeouts { idle: Some(Duration::MAX), total: Some(Duration::MAX) };
        let deadlines = Deadlines::new(limits, now, Duration::ZERO);
        assert_eq!(deadlines.next(Duration::ZERO), None);
        assert_eq!(deadlines.ran_out(now + Duration::from_secs(1 << 30), Duration::ZERO), None);
    }
}
