//! Entries that are forgotten when their time is over, without waiting for the next access.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

/// A collection whose entries have a time to live.
pub(crate) trait Expire: Send + 'static {
    /// Removes the entries whose time is over.
    fn expire(&mut self);
    fn is_empty(&self) -> bool;
    /// Returns how long an entry may stay after its time is over.
    fn interval(&self) -> Duration;
}

/// A shared collection. A task removes expired entries for as long as there are entries.
#[derive(Default)]
pub(crate) struct ExpiringStore<T>(Arc<Mutex<Watched<T>>>);

#[derive(Default)]
struct Watched<T> {
    entries: T,
    has_task: bool,
}

impl<T: Expire> ExpiringStore<T> {
    pub(crate) fn new(entries: T) -> ExpiringStore<T> {
        ExpiringStore(Arc::new(Mutex::new(Watched { entries, has_task: false })))
    }

    /// Reads or changes the collection. Outside of a runtime no task is started.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut watched = lock(&self.0);
        let result = change(&mut watched.entries);
        if !watched.has_task
            && !watched.entries.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            watched.has_task = true;
            let interval = watched.entries.interval();
            // A runtime that shuts down drops the task at once, which takes the lock.
            drop(watched);
            runtime.spawn(ExpiryTask(Arc::downgrade(&self.0)).run(interval));
        }
        result
    }
}

fn lock<T>(watched: &Mutex<Watched<T>>) -> MutexGuard<'_, Watched<T>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task of a collection. Another one is started after it ends, also if its runtime ends.
struct ExpiryTask<T>(Weak<Mutex<Watched<T>>>);

impl<T: Expire> ExpiryTask<T> {
    async fn run(self, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            let Some(watched) = self.0.upgrade() else { return };
            let mut watched = lock(&watched);
            watched.entries.expire();
            if watched.entries.is_empty() {
                return;
            }
        }
    }
}

impl<T> Drop for ExpiryTask<T> {
    fn drop(&mut self) {
        if let Some(watched) = self.0.upgrade() {
            lock(&watched).has_task = false;
        }
    }
}
