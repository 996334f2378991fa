//! Owns the legacy era without sessions: each request stands for itself, and its handler runs in
//! its answer. Does not own any state, because there is none.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use http::{Response, StatusCode};
use tokio::task::coop::consume_budget;
use turnbuckle_types::{
    ClientCapabilities, Implementation, Raw, RequestId, Revision, RpcError,
    jsonrpc::{Fault, Frame, Message, Request, write_error},
};

use super::{
    super::{
        super::server::{
            Endpoint, HttpBody, answer,
            drain::{Ended, Phase},
            future::{Asked, Begun},
            queue::Queue,
            running::Running,
        },
        Session,
        sessions::SessionRecord,
        token::Handshake,
    },
    Refused, ask, batch, is_initialize,
    pump::frame,
    request::take_permit,
    version,
};
use crate::dispatch::{
    BoxFuture, Came, Exchange, Incoming, Outcome, Outgoing, Reply, Replying,
    duplex::{Replies, panicked},
};

/// Begins what a message asks for.
pub(super) fn begin(asked: Asked, message: Result<Message, Fault>) -> Begun {
    let id = match &message {
        Ok(Message::Single(Frame::Request(request))) => Some(request.id.clone()),
        _ => None,
    };
    take(asked, message).unwrap_or_else(|refused| Begun::Answered(refused.answer(id.as_ref())))
}

fn take(asked: Asked, message: Result<Message, Fault>) -> Result<Begun, Refused> {
    match message {
        Ok(Message::Single(Frame::Request(request))) if is_initialize(&request) => {
            let outcome = asked.endpoint.host.initialize(&request.params).map(|(result, _)| result);
            let response = answer::outcome_as(StatusCode::OK, &request.id, outcome);
            Ok(Begun::Answered(response))
        }
        Ok(Message::Single(Frame::Request(request))) => {
            let session = session(&asked, revision(&asked)?);
            one(asked, &*session, request)
        }
        Ok(Message::Single(Frame::Notification(_) | Frame::Response(_))) => {
            revision(&asked)?;
            Ok(Begun::Answered(answer::empty(StatusCode::ACCEPTED)))
        }
        Ok(Message::Batch(items)) => {
            let session = session(&asked, revision(&asked)?);
            if !session.batches() {
                return Err(batch::not_here());
            }
            batch::refuse_initialize(&items)?;
            Ok(Begun::Later(Box::pin(many(asked, session, items))))
        }
        Err(fault) => Err(Refused { status: StatusCode::BAD_REQUEST, error: fault.error }),
    }
}

/// The revision of a request that no handshake came before.
// 2025-11-25 basic/transports §Protocol Version Header: without one it is 2025-03-26.
fn revision(asked: &Asked) -> Result<Revision, Refused> {
    let served = asked.endpoint.host.served();
    let declared = version(&asked.head.headers, served)?;
    let assumed = served.contains(&Revision::ASSUMED).then_some(Revision::ASSUMED);
    // The oldest that is served understands what every later one says.
    declared
        .or(assumed)
        .or(served.first().copied())
        .ok_or_else(|| Refused::bad("the MCP-Protocol-Version header is missing"))
}

fn session(asked: &Asked, revision: Revision) -> Arc<dyn Session> {
    let handshake = Handshake {
        revision,
        client: Implementation::new("unknown", "0"),
        capabilities: ClientCapabilities::new(),
    };
    asked.endpoint.host.session(None, handshake, SessionRecord::default())
}

fn one(asked: Asked, session: &dyn Session, request: Request) -> Result<Begun, Refused> {
    let endpoint = asked.endpoint.clone();
    let id = request.id.clone();
    let is_json = endpoint.legacy.settings.answers_json();
    let queue = Arc::new(Queue::new(endpoint.limits.queued_notifications));
    let way: Arc<dyn Replying> =
        if is_json { Arc::new(Silent) } else { Arc::new(Mute(queue.clone())) };
    let begun = match serve(&asked, session, request, way)? {
        Reply::Now(outcome) => Begun::Answered(answer::outcome_as(StatusCode::OK, &id, outcome)),
        Reply::Later(handler) if is_json => Begun::Later(Box::pin(async move {
            let (status, outcome) = finish(&endpoint, &id, handler).await;
            answer::outcome_as(status, &id, outcome)
        })),
        Reply::Later(handler) => {
            Begun::Running(Running::new(id, handler, queue, endpoint).always_ok())
        }
        Reply::Never => {
            let error = RpcError::internal("this request is not answered");
            Begun::Answered(answer::outcome_as(StatusCode::OK, &id, Err(error)))
        }
    };
    Ok(begun)
}

fn serve(
    asked: &Asked,
    session: &dyn Session,
    request: Request,
    way: Arc<dyn Replying>,
) -> Result<Reply, Refused> {
    let Request { id, method, params } = request;
    let permit = take_permit(&asked.endpoint)?;
    let mut incoming = Incoming::new(id.clone(), method, params, permit);
    incoming.came = Came::InSession(asked.head.clone());
    let reply = catch_unwind(AssertUnwindSafe(|| session.serve(incoming, Replies::own(way))));
    Ok(reply.unwrap_or_else(|payload| Reply::Now(Err(panicked(&id, payload.as_ref())))))
}

/// Runs a handler to its end, or to that of the endpoint. Dropping the future drops it.
async fn finish(
    endpoint: &Endpoint,
    id: &RequestId,
    mut handler: BoxFuture<'static, Outcome>,
) -> (StatusCode, Outcome) {
    let run = poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
            Ok(polled) => polled,
            Err(payload) => Poll::Ready(Err(panicked(id, payload.as_ref()))),
        }
    });
    tokio::select! {
        biased;
        outcome = run => {
            endpoint.drain.count(Ended::Finished);
            (StatusCode::OK, outcome)
        }
        () = endpoint.drain.reached(Phase::Over) => {
            endpoint.drain.count(Ended::Cancelled);
            let error = RpcError::internal("server is shutting down");
            (StatusCode::SERVICE_UNAVAILABLE, Err(error))
        }
    }
}

/// Serves a batch, one after another, as one array. Dropping the future drops what runs.
async fn many(
    asked: Asked,
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
                let served = match share.take(bytes) {
                    Ok(()) => serve(&asked, &*session, request, Arc::new(Silent)),
                    Err(error) => Ok(Reply::Now(Err(error))),
                };
                let outcome = match served {
                    Ok(Reply::Now(outcome)) => outcome,
                    Ok(Reply::Later(handler)) => finish(endpoint, &id, handler).await.1,
                    Ok(Reply::Never) => Err(RpcError::internal("this request is not answered")),
                    Err(refused) => Err(refused.error),
                };
                let text = frame(&id, outcome);
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

const NO_WAY_BACK: &str = "this server keeps no sessions";

/// A stream to a client that can't be asked anything.
struct Mute(Arc<Queue>);

impl Replying for Mute {
    fn poll_note(
        &self,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()> {
        self.0.poll_note(context, method, render)
    }

    fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll_clear(context)
    }

    fn at_shutdown(&self, farewell: Raw) {
        self.0.at_shutdown(farewell);
    }

    fn ask(&self, request: Outgoing) -> Exchange {
        ask::refused(&request.method, NO_WAY_BACK)
    }
}

/// No stream at all.
struct Silent;

impl Replying for Silent {
    fn poll_note(&self, _: &mut Context<'_>, _: &str, _: &mut dyn FnMut(&mut Vec<u8>)) -> Poll<()> {
        Poll::Ready(())
    }

    fn poll_clear(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn at_shutdown(&self, _: Raw) {}

    fn ask(&self, request: Outgoing) -> Exchange {
        ask::refused(&request.method, NO_WAY_BACK)
    }
}
