//! The connections and the memory of each peer address.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::rpc::memory::MemoryBudget;

/// The peers that have connections or messages.
#[derive(Default)]
pub(crate) struct PeerConnections(Mutex<HashMap<IpAddr, KnownPeer>>);

#[derive(Default)]
struct KnownPeer {
    connections: usize,
    /// Calls of a session may outlive the connections.
    memory: Weak<MemoryBudget>,
}

impl KnownPeer {
    fn is_gone(&self) -> bool {
        self.connections == 0 && self.memory.strong_count() == 0
    }
}

/// Counts a connection until it is dropped.
pub(crate) struct PeerConnection {
    peers: Arc<PeerConnections>,
    address: IpAddr,
    /// The share of the peer, for all its connections.
    pub(crate) memory: Arc<MemoryBudget>,
}

impl PeerConnections {
    /// Counts a connection. Returns `None` if its address has `limit` of them.
    pub(crate) fn add(
        self: &Arc<Self>,
        address: IpAddr,
        limit: usize,
        server: &Arc<MemoryBudget>,
    ) -> Option<PeerConnection> {
        let address = network(address);
        let mut peers = self.lock();
        if peers.len() == peers.capacity() {
            peers.retain(|_, peer| !peer.is_gone());
        }
        let peer = peers.entry(address).or_default();
        if peer.connections >= limit {
            return None;
        }
        peer.connections += 1;
        let memory = peer.memory.upgrade().unwrap_or_else(|| server.share());
        peer.memory = Arc::downgrade(&memory);
        drop(peers);
        Some(PeerConnection { peers: self.clone(), address, memory })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, KnownPeer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let mut peers = self.peers.lock();
        if let Some(peer) = peers.get_mut(&self.address) {
            peer.connections -= 1;
        }
    }
}

/// Returns the address that is counted. One host has a whole /64 network of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn each_address_has_its_own_count() {
        let (peers, server) = (Arc::new(PeerConnections::default()), MemoryBudget::new(10_000));
        let add = |address: &str| peers.add(address.parse().unwrap(), 2, &server);
        let kept = [add("192.0.2.1"), add("::ffff:192.0.2.1"), add("2001:db8::1")];
        assert!(kept.iter().all(Option::is_some));
        assert!(add("192.0.2.1").is_none());
        let other = add("192.0.2.2");
        let same_network = add("2001:db8::2");
        assert!(other.is_some() && same_network.is_some() && add("2001:db8::3").is_none());
        drop((kept, other, same_network));
        assert!(add("192.0.2.1").is_some() && add("2001:db8::3").is_some());
        assert!(peers.add("192.0.2.1".parse().unwrap(), 0, &server).is_none());
    }

    #[test]
    fn the_connections_of_an_address_share_memory_beyond_their_end() {
        let (peers, server) = (Arc::new(PeerConnections::default()), MemoryBudget::new(10_000));
        let add = |address: &str| peers.add(address.parse().unwrap(), 10, &server).unwrap();
        let (one, other) = (add("192.0.2.1"), add("192.0.2.1"));
        let held = [one.memory.hold(2_500), other.memory.hold(2_500)];
        drop((one, other));
        assert!(add("192.0.2.1").memory.check().is_err(), "calls that go on count");
        assert!(add("192.0.2.2").memory.check().is_ok());
        drop(held);
        assert!(add("192.0.2.1").memory.check().is_ok());
    }

    #[test]
    fn peers_that_have_left_are_forgotten() {
        let (peers, server) = (Arc::new(PeerConnections::default()), MemoryBudget::new(10_000));
        for number in 0..1_000_u32 {
            drop(peers.add(Ipv4Addr::from(number).into(), 1, &server).unwrap());
        }
        assert!(peers.lock().len() < 100);
    }
}
