//! Owns the joint answer to a batch, which only 2025-03-26 has: one array if all are ready at
//! once, else one stream for all. Does not own how each of its requests is served.

use http::{Response, StatusCode};
use turnbuckle_types::jsonrpc::{Fault, Frame, Role};

use super::{
    super::super::server::{HttpBody, answer, future::Asked},
    Refused, Visit, is_initialize,
    pump::{self, frame},
    request::{self, Batched, Started},
    unknown_session,
};

/// Serves a batch. Dropping the future stops nothing that was begun.
pub(super) async fn serve(
    asked: &Asked,
    visit: Visit,
    items: Vec<Result<Frame, Fault>>,
) -> Result<Response<HttpBody>, Refused> {
    if !visit.opened.session.batches() {
        return Err(not_here());
    }
    refuse_initialize(&items)?;
    let endpoint = &asked.endpoint;
    let stream = visit.stream(endpoint);
    let reader = request::reader(&stream)?;
    // What is ready at once, and whether anything is to be answered at all.
    let (mut ready, mut waits, mut asks) = (Vec::new(), false, false);
    for item in items {
        asks |= is_asking(&item);
        match item {
            Ok(Frame::Request(request)) => {
                let id = request.id.clone();
                match request::start(endpoint, &visit, request, &stream).await {
                    Err(refused) => ready.push(frame(&id, Err(refused.error))),
                    Ok(Started::Cancelled) => {}
                    Ok(Started::Answered(serial, outcome)) => {
                        stream.leave(serial);
                        ready.push(frame(&id, outcome));
                    }
                    Ok(Started::Running(handler)) => {
                        waits = true;
                        let (entry, stream) = (visit.entry.clone(), stream.clone());
                        let drain = endpoint.drain.clone();
                        visit.entry.desk.launch(&id, handler.serial, || {
                            let member = pump::run_member(handler, entry, stream, drain);
                            Some(tokio::spawn(member).abort_handle())
                        });
                    }
                }
            }
            // What it stops is not waited for: requests before it run already.
            Ok(Frame::Notification(note)) => drop(visit.apply(note)),
            Ok(Frame::Response(response)) => visit.entry.desk.answer(response),
            Err(fault) => ready.extend(faulty(&visit, &fault)),
        }
    }
    if !asks {
        return Ok(answer::empty(StatusCode::ACCEPTED));
    }
    if !waits && !stream.has_said() {
        save(asked, &visit).await;
        return Ok(match array(&ready) {
            Some(text) => answer::text(StatusCode::OK, text),
            None => answer::ended_events(),
        });
    }
    stream.prime();
    ready.into_iter().for_each(|text| stream.say(text));
    visit.pump(endpoint, &stream, None);
    if visit.entry.desk.is_closed() {
        // The session ended before it knew of this stream.
        visit.entry.desk.kill(&stream);
        return Err(unknown_session());
    }
    save(asked, &visit).await;
    drop(visit);
    Ok(request::respond(endpoint, &stream, reader, Batched::Yes).await)
}

/// A batch where there are none.
pub(super) fn not_here() -> Refused {
    Refused::bad("batches exist in revision 2025-03-26 only, which was not negotiated")
}

// 2025-03-26 basic/lifecycle §Initialization: it MUST NOT be part of a batch.
pub(super) fn refuse_initialize(items: &[Result<Frame, Fault>]) -> Result<(), Refused> {
    let is_it = |item: &Result<Frame, Fault>| matches!(item, Ok(Frame::Request(request)) if is_initialize(request));
    if items.iter().any(is_it) {
        return Err(Refused::bad("`initialize` must not be part of a batch"));
    }
    Ok(())
}

/// Whether an element of a batch gets an answer.
pub(super) fn is_asking(item: &Result<Frame, Fault>) -> bool {
    match item {
        Ok(frame) => matches!(frame, Frame::Request(_)),
        Err(fault) => fault.role == Role::Request,
    }
}

/// Answers as one array, if there are any.
pub(super) fn array(answers: &[Vec<u8>]) -> Option<Vec<u8>> {
    let all = answers.join(&b","[..]);
    (!all.is_empty()).then(|| [b"[", &all[..], b"]"].concat())
}

/// The answer to an element that can't be read.
fn faulty(visit: &Visit, fault: &Fault) -> Option<Vec<u8>> {
    match (fault.role, &fault.id) {
        (Role::Request, id) => {
            let mut text = Vec::new();
            turnbuckle_types::jsonrpc::write_error(&mut text, id.as_ref(), &fault.error);
            return Some(text);
        }
        (Role::Response, Some(id)) => visit.entry.desk.unreadable(id, &fault.error),
        (Role::Response, None) => {}
    }
    None
}

/// Each has its answer by now: a record that can't be kept is for the log.
async fn save(asked: &Asked, visit: &Visit) {
    let store = &asked.endpoint.legacy.settings.sessions;
    if let Err(refused) = visit.opened.save(visit.entry.id, &**store).await {
        tracing::warn!(error = %refused.error, "what a batch has changed was not kept");
    }
}
