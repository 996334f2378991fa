//! Owns the course of a command that talks to a server: connect, work, close, whatever
//! happens meanwhile. Does not own the work.

use std::{
    collections::VecDeque,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle::{
    Client,
    transport::child::{Spawn, settle},
};

use crate::{
    args::{Connection, Variable},
    exit::{Failure, LAST_LINES, Status},
    interrupt::Interrupt,
    progress::Line,
    target::Target,
};

/// How long a server has to leave when its input ends, and again after SIGTERM. Shorter
/// than the library's: somebody waits for the prompt.
const GRACE: Duration = Duration::from_secs(1);
/// How long the end of the server is waited for in all.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// How long a server may be silent about the first question before the older one follows.
const PROBE: Duration = Duration::from_secs(10);

/// Connects, runs `work` and closes. Ctrl-C and the end of the time drop what runs, which
/// cancels it on the server; the closing then lets the server hear of it.
pub(crate) async fn with_client<T>(
    connection: &Connection,
    line: &Line,
    work: impl AsyncFnOnce(&Client, Deadline) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut interrupt = Interrupt::listen()?;
    let deadline = Deadline::after(connection.timeout);
    let connected = tokio::select! {
        biased;
        () = interrupt.happened() => Err(interrupted("no call was made")),
        connected = open(connection, deadline, line) => connected,
    };
    let (client, outcome) = match connected {
        Err(failure) => (None, Err(failure)),
        Ok(client) => {
            let outcome = tokio::select! {
                biased;
                () = interrupt.happened() => Err(interrupted("the call was cancelled")),
                outcome = work(&client, deadline) => outcome,
            };
            (Some(client), outcome)
        }
    };
    line.clear();
    // Said before the server is waited for: nobody should have to wait to read it.
    let outcome = outcome.map_err(|failure| {
        let failure = if connection.verbose { failure.without_details() } else { failure };
        failure.report();
        failure
    });
    tokio::select! {
        biased;
        () = interrupt.happened() => {
            Err(interrupted("the server was not waited for")).inspect_err(Failure::report)
        }
        () = close(client) => outcome,
    }
}

/// When the whole command must be over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<(Duration, Instant)>);

impl Deadline {
    fn after(limit: Option<Duration>) -> Deadline {
        let now = Instant::now();
        // A time too far away to be told is no limit.
        Deadline(limit.and_then(|limit| Some((limit, now.checked_add(limit)?))))
    }

    /// What is left of the time.
    pub(crate) fn rest(&self) -> Option<Duration> {
        self.0.map(|(_, end)| end.saturating_duration_since(Instant::now()))
    }

    /// Waits for `work` until the time is over.
    pub(crate) async fn limit<T, E: Into<Failure>>(
        &self,
        lateness: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        let Some((_, end)) = self.0 else { return work.await.map_err(Into::into) };
        match tokio::time::timeout_at(end, work).await {
            Ok(outcome) => outcome.map_err(Into::into),
            Err(_) => Err(self.passed(lateness)),
        }
    }

    fn is_over(&self) -> bool {
        self.rest() == Some(Duration::ZERO)
    }

    /// The failure for time that is over.
    pub(crate) fn passed(&self, lateness: &str) -> Failure {
        let limit = self.0.map(|(limit, _)| limit).unwrap_or_default();
        Failure::failed(format!("{lateness} within {limit:?} (--timeout)"))
    }
}

/// Connects within the time, and tells what the server said if it says nothing to us.
async fn open(connection: &Connection, deadline: Deadline, line: &Line) -> Result<Client, Failure> {
    let heard = Heard::default();
    let connecting = line.watch("connecting", connect(connection, line, heard.clone()));
    match deadline.limit("there was no connection to the server", connecting).await {
        Err(failure) if deadline.is_over() => Err(failure.with_last_lines(&heard.lines())),
        connected => connected,
    }
}

async fn connect(connection: &Connection, line: &Line, heard: Heard) -> Result<Client, Failure> {
    let (program, arguments) = match &connection.target {
        Target::Program { program, arguments } => (program, arguments),
        Target::Http(url) => {
            return Err(Failure::failed(format!(
                "servers on the web such as {url} are not supported yet: give a command line that starts a server"
            )));
        }
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let mut passed = Vec::new();
    for variable in &connection.environment {
        match variable {
            Variable::Set(name, value) => drop(command.env(name, value)),
            Variable::Passed(name) => passed.push(name),
        }
    }
    let mut spawn = Spawn::new(command).close_grace(GRACE).terminate_grace(GRACE);
    for name in passed {
        spawn = spawn.allow_env(name);
    }
    spawn = if connection.verbose {
        let line = line.clone();
        spawn.on_stderr(move |text| line.say(&format!("server: {text}")))
    } else {
        spawn.on_stderr(move |text| heard.hear(text))
    };
    // A server that does not know the first question leaves room for the second.
    let probe = connection.timeout.map_or(PROBE, |limit| PROBE.min(limit / 3));
    let mut builder =
        Client::builder().info("turnbuckle-cli", env!("CARGO_PKG_VERSION")).probe_timeout(probe);
    if let Some(revision) = connection.revision {
        builder = builder.revision(revision);
    }
    Ok(builder.spawn(spawn).await?)
}

/// Writes what waits, among it a cancellation, and sees the server off.
async fn close(client: Option<Client>) {
    let closing = async {
        if let Some(client) = client {
            client.close().await;
        }
    };
    let _ = tokio::time::timeout(LAST_WAIT, closing).await;
    // A server whose connection was given up halfway is ended by another thread, which the
    // end of this process would end too.
    let _ = tokio::task::spawn_blocking(|| settle(LAST_WAIT)).await;
}

/// The last lines of a server's stderr, for the case that no connection to it is left to ask.
#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<VecDeque<String>>>);

impl Heard {
    fn hear(&self, line: &str) {
        let mut lines = self.lock();
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        // Lines are whole whatever happened.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn interrupted(what: &str) -> Failure {
    Failure::new(Status::Interrupted, format!("interrupted: {what}"))
}
