//! The server's side of legacy Streamable HTTP.
//!
//! Owns: which session a request belongs to, and what becomes of each message in it. Does not own:
//! who may speak to the endpoint, nor what a message means.

mod aside;
mod ask;
mod batch;
pub(crate) mod body;
mod delete;
mod desk;
mod early;
mod event;
mod get;
mod live;
mod pump;
mod request;
mod settings;
mod stateless;
mod stream;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use tokio::task::JoinHandle;
use turnbuckle_types::{
    Era, Method as Rpc, RequestId, Revision, RpcError,
    jsonrpc::{Fault, Frame, Message, Notification, Request, Role},
};

pub(crate) use settings::Settings;

use super::{
    super::{
        guard::Refusal,
        server::{
            HttpBody, answer,
            future::{Asked, Begun},
        },
    },
    token::{self, Owner},
};
use crate::{
    dispatch::Note,
    envelope::{
        ladder::is_modern_visit,
        mirror::{self, Found, Headers as _},
    },
    principal::Principal,
};
use live::{Entry, Live, Opened};
use request::Batched;

/// The session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The last event that a client has seen.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How long a cancellation waits for its handler to be gone before it is acknowledged.
const STOPPING: Duration = Duration::from_secs(1);

/// What an endpoint has for the legacy era.
#[derive(Clone)]
pub(crate) struct Legacy {
    pub(crate) settings: Settings,
    pub(crate) live: Arc<Live>,
    is_served: bool,
}

/// Why a request is refused, before it has become one of its session.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    error: RpcError,
}

/// A session, while a request uses it.
struct Visit {
    entry: Arc<Entry>,
    opened: Arc<Opened>,
}

impl Legacy {
    pub(crate) fn new(served: &[Revision]) -> Legacy {
        Legacy {
            settings: Settings::default(),
            live: Arc::default(),
            is_served: served.iter().any(|revision| revision.era() == Era::Legacy),
        }
    }

    /// Whether any revision of the era is served.
    pub(crate) fn is_served(&self) -> bool {
        self.is_served
    }

    /// What every method but POST is answered, by the headers alone; `None` if it is for a session.
    pub(crate) fn refuse_method(&self, method: &Method, headers: &HeaderMap) -> Option<Refusal> {
        let has_sessions = self.is_served && self.settings.keeps_sessions();
        if !has_sessions || is_modern_visit(headers) {
            let message = "this endpoint only takes POST: every message is a request of its own";
            return Some(not_allowed("POST", message));
        }
        if *method != Method::GET && *method != Method::DELETE {
            let message = "this endpoint only takes POST, and GET and DELETE for sessions";
            return Some(not_allowed("GET, POST, DELETE", message));
        }
        None
    }
}

fn not_allowed(allow: &'static str, message: &'static str) -> Refusal {
    Refusal { status: StatusCode::METHOD_NOT_ALLOWED, allow: Some(allow), message: message.into() }
}

/// Whether a request names a session.
pub(crate) fn has_session(headers: &HeaderMap) -> bool {
    headers.contains_key(SESSION)
}

/// What a message that gets no answer is refused with, if its header is of no revision that is
/// served.
pub(crate) fn refuse_version(asked: &Asked) -> Option<Response<HttpBody>> {
    let refused = version(&asked.head.headers, asked.endpoint.host.served()).err()?;
    Some(refused.answer(None))
}

/// Begins what a posted message asks for.
pub(crate) fn begin(asked: Asked, message: Result<Message, Fault>) -> Begun {
    if asked.endpoint.legacy.settings.keeps_sessions() {
        return Begun::Later(Box::pin(post(asked, message)));
    }
    stateless::begin(asked, message)
}

/// Begins what a GET or a DELETE asks for.
pub(crate) fn begin_method(asked: Asked, method: &Method) -> Begun {
    let is_get = *method == Method::GET;
    let (endpoint, head) = (asked.endpoint.clone(), asked.head.clone());
    Begun::Later(Box::pin(async move {
        let done = if is_get { get::serve(&asked).await } else { delete::serve(asked).await };
        let response = done.unwrap_or_else(|refused| refused.answer(None));
        match &endpoint.protection {
            Some(protection) => protection.stream_until_expiry(&head.extensions, response),
            None => response,
        }
    }))
}

async fn post(asked: Asked, message: Result<Message, Fault>) -> Response<HttpBody> {
    let id = match &message {
        Ok(Message::Single(Frame::Request(request))) => Some(request.id.clone()),
        _ => None,
    };
    take(&asked, message).await.unwrap_or_else(|refused| refused.answer(id.as_ref()))
}

async fn take(
    asked: &Asked,
    message: Result<Message, Fault>,
) -> Result<Response<HttpBody>, Refused> {
    match message {
        Ok(Message::Single(Frame::Request(request))) if is_initialize(&request) => {
            initialize(asked, &request).await
        }
        Ok(Message::Single(Frame::Request(request))) => {
            request::serve(asked, visit(asked).await?, request).await
        }
        Ok(Message::Single(Frame::Notification(note))) => {
            visit(asked).await?.note(note).await;
            Ok(answer::empty(StatusCode::ACCEPTED))
        }
        Ok(Message::Single(Frame::Response(response))) => {
            visit(asked).await?.entry.desk.answer(response);
            Ok(answer::empty(StatusCode::ACCEPTED))
        }
        Ok(Message::Batch(items)) => batch::serve(asked, visit(asked).await?, items).await,
        Err(fault) => {
            if let (Role::Response, Some(id)) = (fault.role, &fault.id) {
                visit(asked).await?.entry.desk.unreadable(id, &fault.error);
            }
            Err(Refused { status: StatusCode::BAD_REQUEST, error: fault.error })
        }
    }
}

fn is_initialize(request: &Request) -> bool {
    Rpc::from_name(&request.method) == Some(Rpc::Initialize)
}

/// Opens a session. Nothing is kept: its id is all there is of it.
async fn initialize(asked: &Asked, request: &Request) -> Result<Response<HttpBody>, Refused> {
    if has_session(&asked.head.headers) {
        visit(asked).await?;
        let message = "this session has been initialized already; open another one";
        return Err(Refused::bad(message));
    }
    let endpoint = &asked.endpoint;
    let settings = &endpoint.legacy.settings;
    let (result, handshake) = match endpoint.host.initialize(&request.params) {
        Ok(opened) => opened,
        Err(error) => return Ok(answer::outcome_as(StatusCode::OK, &request.id, Err(error))),
    };
    let expires = SystemTime::now()
        .checked_add(settings.lifetime)
        .ok_or_else(|| Refused::unavailable("the lifetime of sessions is no time"))?;
    let (_, id) = token::mint(&settings.keys, &handshake, owner(asked), expires);
    let mut response = answer::outcome_as(StatusCode::OK, &request.id, Ok(result));
    let id = HeaderValue::try_from(id)
        .map_err(|_| Refused::unavailable("the id of the session is no header"))?;
    response.headers_mut().insert(SESSION, id);
    Ok(response)
}

fn owner(asked: &Asked) -> Owner {
    let principal = asked.head.extensions.get::<Principal>();
    Owner::new(principal.map(|principal| principal.name()))
}

/// The session that a request belongs to.
async fn visit(asked: &Asked) -> Result<Visit, Refused> {
    let endpoint = &asked.endpoint;
    let settings = &endpoint.legacy.settings;
    let served = endpoint.host.served();
    let id = match asked.head.headers.find(SESSION.as_str()) {
        Found::Once(id) => id,
        Found::Absent => {
            return Err(Refused::bad(
                "the Mcp-Session-Id header is missing; `initialize` gives one, which every later \
                 request has to carry",
            ));
        }
        Found::Several => {
            return Err(Refused::bad("the Mcp-Session-Id header came more than once"));
        }
    };
    version(&asked.head.headers, served)?;
    let ticket = token::open(&settings.keys, id, owner(asked), SystemTime::now())
        .filter(|ticket| served.contains(&ticket.handshake.revision))
        .ok_or_else(unknown_session)?;
    let limits = &endpoint.limits;
    let entry = endpoint.legacy.live.entry(ticket.session, limits.sessions, limits.in_flight)?;
    let opened = entry.open(ticket, &*endpoint.host, &*settings.sessions).await?;
    if entry.desk.is_closed() {
        return Err(unknown_session());
    }
    Ok(Visit { entry, opened })
}

/// The revision that the headers declare, if they do.
// 2025-11-25 basic/transports §Protocol Version Header: an unsupported one MUST be 400.
fn version(headers: &HeaderMap, served: &[Revision]) -> Result<Option<Revision>, Refused> {
    let value = match headers.find(mirror::VERSION) {
        Found::Absent => return Ok(None),
        Found::Once(value) => mirror::plain(value).unwrap_or_default(),
        Found::Several => {
            return Err(Refused::bad("the MCP-Protocol-Version header came more than once"));
        }
    };
    let is_served = |revision: &Revision| served.contains(revision);
    if let Some(revision) = value.parse().ok().filter(is_served) {
        return Ok(Some(revision));
    }
    let names: Vec<_> = served.iter().map(|revision| revision.as_str()).collect();
    // Clients of other makes look for these words.
    Err(Refused::bad(format!(
        "Unsupported protocol version: {value} (supported versions: {})",
        names.join(", ")
    )))
}

fn unknown_session() -> Refused {
    let error = RpcError::invalid_request("there is no such session; open one with `initialize`");
    Refused { status: StatusCode::NOT_FOUND, error }
}

impl Visit {
    /// Applies a notification, and waits until what it stops is gone. Dropping the future, once it
    /// was polled, takes nothing back.
    async fn note(&self, notification: Notification) {
        if let Some(task) = self.apply(notification) {
            // So that whoever has the acknowledgement finds nothing left of it.
            let _ = tokio::time::timeout(STOPPING, task).await;
        }
    }

    /// Applies a notification. What is given back is a task that it stops.
    fn apply(&self, notification: Notification) -> Option<JoinHandle<()>> {
        let Notification { method, params } = notification;
        let note = Note { method, params };
        let stopped = match (Rpc::from_name(&note.method), note.subject()) {
            (Some(Rpc::Cancelled), _) => self.cancel(&note),
            (Some(Rpc::Progress), Some(id)) => {
                self.entry.desk.note(&id, note.clone());
                None
            }
            _ => None,
        };
        self.opened.session.note(note);
        stopped
    }

    /// Ends a request that the client gave up: it is dropped, and nothing more is said of it.
    fn cancel(&self, note: &Note) -> Option<JoinHandle<()>> {
        let id = note.subject()?;
        let (serial, flight) = self.entry.desk.cancel(&id)?;
        tracing::debug!(%id, "the client cancelled a request");
        if flight.batched == Batched::Yes {
            // Others are answered on the same stream.
            flight.stop();
            flight.stream.leave(serial);
            return None;
        }
        self.entry.desk.kill(&flight.stream);
        self.entry.task(&flight.stream)
    }
}

impl Refused {
    fn bad(message: impl Into<std::borrow::Cow<'static, str>>) -> Refused {
        Refused { status: StatusCode::BAD_REQUEST, error: RpcError::invalid_request(message) }
    }

    fn unavailable(message: impl Into<std::borrow::Cow<'static, str>>) -> Refused {
        Refused { status: StatusCode::SERVICE_UNAVAILABLE, error: RpcError::internal(message) }
    }

    fn answer(&self, id: Option<&RequestId>) -> Response<HttpBody> {
        answer::error(self.status, id, &self.error)
    }
}
