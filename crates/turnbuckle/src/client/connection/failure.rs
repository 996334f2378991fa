//! Owns how a connection that was not made, or was lost, is told. Does not own the judgement.

use crate::{
    client::handshake::negotiate::Observation,
    error::{Closed, Error, ErrorKind},
    rpc::connection::io::Obituary,
    transport::child_process::ChildHandle,
};
use std::time::Duration;

/// How long a dead server's exit status is waited for before its callers are told.
const LAST_STATUS: Duration = Duration::from_millis(250);

/// HTTP's word for a place where there is nothing.
const NOT_FOUND: u16 = 404;

/// Both failures, in one sentence.
pub(crate) fn with_probe(error: Error, observation: &Observation) -> Error {
    let (error, lines) = apart(error);
    let stays = error.is_closed() || error.is_timeout() || error.is_authorization();
    let kind = if stays { error.kind() } else { ErrorKind::Connect };
    let probe = words(observation);
    let nowhere = matches!(observation, Observation::Status(NOT_FOUND)) && is_nowhere(&error);
    let hint = if nowhere { "; is the path right?" } else { "" };
    let message = format!("the server {probe}, and `initialize` failed: {error}{hint}");
    let told = Error::new(kind, message).with_stderr(lines);
    with_challenge_of(with_status_of(told, &error), &error).with_source(error)
}

/// Whether the server has nothing in that place, on the older wire neither if that was tried.
fn is_nowhere(error: &Error) -> bool {
    let older = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>());
    error.status() == Some(NOT_FOUND) && older.is_none_or(is_nowhere)
}

/// What the server asked for too, where it did.
fn with_challenge_of(told: Error, error: &Error) -> Error {
    #[cfg(feature = "auth")]
    return told.with_challenge(error.challenge().cloned());
    #[cfg(not(feature = "auth"))]
    {
        let _ = error;
        told
    }
}

/// The HTTP status too, where there is one.
fn with_status_of(told: Error, error: &Error) -> Error {
    #[cfg(feature = "http")]
    if let Some(status) = error.status() {
        return told.with_status(status);
    }
    #[cfg(not(feature = "http"))]
    let _ = error;
    told
}

/// Both failures, of a server that refused the handshake on one wire and on another.
pub(crate) fn with_first_wire(error: Error, refused: &Error) -> Error {
    let message = format!("{refused}; as a server of HTTP+SSE (2024-11-05) it failed too: {error}");
    let stays = error.is_timeout() || error.is_authorization();
    let kind = if stays { error.kind() } else { ErrorKind::Connect };
    let told = with_challenge_of(Error::new(kind, message), &error);
    with_status_of(told.with_source(error), refused)
}

/// What the server did when it was asked what it speaks.
fn words(observation: &Observation) -> String {
    match observation {
        Observation::Refused(rpc, _) => format!("answered `server/discover` with: {rpc}"),
        Observation::Status(status) => format!("answered `server/discover` with HTTP {status}"),
        Observation::Silence => "did not answer `server/discover`".to_owned(),
        Observation::Unread => "did not read `server/discover`".to_owned(),
        _ => "gave `server/discover` an answer that is not modern".to_owned(),
    }
}

/// A server that printed something else instead of speaking is best quoted.
pub(crate) fn with_junk(error: Error, junk: Option<String>) -> Error {
    let Some(junk) = junk else { return error };
    let (error, lines) = apart(error);
    let message = format!("{error}; it printed `{junk}`, which is no message");
    Error::new(error.kind(), message).with_source(error).with_stderr(lines)
}

/// An error and its last words, so that one that has it in its sentence does not say them twice.
fn apart(error: Error) -> (Error, Vec<String>) {
    let lines = error.last_stderr().to_vec();
    (error.with_stderr(Vec::new()), lines)
}

/// How a spawned server ended, as its callers are told.
pub(crate) fn obituary(child: &ChildHandle) -> Obituary {
    let observer = child.observer();
    Box::pin(async move {
        let exited = tokio::time::timeout(LAST_STATUS, observer.exited()).await;
        let message = match exited {
            Ok(report) => format!("the server {report}"),
            Err(_) => "the server closed its output but is still running".to_owned(),
        };
        Closed::of(ErrorKind::Closed, message, observer.last_stderr())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_failures_and_the_last_words_are_told() {
        let revision = Error::new(ErrorKind::Connect, "no revision in common")
            .with_stderr(vec!["too old".to_owned()]);
        let told = with_probe(revision, &Observation::Silence);
        assert_eq!(told.kind(), ErrorKind::Connect);
        assert_eq!(told.last_stderr(), ["too old"]);
        let text = told.to_string();
        for part in ["server/discover", "`initialize` failed", "no revision in common"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(text.matches("too old").count(), 1, "{text}");
    }
}
