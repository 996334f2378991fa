//! Owns making a call: its exchanges, the loop of its rounds, and the decoding of its result. Does
//! not own how it is abandoned: dropping its exchange does that.

use std::{ops::ControlFlow, sync::Arc};

use tokio::time::Instant;
use turnbuckle_types::{Meta, Method, Questions, Raw, Revision};

use super::{
    super::{
        answer::Clocks,
        capability,
        clock::Deadlines,
        input::{self, Asked},
        link::Link,
        supervise::{Retry, Twice, may_repeat},
    },
    Call, Params, Running, Told,
    running::Since,
};
use crate::{
    dispatch::{Event, Exchange, Note, Outgoing},
    envelope::stamp::WantsProgress,
    error::{Error, Executed, Result},
};

#[cfg(feature = "http")]
use super::super::link::Carried;

impl<T> Call<T> {
    /// Puts it in flight on this connection; whoever has it sees to the rest.
    pub(crate) fn open(mut self, link: Arc<Link>) -> Result<Running> {
        self.is_allowed(&link)?;
        let (params, _) = self.params.take(link.revision())?;
        let exchange = self.exchange(&link, &params, self.wants_progress());
        Ok(self.running(link, exchange))
    }

    fn wants_progress(&self) -> WantsProgress {
        let wants =
            self.on_progress.is_some() || self.outlet.is_some() || self.timeouts.idle.is_some();
        if wants { WantsProgress::Yes } else { WantsProgress::No }
    }

    /// One exchange for this call. Nothing is sent before it is polled.
    fn exchange(&self, link: &Link, params: &str, progress: WantsProgress) -> Exchange {
        let logged = self.logged(link);
        let stamped = link.stamp.apply(params, logged.as_ref().unwrap_or(&self.meta), progress);
        link.transport.open(Outgoing {
            token_at: stamped.token_at,
            id: self.id.clone(),
            abandon: self.abandon,
            #[cfg(feature = "http")]
            mirror: self.mirror(link, params),
            #[cfg(feature = "http")]
            mark: self.clock.clone().map(|clock| clock as crate::dispatch::Mark),
            ..Outgoing::new(self.method.clone(), stamped.params)
        })
    }

    /// The `_meta` that asks for what the server logs, where that is asked with each request.
    fn logged(&self, link: &Link) -> Option<Meta> {
        let level = self.log_level.or_else(|| self.client.log_level.of_now())?;
        // 2026-07-28 server/utilities/logging §Per-request log level: never on a listen stream.
        let lasts = |method: Method| method.row().long_lived;
        let once = Method::SetLevel.sent_by_client(link.revision());
        if once || self.known.is_some_and(lasts) {
            return None;
        }
        // What was written by hand goes before.
        let mut meta = self.meta.clone();
        if meta.value(Meta::LOG_LEVEL).is_none() {
            meta.set_log_level(level);
        }
        Some(meta)
    }

    #[cfg(feature = "http")]
    fn mirror(&self, link: &Link, params: &str) -> crate::dispatch::Mirror {
        let tool = self.about.tool.as_deref();
        let repeated = link.repeated.as_ref().zip(tool);
        crate::dispatch::Mirror {
            revision: Some(link.revision()),
            name: self.about.tool.clone(),
            named_by: self.about.named_by,
            params: repeated.map(|(all, tool)| all.headers(tool, params)).unwrap_or_default(),
            extra: self.about.headers.clone(),
        }
    }

    fn running(&mut self, link: Arc<Link>, exchange: Exchange) -> Running {
        let now = Instant::now();
        let clock = self.clock.clone();
        let paused = Clocks { all: &link.answering, own: clock.as_deref() }.paused(now);
        Running {
            client: self.client.clone(),
            link,
            method: self.method.clone(),
            exchange,
            deadlines: Deadlines::new(self.timeouts, now, paused),
            on_progress: self.on_progress.take(),
            outlet: self.outlet.clone(),
            why: self.why.clone(),
            answer_time: self.answer_timeout,
            clock,
        }
    }

    /// Refuses what the server did not say it can do, before anything is sent.
    fn is_allowed(&self, link: &Link) -> Result<()> {
        match (self.needs, &link.server.capabilities) {
            (Some(method), Some(declared)) if !self.client.settings().ignores_capabilities => {
                capability::check(method, declared, link.revision())
            }
            _ => Ok(()),
        }
    }

    /// Refuses answers that were asked for by a server that is spoken to in another era by now.
    fn is_heard(&self, link: &Link, again: Option<&String>) -> Result<()> {
        if again.is_none() || hears_answers(link) {
            return Ok(());
        }
        let why = "the connection was made anew, in a revision that has no such answers";
        let message =
            format!("what the server asked before {} is not answered: {why}", self.method);
        Err(Error::refused(message).with_executed(Executed::Maybe))
    }

    /// What is known that a result may be held against.
    fn told<'a>(&'a self, link: &'a Link) -> Told<'a> {
        Told { link, tool: self.tool.as_deref().zip(self.validate_output) }
    }

    /// Reads what somebody else answers to this call, as the server's answer would be read.
    pub(crate) fn reader(&self) -> impl FnOnce(Raw) -> Result<T> + use<T> {
        let (client, decode) = (self.client.clone(), self.decode.clone());
        let (tool, validate) = (self.tool.clone(), self.validate_output);
        move |raw| {
            let link = client.link();
            decode.decode(&Told { link: &link, tool: tool.as_deref().zip(validate) }, &raw)
        }
    }

    /// Asks the server. Whoever makes the call has counted it.
    pub(crate) async fn wire(mut self) -> Result<Answer<T>> {
        self.made().await.map_err(Error::of_call)
    }

    /// Makes a call that has passed whatever stands around it.
    pub(super) async fn unlayered(self) -> Result<T>
    where
        T: 'static,
    {
        match self.kept {
            Some(kept) => Ok(self.run_kept(kept).await?.0),
            None => self.wire().await.map(|answer| answer.value),
        }
    }

    /// Can be called once. Whatever is rare waits in room of its own, so that most calls need little.
    pub(super) async fn made(&mut self) -> Result<Answer<T>> {
        let link = self.client.link();
        if let Some(done) = self.here.as_ref().and_then(|here| here(&self.client, &link)) {
            return Ok(Answer::by_us(done, &link));
        }
        self.is_allowed(&link)?;
        let mut said = Saying::new(self.params.take(link.revision())?);
        #[cfg(feature = "http")]
        if self.clock.is_none() && link.tells_whose_questions() {
            self.clock = Some(Arc::default());
        }
        let progress = self.wants_progress();
        let exchange = self.exchange(&link, said.now(), progress);
        let mut running = self.running(link, exchange);
        if self.client.supervisor.is_down() && self.waits() {
            Box::pin(self.begins(&mut running, &mut said)).await?;
            running.exchange = self.exchange(&running.link, said.now(), progress);
        }
        self.is_heard(&running.link, said.again.as_ref())?;
        loop {
            let event = running.next().await?;
            // What was said is gone before anything is waited for: it needs no room meanwhile.
            let step = match self.heard(&mut running, &mut said, event)? {
                ControlFlow::Break(answer) => return Ok(answer),
                ControlFlow::Continue(step) => step,
            };
            match step {
                Step::Listen => {}
                Step::Tell(note) => Box::pin(running.told(note)).await,
                #[cfg(feature = "http")]
                Step::Learn(error) => {
                    said.settled = true;
                    Box::pin(self.learns(&mut running, said.now(), error)).await?;
                    running.exchange = self.exchange(&running.link, said.now(), progress);
                }
                Step::Move(error) => {
                    Box::pin(self.goes_on(&mut running, &mut said, error)).await?;
                    running.exchange = self.exchange(&running.link, said.now(), progress);
                }
                Step::Answer(asked) => {
                    running.sign();
                    let (asked, result) = *asked;
                    if let Some(hand_on) = self.hand_on {
                        let link = running.link.clone();
                        let handed = hand_on(self.handed_back(running), asked, said.first);
                        return Ok(Answer { raw: result, ..Answer::by_us(handed, &link) });
                    }
                    drop(result);
                    said.again = Some(Box::pin(running.answered(asked, &said.first)).await?);
                    said.rounds += 1;
                    // 2026-07-28 basic/patterns/mrtr §Client Requirements: a request of its own.
                    self.id = None;
                    running.exchange = self.exchange(&running.link, said.now(), progress);
                    #[cfg(feature = "http")]
                    (said.settled = false);
                }
            }
            // A server that reports without end must not keep this task from anything else.
            tokio::task::consume_budget().await;
        }
    }

    /// What comes of what the server said: the answer, or what the call does next.
    fn heard(
        &self,
        running: &mut Running,
        said: &mut Saying,
        event: Event,
    ) -> Result<ControlFlow<Answer<T>, Step>> {
        let step = match event {
            Event::Note(note) => {
                #[cfg(feature = "http")]
                (said.settled = true);
                if running.outlet.is_some() {
                    Step::Tell(Box::new(note))
                } else {
                    running.progress(&note);
                    Step::Listen
                }
            }
            #[cfg(feature = "http")]
            Event::Done(Err(error))
                if !said.settled && self.lacks_headers(&running.link, &error) =>
            {
                Step::Learn(error)
            }
            Event::Done(Err(error)) if self.is_repeated(&running.link, &error) => Step::Move(error),
            Event::Done(result) => {
                let result = self.ended(&running.link, said, result)?;
                match self.decode.decode(&self.told(&running.link), &result) {
                    Ok(value) => {
                        let answer = Answer::new(value, result, said.rounds, &running.link);
                        return Ok(ControlFlow::Break(answer));
                    }
                    Err(error) => match self.asked(&running.link, &result, said.rounds)? {
                        Some(asked) => Step::Answer(Box::new((asked, result))),
                        None => return Err(error),
                    },
                }
            }
        };
        Ok(ControlFlow::Continue(step))
    }

    /// What the server said in the end, unless that is an error.
    fn ended(&self, link: &Link, said: &Saying, result: Result<Raw>) -> Result<Raw> {
        if !matches!(&result, Err(error) if error.is_closed()) {
            link.is_answered();
        }
        #[cfg(feature = "http")]
        if let Err(error) = &result {
            link.reconsider(error);
        }
        let result = result.map_err(|error| in_round(said.rounds, error))?;
        self.client.supervisor.granted(&self.method, said.now());
        Ok(result)
    }

    /// Waits for the connection that it begins on.
    async fn begins(&mut self, running: &mut Running, said: &mut Saying) -> Result<()> {
        if let Some(text) = self.moved(running, Since::Begin).await? {
            said.first = text;
        }
        Ok(())
    }

    /// Goes on after its connection was lost, as the error says.
    async fn goes_on(
        &mut self,
        running: &mut Running,
        said: &mut Saying,
        error: Error,
    ) -> Result<()> {
        let error = in_round(said.rounds, error);
        running.sign();
        let text = self.moved(running, Since::Lost(&error)).await?;
        // Answers were given in the words of before, and to a call that has begun.
        if said.again.is_some() && (text.is_some() || !hears_answers(&running.link)) {
            return Err(error);
        }
        if let Some(text) = text {
            said.first = text;
        }
        Ok(())
    }

    /// 2026-07-28 transports/streamable-http §Client Behavior: the tool may have changed since it was
    /// listed, or was never listed. Lists anew; the error stays if the headers are the same after that.
    #[cfg(feature = "http")]
    async fn learns(&mut self, running: &mut Running, params: &str, error: Error) -> Result<()> {
        running.sign();
        let before = self.mirror(&running.link, params).params;
        match running.relist().await {
            Ok(()) => {}
            // The time that ran out is this call's.
            Err(error) if running.has_run_out() => return Err(error),
            Err(error) => tracing::debug!(%error, "the tools were not listed again"),
        }
        if self.mirror(&running.link, params).params == before {
            return Err(error);
        }
        Ok(())
    }

    /// Goes over to the connection that follows: what is said there, if that is something else.
    async fn moved(&mut self, running: &mut Running, since: Since<'_>) -> Result<Option<String>> {
        if since.may_have_run() {
            // Once may be harmless; often is a call that its server does not survive.
            self.twice = Twice::Unknown;
        }
        let before = running.link.revision();
        running.reconnected(since).await?;
        // What was listed on another connection promises nothing on this one.
        self.tool = None;
        self.is_allowed(&running.link)?;
        self.retold(before, running.link.revision()).transpose()
    }

    /// The call, with what is left of its time, once it has been asked something.
    fn handed_back(&self, mut running: Running) -> Call<T> {
        let mut call = self.again();
        call.timeouts.total = running.total_left();
        call.on_progress = running.on_progress.take();
        // The stream of this round ends with it; the next one may have its own.
        call.outlet = None;
        call
    }

    /// Whether this call is made again on the connection that follows.
    fn is_repeated(&self, link: &Link, error: &Error) -> bool {
        // A server that was never there is not looked for: the address may be wrong.
        may_repeat(self.retry, self.twice, error)
            && link.has_answered()
            && self.client.supervisor.recovers()
    }

    /// Whether this call waits for a connection before it is made. One that does not has others
    /// look for it.
    fn waits(&self) -> bool {
        let supervisor = &self.client.supervisor;
        if self.retry == Retry::Never {
            supervisor.look_again();
            return false;
        }
        supervisor.recovers()
    }

    /// What this call says now that the revision is another one; `None` if that is the same.
    fn retold(&self, before: Revision, now: Revision) -> Option<Result<String>> {
        match &self.params {
            Params::At(text) if before != now => Some(text(now)),
            _ => None,
        }
    }

    /// What the server wants to know first, after so many rounds; `None` if that is nothing.
    fn asked(&self, link: &Link, result: &Raw, rounds: usize) -> Result<Option<Asked>> {
        let Some(most) = self.rounds.filter(|_| hears_answers(link)) else { return Ok(None) };
        let asked = input::asked(&self.method, result)?;
        if asked.is_some() && rounds >= most {
            return Err(input::too_many(&self.method, most, result));
        }
        Ok(asked)
    }

    /// Whether a call was refused for the headers of its arguments.
    #[cfg(feature = "http")]
    fn lacks_headers(&self, link: &Link, error: &Error) -> bool {
        let mismatch = turnbuckle_types::code::HEADER_MISMATCH;
        self.about.tool.is_some()
            && link.repeated.is_some()
            && error.status() == Some(400)
            && error.as_rpc().is_some_and(|rpc| rpc.code == mismatch)
    }
}

#[cfg(feature = "http")]
impl Link {
    /// Whether a question comes on the stream of the call that it is asked for.
    fn tells_whose_questions(&self) -> bool {
        self.carried == Carried::ByHttp && self.revision().questions() != Questions::InResults
    }

    /// Forgets what was remembered of a server that does not act accordingly, so that the next
    /// connection asks again.
    fn reconsider(&self, error: &Error) {
        let Some(key) = &self.remembered else { return };
        let unsupported = turnbuckle_types::code::UNSUPPORTED_VERSION;
        let stale = match error.as_rpc() {
            Some(rpc) => rpc.code == unsupported,
            None => matches!(error.status(), Some(400 | 404 | 405)),
        };
        if stale {
            super::super::prior::forget(key);
        }
    }
}

/// What a call that has not ended does next.
enum Step {
    Listen,
    /// Hands on what was said of it.
    Tell(Box<Note>),
    #[cfg(feature = "http")]
    Learn(Error),
    Move(Error),
    /// Has what the server asks answered, which is in the result beside it.
    Answer(Box<(Asked, Raw)>),
}

/// What a call says, round by round.
struct Saying {
    first: String,
    /// The same, with the answers of the round before.
    again: Option<String>,
    /// How often the server has asked.
    rounds: usize,
    /// Whether the call may have begun to run, or was made again already.
    #[cfg(feature = "http")]
    settled: bool,
}

impl Saying {
    fn new((first, again): (String, Option<String>)) -> Saying {
        Saying {
            first,
            again,
            rounds: 0,
            #[cfg(feature = "http")]
            settled: false,
        }
    }

    fn now(&self) -> &str {
        self.again.as_ref().unwrap_or(&self.first)
    }
}

/// What a server answered.
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) raw: Raw,
    /// How often it asked before that.
    pub(crate) rounds: usize,
    /// Of the connection that it came on.
    pub(crate) revision: Revision,
    pub(crate) generation: u64,
}

impl<T> Answer<T> {
    fn new(value: T, raw: Raw, rounds: usize, link: &Link) -> Answer<T> {
        Answer { value, raw, rounds, revision: link.revision(), generation: link.generation }
    }

    /// What this side made itself: nothing of it is the server's word on the request alone.
    fn by_us(value: T, link: &Link) -> Answer<T> {
        Answer::new(value, Raw::null(), 1, link)
    }
}

/// Whether a server in this revision takes answers with the next request.
fn hears_answers(link: &Link) -> bool {
    link.revision().questions() == Questions::InResults
}

/// Of a call that was answered with questions, something has run.
fn in_round(rounds: usize, error: Error) -> Error {
    if rounds > 0 && !error.maybe_executed() {
        return error.with_executed(Executed::Maybe);
    }
    error
}
