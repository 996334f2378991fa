//! Owns what time it is. Does not own what is due when.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// What time it is, in seconds since 1970: tokens carry times of that kind.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now.
    fn now(&self) -> u64;
}

/// This machine's clock.
///
/// ```
/// use turnbuckle_auth::{Clock as _, SystemClock};
/// assert!(SystemClock.now() > 1_700_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.as_ref().map_or(0, Duration::as_secs)
    }
}
