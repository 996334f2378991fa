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
use tokio::{
    sync::{Semaphore, oneshot},
    task::AbortHandle,
};
use turnbuckle_types::{RequestId, RpcError, jsonrpc};

use super::{ClientSession, HttpClientShared, lock, receive::StreamOrigin, send};
use crate::{
    rpc::{
        BoxFuture, Incoming, Outcome, Permit, Replies, Reply, RequestOrigin, panicked,
        pending::{PendingTable, Serial},
    },
    transport::http::client::{
        request,
        timing::{ACCEPT, ANSWERS_AT_ONCE, REFUSALS_AT_ONCE},
    },
};

/// What the server asks, on whichever stream.
pub(super) struct ServerRequests {
    open: Mutex<OpenRequests>,
    in_flight: Arc<AtomicUsize>,
    /// From the request until its answer was posted.
    posting: Arc<AtomicUsize>,
    refusing: Arc<AtomicUsize>,
    /// Bounds the connections that answers take.
    turns: Semaphore,
}

impl Default for ServerRequests {
    fn default() -> ServerRequests {
        ServerRequests {
            open: Mutex::default(),
            in_flight: Arc::default(),
            posting: Arc::default(),
            refusing: Arc::default(),
            turns: Semaphore::new(ANSWERS_AT_ONCE),
        }
    }
}

#[derive(Default)]
struct OpenRequests {
    /// Of those that run; `None` until there is a task.
    table: PendingTable<(), Option<AbortHandle>>,
    /// What a session before this one asks, its server has forgotten.
    since: u64,
}

impl ServerRequests {
    /// Drops whatever still runs.
    pub(super) fn end(&self) {
        abort(lock(&self.open).table.close_running());
    }

    /// The session of this generation is gone, and with it what was asked in it. Its ids may
    /// mean something else from now on.
    pub(super) fn gone(&self, generation: u64) {
        let mut open = lock(&self.open);
        open.since = generation + 1;
        let running = open.table.close_running();
        drop(open);
        abort(running);
    }
}

fn abort(running: Vec<(Serial, Option<AbortHandle>)>) {
    running.into_iter().filter_map(|(_, task)| task).for_each(|task| task.abort());
}

/// Answers a request that came in this session, in a task of its own if that takes time.
pub(super) fn request(
    wire: &Arc<HttpClientShared>,
    from: StreamOrigin<'_>,
    asked: jsonrpc::Request,
) {
    let jsonrpc::Request { id, method, params } = asked;
    let session = from.session;
    let (asked, limit) = (&wire.legacy.asked, wire.limits.in_flight);
    if wire.closed.get().is_some() {
        return;
    }
    let posting = match Permit::take(&asked.posting, limit) {
        Ok(posting) => posting,
        Err(error) => return refuse(wire, session, &id, &error),
    };
    let permit = match Permit::take(&asked.in_flight, limit) {
        Ok(permit) => permit,
        Err(error) => return refuse(wire, session, &id, &error),
    };
    let accepted = {
        let mut open = lock(&asked.open);
        (session.generation >= open.since).then(|| open.table.accept(&id, None))
    };
    let serial = match accepted {
        Some(Ok(serial)) => serial,
        Some(Err(_)) => {
            let message = format!("the request id {id} is already in flight");
            return refuse(wire, session, &id, &RpcError::invalid_request(message));
        }
        None => {
            tracing::debug!(%id, "a request of a session that is gone is dropped");
            wire.counts.dropped_requests.fetch_add(1, Relaxed);
            return;
        }
    };
    // A close that came in between did not find it.
    if wire.closed.get().is_some() {
        lock(&asked.open).table.finish(&id, serial);
        return;
    }
    let mut incoming = Incoming::new(id.clone(), method, params, permit);
    if let Some(own) = from.own {
        incoming.came = RequestOrigin::Within(own.id.clone(), own.call.mark.clone());
    }
    let reply = catch_unwind(AssertUnwindSafe(|| wire.serve.serve(incoming, Replies::nowhere())))
        .unwrap_or_else(|payload| Reply::Now(Err(panicked(&id, payload.as_ref()))));
    match reply {
        Reply::Now(outcome) => {
            if lock(&asked.open).table.finish(&id, serial).is_some() {
                let (wire, session) = (wire.clone(), session.clone());
                tokio::spawn(async move {
                    post(&wire, &session, answer(&id, outcome)).await;
                    drop(posting);
                });
            }
        }
        Reply::Never => {
            lock(&asked.open).table.finish(&id, serial);
            wire.counts.dropped_requests.fetch_add(1, Relaxed);
        }
        Reply::Later(handler) => {
            let question =
                RunningRequest { session: session.clone(), id: id.clone(), serial, posting };
            // It begins when its place in the table is taken. Else, on another thread, it could have
            // left the table already and be posting its answer when it is looked for here.
            let (begin, begins) = oneshot::channel();
            let wire = wire.clone();
            let answered = async move {
                if begins.await.is_ok() {
                    run(wire, question, handler).await;
                }
            };
            // Under no lock: where the runtime is shutting down, this drops the handler.
            let task = tokio::spawn(answered).abort_handle();
            if let Some(place) = lock(&asked.open).table.running(&id, serial) {
                *place = Some(task);
                // Nobody is there if the runtime is shutting down.
                let _ = begin.send(());
            }
            // Else a close or a cancellation came between, and dropping `begin` ends the task.
        }
    }
}

/// The server gave a question up: nothing is posted for it. A session that is gone has none.
pub(super) fn cancelled(wire: &HttpClientShared, session: &ClientSession, id: &RequestId) {
    let stopped = {
        let mut open = lock(&wire.legacy.asked.open);
        if session.generation < open.since { None } else { open.table.cancel(id) }
    };
    if let Some((_, task)) = stopped {
        tracing::debug!(%id, "the server cancelled a request");
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// Posts an error, unless too many are on their way.
pub(super) fn refuse(
    wire: &Arc<HttpClientShared>,
    session: &ClientSession,
    id: &RequestId,
    error: &RpcError,
) {
    let Ok(permit) = Permit::take(&wire.legacy.asked.refusing, REFUSALS_AT_ONCE) else {
        wire.counts.dropped_requests.fetch_add(1, Relaxed);
        return;
    };
    let (wire, session) = (wire.clone(), session.clone());
    let message = answer(id, Err(error.clone()));
    tokio::spawn(async move {
        post(&wire, &session, message).await;
        drop(permit);
    });
}

/// One that takes time to answer.
struct RunningRequest {
    /// In which it came, and in which it is answered.
    session: ClientSession,
    id: RequestId,
    serial: Serial,
    posting: Permit,
}

async fn run(
    wire: Arc<HttpClientShared>,
    question: RunningRequest,
    mut handler: BoxFuture<'static, Outcome>,
) {
    let RunningRequest { session, id, serial, posting } = question;
    let outcome = std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
            Ok(polled) => polled,
            Err(payload) => Poll::Ready(Err(panicked(&id, payload.as_ref()))),
        }
    })
    .await;
    drop(handler);
    let finished = lock(&wire.legacy.asked.open).table.finish(&id, serial);
    if finished.is_some() {
        post(&wire, &session, answer(&id, outcome)).await;
    }
    drop(posting);
}

async fn post(wire: &HttpClientShared, session: &ClientSession, message: Bytes) {
    // It is never closed.
    let _turn = wire.legacy.asked.turns.acquire().await;
    let post = send::post(wire, session, message);
    request::say(wire, &wire.stack, post, ACCEPT, "an answer to the server").await;
}

fn answer(id: &RequestId, outcome: Outcome) -> Bytes {
    let mut message = Vec::with_capacity(128);
    match outcome {
        Ok(result) => jsonrpc::write_result(&mut message, id, result.as_str().as_bytes()),
        Err(error) => jsonrpc::write_error(&mut message, Some(id), &error),
    }
    message.into()
}
