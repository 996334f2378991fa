//! Budgets in bytes for the messages that a server or a client keeps in memory.

use std::{
    cmp::Ordering,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

#[cfg(all(feature = "http", feature = "server"))]
use bytes::Bytes;
use turnbuckle_types::RpcError;

/// Smaller messages are not counted. Other limits bound their number.
const COUNTED: usize = 1024;

/// The bytes that messages may occupy: requests from their first byte until their handler ends,
/// responses until their last byte is written.
///
/// A share is a budget of a connection. Its bytes count towards the budget of the server, too.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used: AtomicUsize,
    limit: usize,
    server: Option<Arc<MemoryBudget>>,
}

impl MemoryBudget {
    /// Creates the budget of a server or a client.
    pub(crate) fn new(limit: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { used: AtomicUsize::new(0), limit, server: None })
    }

    /// Creates the share of one connection, which is half of the budget.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<MemoryBudget> {
        let (used, limit) = (AtomicUsize::new(0), self.limit / 2);
        Arc::new(MemoryBudget { used, limit, server: Some(self.clone()) })
    }

    /// Fails if the budget is used up.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn check(&self) -> Result<(), RpcError> {
        self.check_beside(None)
    }

    /// Fails if other messages use up the budget.
    pub(crate) fn check_beside(&self, own: Option<&HeldBytes>) -> Result<(), RpcError> {
        let own = own.map_or(0, HeldBytes::bytes);
        let server = self.server.as_deref().filter(|server| server.is_used_up(own));
        match server.or_else(|| self.is_used_up(own).then_some(self)) {
            None => Ok(()),
            Some(used_up) => Err(RpcError::internal(used_up.message())),
        }
    }

    /// Returns the sentence that refuses a message.
    pub(crate) fn message(&self) -> String {
        let limit = self.limit;
        match self.server {
            None => {
                format!("messages use too much memory: the limit is {limit} bytes (memory_bytes)")
            }
            Some(_) => format!(
                "messages of this connection use too much memory: the limit is {limit} bytes \
                 (half of memory_bytes)"
            ),
        }
    }

    fn is_used_up(&self, own: usize) -> bool {
        self.used.load(Relaxed).saturating_sub(own) >= self.limit
    }

    fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        if let Some(server) = &self.server {
            server.used.fetch_add(bytes, Relaxed);
        }
    }

    fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        if let Some(server) = &self.server {
            server.used.fetch_sub(bytes, Relaxed);
        }
    }

    /// Counts a message. Returns `None` for a small one.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Option<HeldBytes> {
        (bytes >= COUNTED).then(|| {
            let mut held = HeldBytes::new(self.clone());
            held.set(bytes);
            held
        })
    }

    /// Counts the bytes of a response until the last reference to them is dropped. Bytes that are
    /// shared are not counted: they are kept in any case.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn keep(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        if bytes.len() < COUNTED || !bytes.is_unique() {
            return bytes;
        }
        let mut held = HeldBytes::new(self.clone());
        held.set(bytes.len());
        Bytes::from_owner(KeptBytes { bytes, _held: held })
    }
}

/// Bytes that count towards a budget until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl HeldBytes {
    pub(crate) fn new(budget: Arc<MemoryBudget>) -> HeldBytes {
        HeldBytes { budget, bytes: 0 }
    }

    /// Sets how many bytes there are.
    pub(crate) fn set(&mut self, bytes: usize) {
        let bytes = if bytes < COUNTED { 0 } else { bytes };
        match bytes.cmp(&self.bytes) {
            Ordering::Equal => return,
            Ordering::Greater => self.budget.add(bytes - self.bytes),
            Ordering::Less => self.budget.remove(self.bytes - bytes),
        }
        self.bytes = bytes;
    }

    /// Sets how many bytes there are. Fails if they count and other messages use up the budget.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn try_set(&mut self, bytes: usize) -> Result<(), RpcError> {
        if bytes >= COUNTED {
            self.budget.check_beside(Some(self))?;
        }
        self.set(bytes);
        Ok(())
    }

    /// Takes the bytes, if there are any.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn take(&mut self) -> Option<HeldBytes> {
        let bytes = std::mem::take(&mut self.bytes);
        (bytes > 0).then(|| HeldBytes { budget: self.budget.clone(), bytes })
    }

    /// Returns how many bytes count.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(all(feature = "http", feature = "server"))]
struct KeptBytes {
    bytes: Bytes,
    _held: HeldBytes,
}

#[cfg(all(feature = "http", feature = "server"))]
impl AsRef<[u8]> for KeptBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(all(test, feature = "http", feature = "server"))]
mod tests {
    use super::*;

    fn used(budget: &MemoryBudget) -> usize {
        budget.used.load(Relaxed)
    }

    #[test]
    fn bytes_count_towards_connection_and_server_until_they_are_dropped() {
        let server = MemoryBudget::new(10_000);
        let (one, other) = (server.share(), server.share());
        let held = one.hold(4_000).unwrap();
        let response = other.keep(vec![0; 3_000].into());
        assert_eq!((used(&server), used(&one), used(&other)), (7_000, 4_000, 3_000));
        let slice = response.slice(2_900..);
        drop((held, response));
        assert_eq!((used(&server), used(&one), used(&other)), (3_000, 0, 3_000));
        drop(slice);
        assert_eq!((used(&server), used(&other)), (0, 0));
    }

    #[test]
    fn a_connection_may_use_half_and_all_of_them_together_the_whole() {
        let server = MemoryBudget::new(10_000);
        let (one, other, third) = (server.share(), server.share(), server.share());
        let held = one.hold(5_000);
        assert!(one.check().unwrap_err().message.contains("this connection"));
        assert!(other.check().is_ok() && server.check().is_ok());
        let second = other.hold(5_000);
        assert!(third.check().unwrap_err().message.contains("10000 bytes (memory_bytes)"));
        drop((held, second));
        assert!(one.check().is_ok() && third.check().is_ok());
    }

    #[test]
    fn small_and_shared_bytes_are_not_counted() {
        let budget = MemoryBudget::new(10_000);
        assert!(budget.hold(COUNTED - 1).is_none());
        let shared = Bytes::from(vec![0; 5_000]);
        let kept = budget.keep(shared.clone());
        assert_eq!((used(&budget), kept), (0, shared));
    }
}
