//! Grants that end with the process.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{GrantStore, Lease, StoreFuture, StoreKey, Stored, Swap, Version};
use crate::Secret;

/// Keeps grants until the process ends. Clones share what they keep.
///
/// ```
/// use turnbuckle_auth::{GrantStore as _, MemoryStore, Secret, StoreKey, Swap};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), turnbuckle_auth::AuthError> {
/// let store = MemoryStore::new();
/// let key = StoreKey::grant("https://mcp.example.com/mcp");
/// let Swap::Done(version) = store.swap(&key, None, Some(Secret::new("{}"))).await? else { panic!() };
/// assert!(store.load(&key).await?.is_some_and(|stored| stored.version == version));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<HashMap<StoreKey, MemorySlot>>>);

/// What is known of a key. It stays when its record is deleted: someone may hold its lease.
#[derive(Default)]
struct MemorySlot {
    stored: Option<Stored>,
    lease: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn with<T>(&self, key: &StoreKey, act: impl FnOnce(&mut MemorySlot) -> T) -> T {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(slots.entry(key.clone()).or_default())
    }
}

impl GrantStore for MemoryStore {
    fn load(&self, key: &StoreKey) -> StoreFuture<'_, Option<Stored>> {
        let stored = self.with(key, |slot| slot.stored.clone());
        Box::pin(async move { Ok(stored) })
    }

    fn swap(
        &self,
        key: &StoreKey,
        expected: Option<Version>,
        record: Option<Secret>,
    ) -> StoreFuture<'_, Swap> {
        let key = key.clone();
        Box::pin(async move {
            let version = Version::random()?;
            Ok(self.with(&key, |slot| {
                if slot.stored.as_ref().map(|stored| &stored.version) != expected.as_ref() {
                    return Swap::Conflict;
                }
                let next = version.clone();
                slot.stored = record.map(|record| Stored { version: next, record });
                Swap::Done(version)
            }))
        })
    }

    fn lease(&self, key: &StoreKey, _longest: Duration) -> StoreFuture<'_, Lease> {
        let lease = self.with(key, |slot| slot.lease.clone());
        // A task that dies drops its guard.
        Box::pin(async move { Ok(Lease::new(lease.lock_owned().await)) })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::store::contract;

    #[tokio::test]
    async fn keeps_the_contract_of_stores() {
        let store = MemoryStore::new();
        contract::holds(&store, &store.clone()).await;
    }
}
