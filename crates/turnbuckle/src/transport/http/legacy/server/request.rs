//! Owns how a request of a session begins: it is entered, served, polled once, and answered at
//! once or by a stream. Does not own what runs it from then on.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
};

use http::{Response, StatusCode};
use turnbuckle_types::{Method, RpcError, code, jsonrpc::Request};

use super::{
    super::super::server::{
        Endpoint, HttpBody, answer,
        drain::{Ended, Phase},
        future::Asked,
    },
    Refused, Visit,
    ask::Line,
    body::{Following, Reader},
    desk,
    event::StreamNumber,
    pump::{Handler, Pump, frame},
    stream::{Owner, Priming, Shape, Stream},
    unknown_session,
};
use crate::dispatch::{
    BoxFuture, Came, Incoming, Outcome, Reply,
    duplex::{Permit, Replies, panicked},
    table::Serial,
};

/// What a request has become.
pub(super) enum Started {
    Answered(Serial, Outcome),
    Running(Handler),
    /// The client gave it up, meanwhile or before it came.
    Cancelled,
}

/// Serves one request. Dropping the future stops nothing once the handler has begun to wait.
pub(super) async fn serve(
    asked: &Asked,
    visit: Visit,
    request: Request,
) -> Result<Response<HttpBody>, Refused> {
    let endpoint = &asked.endpoint;
    let stream = visit.stream(endpoint);
    let id = request.id.clone();
    let changes = changes_record(&request);
    let reader = reader(&stream)?;
    let started = start(asked, &visit, request, &stream, Batched::No).await?;
    let answered = match started {
        Started::Cancelled => return Ok(answer::ended_events()),
        Started::Answered(serial, outcome) if !stream.has_said() => {
            stream.leave(serial);
            Some(outcome)
        }
        Started::Answered(serial, outcome) => {
            stream.prime();
            visit.entry.desk.reply(&stream, serial, frame(&id, outcome));
            visit.pump(endpoint, &stream, None);
            None
        }
        Started::Running(handler) => {
            stream.prime();
            if !visit.entry.desk.is_running(&id, handler.serial) {
                return Ok(answer::ended_events());
            }
            // One that is cancelled from here on finds its stream stopped.
            visit.pump(endpoint, &stream, Some(handler));
            None
        }
    };
    let saved = visit.opened.save(visit.entry.id, &*endpoint.legacy.settings.sessions).await;
    match saved {
        // It asked for just that.
        Err(refused) if changes => return Err(refused),
        // It may have done what can't be done twice: the failure is in the log.
        _ => {}
    }
    // The pump holds the entry if something runs.
    drop(visit);
    match answered {
        Some(outcome) => Ok(answer::outcome_as(StatusCode::OK, &id, outcome)),
        None => Ok(respond(endpoint, &stream, reader, Batched::No).await),
    }
}

/// Whether a request is there to change what is remembered of its session.
fn changes_record(request: &Request) -> bool {
    let method = Method::from_name(&request.method);
    matches!(method, Some(Method::SetLevel | Method::Subscribe | Method::Unsubscribe))
}

/// Whether answers are those of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Batched {
    Yes,
    No,
}

/// The answer that a stream becomes: its events as they come, or all of it as JSON.
pub(super) async fn respond(
    endpoint: &Arc<Endpoint>,
    stream: &Stream,
    reader: Reader,
    batched: Batched,
) -> Response<HttpBody> {
    if stream.shape() != Shape::Json {
        return answer::events(HttpBody::other(Following::new(
            Vec::new(),
            Some(reader),
            endpoint.keep_alive,
        )));
    }
    let mut text = reader.whole().await;
    if text.is_empty() {
        return answer::ended_events();
    }
    if batched == Batched::Yes {
        text.insert(0, b'[');
        text.push(b']');
    }
    // The client may ask another server.
    let is_over = endpoint.drain.phase() == Phase::Over;
    let status = if is_over { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    answer::text(status, text)
}

/// Whoever reads a stream first. It is there before the handler is, which waits for nobody else.
pub(super) fn reader(stream: &Arc<Stream>) -> Result<Reader, Refused> {
    let (reader, _) = Reader::attach(stream.clone()).map_err(|_| unknown_session())?;
    Ok(reader)
}

/// Enters a request and polls its handler once. This never waits.
pub(super) async fn start(
    asked: &Asked,
    visit: &Visit,
    request: Request,
    stream: &Arc<Stream>,
    batched: Batched,
) -> Result<Started, Refused> {
    let endpoint = &asked.endpoint;
    let changes = changes_record(&request);
    let Request { id, method, params } = request;
    let desk = &visit.entry.desk;
    let permit = take_permit(endpoint)?;
    let serial = match desk.accept(&id, stream, batched) {
        Err(desk::Refused::Cancelled) => return Ok(Started::Cancelled),
        accepted => accepted.map_err(refused)?,
    };
    let mut incoming = Incoming::new(id.clone(), method, params, permit);
    incoming.came = Came::InSession(asked.head.clone());
    let replies = Replies::own(Arc::new(Line {
        owner: Owner::Request(serial),
        stream: stream.clone(),
        desk: desk.clone(),
    }));
    let session = &visit.opened.session;
    let reply = catch_unwind(AssertUnwindSafe(|| session.serve(incoming, replies)))
        .unwrap_or_else(|payload| Reply::Now(Err(panicked(&id, payload.as_ref()))));
    let outcome = match reply {
        Reply::Now(outcome) => outcome,
        Reply::Never => Err(RpcError::internal("this request is not answered")),
        Reply::Later(future) => {
            let future = if changes { visit.saving(endpoint, future) } else { future };
            let mut handler = Handler { id: id.clone(), serial, future };
            match poll_fn(|context| Poll::Ready(handler.poll(context))).await {
                Poll::Pending => return Ok(Started::Running(handler)),
                Poll::Ready(outcome) => {
                    endpoint.drain.count(Ended::Finished);
                    outcome
                }
            }
        }
    };
    if !desk.finish(&id, serial) {
        return Ok(Started::Cancelled);
    }
    Ok(Started::Answered(serial, outcome))
}

pub(super) fn take_permit(endpoint: &Endpoint) -> Result<Permit, Refused> {
    let limit = endpoint.limits.http_in_flight;
    Permit::take(&endpoint.in_flight, limit).map_err(|_| {
        Refused::unavailable(format!(
            "too many requests in flight: the limit is {limit} (http_in_flight)"
        ))
    })
}

fn refused(refused: desk::Refused) -> Refused {
    match refused {
        desk::Refused::Closed | desk::Refused::Cancelled => unknown_session(),
        desk::Refused::Error(error) if error.code == code::INVALID_REQUEST => {
            Refused { status: StatusCode::BAD_REQUEST, error }
        }
        desk::Refused::Error(error) => Refused { status: StatusCode::SERVICE_UNAVAILABLE, error },
    }
}

impl Visit {
    /// A stream for requests of this session.
    pub(super) fn stream(&self, endpoint: &Endpoint) -> Arc<Stream> {
        let settings = &endpoint.legacy.settings;
        let shape = if settings.answers_json() { Shape::Json } else { self.events(endpoint) };
        let limit = endpoint.limits.queued_notifications;
        Arc::new(Stream::new(StreamNumber::of_requests(), shape, limit))
    }

    /// Keeps what a handler has changed of the session before it is answered: the client relies on
    /// it from then on.
    fn saving(
        &self,
        endpoint: &Endpoint,
        handler: BoxFuture<'static, Outcome>,
    ) -> BoxFuture<'static, Outcome> {
        let sessions = endpoint.legacy.settings.sessions.clone();
        let (opened, id) = (self.opened.clone(), self.entry.id);
        Box::pin(async move {
            let outcome = handler.await;
            let saved = opened.save(id, &*sessions).await;
            outcome.and_then(|result| saved.map(|()| result).map_err(|refused| refused.error))
        })
    }

    /// How events look in this session.
    pub(super) fn events(&self, endpoint: &Endpoint) -> Shape {
        let knows = self.opened.revision.has_priming();
        let priming = if knows { Priming::Known } else { Priming::Unknown };
        Shape::Events { retry: endpoint.legacy.settings.retry, priming }
    }

    /// Starts the pump of a stream of requests.
    pub(super) fn pump(&self, endpoint: &Endpoint, stream: &Arc<Stream>, handler: Option<Handler>) {
        let pump = self.pump_of(endpoint, stream);
        self.entry.start(stream, pump.run(handler));
    }

    pub(super) fn pump_of(&self, endpoint: &Endpoint, stream: &Arc<Stream>) -> Pump {
        Pump {
            entry: self.entry.clone(),
            stream: stream.clone(),
            events: endpoint.legacy.settings.events.clone(),
            drain: endpoint.drain.clone(),
            expires: self.opened.expires,
            _busy: endpoint.legacy.live.busy(),
        }
    }
}
