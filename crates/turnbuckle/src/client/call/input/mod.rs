//! Owns a result that asks for input first: reading it, having its questions answered, and the
//! params of the request that is made again. Does not own the loop, its clocks or its wire.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Poll,
};

use crate::{
    client::handlers::Callbacks,
    error::{Error, ErrorKind, Executed, Result},
    protocol::elicitation,
    rpc::{BoxFuture, Outcome},
};
use serde::Deserialize;
use turnbuckle_types::{Method, Named, Raw, ResultType, Revision, RpcError, jsonrpc::Params};

/// How often a server may ask before it answers, unless the call says otherwise.
pub(crate) const ROUNDS: usize = 10;

/// The most questions in one round: each is put to someone at once.
pub(crate) const QUESTIONS: usize = 100;

/// What a server wants to know before it answers.
#[derive(Debug)]
pub(crate) struct ServerInputRequest {
    /// `None` if it only wants to be asked again.
    pub(crate) questions: Option<Vec<InputQuestion>>,
    /// The JSON text of a string, as it came.
    pub(crate) state: Option<Raw>,
}

#[derive(Debug)]
pub(crate) struct InputQuestion {
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) params: Params,
}

/// Whether a result asks for input, and what it asks.
pub(crate) fn asked(method: &str, result: &Raw) -> Result<Option<ServerInputRequest>> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "resultType")]
        kind: Option<ResultType>,
    }
    #[derive(Deserialize)]
    struct Members {
        #[serde(rename = "inputRequests")]
        questions: Option<Named<Entry>>,
        #[serde(rename = "requestState")]
        state: Option<Raw>,
    }
    #[derive(Deserialize)]
    struct Entry {
        method: String,
        params: Option<Raw>,
    }
    match result.decode::<Kind>() {
        Ok(Kind { kind: Some(ResultType::InputRequired) }) => {}
        _ => return Ok(None),
    }
    let broken = |why: &dyn std::fmt::Display| {
        Error::protocol(format!("what the server asks before it answers {method} is broken: {why}"))
    };
    let Members { questions, state } = result.decode().map_err(|error| broken(&error))?;
    // 2026-07-28 basic/patterns/mrtr §Server Requirements: at least one of them.
    if questions.is_none() && state.is_none() {
        return Err(broken(&"it has neither `inputRequests` nor `requestState`"));
    }
    if state.as_ref().is_some_and(|state| !state.as_str().starts_with('"')) {
        return Err(broken(&"`requestState` is no string"));
    }
    let questions = questions.map(|questions| {
        let read = |(key, Entry { method, params }): (String, Entry)| {
            let params = match params {
                Some(params) => Params::of(params).map_err(|why| broken(&why.message))?,
                None => Params::default(),
            };
            Ok(InputQuestion { key, method, params })
        };
        questions.into_iter().map(read).collect::<Result<Vec<_>>>()
    });
    Ok(Some(ServerInputRequest { questions: questions.transpose()?, state }))
}

impl ServerInputRequest {
    /// Puts every question to its callback, all at once, and gives the params of the request that
    /// is made again: `params`, which is the text of an object without either member, with the
    /// answers and the state. Dropping the future drops every callback's.
    pub(crate) async fn answered(
        self,
        call: (&str, &str),
        callbacks: &Callbacks,
        revision: Revision,
    ) -> Result<String> {
        let (method, params) = call;
        let ServerInputRequest { questions, state } = self;
        let answers = match questions {
            Some(questions) => Some(answers(method, questions, callbacks, revision).await?),
            None => None,
        };
        Ok(again(params, answers.as_deref(), state.as_ref()))
    }
}

/// The answers by their keys, in the order of the questions. The first that fails fails all.
async fn answers(
    method: &str,
    questions: Vec<InputQuestion>,
    callbacks: &Callbacks,
    revision: Revision,
) -> Result<Vec<(String, Raw)>> {
    if questions.len() > QUESTIONS {
        let message =
            format!("the server asks more than {QUESTIONS} questions of {method} at once");
        return Err(Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe));
    }
    // Nobody is asked anything unless everything can be.
    let mut open = Vec::with_capacity(questions.len());
    for question in questions {
        let known = Method::from_name(&question.method);
        let answer = known.and_then(|known| callbacks.answer(known, &question.params, revision));
        let Some(answer) = answer else { return Err(unanswerable(method, &question)) };
        open.push(OpenInputQuestion { question, state: Answer::Awaited(answer) });
    }
    poll_fn(|context| {
        let mut waits = false;
        for one in &mut open {
            let Answer::Awaited(answer) = &mut one.state else { continue };
            // The callback is the user's own, but a panic in it must not look like one in here.
            let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
            match polled {
                Ok(Poll::Pending) => waits = true,
                Ok(Poll::Ready(Ok(answer))) => one.state = Answer::Given(answer),
                Ok(Poll::Ready(Err(refusal))) => {
                    return Poll::Ready(Err(refused(&one.question.method, refusal)));
                }
                Err(_) => return Poll::Ready(Err(panicked(&one.question.method))),
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(Ok(())) }
    })
    .await?;
    let given = open.into_iter().filter_map(|one| match one.state {
        Answer::Given(answer) => Some((one.question.key, answer)),
        Answer::Awaited(_) => None,
    });
    Ok(given.collect())
}

/// A question that has been put.
struct OpenInputQuestion {
    question: InputQuestion,
    state: Answer,
}

enum Answer {
    Awaited(BoxFuture<'static, Outcome>),
    Given(Raw),
}

/// The params of the request that is made again.
pub(crate) fn again(
    params: &str,
    answers: Option<&[(String, Raw)]>,
    state: Option<&Raw>,
) -> String {
    let mut text = params.strip_suffix('}').unwrap_or("{").trim_end().to_owned();
    let member = |text: &mut String, name: &str| {
        if !text.ends_with('{') {
            text.push(',');
        }
        text.push_str(name);
    };
    if let Some(answers) = answers {
        member(&mut text, r#""inputResponses":{"#);
        for (key, answer) in answers {
            member(&mut text, &serde_json::Value::from(key.as_str()).to_string());
            text.push(':');
            text.push_str(answer.as_str());
        }
        text.push('}');
    }
    if let Some(state) = state {
        member(&mut text, r#""requestState":"#);
        text.push_str(state.as_str());
    }
    text.push('}');
    text
}

/// What came of a callback that gave no answer, or none that can be sent.
fn refused(method: &str, refusal: RpcError) -> Error {
    let Some(why) = elicitation::unfit(&refusal) else { return Error::unanswered(method, refusal) };
    let message = format!("this client's answer to `{method}` does not fit the form: {why}");
    Error::refused(message).with_executed(Executed::Maybe).with_source(refusal)
}

/// The server asked once too often.
pub(crate) fn too_many(method: &str, rounds: usize, last: &Raw) -> Error {
    let message = format!(
        "the server asked for input {rounds} times and still does not answer {method} (max_rounds)"
    );
    let error = Error::new(ErrorKind::Limit, message).with_executed(Executed::Maybe);
    error.with_input_required(last.clone())
}

/// This side took longer than the call allows.
pub(crate) fn unanswered_in_time(method: &str) -> Error {
    Error::timeout(method, "ran out of the time for answers to its server (answer_timeout)")
}

fn unanswerable(method: &str, question: &InputQuestion) -> Error {
    Error::protocol(format!(
        "before it answers {method} the server asks `{}`, which this client has no callback for",
        question.method
    ))
}

fn panicked(method: &str) -> Error {
    Error::refused(format!("the callback for `{method}` panicked")).with_executed(Executed::Maybe)
}

#[cfg(test)]
mod tests;
