//! Owns what the server asks while it is being answered: the task, the POST of its answer.
//! Does not own the answers.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use bytes::Bytes;
use tokio::task::AbortHandle;
use turnbuckle_types::{RequestId, RpcError, jsonrpc};

use super::{Shot, Wire, lock, send};
use crate::dispatch::{
    BoxFuture, Incoming, Outcome, Reply,
    duplex::{Permit, Replies, panicked},
    table::{Serial, Table},
};

/// How many refusals may be on their way at once. A server that asks on and on without waiting
/// learns no more from another.
const REFUSALS: usize = 64;

/// What the server asks, on whichever stream.
#[derive(Default)]
pub(super) struct Asked {
    /// Of those that run; `None` until there is a task.
    table: Mutex<Table<(), Option<AbortHandle>>>,
    in_flight: Arc<AtomicUsize>,
    /// From the question until its answer was posted.
    posting: Arc<AtomicUsize>,
    refusing: Arc<AtomicUsize>,
}

impl Asked {
    /// Drops whatever still runs.
    pub(super) fn end(&self) {
        let running = lock(&self.table).close_running();
        running.into_iter().filter_map(|(_, task)| task).for_each(|task| task.abort());
    }
}

/// Answers a request, in a task of its own if that takes time.
pub(super) fn request(wire: &Arc<Wire>, request: jsonrpc::Request) {
    let jsonrpc::Request { id, method, params } = request;
    let (asked, limit) = (&wire.legacy.asked, wire.limits.in_flight);
    if wire.closed.get().is_some() {
        return;
    }
    let posting = match Permit::take(&asked.posting, limit) {
        Ok(posting) => posting,
        Err(error) => return refuse(wire, &id, &error),
    };
    let permit = match Permit::take(&asked.in_flight, limit) {
        Ok(permit) => permit,
        Err(error) => return refuse(wire, &id, &error),
    };
    let accepted = lock(&asked.table).accept(&id, None);
    let Ok(serial) = accepted else {
        let message = format!("the request id {id} is already in flight");
        return refuse(wire, &id, &RpcError::invalid_request(message));
    };
    let incoming = Incoming::new(id.clone(), method, params, permit);
    let reply = catch_unwind(AssertUnwindSafe(|| wire.serve.serve(incoming, Replies::nowhere())))
        .unwrap_or_else(|payload| Reply::Now(Err(panicked(&id, payload.as_ref()))));
    match reply {
        Reply::Now(outcome) => {
            if lock(&asked.table).finish(&id, serial).is_some() {
                let wire = wire.clone();
                tokio::spawn(async move {
                    post(&wire, answer(&id, outcome)).await;
                    drop(posting);
                });
            }
        }
        Reply::Never => {
            lock(&asked.table).finish(&id, serial);
            wire.counts.dropped_requests.fetch_add(1, Relaxed);
        }
        Reply::Later(handler) => {
            let mut table = lock(&asked.table);
            // A close that came between found no task to stop: then none is started.
            if let Some(task) = table.running(&id, serial) {
                let running = run(wire.clone(), id, serial, handler, posting);
                *task = Some(tokio::spawn(running).abort_handle());
            }
        }
    }
}

/// The server gave a question up: nothing is posted for it.
pub(super) fn cancelled(wire: &Wire, id: &RequestId) {
    let stopped = lock(&wire.legacy.asked.table).cancel(id);
    if let Some((_, task)) = stopped {
        tracing::debug!(%id, "the server cancelled a request");
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// Posts an error, unless too many are on their way.
pub(super) fn refuse(wire: &Arc<Wire>, id: &RequestId, error: &RpcError) {
    let Ok(permit) = Permit::take(&wire.legacy.asked.refusing, REFUSALS) else {
        wire.counts.dropped_requests.fetch_add(1, Relaxed);
        return;
    };
    let (wire, message) = (wire.clone(), answer(id, Err(error.clone())));
    tokio::spawn(async move {
        post(&wire, message).await;
        drop(permit);
    });
}

async fn run(
    wire: Arc<Wire>,
    id: RequestId,
    serial: Serial,
    mut handler: BoxFuture<'static, Outcome>,
    posting: Permit,
) {
    let outcome = std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
            Ok(polled) => polled,
            Err(payload) => Poll::Ready(Err(panicked(&id, payload.as_ref()))),
        }
    })
    .await;
    drop(handler);
    let finished = lock(&wire.legacy.asked.table).finish(&id, serial);
    if finished.is_some() {
        post(&wire, answer(&id, outcome)).await;
    }
    drop(posting);
}

async fn post(wire: &Wire, message: Bytes) {
    let shot = Shot::post(&wire.legacy.session(), message);
    send::say(wire, &wire.stack, shot, "an answer to the server").await;
}

fn answer(id: &RequestId, outcome: Outcome) -> Bytes {
    let mut message = Vec::with_capacity(128);
    match outcome {
        Ok(result) => jsonrpc::write_result(&mut message, id, result.as_str().as_bytes()),
        Err(error) => jsonrpc::write_error(&mut message, Some(id), &error),
    }
    message.into()
}
