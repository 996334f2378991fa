//! Calls that share one request.

#![cfg(shuttle)]

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Waker},
};

use shuttle::{
    future::{block_on, yield_now},
    thread,
};
use turnbuckle::__seam::models::{ModelCache, ModelCall};
use turnbuckle_models::check;
use turnbuckle_types::Raw;

/// Counts the requests that reach the server.
#[derive(Clone, Default)]
struct Server {
    begun: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
}

/// A request that runs, until it ends or is dropped.
struct Running(Server);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, SeqCst);
    }
}

impl Server {
    /// A request that takes a while.
    async fn answer(self) -> Raw {
        self.begun.fetch_add(1, SeqCst);
        assert_eq!(self.running.fetch_add(1, SeqCst), 0, "two requests run at a time");
        let running = Running(self);
        yield_now().await;
        running.0.answered.fetch_add(1, SeqCst);
        Raw::empty_object()
    }
}

fn call(cache: &ModelCache, server: &Server) -> Raw {
    match cache.call(server.clone().answer()) {
        ModelCall::Kept(raw) => raw,
        ModelCall::Waiting(result) => block_on(result),
    }
}

#[test]
fn calls_share_one_request() {
    check(|| {
        let (cache, server) = (ModelCache::new(), Server::default());
        let calls = [(); 3].map(|()| {
            let (cache, server) = (cache.clone(), server.clone());
            thread::spawn(move || call(&cache, &server))
        });
        calls.into_iter().for_each(|call| drop(call.join().unwrap()));
        assert_eq!(server.begun.load(SeqCst), 1);
    });
}

/// A caller that leaves does not disturb the others; the last one takes the request along.
#[test]
fn a_caller_that_leaves_disturbs_no_other() {
    check(|| {
        let (cache, server) = (ModelCache::new(), Server::default());
        let leaving = thread::spawn({
            let (cache, server) = (cache.clone(), server.clone());
            move || {
                let ModelCall::Waiting(result) = cache.call(server.answer()) else { return };
                let mut result = pin!(result);
                let _ = result.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                thread::yield_now();
            }
        });
        let staying = thread::spawn({
            let (cache, server) = (cache.clone(), server.clone());
            move || call(&cache, &server)
        });
        staying.join().unwrap();
        leaving.join().unwrap();
        assert_eq!(server.running.load(SeqCst), 0, "a request outlives its callers");
        assert!(server.answered.load(SeqCst) >= 1 && server.begun.load(SeqCst) <= 2);
    });
}

/// A call that begins after an invalidation gets no result from before it.
#[test]
fn nothing_older_than_an_invalidation_is_kept() {
    check(|| {
        let cache = ModelCache::new();
        let version = Arc::new(AtomicUsize::new(0));
        let read = |version: Arc<AtomicUsize>| async move {
            let seen = version.load(SeqCst);
            yield_now().await;
            Raw::from(serde_json::json!(seen))
        };
        let early = thread::spawn({
            let (cache, version) = (cache.clone(), version.clone());
            move || match cache.call(read(version)) {
                ModelCall::Kept(raw) => assert_eq!(raw.as_str(), "1", "a stale result"),
                ModelCall::Waiting(result) => drop(block_on(result)),
            }
        });
        let changing = thread::spawn({
            let (cache, version) = (cache.clone(), version.clone());
            move || {
                version.store(1, SeqCst);
                cache.invalidate();
                let found = match cache.call(read(version)) {
                    ModelCall::Kept(raw) => raw,
                    ModelCall::Waiting(result) => block_on(result),
                };
                assert_eq!(found.as_str(), "1", "a stale result");
            }
        });
        changing.join().unwrap();
        early.join().unwrap();
    });
}
