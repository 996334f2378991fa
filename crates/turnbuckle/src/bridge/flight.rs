//! Owns one forwarded request while it runs: its client's side, and what the server has said for it
//! that its client has not been told yet. Does not own the exchange with the server.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::oneshot;
use turnbuckle_types::{ClientCapabilities, LogLevel, Raw, RequestId, jsonrpc::Text};

use super::translate::Sides;
use crate::{
    Ctx,
    dispatch::{Note, Outcome},
};

/// One request on a far connection.
pub(super) struct Flight {
    /// By which the server knows it. Later ones have higher numbers.
    pub(super) number: u64,
    pub(super) sides: Sides,
    near: Mutex<Waiting>,
    /// What its client can be asked.
    pub(super) capabilities: ClientCapabilities,
    pub(super) purpose: Purpose,
    inbox: Mutex<Inbox>,
    most: usize,
}

/// Who waits for it.
struct Waiting {
    /// Nobody for what the bridge listens to itself.
    client: Option<Ctx>,
    stage: Stage,
}

/// Whether its client waits for it at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Running,
    /// Its client was asked something, and has to come back.
    Parked,
}

/// What a request is for.
#[derive(Debug)]
pub(super) enum Purpose {
    Call,
    /// A call that may ask its client something before it is answered, in either era.
    AskingCall,
    /// To hear of changes: it asks nothing, and is about nothing that is logged.
    Stream(Topics),
}

/// What a stream of changes wants to hear of that the server tells unasked.
#[derive(Debug, Default)]
pub(super) struct Topics {
    /// Methods of notifications that have no subject.
    pub(super) lists: Vec<&'static str>,
    pub(super) uris: Vec<String>,
}

/// What the server says before it answers.
pub(super) enum Told {
    Note(Note),
    Asked(Question),
}

/// Something that the server wants to know.
pub(super) struct Question {
    pub(super) method: Text,
    pub(super) params: Option<Raw>,
    /// Closed when the server has given it up.
    pub(super) answer: oneshot::Sender<Outcome>,
}

#[derive(Default)]
struct Inbox {
    queue: VecDeque<Told>,
    waker: Option<Waker>,
    lost: bool,
}

impl Flight {
    pub(super) fn new(
        number: u64,
        near: Option<Ctx>,
        sides: Sides,
        purpose: Purpose,
        most: usize,
    ) -> Flight {
        let capabilities = near.as_ref().map(Ctx::client_capabilities).unwrap_or_default();
        let near = Mutex::new(Waiting { client: near, stage: Stage::Running });
        Flight { number, sides, near, capabilities, purpose, inbox: Mutex::default(), most }
    }

    pub(super) fn id(&self) -> RequestId {
        RequestId::from(self.number)
    }

    /// The request of the client that waits for it now, or did last.
    pub(super) fn near(&self) -> Option<Ctx> {
        self.waiting().client.clone()
    }

    pub(super) fn stage(&self) -> Stage {
        self.waiting().stage
    }

    /// Its client is asked, and has to come back with another request.
    pub(super) fn parked(&self) {
        self.waiting().stage = Stage::Parked;
    }

    /// Its client has come back with another request.
    pub(super) fn resumed(&self, near: Ctx) {
        *self.waiting() = Waiting { client: Some(near), stage: Stage::Running };
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_call(&self) -> bool {
        !matches!(self.purpose, Purpose::Stream(_))
    }

    /// Whether a modern client can be asked for its sake.
    pub(super) fn may_ask(&self) -> bool {
        matches!(self.purpose, Purpose::AskingCall)
    }

    /// Whether its client is told messages of this severity.
    pub(super) fn hears(&self, level: Option<LogLevel>) -> bool {
        self.near().is_some_and(|near| self.sides.hears(near.log_level(), level))
    }

    /// Whether both are certainly of one caller: on a wire that is its own, or by one principal.
    /// Over HTTP nothing else tells callers apart.
    pub(super) fn is_same_caller(&self, other: &Flight) -> bool {
        let caller = |flight: &Flight| {
            let who = flight.near()?.principal::<()>()?;
            Some(who.name().to_owned())
        };
        caller(self).is_some_and(|name| caller(other) == Some(name))
    }

    /// Keeps what its client is to be told. Past the limit what is oldest gives way.
    pub(super) fn tell(&self, told: Told) {
        let mut inbox = self.lock();
        if inbox.queue.len() >= self.most {
            inbox.lost = true;
            // A question is never forgotten: its place is bounded by what the server may ask.
            if let Some(at) = inbox.queue.iter().position(|told| matches!(told, Told::Note(_))) {
                inbox.queue.remove(at);
            }
        }
        inbox.queue.push_back(told);
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// What was told longest ago.
    pub(super) fn poll_told(&self, context: &mut Context<'_>) -> Poll<Told> {
        let mut inbox = self.lock();
        if let Some(told) = inbox.queue.pop_front() {
            return Poll::Ready(told);
        }
        inbox.waker = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn take_told(&self) -> Option<Told> {
        self.lock().queue.pop_front()
    }

    /// Whether something gave way.
    pub(super) fn is_behind(&self) -> bool {
        self.lock().lost
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
