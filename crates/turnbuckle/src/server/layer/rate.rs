//! Owns how often requests may come: buckets of tokens, one for everyone or one a caller.
//! Does not own how many run at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_types::RpcError;

use super::{
    apply::{Policy, tower_layer},
    next::BoxError,
    request::{Request, Response},
    who::Who,
};

/// The code of the error when requests come too fast.
pub const RATE_LIMITED: i64 = 429;

/// How many callers are remembered at most.
const CALLERS: usize = 10_000;

/// Lets only so many requests through in a time; further ones are refused with [`RATE_LIMITED`],
/// and the error says when to try again, also as `retryAfterMs` in its data.
///
/// Clones share one limit: give one to several tools, and together they are called no more often.
/// Of callers, the last 10,000 are remembered.
///
/// A request is a request: around a server, discovery and lists count too. A modern client that is
/// [asked](crate::Ctx::ask) something comes back with another one, so a call that asks once counts
/// twice. Around one tool or a group only what reaches that is counted.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Server, layer::RateLimit};
/// let server = Server::new("demo", "1.0")
///     .layer(RateLimit::new(600, Duration::from_secs(60)).burst(20).per_principal());
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct RateLimit {
    rate: Rate,
    who: Who,
    buckets: Arc<Mutex<Buckets>>,
}

impl RateLimit {
    /// `count` requests in each `period`, all of them at once if they like.
    pub fn new(count: u32, period: Duration) -> RateLimit {
        let count = count.max(1);
        let rate = Rate { every: period.as_secs_f64() / f64::from(count), burst: f64::from(count) };
        RateLimit { rate, who: Who::Everyone, buckets: Arc::default() }
    }

    /// How many may come at once after a pause.
    #[must_use]
    pub fn burst(mut self, burst: u32) -> RateLimit {
        self.rate.burst = f64::from(burst.max(1));
        self
    }

    /// Counts for each [`Principal`](crate::Principal) apart.
    #[must_use]
    pub fn per_principal(self) -> RateLimit {
        RateLimit { who: Who::principal(), buckets: Arc::default(), ..self }
    }

    /// Counts apart for each value of `key`, such as a tenant.
    #[must_use]
    pub fn per(self, key: impl Fn(&Request) -> String + Send + Sync + 'static) -> RateLimit {
        RateLimit { who: Who::by(key), buckets: Arc::default(), ..self }
    }

    fn admit(&self, key: String) -> Result<(), RpcError> {
        let taken = {
            let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            buckets.take(key, self.rate, Instant::now())
        };
        taken.map_err(|wait| {
            // Rounded up: who comes back then is let in.
            let wait = wait.as_micros().div_ceil(1_000).max(1);
            let message = format!("too many requests; try again in {wait} ms");
            RpcError::new(RATE_LIMITED, message)
                .with_data(&serde_json::json!({ "retryAfterMs": wait }))
        })
    }
}

tower_layer!(RateLimit);

impl Policy for RateLimit {
    async fn apply<F, Fut>(self, request: Request, inner: F) -> Result<Response, BoxError>
    where
        F: FnOnce(Request) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Response, BoxError>> + Send + 'static,
    {
        self.admit(self.who.of(&request))?;
        inner(request).await
    }
}

/// How buckets fill.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// Seconds for one token.
    every: f64,
    /// What a bucket holds.
    burst: f64,
}

/// A bucket, as it was when it was last looked at.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn tokens(self, rate: Rate, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        // With no time between tokens there are always enough.
        let gained = if rate.every > 0.0 { passed / rate.every } else { f64::INFINITY };
        (self.tokens + gained).min(rate.burst)
    }
}

/// The buckets of those who came lately. Invariant: at most `CALLERS`.
#[derive(Debug, Default)]
struct Buckets(HashMap<String, Bucket>);

impl Buckets {
    /// Takes a token, or says how long it takes until there is one.
    fn take(&mut self, key: String, rate: Rate, now: Instant) -> Result<(), Duration> {
        if self.0.len() >= CALLERS && !self.0.contains_key(&key) {
            self.make_room(rate, now);
        }
        let bucket = self.0.entry(key).or_insert(Bucket { tokens: rate.burst, at: now });
        let tokens = bucket.tokens(rate, now);
        *bucket = Bucket { tokens, at: now };
        // What time has filled is not always a whole number to the last digit.
        if tokens < 1.0 - 1e-9 {
            return Err(Duration::from_secs_f64((1.0 - tokens) * rate.every));
        }
        bucket.tokens = tokens - 1.0;
        Ok(())
    }

    /// Forgets full buckets, which are as good as new; if there are none, an eighth of those that
    /// were used least lately, so that this is not done for each newcomer.
    fn make_room(&mut self, rate: Rate, now: Instant) {
        self.0.retain(|_, bucket| bucket.tokens(rate, now) < rate.burst);
        if self.0.len() < CALLERS {
            return;
        }
        let mut used: Vec<Instant> = self.0.values().map(|bucket| bucket.at).collect();
        let (_, oldest, _) = used.select_nth_unstable(CALLERS / 8);
        let (oldest, mut left) = (*oldest, CALLERS / 8);
        self.0.retain(|_, bucket| {
            let goes = left > 0 && bucket.at <= oldest;
            left -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { every: 0.5, burst: 2.0 };

    #[test]
    fn a_bucket_empties_and_fills_with_time() {
        let (mut buckets, now) = (Buckets::default(), Instant::now());
        let mut take = |after: u64| {
            buckets.take(String::new(), RATE, now + Duration::from_millis(after)).is_ok()
        };
        assert_eq!([take(0), take(0), take(0)], [true, true, false]);
        assert_eq!([take(499), take(500), take(501)], [false, true, false]);
        // However long the pause, no more than the burst.
        assert_eq!([take(60_000), take(60_000), take(60_000)], [true, true, false]);
    }

    #[test]
    fn who_comes_back_when_told_is_let_in() {
        let rate = Rate { every: 1.0 / 3.0, burst: 1.0 };
        let (mut buckets, mut now) = (Buckets::default(), Instant::now());
        for _ in 0..100 {
            buckets.take(String::new(), rate, now).unwrap();
            let wait = buckets.take(String::new(), rate, now).unwrap_err();
            now += wait;
        }
    }

    #[test]
    fn callers_are_forgotten_before_there_are_too_many() {
        let (mut buckets, start) = (Buckets::default(), Instant::now());
        for caller in 0..CALLERS {
            let now = start + Duration::from_nanos(caller as u64);
            buckets.take(caller.to_string(), RATE, now).unwrap();
        }
        let soon = start + Duration::from_millis(1);
        buckets.take("one more".to_owned(), RATE, soon).unwrap();
        assert_eq!(buckets.0.len(), CALLERS - CALLERS / 8 + 1);
        assert!(!buckets.0.contains_key("0"));
        assert!(buckets.0.contains_key(&(CALLERS - 1).to_string()));

        // Later everybody's bucket is full again.
        for caller in 0..CALLERS / 8 - 1 {
            buckets.take(format!("new {caller}"), RATE, soon).unwrap();
        }
        assert_eq!(buckets.0.len(), CALLERS);
        buckets.take("the last".to_owned(), RATE, soon + Duration::from_secs(60)).unwrap();
        assert_eq!(buckets.0.len(), 1);
    }

    #[test]
    fn no_time_between_requests_is_no_limit() {
        let limit = RateLimit::new(1, Duration::ZERO);
        for _ in 0..10 {
            limit.admit(String::new()).unwrap();
        }
    }
}
