//! The deadlines of a call.

use std::{pin::Pin, time::Duration};

use crate::client::{Timeouts, handlers::answer::Clocks};
use tokio::time::Instant;

/// The deadlines of one call. Time in which this client answers a question of the server does not
/// count; `paused` is the sum of it.
#[derive(Debug)]
pub(crate) struct Deadlines {
    limits: Timeouts,
    started: Instant,
    last_sign: Instant,
    /// The paused time before each of these moments.
    paused_at_start: Duration,
    paused_at_sign: Duration,
}

/// A deadline that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    Idle(Duration),
    Total(Duration),
}

impl Deadlines {
    pub(crate) fn new(limits: Timeouts, now: Instant, paused: Duration) -> Deadlines {
        Deadlines {
            limits,
            started: now,
            last_sign: now,
            paused_at_start: paused,
            paused_at_sign: paused,
        }
    }

    /// Waits for `future` until a deadline passes.
    pub(crate) async fn limit<F: Future>(
        &self,
        clocks: Clocks<'_>,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, Expired> {
        loop {
            let Some(deadline) = self.next(clocks.paused_by_now()) else {
                return Ok(future.await);
            };
            if let Ok(output) = tokio::time::timeout_at(deadline, future.as_mut()).await {
                return Ok(output);
            }
            // The clocks stand still while this client answers a question.
            tokio::select! {
                biased;
                output = future.as_mut() => return Ok(output),
                () = clocks.over() => {}
            }
            let now = Instant::now();
            if let Some(expired) = self.expired(now, clocks.paused(now)) {
                return Err(expired);
            }
        }
    }

    /// Restarts the idle clock.
    pub(crate) fn sign(&mut self, now: Instant, paused: Duration) {
        self.last_sign = now;
        self.paused_at_sign = paused;
    }

    /// Removes the deadlines: a stream that was acknowledged has none.
    pub(crate) fn lift(&mut self) {
        self.limits = Timeouts { idle: None, total: None };
    }

    /// Returns the next deadline; `None` for never.
    fn next(&self, paused: Duration) -> Option<Instant> {
        let (idle, total) = (self.idle_end(paused), self.total_end(paused));
        match (idle, total) {
            (Some(idle), Some(total)) => Some(idle.min(total)),
            (idle, total) => idle.or(total),
        }
    }

    /// Returns the rest of the total time; `None` if it is not limited.
    pub(crate) fn total_left(&self, now: Instant, paused: Duration) -> Option<Duration> {
        self.limits.total?;
        let end = self.total_end(paused);
        Some(end.map_or(Duration::MAX, |end| end.saturating_duration_since(now)))
    }

    pub(crate) fn expired(&self, now: Instant, paused: Duration) -> Option<Expired> {
        let over = |end: Option<Instant>| end.is_some_and(|end| now >= end);
        if over(self.total_end(paused)) {
            return self.limits.total.map(Expired::Total);
        }
        if over(self.idle_end(paused)) {
            return self.limits.idle.map(Expired::Idle);
        }
        None
    }

    /// A duration that overflows means no deadline.
    fn total_end(&self, paused: Duration) -> Option<Instant> {
        let total = self.limits.total?.checked_add(paused - self.paused_at_start)?;
        self.started.checked_add(total)
    }

    fn idle_end(&self, paused: Duration) -> Option<Instant> {
        let idle = self.limits.idle?.checked_add(paused - self.paused_at_sign)?;
        self.last_sign.checked_add(idle)
    }
}

impl Expired {
    /// Returns the reason for the caller and for the server.
    pub(crate) fn reason(self) -> String {
        match self {
            Expired::Total(limit) => crate::error::timed_out(limit),
            Expired::Idle(limit) => {
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
            assert_eq!(deadlines.expired(start + SECOND * second, NONE), None);
            deadlines.sign(start + SECOND * second, NONE);
        }
        assert_eq!(deadlines.next(NONE), Some(start + SECOND * 5));
        assert_eq!(deadlines.expired(start + SECOND * 5, NONE), Some(Expired::Total(SECOND * 5)));
    }

    #[test]
    fn both_clocks_stop_while_this_side_answers() {
        let (deadlines, start) = deadlines(Some(2), Some(5));
        assert_eq!(deadlines.expired(start + SECOND * 11, SECOND * 10), None);
        assert_eq!(deadlines.next(SECOND * 10), Some(start + SECOND * 12));
        assert_eq!(deadlines.total_left(start + SECOND * 11, SECOND * 10), Some(SECOND * 4));
        assert_eq!(
            deadlines.expired(start + SECOND * 12, SECOND * 10),
            Some(Expired::Idle(SECOND * 2))
        );
    }

    #[test]
    fn each_clock_can_be_switched_off() {
        let (mut deadlines, start) = deadlines(None, None);
        assert_eq!(
            (deadlines.next(NONE), deadlines.expired(start + SECOND * 9999, NONE)),
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
        assert_eq!(deadlines.expired(now + Duration::from_secs(1 << 30), Duration::ZERO), None);
    }
}
