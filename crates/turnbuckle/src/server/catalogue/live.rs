//! Owns the catalogue of a server that runs, and how one snapshot follows another.
//! Does not own who may change it.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::{
    Catalogue, Item, Shelf,
    news::{Burst, News},
};
use crate::server::{changes::Changes, extract::States, visibility::OfferKind};

/// What is offered now.
pub(crate) struct Live {
    now: Arc<Now>,
    states: Arc<States>,
    /// Held by whoever makes the next snapshot.
    writing: Mutex<()>,
    news: News,
}

/// The snapshot that requests are answered from.
pub(super) struct Now(RwLock<Arc<Catalogue>>);

impl Now {
    pub(super) fn catalogue(&self) -> Arc<Catalogue> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Live {
    pub(crate) fn new(catalogue: Catalogue, states: Arc<States>, changes: Changes) -> Live {
        let now = Arc::new(Now(RwLock::new(Arc::new(catalogue))));
        let news = News::new(now.clone(), changes);
        Live { now, states, writing: Mutex::new(()), news }
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        self.now.catalogue()
    }

    /// Makes the next snapshot, in which one shelf is another. `None` from `edit` leaves everything
    /// as it is. The error is one sentence a problem; then, too, nothing has changed.
    pub(super) fn change<T: Item, R>(
        &self,
        edit: impl FnOnce(Draft<'_, T>) -> Option<R>,
    ) -> Result<Option<R>, Vec<String>> {
        // What is dropped may be an author's, who may come back here: nothing is while this is
        // held, so that whatever could be the last of its kind was there before.
        let (before, mut shelf, mut problems, edited, burst);
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        before = self.catalogue();
        shelf = Some(Shelf::clone(T::shelf(&before)));
        problems = Vec::new();
        edited = shelf
            .as_mut()
            .and_then(|shelf| edit(Draft { shelf, states: &self.states, problems: &mut problems }));
        let is_sound = problems.is_empty() && edited.is_some();
        burst = shelf.take_if(|_| is_sound).and_then(|shelf| self.publish(&before, shelf));
        drop(writing);
        if let Some(burst) = burst {
            burst.begin();
        }
        if problems.is_empty() { Ok(edited) } else { Err(problems) }
    }

    /// Makes a shelf part of what is offered. The caller holds `writing`: bursts are recorded in
    /// the order of the changes, and each when it can be seen.
    fn publish<T: Item>(&self, before: &Arc<Catalogue>, mut shelf: Shelf<T>) -> Option<Burst> {
        let mut next = Catalogue::clone(before);
        shelf.settle(next.page_size);
        *T::shelf_mut(&mut next) = Arc::new(shelf);
        if T::KIND == OfferKind::Template {
            next.route();
        }
        *self.now.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        self.news.changed_from(before)
    }
}

/// A shelf that is being changed.
pub(super) struct Draft<'a, T> {
    pub(super) shelf: &'a mut Shelf<T>,
    pub(super) states: &'a States,
    pub(super) problems: &'a mut Vec<String>,
}
