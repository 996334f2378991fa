//! Limits how many requests run at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnbuckle_types::RpcError;

use super::{
    policy::{Inner, Policy, ShareKey, policy_layer},
    request::Request,
};
use crate::{
    middleware::{BoxError, Response},
    server::Lent,
};

/// The error code if too many requests wait already.
pub const BUSY: i64 = 503;

/// Limits how many requests run at once. Some more wait for their turn; the rest is rejected with
/// [`BUSY`].
///
/// Clones share one limit: give one to several tools to limit them together. A
/// `subscriptions/listen` does not count, nor does a resource that a handler reads that counts
/// already. A handler that runs on after its request was cancelled counts until it ends.
///
/// ```
/// use turnbuckle::{Server, middleware::server::Concurrency};
/// let server = Server::new("demo", "1.0")
///     .layer(Concurrency::new(64).waiting(256))
///     .layer(Concurrency::new(4).per_principal());
/// # let _ = server;
/// ```
#[derive(Clone, Debug)]
pub struct Concurrency {
    running: usize,
    waiting: usize,
    key: ShareKey,
    shares: Arc<Mutex<HashMap<String, ConcurrencyShare>>>,
}

/// One share of the limit. It is in the map while a request runs or waits.
#[derive(Debug)]
struct ConcurrencyShare {
    permits: Arc<Semaphore>,
    /// How many requests run or wait.
    requests: usize,
}

impl Concurrency {
    /// Creates a limit of `running` requests at once. As many may wait, unless
    /// [`waiting`](Concurrency::waiting) says otherwise.
    pub fn new(running: usize) -> Concurrency {
        let running = running.clamp(1, Semaphore::MAX_PERMITS);
        let key = ShareKey::default();
        Concurrency { running, waiting: running, key, shares: Arc::default() }
    }

    /// Sets how many requests may wait.
    #[must_use]
    pub fn waiting(self, waiting: usize) -> Concurrency {
        Concurrency { waiting, ..self }
    }

    /// Limits each [`Principal`](crate::Principal) separately.
    #[must_use]
    pub fn per_principal(self) -> Concurrency {
        Concurrency { key: ShareKey::principal(), shares: Arc::default(), ..self }
    }

    /// Limits each value of `key` separately, for example a tenant.
    #[must_use]
    pub fn per(self, key: impl Fn(&Request) -> String + Send + Sync + 'static) -> Concurrency {
        Concurrency { key: ShareKey::new(key), shares: Arc::default(), ..self }
    }

    #[cfg(all(test, feature = "http", feature = "client"))]
    pub(super) fn share_count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ConcurrencyShare>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request, unless too many wait already.
    fn enter(&self, key: String) -> Result<(Counted, Arc<Semaphore>), RpcError> {
        let &Concurrency { running, waiting, .. } = self;
        let mut shares = self.lock();
        let share = shares.entry(key.clone()).or_insert_with(|| ConcurrencyShare {
            permits: Arc::new(Semaphore::new(running)),
            requests: 0,
        });
        if share.requests >= running.saturating_add(waiting) {
            let message =
                format!("too busy: {running} requests run and {waiting} wait; try again later");
            return Err(RpcError::new(BUSY, message));
        }
        share.requests += 1;
        let permits = share.permits.clone();
        drop(shares);
        Ok((Counted { limit: self.clone(), key }, permits))
    }
}

/// A request that runs or waits, until it is dropped.
struct Counted {
    limit: Concurrency,
    key: String,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut shares = self.limit.lock();
        let Some(share) = shares.get_mut(&self.key) else { return };
        share.requests -= 1;
        if share.requests == 0 {
            shares.remove(&self.key);
        }
    }
}

/// A request that runs. The permit is dropped first: a request that may wait then finds it.
struct RunPermit {
    _permit: Option<OwnedSemaphorePermit>,
    counted: Counted,
}

impl RunPermit {
    fn is_of(&self, limit: &Concurrency, key: &str) -> bool {
        Arc::ptr_eq(&self.counted.limit.shares, &limit.shares) && self.counted.key == key
    }
}

policy_layer!(Concurrency);

impl Policy for Concurrency {
    async fn apply(self, request: Request, inner: impl Inner) -> Result<Response, BoxError> {
        if request.is_long_lived() {
            return inner.send(request).await;
        }
        let key = self.key.of(&request);
        let runs = |lent: &Arc<Lent>| {
            lent.downcast_ref::<RunPermit>().is_some_and(|permit| permit.is_of(&self, &key))
        };
        // A handler that waits for a part of its own request would wait for itself.
        if request.ctx().depth() > 0 && request.ctx().lent().iter().any(runs) {
            return inner.send(request).await;
        }
        let (counted, permits) = self.enter(key)?;
        // The semaphore is never closed.
        let permit = permits.acquire_owned().await.ok();
        let permit: Arc<Lent> = Arc::new(RunPermit { _permit: permit, counted });
        request.ctx().lend(&permit);
        let answered = inner.send(request).await;
        drop(permit);
        answered
    }
}
