//! The number of connections per peer address.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The open connections of each address.
#[derive(Default)]
pub(crate) struct PeerConnections(Mutex<HashMap<IpAddr, usize>>);

/// Counts a connection until it is dropped.
pub(crate) struct PeerConnection {
    peers: Arc<PeerConnections>,
    address: IpAddr,
}

impl PeerConnections {
    /// Counts a connection. Returns `None` if its address has `limit` of them.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr, limit: usize) -> Option<PeerConnection> {
        let address = network(address);
        let mut counts = self.lock();
        let count = counts.entry(address).or_default();
        if *count >= limit {
            if *count == 0 {
                counts.remove(&address);
            }
            return None;
        }
        *count += 1;
        drop(counts);
        Some(PeerConnection { peers: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let mut counts = self.peers.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
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
    use super::*;

    #[test]
    fn each_address_has_its_own_count() {
        let peers = Arc::new(PeerConnections::default());
        let add = |address: &str| peers.add(address.parse().unwrap(), 2);
        let kept = [add("192.0.2.1"), add("::ffff:192.0.2.1"), add("2001:db8::1")];
        assert!(kept.iter().all(Option::is_some));
        assert!(add("192.0.2.1").is_none());
        let other = add("192.0.2.2");
        let same_network = add("2001:db8::2");
        assert!(other.is_some() && same_network.is_some() && add("2001:db8::3").is_none());
        drop((kept, other, same_network));
        assert!(peers.lock().is_empty());
        assert!(peers.add("192.0.2.1".parse().unwrap(), 0).is_none());
        assert!(peers.lock().is_empty());
    }
}
