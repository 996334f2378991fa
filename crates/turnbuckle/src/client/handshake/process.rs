//! Connections to child processes: a child that the probe breaks is replaced by one that gets
//! `initialize` first.
//!
//! Some legacy servers exit when their first message is not `initialize`; others, such as those on the
//! Python SDK up to 1.8, go on and never answer anything again. How long a child may be silent counts
//! from the moment when it has read the probe, so a slow start is not taken for silence.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    process::Command,
    sync::Arc,
    time::Duration,
};

use super::{
    findings::Findings,
    negotiate::Observation,
    open::{CloseUnlessOpened, OpenedConnection, PriorKnowledge},
};
use crate::{
    client::{
        ClientBuilder,
        builder::Kind,
        cache::command_parts,
        connection::{failure::obituary, handle::ClientConnection},
        handlers::answer::ClientService,
    },
    error::{Error, ErrorKind, Result},
    rpc::Transport,
    transport::{
        child_process::{ChildHandle, Spawn, UnreadInput},
        stream,
    },
};
use tokio::time::Instant;
use turnbuckle_types::Revision;

/// How long a child may be silent about a probe that it has read. A server that runs answers in
/// milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1500);
/// How often it is checked whether a child has read the probe.
const INTERVAL: Duration = Duration::from_millis(20);

/// The revision that is offered at once to a server that the probe breaks.
static BROKEN_BY_PROBE: Findings<CommandKey, Revision> = Findings::new();

/// Identifies a command line with its variables and directory: a hash, because variables hold secrets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CommandKey(u64);

impl CommandKey {
    /// Must be called before the first start, which puts inherited variables on the command.
    pub(crate) fn new(command: &Command) -> CommandKey {
        let mut hasher = DefaultHasher::new();
        command_parts(command).hash(&mut hasher);
        CommandKey(hasher.finish())
    }
}

/// A process that was started, and the transport to it.
pub(crate) struct StartedProcess {
    transport: Arc<dyn Transport>,
    answers: Arc<ClientService>,
    child: ChildHandle,
    unread: Option<UnreadInput>,
}

/// The outcome of the first messages to a process.
enum ProcessOpening {
    Ready(Box<ClientConnection>),
    /// The process has ended, and another one is to be offered this revision.
    Replace(Revision),
}

impl ClientBuilder {
    /// Connects to a process that `start` starts, a second time if the probe breaks the first one.
    pub(crate) async fn process(
        &self,
        mut start: impl FnMut() -> Result<StartedProcess>,
        key: CommandKey,
        generation: u64,
    ) -> Result<ClientConnection> {
        let known = BROKEN_BY_PROBE.recall(&key);
        let opened = self.open_process(start()?, known, generation).await;
        let is_contradicted = match &opened {
            Ok(ProcessOpening::Ready(link)) => !link.revision().has_handshake(),
            Ok(ProcessOpening::Replace(_)) | Err(_) => true,
        };
        if known.is_some() && is_contradicted {
            BROKEN_BY_PROBE.forget(&key);
        }
        let offered = match opened? {
            ProcessOpening::Ready(link) => return Ok(*link),
            ProcessOpening::Replace(offered) => offered,
        };
        tracing::debug!("`server/discover` broke the server; it is started again for `initialize`");
        match self.open_process(start()?, Some(offered), generation).await? {
            ProcessOpening::Ready(link) => {
                if link.revision().has_handshake() {
                    BROKEN_BY_PROBE.remember(key, offered);
                }
                Ok(*link)
            }
            ProcessOpening::Replace(_) => {
                Err(Error::new(ErrorKind::Connect, "the server ended the connection"))
            }
        }
    }

    /// Opens a connection to a process, with `initialize` first if its revision is known.
    async fn open_process(
        &self,
        process: StartedProcess,
        known: Option<Revision>,
        generation: u64,
    ) -> Result<ProcessOpening> {
        let StartedProcess { transport, answers, child, unread } = process;
        // A process that is given up on the way sees the end of its input first.
        let guard = CloseUnlessOpened(Some(transport.clone()));
        let known = known.map(|revision| PriorKnowledge { revision, found: None });
        let kind = Kind::Process(unread.as_ref());
        match self.negotiate(&transport, &answers, kind, known).await? {
            OpenedConnection::Ready(opened, _) => {
                guard.keep();
                let mut link = self.link(transport, *opened, &answers, kind, generation);
                link.child = Some(child);
                Ok(ProcessOpening::Ready(Box::new(link)))
            }
            OpenedConnection::Respawn(revision) => {
                drop((guard, transport));
                // Two processes of one server at a time may be in each other's way.
                child.shutdown().await;
                Ok(ProcessOpening::Replace(revision))
            }
        }
    }

    pub(crate) fn start(&self, command: &mut Spawn) -> Result<StartedProcess> {
        let (child, unread) = command.spawn_watched().map_err(|error| {
            Error::new(ErrorKind::Connect, error.to_string()).with_source(error)
        })?;
        let answers = self.answers(Some(command.program().to_owned()));
        let obituary = obituary(&child.handle);
        let wire = stream::start(
            child.stdout,
            child.stdin,
            answers.clone(),
            self.limits.clone(),
            Some(obituary),
        );
        let transport = self.log_transport(wire.transport);
        Ok(StartedProcess { transport, answers, child: child.handle, unread })
    }
}

/// Resolves when a child has not answered within `patience` after it has read its input, or has not
/// read its input within `start`.
pub(crate) async fn silence(
    patience: Duration,
    start: Duration,
    is_unread: impl Fn() -> bool,
) -> Observation {
    let started = Instant::now();
    let mut last_unread = started;
    loop {
        tokio::time::sleep(INTERVAL.min(patience)).await;
        let now = Instant::now();
        if !is_unread() {
            if now - last_unread >= patience {
                return Observation::Silence;
            }
        } else if now - started >= start {
            return Observation::Unread;
        } else {
            last_unread = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(60);

    async fn silent_after(reads_after: Duration) -> (Observation, Duration) {
        let started = Instant::now();
        let observation = silence(PATIENCE, START, || started.elapsed() < reads_after).await;
        (observation, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_before_the_input_is_read_is_no_silence() {
        for reads_after in [0, 1, 10, 59].map(Duration::from_secs) {
            let (observation, after) = silent_after(reads_after).await;
            assert!(matches!(observation, Observation::Silence), "{observation:?}");
            let patience = after - reads_after;
            assert!(patience + INTERVAL >= PATIENCE, "{patience:?}");
            assert!(patience <= PATIENCE + INTERVAL, "{patience:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn input_that_is_never_read_is_no_silence_either() {
        let (observation, after) = silent_after(Duration::MAX).await;
        assert!(matches!(observation, Observation::Unread), "{observation:?}");
        assert!((START..=START + INTERVAL).contains(&after), "{after:?}");
    }
}
