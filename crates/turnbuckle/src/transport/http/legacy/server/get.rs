//! Owns the GET stream of a session, and taking up a stream that broke off.
//! Does not own what is said on either.

use std::sync::Arc;

use http::{Response, StatusCode, header};

use super::{
    super::{
        super::{
            media,
            server::{HttpBody, answer, future::Asked},
        },
        events::StreamKey,
    },
    LAST_EVENT, Refused, Visit,
    body::{Following, Reader},
    event::{self, Cursor, StreamNumber},
    request,
    stream::Stream,
    unknown_session, visit,
};
use crate::envelope::mirror::{Found, Headers as _};
use turnbuckle_types::RpcError;

/// Serves a GET. Dropping the future leaves a stream without a reader.
pub(super) async fn serve(asked: &Asked) -> Result<Response<HttpBody>, Refused> {
    accepts_events(asked)?;
    let visit = visit(asked).await?;
    let cursor = match asked.head.headers.find(LAST_EVENT.as_str()) {
        Found::Absent => None,
        Found::Once(text) => Some(Cursor::read(text).ok_or_else(not_ours)?),
        Found::Several => {
            return Err(Refused::bad("the Last-Event-ID header came more than once"));
        }
    };
    match cursor {
        None => open(asked, &visit),
        Some(cursor) => resume(asked, &visit, cursor).await,
    }
}

fn accepts_events(asked: &Asked) -> Result<(), Refused> {
    let values = asked.head.headers.get_all(header::ACCEPT).iter().map(|value| value.as_bytes());
    let is_there = asked.head.headers.contains_key(header::ACCEPT);
    if is_there && media::admits(values, media::EVENTS) == Some(true) {
        return Ok(());
    }
    let error = RpcError::invalid_request("the Accept header has to list text/event-stream");
    Err(Refused { status: StatusCode::NOT_ACCEPTABLE, error })
}

fn not_ours() -> Refused {
    Refused::bad("the Last-Event-ID header is not the id of an event of this server")
}

/// Opens the stream for what belongs to no request; one that is open already ends.
fn open(asked: &Asked, visit: &Visit) -> Result<Response<HttpBody>, Refused> {
    let stream = aside(asked, visit, StreamNumber::aside(), 0);
    let reader = request::reader(&stream)?;
    stream.prime();
    connect(asked, visit, &stream)?;
    Ok(follow(asked, Vec::new(), Some(reader)))
}

fn aside(asked: &Asked, visit: &Visit, number: StreamNumber, last: u64) -> Arc<Stream> {
    let limit = asked.endpoint.limits.queued_notifications;
    Arc::new(Stream::new(number, visit.events(&asked.endpoint), limit).after(last))
}

fn connect(asked: &Asked, visit: &Visit, stream: &Arc<Stream>) -> Result<(), Refused> {
    let Visit { entry, opened } = visit;
    let pump = visit.pump_of(&asked.endpoint, stream);
    entry.aside.replace(stream);
    entry.start(stream, pump.run_aside());
    if entry.desk.is_closed() {
        // The session ended before it knew of this stream.
        entry.desk.kill(stream);
        return Err(unknown_session());
    }
    opened.session.connected(entry.aside.peer());
    Ok(())
}

/// Tells what was missed on a stream, and goes on with it where it goes on.
// 2025-11-25 basic/transports §Resumability: nothing of another stream is told.
async fn resume(
    asked: &Asked,
    visit: &Visit,
    cursor: Cursor,
) -> Result<Response<HttpBody>, Refused> {
    let attached = visit.entry.stream(cursor.stream).and_then(|stream| Reader::attach(stream).ok());
    if let Some((reader, last)) = attached {
        let (missed, _) = missed(asked, visit, cursor, last).await?;
        return Ok(follow(asked, missed, Some(reader)));
    }
    let (missed, last) = missed(asked, visit, cursor, u64::MAX).await?;
    if !cursor.stream.is_aside() {
        return Ok(follow(asked, missed, None));
    }
    if visit.entry.aside.is_open() {
        // It was replaced, and whoever replaced it goes on.
        return Ok(follow(asked, missed, None));
    }
    // Nobody has it open any more, here or anywhere. It is the same stream to its client, which
    // would otherwise have none.
    let stream = aside(asked, visit, cursor.stream, last);
    let reader = request::reader(&stream)?;
    connect(asked, visit, &stream)?;
    Ok(follow(asked, missed, Some(reader)))
}

/// The events after a place and not after `last`, as text, and the number of the last one.
async fn missed(
    asked: &Asked,
    visit: &Visit,
    cursor: Cursor,
    last: u64,
) -> Result<(Vec<u8>, u64), Refused> {
    let key = StreamKey { session: visit.entry.id, stream: cursor.stream.value() };
    let events = asked.endpoint.legacy.settings.events.after(&key, cursor.number).await;
    let events = events.map_err(|error| {
        tracing::error!(%error, "the event store failed");
        Refused::unavailable("the stream can't be looked up at the moment")
    })?;
    let (mut text, mut number) = (Vec::new(), cursor.number);
    for stored in events.into_iter().filter(|stored| stored.number <= last) {
        number = stored.number;
        event::write(&mut text, Cursor { stream: cursor.stream, number }, &stored.data);
    }
    Ok((text, number))
}

fn follow(asked: &Asked, missed: Vec<u8>, reader: Option<Reader>) -> Response<HttpBody> {
    let keep_alive = asked.endpoint.keep_alive;
    answer::events(HttpBody::other(Following::new(missed, reader, keep_alive)))
}
