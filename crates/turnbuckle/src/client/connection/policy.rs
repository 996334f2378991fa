//! Owns how often, and after which pauses, a lost connection is made again: a pure function of how
//! it went so far. Does not own what was spent, the clock, the dice or the connection.

use std::time::Duration;

/// When a connection that was lost is made again.
///
/// All that a client does to come back is paid from one budget of attempts, whoever and however many
/// wait for it: to have its connection made anew, and over HTTP its listen streams. Restarts of a
/// server process have another. A budget is whole again when what was lost has lasted for a while and
/// nothing else was lost in that time. Between attempts there are pauses that grow, each chosen at
/// random up to its length, so that many clients don't come back at once; a server that says when
/// (`Retry-After`) is heard. Making a client's first connection is not tried again, nor is a server
/// at an address looked for that has never answered.
///
/// Over HTTP a legacy server's answers and news come on streams of their own, which proxies like to
/// cut. Taking those up again costs no attempt of the connection's: as many of them can be taken up at
/// once, and each is given back after its share of [`healthy_after`](Reconnect::healthy_after). Their
/// pauses begin with a second, as such streams have it, and grow to the longest. A server that asks to
/// be polled (`retry`, and the stream's end) is polled as it wishes.
///
/// When the budget is spent, the client of a process or a stream is closed. That of an address is
/// not: the calls that waited fail, and each later one tries once.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{Client, client::Reconnect};
/// let builder = Client::builder()
///     .reconnect(Reconnect::new().attempts(8).restarts(3).longest_pause(Duration::from_secs(10)));
/// # let _ = builder;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Reconnect {
    pub(crate) attempts: u32,
    pub(super) restarts: u32,
    pub(super) first_pause: Duration,
    pub(super) longest_pause: Duration,
    pub(crate) healthy_after: Duration,
}

impl Default for Reconnect {
    fn default() -> Reconnect {
        Reconnect::new()
    }
}

impl Reconnect {
    /// Five attempts, the first after at most a quarter of a second and none after a pause of
    /// more than half a minute; a server process is started once more.
    pub fn new() -> Reconnect {
        Reconnect {
            attempts: 5,
            restarts: 1,
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(30),
            healthy_after: Duration::from_secs(60),
        }
    }

    /// A connection that is lost stays lost.
    pub fn never() -> Reconnect {
        Reconnect { attempts: 0, restarts: 0, ..Reconnect::new() }
    }

    /// How often an address, or a function that makes a stream, is tried before that is given up, and
    /// a listen stream of a server at an address opened again: 5 times in all.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Reconnect {
        self.attempts = attempts;
        self
    }

    /// How often a server process that ended is started again: once. The count begins anew when
    /// one has lived for [`healthy_after`](Reconnect::healthy_after).
    #[must_use]
    pub fn restarts(mut self, restarts: u32) -> Reconnect {
        self.restarts = restarts;
        self
    }

    /// The longest that the first pause can be: 250 ms. Each next one can be twice as long; the
    /// pause itself is chosen at random below that.
    #[must_use]
    pub fn first_pause(mut self, pause: Duration) -> Reconnect {
        self.first_pause = pause;
        self
    }

    /// The longest that any pause can be: 30 seconds.
    #[must_use]
    pub fn longest_pause(mut self, pause: Duration) -> Reconnect {
        self.longest_pause = pause;
        self
    }

    /// How long a connection, or a stream, has to last for the budget to be whole again: a minute.
    #[must_use]
    pub fn healthy_after(mut self, time: Duration) -> Reconnect {
        self.healthy_after = time;
        self
    }

    /// The same for streams that a legacy server has over HTTP.
    #[cfg(feature = "http")]
    pub(crate) fn resuming(&self) -> crate::transport::http::client::Resuming {
        crate::transport::http::client::Resuming {
            attempts: self.attempts,
            healthy_after: self.healthy_after,
            longest_pause: self.longest_pause,
        }
    }

    /// The longest that the pause before this attempt, counted from one, can be.
    fn ceiling(&self, attempt: u32) -> Duration {
        let doubled = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(doubled).min(self.longest_pause)
    }

    /// The pause before this attempt, counted from one; `chance` is any number.
    pub(crate) fn pause(&self, attempt: u32, chance: u64) -> Duration {
        let ceiling = u64::try_from(self.ceiling(attempt).as_nanos()).unwrap_or(u64::MAX);
        // Twice the range of one bit short of all: the product fits into 128.
        let share = (u128::from(ceiling) * u128::from(chance)) >> 64;
        Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_never_overflow() {
        let policy = Reconnect::new();
        let longest = |attempt| policy.pause(attempt, u64::MAX).as_millis();
        assert_eq!([longest(1), longest(2), longest(3)], [249, 499, 999]);
        assert_eq!(longest(40), 29_999);
        assert_eq!(longest(u32::MAX), 29_999);
        assert_eq!(policy.pause(9, 0), Duration::ZERO);
        let huge = Reconnect::new().first_pause(Duration::MAX).longest_pause(Duration::MAX);
        assert!(huge.pause(u32::MAX, u64::MAX) > Duration::from_secs(1 << 33));
    }
}
