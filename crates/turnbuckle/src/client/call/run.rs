//! Sends a call: its exchanges, the loop of its rounds, and the decoding of its result. Dropping the
//! exchange cancels the request.

use std::{ops::ControlFlow, sync::Arc};

use super::{Call, CallRequest, DecodeContext, InFlightCall, Params, running::Since};
use crate::{
    client::{
        call::{
            deadlines::Deadlines,
            input::{
                ServerInputRequest, {self},
            },
        },
        connection::{Retry, Twice, handle::ClientConnection, may_repeat},
        handlers::answer::Clocks,
        handshake::capabilities,
    },
    error::{Error, Executed, Result},
    protocol::stamp::WantsProgress,
    rpc::{Exchange, ExchangeEvent, Note, Outgoing},
};
use tokio::time::Instant;
use turnbuckle_types::{Meta, Method, Questions, Raw, Revision};

#[cfg(feature = "http")]
use crate::client::connection::handle::Carried;

impl<T> Call<T> {
    /// Opens the call on this connection without waiting for its result.
    pub(crate) fn open(mut self, link: Arc<ClientConnection>) -> Result<InFlightCall> {
        let request = &mut self.request;
        request.check_capability(&link)?;
        let (params, _) = request.params.take(link.revision())?;
        let exchange = request.exchange(&link, &params, request.wants_progress());
        Ok(request.running(link, exchange))
    }

    /// Returns a function that decodes a middleware's response to this call.
    pub(crate) fn reader(&self) -> impl FnOnce(Raw) -> Result<T> + use<T> {
        let (client, decode) = (self.request.client.clone(), self.decode.clone());
        let (tool, validate) = (self.request.tool.clone(), self.request.validate_output);
        move |raw| {
            let link = client.link();
            decode.decode(&DecodeContext { link: &link, tool: tool.as_deref().zip(validate) }, &raw)
        }
    }

    /// Sends the request; must be called once. The caller counts the call as in flight.
    pub(crate) async fn send(&mut self) -> Result<CallResponse<T>> {
        self.send_once().await.map_err(Error::of_call)
    }

    /// Runs the call below the middleware.
    pub(super) async fn send_unlayered(mut self) -> Result<T>
    where
        T: 'static,
    {
        match self.cached {
            Some(cached) => Ok(self.send_cached(cached).await?.0),
            None => self.send().await.map(|response| response.value),
        }
    }

    /// Sends the request; must be called once. Rare steps are boxed, which keeps the future of
    /// a usual call small.
    pub(super) async fn send_once(&mut self) -> Result<CallResponse<T>> {
        let request = &mut self.request;
        let link = request.client.link();
        if let Some(done) = self.local.as_ref().and_then(|local| local(&request.client, &link)) {
            return Ok(CallResponse::local(done, &link));
        }
        request.check_capability(&link)?;
        let mut rounds = Rounds::new(request.params.take(link.revision())?);
        #[cfg(feature = "http")]
        if request.clock.is_none() && link.asks_on_call_streams() {
            request.clock = Some(Arc::default());
        }
        let progress = request.wants_progress();
        let exchange = request.exchange(&link, rounds.params(), progress);
        let mut running = request.running(link, exchange);
        if request.client.supervisor.is_down() && request.waits_for_connection() {
            Box::pin(request.await_connection(&mut running, &mut rounds)).await?;
            running.exchange = request.exchange(&running.link, rounds.params(), progress);
        }
        request.check_answers_allowed(&running.link, rounds.again.as_ref())?;
        loop {
            let event = running.next().await?;
            // The event is dropped before the next await, so that the future does not store it.
            let step = match self.handle_event(&mut running, &mut rounds, event)? {
                ControlFlow::Break(response) => return Ok(response),
                ControlFlow::Continue(step) => step,
            };
            let request = &mut self.request;
            match step {
                CallStep::Continue => {}
                CallStep::Forward(note) => Box::pin(running.forward(note)).await,
                #[cfg(feature = "http")]
                CallStep::Relist(error) => {
                    rounds.settled = true;
                    Box::pin(request.relist_tools(&mut running, rounds.params(), error)).await?;
                    running.exchange = request.exchange(&running.link, rounds.params(), progress);
                }
                CallStep::Reconnect(error) => {
                    Box::pin(request.resume(&mut running, &mut rounds, error)).await?;
                    running.exchange = request.exchange(&running.link, rounds.params(), progress);
                }
                CallStep::Answer(asked) => {
                    running.sign();
                    let (asked, result) = *asked;
                    if let Some(hand_on) = self.hand_on {
                        let link = running.link.clone();
                        let round = hand_on(self.next_round(running), asked, rounds.first);
                        return Ok(CallResponse {
                            raw: result,
                            ..CallResponse::local(round, &link)
                        });
                    }
                    drop(result);
                    rounds.again = Some(Box::pin(running.answer(asked, &rounds.first)).await?);
                    rounds.count += 1;
                    // 2026-07-28 basic/patterns/mrtr §Client Requirements: a request of its own.
                    request.id = None;
                    running.exchange = request.exchange(&running.link, rounds.params(), progress);
                    #[cfg(feature = "http")]
                    (rounds.settled = false);
                }
            }
            // A server that never stops sending notifications must not block this task.
            tokio::task::consume_budget().await;
        }
    }

    /// Returns the response, or the next step of the call.
    fn handle_event(
        &self,
        running: &mut InFlightCall,
        rounds: &mut Rounds,
        event: ExchangeEvent,
    ) -> Result<ControlFlow<CallResponse<T>, CallStep>> {
        let request = &self.request;
        let step = match event {
            ExchangeEvent::Note(note) => {
                #[cfg(feature = "http")]
                (rounds.settled = true);
                if running.notes.is_some() {
                    CallStep::Forward(Box::new(note))
                } else {
                    running.report_progress(&note);
                    CallStep::Continue
                }
            }
            #[cfg(feature = "http")]
            ExchangeEvent::Done(Err(error))
                if !rounds.settled && request.lacks_headers(&running.link, &error) =>
            {
                CallStep::Relist(error)
            }
            ExchangeEvent::Done(Err(error)) if request.may_retry(&running.link, &error) => {
                CallStep::Reconnect(error)
            }
            ExchangeEvent::Done(result) => {
                let result = request.final_result(&running.link, rounds, result)?;
                match self.decode.decode(&request.decode_context(&running.link), &result) {
                    Ok(value) => {
                        let link = &running.link;
                        let response = CallResponse::new(value, result, rounds.count, link);
                        return Ok(ControlFlow::Break(response));
                    }
                    Err(error) => match request.questions(&running.link, &result, rounds.count)? {
                        Some(asked) => CallStep::Answer(Box::new((asked, result))),
                        None => return Err(error),
                    },
                }
            }
        };
        Ok(ControlFlow::Continue(step))
    }

    /// Returns the call of the next round, with the rest of the time.
    fn next_round(&self, mut running: InFlightCall) -> Call<T> {
        let mut call = self.duplicate();
        call.request.timeouts.total = running.total_left();
        call.request.on_progress = running.on_progress.take();
        // The stream of this round ends with it; the next one may have its own.
        call.request.notes = None;
        call
    }
}

impl CallRequest {
    fn wants_progress(&self) -> WantsProgress {
        let wants =
            self.on_progress.is_some() || self.notes.is_some() || self.timeouts.idle.is_some();
        if wants { WantsProgress::Yes } else { WantsProgress::No }
    }

    /// Opens one exchange for this call. Nothing is sent before it is polled.
    fn exchange(&self, link: &ClientConnection, params: &str, progress: WantsProgress) -> Exchange {
        let logged = self.meta_with_log_level(link);
        let stamped = link.stamp.apply(params, logged.as_ref().unwrap_or(&self.meta), progress);
        link.transport.open(Outgoing {
            token_at: stamped.token_at,
            id: self.id.clone(),
            abandon: self.abandon,
            #[cfg(feature = "http")]
            mirror: self.mirror(link, params),
            #[cfg(feature = "http")]
            mark: self.clock.clone().map(|clock| clock as crate::rpc::Mark),
            ..Outgoing::new(self.method.clone(), stamped.params)
        })
    }

    /// Returns the `_meta` with the log level, in revisions that send it with each request.
    fn meta_with_log_level(&self, link: &ClientConnection) -> Option<Meta> {
        let level = self.log_level.or_else(|| self.client.log_level.get())?;
        // 2026-07-28 server/utilities/logging §Per-request log level: never on a listen stream.
        let lasts = |method: Method| method.row().long_lived;
        let once = Method::SetLevel.sent_by_client(link.revision());
        if once || self.known.is_some_and(lasts) {
            return None;
        }
        // The caller's own value takes precedence.
        let mut meta = self.meta.clone();
        if meta.value(Meta::LOG_LEVEL).is_none() {
            meta.set_log_level(level);
        }
        Some(meta)
    }

    #[cfg(feature = "http")]
    fn mirror(&self, link: &ClientConnection, params: &str) -> crate::rpc::Mirror {
        let tool = self.about.tool.as_deref();
        let repeated = link.repeated.as_ref().zip(tool);
        crate::rpc::Mirror {
            revision: Some(link.revision()),
            name: self.about.tool.clone(),
            named_by: self.about.named_by,
            params: repeated.map(|(all, tool)| all.headers(tool, params)).unwrap_or_default(),
            extra: self.about.headers.clone(),
        }
    }

    fn running(&mut self, link: Arc<ClientConnection>, exchange: Exchange) -> InFlightCall {
        let now = Instant::now();
        let clock = self.clock.clone();
        let paused = Clocks { all: &link.answering, own: clock.as_deref() }.paused(now);
        InFlightCall {
            client: self.client.clone(),
            link,
            method: self.method.clone(),
            exchange,
            deadlines: Deadlines::new(self.timeouts, now, paused),
            on_progress: self.on_progress.take(),
            notes: self.notes.clone(),
            cancel_reason: self.cancel_reason.clone(),
            answer_time: self.answer_timeout,
            clock,
        }
    }

    /// Refuses the call if the server did not declare the capability.
    fn check_capability(&self, link: &ClientConnection) -> Result<()> {
        match (self.needs, &link.server.capabilities) {
            (Some(method), Some(declared)) if !self.client.settings().ignores_capabilities => {
                capabilities::check(method, declared, link.revision())
            }
            _ => Ok(()),
        }
    }

    /// Refuses to send answers on a connection whose revision has none.
    fn check_answers_allowed(&self, link: &ClientConnection, again: Option<&String>) -> Result<()> {
        if again.is_none() || accepts_answers(link) {
            return Ok(());
        }
        let message = format!(
            "the answers to the server's questions before {} can't be sent: the client has \
             reconnected in revision {}, which has no such answers",
            self.method,
            link.revision()
        );
        Err(Error::refused(message).with_executed(Executed::Maybe))
    }

    fn decode_context<'a>(&'a self, link: &'a ClientConnection) -> DecodeContext<'a> {
        DecodeContext { link, tool: self.tool.as_deref().zip(self.validate_output) }
    }

    /// Takes note of the end of an exchange and returns its result.
    fn final_result(
        &self,
        link: &ClientConnection,
        rounds: &Rounds,
        result: Result<Raw>,
    ) -> Result<Raw> {
        if !matches!(&result, Err(error) if error.is_closed()) {
            link.is_answered();
        }
        #[cfg(feature = "http")]
        if let Err(error) = &result {
            link.reconsider(error);
        }
        let result = result.map_err(|error| in_round(rounds.count, error))?;
        self.client.supervisor.granted(&self.method, rounds.params());
        Ok(result)
    }

    /// Waits for a connection before the first request is sent.
    async fn await_connection(
        &mut self,
        running: &mut InFlightCall,
        rounds: &mut Rounds,
    ) -> Result<()> {
        if let Some(text) = self.switch_connection(running, Since::Begin).await? {
            rounds.first = text;
        }
        Ok(())
    }

    /// Resumes on the next connection after `error` has ended this one.
    async fn resume(
        &mut self,
        running: &mut InFlightCall,
        rounds: &mut Rounds,
        error: Error,
    ) -> Result<()> {
        let error = in_round(rounds.count, error);
        running.sign();
        let text = self.switch_connection(running, Since::Lost(&error)).await?;
        // The answers were encoded for the revision before, and for a call that has begun.
        if rounds.again.is_some() && (text.is_some() || !accepts_answers(&running.link)) {
            return Err(error);
        }
        if let Some(text) = text {
            rounds.first = text;
        }
        Ok(())
    }

    /// 2026-07-28 transports/streamable-http §Client Behavior: the tool may have changed since it was
    /// listed, or was never listed. Lists the tools again; fails with the same error if the headers stay
    /// the same.
    #[cfg(feature = "http")]
    async fn relist_tools(
        &mut self,
        running: &mut InFlightCall,
        params: &str,
        error: Error,
    ) -> Result<()> {
        running.sign();
        let before = self.mirror(&running.link, params).params;
        match running.relist().await {
            Ok(()) => {}
            // This call has timed out.
            Err(error) if running.expired().is_some() => return Err(error),
            Err(error) => tracing::debug!(%error, "listing the tools again failed"),
        }
        if self.mirror(&running.link, params).params == before {
            return Err(error);
        }
        Ok(())
    }

    /// Switches to the next connection. Returns the params for it if they differ.
    async fn switch_connection(
        &mut self,
        running: &mut InFlightCall,
        since: Since<'_>,
    ) -> Result<Option<String>> {
        if since.may_have_run() {
            // A second retry could be of a call that crashes the server.
            self.twice = Twice::Unknown;
        }
        let before = running.link.revision();
        running.reconnect(since).await?;
        // A listing counts for the connection that it was read on.
        self.tool = None;
        self.check_capability(&running.link)?;
        let now = running.link.revision();
        match &self.params {
            Params::At(text) if before != now => text(now).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns `true` if the call is retried on the next connection.
    fn may_retry(&self, link: &ClientConnection, error: &Error) -> bool {
        // No retry for a server that has never answered: its address may be wrong.
        may_repeat(self.retry, self.twice, error)
            && link.has_answered()
            && self.client.supervisor.recovers()
    }

    /// Returns `true` if the call waits for a connection. Otherwise the client still tries to
    /// reconnect, for later calls.
    fn waits_for_connection(&self) -> bool {
        let supervisor = &self.client.supervisor;
        if self.retry == Retry::Never {
            supervisor.look_again();
            return false;
        }
        supervisor.recovers()
    }

    /// Returns the questions that the server asks in its result, after so many rounds.
    fn questions(
        &self,
        link: &ClientConnection,
        result: &Raw,
        rounds: usize,
    ) -> Result<Option<ServerInputRequest>> {
        let Some(most) = self.rounds.filter(|_| accepts_answers(link)) else { return Ok(None) };
        let asked = input::asked(&self.method, result)?;
        if asked.is_some() && rounds >= most {
            return Err(input::too_many(&self.method, most, result));
        }
        Ok(asked)
    }

    /// Returns `true` if the server refused the call because of its argument headers.
    #[cfg(feature = "http")]
    fn lacks_headers(&self, link: &ClientConnection, error: &Error) -> bool {
        let mismatch = turnbuckle_types::code::HEADER_MISMATCH;
        self.about.tool.is_some()
            && link.repeated.is_some()
            && error.status() == Some(400)
            && error.as_rpc().is_some_and(|rpc| rpc.code == mismatch)
    }
}

#[cfg(feature = "http")]
impl ClientConnection {
    /// Returns `true` if the server asks a question on the stream of the call that it belongs to.
    fn asks_on_call_streams(&self) -> bool {
        self.carried == Carried::ByHttp && self.revision().questions() != Questions::InResults
    }

    /// Forgets the discovery result of a server that contradicts it, so that the next connection
    /// asks again.
    fn reconsider(&self, error: &Error) {
        let Some(key) = &self.remembered else { return };
        let unsupported = turnbuckle_types::code::UNSUPPORTED_VERSION;
        let stale = match error.as_rpc() {
            Some(rpc) => rpc.code == unsupported,
            None => matches!(error.status(), Some(400 | 404 | 405)),
        };
        if stale {
            crate::client::handshake::discovery::DISCOVERED.forget(key);
        }
    }
}

/// The next step of a call that has not ended.
enum CallStep {
    Continue,
    /// Forwards a notification to the stream of events.
    Forward(Box<Note>),
    /// Lists the tools again, for their argument headers.
    #[cfg(feature = "http")]
    Relist(Error),
    Reconnect(Error),
    /// Answers the questions, which came in this result.
    Answer(Box<(ServerInputRequest, Raw)>),
}

/// The params of a call, round by round.
struct Rounds {
    first: String,
    /// The same, with the answers to the last round's questions.
    again: Option<String>,
    /// How often the server has asked.
    count: usize,
    /// Whether the call may have begun to run, or was sent twice already.
    #[cfg(feature = "http")]
    settled: bool,
}

impl Rounds {
    fn new((first, again): (String, Option<String>)) -> Rounds {
        Rounds {
            first,
            again,
            count: 0,
            #[cfg(feature = "http")]
            settled: false,
        }
    }

    /// Returns the params of the next request.
    fn params(&self) -> &str {
        self.again.as_ref().unwrap_or(&self.first)
    }
}

/// A decoded result, its text, and how it came.
pub(crate) struct CallResponse<T> {
    pub(crate) value: T,
    pub(crate) raw: Raw,
    /// How often the server asked before.
    pub(crate) rounds: usize,
    /// The revision and the number of the connection.
    pub(crate) revision: Revision,
    pub(crate) generation: u64,
}

impl<T> CallResponse<T> {
    fn new(value: T, raw: Raw, rounds: usize, link: &ClientConnection) -> CallResponse<T> {
        CallResponse { value, raw, rounds, revision: link.revision(), generation: link.generation }
    }

    /// A value that this client made, which is never cached.
    fn local(value: T, link: &ClientConnection) -> CallResponse<T> {
        CallResponse::new(value, Raw::null(), 1, link)
    }
}

/// Returns `true` if the revision sends answers with the next request.
fn accepts_answers(link: &ClientConnection) -> bool {
    link.revision().questions() == Questions::InResults
}

/// Marks the error of a later round: the server has run a part of the call.
fn in_round(rounds: usize, error: Error) -> Error {
    if rounds > 0 && !error.maybe_executed() {
        return error.with_executed(Executed::Maybe);
    }
    error
}
