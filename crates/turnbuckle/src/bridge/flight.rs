//! Owns one forwarded request while it runs: its client's side, and what the server has said for it
//! that its client has not been told yet. Does not own the exchange with the server.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::oneshot;
use turnbuckle_types::{ClientCapabilities, Era, LogLevel, Raw, RequestId, jsonrpc::Text};

use crate::{
    Ctx,
    dispatch::{Note, Outcome},
};

/// One request on a far connection.
pub(super) struct Flight {
    /// By which the server knows it. Later ones have higher numbers.
    pub(super) number: u64,
    /// Nobody for what the bridge listens to itself.
    near: Mutex<Option<Ctx>>,
    /// What its client can be asked.
    pub(super) capabilities: ClientCapabilities,
    pub(super) purpose: Purpose,
    inbox: Mutex<Inbox>,
    most: usize,
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
    pub(super) fn new(number: u64, near: Option<Ctx>, purpose: Purpose, most: usize) -> Flight {
        let capabilities = near.as_ref().map(Ctx::client_capabilities).unwrap_or_default();
        let (near, inbox) = (Mutex::new(near), Mutex::default());
        Flight { number, near, capabilities, purpose, inbox, most }
    }

    pub(super) fn id(&self) -> RequestId {
        RequestId::from(self.number)
    }

    /// The request of the client that waits for it now.
    pub(super) fn near(&self) -> Option<Ctx> {
        self.near.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its client has come back with another request.
    pub(super) fn resumed(&self, near: Ctx) {
        *self.near.lock().unwrap_or_else(PoisonError::into_inner) = Some(near);
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
        let Some(near) = self.near() else { return false };
        match (near.revision().era(), near.log_level(), level) {
            // The server was told by the client itself.
            (Era::Legacy, _, _) => true,
            (Era::Modern, Some(least), Some(level)) => level >= least,
            (Era::Modern, Some(_), None) => true,
            (Era::Modern, None, _) => false,
        }
    }

    /// Whether both are certainly of one client: on a wire that is its own.
    pub(super) fn is_same_client(&self, other: &Flight) -> bool {
        let is_own = |flight: &Flight| flight.near().is_some_and(|near| near.is_local());
        is_own(self) && is_own(other)
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
