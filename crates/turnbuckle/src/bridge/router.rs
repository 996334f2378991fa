//! Owns where what a server says unasked goes: to a request that runs, to a client's connection, or
//! nowhere. Does not own how it gets there.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use serde::Deserialize;
use tokio::sync::{Notify, oneshot, watch};
use turnbuckle_types::{LogLevel, Method, Raw, RequestId, RpcError, jsonrpc::Params};

use super::{
    flight::{Flight, Purpose, Question, Told, Topics},
    translate::{self, Asking, Sides},
};
use crate::{
    Ctx, ServerRequest,
    client::{Hear, lies_in},
    dispatch::{BoxFuture, Exchange, Note, Outcome, Outgoing},
    envelope::question::lacking,
    error::Closed,
};

/// A client's connection, as far as something can be said on it that belongs to no request.
pub(super) trait Aside: Send + Sync + 'static {
    /// Keeps a notification until it can be sent. It must not wait.
    fn tell(&self, note: Note);
    /// Asks the client.
    fn ask(&self, request: Outgoing) -> Exchange;
    /// Tells the client something about the bridge itself, if it wants to hear such things.
    fn log(&self, level: LogLevel, message: &str);
}

/// What one far connection says, and to whom.
pub(super) struct Router {
    state: Mutex<State>,
    /// How many notifications may wait for one request.
    most: usize,
    clients: Clients,
    ended: watch::Sender<Option<Closed>>,
    /// Rings when the last request has left.
    idle: Notify,
}

/// Whose requests a far connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clients {
    One,
    Any,
}

#[derive(Default)]
struct State {
    /// By their numbers, so that the last is the newest.
    flights: BTreeMap<u64, Arc<Flight>>,
    next: u64,
    asides: Vec<Weak<dyn Aside>>,
}

/// The ids of forwarded requests begin here: the client's own requests count from the bottom.
const FIRST: u64 = 1_000_000;

impl Router {
    pub(super) fn new(clients: Clients, most: usize) -> Router {
        let state = State { next: FIRST, ..State::default() };
        let (state, ended) = (Mutex::new(state), watch::Sender::new(None));
        Router { state, most, clients, ended, idle: Notify::new() }
    }

    /// Enters a request; it leaves when what is returned is dropped.
    pub(super) fn enter(
        self: &Arc<Self>,
        near: Option<Ctx>,
        sides: Sides,
        purpose: Purpose,
    ) -> Entered {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let flight = Arc::new(Flight::new(number, near, sides, purpose, self.most));
        state.flights.insert(number, flight.clone());
        Entered { router: self.clone(), flight }
    }

    /// From now on this connection is told what belongs to no request.
    pub(super) fn attach(&self, aside: Weak<dyn Aside>) {
        let mut state = self.lock();
        state.asides.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&aside));
        state.asides.push(aside);
    }

    /// Why the connection has ended, once it has.
    pub(super) fn ended(&self) -> watch::Receiver<Option<Closed>> {
        self.ended.subscribe()
    }

    /// Whether no request runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.lock().flights.is_empty()
    }

    /// Resolves when no request runs.
    pub(super) async fn quiet(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.is_quiet() {
                return;
            }
            idle.await;
        }
    }

    /// Has a question of the server answered. Dropping the future takes it back.
    pub(super) fn ask(&self, request: ServerRequest) -> BoxFuture<'static, Outcome> {
        let ServerRequest { method, params, within, .. } = request;
        let text = params.as_ref().map_or("", Raw::as_str).to_owned();
        let flight = match self.asked(&method, &text, within.as_ref()) {
            Ok(flight) => flight,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let outgoing = || Outgoing::new(method.to_string(), text);
        let Some((flight, near)) = flight else {
            let Some(aside) = self.sole_aside() else {
                let error = RpcError::internal("no client is there that could be asked");
                return Box::pin(std::future::ready(Err(error)));
            };
            return answer(aside.ask(outgoing()));
        };
        match flight.sides.asking() {
            Asking::Live | Asking::Put => answer(near.replies().ask(outgoing())),
            Asking::Parked | Asking::Carried => {
                let (answer, answered) = oneshot::channel();
                flight.tell(Told::Asked(Question { method, params, answer }));
                Box::pin(async move {
                    let gone = || RpcError::internal("the client did not answer");
                    answered.await.unwrap_or_else(|_| Err(gone()))
                })
            }
        }
    }

    /// The request that a question belongs to; `None` if none runs that it could belong to.
    ///
    /// Where nothing names it, it is the oldest call in flight whose client can answer, rather one
    /// that its client waits for than one that was asked already. That is a guess which does no
    /// harm among calls of one caller, who is asked in any case. Among calls of several callers it
    /// would put one's question to another: nobody is asked then, not even if only one could answer.
    fn asked(
        &self,
        method: &str,
        params: &str,
        within: Option<&RequestId>,
    ) -> Result<Option<(Arc<Flight>, Ctx)>, RpcError> {
        let known = Method::from_name(method);
        let can_answer = |flight: &Flight| {
            let revision = flight.sides.near;
            let lacks =
                known.and_then(|known| lacking(known, params, &flight.capabilities, revision));
            match flight.sides.asking() {
                // A connection of its own was told what its client can do, and the client itself
                // refuses the rest.
                Asking::Live | Asking::Put => {
                    flight.is_call() && (self.clients == Clients::One || lacks.is_none())
                }
                Asking::Parked | Asking::Carried => {
                    flight.may_ask() && known.is_some() && lacks.is_none()
                }
            }
        };
        let state = self.lock();
        if let Some(flight) = within.and_then(number).and_then(|number| state.flights.get(&number))
        {
            let near = flight.near().filter(|_| can_answer(flight));
            return match near {
                Some(near) => Ok(Some((flight.clone(), near))),
                None => Err(undeclared(method)),
            };
        }
        let flights = state.flights.values().filter(|flight| flight.is_call());
        let calls: Vec<_> =
            flights.filter_map(|flight| Some((flight.clone(), flight.near()?))).collect();
        drop(state);
        let able = calls.iter().filter(|(flight, _)| can_answer(flight));
        let Some(chosen) =
            able.min_by_key(|(flight, _)| (flight.stage(), !flight.may_ask(), flight.number))
        else {
            return if calls.is_empty() { Ok(None) } else { Err(undeclared(method)) };
        };
        let is_others = |(flight, _): &(Arc<Flight>, Ctx)| {
            flight.may_ask() && !Arc::ptr_eq(flight, &chosen.0) && !flight.is_same_caller(&chosen.0)
        };
        if self.clients == Clients::Any && calls.iter().any(is_others) {
            return Err(RpcError::internal(
                "several callers have calls in flight, and nothing tells whose this question is",
            ));
        }
        Ok(Some(chosen.clone()))
    }

    /// A notification that came on no stream of a request.
    fn unasked(&self, note: Note) {
        let known = Method::from_name(&note.method);
        match known {
            // The dispatcher has done what these are for.
            Some(Method::Cancelled) => {}
            Some(Method::Progress) => self.tell(note.subject().as_ref(), note),
            Some(Method::LogMessage) => self.log(note),
            _ => {
                if let Some(id) = translate::subscription_of(&note.params) {
                    return self.tell(Some(&id), note);
                }
                let state = self.lock();
                let flights: Vec<_> = state.flights.values().cloned().collect();
                let asides: Vec<_> = state.asides.iter().filter_map(Weak::upgrade).collect();
                drop(state);
                for flight in flights.iter().filter(|flight| wants(&flight.purpose, &note)) {
                    flight.tell(Told::Note(note.clone()));
                }
                asides.iter().for_each(|aside| aside.tell(note.clone()));
            }
        }
    }

    /// Tells the request with this id.
    fn tell(&self, id: Option<&RequestId>, note: Note) {
        let Some(number) = id.and_then(number) else { return };
        let flight = self.lock().flights.get(&number).cloned();
        if let Some(flight) = flight {
            flight.tell(Told::Note(note));
        }
    }

    /// A log message belongs to whichever request runs, if there is but one client whose it can be.
    fn log(&self, note: Note) {
        let level = level(&note.params);
        let state = self.lock();
        let flights: Vec<_> = state.flights.values().rev().cloned().collect();
        let asides: Vec<_> = state.asides.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        let calls = |flight: &&Arc<Flight>| flight.is_call() && flight.near().is_some();
        let running: Vec<_> = flights.iter().filter(calls).collect();
        let hearing: Vec<_> = running.iter().filter(|flight| flight.hears(level)).collect();
        match (hearing.first(), asides.first()) {
            (Some(newest), _) if self.is_one_clients(&running) => {
                newest.tell(Told::Note(note));
            }
            (None, Some(aside)) if asides.len() == 1 && running.is_empty() => aside.tell(note),
            _ => tracing::debug!("a log message that may be about anyone's request is dropped"),
        }
    }

    fn is_one_clients(&self, flights: &[&Arc<Flight>]) -> bool {
        let Some((first, others)) = flights.split_first() else { return true };
        self.clients == Clients::One || others.iter().all(|other| other.is_same_caller(first))
    }

    fn sole_aside(&self) -> Option<Arc<dyn Aside>> {
        let state = self.lock();
        let mut asides = state.asides.iter().filter_map(Weak::upgrade);
        let first = asides.next();
        first.filter(|_| asides.next().is_none())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hear for Router {
    fn note(&self, note: Note, within: Option<&RequestId>) {
        match (within, Method::from_name(&note.method)) {
            (_, Some(Method::Cancelled)) => {}
            // Others name their request themselves, or belong to none wherever they come.
            (
                Some(id),
                None
                | Some(Method::LogMessage | Method::Acknowledged | Method::ElicitationComplete),
            ) => self.tell(Some(id), note),
            _ => self.unasked(note),
        }
    }

    fn gone(&self, why: &Closed) {
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert_with(|| why.clone());
            first
        });
    }
}

/// A request that is in flight for as long as this lives.
pub(super) struct Entered {
    router: Arc<Router>,
    pub(super) flight: Arc<Flight>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.router.lock();
        state.flights.remove(&self.flight.number);
        let is_idle = state.flights.is_empty();
        drop(state);
        if is_idle {
            self.router.idle.notify_waiters();
        }
    }
}

fn answer(exchange: Exchange) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        exchange.done().await.map_err(|error| match error.as_rpc() {
            Some(rpc) => rpc.clone(),
            None => RpcError::internal(format!("the client can't be asked: {error}")),
        })
    })
}

fn wants(purpose: &Purpose, note: &Note) -> bool {
    let Purpose::Stream(Topics { lists, uris }) = purpose else { return false };
    #[derive(Deserialize)]
    struct Updated {
        uri: String,
    }
    if lists.iter().any(|method| *method == &*note.method) {
        return true;
    }
    if uris.is_empty() || Method::from_name(&note.method) != Some(Method::ResourceUpdated) {
        return false;
    }
    let updated = serde_json::from_str::<Updated>(note.params.text());
    updated.is_ok_and(|Updated { uri }| uris.iter().any(|watched| lies_in(&uri, watched)))
}

fn level(params: &Params) -> Option<LogLevel> {
    #[derive(Deserialize)]
    struct Leveled {
        level: LogLevel,
    }
    serde_json::from_str(params.text()).ok().map(|Leveled { level }| level)
}

fn number(id: &RequestId) -> Option<u64> {
    id.to_string().parse().ok()
}

fn undeclared(method: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "`{method}` was not asked: the client did not declare that it can answer it"
    ))
}
