//! The client side of Streamable HTTP: one POST is one exchange, and dropping the exchange closes
//! its POST. [`legacy::client`](crate::transport::http::session::client) is the client side of sessions.

mod detached;
pub(super) mod events;
pub(super) mod flight;
mod post;
pub(super) mod progress;
pub(super) mod redirect;
pub(super) mod request;
pub(super) mod stack;
pub(super) mod timing;
pub(super) mod whole;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use serde_json::value::RawValue;
use turnbuckle_types::{HttpCancel, Method, Revision, RpcError, jsonrpc};

#[cfg(feature = "auth")]
pub(crate) use crate::transport::http::connect::NotAllowed;
pub(crate) use crate::transport::http::connect::{Dialing, Tls, Via};
use crate::{
    error::Closed,
    limits::Limits,
    protocol::headers,
    rpc::{
        Abandon, BoxFuture, Counters, Exchange, Mirror, Note, Outgoing, Serve, Transport,
        memory::MemoryBudget, pending::PendingTable,
    },
    transport::http::session::client as legacy,
};
use flight::{StopHandle, StopReason};
use legacy::LegacyClient;
pub(crate) use legacy::Resuming;
pub use redirect::Redirects;
pub(crate) use redirect::{origin, place};
use request::HttpRequest;
pub use stack::PostBody;
#[cfg(feature = "auth")]
pub(crate) use stack::{Body, ConnectError, SendFailure};
pub(crate) use stack::{HttpSender, OwnService, UserService};

/// A server at an address.
pub(crate) struct Http(Arc<HttpClientShared>);

/// What is done about what a server, or the way to it, does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    pub(crate) redirects: Redirects,
    pub(crate) resuming: Resuming,
}

/// What all requests to one server share.
pub(crate) struct HttpClientShared {
    pub(super) stack: HttpSender,
    pub(super) address: Uri,
    /// Headers that the user added to every request.
    own: HeaderMap,
    pub(super) redirects: Redirects,
    pub(super) serve: Arc<dyn Serve>,
    pub(super) limits: Limits,
    /// The bytes of responses that are being read.
    pub(super) memory: Arc<MemoryBudget>,
    table: Mutex<PendingTable<Arc<StopHandle>, ()>>,
    /// The version of the last request that was sent, for messages that carry none.
    version: Mutex<Option<Revision>>,
    pub(super) closed: OnceLock<Closed>,
    pub(super) counts: HttpCounts,
    /// Used once a legacy revision is spoken.
    pub(super) legacy: LegacyClient,
}

#[derive(Default)]
pub(super) struct HttpCounts {
    pub(super) late_answers: AtomicU64,
    stray_errors: AtomicU64,
    pub(super) dropped_requests: AtomicU64,
    pub(super) unreadable: AtomicU64,
    pub(super) overflowed: AtomicU64,
}

impl Http {
    /// `version` is what is spoken, where that is settled before the first request.
    pub(crate) fn new(
        stack: HttpSender,
        address: Uri,
        own: HeaderMap,
        manners: Manners,
        serve: Arc<dyn Serve>,
        limits: Limits,
        version: Option<Revision>,
    ) -> Http {
        Http(Arc::new(HttpClientShared {
            stack,
            address,
            own,
            redirects: manners.redirects,
            serve,
            memory: MemoryBudget::new(limits.memory_bytes),
            limits,
            table: Mutex::default(),
            version: Mutex::new(version),
            closed: OnceLock::new(),
            counts: HttpCounts::default(),
            legacy: LegacyClient::new(manners.resuming),
        }))
    }
}

impl HttpClientShared {
    pub(super) fn table(&self) -> MutexGuard<'_, PendingTable<Arc<StopHandle>, ()>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn version(&self) -> MutexGuard<'_, Option<Revision>> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a request was sent under. A handshake starts from nothing, so that the
    /// version of a probe before it never leaks onto it.
    pub(super) fn sends(&self, method: &str, revision: Option<Revision>) {
        if Method::from_name(method) == Some(Method::Initialize) {
            *self.version() = None;
        } else if revision.is_some() {
            *self.version() = revision;
        }
    }

    fn headers(&self, method: &str, params: &str, facts: &Mirror) -> HeaderMap {
        const MEDIA: HeaderValue = HeaderValue::from_static("application/json");
        const ACCEPT: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
        let mut headers = HeaderMap::with_capacity(8 + facts.params.len() + facts.extra.len());
        for (name, value) in &facts.extra {
            headers.append(name, value.clone());
        }
        headers.insert(header::CONTENT_TYPE, MEDIA);
        headers.insert(header::ACCEPT, ACCEPT);
        if let Some(revision) = facts.revision {
            let version = HeaderValue::from_static(revision.as_str());
            headers.insert(headers::VERSION, version);
        }
        let known = Method::from_name(method);
        let spelt = match known {
            Some(method) => Some(HeaderValue::from_static(method.as_str())),
            // One that can't be a header is for the server to refuse.
            None => HeaderValue::from_str(method).ok(),
        };
        if let Some(spelt) = spelt {
            headers.insert(headers::METHOD, spelt);
        }
        let member = known.map_or(facts.named_by, |method| method.row().mirrored);
        if let Some(name) = member.and_then(|member| name(facts, params, member))
            && let Ok(name) = HeaderValue::from_str(&headers::encode(&name))
        {
            headers.insert(headers::NAME, name);
        }
        for (name, value) in &facts.params {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::from_str(value))
            {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Adds the headers that the user gave the client. A header of one call wins.
    fn add_own(&self, headers: &mut HeaderMap) {
        let said: Vec<_> = self.own.keys().filter(|name| headers.contains_key(*name)).collect();
        for (name, value) in self.own.iter().filter(|(name, _)| !said.contains(name)) {
            headers.append(name, value.clone());
        }
    }

    /// The address, for people.
    pub(super) fn place(&self) -> String {
        place(&self.address)
    }

    /// An error that names no request.
    pub(super) fn stray(&self, error: RpcError) {
        self.counts.stray_errors.fetch_add(1, Relaxed);
        self.serve.stray(error);
    }

    async fn post(&self, note: Note) {
        let params = note.params.raw.as_ref().map_or("", |raw| raw.as_str());
        let facts = Mirror { revision: *self.version(), ..Mirror::default() };
        let headers = self.headers(&note.method, params, &facts);
        let mut message = Vec::with_capacity(params.len() + note.method.len() + 48);
        jsonrpc::write_notification(&mut message, &note.method, params);
        let post = HttpRequest::new(self, http::Method::POST, headers, Some(message.into()));
        request::say(self, &self.stack, post, timing::ACCEPT, &note.method).await;
    }

    /// What an outgoing `notifications/cancelled` does here: it closes the POST that it names
    /// and is itself not sent. One that names none is swallowed too, so that a late one never
    /// reaches the wire; only before a modern version is known could it be meant for the peer.
    /// One that names a call of the legacy era ends it too, and then it is posted by whoever
    /// sees to calls that were given up.
    fn cancels(&self, note: &Note) -> CancelMethod {
        if Method::from_name(&note.method) != Some(Method::Cancelled) {
            return CancelMethod::Other;
        }
        let named = note.subject().and_then(|id| self.table().sent(&id).cloned());
        // Here ids are matched as they are spelt: `"1"` does not close 1.
        let spelt = note.params.subject.as_ref().map(|raw| raw.as_str());
        if let Some(stop) = named
            && Some(&*stop.id.to_string()) == spelt
        {
            if let Some(call) = &stop.call {
                call.says(note.params.text());
            }
            stop.stop(StopReason::Cancelled);
            return CancelMethod::Done;
        }
        match *self.version() {
            Some(revision) if revision.http_cancel() == HttpCancel::CloseResponse => {
                CancelMethod::Done
            }
            _ => CancelMethod::Other,
        }
    }

    fn end(&self, closed: Closed) {
        if self.closed.set(closed).is_err() {
            return;
        }
        let (sent, _) = self.table().close();
        self.legacy.cut_off(sent.iter().cloned());
        sent.into_iter().for_each(|stop| stop.stop(StopReason::Closed));
        self.legacy.end();
    }

    /// Whether this is said in the words of the modern era.
    fn is_modern(revision: Option<Revision>) -> bool {
        revision.is_some_and(|revision| revision.has_request_metadata())
    }
}

/// Whoever forgets to close it leaves no task behind.
impl Drop for Http {
    fn drop(&mut self) {
        self.close_now();
    }
}

/// What a request is about: the sender knows, or its params say.
fn name<'a>(facts: &'a Mirror, params: &str, member: &str) -> Option<Cow<'a, str>> {
    if let Some(name) = &facts.name {
        return Some(name.into());
    }
    let members: HashMap<String, &RawValue> = serde_json::from_str(params).ok()?;
    serde_json::from_str::<String>(members.get(member)?.get()).ok().map(Cow::Owned)
}

enum CancelMethod {
    Done,
    Other,
}

impl Transport for Http {
    fn open(&self, request: Outgoing) -> Exchange {
        let abandonable =
            Method::from_name(&request.method).is_none_or(|method| method.row().abandonable);
        // A call that must run on even if it is dropped needs someone else to hold it.
        let keep_running = request.abandon == Abandon::Silence && abandonable;
        let exchange = if legacy::is_legacy(&request) {
            Exchange::new(legacy::SessionCall::new(self.0.clone(), request))
        } else {
            Exchange::new(post::PostExchange::new(self.0.clone(), request))
        };
        if keep_running { Exchange::new(detached::Detached::new(exchange)) } else { exchange }
    }

    fn notify(&self, note: Note) -> BoxFuture<'_, ()> {
        if let CancelMethod::Done = self.0.cancels(&note) {
            return Box::pin(async {});
        }
        Box::pin(async move {
            if self.0.closed.get().is_some() {
                return tracing::debug!(method = %note.method, "a notification after the close is dropped");
            }
            if HttpClientShared::is_modern(*self.0.version()) {
                return self.0.post(note).await;
            }
            legacy::notify(&self.0, note).await;
        })
    }

    fn agreed(&self, revision: Revision) {
        legacy::agreed(&self.0, revision);
    }

    fn established(&self) -> BoxFuture<'_, ()> {
        Box::pin(legacy::listen(&self.0))
    }

    #[cfg(feature = "sse-2024")]
    fn fall_back(&self) -> Option<BoxFuture<'_, crate::error::Result<Arc<dyn Transport>>>> {
        Some(Box::pin(crate::transport::http::http_sse::client::connect(&self.0)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.close_now();
        Box::pin(self.0.legacy.ended())
    }

    fn close_now(&self) {
        self.0.end(Closed::new("the connection was closed on this side"));
    }

    fn counters(&self) -> Counters {
        let counts = &self.0.counts;
        Counters {
            late_answers: counts.late_answers.load(Relaxed),
            stray_errors: counts.stray_errors.load(Relaxed),
            dropped_requests: counts.dropped_requests.load(Relaxed),
            unreadable: counts.unreadable.load(Relaxed),
            overflowed: counts.overflowed.load(Relaxed),
        }
    }
}
