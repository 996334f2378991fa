//! The client side of Streamable HTTP with sessions: calls, cancels that are posted, the GET
//! stream, resumption, and a new session when the server has forgotten the old one.

mod asked;
mod asking;
mod call;
mod control;
mod listen;
mod receive;
mod reconnect;
mod restart;
mod resume;
mod run;
pub(crate) mod send;
mod source;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicBool},
};

use http::HeaderValue;
use tokio::{sync::watch, task::AbortHandle};
use turnbuckle_types::{Key, Method, RequestId, Revision, jsonrpc};

pub(crate) use asking::SessionCall;
pub(crate) use call::CallState;

use super::super::client::{HttpClientShared, flight::StopHandle, request, timing::ACCEPT};
use crate::rpc::{Note, Outgoing};
use asked::ServerRequests;
use control::Control;
use restart::Restarting;
use resume::ResumeBudget;
pub(crate) use resume::Resuming;

/// What the legacy era keeps of a connection.
pub(crate) struct LegacyClient {
    session: Mutex<ClientSession>,
    /// What the answer to `initialize` brought, until that session is taken or given back.
    offered: Mutex<Option<HeaderValue>>,
    /// The params of `initialize`, in case the session has to be opened anew.
    opening: Mutex<Option<String>>,
    /// The attempt to open it anew that is under way.
    restarting: Mutex<Option<Restarting>>,
    control: OnceLock<Control>,
    /// Ids of calls that were given up and whose cancel is still to be posted.
    leaving: Mutex<HashMap<Key, watch::Receiver<()>>>,
    /// Calls that a close cut off and that nothing else ends.
    unfinished: Mutex<Vec<(RequestId, Arc<CallState>)>>,
    /// Whether the server begins to answer, with a stream, before it has the answer.
    begins_early: AtomicBool,
    /// What the server asks.
    asked: ServerRequests,
    /// What all streams together may spend to be taken up again, and how.
    budget: Mutex<ResumeBudget>,
    resuming: Resuming,
    /// The stream on which the server speaks unasked.
    listening: Mutex<Option<AbortHandle>>,
    phase: watch::Sender<ClosePhase>,
}

/// How far the end of the connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ClosePhase {
    #[default]
    Open,
    Closing,
    Over,
}

/// The session that a message is sent in.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSession {
    /// A server may do without.
    id: Option<HeaderValue>,
    /// `None` until the handshake.
    revision: Option<Revision>,
    /// How many sessions there have been.
    generation: u64,
}

/// Whether a request is sent in the way of this era.
pub(crate) fn is_legacy(request: &Outgoing) -> bool {
    match request.mirror.revision {
        Some(revision) => revision.has_handshake(),
        None => is_opening(request),
    }
}

/// Whether a request opens the session.
fn is_opening(request: &Outgoing) -> bool {
    request.mirror.revision.is_none()
        && Method::from_name(&request.method) == Some(Method::Initialize)
}

/// The handshake has agreed on a revision: from now on everything is sent under it.
pub(crate) fn agreed(wire: &Arc<HttpClientShared>, revision: Revision) {
    let legacy = &wire.legacy;
    let id = lock(&legacy.offered).take();
    let generation = legacy.session().generation + 1;
    legacy.begin(wire, ClientSession { id, revision: Some(revision), generation });
    legacy.control.get_or_init(|| control::start(wire));
}

/// Posts a notification. A failure is logged.
pub(crate) async fn notify(wire: &HttpClientShared, note: Note) {
    let params = note.params.raw.as_ref().map_or("", |raw| raw.as_str());
    let mut message = Vec::with_capacity(params.len() + note.method.len() + 48);
    jsonrpc::write_notification(&mut message, &note.method, params);
    let post = send::post(wire, &wire.legacy.session(), message.into());
    request::say(wire, &wire.stack, post, ACCEPT, &note.method).await;
}

/// Opens the stream on which the server speaks unasked; returns when that is open, or known
/// not to be there, or takes too long to wait for.
pub(crate) async fn listen(wire: &Arc<HttpClientShared>) {
    listen::open(wire).await;
}

impl LegacyClient {
    pub(crate) fn new(resuming: Resuming) -> LegacyClient {
        LegacyClient {
            session: Mutex::default(),
            offered: Mutex::default(),
            opening: Mutex::default(),
            restarting: Mutex::default(),
            control: OnceLock::new(),
            leaving: Mutex::default(),
            unfinished: Mutex::default(),
            begins_early: AtomicBool::new(false),
            asked: ServerRequests::default(),
            budget: Mutex::default(),
            resuming,
            listening: Mutex::default(),
            phase: watch::Sender::default(),
        }
    }

    fn session(&self) -> ClientSession {
        lock(&self.session).clone()
    }

    fn begin(&self, wire: &HttpClientShared, session: ClientSession) {
        *wire.version() = session.revision;
        *lock(&self.session) = session;
    }

    /// Waits until the cancel of an earlier call with this id was posted.
    async fn freed(&self, id: &RequestId) {
        loop {
            let gate = lock(&self.leaving).get(&id.key()).cloned();
            let Some(mut gate) = gate else { return };
            // It is never sent anything: it is dropped.
            let _ = gate.changed().await;
        }
    }

    /// These calls are cut off by a close. Where there is no session whose end would end them,
    /// they are cancelled.
    pub(crate) fn cut_off(&self, calls: impl Iterator<Item = Arc<StopHandle>>) {
        for stop in calls {
            let Some(call) = stop.call.clone().filter(|call| call.is_cancelled()) else { continue };
            let in_none = call.session().is_some_and(|session| session.id.is_none());
            if in_none && call.give_up() == call::ServerSaw::Perhaps {
                lock(&self.unfinished).push((stop.id.clone(), call));
            }
        }
    }

    /// Begins the end: nothing more is heard or answered. The control task does the rest.
    pub(crate) fn end(&self) {
        let listening = lock(&self.listening).take();
        if let Some(listening) = listening {
            listening.abort();
        }
        self.asked.end();
        self.phase.send_if_modified(|phase| {
            let begins = *phase == ClosePhase::Open;
            if begins {
                *phase = ClosePhase::Closing;
            }
            begins
        });
    }

    /// Waits for the control task to end, which has a bound.
    pub(crate) async fn ended(&self) {
        if self.control.get().is_none() {
            return;
        }
        let mut phase = self.phase.subscribe();
        let _ = phase.wait_for(|phase| *phase == ClosePhase::Over).await;
    }

    /// Resolves once the end has begun.
    async fn closing(&self) {
        let _ = self.phase.subscribe().wait_for(|phase| *phase != ClosePhase::Open).await;
    }
}

/// Nothing that can panic runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
