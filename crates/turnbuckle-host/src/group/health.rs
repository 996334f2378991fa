//! The health of the servers of a group, and a stream of its changes.

use std::{
    pin::Pin,
    sync::Weak,
    task::{Context, Poll},
};

use futures_core::Stream;
use tokio::sync::watch;

use super::members::Shared;
use crate::BoxFuture;

/// The health of a server of a group.
///
/// ```
/// use turnbuckle_host::{Health, Status};
/// fn line(health: &Health) -> String {
///     match &health.status {
///         Status::Ready => format!("{} is ready", health.server),
///         Status::Failed(why) => format!("{} did not start: {why}", health.server),
///         other => format!("{}: {other:?}", health.server),
///     }
/// }
/// # let _ = line;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The name of the server in the group.
    pub server: String,
    /// Its status.
    pub status: Status,
}

/// The status of a server of a group.
///
/// ```
/// use turnbuckle_host::Status;
/// assert_ne!(Status::Ready, Status::Failed("it exited with status 3".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// It is connecting, or waits to be started.
    Starting,
    /// It can be called.
    Ready,
    /// Its connection was lost and is being opened again.
    Reconnecting,
    /// It could not be reached, for this reason, and all attempts are used up. The next call tries again.
    Unreachable(String),
    /// It did not start, or its connection is lost for good, for this reason.
    Failed(String),
    /// It was stopped, or is disabled.
    Stopped,
}

/// A stream of the health of a group's servers: first of all servers, then of each that changes.
///
/// If a server changes several times between two reads, only the latest status is yielded. The stream does
/// not keep the group alive, and ends with it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> turnbuckle::Result<()> {
/// use turnbuckle::Client;
/// use turnbuckle_host::{ClientGroup, ProcessConfig, Status};
/// let group = ClientGroup::new();
/// let mut health = group.health();
/// group.start("notes", Client::builder, ProcessConfig::new("no-such-program"))?;
/// while let Some(health) = health.next().await {
///     if let Status::Failed(why) = health.status {
///         assert!(why.contains("no-such-program"));
///         break;
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct HealthStream {
    group: Weak<Shared>,
    seen: u64,
    waiting: Waiting,
}

enum Waiting {
    No(watch::Receiver<u64>),
    Yes(BoxFuture<'static, Option<watch::Receiver<u64>>>),
    Ended,
}

impl HealthStream {
    pub(super) fn new(group: Weak<Shared>, changes: watch::Receiver<u64>) -> HealthStream {
        HealthStream { group, seen: 0, waiting: Waiting::No(changes) }
    }

    /// Returns the next change; `None` when the group has been dropped. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Health> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    fn look(&mut self) -> Option<Health> {
        let group = self.group.upgrade()?;
        let state = group.state();
        let member = state.next_after(self.seen)?;
        self.seen = member.change;
        Some(member.health())
    }
}

impl Stream for HealthStream {
    type Item = Health;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Health>> {
        loop {
            match std::mem::replace(&mut self.waiting, Waiting::Ended) {
                Waiting::Ended => return Poll::Ready(None),
                Waiting::No(mut changes) => {
                    // Marked first, so that a later change wakes the task.
                    changes.mark_unchanged();
                    if let Some(health) = self.look() {
                        self.waiting = Waiting::No(changes);
                        return Poll::Ready(Some(health));
                    }
                    self.waiting = Waiting::Yes(Box::pin(async move {
                        changes.changed().await.is_ok().then_some(changes)
                    }));
                }
                Waiting::Yes(mut changed) => match changed.as_mut().poll(context) {
                    Poll::Pending => {
                        self.waiting = Waiting::Yes(changed);
                        return Poll::Pending;
                    }
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Ready(Some(changes)) => self.waiting = Waiting::No(changes),
                },
            }
        }
    }
}

impl std::fmt::Debug for HealthStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HealthStream").finish_non_exhaustive()
    }
}
