//! Owns how many requests run at once. Does not own how often they come.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnbuckle_types::RpcError;

use super::{
    apply::{Policy, tower_layer},
    next::BoxError,
    request::{Request, Response},
    who::Who,
};

/// The code of the error when too many requests wait already.
pub const BUSY: i64 = 503;

/// Runs only so many requests at once; a few more wait their turn, the rest are refused with
/// [`BUSY`].
///
/// Clones share one limit: give one to several tools, and together they run no more. Streams of
/// changes do not count.
///
/// ```
/// use turnbuckle::{Server, layer::Concurrency};
/// let server = Server::new("demo", "1.0")
///     .layer(Concurrency::new(64).waiting(256))
///     .layer(Concurrency::new(4).per_principal());
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct Concurrency {
    running: usize,
    waiting: usize,
    who: Who,
    gates: Arc<Mutex<HashMap<String, Gate>>>,
}

/// The places of one share. Invariant: it is in the map while anyone runs or waits.
#[derive(Debug)]
struct Gate {
    places: Arc<Semaphore>,
    /// Who runs or waits.
    users: usize,
}

impl Concurrency {
    /// So many at once. As many again may wait, unless told otherwise.
    pub fn new(running: usize) -> Concurrency {
        // A semaphore has an upper bound of its own, which nobody reaches.
        let running = running.clamp(1, Semaphore::MAX_PERMITS);
        Concurrency { running, waiting: running, who: Who::Everyone, gates: Arc::default() }
    }

    /// How many may wait for a place.
    #[must_use]
    pub fn waiting(self, waiting: usize) -> Concurrency {
        Concurrency { waiting, ..self }
    }

    /// Counts for each [`Principal`](crate::Principal) apart.
    #[must_use]
    pub fn per_principal(self) -> Concurrency {
        Concurrency { who: Who::principal(), gates: Arc::default(), ..self }
    }

    /// Counts apart for each value of `key`, such as a tenant.
    #[must_use]
    pub fn per(self, key: impl Fn(&Request) -> String + Send + Sync + 'static) -> Concurrency {
        Concurrency { who: Who::by(key), gates: Arc::default(), ..self }
    }

    /// How many shares there are just now.
    #[cfg(all(test, feature = "http", feature = "client"))]
    pub(super) fn shares(&self) -> usize {
        self.gates().len()
    }

    fn gates(&self) -> MutexGuard<'_, HashMap<String, Gate>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters the line, unless it is full.
    fn line_up(&self, key: String) -> Result<(InLine, Arc<Semaphore>), RpcError> {
        let mut gates = self.gates();
        let gate = gates
            .entry(key.clone())
            .or_insert_with(|| Gate { places: Arc::new(Semaphore::new(self.running)), users: 0 });
        if gate.users >= self.running.saturating_add(self.waiting) {
            let (running, waiting) = (self.running, self.waiting);
            let message =
                format!("too busy: {running} requests run and {waiting} wait; try again later");
            return Err(RpcError::new(BUSY, message));
        }
        gate.users += 1;
        let places = gate.places.clone();
        drop(gates);
        Ok((InLine { concurrency: self.clone(), key }, places))
    }
}

/// One who runs or waits. Dropping it makes room.
struct InLine {
    concurrency: Concurrency,
    key: String,
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut gates = self.concurrency.gates();
        let Some(gate) = gates.get_mut(&self.key) else { return };
        gate.users -= 1;
        if gate.users == 0 {
            gates.remove(&self.key);
        }
    }
}

tower_layer!(Concurrency);

impl Policy for Concurrency {
    async fn apply<F, Fut>(self, request: Request, inner: F) -> Result<Response, BoxError>
    where
        F: FnOnce(Request) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Response, BoxError>> + Send + 'static,
    {
        if request.is_long_lived() {
            return inner(request).await;
        }
        let (in_line, places) = self.line_up(self.who.of(&request))?;
        // The semaphore is never closed.
        let place: Option<OwnedSemaphorePermit> = places.acquire_owned().await.ok();
        let answered = inner(request).await;
        // The place is free before the line is shorter: who is let in finds it.
        drop(place);
        drop(in_line);
        answered
    }
}
