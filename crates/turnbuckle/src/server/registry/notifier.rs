//! Reports a burst of changes to the registry once.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{RegistrySnapshot, live::CurrentSnapshot};
use crate::{rpc::spawn_boxed, server::notify::changes::Changes};

/// A burst is over when nothing has changed for this long.
const LULL: Duration = Duration::from_millis(10);

/// Changes are reported after this many waits even if they go on.
const LULLS: usize = 10;

/// Collects changes and reports them together.
pub(super) struct ChangeNotifier(Arc<Inner>);

struct Inner {
    now: Arc<CurrentSnapshot>,
    changes: Changes,
    pending: Mutex<Option<PendingBurst>>,
}

/// A burst that is not reported yet.
struct PendingBurst {
    /// The snapshot before its first change.
    before: Arc<RegistrySnapshot>,
    count: u64,
}

impl ChangeNotifier {
    pub(super) fn new(now: Arc<CurrentSnapshot>, changes: Changes) -> ChangeNotifier {
        ChangeNotifier(Arc::new(Inner { now, changes, pending: Mutex::new(None) }))
    }

    /// Records a change from this snapshot. Changes must be recorded in their order, so that the
    /// snapshot before the first one is known. The caller begins the burst that it is given.
    pub(super) fn changed_from(&self, before: &Arc<RegistrySnapshot>) -> Option<Burst> {
        match &mut *self.0.lock() {
            Some(pending) => {
                pending.count += 1;
                None
            }
            none => {
                *none = Some(PendingBurst { before: before.clone(), count: 0 });
                Some(Burst(BurstGuard(self.0.clone())))
            }
        }
    }
}

/// A new burst, to be started with [`begin`](Burst::begin).
#[must_use]
pub(super) struct Burst(BurstGuard);

impl Burst {
    /// Reports the burst when it is over. Runs user code: the subscription bus.
    pub(super) fn begin(self) {
        // Without a runtime there is no timer: each change is a burst.
        if Handle::try_current().is_ok() {
            spawn_boxed(Box::pin(wait(self.0)));
        }
    }
}

/// Waits until the changes stop, or for the longest time.
async fn wait(end: BurstGuard) {
    let count = || end.0.lock().as_ref().map(|pending| pending.count);
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

/// Reports the burst when dropped, also if the runtime shuts down before.
struct BurstGuard(Arc<Inner>);

impl Drop for BurstGuard {
    fn drop(&mut self) {
        let Some(PendingBurst { before, .. }) = self.0.lock().take() else { return };
        let now = self.0.now.snapshot();
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
    fn lock(&self) -> MutexGuard<'_, Option<PendingBurst>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
