//! Owns the course of one POST: sent, answered by one body or a stream, taken up again where
//! that broke off, and sent once more where the session was gone.
//! Does not own who waits for it: a caller polls it, or the control task.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use turnbuckle_types::{Raw, RequestId};

use super::{
    CallState, ClientSession, HttpClientShared, lock,
    receive::{self, OwnCall, StreamOrigin},
    reconnect::{self, StreamOwner},
    restart,
    send::{self, session_of},
    source::{ResumableStream, StreamItem},
};
use crate::{
    error::{Error, Executed, Result},
    rpc::Outgoing,
    transport::http::client::{
        events::{out_of_memory, too_long, too_much},
        request,
        stack::Body,
        whole::{
            CollectedBody, {self},
        },
    },
};

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    /// It opens the session.
    Opening,
    CallState,
}

/// How a POST came out.
enum PostEnd {
    Ended(Result<Raw>),
    /// The server does not know the session, and so ran nothing.
    Gone(Error),
}

/// Runs one request to its end. Dropping the future closes what is open.
pub(super) async fn run(
    wire: Arc<HttpClientShared>,
    call: Arc<CallState>,
    id: RequestId,
    request: Outgoing,
    kind: RequestPurpose,
) -> Result<Raw> {
    wire.legacy.freed(&id).await;
    let mut message = Vec::with_capacity(request.params.len() + request.method.len() + 96);
    request.write(&id, &mut message);
    if kind == RequestPurpose::Opening {
        *lock(&wire.legacy.opening) = Some(request.params);
    }
    let post = SessionPost { wire: &wire, call: &call, id: &id, kind };
    let message = Bytes::from(message);
    let session = wire.legacy.session();
    let refused = match post.once(&session, message.clone()).await {
        PostEnd::Ended(result) => return result,
        PostEnd::Gone(refused) => refused,
    };
    call.unsent();
    if call.is_given_up() {
        return Err(refused);
    }
    restart::restart(&wire, session.generation).await.map_err(|error| {
        let message = format!("{refused}, and a new session could not be opened: {error}");
        Error::new(error.kind(), message).with_status(404).with_source(error)
    })?;
    match post.once(&wire.legacy.session(), message).await {
        PostEnd::Ended(result) => result,
        PostEnd::Gone(error) => Err(error),
    }
}

struct SessionPost<'a> {
    wire: &'a Arc<HttpClientShared>,
    call: &'a CallState,
    id: &'a RequestId,
    kind: RequestPurpose,
}

impl SessionPost<'_> {
    async fn once(&self, current: &ClientSession, message: Bytes) -> PostEnd {
        let wire = self.wire;
        // An opening is sent in none, and what is said on its stream belongs to the next.
        let generation = current.generation + 1;
        let mut opening = ClientSession { generation, ..ClientSession::default() };
        let session = if self.kind == RequestPurpose::Opening { &opening } else { current };
        let post = send::post(wire, session, message).with(&self.call.extra);
        self.call.under(session);
        let response = match request::send(wire, &wire.stack, post, Some(self.call)).await {
            Ok(response) => response,
            Err(error) => return PostEnd::Ended(Err(error)),
        };
        self.call.answered();
        let (head, body) = response.into_parts();
        if self.kind == RequestPurpose::Opening && head.status.is_success() {
            match session_of(&head.headers) {
                Ok(id) => {
                    opening.id.clone_from(&id);
                    *lock(&wire.legacy.offered) = id;
                }
                Err(error) => return PostEnd::Ended(Err(error)),
            }
        }
        let session = if self.kind == RequestPurpose::Opening { &opening } else { current };
        if whole::Kind::of(&head.headers) == whole::Kind::Events && head.status.is_success() {
            wire.legacy.begins_early.store(true, Relaxed);
            return PostEnd::Ended(self.stream(session, body).await);
        }
        match self.whole(session, head.status, &head.headers, body).await {
            // 2025-11-25 transports §Session Management: MUST start a new session.
            Err(error) if head.status == StatusCode::NOT_FOUND && session.id.is_some() => {
                let message = format!("the session is gone: {error}");
                PostEnd::Gone(Error::http(404, message).with_executed(Executed::No))
            }
            result => PostEnd::Ended(result),
        }
    }

    /// Reads one body.
    async fn whole(
        &self,
        session: &ClientSession,
        status: StatusCode,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Raw> {
        let wire = self.wire;
        let kind = whole::Kind::of(headers);
        let batches = kind == whole::Kind::Json && status.is_success() && wire.serve.batches();
        let mut whole = CollectedBody::new(body, status, headers, wire);
        let text = std::future::poll_fn(|context| whole.poll_text(wire, context)).await?;
        if batches && text.trim_ascii_start().starts_with(b"[") {
            return receive::receive(wire, self.from(session), text).unwrap_or_else(|| {
                Err(Error::protocol("the server's batch has no answer to this request"))
            });
        }
        whole.judge(wire, Some(self.id), text)
    }

    fn from<'b>(&'b self, session: &'b ClientSession) -> StreamOrigin<'b> {
        StreamOrigin { session, own: Some(OwnCall { call: self.call, id: self.id }) }
    }

    /// Reads a stream to the answer, on as many connections as that takes.
    async fn stream(&self, session: &ClientSession, body: Body) -> Result<Raw> {
        let wire = self.wire;
        let most = Some(wire.limits.stream_bytes);
        let mut source = ResumableStream::new(Some(body), wire, most);
        loop {
            match source.next().await {
                StreamItem::Message(data) => {
                    if let Some(result) = receive::receive(wire, self.from(session), data) {
                        source.finish().await;
                        return result;
                    }
                    self.call.drained().await;
                }
                StreamItem::TooLong => return Err(too_long(wire)),
                StreamItem::TooMuch => return Err(too_much(wire)),
                StreamItem::OutOfMemory(refused) => return Err(out_of_memory(wire, &refused)),
                StreamItem::Ended(ending) => {
                    let for_good = !source.is_resumable()
                        || self.kind == RequestPurpose::Opening
                        || self.call.is_given_up();
                    if for_good {
                        return Err(source.lost(wire, ending));
                    }
                    let whose = StreamOwner::CallState(&self.call.extra);
                    reconnect::reconnect(wire, session, &mut source, ending, whose).await?;
                }
            }
        }
    }
}
