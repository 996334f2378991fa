//! Calls to a legacy server that wait for a modern client: each has asked a question in a result, and
//! goes on when the client sends the answer with another request.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use tokio::task::AbortHandle;
use turnbuckle::{
    __seam::{Caller, ForwardedRequest, written_at},
    types::{Method, Raw, RpcError, jsonrpc::Retry},
};

use super::{Question, RunningCall};
use crate::{gateway::Outcome, json};

/// The calls that wait. Dropping it cancels them all.
pub(crate) struct PendingCalls {
    calls: Mutex<HashMap<String, PendingCall>>,
    max: usize,
    timeout: Duration,
}

/// A call that waits for its client.
struct PendingCall {
    call: RunningCall,
    questions: OpenQuestions,
    owner: Option<String>,
    /// Cancels it after the timeout.
    _expiry: Expiry,
}

/// The open questions, by their keys in the client's result.
type OpenQuestions = Vec<(String, Question)>;

/// What a request that answers a pending call leads to.
pub(crate) enum Resumed {
    /// All questions are answered: the call goes on.
    Running(Box<RunningCall>),
    /// The client is asked for the rest.
    InputRequired(Raw),
}

impl PendingCalls {
    pub(crate) fn new(max: usize, timeout: Duration) -> PendingCalls {
        PendingCalls { calls: Mutex::default(), max, timeout }
    }

    /// Suspends a call, and returns the result that asks its client.
    pub(super) fn suspend(
        self: &Arc<Self>,
        call: RunningCall,
        questions: Vec<Question>,
        caller: &Caller,
    ) -> Outcome {
        let questions = (1..).map(|number: u32| number.to_string()).zip(questions).collect();
        self.insert(call, questions, caller)
    }

    fn insert(
        self: &Arc<Self>,
        call: RunningCall,
        questions: OpenQuestions,
        caller: &Caller,
    ) -> Outcome {
        let state = random_state()?;
        let result = input_required(&questions, &state, caller);
        let owner = caller.principal_name();
        let mut calls = self.lock();
        if calls.len() >= self.max {
            drop(calls);
            return Err(RpcError::internal(format!(
                "too many calls wait for answers of their clients: the limit is {} (waiting_calls)",
                self.max
            )));
        }
        let expiry = self.expire(state.clone());
        call.in_flight.request.suspend();
        calls.insert(state, PendingCall { call, questions, owner, _expiry: expiry });
        Ok(result)
    }

    /// Continues the call that a request names, with the answers of the request.
    pub(crate) fn resume(
        self: &Arc<Self>,
        retry: &Retry,
        request: &ForwardedRequest,
    ) -> Result<Resumed, RpcError> {
        let unknown = || {
            RpcError::invalid_params(
                "`params.requestState` names no call that waits for an answer; it may have waited \
                 too long: send the request again without it",
            )
        };
        let state: Option<String> = retry.request_state.as_ref().and_then(|raw| raw.decode().ok());
        let Some(state) = state else { return Err(unknown()) };
        let owner = request.caller.principal_name();
        let pending = {
            let mut calls = self.lock();
            // A request that may not resume the call does not remove it either.
            match calls.get(&state) {
                Some(pending) if pending.owner == owner && is_same(&pending.call, request) => {
                    calls.remove(&state)
                }
                _ => None,
            }
        };
        let Some(PendingCall { call, questions, .. }) = pending else { return Err(unknown()) };
        let answers = retry.input_responses.as_ref().map_or("{}", Raw::as_str);
        let mut rest = OpenQuestions::new();
        for (key, question) in questions {
            match json::member(answers, &key).map(str::to_owned).map(json::raw) {
                Some(answer) => drop(question.answer.send(Ok(answer))),
                None if question.answer.is_closed() => {}
                None => rest.push((key, question)),
            }
        }
        call.in_flight.request.resume(request.caller.clone());
        if rest.is_empty() {
            return Ok(Resumed::Running(Box::new(call)));
        }
        self.insert(call, rest, &request.caller).map(Resumed::InputRequired)
    }

    /// Cancels a call whose client does not come back.
    fn expire(self: &Arc<Self>, state: String) -> Expiry {
        let (calls, timeout) = (Arc::downgrade(self), self.timeout);
        let waiting = async move {
            tokio::time::sleep(timeout).await;
            let Some(calls) = calls.upgrade() else { return };
            // Not under the lock: dropping it cancels the call.
            let pending = calls.lock().remove(&state);
            if pending.is_some() {
                tracing::debug!("a client did not answer in time: its call is cancelled");
            }
        };
        Expiry(tokio::spawn(waiting).abort_handle())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, PendingCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A timeout that is stopped when this is dropped.
struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a name for a pending call that can't be guessed.
fn random_state() -> Result<String, RpcError> {
    let mut bytes = [0; 24];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| RpcError::internal("the operating system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns whether a request repeats the one that began the call, apart from the members that change
/// in a retry.
fn is_same(call: &RunningCall, request: &ForwardedRequest) -> bool {
    fn repeated(text: &str) -> Cow<'_, str> {
        json::without(text, &["_meta", "inputResponses", "requestState"])
    }
    if call.method != request.method {
        return false;
    }
    let (first, next) = (repeated(call.params.text()), repeated(request.params.text()));
    // The client may have written the same params in another order.
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    first == next || value(&first).is_some_and(|first| value(&next) == Some(first))
}

/// Returns the result that asks a modern client.
fn input_required(questions: &OpenQuestions, state: &str, caller: &Caller) -> Raw {
    let requests = questions.iter().map(|(key, question)| {
        let params = question.params.clone().unwrap_or_else(Raw::empty_object);
        let params = match Method::from_name(&question.method) {
            Some(known) => written_at(known, params, caller.revision()),
            None => params,
        };
        let (key, method) = (json::quote(key), json::quote(&question.method));
        format!(r#"{key}:{{"method":{method},"params":{params}}}"#)
    });
    let requests = requests.collect::<Vec<_>>().join(",");
    json::raw(format!(
        r#"{{"resultType":"input_required","inputRequests":{{{requests}}},"requestState":{}}}"#,
        json::quote(state)
    ))
}
