//! Starts a request of a session. A handler that is ready at its first poll is answered without a
//! task; otherwise the pump of its stream takes it.

use std::{future::poll_fn, sync::Arc, task::Poll};

use super::{
    super::super::server::{
        Endpoint, HttpBody, answer,
        answer::Statuses,
        future::{RequestHead, call, incoming},
        response_stream::{Format, Priming, ResponseStream},
        running::{Done, Polled, RunningHttpRequest},
    },
    Refused, Visit,
    in_flight::NotStarted,
    pump::{Pump, frame},
    reader::StreamReader,
    unknown_session,
};
use crate::{
    rpc::{BoxFuture, Outcome, Replies, RequestOrigin, pending::Serial},
    transport::http::server::shutdown::EndpointPhase,
};
use http::{Response, StatusCode};
use turnbuckle_types::{Method, code, jsonrpc::Request};

/// The first step of a request.
pub(super) enum Started {
    Done(Serial, Done),
    Running(Serial, RunningHttpRequest),
    /// The client has cancelled it.
    Cancelled,
}

/// Serves one request. Dropping the future does not stop the handler once that has waited.
pub(super) async fn serve(
    asked: &RequestHead,
    visit: Visit,
    request: Request,
) -> Result<Response<HttpBody>, Refused> {
    let endpoint = &asked.endpoint;
    let stream = visit.stream(asked);
    let id = request.id.clone();
    let changes = changes_record(&request);
    let reader = reader(&stream)?;
    let in_flight = &visit.session.in_flight;
    let done = match start(asked, &visit, request, &stream, Batched::No).await? {
        Started::Cancelled => return Ok(answer::ended_events()),
        Started::Done(_, done) if !stream.has_unstored() => Some(done),
        Started::Done(serial, done) => {
            stream.prime();
            in_flight.reply(&stream, serial, frame(&id, &done.outcome));
            visit.pump(endpoint, &stream, None);
            None
        }
        Started::Running(serial, handler) => {
            stream.prime();
            if !in_flight.is_running(&id, serial) {
                return Ok(answer::ended_events());
            }
            // A cancel from here on finds the stream of the pump stopped.
            visit.pump(endpoint, &stream, Some(handler));
            None
        }
    };
    let saved = visit.opened.save(visit.session.id, &*endpoint.legacy.settings.sessions).await;
    match saved {
        Err(refused) if changes => return Err(refused),
        // The handler may have done what must not be repeated: the failure is only logged.
        _ => {}
    }
    // The pump holds the session if something runs.
    drop(visit);
    match done {
        Some(done) => Ok(answer::done(&id, Statuses::AlwaysOk, done)),
        None => Ok(respond(endpoint, &stream, reader, Batched::No).await),
    }
}

/// Whether a request is there to change the record of its session.
fn changes_record(request: &Request) -> bool {
    let method = Method::from_name(&request.method);
    matches!(method, Some(Method::SetLevel | Method::Subscribe | Method::Unsubscribe))
}

/// Whether responses are those of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Batched {
    Yes,
    No,
}

/// Creates the response for a stream: events as they come, or all of it as JSON.
pub(super) async fn respond(
    endpoint: &Arc<Endpoint>,
    stream: &ResponseStream,
    reader: StreamReader,
    batched: Batched,
) -> Response<HttpBody> {
    if stream.format() != Format::Json {
        return reader.respond(Vec::new(), endpoint.keep_alive);
    }
    let mut text = reader.read().await;
    if text.is_empty() {
        return answer::ended_events();
    }
    if batched == Batched::Yes {
        text.insert(0, b'[');
        text.push(b']');
    }
    // The client may ask another server.
    let is_over = endpoint.drain.phase() == EndpointPhase::Over;
    let status = if is_over { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    answer::text(status, text)
}

/// Attaches the first reader of a stream, before its handler can send anything.
pub(super) fn reader(stream: &Arc<ResponseStream>) -> Result<StreamReader, Refused> {
    let (reader, _) = StreamReader::attach(stream.clone()).map_err(|_| unknown_session())?;
    Ok(reader)
}

/// Enters a request and polls its handler once. This never waits.
pub(super) async fn start(
    asked: &RequestHead,
    visit: &Visit,
    request: Request,
    stream: &Arc<ResponseStream>,
    batched: Batched,
) -> Result<Started, Refused> {
    let endpoint = &asked.endpoint;
    let changes = changes_record(&request);
    let id = request.id.clone();
    let in_flight = &visit.session.in_flight;
    let permit = asked.permit().map_err(Refused::unavailable)?;
    let serial = match in_flight.accept(&id, stream, batched) {
        Err(NotStarted::Cancelled) => return Ok(Started::Cancelled),
        accepted => accepted.map_err(refused)?,
    };
    let incoming = incoming(request, permit, RequestOrigin::InSession(asked.head.clone()));
    let replies = Replies::http(stream.clone(), Some(serial));
    let done = match call(&*visit.opened.service, &id, incoming, replies) {
        Err(outcome) => Done::finished(outcome),
        Ok(handler) => {
            let handler = if changes { visit.saving(endpoint, handler) } else { handler };
            let mut handler =
                RunningHttpRequest::new(id.clone(), handler, stream.clone(), endpoint);
            let polled = poll_fn(|context| Poll::Ready(handler.poll(context))).await;
            let Poll::Ready(Polled::Done(done)) = polled else {
                return Ok(Started::Running(serial, handler));
            };
            endpoint.drain.count(done.ended);
            done
        }
    };
    if !in_flight.finish(&id, serial) {
        return Ok(Started::Cancelled);
    }
    Ok(Started::Done(serial, done))
}

fn refused(reason: NotStarted) -> Refused {
    match reason {
        NotStarted::Closed | NotStarted::Cancelled => unknown_session(),
        NotStarted::Error(error) if error.code == code::INVALID_REQUEST => {
            Refused { status: StatusCode::BAD_REQUEST, error }
        }
        NotStarted::Error(error) => Refused::unavailable(error),
    }
}

impl Visit {
    /// Creates a stream for requests of this session.
    pub(super) fn stream(&self, asked: &RequestHead) -> Arc<ResponseStream> {
        let endpoint = &asked.endpoint;
        let is_json = endpoint.legacy.settings.answers_json();
        let format = if is_json { Format::Json } else { self.resumable(endpoint) };
        Arc::new(self.new_stream(asked, format))
    }

    pub(super) fn new_stream(&self, asked: &RequestHead, format: Format) -> ResponseStream {
        let limit = asked.endpoint.limits.queued_notifications;
        let memory = asked.memory.clone();
        ResponseStream::in_session(format, limit, Arc::downgrade(&self.session.in_flight), memory)
    }

    /// Returns the format of events in this session.
    pub(super) fn resumable(&self, endpoint: &Endpoint) -> Format {
        let knows = self.opened.revision.has_priming();
        let priming = if knows { Priming::Known } else { Priming::Unknown };
        Format::Resumable { retry: endpoint.legacy.settings.retry, priming }
    }

    /// Saves the changes of a handler to the record before its response is sent: the client relies
    /// on them from then on.
    fn saving(
        &self,
        endpoint: &Endpoint,
        handler: BoxFuture<'static, Outcome>,
    ) -> BoxFuture<'static, Outcome> {
        let sessions = endpoint.legacy.settings.sessions.clone();
        let (opened, id) = (self.opened.clone(), self.session.id);
        Box::pin(async move {
            let outcome = handler.await;
            let saved = opened.save(id, &*sessions).await;
            outcome.and_then(|result| saved.map(|()| result).map_err(|refused| refused.error))
        })
    }

    /// Starts the pump of a stream.
    pub(super) fn pump(
        &self,
        endpoint: &Endpoint,
        stream: &Arc<ResponseStream>,
        handler: Option<RunningHttpRequest>,
    ) {
        let pump = Pump {
            session: self.session.clone(),
            stream: stream.clone(),
            events: endpoint.legacy.settings.events.clone(),
            drain: endpoint.drain.clone(),
            expires: self.opened.expires,
            most_unattended: endpoint.limits.http_in_flight / 2,
            memory: endpoint.memory.clone(),
            permit: endpoint.legacy.live.pump_permit(),
        };
        self.session.start(stream, pump.run(handler));
    }
}
