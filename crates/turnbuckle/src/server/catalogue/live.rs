//! Owns the catalogue of a server that runs, and how one snapshot follows another.
//! Does not own who may change it.

use std::sync::{
    Arc, Mutex, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use super::{Catalogue, Item, Shelf, news::News};
use crate::server::{changes::Changes, extract::States, visibility::OfferKind};

/// What is offered now.
pub(in crate::server) struct Live {
    now: Arc<Now>,
    states: Arc<States>,
    /// Held by whoever makes the next snapshot.
    writing: Mutex<()>,
    news: News,
    registered: AtomicBool,
}

/// The snapshot that requests are answered from.
pub(super) struct Now(RwLock<Arc<Catalogue>>);

impl Now {
    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Live {
    pub(in crate::server) fn new(
        catalogue: Catalogue,
        states: Arc<States>,
        changes: Changes,
    ) -> Live {
        let now = Arc::new(Now(RwLock::new(Arc::new(catalogue))));
        let news = News::new(now.clone(), changes);
        Live { now, states, writing: Mutex::new(()), news, registered: AtomicBool::new(false) }
    }

    pub(in crate::server) fn catalogue(&self) -> Arc<Catalogue> {
        self.now.catalogue()
    }

    /// Whether it may change.
    pub(in crate::server) fn may_change(&self) -> bool {
        self.registered.load(Ordering::Acquire)
    }

    /// From now on it may change.
    pub(in crate::server) fn will_change(&self) {
        self.registered.store(true, Ordering::Release);
    }

    /// Makes the next snapshot, in which one shelf is another. `None` from `edit` leaves everything
    /// as it is. The error is one sentence a problem; then, too, nothing has changed.
    pub(super) fn change<T: Item, R>(
        &self,
        edit: impl FnOnce(Draft<'_, T>) -> Option<R>,
    ) -> Result<Option<R>, Vec<String>> {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.catalogue();
        let mut next = Catalogue::clone(&before);
        let mut shelf = Shelf::clone(T::shelf(&before));
        let mut problems = Vec::new();
        let draft = Draft { shelf: &mut shelf, states: &self.states, problems: &mut problems };
        let edited = edit(draft);
        if !problems.is_empty() {
            return Err(problems);
        }
        if edited.is_none() {
            return Ok(None);
        }
        shelf.settle(next.page_size);
        *T::shelf_mut(&mut next) = Arc::new(shelf);
        if T::KIND == OfferKind::Template {
            next = next.routed();
        }
        *self.now.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        drop(writing);
        self.news.changed_from(before);
        Ok(edited)
    }
}

/// A shelf that is being changed.
pub(super) struct Draft<'a, T> {
    pub(super) shelf: &'a mut Shelf<T>,
    pub(super) states: &'a States,
    pub(super) problems: &'a mut Vec<String>,
}
