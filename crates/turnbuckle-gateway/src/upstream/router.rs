//! Routes the messages that a server sends unasked: to the request that they belong to, or to the
//! connections of clients.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::{Notify, oneshot, watch};
use turnbuckle::{
    __seam::{Caller, Exchange, Note, ServerEvents, covers, lacking},
    Error,
    client::ServerRequest,
    types::{LogLevel, Method, Raw, RequestId, RpcError},
};

use crate::{
    call::{InFlightRequest, Question, RequestPurpose, ServerMessage, Topics, log_level},
    gateway::{BoxFuture, Outcome},
    json,
    translate::{self, QuestionRoute, Revisions},
};

/// A client's connection, for messages that belong to no request.
pub(crate) trait ClientChannel: Send + Sync + 'static {
    /// Queues a notification. It must not wait.
    fn notify(&self, note: Note);
    /// Asks the client.
    fn ask(&self, method: &str, params: String) -> Result<Exchange, RpcError>;
    /// Sends a log message about the gateway itself, if the client wants messages of this level.
    fn log(&self, level: LogLevel, message: &str);
}

/// Routes the messages of one connection to the server.
pub(crate) struct Router {
    state: Mutex<RouterState>,
    /// The most notifications that wait for one request.
    max_queued: usize,
    clients: Clients,
    closed: watch::Sender<Option<Arc<Error>>>,
    /// Notified when the last request has ended.
    idle: Notify,
}

/// The clients whose requests a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    One,
    Any,
}

#[derive(Default)]
struct RouterState {
    /// By number: the last one is the newest.
    requests: BTreeMap<u64, Arc<InFlightRequest>>,
    next: u64,
    channels: Vec<Weak<dyn ClientChannel>>,
}

/// The first id of forwarded requests. The client's own requests count from the bottom.
const FIRST_ID: u64 = 1_000_000;

impl Router {
    pub(super) fn new(clients: Clients, max_queued: usize) -> Router {
        let state = RouterState { next: FIRST_ID, ..RouterState::default() };
        let (state, closed) = (Mutex::new(state), watch::Sender::new(None));
        Router { state, max_queued, clients, closed, idle: Notify::new() }
    }

    /// Registers a request until the returned guard is dropped.
    pub(crate) fn register(
        self: &Arc<Self>,
        caller: Option<Caller>,
        revisions: Revisions,
        purpose: RequestPurpose,
    ) -> InFlightGuard {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let request = InFlightRequest::new(number, caller, revisions, purpose, self.max_queued);
        let request = Arc::new(request);
        state.requests.insert(number, request.clone());
        InFlightGuard { router: self.clone(), request }
    }

    /// Adds a client's connection, which then gets the messages that belong to no request.
    pub(crate) fn attach(&self, channel: Weak<dyn ClientChannel>) {
        let mut state = self.lock();
        state.channels.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&channel));
        state.channels.push(channel);
    }

    /// Returns why the connection has ended, once it has.
    pub(crate) fn closed(&self) -> watch::Receiver<Option<Arc<Error>>> {
        self.closed.subscribe()
    }

    /// Returns whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.lock().requests.is_empty()
    }

    /// Waits until no request is in flight.
    pub(super) async fn wait_idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Returns the request that a question belongs to; `None` if there is none that it could belong to.
    ///
    /// Where the transport does not tell, it is the oldest call in flight whose client can answer;
    /// calls that their clients wait for are preferred to pending ones. This is a guess, which does no
    /// harm among calls of one caller. Among calls of several callers it could show the question of one
    /// to another: then no client is asked, even if only one could answer.
    fn find_asker(
        &self,
        method: &str,
        params: &str,
        within: Option<&RequestId>,
    ) -> Result<Option<Arc<InFlightRequest>>, RpcError> {
        let known = Method::from_name(method);
        let can_answer = |request: &InFlightRequest| {
            let revision = request.revisions.downstream;
            let lacks =
                known.and_then(|known| lacking(known, params, &request.capabilities, revision));
            match request.revisions.question_route() {
                // The server of an own connection knows what its client can answer, and the client
                // itself refuses everything else.
                QuestionRoute::Request | QuestionRoute::Retry => {
                    request.is_call() && (self.clients == Clients::One || lacks.is_none())
                }
                QuestionRoute::PendingCall | QuestionRoute::PassThrough => {
                    request.may_ask() && known.is_some() && lacks.is_none()
                }
            }
        };
        let state = self.lock();
        if let Some(request) =
            within.and_then(number).and_then(|number| state.requests.get(&number))
        {
            return if can_answer(request) {
                Ok(Some(request.clone()))
            } else {
                Err(undeclared(method))
            };
        }
        let requests = state.requests.values().filter(|request| request.is_call());
        let calls: Vec<_> = requests.cloned().collect();
        drop(state);
        let able = calls.iter().filter(|request| can_answer(request));
        let Some(chosen) =
            able.min_by_key(|request| (request.stage(), !request.may_ask(), request.number))
        else {
            return if calls.is_empty() { Ok(None) } else { Err(undeclared(method)) };
        };
        let is_of_another = |request: &Arc<InFlightRequest>| {
            request.may_ask() && !Arc::ptr_eq(request, chosen) && !request.has_same_caller(chosen)
        };
        if self.clients == Clients::Any && calls.iter().any(is_of_another) {
            return Err(RpcError::internal(
                "several callers have calls in flight, and the question does not say which call \
                 it belongs to",
            ));
        }
        Ok(Some(chosen.clone()))
    }

    /// Routes a notification that came on no stream of a request.
    fn route(&self, note: Note) {
        match Method::from_name(&note.method) {
            // The dispatcher has handled it.
            Some(Method::Cancelled) => {}
            Some(Method::Progress) => self.send_to(note.subject().as_ref(), note),
            Some(Method::LogMessage) => self.route_log(note),
            _ => {
                if let Some(id) = translate::subscription_id(&note.params) {
                    return self.send_to(Some(&id), note);
                }
                let state = self.lock();
                let requests: Vec<_> = state.requests.values().cloned().collect();
                let channels: Vec<_> = state.channels.iter().filter_map(Weak::upgrade).collect();
                drop(state);
                for request in requests.iter().filter(|request| wants(&request.purpose, &note)) {
                    request.push(ServerMessage::Notification(note.clone()));
                }
                channels.iter().for_each(|channel| channel.notify(note.clone()));
            }
        }
    }

    /// Sends a notification to the request with this id.
    fn send_to(&self, id: Option<&RequestId>, note: Note) {
        let Some(number) = id.and_then(number) else { return };
        let request = self.lock().requests.get(&number).cloned();
        if let Some(request) = request {
            request.push(ServerMessage::Notification(note));
        }
    }

    /// Routes a log message to the newest call, if all calls are of one client.
    fn route_log(&self, note: Note) {
        let level = log_level(&note);
        let state = self.lock();
        let requests: Vec<_> = state.requests.values().rev().cloned().collect();
        let channels: Vec<_> = state.channels.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        let calls: Vec<_> = requests.iter().filter(|request| request.is_call()).collect();
        let newest = calls.iter().find(|request| request.wants_log(level));
        match (newest, channels.first()) {
            (Some(newest), _) if self.have_one_client(&calls) => {
                newest.push(ServerMessage::Notification(note));
            }
            (None, Some(channel)) if channels.len() == 1 && calls.is_empty() => {
                channel.notify(note);
            }
            _ => tracing::debug!("a log message is dropped: it may belong to any client"),
        }
    }

    fn have_one_client(&self, requests: &[&Arc<InFlightRequest>]) -> bool {
        let Some((first, others)) = requests.split_first() else { return true };
        self.clients == Clients::One || others.iter().all(|other| other.has_same_caller(first))
    }

    fn only_channel(&self) -> Option<Arc<dyn ClientChannel>> {
        let state = self.lock();
        let mut channels = state.channels.iter().filter_map(Weak::upgrade);
        let first = channels.next();
        first.filter(|_| channels.next().is_none())
    }

    fn lock(&self) -> MutexGuard<'_, RouterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerEvents for Router {
    fn request(
        &self,
        request: ServerRequest,
        within: Option<RequestId>,
    ) -> BoxFuture<'static, Outcome> {
        let ServerRequest { method, params, .. } = request;
        let text = params.as_ref().map_or("", Raw::as_str).to_owned();
        let asker = match self.find_asker(&method, &text, within.as_ref()) {
            Ok(asker) => asker,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let Some(request) = asker else {
            let asked = match self.only_channel() {
                Some(channel) => channel.ask(&method, text),
                None => Err(RpcError::internal("no client is connected that could be asked")),
            };
            return match asked {
                Ok(exchange) => await_answer(exchange),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            };
        };
        match request.revisions.question_route() {
            QuestionRoute::Request | QuestionRoute::Retry => match request.caller() {
                Some(caller) => await_answer(caller.ask(method.to_string(), text)),
                None => Box::pin(std::future::ready(Err(undeclared(&method)))),
            },
            QuestionRoute::PendingCall | QuestionRoute::PassThrough => {
                let (answer, answered) = oneshot::channel();
                request.push(ServerMessage::Question(Question { method, params, answer }));
                Box::pin(async move {
                    let lost = || RpcError::internal("the client did not answer");
                    answered.await.unwrap_or_else(|_| Err(lost()))
                })
            }
        }
    }

    fn notification(&self, note: Note, within: Option<&RequestId>) {
        match (within, Method::from_name(&note.method)) {
            (_, Some(Method::Cancelled)) => {}
            // Other methods name their request in their params, or belong to none.
            (
                Some(id),
                None
                | Some(Method::LogMessage | Method::Acknowledged | Method::ElicitationComplete),
            ) => self.send_to(Some(id), note),
            _ => self.route(note),
        }
    }

    fn closed(&self, error: Error) {
        self.closed.send_if_modified(|closed| {
            let is_first = closed.is_none();
            closed.get_or_insert_with(|| Arc::new(error));
            is_first
        });
    }
}

/// Keeps a request in flight until it is dropped.
pub(crate) struct InFlightGuard {
    router: Arc<Router>,
    pub(crate) request: Arc<InFlightRequest>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut state = self.router.lock();
        state.requests.remove(&self.request.number);
        let is_idle = state.requests.is_empty();
        drop(state);
        if is_idle {
            self.router.idle.notify_waiters();
        }
    }
}

fn await_answer(exchange: Exchange) -> BoxFuture<'static, Outcome> {
    Box::pin(async move { exchange.done().await.map_err(unanswered) })
}

/// Returns the error for a question that the client did not answer.
pub(crate) fn unanswered(error: Error) -> RpcError {
    match error.as_rpc() {
        Some(rpc) => rpc.clone(),
        None => RpcError::internal(format!("the client can't be asked: {error}")),
    }
}

fn wants(purpose: &RequestPurpose, note: &Note) -> bool {
    let RequestPurpose::Stream(Topics { lists, uris }) = purpose else { return false };
    if lists.iter().any(|method| *method == &*note.method) {
        return true;
    }
    if uris.is_empty() || Method::from_name(&note.method) != Some(Method::ResourceUpdated) {
        return false;
    }
    let updated: Option<String> = json::decode_member(note.params.text(), "uri");
    updated.is_some_and(|uri| uris.iter().any(|watched| covers(watched, &uri)))
}

fn number(id: &RequestId) -> Option<u64> {
    id.to_string().parse().ok()
}

fn undeclared(method: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "`{method}` was not asked: the client did not declare that it can answer it"
    ))
}
