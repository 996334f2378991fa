//! Owns who hears that the roots of a legacy client are others, and how many may hear at once.
//! Does not own the roots: a handler asks for those of now.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use crate::{
    protocol::classify::ClientHello,
    rpc::{BoxFuture, spawn_boxed},
    server::handler::context::ConnectionContext,
};
use tokio::sync::Semaphore;
use turnbuckle_types::{Implementation, Revision};

/// How many connections may be heard of at once. Each takes one place, however often its client
/// speaks; a host whose hook does not end hears of no more than these.
const AT_ONCE: usize = 256;

/// Whose roots have changed: what [`Server::on_roots_changed`](crate::Server::on_roots_changed) is
/// told.
#[derive(Clone)]
pub struct RootsChanged {
    opened: Arc<ClientHello>,
    connection: Arc<ConnectionContext>,
}

impl RootsChanged {
    pub(crate) fn new(
        opened: Arc<ClientHello>,
        connection: Arc<ConnectionContext>,
    ) -> RootsChanged {
        RootsChanged { opened, connection }
    }

    /// What the client calls itself.
    pub fn client_info(&self) -> &Implementation {
        &self.opened.client.client_info
    }

    /// The revision that the connection speaks.
    pub fn revision(&self) -> Revision {
        self.opened.revision
    }

    /// A value that the connection was given with
    /// [`Serving::extension`](crate::server::Serving::extension) or
    /// [`Serving::principal`](crate::server::Serving::principal), as its handlers have it.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.connection.values.get()
    }
}

impl fmt::Debug for RootsChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootsChanged").field("opened", &self.opened).finish_non_exhaustive()
    }
}

type RootsCallback = dyn Fn(RootsChanged) -> BoxFuture<'static, ()> + Send + Sync;

/// Who hears of changes.
#[derive(Clone)]
pub(crate) struct RootsHook {
    hear: Arc<RootsCallback>,
    places: Arc<Semaphore>,
    /// [`told`], which a program that has no hook does not link.
    tell: fn(&RootsHook, &Arc<HookState>, RootsChanged),
}

impl RootsHook {
    pub(crate) fn new<F, Fut>(hear: F) -> RootsHook
    where
        F: Fn(RootsChanged) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hear = Arc::new(move |changed| -> BoxFuture<'static, ()> { Box::pin(hear(changed)) });
        RootsHook { hear, places: Arc::new(Semaphore::new(AT_ONCE)), tell: told }
    }

    /// Tells of a change, from a task: whoever calls reads, and must not wait.
    pub(crate) fn tell(&self, course: &Arc<HookState>, changed: RootsChanged) {
        (self.tell)(self, course, changed);
    }
}

fn told(hook: &RootsHook, course: &Arc<HookState>, changed: RootsChanged) {
    if !course.begin() {
        return;
    }
    // Made here, so that a connection can be told of anew if there is no place for this one.
    let mut running = RunningHook { course: course.clone(), is_over: false };
    let Ok(place) = hook.places.clone().try_acquire_owned() else {
        tracing::warn!("nobody heard of changed roots: too many are heard of already");
        return;
    };
    let hear = hook.hear.clone();
    spawn_boxed(Box::pin(async move {
        let _place = place;
        loop {
            hear(changed.clone()).await;
            running.is_over = !running.course.goes_on();
            if running.is_over {
                break;
            }
        }
    }));
}

/// Whether a hook runs for one connection, and whether it has to run again after that: changes in
/// between are one.
#[derive(Default)]
pub(crate) struct HookState(AtomicU8);

const IDLE: u8 = 0;
const RUNS: u8 = 1;
const AGAIN: u8 = 2;

impl HookState {
    /// Whether nobody runs yet, so that whoever asked does from now on.
    fn begin(&self) -> bool {
        let next = |state| Some(if state == IDLE { RUNS } else { AGAIN });
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(IDLE)
    }

    /// Whether there was another change since the last run began.
    fn goes_on(&self) -> bool {
        let next = |state| Some(if state == AGAIN { RUNS } else { IDLE });
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(AGAIN)
    }
}

/// A hook that runs, or did until it panicked.
struct RunningHook {
    course: Arc<HookState>,
    /// It ended in good order, and another may have begun.
    is_over: bool,
}

impl Drop for RunningHook {
    fn drop(&mut self) {
        if !self.is_over {
            self.course.0.store(IDLE, Ordering::Release);
        }
    }
}
