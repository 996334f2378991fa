//! The control task of a legacy connection: it cancels the calls that were dropped, and ends the
//! session when the connection is closed.

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};
use turnbuckle_types::{Method, Raw, jsonrpc};

use super::{
    CallState, ClientSession, ClosePhase, HttpClientShared,
    asking::{self, LeavingId},
    lock, send,
};
use crate::{
    error::Result,
    rpc::BoxFuture,
    transport::http::client::{
        request,
        stack::HttpSender,
        timing::{ACCEPT, CALLS, CANCEL, CANCELS_AT_ONCE, CLOSE, END_OF_BODY, SKEW},
    },
};

/// The handle of the control task.
pub(super) struct Control {
    pub(super) jobs: mpsc::Sender<Abandoned>,
    /// As many as fit into `jobs`.
    pub(super) places: Arc<Semaphore>,
    /// How many cancels may be posted at once.
    turns: Semaphore,
    /// Never the calls' connections: those may all be busy.
    stack: HttpSender,
}

/// A call that was dropped and that the server may have received.
pub(super) struct Abandoned {
    pub(super) call: Arc<CallState>,
    /// The params of its cancel.
    pub(super) params: String,
    pub(super) rest: Rest,
}

/// The rest of a call that was dropped. It is empty for a call that a close cut off.
#[derive(Default)]
pub(super) struct Rest {
    /// Its POST, at whatever stage. `None` once that has ended.
    pub(super) post: Option<BoxFuture<'static, Result<Raw>>>,
    /// Keeps the id from being used again.
    pub(super) leaving: Option<LeavingId>,
    pub(super) _place: Option<OwnedSemaphorePermit>,
}

/// Starts the task. It ends when the connection is closed.
pub(super) fn start(wire: &Arc<HttpClientShared>) -> Control {
    let (jobs, abandoned) = mpsc::channel(CALLS);
    let places = Arc::new(Semaphore::new(CALLS));
    tokio::spawn(control(Over(wire.clone()), abandoned, places.clone()));
    Control { jobs, places, turns: Semaphore::new(CANCELS_AT_ONCE), stack: wire.stack.apart() }
}

async fn control(over: Over, mut abandoned: mpsc::Receiver<Abandoned>, places: Arc<Semaphore>) {
    let wire = &over.0;
    let mut cancels = JoinSet::new();
    let mut closing = pin!(wire.legacy.closing());
    loop {
        tokio::select! {
            biased;
            () = &mut closing => break,
            Some(job) = abandoned.recv() => drop(cancels.spawn(cancel(wire.clone(), job))),
            Some(_) = cancels.join_next() => {}
        }
    }
    abandoned.close();
    places.close();
    while let Ok(job) = abandoned.try_recv() {
        cancels.spawn(cancel(wire.clone(), job));
    }
    for (id, call) in std::mem::take(&mut *lock(&wire.legacy.unfinished)) {
        let params = asking::cancel(&id, "the client closed the connection");
        let job = Abandoned { call, params, rest: Rest::default() };
        cancels.spawn(cancel(wire.clone(), job));
    }
    let all = async { while cancels.join_next().await.is_some() {} };
    let _ = timeout(CLOSE / 2, all).await;
    drop(cancels);
    let _ = timeout(CLOSE, goodbye(wire)).await;
}

/// Tells that the control task has ended, even if it never ran.
struct Over(Arc<HttpClientShared>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.legacy.phase.send_replace(ClosePhase::Over);
    }
}

/// Cancels one call: its request is sent to its end, its cancel is posted, and only then is its
/// POST closed. Messages that arrive on it are still acted on.
async fn cancel(wire: Arc<HttpClientShared>, job: Abandoned) {
    let Some(control) = wire.legacy.control.get() else { return };
    let Abandoned { call, params, mut rest } = job;
    let deadline = Instant::now() + CANCEL;
    let has_post = rest.post.is_some();
    let mut turn = pin!(timeout_at(deadline, async {
        if has_post {
            let _ = timeout(CANCEL / 2, sent(&wire, &call)).await;
        }
        control.turns.acquire().await
    }));
    let turn = match rest.go_on(turn.as_mut()).await {
        Ok(turn) => turn,
        Err(ended) if !is_running(&ended) => return,
        Err(_) => timeout_at(deadline, control.turns.acquire()).await,
    };
    let Ok(Ok(turn)) = turn else {
        return tracing::debug!(params, "a cancel is not posted: too many waited for their turn");
    };
    let method = Method::Cancelled.as_str();
    let mut message = Vec::with_capacity(params.len() + 80);
    jsonrpc::write_notification(&mut message, method, &params);
    // In the session that the call was sent in.
    let session = call.session().unwrap_or_else(|| wire.legacy.session());
    let post = send::post(&wire, &session, message.into()).with(&call.extra);
    let within = deadline.saturating_duration_since(Instant::now());
    let mut posting = pin!(request::say(&wire, &control.stack, post, within, method));
    if rest.go_on(posting.as_mut()).await.is_err() {
        posting.await;
    }
    drop(turn);
    rest.leaving = None;
    // The server ends the stream now: its connection can be used again then.
    let _ = rest.go_on(timeout(END_OF_BODY.1, wire.legacy.closing())).await;
}

/// Waits until the request was sent and its response has begun, or so long after it that the
/// cancel does not overtake it.
async fn sent(wire: &HttpClientShared, call: &CallState) {
    let begins_early = wire.legacy.begins_early.load(Relaxed);
    // A server that begins every response at once does not know the request before.
    let lead = if begins_early { CANCEL } else { SKEW };
    if let Some(progress) = call.progress() {
        tokio::select! {
            () = progress.finished() => {}
            () = answered(call) => {}
        }
    }
    let left = call.lead_left(lead).unwrap_or(lead);
    if !left.is_zero() {
        let _ = timeout(left, answered(call)).await;
    }
}

/// Resolves when the head of the response is here. It needs no waker: the task that waits for
/// this polls the POST, which brings it.
async fn answered(call: &CallState) {
    std::future::poll_fn(|_| if call.is_answered() { Poll::Ready(()) } else { Poll::Pending })
        .await;
}

/// Whether the server may still run a call whose POST ended like this.
fn is_running(ended: &Result<Raw>) -> bool {
    ended.as_ref().is_err_and(|error| error.as_rpc().is_none() && error.maybe_executed())
}

impl Rest {
    /// Goes on with the POST until `enough`. The error is the end of the POST, if that came
    /// first.
    async fn go_on<F: Future>(&mut self, enough: F) -> Result<F::Output, Result<Raw>> {
        let Some(post) = &mut self.post else { return Ok(enough.await) };
        let ended = tokio::select! {
            biased;
            ended = post => ended,
            enough = enough => return Ok(enough),
        };
        self.post = None;
        Err(ended)
    }
}

/// 2025-11-25 transports §Session Management: SHOULD end a session that is no longer needed.
async fn goodbye(wire: &HttpClientShared) {
    // In this order: opening a session again moves it from the one place to the other.
    let offered = lock(&wire.legacy.offered).take();
    let session = wire.legacy.session();
    let offered = ClientSession { id: offered, ..ClientSession::default() };
    tokio::join!(delete(wire, &session), delete(wire, &offered));
}

/// Ends a session.
pub(super) async fn delete(wire: &HttpClientShared, session: &ClientSession) {
    let Some(control) = wire.legacy.control.get() else { return };
    if session.id.is_some() {
        let delete = send::delete(wire, session);
        request::say(wire, &control.stack, delete, ACCEPT, "the end of the session").await;
    }
}
