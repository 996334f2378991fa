//! Limits how often requests may come.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_types::RpcError;

use super::{
    policy::{Inner, Policy, ShareKey, policy_layer},
    request::Request,
};
use crate::middleware::{BoxError, Response};

/// The error code if requests come too fast.
pub const RATE_LIMITED: i64 = 429;

/// How many shares are remembered.
const SHARES: usize = 10_000;

/// Limits how many requests may come in a period. Further ones are rejected with [`RATE_LIMITED`];
/// the error says when to try again, also as `retryAfterMs` in its data.
///
/// Clones share one limit: give one to several tools to limit them together. At most 10,000 callers
/// are remembered.
///
/// Every request counts: on a server also discovery and lists, and on a tool or a group each
/// request for it. A modern client that is [asked](crate::Ctx::ask) for input sends the request
/// again, so that a call that asks once counts twice.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Server, middleware::server::RateLimit};
/// let server = Server::new("demo", "1.0")
///     .layer(RateLimit::new(600, Duration::from_secs(60)).burst(20).per_principal());
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct RateLimit {
    rate: Rate,
    key: ShareKey,
    used: Arc<Mutex<UsedShares>>,
}

impl RateLimit {
    /// Creates a limit of `count` requests in each `period`, which may all come at once.
    pub fn new(count: u32, period: Duration) -> RateLimit {
        let burst = count.max(1);
        let rate = Rate { interval: period / burst, burst };
        RateLimit { rate, key: ShareKey::default(), used: Arc::default() }
    }

    /// Sets how many requests may come at once after a pause.
    #[must_use]
    pub fn burst(mut self, burst: u32) -> RateLimit {
        self.rate.burst = burst.max(1);
        self
    }

    /// Limits each [`Principal`](crate::Principal) separately.
    #[must_use]
    pub fn per_principal(self) -> RateLimit {
        RateLimit { key: ShareKey::principal(), used: Arc::default(), ..self }
    }

    /// Limits each value of `key` separately, for example a tenant.
    #[must_use]
    pub fn per(self, key: impl Fn(&Request) -> String + Send + Sync + 'static) -> RateLimit {
        RateLimit { key: ShareKey::new(key), used: Arc::default(), ..self }
    }

    fn admit(&self, key: String) -> Result<(), RpcError> {
        let admitted = {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.admit(key, self.rate, Instant::now())
        };
        admitted.map_err(|wait| {
            // Rounded up, so that a request after this time is admitted.
            let wait = wait.as_micros().div_ceil(1_000).max(1);
            let message = format!("too many requests; try again in {wait} ms");
            RpcError::new(RATE_LIMITED, message)
                .with_data(&serde_json::json!({ "retryAfterMs": wait }))
        })
    }
}

policy_layer!(RateLimit);

impl Policy for RateLimit {
    async fn apply(self, request: Request, inner: impl Inner) -> Result<Response, BoxError> {
        self.admit(self.key.of(&request))?;
        inner.send(request).await
    }
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    /// The time in which one request is earned.
    interval: Duration,
    /// How many requests can be saved up.
    burst: u32,
}

/// For each share the time at which it is unused again (GCRA: each request uses one interval). At
/// most `SHARES` are kept.
#[derive(Debug, Default)]
struct UsedShares(HashMap<String, Instant>);

impl UsedShares {
    /// Admits a request, or returns the time to wait.
    fn admit(&mut self, key: String, rate: Rate, now: Instant) -> Result<(), Duration> {
        if self.0.len() >= SHARES && !self.0.contains_key(&key) {
            self.forget(now);
        }
        let until = self.0.entry(key).or_insert(now);
        let used = until.saturating_duration_since(now).saturating_add(rate.interval);
        let wait = used.saturating_sub(rate.interval.saturating_mul(rate.burst));
        if !wait.is_zero() {
            return Err(wait);
        }
        *until = now.checked_add(used).unwrap_or(*until);
        Ok(())
    }

    /// Forgets unused shares; if there are none, the eighth that is unused soonest, so that this
    /// does not happen for each new share.
    fn forget(&mut self, now: Instant) {
        self.0.retain(|_, until| *until > now);
        if self.0.len() < SHARES {
            return;
        }
        let mut times: Vec<Instant> = self.0.values().copied().collect();
        let (_, soonest, _) = times.select_nth_unstable(SHARES / 8);
        let (soonest, mut left) = (*soonest, SHARES / 8);
        self.0.retain(|_, until| {
            let is_forgotten = left > 0 && *until <= soonest;
            left -= usize::from(is_forgotten);
            !is_forgotten
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { interval: Duration::from_millis(500), burst: 2 };

    #[test]
    fn requests_are_earned_with_time() {
        let (mut used, now) = (UsedShares::default(), Instant::now());
        let mut admit = |after: u64| {
            used.admit(String::new(), RATE, now + Duration::from_millis(after)).is_ok()
        };
        assert_eq!([admit(0), admit(0), admit(0)], [true, true, false]);
        assert_eq!([admit(499), admit(500), admit(501)], [false, true, false]);
        // However long the pause, no more than the burst.
        assert_eq!([admit(60_000), admit(60_000), admit(60_000)], [true, true, false]);
    }

    #[test]
    fn a_request_after_the_time_to_wait_is_admitted() {
        let rate = Rate { interval: Duration::from_secs(1) / 3, burst: 1 };
        let (mut used, mut now) = (UsedShares::default(), Instant::now());
        for _ in 0..100 {
            used.admit(String::new(), rate, now).unwrap();
            now += used.admit(String::new(), rate, now).unwrap_err();
        }
    }

    #[test]
    fn shares_are_forgotten_before_there_are_too_many() {
        let (mut used, start) = (UsedShares::default(), Instant::now());
        for share in 0..SHARES {
            let now = start + Duration::from_nanos(share as u64);
            used.admit(share.to_string(), RATE, now).unwrap();
        }
        let soon = start + Duration::from_millis(1);
        used.admit("one more".to_owned(), RATE, soon).unwrap();
        assert_eq!(used.0.len(), SHARES - SHARES / 8 + 1);
        assert!(!used.0.contains_key("0"));
        assert!(used.0.contains_key(&(SHARES - 1).to_string()));

        // Later every share is unused again.
        for share in 0..SHARES / 8 - 1 {
            used.admit(format!("new {share}"), RATE, soon).unwrap();
        }
        assert_eq!(used.0.len(), SHARES);
        used.admit("the last".to_owned(), RATE, soon + Duration::from_secs(60)).unwrap();
        assert_eq!(used.0.len(), 1);
    }

    #[test]
    fn no_time_between_requests_is_no_limit() {
        let limit = RateLimit::new(1, Duration::ZERO);
        for _ in 0..10 {
            limit.admit(String::new()).unwrap();
        }
        // Nor does the longest time overflow.
        let limit = RateLimit::new(2, Duration::MAX);
        limit.admit(String::new()).unwrap();
    }
}
