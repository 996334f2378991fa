//! Owns the one task that a legacy connection has from its handshake on: it takes calls that were
//! given up, and says goodbye. Does not own how they are cancelled: `cancels` does that.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, mpsc};

use super::{
    Control, Phase, Session, Wire, asking,
    cancels::{Abandoned, Cancels, Rest},
    lock,
    send::{self, Shot},
};

/// How many calls may be in flight, or given up and not yet seen to, before one more waits.
const PLACES: usize = 4096;
/// How long cancels may still take when the connection is closed, and then the goodbye.
const LAST_CANCELS: Duration = Duration::from_secs(1);
const GOODBYE: Duration = Duration::from_secs(2);

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
    let mut cancels = Cancels::new(&wire);
    let mut closing = std::pin::pin!(wire.legacy.closing());
    loop {
        tokio::select! {
            biased;
            () = &mut closing => break,
            Some(job) = abandoned.recv() => cancels.take(job),
            true = cancels.step() => {}
        }
    }
    abandoned.close();
    places.close();
    while let Ok(job) = abandoned.try_recv() {
        cancels.take(job);
    }
    for (id, call) in std::mem::take(&mut *lock(&wire.legacy.unfinished)) {
        let params = asking::cancel(&id, "the client closed the connection");
        cancels.take(Abandoned { call, params, rest: Rest::default() });
    }
    let rest = async { while cancels.step().await {} };
    let _ = tokio::time::timeout(LAST_CANCELS, rest).await;
    let _ = tokio::time::timeout(GOODBYE, goodbye(&wire)).await;
}

struct Over<'a>(&'a Wire);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.legacy.phase.send_replace(Phase::Over);
    }
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
