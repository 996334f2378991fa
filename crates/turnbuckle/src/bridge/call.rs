//! Owns the course of one forwarded request: there, what is said meanwhile, back. Does not own the
//! requests whose client has to come back with an answer: those are parked.

use std::{future::poll_fn, sync::Arc, task::Poll};

use serde::Deserialize;
use turnbuckle_types::{
    LogLevel, Method, Raw, ResultType, RpcError,
    jsonrpc::{Params, Text},
};

use super::{
    failed,
    flight::{Purpose, Question, Told, Topics},
    link::Link,
    parking::Parking,
    router::Entered,
    translate::{self, Asking, Failed, Sender, Sides, Written},
};
use crate::{
    Ctx,
    client::{Asked, Forwarded, QUESTIONS, ROUNDS, again, asked},
    dispatch::{Event, Exchange, Note, Outcome, Outgoing},
    envelope::question::written_at,
    error::Error,
    server::forward::Visitor,
};

/// A request that the server has, or is about to get. Dropping it cancels it there.
pub(super) struct Running {
    link: Arc<Link>,
    pub(super) entered: Entered,
    exchange: Exchange,
    pub(super) method: Text,
    known: Option<Method>,
    /// Its params as they came.
    pub(super) params: Params,
    /// Its params as they were sent first.
    written: Written,
    rounds: usize,
    headers: Headers,
}

/// Whether the headers of its arguments have been looked up once more.
#[derive(PartialEq)]
enum Headers {
    Assumed,
    LookedUp,
}

enum Step {
    Told(Told),
    Event(Event),
}

impl Running {
    /// A request of a client. Nothing is sent before it runs.
    pub(super) fn new(link: &Arc<Link>, visitor: &Visitor) -> Running {
        let Visitor { method, params, ctx, .. } = visitor;
        let sender = Sender {
            meta: ctx.own_meta(),
            handshake: ctx.handshake(),
            log_level: ctx.log_level(),
            token: ctx.token(),
        };
        let sides = link.sides(ctx.revision());
        let written = sides.params(params, sender);
        let known = Method::from_name(method);
        let purpose = match known {
            Some(Method::Listen) => {
                ctx.replies().at_shutdown(farewell(ctx));
                Purpose::Stream(Topics::default())
            }
            Some(method) if method.row().may_ask => Purpose::AskingCall,
            _ => Purpose::Call,
        };
        let entered = link.router.enter(Some(ctx.clone()), sides, purpose);
        let exchange = send(link, &entered, method, &written.text, written.token_at);
        Running {
            link: link.clone(),
            entered,
            exchange,
            method: method.clone(),
            known,
            params: params.clone(),
            written,
            rounds: 0,
            headers: Headers::Assumed,
        }
    }

    /// Runs until there is something to answer. Dropping the future cancels the request.
    pub(super) async fn run(mut self, near: &Ctx, parking: &Arc<Parking>) -> Outcome {
        loop {
            match self.step().await {
                Step::Told(Told::Note(note)) => self.pass(near, note).await?,
                Step::Told(Told::Asked(question)) => {
                    let questions = self.questions(near, question).await?;
                    if !questions.is_empty() {
                        return parking.park(self, questions, near);
                    }
                }
                Step::Event(Event::Note(note)) => {
                    // Everything else that it yields has been told already, in its order.
                    if self.known == Some(Method::Listen) && is(&note, Method::Cancelled) {
                        self.exchange.silence();
                        return Ok(farewell(near));
                    }
                }
                Step::Event(Event::Done(result)) => {
                    while let Some(Told::Note(note)) = self.entered.flight.take_told() {
                        self.pass(near, note).await?;
                    }
                    match result {
                        Ok(result) => {
                            if let Some(outcome) = self.finished(near, result).await? {
                                return Ok(outcome);
                            }
                        }
                        Err(error) => {
                            if let Some(asked) = self.failed(error).await? {
                                return Ok(asked);
                            }
                        }
                    }
                }
            }
            // A server that reports without end must not keep this task from anything else.
            tokio::task::consume_budget().await;
        }
    }

    async fn step(&mut self) -> Step {
        let Running { entered, exchange, .. } = self;
        poll_fn(|context| {
            if let Poll::Ready(told) = entered.flight.poll_told(context) {
                return Poll::Ready(Step::Told(told));
            }
            exchange.poll_event(context).map(Step::Event)
        })
        .await
    }

    /// All that the server wants to know at the moment.
    async fn questions(&mut self, near: &Ctx, first: Question) -> Result<Vec<Question>, RpcError> {
        let mut questions = vec![first];
        while let Some(told) = self.entered.flight.take_told() {
            match told {
                Told::Asked(question) => questions.push(question),
                Told::Note(note) => self.pass(near, note).await?,
            }
        }
        questions.retain(|question| !question.answer.is_closed());
        Ok(questions)
    }

    /// Tells the client what the server says, if it wants to hear it.
    async fn pass(&mut self, near: &Ctx, note: Note) -> Result<(), RpcError> {
        let params = match Method::from_name(&note.method) {
            Some(Method::Progress) => match near.token() {
                Some(token) => translate::progress(&note.params, token),
                None => return Ok(()),
            },
            Some(Method::LogMessage) if !self.entered.flight.hears(level(&note)) => return Ok(()),
            _ if self.known == Some(Method::Listen) => {
                if self.entered.flight.is_behind() {
                    return Err(behind());
                }
                translate::subscription(note.params.text(), Some(near.request_id()))
            }
            _ => note.params.text().to_owned(),
        };
        say(near, &note.method, &params).await;
        Ok(())
    }

    /// What the client is answered; `None` if the server was asked once more instead.
    async fn finished(&mut self, near: &Ctx, result: Raw) -> Result<Option<Raw>, RpcError> {
        let sides = self.sides();
        if self.known == Some(Method::ListTools) {
            self.link.client.learn_tools(&result);
        }
        if self.known == Some(Method::Listen) {
            let id = Some(near.request_id());
            return Ok(Some(super::text::raw(translate::subscription(result.as_str(), id))));
        }
        let may_ask = self.known.is_some_and(|method| method.row().may_ask);
        if may_ask && sides.asking() == Asking::Put && is_asking(&result) {
            let asked = asked(&self.method, &result).map_err(failed)?;
            let Some(asked) = asked else { return Ok(Some(result)) };
            self.answer(near, asked).await?;
            return Ok(None);
        }
        Ok(Some(sides.result(self.known, result)))
    }

    fn sides(&self) -> Sides {
        self.entered.flight.sides
    }

    /// Puts what a modern server asks to a client of the legacy era, then makes the request again.
    async fn answer(&mut self, near: &Ctx, asked: Asked) -> Result<(), RpcError> {
        self.rounds += 1;
        if self.rounds > ROUNDS {
            return Err(RpcError::internal(format!(
                "the server asked for input {ROUNDS} times and still does not answer"
            )));
        }
        let Asked { questions, state } = asked;
        if questions.as_ref().is_some_and(|questions| questions.len() > QUESTIONS) {
            return Err(RpcError::internal(format!(
                "the server asks more than {QUESTIONS} questions at once"
            )));
        }
        let answers = match questions {
            Some(questions) => {
                let put = questions.into_iter().map(|question| {
                    let known = Method::from_name(&question.method);
                    let params = question.params.raw.unwrap_or_else(Raw::empty_object);
                    let params = match known {
                        Some(known) => written_at(known, params, near.revision()),
                        None => params,
                    };
                    let request = Outgoing::new(question.method, params.as_str().to_owned());
                    (question.key, near.replies().ask(request))
                });
                Some(all(put.collect()).await?)
            }
            None => None,
        };
        let text = again(&self.written.text, answers.as_deref(), state.as_ref());
        // 2026-07-28 basic/patterns/mrtr §Client Requirements: a request of its own.
        let sides = self.sides();
        self.entered = self.link.router.enter(Some(near.clone()), sides, Purpose::AskingCall);
        let token_at = self.written.token_at;
        self.exchange = send(&self.link, &self.entered, &self.method, &text, token_at);
        Ok(())
    }

    /// What the client is told of a failure, or asked because of it; `None` if the server was asked
    /// once more instead.
    async fn failed(&mut self, error: Error) -> Result<Option<Raw>, RpcError> {
        if self.headers == Headers::Assumed && self.link.client.lacks_headers(self.known, &error) {
            self.again_with_headers().await?;
            return Ok(None);
        }
        let Some(rpc) = error.as_rpc() else { return Err(failed(error)) };
        let request = Failed {
            method: self.known,
            params: self.params.text(),
            capabilities: &self.entered.flight.capabilities,
        };
        match self.sides().error(request, rpc.clone()) {
            translate::Told::Error(error) => Err(error),
            translate::Told::Asks(asked) => Ok(Some(asked)),
        }
    }

    /// 2026-07-28 transports/streamable-http §Client Behavior: a tool may have changed since it was
    /// listed, or was never listed here.
    async fn again_with_headers(&mut self) -> Result<(), RpcError> {
        self.headers = Headers::LookedUp;
        self.link.client.tools().all().await.map_err(failed)?;
        let Written { text, token_at } = &self.written;
        let (near, sides) = (self.entered.flight.near(), self.sides());
        self.entered = self.link.router.enter(near, sides, Purpose::AskingCall);
        self.exchange = send(&self.link, &self.entered, &self.method, text, *token_at);
        Ok(())
    }
}

fn send(
    link: &Link,
    entered: &Entered,
    method: &Text,
    params: &str,
    token_at: Option<usize>,
) -> Exchange {
    let (id, method) = (entered.flight.id(), method.to_string().into());
    link.client.forward(Forwarded { id, method, params, token_at })
}

/// Waits for all answers. The first that fails fails all; dropping the future takes all back.
async fn all(mut open: Vec<(String, Exchange)>) -> Result<Vec<(String, Raw)>, RpcError> {
    let mut given: Vec<Option<Raw>> = vec![None; open.len()];
    poll_fn(|context| {
        let mut waits = false;
        for ((_, exchange), given) in open.iter_mut().zip(&mut given) {
            while given.is_none() {
                match exchange.poll_event(context) {
                    Poll::Pending => {
                        waits = true;
                        break;
                    }
                    Poll::Ready(Event::Note(_)) => {}
                    Poll::Ready(Event::Done(Ok(answer))) => *given = Some(answer),
                    Poll::Ready(Event::Done(Err(error))) => return Poll::Ready(Err(error)),
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(Ok(())) }
    })
    .await
    .map_err(|error| match error.as_rpc() {
        Some(rpc) => rpc.clone(),
        None => RpcError::internal(format!("the client can't be asked: {error}")),
    })?;
    let keys = open.into_iter().map(|(key, _)| key);
    Ok(keys.zip(given).filter_map(|(key, given)| Some((key, given?))).collect())
}

/// Sends a notification that belongs to a request.
pub(super) async fn say(near: &Ctx, method: &str, params: &str) {
    let mut render = |out: &mut Vec<u8>| out.extend_from_slice(params.as_bytes());
    poll_fn(|context| near.replies().poll_note(context, method, &mut render)).await;
}

/// What a stream of changes ends with in good order.
pub(super) fn farewell(near: &Ctx) -> Raw {
    let mut result = turnbuckle_types::ListenResult::new();
    result.meta.set_subscription_id(near.request_id().clone());
    Raw::at(&result, near.revision())
}

pub(super) fn behind() -> RpcError {
    RpcError::internal(
        "this stream fell behind, and some changes are lost; listen again and read everything again",
    )
}

pub(super) fn is(note: &Note, method: Method) -> bool {
    &*note.method == method.as_str()
}

fn is_asking(result: &Raw) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "resultType")]
        kind: Option<ResultType>,
    }
    result.decode::<Kind>().is_ok_and(|kind| kind.kind == Some(ResultType::InputRequired))
}

fn level(note: &Note) -> Option<LogLevel> {
    #[derive(Deserialize)]
    struct Leveled {
        level: LogLevel,
    }
    serde_json::from_str(note.params.text()).ok().map(|Leveled { level }| level)
}
