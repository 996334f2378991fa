//! The current snapshot of a running server, and its replacement.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::{
    Definition, RegistrySnapshot, Section,
    notifier::{Burst, ChangeNotifier},
};
use crate::server::{handler::extract::States, items::ItemKind, notify::changes::Changes};

/// The registry of a running server.
pub(crate) struct LiveRegistry {
    now: Arc<CurrentSnapshot>,
    states: Arc<States>,
    /// Held while the next snapshot is made.
    writing: Mutex<()>,
    notifier: ChangeNotifier,
}

/// The snapshot that answers requests.
pub(super) struct CurrentSnapshot(RwLock<Arc<RegistrySnapshot>>);

impl CurrentSnapshot {
    pub(super) fn snapshot(&self) -> Arc<RegistrySnapshot> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl LiveRegistry {
    pub(crate) fn new(
        snapshot: RegistrySnapshot,
        states: Arc<States>,
        changes: Changes,
    ) -> LiveRegistry {
        let now = Arc::new(CurrentSnapshot(RwLock::new(Arc::new(snapshot))));
        let notifier = ChangeNotifier::new(now.clone(), changes);
        LiveRegistry { now, states, writing: Mutex::new(()), notifier }
    }

    pub(crate) fn snapshot(&self) -> Arc<RegistrySnapshot> {
        self.now.snapshot()
    }

    /// Makes the next snapshot with one section edited. Nothing changes if `edit` returns `None` or
    /// adds problems. The error has one sentence per problem.
    pub(super) fn change<T: Definition, R>(
        &self,
        edit: impl FnOnce(Draft<'_, T>) -> Option<R>,
    ) -> Result<Option<R>, Vec<String>> {
        // Dropping an item may run user code that calls this again: values declared before the lock
        // is taken are dropped after it is released.
        let (before, mut section, mut problems, edited, burst);
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        before = self.snapshot();
        section = Some(Section::clone(T::section(&before)));
        problems = Vec::new();
        edited = section.as_mut().and_then(|section| {
            edit(Draft { section, states: &self.states, problems: &mut problems })
        });
        let is_sound = problems.is_empty() && edited.is_some();
        burst = section.take_if(|_| is_sound).and_then(|section| self.publish(&before, section));
        drop(writing);
        if let Some(burst) = burst {
            burst.begin();
        }
        if problems.is_empty() { Ok(edited) } else { Err(problems) }
    }

    /// Publishes a section. The caller holds `writing`, so that bursts are recorded in the order of
    /// the changes, each when it is visible.
    fn publish<T: Definition>(
        &self,
        before: &Arc<RegistrySnapshot>,
        mut section: Section<T>,
    ) -> Option<Burst> {
        let mut next = RegistrySnapshot::clone(before);
        section.settle(next.page_size);
        *T::section_mut(&mut next) = Arc::new(section);
        if T::KIND == ItemKind::Template {
            next.route();
        }
        *self.now.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        self.notifier.changed_from(before)
    }
}

/// A section that is being changed.
pub(super) struct Draft<'a, T> {
    pub(super) section: &'a mut Section<T>,
    pub(super) states: &'a States,
    pub(super) problems: &'a mut Vec<String>,
}
