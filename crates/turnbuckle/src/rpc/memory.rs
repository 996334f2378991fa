//! Budgets in bytes for the messages that a server or a client keeps in memory.

use std::{
    cmp::Ordering,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
#[cfg(all(feature = "http", feature = "server"))]
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError, Weak},
};

#[cfg(all(feature = "http", feature = "server"))]
use bytes::Bytes;
use turnbuckle_types::RpcError;

/// Smaller messages are not counted. Other limits bound their number.
const COUNTED: usize = 1024;

/// The bytes that messages may occupy: requests from their first byte until their handler ends,
/// responses until their last byte is written.
///
/// The bytes of a share count towards the budgets around it, too.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used: AtomicUsize,
    limit: usize,
    owner: MemoryOwner,
    within: Vec<Arc<MemoryBudget>>,
}

/// The messages that a budget counts.
#[derive(Debug)]
enum MemoryOwner {
    /// All messages of a server or a client.
    Program,
    /// Those of a connection, or of all connections of an address.
    Peer,
    #[cfg(all(feature = "http", feature = "server"))]
    Principal,
    /// Those of a request. It has no limit of its own.
    #[cfg(all(feature = "http", feature = "server"))]
    Request,
}

impl MemoryBudget {
    /// Creates the budget of a server or a client.
    pub(crate) fn new(limit: usize) -> Arc<MemoryBudget> {
        MemoryBudget::of(MemoryOwner::Program, limit, Vec::new())
    }

    /// Creates the share of a connection or a peer address, which is half of the budget.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<MemoryBudget> {
        MemoryBudget::of(MemoryOwner::Peer, self.limit / 2, vec![self.clone()])
    }

    fn of(owner: MemoryOwner, limit: usize, within: Vec<Arc<MemoryBudget>>) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { used: AtomicUsize::new(0), limit, owner, within })
    }

    /// Fails if the budget is used up.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn check(&self) -> Result<(), RpcError> {
        self.check_beside(None)
    }

    /// Fails if other messages use up the budget, or one around it.
    pub(crate) fn check_beside(&self, own: Option<&HeldBytes>) -> Result<(), RpcError> {
        match self.used_up(own.map_or(0, HeldBytes::bytes)) {
            None => Ok(()),
            Some(used_up) => Err(RpcError::internal(used_up.message())),
        }
    }

    /// Returns the sentence that refuses a message.
    pub(crate) fn message(&self) -> String {
        let (whose, part) = match self.owner {
            MemoryOwner::Program => ("", ""),
            MemoryOwner::Peer => (" of this peer", "half of "),
            #[cfg(all(feature = "http", feature = "server"))]
            MemoryOwner::Principal => (" of this principal", "half of "),
            #[cfg(all(feature = "http", feature = "server"))]
            MemoryOwner::Request => (" of this request", ""),
        };
        let limit = self.limit;
        format!(
            "messages{whose} use too much memory: the limit is {limit} bytes ({part}memory_bytes)"
        )
    }

    /// Returns whether messages use half of the budget.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn is_half_used(&self) -> bool {
        self.used.load(Relaxed) >= self.limit / 2
    }

    /// Returns the outermost budget that other messages use up.
    fn used_up(&self, own: usize) -> Option<&MemoryBudget> {
        let around = self.within.iter().find_map(|budget| budget.used_up(own));
        let is_used_up = self.used.load(Relaxed).saturating_sub(own) >= self.limit;
        around.or_else(|| is_used_up.then_some(self))
    }

    fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
        self.within.iter().for_each(|budget| budget.add(bytes));
    }

    fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Relaxed);
        self.within.iter().for_each(|budget| budget.remove(bytes));
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

/// The shares of the principals that have messages.
#[cfg(all(feature = "http", feature = "server"))]
#[derive(Debug, Default)]
pub(crate) struct PrincipalShares(Mutex<HashMap<String, Weak<MemoryBudget>>>);

#[cfg(all(feature = "http", feature = "server"))]
impl PrincipalShares {
    /// Creates the budget of a request. It counts towards the share of its connection and towards
    /// that of its principal, which is half of `memory_bytes`.
    pub(crate) fn request(
        &self,
        connection: &Arc<MemoryBudget>,
        principal: &str,
        memory_bytes: usize,
    ) -> Arc<MemoryBudget> {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let share = shares.get(principal).and_then(Weak::upgrade).unwrap_or_else(|| {
            if shares.len() == shares.capacity() {
                shares.retain(|_, share| share.strong_count() > 0);
            }
            let share = MemoryBudget::of(MemoryOwner::Principal, memory_bytes / 2, Vec::new());
            shares.insert(principal.to_owned(), Arc::downgrade(&share));
            share
        });
        MemoryBudget::of(MemoryOwner::Request, usize::MAX, vec![connection.clone(), share])
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

    /// Fails if other messages use up the budget.
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) fn check(&self) -> Result<(), RpcError> {
        self.budget.check_beside(Some(self))
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
        assert!(one.check().unwrap_err().message.contains("this peer"));
        assert!(other.check().is_ok() && server.check().is_ok());
        let second = other.hold(5_000);
        assert!(third.check().unwrap_err().message.contains("10000 bytes (memory_bytes)"));
        drop((held, second));
        assert!(one.check().is_ok() && third.check().is_ok());
    }

    #[test]
    fn a_principal_may_use_half_on_all_its_connections_together() {
        let (server, shares) = (MemoryBudget::new(10_000), PrincipalShares::default());
        let request = |principal: &str| shares.request(&server.share(), principal, 10_000);
        let held = [request("ann").hold(2_500), request("ann").hold(2_500)];
        assert_eq!(used(&server), 5_000, "the bytes count once for the server");
        assert!(request("ann").check().unwrap_err().message.contains("this principal"));
        assert!(request("ben").check().is_ok());
        drop(held);
        assert!(request("ann").check().is_ok());
        for number in 0..1_000 {
            assert!(request(&number.to_string()).check().is_ok());
        }
        assert!(shares.0.lock().unwrap().len() < 1_000, "shares without messages are forgotten");
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
