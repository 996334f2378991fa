//! Owns the cancels of calls that were given up: when one is due, how many are posted at once,
//! and what becomes of the POST that it cancels.
//! Does not own who gives a call up, nor the end of the connection.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::{
    sync::OwnedSemaphorePermit,
    task::JoinSet,
    time::{Instant, timeout},
};
use turnbuckle_types::{Method, Raw, jsonrpc};

use super::{
    Call, Wire,
    asking::Leaving,
    lock,
    send::{self, Shot},
};
use crate::{dispatch::BoxFuture, error::Result};

/// How many cancels are posted at once.
const AT_ONCE: usize = 64;
/// How long a request that was begun may take to be sent to its end.
const WRITING: Duration = Duration::from_secs(5);
/// How long after the request its cancel is posted at the earliest, so that it does not overtake what
/// it cancels, unless the head of the answer is here.
const LEAD: Duration = Duration::from_millis(20);
/// The same where the head comes as soon as the server has the request: until then a cancel would
/// be of something unknown.
const LEAD_TO_HEAD: Duration = Duration::from_secs(5);
/// How long a cancel waits for its turn. A server that takes none would else have all calls
/// that were given up wait here; it learns from the end of their POSTs, if at all.
const TURN: Duration = Duration::from_secs(10);
/// How long posting a cancel may take.
const POSTING: Duration = Duration::from_secs(5);
/// How long what the server still says to a call that was given up is listened to.
const DRAINING: Duration = Duration::from_secs(2);

/// A call that nobody waits for any more, and that the server may have seen.
pub(super) struct Abandoned {
    pub(super) call: Arc<Call>,
    /// Of its cancel.
    pub(super) params: String,
    pub(super) rest: Rest,
}

/// What is left of a call that was given up. Nothing of one that a close cut off.
#[derive(Default)]
pub(super) struct Rest {
    /// Where its POST is, whatever its stage. `None` once that has ended.
    pub(super) post: Option<BoxFuture<'static, Result<Raw>>>,
    /// Lets the id be used again.
    pub(super) leaving: Option<Leaving>,
    /// Given back when it was seen to.
    pub(super) _place: Option<OwnedSemaphorePermit>,
}

/// All of them that are not yet posted. There are never more than places.
pub(super) struct Cancels {
    wire: Arc<Wire>,
    /// Those whose request may still be on its way.
    early: JoinSet<Option<Abandoned>>,
    /// Those that can be posted.
    due: Arc<Due>,
    /// Each posts one after another, on a connection that the last one left: a task for each
    /// cancel would be a thousand of them that wait for their turn.
    posting: JoinSet<()>,
}

/// In the order in which they became due, and since when.
type Due = Mutex<VecDeque<(Abandoned, Instant)>>;

impl Cancels {
    pub(super) fn new(wire: &Arc<Wire>) -> Cancels {
        let (early, posting) = (JoinSet::new(), JoinSet::new());
        Cancels { wire: wire.clone(), early, due: Arc::default(), posting }
    }

    /// Takes one on. Its request is sent to its end, its cancel is posted, and only then may its
    /// POST be closed.
    pub(super) fn take(&mut self, job: Abandoned) {
        let begins_early = self.wire.legacy.begins_early.load(Relaxed);
        let lead = if begins_early { LEAD_TO_HEAD } else { LEAD };
        if job.rest.post.is_none() || job.call.lead_left(lead) == Some(Duration::ZERO) {
            self.post(job);
        } else {
            self.early.spawn(sent(job, lead));
        }
    }

    /// Goes on with them until one was sent or nothing is left to one who posts. `false` if there
    /// are none. Dropping it loses nothing.
    pub(super) async fn step(&mut self) -> bool {
        tokio::select! {
            Some(sent) = self.early.join_next() => {
                if let Ok(Some(job)) = sent {
                    self.post(job);
                }
            }
            Some(_) = self.posting.join_next() => self.hire(),
            else => return false,
        }
        true
    }

    fn post(&mut self, job: Abandoned) {
        lock(&self.due).push_back((job, Instant::now()));
        self.hire();
    }

    /// Whoever posts ends when nothing is due, so there is one more for what is.
    fn hire(&mut self) {
        if self.posting.len() < AT_ONCE && !lock(&self.due).is_empty() {
            self.posting.spawn(post_all(self.wire.clone(), self.due.clone()));
        }
    }
}

/// Waits until the request was sent, and has the lead or the head of its answer. `None` if there is
/// nothing to cancel any more.
async fn sent(mut job: Abandoned, lead: Duration) -> Option<Abandoned> {
    let Abandoned { call, rest, .. } = &mut job;
    let written = async {
        if let Some(progress) = call.progress() {
            tokio::select! {
                () = progress.finished() => {}
                () = answered(call) => {}
            }
        }
    };
    let mut ended = rest.go_on(timeout(WRITING, written)).await;
    if ended.is_none() {
        let left = call.lead_left(lead).unwrap_or(lead);
        ended = rest.go_on(timeout(left, answered(call))).await;
    }
    ended.as_ref().is_none_or(is_running).then_some(job)
}

async fn post_all(wire: Arc<Wire>, due: Arc<Due>) {
    loop {
        // Not in the condition of the loop: the lock would be held in its body.
        let next = lock(&due).pop_front();
        let Some((job, since)) = next else { return };
        if since.elapsed() < TURN {
            post(&wire, job).await;
        } else {
            let params = job.params;
            tracing::debug!(params, "a cancel is not posted: too many waited for their turn");
        }
    }
}

/// Posts one cancel. What arrives meanwhile is still acted on.
async fn post(wire: &Arc<Wire>, job: Abandoned) {
    let Abandoned { call, params, mut rest } = job;
    // Its end may be here, unread.
    let ended = rest.go_on(std::future::ready(())).await;
    if ended.as_ref().is_none_or(is_running) {
        let mut cancelling = std::pin::pin!(cancel(wire, &call, &params));
        if rest.go_on(&mut cancelling).await.is_some() {
            cancelling.await;
        }
    }
    rest.leaving = None;
    if rest.post.is_some() {
        tokio::spawn(drain(wire.clone(), rest));
    }
}

/// Listens to what the server still says, so that the connection can be used again.
async fn drain(wire: Arc<Wire>, mut rest: Rest) {
    rest.go_on(timeout(DRAINING, wire.legacy.closing())).await;
}

/// Whether the server may be at it still, although its POST has ended.
fn is_running(ended: &Result<Raw>) -> bool {
    ended.as_ref().is_err_and(|error| error.as_rpc().is_none() && error.maybe_executed())
}

impl Rest {
    /// Goes on with the POST until `enough`; returns its end if that came first.
    async fn go_on(&mut self, enough: impl Future) -> Option<Result<Raw>> {
        let Some(post) = &mut self.post else {
            enough.await;
            return None;
        };
        let ended = tokio::select! {
            biased;
            ended = post => ended,
            _ = enough => return None,
        };
        self.post = None;
        Some(ended)
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
    send::say_within(POSTING, wire, &control.stack, shot, method).await;
}
