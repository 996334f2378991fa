//! Owns making a lost connection anew, one attempt after the other. Does not own who waits for it.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use super::{ConnectionState, Dialer, Supervisor};
use crate::error::{Closed, Error, ErrorKind, Executed};

/// Follows one connection after the other, until there is no next one.
pub(super) async fn look_after(supervisor: LookingAfter) {
    let supervisor = &*supervisor.0;
    let mut states = supervisor.states.subscribe();
    loop {
        let (ended, since) = (supervisor.link().transport.ended(), Instant::now());
        let mut lost = tokio::select! {
            biased;
            ended = ended => Arc::new(ended.error(Executed::No)),
            told = told(&mut states) => match told {
                Some(lost) => lost,
                None => return,
            },
        };
        let mut after = After::Loss(since.elapsed());
        loop {
            match supervisor.reconnect(lost, after).await {
                AfterAttempt::Follow => break,
                AfterAttempt::Stop => return,
                // The end of the old connection is no news: now only those who call are.
                AfterAttempt::Wait => match told(&mut states).await {
                    Some(again) => (lost, after) = (again, After::Rest),
                    None => return,
                },
            }
        }
    }
}

/// Why somebody found out that there is no connection; `None` when there will be none.
async fn told(states: &mut watch::Receiver<ConnectionState>) -> Option<Arc<Error>> {
    let changed = states.wait_for(|state| {
        matches!(state, ConnectionState::Reconnecting { .. } | ConnectionState::Closed { .. })
    });
    match changed.await.as_deref() {
        Ok(ConnectionState::Reconnecting { reason, .. }) => Some(reason.clone()),
        _ => None,
    }
}

/// Whoever waits is told if this task ends before its time: with the runtime, even before it has
/// begun, or by a panic in a function of the user's.
pub(super) struct LookingAfter(pub(super) Arc<Supervisor>);

impl Drop for LookingAfter {
    fn drop(&mut self) {
        let why = if std::thread::panicking() {
            "making the connection anew panicked"
        } else {
            "the runtime ended on which the connection was looked after"
        };
        self.0.closed(Closed::new(why).error(Executed::No));
    }
}

/// When it is that a connection is made anew.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// It was just lost, after it had lasted for so long.
    Loss(Duration),
    /// It had been given up, and somebody asks for it.
    Rest,
}

/// What comes after trying.
enum AfterAttempt {
    /// There is a connection.
    Follow,
    /// There is none until somebody asks for it.
    Wait,
    Stop,
}

impl Supervisor {
    /// Makes the connection anew, as often as the budget allows.
    async fn reconnect(&self, lost: Arc<Error>, after: After) -> AfterAttempt {
        let Some(dial) = self.dial.as_ref().filter(|_| self.recovers()) else {
            self.closed(lost.again());
            return AfterAttempt::Stop;
        };
        let mut paid = match after {
            After::Loss(lasted) => match self.renewal(lasted) {
                // A server that takes connections only to end them must not be asked without end.
                None => {
                    let why = "it was made anew as often as it may be";
                    return self.give_up(told_as(format!("{}; {why}", lost.message()), &lost));
                }
                paid => paid,
            },
            After::Rest => self.renewal(Duration::ZERO),
        };
        let mut reason = lost.clone();
        loop {
            // Once the budget is spent, whoever asks later has one attempt, at once.
            let (attempt, pause) = match &paid {
                Some(paid) => (paid.number, self.pause(paid.number, &lost)),
                None => (self.most_attempts(), Duration::ZERO),
            };
            self.trying(attempt, &reason);
            tokio::time::sleep(pause).await;
            match self.renewed(&**dial).await {
                Ok(then) => return then,
                Err(error) => {
                    tracing::debug!(%error, attempt, "the connection was not made again");
                    reason = Arc::new(failed(&lost, &error));
                    // Nobody is asked to log in again and again.
                    if error.is_authorization() && !error.may_be_authorized_later() {
                        break;
                    }
                }
            }
            drop(paid);
            paid = self.renewal(Duration::ZERO);
            if paid.is_none() {
                break;
            }
        }
        self.give_up(reason.again())
    }

    /// For good, or until somebody asks again.
    fn give_up(&self, reason: Error) -> AfterAttempt {
        if self.is_found_out_by_calls() {
            let reason = Arc::new(reason);
            self.change(|_| Some(ConnectionState::Unreachable { reason }));
            return AfterAttempt::Wait;
        }
        self.closed(reason);
        AfterAttempt::Stop
    }

    async fn renewed(&self, dial: &dyn Dialer) -> Result<AfterAttempt, Error> {
        let generation = self.link().generation + 1;
        let link = dial.dial(&self.settings, generation).await?;
        let (settings, revision) = (&self.settings, link.revision());
        settings.restored.restore(&*link.transport, revision, settings.connect_timeout).await;
        match self.install(Arc::new(link)) {
            Ok(()) => Ok(AfterAttempt::Follow),
            Err(_late) => Ok(AfterAttempt::Stop),
        }
    }

    /// The pause before this attempt, counted from one. A server that says how long is heard.
    fn pause(&self, attempt: u32, lost: &Error) -> Duration {
        let policy = &self.settings.reconnect;
        let asked = lost.retry_after().unwrap_or_default().min(policy.longest_pause);
        policy.pause(attempt, RandomState::new().hash_one(attempt)).max(asked)
    }

    fn trying(&self, attempt: u32, reason: &Arc<Error>) {
        let reason = reason.clone();
        self.change(|_| Some(ConnectionState::Reconnecting { attempt, reason }));
    }
}

/// Both: why it was lost, and why it did not come back.
fn failed(lost: &Error, error: &Error) -> Error {
    let message = format!("{}; it could not be made again: {}", lost.message(), error.message());
    // The newest words say most, where there are any.
    let speaks = if error.last_stderr().is_empty() { lost } else { error };
    told_as(message, speaks)
}

fn told_as(message: String, speaks: &Error) -> Error {
    Error::new(ErrorKind::Closed, message).with_stderr(speaks.last_stderr().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_failures_are_told_once_and_the_last_words_at_the_end() {
        let lost = Closed::of(ErrorKind::Closed, "the server exited", vec!["boom".to_owned()]);
        let lost = lost.error(Executed::No);
        let error = Error::new(ErrorKind::Connect, "no such program");
        let told = failed(&lost, &error);
        assert_eq!(
            told.to_string(),
            "the server exited; it could not be made again: no such program; its stderr says: boom"
        );
        let error = error.with_stderr(vec!["bang".to_owned()]);
        assert!(
            failed(&lost, &error).to_string().ends_with("no such program; its stderr says: bang")
        );
        assert!(told.is_closed() && !told.maybe_executed());
    }
}
