//! The course of one forwarded request: it is sent to the server, messages that precede the answer are
//! forwarded, and the answer is translated.

mod in_flight;
mod pending;

use std::{future::poll_fn, sync::Arc, task::Poll};

use serde::Deserialize;
use turnbuckle::{
    __seam::{
        self, Caller, Exchange, ExchangeEvent, ForwardRequest, ForwardedRequest, Note,
        lacks_headers, learn_tools, written_at,
    },
    Error,
    types::{
        ListenResult, LogLevel, Method, Named, Raw, ResultType, RpcError,
        jsonrpc::{Params, Text},
    },
};

pub(crate) use in_flight::{InFlightRequest, Question, RequestPurpose, ServerMessage, Topics};
pub(crate) use pending::{PendingCalls, Resumed};

use crate::{
    gateway::{Outcome, to_rpc_error},
    json,
    translate::{
        self, EncodedParams, FailedRequest, QuestionRoute, RequestSender, TranslatedError,
    },
    upstream::{InFlightGuard, UpstreamConnection, unanswered},
};

/// How often a server may require input before it answers.
const MAX_ROUNDS: usize = 10;
/// The most questions in one round: each becomes a request to the client.
const MAX_QUESTIONS: usize = 100;

/// A request that has been sent to the server, or is about to be. Dropping it cancels the request.
pub(crate) struct RunningCall {
    connection: Arc<UpstreamConnection>,
    in_flight: InFlightGuard,
    exchange: Exchange,
    method: Text,
    known: Option<Method>,
    /// The client's params.
    params: Params,
    /// The params that were sent first.
    encoded: EncodedParams,
    rounds: usize,
    header_retry: HeaderRetry,
}

/// Whether the request was repeated with other headers.
#[derive(PartialEq)]
enum HeaderRetry {
    Unused,
    Used,
}

/// The next thing that happens to a running request.
enum CallStep {
    Message(ServerMessage),
    /// A notification that the router queues as a message, too.
    Routed,
    /// The server has ended a stream without a result.
    Cancelled,
    Done(Result<Raw, Error>),
}

impl RunningCall {
    /// Prepares a request of a client. Nothing is sent before it runs.
    pub(crate) fn new(
        connection: &Arc<UpstreamConnection>,
        request: &ForwardedRequest,
    ) -> RunningCall {
        let ForwardedRequest { method, params, caller, .. } = request;
        let sender = RequestSender {
            meta: caller.meta(),
            handshake: caller.handshake(),
            log_level: caller.log_level(),
            progress_token: caller.progress_token(),
        };
        let revisions = connection.revisions(caller.revision());
        let encoded = revisions.translate_params(params, sender);
        let known = Method::from_name(method);
        let purpose = match known {
            Some(Method::Listen) => {
                caller.set_shutdown_result(listen_result(caller));
                RequestPurpose::Stream(Topics::default())
            }
            Some(method) if method.row().may_ask => RequestPurpose::AskingCall,
            _ => RequestPurpose::Call,
        };
        let in_flight = connection.router.register(Some(caller.clone()), revisions, purpose);
        let exchange = send(connection, &in_flight, method, &encoded.text, encoded.token_at);
        RunningCall {
            connection: connection.clone(),
            in_flight,
            exchange,
            method: method.clone(),
            known,
            params: params.clone(),
            encoded,
            rounds: 0,
            header_retry: HeaderRetry::Unused,
        }
    }

    /// Runs until there is an answer for the client. Dropping the future cancels the request.
    pub(crate) async fn run(mut self, caller: &Caller, pending: &Arc<PendingCalls>) -> Outcome {
        loop {
            match self.step().await {
                CallStep::Message(ServerMessage::Notification(note)) => {
                    self.forward_notification(caller, note).await?;
                }
                CallStep::Message(ServerMessage::Question(question)) => {
                    let questions = self.take_questions(caller, question).await?;
                    if !questions.is_empty() {
                        return pending.suspend(self, questions, caller);
                    }
                }
                CallStep::Routed => {}
                CallStep::Cancelled => return Ok(listen_result(caller)),
                CallStep::Done(result) => {
                    while let Some(ServerMessage::Notification(note)) =
                        self.in_flight.request.take_message()
                    {
                        self.forward_notification(caller, note).await?;
                    }
                    let answer = match result {
                        Ok(result) => self.finish(caller, result).await?,
                        Err(error) => self.fail(error).await?,
                    };
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                }
            }
            // A server that notifies without end must not block this thread.
            tokio::task::consume_budget().await;
        }
    }

    async fn step(&mut self) -> CallStep {
        let RunningCall { in_flight, exchange, known, .. } = self;
        poll_fn(|context| {
            if let Poll::Ready(message) = in_flight.request.poll_message(context) {
                return Poll::Ready(CallStep::Message(message));
            }
            exchange.poll_event(context).map(|event| match event {
                ExchangeEvent::Done(result) => CallStep::Done(result),
                ExchangeEvent::Note(note)
                    if *known == Some(Method::Listen) && is(&note, Method::Cancelled) =>
                {
                    exchange.silence();
                    CallStep::Cancelled
                }
                ExchangeEvent::Note(_) => CallStep::Routed,
            })
        })
        .await
    }

    /// Returns all questions that the server asks at the moment.
    async fn take_questions(
        &mut self,
        caller: &Caller,
        first: Question,
    ) -> Result<Vec<Question>, RpcError> {
        let mut questions = vec![first];
        while let Some(message) = self.in_flight.request.take_message() {
            match message {
                ServerMessage::Question(question) => questions.push(question),
                ServerMessage::Notification(note) => {
                    self.forward_notification(caller, note).await?;
                }
            }
        }
        questions.retain(|question| !question.answer.is_closed());
        Ok(questions)
    }

    /// Sends a notification of the server to the client, if the client wants it.
    async fn forward_notification(&mut self, caller: &Caller, note: Note) -> Result<(), RpcError> {
        let request = &self.in_flight.request;
        let params = match Method::from_name(&note.method) {
            Some(Method::Progress) => match caller.progress_token() {
                Some(token) => translate::with_progress_token(&note.params, token),
                None => return Ok(()),
            },
            Some(Method::LogMessage) if !request.wants_log(log_level(&note)) => return Ok(()),
            _ if self.known == Some(Method::Listen) => {
                if request.has_dropped() {
                    return Err(changes_lost());
                }
                translate::with_subscription_id(note.params.text(), Some(caller.request_id()))
            }
            _ => note.params.text().to_owned(),
        };
        caller.notify(&note.method, &params).await;
        Ok(())
    }

    /// Returns the answer for a result of the server; `None` if the request was sent again instead.
    async fn finish(&mut self, caller: &Caller, result: Raw) -> Result<Option<Raw>, RpcError> {
        let revisions = self.in_flight.request.revisions;
        if self.known == Some(Method::ListTools) {
            learn_tools(&self.connection.client, &result);
        }
        if self.known == Some(Method::Listen) {
            let id = Some(caller.request_id());
            return Ok(Some(json::raw(translate::with_subscription_id(result.as_str(), id))));
        }
        let may_ask = self.known.is_some_and(|method| method.row().may_ask);
        if may_ask
            && revisions.question_route() == QuestionRoute::Retry
            && let Some(input) = InputRequired::read(&self.method, &result)?
        {
            self.retry_with_answers(caller, input).await?;
            return Ok(None);
        }
        Ok(Some(revisions.translate_result(self.known, result)))
    }

    /// Asks a legacy client the questions of a modern server, and sends the request again with the
    /// answers.
    async fn retry_with_answers(
        &mut self,
        caller: &Caller,
        input: InputRequired,
    ) -> Result<(), RpcError> {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Err(RpcError::internal(format!(
                "the server asked for input {MAX_ROUNDS} times and still does not answer"
            )));
        }
        let InputRequired { questions, state } = input;
        let mut text = self.encoded.text.clone();
        if let Some(questions) = questions {
            if questions.len() > MAX_QUESTIONS {
                return Err(RpcError::internal(format!(
                    "the server asks more than {MAX_QUESTIONS} questions at once"
                )));
            }
            let asked = questions.into_iter().map(|(key, InputRequest { method, params })| {
                let params = params.unwrap_or_else(Raw::empty_object);
                let params = match Method::from_name(&method) {
                    Some(known) => written_at(known, params, caller.revision()),
                    None => params,
                };
                (key, caller.ask(method, params.as_str().to_owned()))
            });
            let answers = await_answers(asked.collect()).await?;
            text = json::with(&text, "inputResponses", &answers);
        }
        if let Some(state) = state {
            text = json::with(&text, "requestState", state.as_str());
        }
        // 2026-07-28 basic/patterns/mrtr §Client Requirements: a request with an id of its own.
        self.send_again(Some(caller.clone()), &text);
        Ok(())
    }

    /// Returns the answer for an error of the server; `None` if the request was sent again instead.
    async fn fail(&mut self, error: Error) -> Result<Option<Raw>, RpcError> {
        let client = &self.connection.client;
        if self.header_retry == HeaderRetry::Unused && lacks_headers(client, self.known, &error) {
            // 2026-07-28 transports/streamable-http §Client Behavior: the tool may have changed since
            // it was listed, or was never listed here.
            self.header_retry = HeaderRetry::Used;
            client.tools().all().await.map_err(to_rpc_error)?;
            let (caller, text) = (self.in_flight.request.caller(), self.encoded.text.clone());
            self.send_again(caller, &text);
            return Ok(None);
        }
        let Some(rpc) = error.as_rpc() else { return Err(to_rpc_error(error)) };
        let request = FailedRequest {
            method: self.known,
            params: self.params.text(),
            capabilities: &self.in_flight.request.capabilities,
        };
        match self.in_flight.request.revisions.translate_error(request, rpc.clone()) {
            TranslatedError::Error(error) => Err(error),
            TranslatedError::InputRequired(result) => Ok(Some(result)),
        }
    }

    fn send_again(&mut self, caller: Option<Caller>, params: &str) {
        let revisions = self.in_flight.request.revisions;
        let router = &self.connection.router;
        self.in_flight = router.register(caller, revisions, RequestPurpose::AskingCall);
        let (in_flight, token_at) = (&self.in_flight, self.encoded.token_at);
        self.exchange = send(&self.connection, in_flight, &self.method, params, token_at);
    }
}

fn send(
    connection: &UpstreamConnection,
    in_flight: &InFlightGuard,
    method: &Text,
    params: &str,
    token_at: Option<usize>,
) -> Exchange {
    let (id, method) = (in_flight.request.id(), method.to_string().into());
    __seam::forward(&connection.client, ForwardRequest { id, method, params, token_at })
}

/// A result of a modern server that requires input.
#[derive(Deserialize)]
struct InputRequired {
    #[serde(rename = "inputRequests")]
    questions: Option<Named<InputRequest>>,
    /// The JSON text of a string, as it came.
    #[serde(rename = "requestState")]
    state: Option<Raw>,
}

#[derive(Deserialize)]
struct InputRequest {
    method: String,
    params: Option<Raw>,
}

impl InputRequired {
    /// Reads a result; `None` if it requires no input.
    fn read(method: &str, result: &Raw) -> Result<Option<InputRequired>, RpcError> {
        let kind: Option<ResultType> = json::decode_member(result.as_str(), "resultType");
        if kind != Some(ResultType::InputRequired) {
            return Ok(None);
        }
        let invalid = |why: &dyn std::fmt::Display| {
            RpcError::internal(format!(
                "the server behind this gateway requires input for `{method}` in an invalid way: \
                 {why}"
            ))
        };
        let input: InputRequired = result.decode().map_err(|error| invalid(&error))?;
        // 2026-07-28 basic/patterns/mrtr §Server Requirements: at least one of them.
        if input.questions.is_none() && input.state.is_none() {
            return Err(invalid(&"it has neither `inputRequests` nor `requestState`"));
        }
        if input.state.as_ref().is_some_and(|state| !state.as_str().starts_with('"')) {
            return Err(invalid(&"`requestState` is no string"));
        }
        Ok(Some(input))
    }
}

/// Waits for all answers, and returns them as an object by their keys. The first error fails all;
/// dropping the future withdraws all questions.
async fn await_answers(mut questions: Vec<(String, Exchange)>) -> Result<String, RpcError> {
    let mut answers: Vec<Option<Raw>> = vec![None; questions.len()];
    poll_fn(|context| {
        let mut is_waiting = false;
        for ((_, exchange), answer) in questions.iter_mut().zip(&mut answers) {
            while answer.is_none() {
                match exchange.poll_event(context) {
                    Poll::Pending => {
                        is_waiting = true;
                        break;
                    }
                    Poll::Ready(ExchangeEvent::Note(_)) => {}
                    Poll::Ready(ExchangeEvent::Done(Ok(result))) => *answer = Some(result),
                    Poll::Ready(ExchangeEvent::Done(Err(error))) => return Poll::Ready(Err(error)),
                }
            }
        }
        if is_waiting { Poll::Pending } else { Poll::Ready(Ok(())) }
    })
    .await
    .map_err(unanswered)?;
    let members = questions.iter().zip(answers).filter_map(|((key, _), answer)| {
        let (key, answer) = (json::quote(key), answer?);
        Some(format!("{key}:{answer}"))
    });
    Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
}

/// Returns the result that ends a listen stream in good order.
pub(crate) fn listen_result(caller: &Caller) -> Raw {
    let mut result = ListenResult::new();
    result.meta.set_subscription_id(caller.request_id().clone());
    Raw::at(&result, caller.revision())
}

/// Returns the error of a listen stream that has dropped notifications.
pub(crate) fn changes_lost() -> RpcError {
    RpcError::internal(
        "this stream fell behind, and some changes are lost; listen again and read everything again",
    )
}

/// Returns whether a notification has this method.
pub(crate) fn is(note: &Note, method: Method) -> bool {
    &*note.method == method.as_str()
}

/// Returns the level of a log message.
pub(crate) fn log_level(note: &Note) -> Option<LogLevel> {
    json::decode_member(note.params.text(), "level")
}
