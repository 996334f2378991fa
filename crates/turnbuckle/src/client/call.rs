//! Owns one call: its options, its clocks, its progress, and the decoding of its result.
//! Does not own how it is abandoned: dropping its exchange does that.

use std::{
    borrow::Cow,
    future::IntoFuture,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_types::{Meta, Method, Progress, Questions, Raw, RequestId};

use super::{
    Inner,
    clock::Deadlines,
    input::{self, Asked},
};
use crate::{
    dispatch::{Abandon, Event, Exchange, Outgoing},
    envelope::stamp::WantsProgress,
    error::{Error, ErrorKind, Result},
};

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
    client: Arc<Inner>,
    method: Cow<'static, str>,
    /// The text of the params object, or empty for none; or why it could not be made.
    params: Result<String>,
    meta: Meta,
    id: Option<RequestId>,
    timeouts: super::Timeouts,
    on_progress: Option<OnProgress>,
    abandon: Abandon,
    /// How often the server may ask before it answers; `None` if what it asks is handed on.
    rounds: Option<usize>,
    decode: Decode<T>,
    /// The tool that is called, and headers of this one call.
    #[cfg(feature = "http")]
    about: About,
}

/// What a call repeats outside its body.
#[cfg(feature = "http")]
#[derive(Default)]
struct About {
    tool: Option<String>,
    headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

type OnProgress = Box<dyn FnMut(Progress) + Send>;
/// Makes the result of its text, with what this client knows.
pub(super) type Decode<T> = fn(&Inner, Raw) -> Result<T>;

impl<T> Call<T> {
    pub(super) fn new(
        client: &Arc<Inner>,
        method: impl Into<Cow<'static, str>>,
        params: Result<String>,
        decode: Decode<T>,
    ) -> Call<T> {
        let method = method.into();
        let abandonable = Method::from_name(&method).is_none_or(|method| method.row().abandonable);
        Call {
            client: client.clone(),
            params,
            meta: Meta::new(),
            id: None,
            timeouts: client.timeouts,
            on_progress: None,
            abandon: if abandonable { Abandon::Signal } else { Abandon::Silence },
            rounds: None,
            decode,
            #[cfg(feature = "http")]
            about: About::default(),
            method,
        }
    }

    /// Has the server's questions answered, where the method may ask any in a result.
    pub(super) fn answering(mut self) -> Call<T> {
        let may_ask = Method::from_name(&self.method).is_some_and(|method| method.row().may_ask);
        let in_results = self.client.stamp.revision().questions() == Questions::InResults;
        self.rounds = (may_ask && in_results).then_some(input::ROUNDS);
        self
    }

    #[cfg(feature = "http")]
    pub(super) fn about_tool(mut self, name: &str) -> Call<T> {
        if self.client.repeated.is_some() {
            self.about.tool = Some(name.to_owned());
        }
        self
    }

    /// Adds a header to this request, on the wire that has headers. It does not follow a
    /// redirect to another origin.
    #[cfg(feature = "http")]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Call<T> {
        match super::http::own_header(name.as_ref(), value.as_ref()) {
            Ok(header) => self.about.headers.push(header),
            Err(error) => self.params = Err(error),
        }
        self
    }

    /// The longest time the call may take in all. 30 minutes unless the client says otherwise.
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
        self.on_progress = Some(Box::new(callback));
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

    /// Adds an entry to the request's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Raw>) -> Call<T> {
        self.meta.insert(key.into(), value.into());
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

    pub(super) fn open(mut self) -> Result<Running<T>> {
        let params = std::mem::replace(&mut self.params, Ok(String::new()))?;
        let exchange = self.exchange(&params, self.wants_progress());
        Ok(self.running(exchange))
    }

    fn wants_progress(&self) -> WantsProgress {
        let wants = self.on_progress.is_some() || self.timeouts.idle.is_some();
        if wants { WantsProgress::Yes } else { WantsProgress::No }
    }

    /// One exchange for this call. Nothing is sent before it is polled.
    fn exchange(&self, params: &str, progress: WantsProgress) -> Exchange {
        let stamped = self.client.stamp.apply(params, &self.meta, progress);
        self.client.transport.open(Outgoing {
            token_at: stamped.token_at,
            id: self.id.clone(),
            abandon: self.abandon,
            #[cfg(feature = "http")]
            mirror: self.mirror(params),
            ..Outgoing::new(self.method.clone(), stamped.params)
        })
    }

    #[cfg(feature = "http")]
    fn mirror(&self, params: &str) -> crate::dispatch::Mirror {
        let tool = self.about.tool.as_deref();
        let repeated = self.client.repeated.as_ref().zip(tool);
        crate::dispatch::Mirror {
            revision: Some(self.client.stamp.revision()),
            name: self.about.tool.clone(),
            params: repeated.map(|(all, tool)| all.headers(tool, params)).unwrap_or_default(),
            extra: self.about.headers.clone(),
        }
    }

    fn running(&mut self, exchange: Exchange) -> Running<T> {
        let now = Instant::now();
        let paused = self.client.answering.paused(now);
        Running {
            client: self.client.clone(),
            method: self.method.clone(),
            exchange,
            deadlines: Deadlines::new(self.timeouts, now, paused),
            on_progress: self.on_progress.take(),
            decode: self.decode,
        }
    }

    async fn run(mut self) -> Result<T> {
        let first = std::mem::replace(&mut self.params, Ok(String::new()))?;
        let mut params = Cow::Borrowed(&*first);
        let mut rounds = 0;
        let progress = self.wants_progress();
        let exchange = self.exchange(&params, progress);
        let mut running = self.running(exchange);
        // Whether the call may have begun to run, or was made again already.
        #[cfg(feature = "http")]
        let mut settled = false;
        loop {
            match running.next().await? {
                Event::Note(note) => {
                    #[cfg(feature = "http")]
                    (settled = true);
                    running.progress(&note);
                }
                #[cfg(feature = "http")]
                Event::Done(Err(error)) if !settled && self.lacks_headers(&error) => {
                    settled = true;
                    // 2026-07-28 transports/streamable-http §Client Behavior: the tool may
                    // have changed since it was listed, or was never listed.
                    let before = self.mirror(&params).params;
                    running.relist().await?;
                    if self.mirror(&params).params == before {
                        return Err(error);
                    }
                    running.exchange = self.exchange(&params, progress);
                }
                Event::Done(result) => {
                    #[cfg(feature = "http")]
                    if let Err(error) = &result {
                        running.client.reconsider(error);
                    }
                    let result = result?;
                    let error = match (running.decode)(&running.client, result.clone()) {
                        Ok(decoded) => return Ok(decoded),
                        Err(error) => error,
                    };
                    let Some(asked) = self.asked(&result, rounds)? else { return Err(error) };
                    params = Cow::Owned(running.answered(asked, &first).await?);
                    rounds += 1;
                    // 2026-07-28 basic/patterns/mrtr §Client Requirements: a request of its own.
                    self.id = None;
                    running.exchange = self.exchange(&params, progress);
                    #[cfg(feature = "http")]
                    (settled = false);
                }
            }
            // A server that reports without end must not keep this task from anything else.
            tokio::task::consume_budget().await;
        }
    }

    /// What the server wants to know first, after so many rounds; `None` if that is nothing.
    fn asked(&self, result: &Raw, rounds: usize) -> Result<Option<Asked>> {
        let Some(most) = self.rounds else { return Ok(None) };
        let asked = input::asked(&self.method, result)?;
        if asked.is_some() && rounds >= most {
            return Err(input::too_many(&self.method, most));
        }
        Ok(asked)
    }

    /// Whether a call was refused for the headers of its arguments.
    #[cfg(feature = "http")]
    fn lacks_headers(&self, error: &Error) -> bool {
        let mismatch = turnbuckle_types::code::HEADER_MISMATCH;
        self.about.tool.is_some()
            && self.client.repeated.is_some()
            && error.status() == Some(400)
            && error.as_rpc().is_some_and(|rpc| rpc.code == mismatch)
    }
}

#[cfg(feature = "http")]
impl Inner {
    /// Forgets what was remembered of a server that does not act accordingly, so that the next
    /// connection asks again.
    fn reconsider(&self, error: &Error) {
        let Some(key) = self.remembered.get() else { return };
        let unsupported = turnbuckle_types::code::UNSUPPORTED_VERSION;
        let stale = match error.as_rpc() {
            Some(rpc) => rpc.code == unsupported,
            None => matches!(error.status(), Some(400 | 404 | 405)),
        };
        if stale {
            super::prior::forget(key);
        }
    }
}

/// A call in flight.
pub(super) struct Running<T> {
    client: Arc<Inner>,
    method: Cow<'static, str>,
    pub(super) exchange: Exchange,
    pub(super) deadlines: Deadlines,
    on_progress: Option<OnProgress>,
    decode: Decode<T>,
}

impl<T> Running<T> {
    /// The next event, or the end of the time given.
    pub(super) async fn next(&mut self) -> Result<Event> {
        let answering = self.client.answering.clone();
        loop {
            let Some(deadline) = self.deadlines.next(answering.paused(Instant::now())) else {
                return Ok(self.exchange.next().await);
            };
            tokio::select! {
                biased;
                event = self.exchange.next() => {
                    let now = Instant::now();
                    // Progress is no excuse for a call whose time is up.
                    if matches!(event, Event::Note(_)) && now >= deadline {
                        self.check(now)?;
                    }
                    return Ok(self.sign(event));
                }
                () = tokio::time::sleep_until(deadline) => {}
            }
            // While this side answers a question the clocks stand still.
            tokio::select! {
                biased;
                event = self.exchange.next() => return Ok(self.sign(event)),
                () = answering.over() => {}
            }
            self.check(Instant::now())?;
        }
    }

    /// Has the questions answered, while the clocks stand still: the params of the next round.
    async fn answered(&mut self, asked: Asked, params: &str) -> Result<String> {
        let client = self.client.clone();
        let revision = client.stamp.revision();
        let paused = client.answering.pause();
        let params = asked.answered((&self.method, params), &client.callbacks, revision).await?;
        drop(paused);
        self.check(Instant::now())?;
        Ok(params)
    }

    /// Lists the server's tools anew, in the time that this call has left.
    #[cfg(feature = "http")]
    async fn relist(&mut self) -> Result<()> {
        let now = Instant::now();
        let deadline = self.deadlines.next(self.client.answering.paused(now));
        let listing = super::Client(self.client.clone()).tools().all();
        match deadline {
            None => listing.await.map(drop),
            Some(deadline) => match tokio::time::timeout_at(deadline, listing).await {
                Ok(listed) => listed.map(drop),
                Err(_) => self.check(Instant::now()),
            },
        }
    }

    /// Any event is a sign of life.
    fn sign(&mut self, event: Event) -> Event {
        let now = Instant::now();
        self.deadlines.sign(now, self.client.answering.paused(now));
        event
    }

    /// Ends the call if its time is up; the drop then tells the server why.
    fn check(&mut self, now: Instant) -> Result<()> {
        let paused = self.client.answering.paused(now);
        let Some(ran_out) = self.deadlines.ran_out(now, paused) else { return Ok(()) };
        let reason = ran_out.reason();
        let error = Error::timeout(&self.method, &reason);
        self.exchange.reason(reason);
        Err(error)
    }

    fn progress(&mut self, note: &crate::dispatch::Note) {
        let Some(callback) = &mut self.on_progress else { return };
        if &*note.method != "notifications/progress" {
            return;
        }
        let progress = match serde_json::from_str::<Progress>(note.params.text()) {
            Ok(progress) => progress,
            Err(error) => return tracing::debug!(%error, "progress that can't be read is dropped"),
        };
        if catch_unwind(AssertUnwindSafe(|| callback(progress))).is_err() {
            tracing::error!(method = %self.method, "a progress callback panicked and is not called again");
            self.on_progress = None;
        }
    }
}

impl<T: 'static> IntoFuture for Call<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
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
