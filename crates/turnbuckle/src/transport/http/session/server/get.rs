//! Serves GET: opens the stream for messages that belong to no request, or resumes a stream.

use std::sync::Arc;

use super::{
    super::{
        super::server::{
            HttpBody, answer, future::RequestHead, response_stream::ResponseStream,
            running::RunningHttpRequest,
        },
        events::StreamKey,
    },
    LAST_EVENT, Refused, Visit,
    event::{
        Cursor, StreamNumber, {self},
    },
    pump,
    reader::StreamReader,
    request, unknown_session, visit,
};
use crate::{
    protocol::headers::{HeaderLookup, find},
    rpc::Replying as _,
    transport::http::media_type,
};
use http::{Response, StatusCode, header};
use turnbuckle_types::{Raw, RequestId, RpcError};

/// Serves a GET. Dropping the future leaves a stream without a reader.
pub(super) async fn serve(asked: &RequestHead) -> Result<Response<HttpBody>, Refused> {
    accepts_events(asked)?;
    let visit = visit(asked).await?;
    let cursor = match find(&asked.head.headers, LAST_EVENT) {
        HeaderLookup::Absent => None,
        HeaderLookup::Once(text) => Some(Cursor::read(text.as_bytes()).ok_or_else(not_ours)?),
        HeaderLookup::Several => {
            return Err(Refused::bad("the Last-Event-ID header came more than once"));
        }
    };
    match cursor {
        None => open(asked, &visit),
        Some(cursor) => resume(asked, &visit, cursor).await,
    }
}

fn accepts_events(asked: &RequestHead) -> Result<(), Refused> {
    let values = asked.head.headers.get_all(header::ACCEPT).iter().map(|value| value.as_bytes());
    let is_there = asked.head.headers.contains_key(header::ACCEPT);
    if is_there && media_type::admits(values, media_type::EVENTS) == Some(true) {
        return Ok(());
    }
    let error = RpcError::invalid_request("the Accept header has to list text/event-stream");
    Err(Refused { status: StatusCode::NOT_ACCEPTABLE, error })
}

fn not_ours() -> Refused {
    Refused::bad("the Last-Event-ID header is not the id of an event of this server")
}

/// Opens the stream for messages that belong to no request; one that is open already ends.
fn open(asked: &RequestHead, visit: &Visit) -> Result<Response<HttpBody>, Refused> {
    let (stream, reader) = get_stream(asked, visit, StreamNumber::of_get(), 0)?;
    stream.prime();
    connect(asked, visit, &stream)?;
    Ok(reader.respond(Vec::new(), asked.endpoint.keep_alive))
}

fn get_stream(
    asked: &RequestHead,
    visit: &Visit,
    number: StreamNumber,
    last: u64,
) -> Result<(Arc<ResponseStream>, StreamReader), Refused> {
    let endpoint = &asked.endpoint;
    let stream = visit.new_stream(asked, visit.resumable(endpoint));
    let stream = Arc::new(stream.continuing(number, last));
    // The stream ends when the server begins to shut down.
    stream.at_shutdown(Raw::empty_object());
    let reader = request::reader(&stream)?;
    Ok((stream, reader))
}

fn connect(
    asked: &RequestHead,
    visit: &Visit,
    stream: &Arc<ResponseStream>,
) -> Result<(), Refused> {
    let in_flight = &visit.session.in_flight;
    in_flight.set_get_stream(Some(stream.clone()));
    let handler = pump::get_handler(stream.clone());
    let none = RequestId::from(0);
    let handler = RunningHttpRequest::new(none, handler, stream.clone(), &asked.endpoint);
    visit.pump(&asked.endpoint, stream, Some(handler));
    if in_flight.is_closed() {
        // The session ended before it knew of this stream.
        in_flight.kill(stream);
        return Err(unknown_session());
    }
    visit.opened.service.connected(in_flight.peer());
    Ok(())
}

/// Sends the events that a client has missed, and continues with their stream if it is open.
// 2025-11-25 basic/transports §Resumability: no event of another stream is replayed.
async fn resume(
    asked: &RequestHead,
    visit: &Visit,
    cursor: Cursor,
) -> Result<Response<HttpBody>, Refused> {
    let keep_alive = asked.endpoint.keep_alive;
    let open = visit.session.stream(cursor.stream);
    if let Some((reader, last)) = open.and_then(|stream| StreamReader::attach(stream).ok()) {
        let (missed, _) = missed(asked, visit, cursor, last).await?;
        return Ok(reader.respond(missed, keep_alive));
    }
    let (missed, last) = missed(asked, visit, cursor, u64::MAX).await?;
    // A GET stream that was replaced has ended, too.
    if !cursor.stream.is_of_get() || visit.session.in_flight.get_stream().is_some() {
        return Ok(answer::ended_events_with(missed));
    }
    // No replica has it open. To its client it is the same stream.
    let (stream, reader) = get_stream(asked, visit, cursor.stream, last)?;
    connect(asked, visit, &stream)?;
    Ok(reader.respond(missed, keep_alive))
}

/// Returns the text of the events after a cursor up to `last`, and the number of the last one.
async fn missed(
    asked: &RequestHead,
    visit: &Visit,
    cursor: Cursor,
    last: u64,
) -> Result<(Vec<u8>, u64), Refused> {
    let key = StreamKey { session: visit.session.id, stream: cursor.stream.value() };
    let events = asked.endpoint.legacy.settings.events.after(&key, cursor.number).await;
    let events = events.map_err(|error| {
        tracing::error!(%error, "the event store failed");
        Refused::unavailable(RpcError::internal("the stream can't be looked up at the moment"))
    })?;
    let (mut text, mut number) = (Vec::new(), cursor.number);
    for stored in events.into_iter().filter(|stored| stored.number <= last) {
        number = stored.number;
        event::write(&mut text, Cursor { stream: cursor.stream, number }, &stored.data);
    }
    Ok((text, number))
}
