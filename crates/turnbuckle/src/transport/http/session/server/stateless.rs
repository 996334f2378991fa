//! Serves the legacy era without sessions: each request by itself, like one of the modern era.

use std::{future::poll_fn, sync::Arc};

use super::{
    super::{
        super::server::{
            HttpBody, answer,
            future::{RequestHead, ResponseStart, call, incoming},
            response_stream::{Format, ResponseStream},
            running::{Polled, RunningHttpRequest},
        },
        Session,
    },
    Refused, batch, is_initialize,
    pump::frame,
    version,
};
use crate::{
    protocol::classify::ClientHello,
    rpc::{Outcome, Replies, RequestOrigin},
    transport::http::session::store::SessionRecord,
};
use http::{Response, StatusCode};
use tokio::task::coop::consume_budget;
use turnbuckle_types::{
    ClientCapabilities, Implementation, Initialize, Revision,
    jsonrpc::{Fault, Frame, Message, Request, write_error},
};

/// Begins what a message asks for.
pub(super) fn begin(asked: RequestHead, message: Result<Message, Fault>) -> ResponseStart {
    let id = match &message {
        Ok(Message::Single(Frame::Request(request))) => Some(request.id.clone()),
        _ => None,
    };
    take(asked, message)
        .unwrap_or_else(|refused| ResponseStart::Answered(refused.answer(id.as_ref())))
}

fn take(asked: RequestHead, message: Result<Message, Fault>) -> Result<ResponseStart, Refused> {
    match message {
        Ok(Message::Single(Frame::Request(request))) if is_initialize(&request) => {
            let outcome = asked.endpoint.host.initialize(&request.params).map(|(result, _)| result);
            let response = answer::outcome_as(StatusCode::OK, &request.id, outcome);
            Ok(ResponseStart::Answered(response))
        }
        Ok(Message::Single(Frame::Request(request))) => {
            let session = session(&asked, revision(&asked)?);
            one(asked, &*session, request)
        }
        Ok(Message::Single(Frame::Notification(_) | Frame::Response(_))) => {
            revision(&asked)?;
            Ok(ResponseStart::Answered(answer::empty(StatusCode::ACCEPTED)))
        }
        Ok(Message::Batch(items)) => {
            let session = session(&asked, revision(&asked)?);
            if !session.batches() {
                return Err(batch::not_here());
            }
            batch::refuse_initialize(&items)?;
            Ok(ResponseStart::Later(Box::pin(many(asked, session, items))))
        }
        Err(fault) => Err(Refused { status: StatusCode::BAD_REQUEST, error: fault.error }),
    }
}

/// The revision of a request that no handshake came before.
// 2025-11-25 basic/transports §Protocol Version Header: without one it is 2025-03-26.
fn revision(asked: &RequestHead) -> Result<Revision, Refused> {
    let served = asked.endpoint.host.served();
    let declared = version(&asked.head.headers, served)?;
    let assumed = served.contains(&Revision::ASSUMED).then_some(Revision::ASSUMED);
    // The oldest that is served understands what every later one says.
    declared
        .or(assumed)
        .or(served.first().copied())
        .ok_or_else(|| Refused::bad("the MCP-Protocol-Version header is missing"))
}

fn session(asked: &RequestHead, revision: Revision) -> Arc<dyn Session> {
    let client = Implementation::new("unknown", "0");
    let client = Initialize::new(revision.as_str(), ClientCapabilities::new(), client);
    let hello = Arc::new(ClientHello { revision, client });
    asked.endpoint.host.session(None, hello, SessionRecord::default())
}

fn one(
    asked: RequestHead,
    session: &dyn Session,
    request: Request,
) -> Result<ResponseStart, Refused> {
    let id = request.id.clone();
    let is_json = asked.endpoint.legacy.settings.answers_json();
    let format = if is_json { Format::Json } else { Format::Events };
    Ok(match start(&asked, session, request, format)? {
        Ok(handler) => ResponseStart::Running(handler),
        Err(outcome) => ResponseStart::Answered(answer::outcome_as(StatusCode::OK, &id, outcome)),
    })
}

/// Starts a request. Returns its handler, or as an `Err` the outcome if it needs none.
fn start(
    asked: &RequestHead,
    session: &dyn Session,
    request: Request,
    format: Format,
) -> Result<Result<RunningHttpRequest, Outcome>, Refused> {
    let endpoint = &asked.endpoint;
    let id = request.id.clone();
    let permit = asked.permit().map_err(Refused::unavailable)?;
    let incoming = incoming(request, permit, RequestOrigin::InSession(asked.head.clone()));
    let limit = endpoint.limits.queued_notifications;
    let stream = Arc::new(ResponseStream::new(format, limit, NO_SESSIONS, asked.memory.clone()));
    let replies = Replies::http(stream.clone(), None);
    let handler = call(session, &id, incoming, replies);
    Ok(handler.map(|handler| RunningHttpRequest::new(id, handler, stream, endpoint).always_ok()))
}

/// Polls a handler without events to its end. Dropping the future drops the handler.
async fn finish(mut handler: RunningHttpRequest) -> Outcome {
    loop {
        if let Polled::Done(done) = poll_fn(|context| handler.poll(context)).await {
            handler.count(&done);
            return done.outcome;
        }
    }
}

/// Serves a batch, one after another, as one array. Dropping the future drops what runs.
async fn many(
    asked: RequestHead,
    session: Arc<dyn Session>,
    items: Vec<Result<Frame, Fault>>,
) -> Response<HttpBody> {
    let endpoint = &asked.endpoint;
    let mut answers = Vec::new();
    let (mut share, mut bytes) = (batch::Share::new(&endpoint.limits), 0);
    for item in items {
        consume_budget().await;
        if !batch::is_asking(&item) {
            continue;
        }
        match item {
            Ok(Frame::Request(request)) => {
                let id = request.id.clone();
                let started = match share.take(bytes) {
                    Ok(()) => start(&asked, &*session, request, Format::Json),
                    Err(error) => Ok(Err(Err(error))),
                };
                let outcome = match started {
                    Ok(Ok(handler)) => finish(handler).await,
                    Ok(Err(outcome)) => outcome,
                    Err(refused) => Err(refused.error),
                };
                let text = frame(&id, &outcome);
                bytes += text.len();
                answers.push(text);
            }
            Ok(_) => {}
            Err(fault) => {
                let mut text = Vec::new();
                write_error(&mut text, fault.id.as_ref(), &fault.error);
                answers.push(text);
            }
        }
    }
    match batch::array(&answers) {
        Some(text) => answer::text(StatusCode::OK, text),
        None => answer::empty(StatusCode::ACCEPTED),
    }
}

const NO_SESSIONS: &str =
    "this server keeps no sessions, so that there is no way to ask the client";
