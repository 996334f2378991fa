//! Owns calls of a legacy server that asks something of a modern client: each waits for its client
//! to come back with the answer. Does not own how such a call goes on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ring::digest::{SHA256, digest};
use tokio::task::AbortHandle;
use turnbuckle_types::{Method, Raw, RpcError, jsonrpc::Retry};

use super::{call::Running, flight::Question, text};
use crate::{
    Ctx, Principal,
    dispatch::Outcome,
    envelope::question::written_at,
    seal::random,
    server::{forward::Visitor, write_canonical},
};

/// Calls that wait. Dropping it cancels them all.
pub(super) struct Parking {
    places: Mutex<HashMap<String, Parked>>,
    most: usize,
    patience: Duration,
}

/// A call that waits for its client.
struct Parked {
    running: Running,
    open: Open,
    binding: Binding,
    /// Ends the wait.
    expiry: Expiry,
}

/// What has been asked, by the names that the client was told.
type Open = Vec<(String, Question)>;

/// Who may answer, and with which request.
#[derive(PartialEq)]
struct Binding {
    owner: Option<String>,
    request: Vec<u8>,
}

impl Parking {
    pub(super) fn new(most: usize, patience: Duration) -> Parking {
        Parking { places: Mutex::default(), most, patience }
    }

    /// Parks a call, and gives what its client is answered meanwhile.
    pub(super) fn park(
        self: &Arc<Self>,
        running: Running,
        questions: Vec<Question>,
        near: &Ctx,
    ) -> Outcome {
        let open = (1..).map(|number: u32| number.to_string()).zip(questions).collect();
        let binding = bound(&running.method, running.params.text());
        self.wait(running, open, binding, near)
    }

    fn wait(
        self: &Arc<Self>,
        running: Running,
        open: Open,
        binding: Vec<u8>,
        near: &Ctx,
    ) -> Outcome {
        let state: String = random::<24>().iter().map(|byte| format!("{byte:02x}")).collect();
        let asked = required(&open, &state, near);
        let binding = Binding { owner: owner(near), request: binding };
        let mut places = self.lock();
        if places.len() >= self.most {
            drop(places);
            return Err(RpcError::internal(format!(
                "too many calls wait for answers of their clients: the limit is {} (waiting_calls)",
                self.most
            )));
        }
        let expiry = self.expire(state.clone());
        running.entered.flight.parked();
        places.insert(state, Parked { running, open, binding, expiry });
        Ok(asked)
    }

    /// Goes on with the call that a request names, with the answers that it brings: either there
    /// is a call that runs again, or the client is asked for the rest.
    pub(super) fn resume(
        self: &Arc<Self>,
        retry: &Retry,
        visitor: &Visitor,
    ) -> Result<Result<Running, Raw>, RpcError> {
        let unknown = || {
            RpcError::invalid_params(
                "`params.requestState` names no call that waits for an answer; it may have waited \
                 too long: make the request anew",
            )
        };
        let state: Option<String> = retry.request_state.as_ref().and_then(|raw| raw.decode().ok());
        let Some(state) = state else { return Err(unknown()) };
        let binding = Binding {
            owner: owner(&visitor.ctx),
            request: bound(&visitor.method, visitor.params.text()),
        };
        let parked = {
            let mut places = self.lock();
            // Whoever may not have it does not take it away either.
            match places.get(&state) {
                Some(parked) if parked.binding == binding => places.remove(&state),
                _ => None,
            }
        };
        let Some(Parked { running, open, binding, expiry }) = parked else { return Err(unknown()) };
        drop(expiry);
        let answers = retry.input_responses.as_ref().map_or("{}", Raw::as_str);
        let mut rest = Open::new();
        for (key, question) in open {
            match text::member(answers, &key).map(str::to_owned).map(text::raw) {
                Some(answer) => drop(question.answer.send(Ok(answer))),
                None if question.answer.is_closed() => {}
                None => rest.push((key, question)),
            }
        }
        running.entered.flight.resumed(visitor.ctx.clone());
        if rest.is_empty() {
            return Ok(Ok(running));
        }
        self.wait(running, rest, binding.request, &visitor.ctx).map(Err)
    }

    /// Drops a call whose client does not come back.
    fn expire(self: &Arc<Self>, state: String) -> Expiry {
        let (parking, patience) = (Arc::downgrade(self), self.patience);
        let waiting = async move {
            tokio::time::sleep(patience).await;
            let Some(parking) = parking.upgrade() else { return };
            // Not under the lock: dropping it cancels the call.
            let parked = parking.lock().remove(&state);
            if parked.is_some() {
                tracing::debug!("a client did not answer in time: its call is cancelled");
            }
        };
        Expiry(tokio::spawn(waiting).abort_handle())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a wait, unless this is dropped before.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a request is, apart from what changes when it is made again.
fn bound(method: &str, params: &str) -> Vec<u8> {
    let names = ["_meta", "inputResponses", "requestState"];
    let rest = text::without(params, &names);
    let mut text = [method.as_bytes(), b"\n"].concat();
    write_canonical(&rest, &mut text);
    digest(&SHA256, &text).as_ref().to_vec()
}

fn owner(near: &Ctx) -> Option<String> {
    near.principal::<()>().map(|who: Principal| who.name().to_owned())
}

/// The result that asks a modern client.
fn required(open: &Open, state: &str, near: &Ctx) -> Raw {
    let mut text = r#"{"resultType":"input_required","inputRequests":{"#.to_owned();
    for (index, (key, question)) in open.iter().enumerate() {
        let params = question.params.clone().unwrap_or_else(Raw::empty_object);
        let params = match Method::from_name(&question.method) {
            Some(known) => written_at(known, params, near.revision()),
            None => params,
        };
        if index > 0 {
            text.push(',');
        }
        let (key, method) = (text::quoted(key), text::quoted(&question.method));
        text.push_str(&format!(r#"{key}:{{"method":{method},"params":{params}}}"#));
    }
    text.push_str(&format!(r#"}},"requestState":{}}}"#, text::quoted(state)));
    text::raw(text)
}
