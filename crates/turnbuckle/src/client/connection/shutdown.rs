//! Owns the orderly end of a client: no more calls, time for those in flight, then the close.
//! Does not own the close itself.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::super::{Client, Inner};
use crate::transport::child_process::ExitReport;

/// How an orderly end went.
///
/// ```
/// # use turnbuckle::{Client, Server, tool};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// # let server = Server::new("calc", "1.0").tool(tool("one", async || 1));
/// let client = Client::in_process(&server).await?;
/// let report = client.shutdown(Duration::from_secs(5)).await;
/// assert_eq!((report.finished, report.abandoned), (0, 0));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// How many calls were in flight and came to their end.
    pub finished: usize,
    /// How many were cut off because they had not, when the time was over.
    pub abandoned: usize,
    /// How a server that was spawned ended.
    pub exit: Option<ExitReport>,
}

impl Client {
    /// Closes the connection for every clone once the calls in flight are over, or when `deadline`
    /// has passed. No call can be made from now on; streams of notifications are ended, not waited
    /// for. A token that is being renewed is kept first, if there is time left for that. A spawned
    /// server is then shut down in stages, as by [`close`](Client::close), which may take a while
    /// longer. Dropping the future closes at once.
    ///
    /// ```no_run
    /// # async fn example(client: turnbuckle::Client) {
    /// let report = client.shutdown(std::time::Duration::from_secs(10)).await;
    /// if report.abandoned > 0 {
    ///     eprintln!("{} calls did not end in time", report.abandoned);
    /// }
    /// # }
    /// ```
    pub async fn shutdown(self, deadline: Duration) -> ShutdownReport {
        let calls = &self.0.supervisor.calls;
        let begun = Instant::now();
        let close = CloseNow(&self.0);
        let in_flight = calls.leave();
        // Who runs out of time is counted after.
        let _ = tokio::time::timeout(deadline, calls.idle()).await;
        let abandoned = calls.in_flight().min(in_flight);
        let finished = in_flight - abandoned;
        drop(close);
        let exit = self.0.link().close().await;
        self.0.settle(deadline.saturating_sub(begun.elapsed())).await;
        ShutdownReport { finished, abandoned, exit }
    }
}

/// Closes, without waiting for anything.
struct CloseNow<'a>(&'a Arc<Inner>);

impl Drop for CloseNow<'_> {
    fn drop(&mut self) {
        self.0.supervisor.stop();
        self.0.link().transport.close_now();
    }
}
