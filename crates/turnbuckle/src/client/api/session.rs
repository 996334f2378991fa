//! Requests about the connection and the server as a whole.

use std::sync::atomic::{AtomicU8, Ordering};

use turnbuckle_types::{Discover, DiscoverResult, LogLevel, Method, Ping, SetLevel};

use super::{
    super::{Call, Client},
    complete,
};

impl Client {
    /// Checks whether the server responds. The modern era has no ping: there it fails at
    /// once and names [`discover`](Client::discover). Dropping the future cancels it.
    pub fn ping(&self) -> Call<()> {
        self.verb(Method::Ping, Ping::new(), |_, _| Ok(()))
    }

    /// Requests the revisions and capabilities of a modern server. Dropping the future sends no
    /// cancellation.
    pub fn discover(&self) -> Call<DiscoverResult> {
        self.verb(Method::Discover, Discover::new(), |_, raw| {
            complete::<DiscoverResult>(Method::Discover, raw, |result| result.result_type.as_ref())
        })
        .cached()
    }

    /// Sets the least level of the server's log messages. A legacy server receives a request. For a
    /// modern one this completes at once, and each later call sends the level, unless it has a
    /// [level](Call::log_level) of its own. Dropping the future cancels it.
    ///
    /// ```no_run
    /// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
    /// client.set_log_level(turnbuckle::types::LogLevel::Warning).await?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "logging/setLevel")]
    pub fn set_log_level(&self, least: LogLevel) -> Call<()> {
        let call = self.verb(Method::SetLevel, SetLevel::new(least), |_, _| Ok(()));
        call.or_local(move |client, link| {
            client.log_level.set(least);
            (!Method::SetLevel.sent_by_client(link.revision())).then_some(())
        })
    }
}

/// The level that each request sends, in revisions without a level for the connection.
#[derive(Debug, Default)]
pub(crate) struct LogSetting(
    /// Counted from one; zero for none.
    AtomicU8,
);

const LEVELS: [LogLevel; 8] = [
    LogLevel::Debug,
    LogLevel::Info,
    LogLevel::Notice,
    LogLevel::Warning,
    LogLevel::Error,
    LogLevel::Critical,
    LogLevel::Alert,
    LogLevel::Emergency,
];

impl LogSetting {
    fn set(&self, least: LogLevel) {
        let place = (1..).zip(LEVELS).find(|(_, level)| *level == least);
        self.0.store(place.map_or(0, |(place, _)| place), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<LogLevel> {
        let place = usize::from(self.0.load(Ordering::Relaxed));
        LEVELS.get(place.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_of_now_is_the_one_that_was_set_last() {
        let setting = LogSetting::default();
        assert_eq!(setting.get(), None);
        for level in LEVELS {
            setting.set(level);
            assert_eq!(setting.get(), Some(level));
        }
    }
}
