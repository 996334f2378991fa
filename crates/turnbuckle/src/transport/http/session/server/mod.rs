//! The server's side of legacy Streamable HTTP: finds the session of a request, and dispatches its
//! messages.

mod batch;
mod delete;
mod early;
pub(crate) mod event;
mod get;
mod get_stream;
pub(crate) mod in_flight;
mod live;
mod pump;
pub(crate) mod question;
mod reader;
mod request;
mod settings;
mod stateless;

use std::{sync::Arc, time::SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use tokio::task::JoinHandle;
use turnbuckle_types::{
    Method as Rpc, RequestId, Revision, RpcError,
    jsonrpc::{Fault, Frame, FrameRole, Message, Notification, Request},
};

use super::super::{
    server::{
        HttpBody, answer,
        future::{RequestHead, ResponseStart},
    },
    timing::STOPPING,
};
use crate::{
    principal::Principal,
    protocol::{
        headers::{
            HeaderLookup, {self},
        },
        http_checks::is_modern_visit,
    },
    rpc::Note,
    transport::http::{server::security::guard::Refusal, session::id::SessionOwner},
};
use live::{ActiveSession, Live, Opened};
use request::Batched;
pub(crate) use settings::Settings;

/// The session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The last event that a client has seen.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

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
    session: Arc<ActiveSession>,
    opened: Arc<Opened>,
}

impl Legacy {
    pub(crate) fn new(served: &[Revision]) -> Legacy {
        Legacy {
            settings: Settings::default(),
            live: Arc::default(),
            is_served: served.iter().any(|revision| revision.has_handshake()),
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
pub(crate) fn refuse_version(asked: &RequestHead) -> Option<Response<HttpBody>> {
    let refused = version(&asked.head.headers, asked.endpoint.host.served()).err()?;
    Some(refused.answer(None))
}

/// Begins what a posted message asks for.
pub(crate) fn begin(asked: RequestHead, message: Result<Message, Fault>) -> ResponseStart {
    if asked.endpoint.legacy.settings.keeps_sessions() {
        return ResponseStart::Later(Box::pin(post(asked, message)));
    }
    stateless::begin(asked, message)
}

/// Begins what a GET or a DELETE asks for.
pub(crate) fn begin_method(asked: RequestHead, method: &Method) -> ResponseStart {
    let is_get = *method == Method::GET;
    let (endpoint, head) = (asked.endpoint.clone(), asked.head.clone());
    ResponseStart::Later(Box::pin(async move {
        let done = if is_get { get::serve(&asked).await } else { delete::serve(asked).await };
        let response = done.unwrap_or_else(|refused| refused.answer(None));
        match &endpoint.protection {
            Some(protection) => protection.stream_until_expiry(&head.extensions, response),
            None => response,
        }
    }))
}

async fn post(asked: RequestHead, message: Result<Message, Fault>) -> Response<HttpBody> {
    let id = match &message {
        Ok(Message::Single(Frame::Request(request))) => Some(request.id.clone()),
        _ => None,
    };
    take(&asked, message).await.unwrap_or_else(|refused| refused.answer(id.as_ref()))
}

async fn take(
    asked: &RequestHead,
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
            visit(asked).await?.session.in_flight.answer(response);
            Ok(answer::empty(StatusCode::ACCEPTED))
        }
        Ok(Message::Batch(items)) => batch::serve(asked, visit(asked).await?, items).await,
        Err(fault) => {
            if let (FrameRole::Response, Some(id)) = (fault.role, &fault.id) {
                visit(asked).await?.session.in_flight.unreadable(id, &fault.error);
            }
            Err(Refused { status: StatusCode::BAD_REQUEST, error: fault.error })
        }
    }
}

fn is_initialize(request: &Request) -> bool {
    Rpc::from_name(&request.method) == Some(Rpc::Initialize)
}

/// Opens a session. Nothing is kept: its id is all there is of it.
async fn initialize(asked: &RequestHead, request: &Request) -> Result<Response<HttpBody>, Refused> {
    if has_session(&asked.head.headers) {
        visit(asked).await?;
        let message = "this session has been initialized already; open another one";
        return Err(Refused::bad(message));
    }
    let endpoint = &asked.endpoint;
    let settings = &endpoint.legacy.settings;
    let (result, hello) = match endpoint.host.initialize(&request.params) {
        Ok(opened) => opened,
        Err(error) => return Ok(answer::outcome_as(StatusCode::OK, &request.id, Err(error))),
    };
    if !settings.sessions.has_room().await.map_err(live::unavailable)? {
        let message = "no session can be opened at the moment: too many have ended lately";
        return Err(Refused::unavailable(RpcError::internal(message)));
    }
    let expires = SystemTime::now().checked_add(settings.lifetime).ok_or_else(|| {
        Refused::unavailable(RpcError::internal("the session_lifetime is out of range"))
    })?;
    let (_, id) = settings.ids.create(&hello, owner(asked), expires);
    let mut response = answer::outcome_as(StatusCode::OK, &request.id, Ok(result));
    let id = HeaderValue::try_from(id).map_err(|_| {
        Refused::unavailable(RpcError::internal("the id of the session is no header"))
    })?;
    response.headers_mut().insert(SESSION, id);
    Ok(response)
}

fn owner(asked: &RequestHead) -> SessionOwner {
    let principal = asked.head.extensions.get::<Principal>();
    SessionOwner::new(principal.map(|principal| principal.name()))
}

/// The session that a request belongs to.
async fn visit(asked: &RequestHead) -> Result<Visit, Refused> {
    let endpoint = &asked.endpoint;
    let settings = &endpoint.legacy.settings;
    let served = endpoint.host.served();
    let id = match headers::find(&asked.head.headers, SESSION) {
        HeaderLookup::Once(id) => id.as_bytes(),
        HeaderLookup::Absent => {
            return Err(Refused::bad(
                "the Mcp-Session-Id header is missing; `initialize` gives one, which every later \
                 request has to carry",
            ));
        }
        HeaderLookup::Several => {
            return Err(Refused::bad("the Mcp-Session-Id header came more than once"));
        }
    };
    version(&asked.head.headers, served)?;
    let ticket = settings
        .ids
        .open(id, owner(asked), SystemTime::now())
        .filter(|ticket| served.contains(&ticket.hello.revision))
        .ok_or_else(unknown_session)?;
    let limits = &endpoint.limits;
    let live = &endpoint.legacy.live;
    let session = live.session(ticket.session, limits.sessions, limits.in_flight)?;
    let opened = session.open(&ticket, &*endpoint.host, &*settings.sessions).await?;
    if session.in_flight.is_closed() {
        return Err(unknown_session());
    }
    Ok(Visit { session, opened })
}

/// The revision that the headers declare, if they do.
// 2025-11-25 basic/transports §Protocol Version Header: an unsupported one MUST be 400.
fn version(headers: &HeaderMap, served: &[Revision]) -> Result<Option<Revision>, Refused> {
    let value = match headers::find(headers, headers::VERSION) {
        HeaderLookup::Absent => return Ok(None),
        HeaderLookup::Once(value) => headers::plain(value).unwrap_or_default(),
        HeaderLookup::Several => {
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
    /// Applies a notification, and waits until handlers that it stops are gone. Once polled, dropping
    /// the future has no effect.
    async fn note(&self, notification: Notification) {
        if let Some(task) = self.apply(notification) {
            // After the acknowledgement nothing is left of the request.
            let _ = tokio::time::timeout(STOPPING, task).await;
        }
    }

    /// Applies a notification. Returns the task that it stops.
    fn apply(&self, notification: Notification) -> Option<JoinHandle<()>> {
        let Notification { method, params } = notification;
        let note = Note { method, params };
        let in_flight = &self.session.in_flight;
        let stopped = match (Rpc::from_name(&note.method), note.subject()) {
            (Some(Rpc::Cancelled), Some(id)) => in_flight.cancel(&id).and_then(|request| {
                tracing::debug!(%id, "the client cancelled a request");
                (request.batched == Batched::No).then(|| self.session.task(&request.stream))?
            }),
            (Some(Rpc::Progress), Some(id)) => {
                in_flight.progress(&id, note.clone());
                None
            }
            _ => None,
        };
        self.opened.service.note(note);
        stopped
    }
}

impl Refused {
    fn bad(message: impl Into<std::borrow::Cow<'static, str>>) -> Refused {
        Refused { status: StatusCode::BAD_REQUEST, error: RpcError::invalid_request(message) }
    }

    fn unavailable(error: RpcError) -> Refused {
        Refused { status: StatusCode::SERVICE_UNAVAILABLE, error }
    }

    fn answer(&self, id: Option<&RequestId>) -> Response<HttpBody> {
        answer::error(self.status, id, &self.error)
    }
}
