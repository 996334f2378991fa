//! `Call<T>`: a request that has not been sent yet, its options, and its result type.

pub(crate) mod deadlines;
mod decode;
mod events;
pub(crate) mod input;
mod manual;
mod request;
mod run;
mod running;
mod through;

use std::{
    borrow::Cow,
    future::IntoFuture,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    CacheMode, Inner, Timeouts,
    cache::{Cacheable, Cached},
};
use crate::{
    client::connection::{Retry, handle::ClientConnection},
    error::{Error, ErrorKind, Result},
    rpc::Abandon,
};
use turnbuckle_types::{LogLevel, Method, Progress, Raw, RequestId};

use decode::Decode;
pub(super) use decode::{DecodeBy, DecodeContext};
pub use events::{CallEvent, CallEvents};
use manual::HandOn;
pub use manual::{InputAnswer, Questions, Round, ServerQuestion};
pub(super) use request::{CallRequest, Params};
pub(super) use run::CallResponse;
pub(super) use running::InFlightCall;

/// A call that has not been sent yet. `.await` sends it; dropping that future cancels it.
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
    pub(super) request: CallRequest,
    pub(super) decode: Decode<T>,
    /// How the result is cached, for results with a time to live.
    pub(super) cached: Option<Cached<T>>,
    /// Completes the call without a request.
    local: Option<Local<T>>,
    /// Hands the server's questions to the caller instead of answering them.
    hand_on: Option<HandOn<T>>,
}

/// Returns the result of a call that needs no request on this connection.
type Local<T> = Arc<dyn Fn(&Inner, &ClientConnection) -> Option<T> + Send + Sync>;

impl<T> Call<T> {
    pub(super) fn new(
        client: &Arc<Inner>,
        method: impl Into<Cow<'static, str>>,
        params: Params,
        decode: DecodeBy<T>,
    ) -> Call<T> {
        Call {
            request: CallRequest::new(client, method.into(), params),
            decode: Decode::By(decode),
            cached: None,
            local: None,
            hand_on: None,
        }
    }

    /// Returns the same call for another attempt.
    pub(super) fn duplicate(&self) -> Call<T> {
        Call {
            request: self.request.clone(),
            decode: self.decode.clone(),
            cached: self.cached,
            local: self.local.clone(),
            hand_on: self.hand_on,
        }
    }

    /// Returns the same call with another decoder for its result.
    pub(super) fn read_by<U>(self, decode: DecodeBy<U>) -> Call<U> {
        let decode = Decode::By(decode);
        Call { request: self.request, decode, cached: None, local: None, hand_on: None }
    }

    /// Replaces the params, unless they are invalid already.
    pub(super) fn with_params(mut self, params: Params) -> Call<T> {
        if !matches!(self.request.params, Params::Text(Err(_))) {
            self.request.params = params;
        }
        self
    }

    /// Has the client's callbacks answer the server's questions, if the method allows questions in
    /// its result.
    pub(super) fn answering(mut self) -> Call<T> {
        let may_ask = self.request.known.is_some_and(|method| method.row().may_ask);
        self.request.rounds = may_ask.then_some(input::ROUNDS);
        self
    }

    /// Caches the result for its time to live.
    pub(super) fn cached(mut self) -> Call<T>
    where
        T: Cacheable,
    {
        self.cached = Some(Cached::new());
        self
    }

    /// Refuses the call if the server did not declare the capability that this method needs.
    pub(super) fn needing(mut self, method: Method) -> Call<T> {
        self.request.needs = Some(method);
        self
    }

    /// Completes the call without a request on connections for which `local` returns a result.
    pub(super) fn or_local(
        mut self,
        local: impl Fn(&Inner, &ClientConnection) -> Option<T> + Send + Sync + 'static,
    ) -> Call<T> {
        self.local = Some(Arc::new(local));
        self
    }

    /// Sets the member of the params that the header `Mcp-Name` repeats.
    #[cfg(feature = "http")]
    pub(super) fn named_by(mut self, member: Option<&'static str>) -> Call<T> {
        self.request.about.named_by = member;
        self
    }

    /// Sets the tool that is called, so that its listing is taken into account.
    pub(super) fn about_tool(mut self, name: &str) -> Call<T> {
        self.request.set_tool(name);
        self
    }

    /// Adds a header to this request, on the wire that has headers. It does not follow a
    /// redirect to another origin.
    #[cfg(feature = "http")]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Call<T> {
        self.request.add_header(name.as_ref(), value.as_ref());
        self
    }

    /// Sets the longest time that the call may take in all, over all its rounds. Defaults to the
    /// client's setting, which is 30 minutes.
    ///
    /// The time that this client's callbacks take to answer the server's questions does not count.
    /// [`answer_timeout`](Call::answer_timeout) limits it for a modern server; for a legacy server a
    /// callback has to limit itself. The clocks of other calls go on, except where the wire does not
    /// say for which call a legacy server asks: on byte streams, and on the server's own stream over
    /// HTTP. There the clocks of all calls stand still until the question is answered, so that a
    /// callback that never returns leaves them without a timeout.
    pub fn timeout(mut self, total: Duration) -> Call<T> {
        self.request.timeouts.total = Some(total);
        self
    }

    /// Sets the longest time without a sign of life; progress resets it. The total timeout still
    /// applies. Defaults to the client's setting, which is 60 seconds.
    pub fn idle_timeout(mut self, idle: Duration) -> Call<T> {
        self.request.timeouts.idle = Some(idle);
        self
    }

    /// Removes both timeouts from this call.
    pub fn no_timeouts(mut self) -> Call<T> {
        self.request.timeouts = Timeouts { idle: None, total: None };
        self
    }

    /// Calls `callback` for each progress report, in order, before the call returns. A
    /// callback that panics is not called again; the call goes on.
    pub fn on_progress(mut self, callback: impl FnMut(Progress) + Send + 'static) -> Call<T> {
        self.request.on_progress = Some(Arc::new(Mutex::new(callback)));
        self
    }

    /// Sets how often a modern server may ask for input before the call fails. Defaults to 10.
    /// Each time the client's callbacks answer and the request is sent again. All rounds share one
    /// timeout, which does not count the time of the callbacks.
    pub fn max_rounds(mut self, rounds: usize) -> Call<T> {
        if let Some(most) = &mut self.request.rounds {
            *most = rounds;
        }
        self
    }

    /// Sets the longest time that this client's callbacks may take to answer a modern server's
    /// questions, over all rounds together. There is no limit by default. The other timeouts of
    /// this call stand still while a callback runs.
    pub fn answer_timeout(mut self, all: Duration) -> Call<T> {
        self.request.answer_timeout = Some(all);
        self
    }

    /// Requests the log messages of this call from a modern server, from this level on. A legacy
    /// server has one level for the whole connection, see
    /// [`set_log_level`](super::Client::set_log_level), and ignores this one.
    pub fn log_level(mut self, least: LogLevel) -> Call<T> {
        self.request.log_level = Some(least);
        self
    }

    /// Adds an entry to the request's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Raw>) -> Call<T> {
        self.request.meta.insert(key.into(), value.into());
        self
    }

    /// Makes the call part of this trace, by writing it into the request's `_meta`. A handler that
    /// makes calls passes on the trace of its own request.
    ///
    /// ```no_run
    /// # #[cfg(feature = "server")]
    /// # async fn handler(ctx: turnbuckle::Ctx, upstream: turnbuckle::Client) -> turnbuckle::Result<()> {
    /// upstream.call_tool("search", ()).trace(&ctx.trace()).await?;
    /// # Ok(()) }
    /// ```
    pub fn trace(mut self, trace: &crate::TraceContext) -> Call<T> {
        trace.write_to(&mut self.request.meta);
        self
    }

    /// Sets the request's id, which is sent unchanged. The call is refused if another one with
    /// this id is in flight. A request that is sent again with answers gets a new id.
    pub fn request_id(mut self, id: impl Into<RequestId>) -> Call<T> {
        self.request.id = Some(id.into());
        self
    }

    /// Lets the server finish even if this call is dropped or times out. Over HTTP this holds for
    /// as long as the client is open.
    pub fn keep_running(mut self) -> Call<T> {
        self.request.abandon = Abandon::Silence;
        self
    }

    /// Sets when the call is retried after the connection is lost. By default only calls that were
    /// certainly not started are retried.
    pub fn retry(mut self, retry: Retry) -> Call<T> {
        self.request.retry = retry;
        self
    }

    /// Sets how the call uses cached results. By default it uses a fresh one;
    /// [`discover`](crate::Client::discover) asks the server by default.
    ///
    /// Only lists and resources are cached. A call with its own headers or metadata, other than its
    /// trace, is never cached.
    pub fn cache(mut self, mode: CacheMode) -> Call<T> {
        if let Some(cached) = &mut self.cached {
            cached.mode = mode;
        }
        self
    }
}

impl<T: Send + 'static> IntoFuture for Call<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        // Part of a call that is counted already.
        if self.request.skip_middleware {
            return Box::pin(self.send_unlayered());
        }
        if self.request.client.settings().middleware.is_active() {
            return Box::pin(self.run_through_middleware());
        }
        // Borrowed below: a future that takes the call by value stores it twice.
        let mut call = self;
        if let Some(cached) = call.cached {
            return Box::pin(async move {
                let _in_flight = call.request.client.supervisor.enter()?;
                Ok(call.send_cached(cached).await?.0)
            });
        }
        Box::pin(async move {
            let _in_flight = call.request.client.supervisor.enter()?;
            let answer = call.send_once().await;
            answer.map(|answer| answer.value).map_err(Error::of_call)
        })
    }
}

impl<T> std::fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("method", &self.request.method).finish_non_exhaustive()
    }
}

/// Returns the error for a result that does not match its method.
pub(super) fn undecodable(method: &str, error: &serde_json::Error) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the server's answer to {method} can't be read: {error}"),
    )
    .with_executed(crate::error::Executed::Maybe)
}
