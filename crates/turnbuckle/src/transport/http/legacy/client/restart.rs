//! Owns opening a session anew when the server has forgotten it: once, however many calls found
//! out. Does not own what becomes of those calls.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use turnbuckle_types::{Method, jsonrpc};

use super::{Asking, Session, Shot, Wire, listen, lock, send};
use crate::{
    dispatch::{Abandon, Exchange, Outgoing},
    error::{Error, ErrorKind, Result, timed_out},
};

/// How long the server has to answer `initialize`.
const OPENING: Duration = Duration::from_secs(60);

/// Opens a session in place of the one with this number, unless someone else already has.
/// Dropping the future closes the handshake; whoever comes next begins it again.
pub(super) async fn restart(wire: &Arc<Wire>, generation: u64) -> Result<()> {
    let legacy = &wire.legacy;
    let _one = legacy.restarting.lock().await;
    let before = legacy.session();
    if before.generation != generation {
        return Ok(());
    }
    tracing::debug!("the session is gone, another one is opened");
    let params = lock(&legacy.opening).clone().unwrap_or_default();
    let method = Method::Initialize.as_str();
    let request = Outgoing { abandon: Abandon::Silence, ..Outgoing::new(method, params) };
    let opening = Exchange::new(Asking::new(wire.clone(), request)).done();
    let opened = tokio::time::timeout(OPENING, opening).await;
    // The handshake began from none.
    *wire.version() = before.revision;
    let opened = opened.map_err(|_| Error::timeout(method, &timed_out(OPENING)))??;
    let answered: Answered = opened.decode().map_err(|error| {
        Error::protocol(format!("the server's answer to {method} can't be read: {error}"))
    })?;
    let revision = before.revision;
    if revision.is_none_or(|revision| revision.as_str() != answered.protocol_version) {
        let message = format!(
            "the server opened the new session with revision `{}` instead of the one before",
            answered.protocol_version
        );
        return Err(Error::new(ErrorKind::Connect, message));
    }
    let id = lock(&legacy.offered).take();
    let session = Session { id, revision, generation: generation + 1 };
    let initialized = Method::Initialized.as_str();
    let mut message = Vec::new();
    jsonrpc::write_notification(&mut message, initialized, "");
    let shot = Shot::post(&session, message.into());
    send::say(wire, &wire.stack, shot, initialized).await;
    legacy.begin(wire, session);
    listen::open(wire).await;
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    protocol_version: String,
}
