//! Owns what lets a request state be used once: the store of those that were used.
//! Does not own the states.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use crate::store::{StoreError, StoreFuture};

/// Remembers which request states were used, so that none is used twice: for servers where the
/// same answers must not be redeemed again. Replicas have to share one.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex, time::SystemTime};
/// use turnbuckle::{StoreFuture, elicit::StateStore};
///
/// /// In place of a database with a unique key and an expiry.
/// #[derive(Default)]
/// struct Rows(Mutex<HashMap<[u8; 16], SystemTime>>);
///
/// impl StateStore for Rows {
///     fn spend(&self, id: [u8; 16], until: SystemTime) -> StoreFuture<'_, bool> {
///         Box::pin(async move { Ok(self.0.lock().unwrap().insert(id, until).is_none()) })
///     }
/// }
/// # let _ = Rows::default();
/// ```
pub trait StateStore: Send + Sync + 'static {
    /// Whether this is the first use of a state. Of two at the same time, one must be the first.
    /// It may be forgotten after `until`: then the state itself has expired.
    fn spend(&self, id: [u8; 16], until: SystemTime) -> StoreFuture<'_, bool>;
}

/// A store in this process's memory. It remembers each state until it expires; when it is full of
/// those that have not, the next is refused rather than forgotten.
///
/// ```
/// use turnbuckle::{
///     Server,
///     elicit::{Asking, MemoryStates},
/// };
/// let asking = Asking::default().single_use(MemoryStates::new(10_000));
/// let server = Server::new("shop", "1.0").asking(asking);
/// # let _ = server;
/// ```
#[derive(Debug)]
pub struct MemoryStates {
    most: usize,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    ids: HashSet<[u8; 16]>,
    /// Invariant: the same ids, the first to expire on top.
    order: BinaryHeap<Reverse<(SystemTime, [u8; 16])>>,
}

impl MemoryStates {
    /// Remembers at most this many at a time.
    pub fn new(most: usize) -> MemoryStates {
        MemoryStates { most, spent: Mutex::default() }
    }

    fn spend_at(
        &self,
        id: [u8; 16],
        until: SystemTime,
        now: SystemTime,
    ) -> Result<bool, StoreError> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(Reverse((expired, id))) = spent.order.peek().copied()
            && expired <= now
        {
            spent.order.pop();
            spent.ids.remove(&id);
        }
        if spent.ids.contains(&id) {
            return Ok(false);
        }
        if spent.ids.len() >= self.most {
            return Err("no more request states can be remembered for now".into());
        }
        spent.ids.insert(id);
        spent.order.push(Reverse((until, id)));
        Ok(true)
    }
}

impl Default for MemoryStates {
    fn default() -> MemoryStates {
        MemoryStates::new(100_000)
    }
}

impl StateStore for MemoryStates {
    fn spend(&self, id: [u8; 16], until: SystemTime) -> StoreFuture<'_, bool> {
        Box::pin(async move { self.spend_at(id, until, SystemTime::now()) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn each_is_spent_once_until_it_expires_and_a_full_store_refuses() {
        let store = MemoryStates::new(2);
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let spend = |id, until, now| store.spend_at([id; 16], at(until), at(now)).ok();
        assert_eq!(spend(1, 20, 0), Some(true));
        assert_eq!(spend(1, 20, 0), Some(false));
        assert_eq!(spend(2, 10, 1), Some(true));
        assert_eq!(spend(3, 30, 2), None, "full");
        assert_eq!(spend(2, 10, 9), Some(false), "also when full");
        assert_eq!(spend(3, 30, 10), Some(true), "the second has expired");
        assert_eq!(spend(1, 20, 10), Some(false), "the first has not");
        assert_eq!(store.spent.lock().unwrap().order.len(), 2);
    }
}
