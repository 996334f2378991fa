//! Owns opening a session anew when the server has forgotten it: once, however many calls found
//! out, and whether or not they still wait. Does not own what becomes of those calls.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use turnbuckle_types::{Method, Raw, Revision, jsonrpc};

use super::{ClientSession, HttpClientShared, SessionCall, control, listen, lock, send};
use crate::{
    error::{Closed, Error, ErrorKind, Executed, Result, timed_out},
    rpc::{Abandon, Exchange, Outgoing},
    transport::http::client::{
        request,
        timing::{ACCEPT, OPEN_SESSION},
    },
};

/// An attempt that is under way.
pub(super) struct Restarting {
    /// Of the session that is gone.
    generation: u64,
    outcome: watch::Receiver<Option<RestartOutcome>>,
}

/// How it came out, for all who wait.
type RestartOutcome = Result<(), Arc<Error>>;

/// Opens a session in place of the one with this number, unless someone else already has.
/// Dropping the future leaves the attempt to whoever comes next.
pub(super) async fn restart(wire: &Arc<HttpClientShared>, generation: u64) -> RestartOutcome {
    let Some(mut outcome) = join(wire, generation) else { return Ok(()) };
    let ended = match outcome.wait_for(Option::is_some).await {
        Ok(ended) => ended.clone(),
        Err(_) => None,
    };
    ended.unwrap_or_else(|| {
        let closed = Closed::new("the runtime ended before a new session was opened");
        Err(Arc::new(closed.error(Executed::No)))
    })
}

/// The attempt that is under way, or a new one; `None` if there is such a session already.
fn join(
    wire: &Arc<HttpClientShared>,
    generation: u64,
) -> Option<watch::Receiver<Option<RestartOutcome>>> {
    let mut restarting = lock(&wire.legacy.restarting);
    if wire.legacy.session().generation != generation {
        return None;
    }
    if let Some(under_way) = restarting.as_ref().filter(|one| one.generation == generation) {
        return Some(under_way.outcome.clone());
    }
    let (told, outcome) = watch::channel(None);
    *restarting = Some(Restarting { generation, outcome: outcome.clone() });
    drop(restarting);
    let wire = wire.clone();
    tokio::spawn(async move {
        let opened = anew(&wire, generation).await;
        // By its number: another one may be under way by now.
        lock(&wire.legacy.restarting).take_if(|one| one.generation == generation);
        told.send_replace(Some(opened.map_err(Arc::new)));
    });
    Some(outcome)
}

/// Opens the session. One that the server opened and that is not taken is given back.
async fn anew(wire: &Arc<HttpClientShared>, generation: u64) -> Result<()> {
    tracing::debug!("the session is gone, another one is opened");
    let legacy = &wire.legacy;
    legacy.asked.gone(generation);
    let opened = tokio::select! {
        biased;
        () = legacy.closing() => Err(closed(wire)),
        opened = open(wire) => opened,
    };
    if let Err(error) = opened {
        let id = lock(&legacy.offered).take();
        control::delete(wire, &ClientSession { id, ..ClientSession::default() }).await;
        return Err(error);
    }
    listen::open(wire).await;
    let restored = wire.serve.renewed();
    tokio::select! {
        biased;
        () = legacy.closing() => {}
        () = restored => {}
    }
    Ok(())
}

async fn open(wire: &Arc<HttpClientShared>) -> Result<()> {
    let legacy = &wire.legacy;
    let before = legacy.session();
    let params = lock(&legacy.opening).clone().unwrap_or_default();
    let params = match before.revision {
        Some(revision) => offering(&params, revision).unwrap_or(params),
        None => params,
    };
    let method = Method::Initialize.as_str();
    let request = Outgoing { abandon: Abandon::Silence, ..Outgoing::new(method, params) };
    let opening = Exchange::new(SessionCall::new(wire.clone(), request)).done();
    let opened = tokio::time::timeout(OPEN_SESSION, opening).await;
    // The handshake began from none.
    *wire.version() = before.revision;
    let opened = opened.map_err(|_| Error::timeout(method, &timed_out(OPEN_SESSION)))??;
    is_as_before(&opened, before.revision)?;
    let id = lock(&legacy.offered).clone();
    let generation = before.generation + 1;
    let session = ClientSession { id, revision: before.revision, generation };
    let initialized = Method::Initialized.as_str();
    let mut message = Vec::new();
    jsonrpc::write_notification(&mut message, initialized, "");
    let post = send::post(wire, &session, message.into());
    request::say(wire, &wire.stack, post, ACCEPT, initialized).await;
    // Under this lock, so that a close finds it in one of the two places.
    let mut offered = lock(&legacy.offered);
    if offered.take().is_none() && session.id.is_some() {
        return Err(closed(wire));
    }
    legacy.begin(wire, session);
    Ok(())
}

/// The params of `initialize` with the revision that was agreed on: a server that has learnt
/// another one since must not choose that.
fn offering(params: &str, revision: Revision) -> Option<String> {
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(params).ok()?;
    let offered = serde_json::value::to_raw_value(revision.as_str()).ok()?;
    members.insert("protocolVersion".to_owned(), offered);
    serde_json::to_string(&members).ok()
}

fn is_as_before(opened: &Raw, revision: Option<Revision>) -> Result<()> {
    let answered: RestartInitializeResult = opened.decode().map_err(|error| {
        Error::protocol(format!("the server's answer to `initialize` can't be read: {error}"))
    })?;
    if revision.is_some_and(|revision| revision.as_str() == answered.protocol_version) {
        return Ok(());
    }
    let message = format!(
        "the server opened the new session with revision `{}` instead of the one before",
        answered.protocol_version
    );
    Err(Error::new(ErrorKind::Connect, message))
}

fn closed(wire: &HttpClientShared) -> Error {
    let closed = wire.closed.get().cloned();
    closed.unwrap_or_else(|| Closed::new("the connection was closed")).error(Executed::No)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RestartInitializeResult {
    protocol_version: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_agreed_on_is_offered_and_the_rest_is_as_it_was() {
        let params = r#"{"capabilities":{"a": 1},"protocolVersion":"2025-11-25"}"#;
        let offered = offering(params, Revision::V2025_06_18).unwrap();
        assert_eq!(offered, r#"{"capabilities":{"a": 1},"protocolVersion":"2025-06-18"}"#);
        assert_eq!(offering("", Revision::V2025_06_18), None);
    }
}
