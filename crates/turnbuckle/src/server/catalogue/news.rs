//! Owns that a burst of changes to a catalogue is told once. Does not own the changes, nor who
//! listens.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{Catalogue, live::Now};
use crate::server::changes::Changes;

/// A burst is over when nothing has changed for this long.
const LULL: Duration = Duration::from_millis(10);

/// After this many lulls that were none, what has changed so far is told.
const LULLS: usize = 10;

/// Tells of changes, together.
pub(super) struct News(Arc<Inner>);

struct Inner {
    now: Arc<Now>,
    changes: Changes,
    changing: Mutex<Option<Changing>>,
}

/// What changes now.
struct Changing {
    /// What there was before it all.
    before: Arc<Catalogue>,
    count: u64,
}

impl News {
    pub(super) fn new(now: Arc<Now>, changes: Changes) -> News {
        News(Arc::new(Inner { now, changes, changing: Mutex::new(None) }))
    }

    /// Something has changed; this is what there was before. Changes are told here in their order,
    /// or what the first of them was made from would not be known. Whoever is given a burst
    /// begins it.
    pub(super) fn changed_from(&self, before: &Arc<Catalogue>) -> Option<Burst> {
        match &mut *self.0.lock() {
            Some(changing) => {
                changing.count += 1;
                None
            }
            none => {
                *none = Some(Changing { before: before.clone(), count: 0 });
                Some(Burst(End(self.0.clone())))
            }
        }
    }
}

/// A burst that nobody waits for yet.
#[must_use]
pub(super) struct Burst(End);

impl Burst {
    /// Tells of it when it is over. Runs authors' code: what carries changes may be theirs.
    pub(super) fn begin(self) {
        // Without a runtime there is nothing to wait with: each change is a burst.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(wait(self.0));
        }
    }
}

/// Waits until nothing changes any more, or for long enough.
async fn wait(end: End) {
    let count = || end.0.lock().as_ref().map(|changing| changing.count);
    let mut before = count();
    for _ in 0..LULLS {
        tokio::time::sleep(LULL).await;
        let now = count();
        if now == before {
            return;
        }
        before = now;
    }
}

/// Dropping it ends the burst: also if the runtime goes down before.
struct End(Arc<Inner>);

impl Drop for End {
    fn drop(&mut self) {
        let Some(Changing { before, .. }) = self.0.lock().take() else { return };
        let now = self.0.now.catalogue();
        let changes = &self.0.changes;
        if !before.tools.is_listed_like(&now.tools) {
            changes.tools();
        }
        if !before.prompts.is_listed_like(&now.prompts) {
            changes.prompts();
        }
        if !before.resources.is_listed_like(&now.resources)
            || !before.templates.is_listed_like(&now.templates)
        {
            changes.resources();
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Option<Changing>> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
