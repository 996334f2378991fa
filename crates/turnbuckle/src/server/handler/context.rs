//! Owns what a running handler can see and say. Does not own the handler's answer.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::extract::States;
#[cfg(feature = "http")]
use crate::rpc::HttpHead;
use crate::{
    error::{Error, ErrorKind, Result},
    middleware::{Stack, TaskContext, server::OutgoingInput},
    principal::Principal,
    protocol::{
        capabilities::{lacking, written_at},
        classify::ClientHello,
        trace_context::TraceContext,
    },
    rpc::{BoxFuture, Outgoing, Peer, Replies, RequestOrigin},
    server::{
        elicit::progress::{
            ProgressListener, {self},
        },
        handler::notifications,
        shared::App,
    },
};
use serde::Serialize;
use tokio::sync::Notify;
use turnbuckle_types::{
    ClientCapabilities, Implementation, LogLevel, Meta, Method, Progress, Raw, RequestId, Revision,
};

/// The request that a handler answers: who asks, and how to talk back meanwhile.
///
/// Cheap to clone. It may outlive its request: then everything it says is dropped.
///
/// ```
/// use turnbuckle::{Ctx, Server, tool};
/// async fn count(ctx: Ctx) -> String {
///     for step in 1..=3 {
///         ctx.progress(step).total(3).await;
///     }
///     format!("counted in revision {}", ctx.revision())
/// }
/// let server = Server::new("demo", "1.0").tool(tool("count", count));
/// # let _ = server;
/// ```
#[derive(Clone)]
#[doc(alias = "RequestContext")]
#[doc(alias = "Context")]
#[doc(alias = "RequestHandlerExtra")]
pub struct Ctx(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) id: RequestId,
    pub(crate) revision: Revision,
    pub(crate) meta: Arc<Meta>,
    /// The handshake, in the legacy era.
    pub(crate) opened: Option<Arc<ClientHello>>,
    pub(crate) token: Option<RequestId>,
    /// Nothing less severe is sent; `None`: nothing at all.
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) replies: Replies,
    /// What came with it outside its body.
    pub(crate) came: RequestOrigin,
    /// What is true of all requests of its connection.
    pub(crate) connection: Arc<ConnectionContext>,
    /// The server that it came to.
    pub(crate) app: Option<Arc<App>>,
    /// The request that this is a part of, if a handler reads what its own server offers.
    pub(crate) outer: Option<Ctx>,
    /// What counts the requests of its connection.
    pub(crate) in_flight: Arc<AtomicUsize>,
    pub(crate) cancelled: AtomicBool,
    /// Rings for all parts of a request: each looks whether it is meant. Few listen, so that it is
    /// made when it is needed.
    pub(crate) cancel: OnceLock<Arc<Notify>>,
    pub(crate) said: Mutex<SentNotifications>,
    /// Set if the handler has panicked and its middleware sees an error instead.
    pub(crate) panicked: AtomicBool,
    /// What it has asked and been told. Few ask anything, so that it is made when it is needed.
    pub(crate) asking: OnceLock<Box<Mutex<crate::server::elicit::ElicitRound>>>,
    /// The way to a client of the legacy era once the request has ended.
    pub(crate) peer: Option<Peer>,
}

/// Something that is given back when it is dropped.
pub(crate) type Lent = dyn Any + Send + Sync;

/// What a connection was given when it began.
#[derive(Default)]
pub(crate) struct ConnectionContext {
    pub(crate) values: States,
    /// What opened it, if that was a request over HTTP.
    #[cfg(feature = "http")]
    pub(crate) head: Option<HttpHead>,
}

impl ConnectionContext {
    /// One that was given these values, and did not begin with a request over HTTP.
    pub(crate) fn given(values: States) -> ConnectionContext {
        ConnectionContext {
            values,
            #[cfg(feature = "http")]
            head: None,
        }
    }
}

/// What the handler has said so far.
#[derive(Default)]
pub(crate) struct SentNotifications {
    pub(crate) progress: Option<f64>,
    pub(crate) meta: Meta,
    /// Few requests have any.
    pub(crate) middleware: Option<Box<MiddlewareState>>,
}

/// What middleware leaves with a request.
#[derive(Default)]
pub(crate) struct MiddlewareState {
    /// The values that it has added.
    pub(crate) added: States,
    /// What it lends to the handler for as long as that runs.
    pub(crate) lent: Vec<Weak<Lent>>,
    /// The middleware for the requests that the handler sends to its client.
    pub(crate) input: Stack<OutgoingInput>,
}

impl SentNotifications {
    /// The values that middleware has added.
    pub(crate) fn added(&self) -> Option<States> {
        self.middleware.as_ref().map(|state| state.added.clone())
    }
}

impl Ctx {
    /// The id of the request, as the client chose it.
    pub fn request_id(&self) -> &RequestId {
        &self.0.id
    }

    /// The revision in which the request is answered.
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// Who the client says it is.
    pub fn client_info(&self) -> Option<Implementation> {
        match &self.0.opened {
            Some(opened) => Some(opened.client.client_info.clone()),
            None => self.0.meta.client_info().ok().flatten(),
        }
    }

    /// What the client says it can do.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        match &self.0.opened {
            Some(opened) => opened.client.capabilities.clone(),
            None => self.0.meta.client_capabilities().ok().flatten().unwrap_or_default(),
        }
    }

    /// The `_meta` of the request.
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// Adds an entry to the `_meta` of the result.
    pub fn set_meta(&self, key: impl Into<String>, value: impl Into<Raw>) {
        self.said().meta.insert(key.into(), value.into());
    }

    /// The trace that the request belongs to, as its `_meta` says. What the server asks its client
    /// meanwhile carries it on, in either era, in the `_meta` of the question's params.
    pub fn trace(&self) -> TraceContext {
        TraceContext::from_meta(&self.0.meta)
    }

    /// A value that came with the request: one that [middleware](crate::middleware) has added, an
    /// extension of the HTTP request, or of the connection.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        // Copied first: what clones a value is not run under a lock.
        let added = self.said().added();
        if let Some(added) = added.and_then(|added| added.get()) {
            return Some(added);
        }
        let Inner { connection, .. } = &*self.0;
        #[cfg(feature = "http")]
        for head in self.0.came.head().into_iter().chain(&connection.head) {
            if let Some(value) = head.extensions.get::<T>() {
                return Some(value.clone());
            }
        }
        connection.values.get()
    }

    /// A header of the HTTP request, if it is text.
    #[cfg(feature = "http")]
    pub fn header(&self, name: &str) -> Option<&str> {
        let head = self.0.came.head().or(self.0.connection.head.as_ref())?;
        head.headers.get(name)?.to_str().ok()
    }

    /// Who sends the request, if that is known: what was [attached](Principal::attach) to the HTTP
    /// request, what [`Serving::principal`](crate::server::Serving::principal) or middleware's
    /// [`Request::set_principal`](crate::middleware::server::Request::set_principal) said, and
    /// else, on a wire that is one client's own, without claims, [`Principal::local`].
    pub fn principal<C: Clone + Send + Sync + 'static>(&self) -> Option<Principal<C>> {
        if let Some(principal) = self.extension() {
            return Some(principal);
        }
        if !self.is_local() {
            return None;
        }
        let mut local = Some(Principal::local());
        let local: &mut dyn std::any::Any = &mut local;
        local.downcast_mut::<Option<Principal<C>>>().and_then(Option::take)
    }

    /// Whether the request came on a wire that is one client's own.
    pub(crate) fn is_local(&self) -> bool {
        #[cfg(feature = "http")]
        if self.0.came.head().is_some() || self.0.connection.head.is_some() {
            return false;
        }
        true
    }

    /// Reports progress: `ctx.progress(3).total(10).message("copying").await`.
    ///
    /// Does nothing if the client did not ask for progress, if the value does not exceed
    /// the one before, or once the request has ended. Waits only while the client is far
    /// behind. Dropping the future reports nothing.
    #[doc(alias = "notifications/progress")]
    pub fn progress(
        &self,
        done: impl Into<notifications::Amount>,
    ) -> notifications::ProgressUpdate<'_> {
        notifications::ProgressUpdate::new(self, done.into())
    }

    /// Sends a log message to the client, if it asked for messages this severe.
    /// Dropping the future before it is done sends nothing.
    #[doc(alias = "notifications/message")]
    pub async fn log(&self, level: LogLevel, data: impl Serialize) {
        notifications::log(self, level, None, &data).await;
    }

    /// [`log`](Ctx::log) with the name of the part of the program that speaks.
    pub async fn log_from(&self, logger: &str, level: LogLevel, data: impl Serialize) {
        notifications::log(self, level, Some(logger), &data).await;
    }

    /// Asks a legacy client something: `roots/list`, `sampling/createMessage` and so on.
    ///
    /// It fails at once where nobody could answer: the client did not declare what the
    /// question needs, or the revision has no such request, as the modern era has none at all.
    /// Params of a known method are written as the revision wants them. Dropping the future
    /// cancels the question on the client.
    ///
    /// ```
    /// use turnbuckle::{
    ///     Ctx, Server, ToolError, tool,
    ///     types::{BooleanSchema, ElicitAction, ElicitForm, ElicitResult, ElicitSchema},
    /// };
    /// async fn delete(ctx: Ctx) -> Result<&'static str, ToolError> {
    ///     let form = ElicitForm::new("Really?", ElicitSchema::new([("sure", BooleanSchema::new())]));
    ///     let answer = ctx.request("elicitation/create", form).await;
    ///     let answer = answer.map_err(|error| ToolError::new(error.to_string()))?;
    ///     match answer.decode::<ElicitResult>() {
    ///         Ok(answer) if answer.action == ElicitAction::Accept => Ok("deleted"),
    ///         _ => Ok("kept"),
    ///     }
    /// }
    /// let server = Server::new("files", "1.0").tool(tool("delete", delete));
    /// # let _ = server;
    /// ```
    pub async fn request(&self, method: &str, params: impl Serialize) -> Result<Raw> {
        self.put_through(method, Raw::new(&params), None).await
    }

    /// The same as [`request`](Ctx::request), and `on_progress` is told how far the client says that
    /// it is: in order, and before the answer. A client need not say anything. Dropping the future
    /// cancels the question on the client.
    pub async fn request_with_progress(
        &self,
        method: &str,
        params: impl Serialize,
        on_progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<Raw> {
        self.put_through(method, Raw::new(&params), Some(Box::new(on_progress))).await
    }

    async fn put_through(
        &self,
        method: &str,
        params: serde_json::Result<Raw>,
        on_progress: Option<ProgressListener>,
    ) -> Result<Raw> {
        let params = params.map_err(|error| {
            Error::new(ErrorKind::Codec, format!("the value can't be encoded: {error}"))
        })?;
        let params = self
            .question(method, params)
            .map_err(|why| Error::refused(format!("`{method}` can't be sent: {why}")))?;
        let params = self.traced(params);
        if !self.has_input_middleware() {
            return self.put(method.to_owned(), &params, on_progress).await;
        }
        let owned = method.to_owned();
        let send = move |ctx: Ctx, params| -> BoxFuture<'static, _> {
            Box::pin(async move { Ok(ctx.put(owned, &params, on_progress).await?) })
        };
        let answered = self.send_through_middleware(method, params, Box::new(send)).await;
        answered.map_err(|error| match error.downcast() {
            Ok(error) => *error,
            Err(error) => Error::refused(format!("`{method}` was not asked")).with_source(error),
        })
    }

    /// The params of a question, with the trace that its request belongs to.
    pub(crate) fn traced(&self, params: Raw) -> Raw {
        let trace = self.trace();
        if trace.is_empty() { params } else { trace.carried_in(params) }
    }

    /// Puts a question to the client, now that nothing stands before it.
    async fn put(
        &self,
        method: String,
        params: &Raw,
        on_progress: Option<ProgressListener>,
    ) -> Result<Raw> {
        if let Some(on_progress) = on_progress {
            return progress::answer(
                self.0.replies.ask(progress::asking(method, params)),
                on_progress,
            )
            .await;
        }
        let params =
            if *params == Raw::null() { String::new() } else { params.as_str().to_owned() };
        self.0.replies.ask(Outgoing::new(method, params)).done().await
    }

    /// The params of a question as they are sent, or why it can't be put to this client.
    fn question(&self, method: &str, params: Raw) -> Result<Raw, String> {
        let revision = self.0.revision;
        let Some(opened) = &self.0.opened else {
            return Err(format!(
                "in revision {revision} a server does not send requests; ask with `Ctx::ask`"
            ));
        };
        // What the protocol does not know is between this server and its client.
        let Some(known) = Method::from_name(method) else { return Ok(params) };
        if !known.sent_by_server(revision) {
            return Err(format!("revision {revision} has no such request to a client"));
        }
        match lacking(known, params.as_str(), &opened.client.capabilities, revision) {
            Some(capability) => {
                Err(format!("the client did not declare the capability `{capability}`"))
            }
            None => Ok(written_at(known, params, revision)),
        }
    }

    /// Lets the client's connection go while the work goes on: it comes back for the rest when it
    /// was told to. For long work behind proxies that keep no connection open for long.
    ///
    /// Only a session of the legacy era over HTTP knows this; anywhere else it does nothing.
    pub fn close_stream(&self) {
        self.0.replies.release();
    }

    /// Whether the client gave the request up, for work that can't be dropped: a sync
    /// function, or what was moved to another task.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
            || self.0.outer.as_ref().is_some_and(Ctx::is_cancelled)
    }

    /// Resolves when the client gives the request up. Dropping the future has no effect.
    pub async fn cancelled(&self) {
        loop {
            let notified = self.bell().notified();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }

    /// Runs `work` to its end even if the request is cancelled meanwhile: for a critical
    /// piece that must not be left half done. Dropping the returned future does not stop it.
    ///
    /// # Panics
    ///
    /// Passes on a panic of `work`, which is answered as any other panic of a handler.
    pub async fn shielded<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match tokio::spawn(TaskContext::current().future(work)).await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                // Only a runtime that is going down cancels the task: this one goes with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Notes that the handler panicked, for whoever tells of its end.
    pub(crate) fn panicked(&self) {
        self.0.panicked.store(true, Ordering::Release);
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.0.panicked.load(Ordering::Acquire)
    }

    pub(crate) fn said(&self) -> MutexGuard<'_, SentNotifications> {
        self.0.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many readings of resources it is part of.
    pub(crate) fn depth(&self) -> usize {
        self.0.outer.as_ref().map_or(0, |outer| outer.depth() + 1)
    }

    /// Adds a value for middleware further in and the handler.
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&self, value: T) {
        self.said().middleware.get_or_insert_default().added.insert(value);
    }

    /// Has a handler that outlives its request keep something until it ends.
    pub(crate) fn lend(&self, lent: &Arc<Lent>) {
        self.said().middleware.get_or_insert_default().lent.push(Arc::downgrade(lent));
    }

    /// What was lent to this request, and to those that it is part of.
    pub(crate) fn lent(&self) -> Vec<Arc<Lent>> {
        let mut lent = self.0.outer.as_ref().map(Ctx::lent).unwrap_or_default();
        let own = self.said();
        let own = own.middleware.iter().flat_map(|state| &state.lent);
        lent.extend(own.filter_map(Weak::upgrade));
        lent
    }

    /// Tells whatever outlives the handler that the request was given up.
    pub(crate) fn fire(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        // Made if need be: whoever looks at the bell now can't have missed the store above.
        self.bell().notify_waiters();
    }

    /// What rings when the request is given up.
    pub(crate) fn bell(&self) -> &Arc<Notify> {
        self.0.cancel.get_or_init(Arc::default)
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx")
            .field("request_id", &self.0.id)
            .field("revision", &self.0.revision)
            .finish_non_exhaustive()
    }
}

#[cfg(all(feature = "http", any(feature = "auth", all(test, feature = "client"))))]
impl Ctx {
    /// Of a request to which nothing can be said.
    pub(crate) fn unheard_of(revision: Revision, meta: Arc<Meta>, came: RequestOrigin) -> Ctx {
        Ctx(Arc::new(Inner {
            id: 1.into(),
            revision,
            meta,
            opened: None,
            token: None,
            log_level: None,
            replies: Replies::nowhere(),
            came,
            connection: Arc::default(),
            app: None,
            outer: None,
            in_flight: Arc::default(),
            cancelled: false.into(),
            cancel: OnceLock::new(),
            said: Mutex::default(),
            panicked: false.into(),
            asking: OnceLock::new(),
            peer: None,
        }))
    }
}

#[cfg(all(test, feature = "http", feature = "client"))]
impl Ctx {
    /// The same, of whatever request.
    pub(crate) fn unheard() -> Ctx {
        Ctx::unheard_of(Revision::LATEST, Arc::default(), RequestOrigin::default())
    }
}
