//! The course of a command that talks to a server: connect, work, close, whatever happens
//! meanwhile.

use std::time::Duration;

use tokio::time::Instant;
use turnbuckle::{Call, Client};

use crate::{
    args::Connection,
    connect::{Heard, connect},
    exit::Failure,
    interrupt::EndSignals,
    progress::Line,
};

/// What Ctrl-C does to a call.
pub(crate) const CALL: &str = "the call was cancelled";
/// How long the end of the server is waited for in all.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Connects, runs `work` and closes. A signal and the end of the time drop what runs, which
/// cancels it on the server; the closing then lets the server hear of it. `given_up` says what
/// the signal did to the work.
pub(crate) async fn with_client<T>(
    connection: &Connection,
    line: &Line,
    given_up: &str,
    work: impl AsyncFnOnce(&Client, Deadline) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut signals = EndSignals::listen()?;
    let deadline = Deadline::after(connection.timeout);
    let connected = tokio::select! {
        biased;
        signal = signals.happened() => Err(signal.failure("no call was made")),
        connected = open(connection, deadline, line) => connected,
    };
    let (client, outcome) = match connected {
        Err(failure) => (None, Err(failure)),
        Ok(client) => {
            let outcome = tokio::select! {
                biased;
                signal = signals.happened() => Err(signal.failure(given_up)),
                outcome = work(&client, deadline) => outcome,
            };
            (Some(client), outcome)
        }
    };
    line.clear();
    // Said before the server is waited for: nobody should have to wait to read it.
    let outcome = outcome.map_err(|failure| {
        let failure = failure.at(&connection.target);
        let failure = if connection.verbose { failure.without_details() } else { failure };
        failure.report();
        failure
    });
    tokio::select! {
        biased;
        signal = signals.happened() => {
            Err(signal.failure("the server was not waited for")).inspect_err(Failure::report)
        }
        () = close(client) => outcome,
    }
}

/// Makes a call and waits for its end, in the time that is left, with its progress on `line`.
pub(crate) async fn finish<T: Send + 'static>(
    call: Call<T>,
    name: &str,
    deadline: Deadline,
    line: &Line,
) -> Result<T, Failure> {
    // Whoever waits at a terminal can see and stop it: only --timeout ends a call.
    let mut call = call.no_timeouts();
    if let Some(rest) = deadline.rest() {
        call = call.timeout(rest);
    }
    if line.is_shown() {
        let line = line.clone();
        call = call.on_progress(move |progress| line.report(progress));
    }
    line.watch(name, call.into_future()).await.map_err(|error| {
        if error.is_timeout() {
            deadline.passed(&format!("`{name}` was cancelled: it did not finish"))
        } else {
            error.into()
        }
    })
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

    /// Resolves when the time is over; never if there is no limit.
    pub(crate) async fn reached(&self) {
        match self.0 {
            Some((_, end)) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
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
    let connecting = connect(connection, line, heard.clone());
    match deadline.limit("there was no connection to the server", connecting).await {
        Err(failure) if deadline.is_over() => Err(failure.with_last_lines(&heard.lines())),
        connected => connected,
    }
}

/// Writes what waits, among it a cancellation, and sees the server off.
async fn close(client: Option<Client>) {
    let closing = async {
        if let Some(client) = client {
            client.close().await;
        }
    };
    let _ = tokio::time::timeout(LAST_WAIT, closing).await;
}
