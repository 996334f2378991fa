//! Owns a call that has not been made yet: what it says and its options.
//! Does not own making it: `run` does.

mod decode;
mod events;
mod manual;
mod run;
mod running;
mod why;

use std::{
    borrow::Cow,
    future::IntoFuture,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use turnbuckle_types::{LogLevel, Meta, Method, Progress, Raw, RequestId, Revision};

use super::{
    CacheMode, Inner,
    answer::Answering,
    cache::{Cacheable, Kept},
    input,
    known::KnownTool,
    link::Link,
    supervise::{Retry, Twice},
};
use crate::{
    dispatch::Abandon,
    error::{Error, ErrorKind, Result},
};

use decode::Decode;
pub(super) use decode::{DecodeBy, Told};
use events::Outlet;
pub use events::{CallEvent, CallEvents};
use manual::HandOn;
pub use manual::{InputAnswer, Questions, Round, ServerQuestion};
pub(super) use run::Answer;
pub(super) use running::Running;
pub(super) use why::Why;

/// A call that has not been made yet. `.await` makes it; dropping that future cancels it.
///
/// ```no_run
/// # async fn example(client: turnbuckle::Client) -> turnbuckle::Result<()> {
/// use std::time::Duration;
/// let result = client
///     .call_tool("render", serde_json::json!({"scene": 3}))
///     .timeout(Duration::from_secs(30))
///     .on_progress(|progress| eprintln!("{} done", progress.progress))
///     .await?;
/// # let _ = result; Ok(()) }
/// ```
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    pub(super) client: Arc<Inner>,
    pub(super) method: Cow<'static, str>,
    /// Its row, if it has one.
    pub(super) known: Option<Method>,
    pub(super) params: Params,
    pub(super) meta: Meta,
    pub(super) id: Option<RequestId>,
    pub(super) timeouts: super::Timeouts,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) abandon: Abandon,
    /// How often the server may ask before it answers; `None` if what it asks is handed on.
    pub(super) rounds: Option<usize>,
    /// What is asked is handed on by this instead of being answered.
    hand_on: Option<HandOn<T>>,
    /// How long answering may take, over all rounds.
    answer_timeout: Option<Duration>,
    /// Stands still while what is asked for it is answered; made when it is needed, unless others have
    /// to see it too.
    pub(super) clock: Option<Arc<Answering>>,
    pub(super) retry: Retry,
    pub(super) twice: Twice,
    /// Its row, where the server must have declared what it needs.
    needs: Option<Method>,
    pub(super) log_level: Option<LogLevel>,
    /// Where what is said before the result goes.
    pub(super) outlet: Option<Arc<Outlet>>,
    /// Where those who wait for it leave why they do not any more.
    pub(super) why: Option<Arc<Why>>,
    pub(super) decode: Decode<T>,
    /// For results that say for how long they may be kept.
    pub(super) kept: Option<Kept<T>>,
    /// Ends it on this side, where nothing has to be sent.
    here: Option<Here<T>>,
    /// What a listing said of the tool that is called.
    tool: Option<Arc<KnownTool>>,
    pub(super) validate_output: Option<super::known::CompileOutput>,
    passes: Passes,
    /// The tool that is called, and headers of this one call.
    #[cfg(feature = "http")]
    pub(super) about: About,
}

/// What a call passes on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    /// Whatever stands around calls.
    Everything,
    /// Nothing: it is part of a call that has passed already.
    #[cfg(feature = "http")]
    Nothing,
}

/// What a call says.
pub(super) enum Params {
    /// The text of an object, or empty for none; or why it could not be made.
    Text(Result<String>),
    /// The same, by the revision in which it is said.
    At(Arc<dyn Fn(Revision) -> Result<String> + Send + Sync>),
    /// What was said first, and the same with the answers to what was asked then.
    Answered { first: String, again: String },
}

impl Params {
    /// What is said now, which can still be taken afterwards.
    pub(super) fn text(&mut self, revision: Revision) -> Result<String> {
        match self {
            Params::Text(Ok(text)) => Ok(text.clone()),
            Params::Text(wrong) => std::mem::replace(wrong, Ok(String::new())),
            Params::At(text) => text(revision),
            Params::Answered { again, .. } => Ok(again.clone()),
        }
    }

    /// The same once more.
    fn again(&self) -> Params {
        match self {
            Params::Text(Ok(text)) => Params::Text(Ok(text.clone())),
            Params::Text(Err(wrong)) => Params::Text(Err(wrong.again())),
            Params::At(text) => Params::At(text.clone()),
            Params::Answered { first, again } => {
                Params::Answered { first: first.clone(), again: again.clone() }
            }
        }
    }

    /// What is said first, which can be had once where it does not depend on the revision; and
    /// what is said now, if that is something else.
    pub(super) fn take(&mut self, revision: Revision) -> Result<(String, Option<String>)> {
        match self {
            Params::Text(text) => Ok((std::mem::replace(text, Ok(String::new()))?, None)),
            Params::At(text) => Ok((text(revision)?, None)),
            Params::Answered { first, again } => {
                Ok((std::mem::take(first), Some(std::mem::take(again))))
            }
        }
    }
}

/// What a call repeats outside its body.
#[cfg(feature = "http")]
#[derive(Clone, Default)]
pub(super) struct About {
    pub(super) tool: Option<String>,
    /// Which member of its params names what it is about, for a method of the user's own.
    pub(super) named_by: Option<&'static str>,
    pub(super) headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

/// Shared by all attempts at one call.
pub(super) type OnProgress = Arc<Mutex<dyn FnMut(Progress) + Send>>;
/// What a call gives without being sent, if it does on this connection.
type Here<T> = Arc<dyn Fn(&Inner, &Link) -> Option<T> + Send + Sync>;

impl<T> Call<T> {
    pub(super) fn new(
        client: &Arc<Inner>,
        method: impl Into<Cow<'static, str>>,
        params: Params,
        decode: DecodeBy<T>,
    ) -> Call<T> {
        let method = method.into();
        let known = Method::from_name(&method);
        let abandonable = known.is_none_or(|method| method.row().abandonable);
        Call {
            client: client.clone(),
            known,
            params,
            meta: Meta::new(),
            id: None,
            timeouts: client.settings().timeouts,
            on_progress: None,
            abandon: if abandonable { Abandon::Signal } else { Abandon::Silence },
            rounds: None,
            hand_on: None,
            answer_timeout: None,
            clock: None,
            retry: Retry::default(),
            twice: Twice::of(known),
            needs: None,
            log_level: None,
            outlet: None,
            why: None,
            decode: Decode::By(decode),
            kept: None,
            here: None,
            tool: None,
            validate_output: client.settings().validate_output,
            passes: Passes::Everything,
            #[cfg(feature = "http")]
            about: About::default(),
            method,
        }
    }

    /// The same call, for another result. What was to be handed on is not any more.
    fn giving<U>(
        self,
        decode: impl FnOnce(Decode<T>) -> Decode<U>,
        here: impl FnOnce(Here<T>) -> Option<Here<U>>,
    ) -> Call<U> {
        Call {
            client: self.client,
            method: self.method,
            known: self.known,
            params: self.params,
            meta: self.meta,
            id: self.id,
            timeouts: self.timeouts,
            on_progress: self.on_progress,
            abandon: self.abandon,
            rounds: self.rounds,
            hand_on: None,
            answer_timeout: self.answer_timeout,
            clock: self.clock,
            retry: self.retry,
            twice: self.twice,
            needs: self.needs,
            log_level: self.log_level,
            outlet: self.outlet,
            why: self.why,
            decode: decode(self.decode),
            // What is kept is of the kind that it was.
            kept: None,
            here: self.here.and_then(here),
            tool: self.tool,
            validate_output: self.validate_output,
            passes: self.passes,
            #[cfg(feature = "http")]
            about: self.about,
        }
    }

    /// The same call once more, for who makes it again.
    pub(super) fn again(&self) -> Call<T> {
        Call {
            client: self.client.clone(),
            method: self.method.clone(),
            known: self.known,
            params: self.params.again(),
            meta: self.meta.clone(),
            id: self.id.clone(),
            timeouts: self.timeouts,
            on_progress: self.on_progress.clone(),
            abandon: self.abandon,
            rounds: self.rounds,
            hand_on: self.hand_on,
            answer_timeout: self.answer_timeout,
            clock: self.clock.clone(),
            retry: self.retry,
            twice: self.twice,
            needs: self.needs,
            log_level: self.log_level,
            outlet: self.outlet.clone(),
            why: self.why.clone(),
            decode: self.decode.clone(),
            kept: self.kept,
            here: self.here.clone(),
            tool: self.tool.clone(),
            validate_output: self.validate_output,
            passes: self.passes,
            #[cfg(feature = "http")]
            about: self.about.clone(),
        }
    }

    /// The same call, whose result is read in another way.
    pub(super) fn read_by<U>(self, decode: DecodeBy<U>) -> Call<U> {
        self.giving(|_| Decode::By(decode), |_| None)
    }

    /// The same call with other params, unless it was wrong already.
    pub(super) fn saying(mut self, params: Params) -> Call<T> {
        if !matches!(self.params, Params::Text(Err(_))) {
            self.params = params;
        }
        self
    }

    /// Has the server's questions answered, where the method may ask any in a result.
    pub(super) fn answering(mut self) -> Call<T> {
        let may_ask = self.known.is_some_and(|method| method.row().may_ask);
        self.rounds = may_ask.then_some(input::ROUNDS);
        self
    }

    /// Has the result kept for as long as it says.
    pub(super) fn kept(mut self) -> Call<T>
    where
        T: Cacheable,
    {
        self.kept = Some(Kept::new());
        self
    }

    /// Has it refused on this side where the server did not declare what it needs.
    pub(super) fn needing(mut self, method: Method) -> Call<T> {
        self.needs = Some(method);
        self
    }

    /// Has it end on this side, on connections for which `here` has what it gives.
    pub(super) fn or_here(
        mut self,
        here: impl Fn(&Inner, &Link) -> Option<T> + Send + Sync + 'static,
    ) -> Call<T> {
        self.here = Some(Arc::new(here));
        self
    }

    /// Says what it passes on its way.
    pub(super) fn passing(mut self, passes: Passes) -> Call<T> {
        self.passes = passes;
        self
    }

    /// Says which member of the params names what the call is about.
    #[cfg(feature = "http")]
    pub(super) fn named_by(mut self, member: Option<&'static str>) -> Call<T> {
        self.about.named_by = member;
        self
    }

    /// Says which tool is called, so that what is known of it counts.
    pub(super) fn about_tool(mut self, name: &str) -> Call<T> {
        self.client.supervisor.with_link(|link| {
            self.tool = link.known.tool(name);
            #[cfg(feature = "http")]
            if link.repeated.is_some() {
                self.about.tool = Some(name.to_owned());
            }
        });
        // Nothing that is known of another tool counts.
        self.twice = match &self.tool {
            Some(tool) => tool.twice,
            None => Twice::of(self.known),
        };
        self
    }

    /// Adds a header to this request, on the wire that has headers. It does not follow a
    /// redirect to another origin.
    #[cfg(feature = "http")]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Call<T> {
        match super::http::own_header(name.as_ref(), value.as_ref()) {
            Ok(header) => self.about.headers.push(header),
            Err(error) => self.params = Params::Text(Err(error)),
        }
        self
    }

    /// The longest time the call may take in all, over all its rounds. 30 minutes unless the client says
    /// otherwise.
    ///
    /// The time in which this client's callbacks answer what the server asks does not count, however
    /// long they take: [`answer_timeout`](Call::answer_timeout) bounds it for a modern server, a callback
    /// has to bound itself for a legacy one. The clocks of other calls run on meanwhile, except where it
    /// can't be told for which call a legacy server asks: on streams, and over HTTP on the server's own
    /// stream. There the clocks of all calls stand still until it is answered, so that a callback that
    /// never returns leaves them without a timeout.
    pub fn timeout(mut self, total: Duration) -> Call<T> {
        self.timeouts.total = Some(total);
        self
    }

    /// The longest time without a sign of life: progress resets it. It always stays under
    /// the total. 60 seconds unless the client says otherwise.
    pub fn idle_timeout(mut self, idle: Duration) -> Call<T> {
        self.timeouts.idle = Some(idle);
        self
    }

    /// Takes both clocks away from this call.
    pub fn no_timeouts(mut self) -> Call<T> {
        self.timeouts = super::Timeouts { idle: None, total: None };
        self
    }

    /// Calls `callback` for each progress report, in order, before the call returns. A
    /// callback that panics costs only itself.
    pub fn on_progress(mut self, callback: impl FnMut(Progress) + Send + 'static) -> Call<T> {
        self.on_progress = Some(Arc::new(Mutex::new(callback)));
        self
    }

    /// How often a modern server may ask for input before it is an error: 10 times. Each time the
    /// client's callbacks answer and the request is made again; the time that they take does not
    /// count, all the rest is one call with one timeout.
    pub fn max_rounds(mut self, rounds: usize) -> Call<T> {
        if let Some(most) = &mut self.rounds {
            *most = rounds;
        }
        self
    }

    /// The longest time that this client's callbacks may take to answer what a modern server asks
    /// before its result, over all rounds together: as long as they like unless it is set. This
    /// call's other clocks stand still meanwhile.
    pub fn answer_timeout(mut self, all: Duration) -> Call<T> {
        self.answer_timeout = Some(all);
        self
    }

    /// Has a modern server tell what it logs for this call, from this level on. A legacy server
    /// has one level for the whole connection:
    /// [`set_log_level`](super::Client::set_log_level); there this says nothing.
    pub fn log_level(mut self, least: LogLevel) -> Call<T> {
        self.log_level = Some(least);
        self
    }

    /// Adds an entry to the request's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Raw>) -> Call<T> {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Makes the call in this trace: writes it into the request's `_meta`. A handler that makes calls
    /// hands the trace of its own request on.
    ///
    /// ```no_run
    /// # #[cfg(feature = "server")]
    /// # async fn handler(ctx: turnbuckle::Ctx, upstream: turnbuckle::Client) -> turnbuckle::Result<()> {
    /// upstream.call_tool("search", ()).trace(&ctx.trace()).await?;
    /// # Ok(()) }
    /// ```
    pub fn trace(mut self, trace: &crate::TraceContext) -> Call<T> {
        trace.write_to(&mut self.meta);
        self
    }

    /// Chooses the request's id. It reaches the server exactly as given; one that is in
    /// flight is refused. A request that is made again with answers gets a new one.
    pub fn request_id(mut self, id: impl Into<RequestId>) -> Call<T> {
        self.id = Some(id.into());
        self
    }

    /// Lets the server finish even if this call is dropped or runs out of time. Over HTTP that
    /// holds for as long as the client is open.
    pub fn keep_running(mut self) -> Call<T> {
        self.abandon = Abandon::Silence;
        self
    }

    /// When the call is made again after its connection was lost: if it certainly was not begun,
    /// unless said otherwise.
    pub fn retry(mut self, retry: Retry) -> Call<T> {
        self.retry = retry;
        self
    }

    /// What the call makes of answers that are kept: it uses one that is fresh, unless said
    /// otherwise. [`discover`](crate::Client::discover) asks the server unless said otherwise.
    ///
    /// This is for lists and for resources that are read; other calls keep nothing. Neither does a
    /// call with headers or metadata of its own, other than the trace that it is made in.
    pub fn cache(mut self, mode: CacheMode) -> Call<T> {
        if let Some(kept) = &mut self.kept {
            kept.mode = mode;
        }
        self
    }
}

impl<T: Send + 'static> IntoFuture for Call<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        // Part of a call that is counted already.
        #[cfg(feature = "http")]
        if self.passes == Passes::Nothing {
            return Box::pin(self.unlayered());
        }
        if self.client.settings().around.is_wanted() {
            return Box::pin(super::around::run(self));
        }
        // What is awaited below is borrowed: a future that is given the call has a copy of it.
        let mut call = self;
        if let Some(kept) = call.kept {
            return Box::pin(async move {
                let _in_flight = call.client.supervisor.enter()?;
                if let Some(value) = call.at_hand(kept).await? {
                    return Ok(value);
                }
                // Most are at hand, and need no room for asking.
                Box::pin(call.unlayered()).await
            });
        }
        Box::pin(async move {
            let _in_flight = call.client.supervisor.enter()?;
            let made = call.made().await;
            made.map(|answer| answer.value).map_err(Error::of_call)
        })
    }
}

impl<T> std::fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

/// The error for a result that is not what its method promises.
pub(super) fn undecodable(method: &str, error: &serde_json::Error) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the server's answer to {method} can't be read: {error}"),
    )
    .with_executed(crate::error::Executed::Maybe)
}
