//! One forwarded request while it is in flight: its client, and the messages of the server that have
//! not been forwarded yet.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::sync::oneshot;
use turnbuckle::{
    __seam::{Caller, Note},
    types::{ClientCapabilities, LogLevel, Raw, RequestId, jsonrpc::Text},
};

use crate::{gateway::Outcome, translate::Revisions};

/// One request on a connection to the server.
pub(crate) struct InFlightRequest {
    /// The number in its id. Later requests have higher numbers.
    pub(crate) number: u64,
    pub(crate) revisions: Revisions,
    waiting: Mutex<Waiting>,
    /// The capabilities of its client.
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) purpose: RequestPurpose,
    inbox: Mutex<Inbox>,
    max_queued: usize,
}

/// The client that waits for a request.
struct Waiting {
    /// `None` for a stream of the gateway's own, and while the request is pending: a caller keeps the
    /// gateway alive, and the gateway keeps its pending calls.
    caller: Option<Caller>,
    stage: Stage,
    /// The name of the principal that sent the request.
    principal: Option<String>,
    /// The least severe log messages that the client wants.
    log_level: Option<LogLevel>,
}

impl Waiting {
    fn new(caller: Option<Caller>) -> Waiting {
        Waiting {
            stage: Stage::Running,
            principal: caller.as_ref().and_then(Caller::principal_name),
            log_level: caller.as_ref().and_then(Caller::log_level),
            caller,
        }
    }
}

/// Whether the client waits for a request at the moment. The order is the preference for questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Running,
    /// The client has been asked, and answers with another request.
    Pending,
}

/// The purpose of a request.
#[derive(Debug)]
pub(crate) enum RequestPurpose {
    Call,
    /// A call that may ask its client questions before it is answered.
    AskingCall,
    /// A listen stream. It asks no questions, and no log message belongs to it.
    Stream(Topics),
}

/// The notifications without a request that a listen stream wants.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    /// The methods of list changes.
    pub(crate) lists: Vec<&'static str>,
    /// The resources whose updates it wants.
    pub(crate) uris: Vec<String>,
}

/// A message of the server that precedes its answer.
pub(crate) enum ServerMessage {
    Notification(Note),
    Question(Question),
}

/// A request of the server to the client.
pub(crate) struct Question {
    pub(crate) method: Text,
    pub(crate) params: Option<Raw>,
    /// Closed when the server has withdrawn the question.
    pub(crate) answer: oneshot::Sender<Outcome>,
}

#[derive(Default)]
struct Inbox {
    queue: VecDeque<ServerMessage>,
    waker: Option<Waker>,
    has_dropped: bool,
}

impl InFlightRequest {
    pub(crate) fn new(
        number: u64,
        caller: Option<Caller>,
        revisions: Revisions,
        purpose: RequestPurpose,
        max_queued: usize,
    ) -> InFlightRequest {
        let capabilities = caller.as_ref().map(Caller::capabilities).unwrap_or_default();
        let waiting = Mutex::new(Waiting::new(caller));
        let inbox = Mutex::default();
        InFlightRequest { number, revisions, waiting, capabilities, purpose, inbox, max_queued }
    }

    pub(crate) fn id(&self) -> RequestId {
        RequestId::from(self.number)
    }

    /// Returns the client's request that waits for it; `None` while it is pending.
    pub(crate) fn caller(&self) -> Option<Caller> {
        self.waiting().caller.clone()
    }

    pub(crate) fn stage(&self) -> Stage {
        self.waiting().stage
    }

    /// Marks it as pending until its client comes back with another request.
    pub(super) fn suspend(&self) {
        let mut waiting = self.waiting();
        waiting.stage = Stage::Pending;
        let caller = waiting.caller.take();
        // Not under the lock: it may be the last that holds the client's connection.
        drop(waiting);
        drop(caller);
    }

    /// Continues with another request of its client.
    pub(super) fn resume(&self, caller: Caller) {
        *self.waiting() = Waiting::new(Some(caller));
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_call(&self) -> bool {
        !matches!(self.purpose, RequestPurpose::Stream(_))
    }

    /// Returns whether a modern client can be asked while it runs.
    pub(crate) fn may_ask(&self) -> bool {
        matches!(self.purpose, RequestPurpose::AskingCall)
    }

    /// Returns whether its client wants log messages of this level.
    pub(crate) fn wants_log(&self, level: Option<LogLevel>) -> bool {
        self.revisions.wants_log(self.waiting().log_level, level)
    }

    /// Returns whether both requests are certainly of one caller: of one connection, or of one
    /// principal. Over HTTP nothing else tells callers apart.
    pub(crate) fn has_same_caller(&self, other: &InFlightRequest) -> bool {
        let principal = |request: &InFlightRequest| request.waiting().principal.clone();
        principal(self).is_some_and(|name| principal(other) == Some(name))
    }

    /// Queues a message. Above the limit the oldest notification is dropped.
    pub(crate) fn push(&self, message: ServerMessage) {
        let mut inbox = self.lock();
        if inbox.queue.len() >= self.max_queued {
            inbox.has_dropped = true;
            // Questions are never dropped: the server may only ask a limited number.
            let is_notification =
                |message: &ServerMessage| matches!(message, ServerMessage::Notification(_));
            if let Some(at) = inbox.queue.iter().position(is_notification) {
                inbox.queue.remove(at);
            }
        }
        inbox.queue.push_back(message);
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Polls for the oldest message.
    pub(crate) fn poll_message(&self, context: &mut Context<'_>) -> Poll<ServerMessage> {
        let mut inbox = self.lock();
        if let Some(message) = inbox.queue.pop_front() {
            return Poll::Ready(message);
        }
        inbox.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Takes the oldest message, if there is any.
    pub(super) fn take_message(&self) -> Option<ServerMessage> {
        self.lock().queue.pop_front()
    }

    /// Returns whether a notification was dropped.
    pub(crate) fn has_dropped(&self) -> bool {
        self.lock().has_dropped
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
