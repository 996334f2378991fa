//! Owns how this side answers what a server asks, and who sees its notifications.
//! Does not own the questions of the modern era, which arrive as results: `input` does.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    client::{
        cache::ClientCache,
        connection::Restored,
        handlers::Callbacks,
        seam::ServerEvents,
        subscribe::{ClientSubscriptions, Hearers},
        tools::KnownTools,
        wire_log::{LoggedReply, WireDirection, WireLog},
    },
    error::{Closed, Executed},
    rpc::{BoxFuture, Incoming, Note, Outcome, Replies, Reply, Serve, Transport},
};
use tokio::{sync::Notify, time::Instant};
use turnbuckle_types::{
    Method, Questions, Raw, RequestId, Revision, RpcError,
    jsonrpc::{Fault, Text},
};

/// A question that a legacy server asks its client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerRequest {
    /// The method: `sampling/createMessage`, `elicitation/create`, `roots/list` …
    pub method: Text,
    /// Its params.
    pub params: Option<Raw>,
    /// The request on whose stream it came, where the wire tells.
    pub(crate) within: Option<RequestId>,
}

pub(crate) type OnRequest = Arc<dyn Fn(ServerRequest) -> BoxFuture<'static, Outcome> + Send + Sync>;
pub(crate) type OnNotification = Arc<dyn Fn(&str, Option<&Raw>) + Send + Sync>;
pub(crate) type OnStrayError = Arc<dyn Fn(&RpcError) + Send + Sync>;

/// The client's side of a connection that serves.
pub(crate) struct ClientService {
    pub(crate) callbacks: Callbacks,
    pub(crate) on_request: Option<OnRequest>,
    pub(crate) on_notification: Option<OnNotification>,
    pub(crate) on_stray_error: Option<OnStrayError>,
    pub(crate) events: Option<Arc<dyn ServerEvents>>,
    /// Set by the negotiation. Before that nothing but `ping` is answered.
    pub(crate) revision: OnceLock<Revision>,
    pub(crate) answering: Arc<Answering>,
    /// Invalidated by notifications.
    pub(crate) cache: Arc<ClientCache>,
    pub(crate) wire_log: Option<WireLog>,
    /// Who else is told of notifications, on whichever connection.
    pub(crate) hearers: Arc<Hearers>,
    /// Those of this connection.
    pub(crate) subscriptions: Arc<ClientSubscriptions>,
    /// What was learnt on it of the server's tools.
    pub(crate) known: Arc<KnownTools>,
    /// What is set again where the server has forgotten it, in which time, and over what.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "no other wire is renewed"))]
    pub(crate) restored: Arc<Restored>,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "no other wire is renewed"))]
    pub(crate) restore_limit: Duration,
    pub(crate) transport: OnceLock<Weak<dyn Transport>>,
    /// What the server was started as, where it was.
    pub(crate) program: Option<String>,
}

impl ClientService {
    /// Returns how the server may ask, once the revision is agreed on.
    fn questions(&self) -> Option<Questions> {
        self.revision.get().map(|revision| revision.questions())
    }

    fn observed(&self, note: &Note) {
        if let Some(log) = &self.wire_log {
            log.write_note(WireDirection::Received, note);
        }
        // Before anyone who may ask again because of it.
        self.cache.handle_notification(note, self.revision.get().copied());
        // Before the user's: who is told there and asks at once finds everything up to date.
        self.hearers.hear(note);
        if let Some(observer) = &self.on_notification {
            observe(|| observer(&note.method, note.params.raw.as_ref()));
        }
    }

    /// Which clock stands still while this is answered: that of the call on whose stream it came; of
    /// all calls where the wire does not tell for whom it is asked.
    fn clock_of(&self, request: &Incoming) -> Arc<Answering> {
        let own = match &request.came {
            #[cfg(feature = "http")]
            crate::rpc::RequestOrigin::Within(_, Some(mark)) => mark.clone().downcast().ok(),
            _ => None,
        };
        own.unwrap_or_else(|| self.answering.clone())
    }

    /// What the user's own function says, if there is one. It does not run before it is polled.
    fn untyped(&self, request: &Incoming) -> Option<BoxFuture<'static, Outcome>> {
        let on_request = self.on_request.clone()?;
        let method = request.method.clone();
        let params = request.params.raw.clone();
        let within = match &request.came {
            #[cfg(feature = "http")]
            crate::rpc::RequestOrigin::Within(request, _) => Some(request.clone()),
            _ => None,
        };
        let question = ServerRequest { method, params, within };
        let answer = Box::pin(async move { on_request(question).await });
        // Who asks before the handshake is over asks as the last revision that has one would.
        let revision = self.revision.get().copied().unwrap_or(Revision::V2025_11_25);
        let params = request.params.raw.clone();
        Some(self.callbacks.middleware.answer(&request.method, params, revision, answer))
    }
}

impl ClientService {
    fn reply(&self, request: Incoming) -> Reply {
        // 2026-07-28 transports/stdio: a server MUST NOT send requests, a client writes no
        // responses.
        if self.questions() == Some(Questions::InResults) {
            return Reply::Never;
        }
        let method = Method::from_name(&request.method);
        if method == Some(Method::Ping) {
            return Reply::Now(Ok(Raw::empty_object()));
        }
        let typed = method.zip(self.revision.get().copied()).and_then(|(method, revision)| {
            self.callbacks.answer(method, &request.params, revision)
        });
        let Some(answer) = typed.or_else(|| self.untyped(&request)) else {
            return Reply::Now(Err(RpcError::method_not_found(&request.method)));
        };
        let (clock, permit) = (self.clock_of(&request), request.permit);
        Reply::Later(Box::pin(async move {
            // Calls in flight don't run out of time because of us.
            let _paused = clock.pause();
            let outcome = answer.await;
            drop(permit);
            outcome
        }))
    }
}

impl Serve for ClientService {
    fn serve(&self, request: Incoming, _: Replies) -> Reply {
        match LoggedReply::open(self.wire_log.as_ref(), &request) {
            Some(logged) => logged.log(self.reply(request)),
            None => self.reply(request),
        }
    }

    fn note(&self, note: Note) {
        self.observed(&note);
        if let Some(events) = &self.events {
            events.notification(note, None);
        }
    }

    #[cfg(feature = "http")]
    fn note_within(&self, note: Note, request: &RequestId) {
        self.observed(&note);
        if let Some(events) = &self.events {
            events.notification(note, Some(request));
        }
    }

    fn gone(&self, why: &Closed) {
        if let Some(events) = &self.events {
            events.closed(why.error(Executed::No));
        }
    }

    #[cfg(feature = "http")]
    fn renewed(&self) -> BoxFuture<'static, ()> {
        // All that a new connection would begin without, or begin with.
        self.known.forget();
        self.cache.invalidate_all();
        self.subscriptions.renewed();
        self.hearers.renewed();
        let (restored, limit) = (self.restored.clone(), self.restore_limit);
        let transport = self.transport.get().and_then(Weak::upgrade);
        let revision = self.revision.get().copied();
        Box::pin(async move {
            if let Some((transport, revision)) = transport.zip(revision) {
                restored.restore(&*transport, revision, limit).await;
            }
        })
    }

    fn stray(&self, error: RpcError) {
        if let Some(log) = &self.wire_log {
            log.write_stray(&error);
        }
        if let Some(observer) = &self.on_stray_error {
            observe(|| observer(&error));
        }
    }

    fn answers(&self, fault: &Fault) -> bool {
        self.questions() == Some(Questions::AsRequests) && fault.id.is_some()
    }

    fn junk(&self, line: &str) {
        if let Some(program) = &self.program {
            tracing::warn!(
                program,
                line,
                "a server printed what is no message: its standard output belongs to the protocol, \
                 and whatever else it has to say it should print to standard error"
            );
        }
    }

    fn batches(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.has_batches())
    }
}

/// Runs an observer: one that panics costs only itself.
fn observe(observer: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(observer)).is_err() {
        tracing::error!("an observer panicked");
    }
}

/// What one call's time depends on besides its server.
#[derive(Clone, Copy)]
pub(crate) struct Clocks<'a> {
    /// Stands still for all calls.
    pub(crate) all: &'a Answering,
    /// For this one; what stands still on both at once is given twice, which does no harm.
    pub(crate) own: Option<&'a Answering>,
}

impl Clocks<'_> {
    /// How long they have stood still, up to `now`.
    pub(crate) fn paused(self, now: Instant) -> Duration {
        self.all.paused(now) + self.own.map_or(Duration::ZERO, |own| own.paused(now))
    }

    /// The same up to this moment, for who has not looked at a clock yet.
    pub(crate) fn paused_by_now(self) -> Duration {
        self.all.paused_by_now() + self.own.map_or(Duration::ZERO, Answering::paused_by_now)
    }

    /// Resolves once both go on.
    pub(crate) async fn over(self) {
        self.all.over().await;
        while let Some(own) = self.own.filter(|own| own.is_active()) {
            own.over().await;
            self.all.over().await;
        }
    }
}

/// Keeps the time in which this side was answering.
#[derive(Default)]
pub(crate) struct Answering {
    /// Whether there was ever anything to answer. Most servers never ask.
    ever: AtomicBool,
    state: Mutex<Paused>,
    resumed: Notify,
}

#[derive(Default)]
struct Paused {
    active: usize,
    since: Option<Instant>,
    total: Duration,
}

impl Answering {
    fn lock(&self) -> MutexGuard<'_, Paused> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now until what it gives is dropped, this side is answering.
    pub(crate) fn pause(self: &Arc<Self>) -> Pause {
        let mut state = self.lock();
        state.active += 1;
        state.since.get_or_insert_with(Instant::now);
        self.ever.store(true, Ordering::Release);
        drop(state);
        Pause(self.clone())
    }

    /// How long it has been in all, up to `now`.
    pub(crate) fn paused(&self, now: Instant) -> Duration {
        self.paused_until(|| now)
    }

    /// The same up to this moment, for who has not looked at a clock yet.
    pub(crate) fn paused_by_now(&self) -> Duration {
        self.paused_until(Instant::now)
    }

    fn paused_until(&self, now: impl FnOnce() -> Instant) -> Duration {
        if !self.ever.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let now = now();
        let state = self.lock();
        state.total + state.since.map_or(Duration::ZERO, |since| now - since)
    }

    /// What `future` gives within `limit`; time in which this side was answering does not count.
    pub(crate) async fn within<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, AnswerTimeout> {
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = self.ran_out(limit) => Err(AnswerTimeout),
        }
    }

    /// Resolves after `limit`; time in which this side was answering does not count.
    pub(crate) async fn ran_out(&self, limit: Duration) {
        let started = Instant::now();
        let before = self.paused(started);
        loop {
            let now = Instant::now();
            let end = limit
                .checked_add(self.paused(now) - before)
                .and_then(|given| started.checked_add(given));
            match end {
                Some(end) if now >= end => return,
                Some(end) => tokio::time::sleep_until(end).await,
                // A time too long to be told never comes.
                None => std::future::pending().await,
            }
            self.over().await;
        }
    }

    fn is_active(&self) -> bool {
        self.ever.load(Ordering::Acquire) && self.lock().active > 0
    }

    /// Resolves once nothing is being answered.
    pub(crate) async fn over(&self) {
        loop {
            let resumed = self.resumed.notified();
            if self.lock().active == 0 {
                return;
            }
            resumed.await;
        }
    }
}

/// The time given ran out.
pub(crate) struct AnswerTimeout;

/// An answer that someone is working on.
pub(crate) struct Pause(Arc<Answering>);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.active -= 1;
        if state.active == 0
            && let Some(since) = state.since.take()
        {
            state.total += since.elapsed();
            drop(state);
            self.0.resumed.notify_waiters();
        }
    }
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}
