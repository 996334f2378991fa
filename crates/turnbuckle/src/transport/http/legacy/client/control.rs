//! Owns the one task that a legacy connection has from its handshake on: it sees to calls that
//! were given up, and says goodbye. Does not own calls that anyone still waits for.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
};
use turnbuckle_types::{Method, Raw, jsonrpc};

use super::{
    Call, Control, Phase, Session, Wire,
    asking::{self, Leaving},
    lock,
    send::{self, Shot},
};
use crate::{dispatch::BoxFuture, error::Result};

/// How many calls may be in flight, or given up and not yet seen to, before one more waits.
const PLACES: usize = 4096;
/// How many cancels are posted at once.
const AT_ONCE: usize = 64;
/// How long a request that was begun may take to be sent to its end.
const WRITING: Duration = Duration::from_secs(5);
/// How long the head of the answer is waited for, so that the cancel does not overtake what it
/// cancels.
const HEAD: Duration = Duration::from_millis(20);
/// How long a cancel waits for its turn. A server that takes none would else have all calls
/// that were given up wait here; it learns from the end of their POSTs, if at all.
const TURN: Duration = Duration::from_secs(10);
/// How long posting a cancel may take.
const POSTING: Duration = Duration::from_secs(5);
/// How long what the server still says to a call that was given up is listened to.
const DRAINING: Duration = Duration::from_secs(2);
/// How long cancels may still take when the connection is closed, and then the goodbye.
const LAST_CANCELS: Duration = Duration::from_secs(1);
const GOODBYE: Duration = Duration::from_secs(2);

/// A call that nobody waits for any more, and that the server may have seen.
pub(super) struct Abandoned {
    /// Where its POST is, whatever its stage.
    pub(super) post: BoxFuture<'static, Result<Raw>>,
    pub(super) call: Arc<Call>,
    /// Of its cancel.
    pub(super) params: String,
    /// Lets the id be used again.
    pub(super) leaving: Leaving,
    /// Given back when it was seen to.
    pub(super) place: OwnedSemaphorePermit,
}

/// Starts the task. It ends when the connection is closed.
pub(super) fn start(wire: &Arc<Wire>) -> Control {
    let (jobs, abandoned) = mpsc::channel(PLACES);
    let places = Arc::new(Semaphore::new(PLACES));
    tokio::spawn(control(wire.clone(), abandoned, places.clone()));
    Control { jobs, places, stack: wire.stack.apart() }
}

async fn control(
    wire: Arc<Wire>,
    mut abandoned: mpsc::Receiver<Abandoned>,
    places: Arc<Semaphore>,
) {
    let _over = Over(&wire);
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut leaving = JoinSet::new();
    let mut closing = std::pin::pin!(wire.legacy.closing());
    loop {
        tokio::select! {
            biased;
            () = &mut closing => break,
            Some(job) = abandoned.recv() => {
                leaving.spawn(leave(wire.clone(), job, slots.clone()));
            }
            Some(_) = leaving.join_next() => {}
        }
    }
    abandoned.close();
    places.close();
    while let Ok(job) = abandoned.try_recv() {
        leaving.spawn(leave(wire.clone(), job, slots.clone()));
    }
    for (id, call) in std::mem::take(&mut *lock(&wire.legacy.unfinished)) {
        let (wire, slots) = (wire.clone(), slots.clone());
        leaving.spawn(async move {
            let _slot = slots.acquire().await;
            cancel(&wire, &call, &asking::cancel(&id, "the client closed the connection")).await;
        });
    }
    let rest = async { while leaving.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_CANCELS, rest).await;
    let _ = tokio::time::timeout(GOODBYE, goodbye(&wire)).await;
}

struct Over<'a>(&'a Wire);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.legacy.phase.send_replace(Phase::Over);
    }
}

/// Sees to one call: its request is sent to its end, its cancel is posted, and only then may its
/// POST be closed.
async fn leave(wire: Arc<Wire>, job: Abandoned, slots: Arc<Semaphore>) {
    let Abandoned { mut post, call, params, leaving, place } = job;
    let written = async {
        if let Some(progress) = call.progress() {
            tokio::select! {
                () = progress.finished() => {}
                () = answered(&call) => {}
            }
        }
    };
    let mut ended = go_on(&mut post, written, WRITING).await;
    if ended.is_none() {
        ended = go_on(&mut post, answered(&call), HEAD).await;
    }
    if ended.as_ref().is_none_or(is_running) {
        let Ok(_slot) = tokio::time::timeout(TURN, slots.acquire()).await else {
            return tracing::debug!(params, "a cancel is not posted: too many wait for their turn");
        };
        let cancelling = cancel(&wire, &call, &params);
        let cancelling = async {
            let _ = tokio::time::timeout(POSTING, cancelling).await;
        };
        match ended {
            // What arrives meanwhile is still acted on.
            None => {
                tokio::pin!(cancelling);
                ended = go_on(&mut post, &mut cancelling, POSTING).await;
                if ended.is_some() {
                    cancelling.await;
                }
            }
            Some(_) => cancelling.await,
        }
    }
    drop(leaving);
    if ended.is_none() {
        go_on(&mut post, wire.legacy.closing(), DRAINING).await;
    }
    drop(place);
}

/// Whether the server may be at it still, although its POST has ended.
fn is_running(ended: &Result<Raw>) -> bool {
    ended.as_ref().is_err_and(|error| error.as_rpc().is_none() && error.maybe_executed())
}

/// Goes on with a POST until `enough`, or for so long; returns its end if that came.
async fn go_on(
    post: &mut BoxFuture<'static, Result<Raw>>,
    enough: impl Future<Output = ()>,
    longest: Duration,
) -> Option<Result<Raw>> {
    tokio::select! {
        biased;
        ended = post => Some(ended),
        () = enough => None,
        () = tokio::time::sleep(longest) => None,
    }
}

/// Resolves when the head of the answer is here. It needs no waker: whoever waits for this goes
/// on with the POST, which brings it.
async fn answered(call: &Call) {
    std::future::poll_fn(|_| {
        if call.is_answered() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Posts a cancel in the session that the call was sent in.
async fn cancel(wire: &Wire, call: &Call, params: &str) {
    let Some(control) = wire.legacy.control.get() else { return };
    let method = Method::Cancelled.as_str();
    let mut message = Vec::with_capacity(params.len() + 80);
    jsonrpc::write_notification(&mut message, method, params);
    let session = call.session().unwrap_or_else(|| wire.legacy.session());
    let shot = Shot::post(&session, message.into()).with(&call.extra);
    send::say(wire, &control.stack, shot, method).await;
}

/// 2025-11-25 transports §Session Management: SHOULD end a session that is no longer needed.
async fn goodbye(wire: &Wire) {
    // In this order: whoever opens a session anew moves it from the one place to the other.
    let offered = lock(&wire.legacy.offered).take();
    let session = wire.legacy.session();
    let offered = Session { id: offered, ..Session::default() };
    tokio::join!(delete(wire, &session), delete(wire, &offered));
}

/// Ends a session.
pub(super) async fn delete(wire: &Wire, session: &Session) {
    let Some(control) = wire.legacy.control.get() else { return };
    if session.id.is_some() {
        send::say(wire, &control.stack, Shot::delete(session), "the end of the session").await;
    }
}
