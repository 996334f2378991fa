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
use crate::server::context::Lent;

/// The code of the error when too many requests wait already.
pub const BUSY: i64 = 503;

/// Runs only so many requests at once; a few more wait their turn, the rest are refused with
/// [`BUSY`].
///
/// Clones share one limit: give one to several tools, and together they run no more. Streams of
/// changes do not count, nor do resources that a handler reads which has its place already. A
/// handler that goes on after its request was given up keeps its place until it ends.
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

/// The place of one who runs. It is free before the line is shorter: who is let in finds it.
struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    in_line: InLine,
}

impl Place {
    /// Whether it is one of these.
    fn is_of(&self, concurrency: &Concurrency, key: &str) -> bool {
        let InLine { concurrency: own, key: own_key } = &self.in_line;
        Arc::ptr_eq(&own.gates, &concurrency.gates) && own_key == key
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
        let key = self.who.of(&request);
        let has_place = |lent: &Arc<Lent>| {
            lent.downcast_ref::<Place>().is_some_and(|place| place.is_of(&self, &key))
        };
        // A handler that waits for a part of its own request would wait for itself.
        if request.ctx().depth() > 0 && request.ctx().lent().iter().any(has_place) {
            return inner(request).await;
        }
        let (in_line, places) = self.line_up(key)?;
        // The semaphore is never closed.
        let permit = places.acquire_owned().await.ok();
        let place: Arc<Lent> = Arc::new(Place { _permit: permit, in_line });
        request.ctx().lend(&place);
        let answered = inner(request).await;
        drop(place);
        answered
    }
}
