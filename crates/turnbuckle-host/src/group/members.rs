//! The servers of a group: their phases, and the tasks that start them. A task whose server was stopped
//! or started again has no effect.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
    task::JoinHandle,
};

use turnbuckle::{
    __seam::{error as new_error, with_source},
    Client, Error, ErrorKind, Result,
};

use super::{GroupOptions, Health, Status, follow::follow, names::Names, refused};
use crate::BoxFuture;

/// Connects to a server.
pub(super) type Opener = Arc<dyn Fn() -> BoxFuture<'static, Result<Client>> + Send + Sync>;

/// How long a server counts among those that start at once, so that one that hangs does not block the
/// others.
const PLACE: Duration = Duration::from_secs(5);

/// The state that all handles of a group share. Dropping it aborts all starts and drops all clients.
pub(super) struct Shared {
    pub(super) options: GroupOptions,
    places: Arc<Semaphore>,
    state: Mutex<State>,
    /// The number of the last change.
    changed: watch::Sender<u64>,
    /// Held by the call that lists; other calls wait for its result.
    pub(super) listing: tokio::sync::Mutex<()>,
}

/// Invariant: `change` is the greatest of all members' `change`, and no two members have the same.
#[derive(Default)]
pub(super) struct State {
    /// In the order in which they were added.
    pub(super) members: Vec<Member>,
    change: u64,
    /// The names of the last listing, by kind.
    pub(super) names: [Option<Names>; 2],
}

pub(super) struct Member {
    pub(super) name: String,
    pub(super) phase: Phase,
    /// The change with which it was last started or added. Tasks of earlier starts have no effect.
    start: u64,
    /// The change of its current status.
    pub(super) change: u64,
    opener: Option<Opener>,
    /// Its listed names, by kind.
    pub(super) offers: [Offers; 2],
}

pub(super) enum Phase {
    Starting(JoinHandle<()>),
    /// With the last reported status of its connection.
    Ready(Client, Status),
    /// It did not start, or its connection is lost for good.
    Failed(Arc<Error>),
    Stopped,
}

/// The names that a server last listed.
#[derive(Default)]
pub(super) enum Offers {
    #[default]
    Unknown,
    /// It was asked, and failed.
    Unsaid,
    Listed(Vec<String>),
}

/// Whether the names of a server are kept when it is started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Forgotten,
    /// For the same server as before.
    Kept,
}

impl Shared {
    pub(super) fn new(options: GroupOptions) -> Arc<Shared> {
        Arc::new(Shared {
            places: Arc::new(Semaphore::new(options.starts_at_once.max(1))),
            options,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            listing: tokio::sync::Mutex::default(),
        })
    }

    /// Never held while user code runs or anything is awaited.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver of later changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Adds a connected client.
    pub(super) fn add(self: &Arc<Self>, name: &str, client: Client) -> Result<()> {
        let runtime = Handle::try_current();
        self.enter(name, None, Known::Forgotten, |start| {
            if let Ok(runtime) = runtime {
                let who = (name.to_owned(), start);
                runtime.spawn(Shared::follow(Arc::downgrade(self), who, &client));
            }
            Phase::Ready(client, Status::Ready)
        })
    }

    /// Adds a server that does not run.
    pub(super) fn put(&self, name: &str, phase: Phase, opener: Option<Opener>) -> Result<()> {
        self.enter(name, opener, Known::Forgotten, |_| phase)
    }

    /// Starts a server that is new or does not run.
    pub(super) fn start(self: &Arc<Self>, name: &str, opener: Opener) -> Result<()> {
        self.begin(name, opener, Known::Forgotten)
    }

    /// Starts a server as it was started before.
    pub(super) fn start_again(self: &Arc<Self>, name: &str) -> Result<()> {
        let opener = match self.state().member(name) {
            None => return Err(unknown(name)),
            Some(member) => member.opener.clone(),
        };
        let Some(opener) = opener else {
            return Err(refused(format!(
                "how the server `{name}` is started is not known: add it again"
            )));
        };
        self.begin(name, opener, Known::Kept)
    }

    fn begin(self: &Arc<Self>, name: &str, opener: Opener, known: Known) -> Result<()> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(no_runtime());
        };
        self.enter(name, Some(opener.clone()), known, |start| {
            let start = Start {
                group: Arc::downgrade(self),
                server: name.to_owned(),
                start,
                outcome: Err(new_error(ErrorKind::Connect, "its start panicked or was given up")),
            };
            Phase::Starting(runtime.spawn(start.run(opener, self.places.clone())))
        })
    }

    fn enter(
        &self,
        name: &str,
        opener: Option<Opener>,
        known: Known,
        phase: impl FnOnce(u64) -> Phase,
    ) -> Result<()> {
        let mut state = self.state();
        let change = state.change + 1;
        let at = state.members.iter().position(|member| member.name == name);
        let before = match at.map(|at| &mut state.members[at]) {
            Some(Member { phase: Phase::Starting(_) | Phase::Ready(..), .. }) => {
                return Err(refused(format!("there is a server `{name}` already: stop it first")));
            }
            Some(member) => {
                if known == Known::Forgotten {
                    member.offers = Default::default();
                }
                member.opener = opener;
                (member.start, member.change) = (change, change);
                Some(std::mem::replace(&mut member.phase, phase(change)))
            }
            None => {
                let (name, phase) = (name.to_owned(), phase(change));
                let offers = Default::default();
                let start = change;
                state.members.push(Member { name, phase, start, change, opener, offers });
                None
            }
        };
        state.change = change;
        drop(state);
        drop(before);
        self.changed.send_replace(change);
        Ok(())
    }

    /// Marks a server as stopped, and returns its phase if it has to be ended.
    pub(super) fn retire(&self, name: &str) -> Option<Phase> {
        let mut state = self.state();
        let change = state.change + 1;
        let member = state.members.iter_mut().find(|member| member.name == name)?;
        if matches!(member.phase, Phase::Stopped) {
            return None;
        }
        member.change = change;
        let before = std::mem::replace(&mut member.phase, Phase::Stopped);
        state.change = change;
        drop(state);
        self.changed.send_replace(change);
        if matches!(before, Phase::Failed(_)) { None } else { Some(before) }
    }

    /// Stores the outcome of a start. The outcome of an outdated start is dropped.
    fn finish_start(&self, name: &str, start: u64, outcome: Result<Client>) {
        let mut state = self.state();
        let change = state.change + 1;
        let mut members = state.members.iter_mut();
        let member = members.find(|member| member.is(name, start));
        let Some(member @ Member { phase: Phase::Starting(_), .. }) = member else {
            return drop((state, outcome));
        };
        if let Err(error) = &outcome {
            tracing::debug!(server = name, %error, "a server of a group did not start");
        }
        member.change = change;
        member.phase = match outcome {
            Ok(client) => Phase::Ready(client, Status::Ready),
            Err(error) => Phase::Failed(Arc::new(error)),
        };
        state.change = change;
        drop(state);
        self.changed.send_replace(change);
    }

    /// Stores the reported status of a connection.
    fn set_status(&self, name: &str, start: u64, said: Result<Status>) {
        let mut state = self.state();
        let change = state.change + 1;
        let mut members = state.members.iter_mut();
        let member = members.find(|member| member.is(name, start));
        let Some(member @ Member { phase: Phase::Ready(..), .. }) = member else { return };
        let before = match (said, &mut member.phase) {
            (Ok(status), Phase::Ready(_, known)) if *known == status => return,
            (Ok(status), Phase::Ready(_, known)) => {
                *known = status;
                None
            }
            (Ok(_), _) => return,
            (Err(error), phase) => Some(std::mem::replace(phase, Phase::Failed(Arc::new(error)))),
        };
        member.change = change;
        state.change = change;
        drop(state);
        drop(before);
        self.changed.send_replace(change);
    }

    /// Follows the client of a start.
    fn follow(
        group: Weak<Shared>,
        (server, start): (String, u64),
        client: &Client,
    ) -> BoxFuture<'static, ()> {
        follow(client, move |said| {
            if let Some(group) = group.upgrade() {
                group.set_status(&server, start, said);
            }
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for member in &self.state.get_mut().unwrap_or_else(PoisonError::into_inner).members {
            if let Phase::Starting(task) = &member.phase {
                task.abort();
            }
        }
    }
}

impl State {
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    pub(super) fn member_mut(&mut self, name: &str) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.name == name)
    }

    /// Returns the member whose change is the first after `seen`.
    pub(super) fn next_after(&self, seen: u64) -> Option<&Member> {
        let later = self.members.iter().filter(|member| member.change > seen);
        later.min_by_key(|member| member.change)
    }
}

impl Member {
    fn is(&self, name: &str, start: u64) -> bool {
        self.name == name && self.start == start
    }

    pub(super) fn health(&self) -> Health {
        let status = match &self.phase {
            Phase::Starting(_) => Status::Starting,
            Phase::Ready(_, status) => status.clone(),
            Phase::Failed(error) => Status::Failed(error.to_string()),
            Phase::Stopped => Status::Stopped,
        };
        Health { server: self.name.clone(), status }
    }
}

pub(super) fn no_runtime() -> Error {
    refused("a group starts its servers inside a Tokio runtime")
}

/// Returns the error for a server that is not in the group.
pub(super) fn unknown(name: &str) -> Error {
    refused(format!("there is no server `{name}` in this group"))
}

/// Returns the error for a server that has failed.
pub(super) fn failed(name: &str, error: &Arc<Error>) -> Error {
    let message = format!("the server `{name}` has failed: {error}");
    with_source(new_error(error.kind(), message), error.clone())
}

/// One start. Its outcome is stored when it is dropped, so that a panic counts, too.
struct Start {
    group: Weak<Shared>,
    server: String,
    start: u64,
    outcome: Result<Client>,
}

impl Start {
    async fn run(mut self, opener: Opener, places: Arc<Semaphore>) {
        // The semaphore is never closed.
        let place = places.acquire_owned().await.ok();
        let opening = catch_unwind(AssertUnwindSafe(|| opener()));
        drop(opener);
        let Ok(mut opening) = opening else { return };
        self.outcome = tokio::select! {
            biased;
            outcome = &mut opening => outcome,
            () = tokio::time::sleep(PLACE) => {
                drop(place);
                opening.as_mut().await
            }
        };
        drop(opening);
        let Ok(client) = &self.outcome else { return };
        let who = (self.server.clone(), self.start);
        let following = Shared::follow(self.group.clone(), who, client);
        drop(self);
        following.await;
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        let Some(group) = self.group.upgrade() else { return };
        let gone = Err(new_error(ErrorKind::Closed, "told already"));
        group.finish_start(&self.server, self.start, std::mem::replace(&mut self.outcome, gone));
    }
}
