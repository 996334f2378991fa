//! A cache without a connection, for the concurrency models in `models/`.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use turnbuckle_types::{Method, Raw, Revision};

use super::{
    ClientCache, ResponseCache,
    key::CachedRequest,
    memory::{Fetch, Fetched, Flight, FlightState, SharedFetch, SharingKey},
};
use crate::{
    client::{builder::FIRST, connection::Retry},
    error::Error,
    rpc::{Abandon, BoxFuture},
};

/// The cache of one client, for one request.
#[derive(Clone)]
pub struct ModelCache(Arc<ClientCache>);

/// A call: its result in memory, or the request that it waits for. Dropping it gives the call up.
pub enum ModelCall {
    /// The result was in memory.
    Kept(Raw),
    /// The request is in flight.
    Waiting(BoxFuture<'static, Raw>),
}

impl ModelCache {
    /// Creates an empty cache.
    pub fn new() -> ModelCache {
        ModelCache(Arc::new(ClientCache::new(ResponseCache::new())))
    }

    /// Looks the result up, joins the request in flight, or begins one with `send`.
    pub fn call(&self, send: impl Future<Output = Raw> + Send + 'static) -> ModelCall {
        let request = CachedRequest { method: Method::ListTools, params: String::new() };
        let key: SharingKey = (None, Retry::default(), Abandon::Signal, None, false);
        let now = self.0.now();
        let mut memory = self.0.memory();
        if let Some(fetched) = memory.get(&request, FIRST, now) {
            return ModelCall::Kept(fetched.raw);
        }
        let begun = memory.begin(now);
        let fetch = Fetch { request, revision: Revision::LATEST, generation: FIRST, begun };
        let cache = self.0.clone();
        let flight = memory.join(fetch, key, |fetch| shared(cache, fetch, send));
        let (Flight::Begun(flight) | Flight::Joined(flight)) = flight;
        drop(memory);
        let SharedFetch { outcome, .. } = flight;
        ModelCall::Waiting(outcome.map(|fetched| fetched.expect("a result").raw).boxed())
    }

    /// Invalidates the result, as a notification does.
    pub fn invalidate(&self) {
        self.0.invalidate_all();
    }
}

/// A request that several calls wait for, and that keeps its result.
fn shared(
    cache: Arc<ClientCache>,
    fetch: Fetch,
    send: impl Future<Output = Raw> + Send + 'static,
) -> SharedFetch {
    let (sign, signs) = watch::channel(());
    let fetching = async move {
        let raw = send.await;
        let fetched = Fetched { value: Arc::new(()), raw, is_shareable: true };
        cache.remember(&fetch, fetched.clone(), std::time::Duration::from_secs(60));
        drop(sign);
        Ok::<_, Arc<Error>>(fetched)
    };
    let state = FlightState { signs, clock: Arc::default(), cancel_reason: Arc::default() };
    SharedFetch { outcome: fetching.boxed().shared(), state: Arc::new(state) }
}

impl Default for ModelCache {
    fn default() -> ModelCache {
        ModelCache::new()
    }
}

impl std::fmt::Debug for ModelCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelCache").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ModelCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelCall").finish_non_exhaustive()
    }
}
