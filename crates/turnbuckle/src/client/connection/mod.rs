//! Looks after a client's connection: which one there is, and what happens when it is lost.
//!
//! Owns: the current connection, the state that anyone can watch, and who waits for what comes
//! next. Does not own: making it anew (`renew`), how a connection is made (`dial`), nor the calls
//! on it.

mod budget;
mod calls;
mod dial;
pub(crate) mod failure;
pub(crate) mod handle;
mod policy;
mod renew;
mod replay;
mod restore;
mod shutdown;
mod state;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::watch, task::AbortHandle};

use super::ClientBuilder;
use crate::{
    client::connection::handle::ClientConnection,
    error::{Closed, Error, ErrorKind, Executed, Result},
};
use budget::{BudgetOwner, ReconnectAttempt, RetryBudget};
use calls::CallCounter;
pub(super) use dial::{ConnectionTarget, Dialer, Process};
pub use policy::Reconnect;
use renew::LookingAfter;
pub use replay::Retry;
pub(super) use replay::{Twice, may_repeat};
pub(super) use restore::Restored;
pub use shutdown::ShutdownReport;
pub use state::{ConnectionState, ConnectionStates};

/// A client's connection, whichever it is by now.
pub(super) struct Supervisor {
    pub(super) settings: ClientBuilder,
    /// Changed only under the lock of `states`, and never the other way round.
    current: Mutex<Arc<ClientConnection>>,
    states: watch::Sender<ConnectionState>,
    /// Invariant: true unless the state is `Ready`. For calls, which look at nothing else.
    down: AtomicBool,
    /// `None` if there is only this one.
    dial: Option<Box<dyn Dialer>>,
    /// What is left of the attempts to come back, whatever it is that was lost.
    budget: Mutex<RetryBudget>,
    /// The same for restarts of a process.
    restarts: Mutex<RetryBudget>,
    calls: CallCounter,
    watcher: OnceLock<AbortHandle>,
}

impl Supervisor {
    /// Looks after a connection that was just made.
    pub(super) fn start(
        settings: ClientBuilder,
        link: ClientConnection,
        dial: Option<Box<dyn Dialer>>,
    ) -> Arc<Supervisor> {
        let states = settings.states.clone();
        states.send_replace(ConnectionState::Ready { generation: link.generation });
        let supervisor = Arc::new(Supervisor {
            settings,
            current: Mutex::new(Arc::new(link)),
            states,
            down: AtomicBool::new(false),
            dial,
            budget: Mutex::default(),
            restarts: Mutex::default(),
            calls: CallCounter::default(),
            watcher: OnceLock::new(),
        });
        let task = tokio::spawn(renew::look_after(LookingAfter(supervisor.clone())));
        let _ = supervisor.watcher.set(task.abort_handle());
        supervisor
    }

    fn current(&self) -> MutexGuard<'_, Arc<ClientConnection>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection of now, or the last one.
    pub(super) fn link(&self) -> Arc<ClientConnection> {
        self.current().clone()
    }

    /// Looks something up on it, for who does not need it for longer. `look` must not wait, nor
    /// run anything of the user's.
    pub(super) fn with_link<V>(&self, look: impl FnOnce(&ClientConnection) -> V) -> V {
        look(&self.current())
    }

    pub(super) fn state(&self) -> ConnectionState {
        self.states.borrow().clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_down() && matches!(*self.states.borrow(), ConnectionState::Closed { .. })
    }

    pub(super) fn states(&self) -> ConnectionStates {
        ConnectionStates::new(self.states.subscribe())
    }

    /// Whether a connection that is lost may be followed by another.
    pub(super) fn recovers(&self) -> bool {
        self.most_attempts() > 0
    }

    /// Whether there is no connection that calls could be made on.
    pub(super) fn is_down(&self) -> bool {
        // Only a hint: who reads an old value makes its call in vain and waits then, or waits for
        // what is there already.
        self.down.load(Relaxed)
    }

    fn way(&self) -> Option<ConnectionTarget> {
        self.dial.as_ref().map(|dial| dial.way())
    }

    fn most_attempts(&self) -> u32 {
        let policy = &self.settings.reconnect;
        match self.way() {
            None => 0,
            Some(ConnectionTarget::Process) => policy.restarts,
            Some(_) => policy.attempts,
        }
    }

    /// Pays for making a stream anew that has lasted for so long; `None` if there were enough attempts.
    pub(super) fn attempt(&self, lasted: Duration) -> Option<ReconnectAttempt<'_>> {
        ReconnectAttempt::paid(
            &self.budget,
            &self.settings.reconnect,
            BudgetOwner::Attempts,
            lasted,
        )
    }

    /// The same for the connection itself.
    fn renewal(&self, lasted: Duration) -> Option<ReconnectAttempt<'_>> {
        let policy = &self.settings.reconnect;
        match self.way() {
            None => None,
            Some(ConnectionTarget::Process) => {
                ReconnectAttempt::paid(&self.restarts, policy, BudgetOwner::Restarts, lasted)
            }
            Some(_) => ReconnectAttempt::paid(&self.budget, policy, BudgetOwner::Attempts, lasted),
        }
    }

    /// Whether the end of a connection is seen by nobody but those who call.
    fn is_found_out_by_calls(&self) -> bool {
        #[cfg(feature = "http")]
        return self.way() == Some(ConnectionTarget::Address) && self.recovers();
        #[cfg(not(feature = "http"))]
        false
    }

    /// The same as [`newer`](Supervisor::newer), for who found out that the one with this number is
    /// no good any more: looks for another, where nobody else would notice.
    pub(super) async fn newer_because(
        &self,
        than: u64,
        why: &Error,
    ) -> Result<Arc<ClientConnection>> {
        // Before looking: what was given up earlier is tried again for whoever comes now.
        self.lost(than, why);
        self.newer(than).await
    }

    /// Waits for a connection, whichever that is, and has it looked for if it was given up; the error
    /// is why there is none. Dropping the future loses nothing.
    pub(super) async fn present(&self) -> Result<Arc<ClientConnection>> {
        self.look_again();
        // All have a greater number.
        self.newer(0).await
    }

    /// Waits for a connection that is newer than the one with this number; the error is why there
    /// is none. Dropping the future loses nothing.
    pub(super) async fn newer(&self, than: u64) -> Result<Arc<ClientConnection>> {
        let mut states = self.states.subscribe();
        let decided = states.wait_for(|state| match state {
            ConnectionState::Ready { generation } => *generation > than,
            ConnectionState::Connecting | ConnectionState::Reconnecting { .. } => false,
            ConnectionState::Unreachable { .. } | ConnectionState::Closed { .. } => true,
        });
        match decided.await.as_deref() {
            Ok(ConnectionState::Closed { reason } | ConnectionState::Unreachable { reason }) => {
                Err(reason.again())
            }
            _ => Ok(self.link()),
        }
    }

    /// Has a server looked for again that was given up, for someone who does not wait for it.
    pub(super) fn look_again(&self) {
        // There is no connection of this number: only what was given up is begun again.
        self.lost(0, &was_lost());
    }

    /// Somebody found out that the connection with this number is lost. On a wire that has a
    /// connection of its own that is noticed without being told.
    pub(super) fn lost(&self, generation: u64, why: &Error) {
        if !self.is_found_out_by_calls() {
            return;
        }
        self.change(|state| {
            let news = match state {
                ConnectionState::Ready { generation: current } => *current == generation,
                ConnectionState::Unreachable { .. } => true,
                _ => false,
            };
            news.then(|| {
                let reason = Arc::new(why.again().with_executed(Executed::No));
                ConnectionState::Reconnecting { attempt: 1, reason }
            })
        });
    }

    /// Ends it: there will be no other connection. Whoever holds the last one closes it.
    pub(super) fn stop(&self) {
        self.closed(Closed::new("the connection was closed on this side").error(Executed::No));
        if let Some(watcher) = self.watcher.get() {
            watcher.abort();
        }
    }

    fn closed(&self, reason: Error) {
        let reason = Arc::new(reason);
        self.change(|_| Some(ConnectionState::Closed { reason }));
    }

    /// Puts a new connection in the place of the old one; gives it back if it came too late.
    fn install(&self, link: Arc<ClientConnection>) -> Result<(), Arc<ClientConnection>> {
        let (mut link, mut old) = (Some(link), None);
        self.change(|_| {
            let link = link.take()?;
            let generation = link.generation;
            old = Some(std::mem::replace(&mut *self.current(), link));
            Some(ConnectionState::Ready { generation })
        });
        // Outside the locks: this may be its end.
        drop(old);
        link.map_or(Ok(()), Err)
    }

    /// Changes the state, unless it is final: the first reason to close stays.
    fn change(&self, next: impl FnOnce(&ConnectionState) -> Option<ConnectionState>) {
        self.states.send_if_modified(|state| {
            if matches!(state, ConnectionState::Closed { .. }) {
                return false;
            }
            let Some(next) = next(state) else { return false };
            self.down.store(!matches!(next, ConnectionState::Ready { .. }), Relaxed);
            *state = next;
            true
        });
    }
}

/// What there is to say for who did not see it happen.
fn was_lost() -> Error {
    Error::new(ErrorKind::Closed, "the connection was lost")
}

#[cfg(test)]
mod tests {
    use std::{future::IntoFuture as _, io};

    use tokio::{
        io::{AsyncBufReadExt as _, BufReader},
        sync::mpsc,
    };
    use turnbuckle_types::Revision;

    use super::*;
    use crate::client::Client;

    /// Between the connection and the hint there is a moment in which they differ.
    #[tokio::test(start_paused = true)]
    async fn an_old_hint_makes_nobody_wait_for_another_connection() {
        let (give, mut given) = mpsc::channel(1);
        let make = move || {
            let (give, (ours, theirs)) = (give.clone(), tokio::io::duplex(4096));
            async move { give.send(theirs).await.map(|()| ours).map_err(io::Error::other) }
        };
        let client = Client::builder().revision(Revision::LATEST).dial(make).await.unwrap();
        let theirs = given.recv().await.unwrap();
        client.0.supervisor.down.store(true, Relaxed);
        let call = tokio::spawn(client.discover().into_future());
        let mut line = String::new();
        let mut theirs = BufReader::new(theirs);
        let heard = theirs.read_line(&mut line);
        tokio::time::timeout(Duration::from_secs(5), heard).await.unwrap().unwrap();
        assert!(line.contains("server/discover"), "{line}");
        assert!(matches!(client.state(), ConnectionState::Ready { generation: 1 }));
        call.abort();
    }
}
