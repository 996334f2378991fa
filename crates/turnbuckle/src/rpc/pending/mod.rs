//! Owns which requests are in flight, in both directions: minting, correlation,
//! collisions, late answers. Does not own any I/O, any task, or what a request is.

use std::collections::{HashMap, hash_map::Entry};

use turnbuckle_types::{Key, RequestId};

/// Requests sent and not yet answered (`O`), requests received and still running (`I`).
#[derive(Debug)]
pub(crate) struct PendingTable<O, I> {
    next_id: u64,
    next_serial: u64,
    sent: HashMap<Key, PendingRequest<O>>,
    running: HashMap<Key, PendingRequest<I>>,
}

/// One request in flight.
#[derive(Debug)]
struct PendingRequest<T> {
    /// Tells this use of an id from an earlier one that is still unwinding.
    serial: Serial,
    data: T,
}

/// A name for one request that, unlike its id, is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Serial(pub(crate) u64);

/// The id is in flight already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Collision(pub(crate) RequestId);

impl<O, I> Default for PendingTable<O, I> {
    fn default() -> Self {
        PendingTable { next_id: 1, next_serial: 1, sent: HashMap::new(), running: HashMap::new() }
    }
}

impl<O, I> PendingTable<O, I> {
    /// Enters a request that is about to be sent. Without an id one is minted, past any
    /// that a caller's own choice occupies; only a chosen id can collide.
    pub(crate) fn send(
        &mut self,
        chosen: Option<RequestId>,
        data: O,
    ) -> Result<(RequestId, Serial), Collision> {
        self.send_with(chosen, |_| data)
    }

    /// [`send`](PendingTable::send) for data that needs to know the id.
    pub(crate) fn send_with(
        &mut self,
        chosen: Option<RequestId>,
        data: impl FnOnce(&RequestId) -> O,
    ) -> Result<(RequestId, Serial), Collision> {
        let id = match chosen {
            Some(id) if self.sent.contains_key(&id.key()) => return Err(Collision(id)),
            Some(id) => id,
            None => self.mint(),
        };
        let serial = self.serial();
        self.sent.insert(id.key(), PendingRequest { serial, data: data(&id) });
        Ok((id, serial))
    }

    fn mint(&mut self) -> RequestId {
        loop {
            let id = RequestId::from(self.next_id);
            self.next_id += 1;
            if !self.sent.contains_key(&id.key()) {
                return id;
            }
        }
    }

    fn serial(&mut self) -> Serial {
        let serial = Serial(self.next_serial);
        self.next_serial += 1;
        serial
    }

    /// Ends the request that an answer names. `None`: it is late or was never asked.
    pub(crate) fn answer(&mut self, id: &RequestId) -> Option<O> {
        self.sent.remove(&id.key()).map(|flight| flight.data)
    }

    /// The request that a progress token or a subscription id names.
    pub(crate) fn sent(&self, id: &RequestId) -> Option<&O> {
        self.sent.get(&id.key()).map(|flight| &flight.data)
    }

    /// Ends a request whose caller went away. `None`: it had ended already.
    pub(crate) fn abandon(&mut self, id: &RequestId, serial: Serial) -> Option<O> {
        take(&mut self.sent, id, serial)
    }

    /// Ends all sent requests that `is_meant` selects.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn abandon_all(&mut self, mut is_meant: impl FnMut(&O) -> bool) -> Vec<O> {
        self.sent.extract_if(|_, flight| is_meant(&flight.data)).map(|(_, it)| it.data).collect()
    }

    /// Returns the requests that were sent and have no answer.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn all_sent(&self) -> impl Iterator<Item = &O> {
        self.sent.values().map(|flight| &flight.data)
    }

    /// Enters a request that arrived, unless its id is running already.
    pub(crate) fn accept(&mut self, id: &RequestId, data: I) -> Result<Serial, Collision> {
        let serial = Serial(self.next_serial);
        match self.running.entry(id.key()) {
            Entry::Occupied(_) => Err(Collision(id.clone())),
            Entry::Vacant(vacant) => {
                vacant.insert(PendingRequest { serial, data });
                self.next_serial += 1;
                Ok(serial)
            }
        }
    }

    /// The data of a request that is still running.
    pub(crate) fn running(&mut self, id: &RequestId, serial: Serial) -> Option<&mut I> {
        let flight = self.running.get_mut(&id.key())?;
        (flight.serial == serial).then_some(&mut flight.data)
    }

    /// Ends a running request that has its answer. `None`: it was cancelled, and the
    /// answer must not be sent.
    pub(crate) fn finish(&mut self, id: &RequestId, serial: Serial) -> Option<I> {
        take(&mut self.running, id, serial)
    }

    /// Ends a running request that the peer gave up. `None`: unknown or finished.
    pub(crate) fn cancel(&mut self, id: &RequestId) -> Option<(Serial, I)> {
        self.running.remove(&id.key()).map(|flight| (flight.serial, flight.data))
    }

    /// Ends everything: what was sent, what was running.
    pub(crate) fn close(&mut self) -> (Vec<O>, Vec<(Serial, I)>) {
        (self.close_sent(), self.close_running())
    }

    /// Ends what was sent.
    pub(crate) fn close_sent(&mut self) -> Vec<O> {
        self.sent.drain().map(|(_, flight)| flight.data).collect()
    }

    /// Ends what was running.
    pub(crate) fn close_running(&mut self) -> Vec<(Serial, I)> {
        self.running.drain().map(|(_, flight)| (flight.serial, flight.data)).collect()
    }

    /// How many requests run.
    pub(crate) fn running_len(&self) -> usize {
        self.running.len()
    }

    /// How many requests there are, in both directions.
    pub(crate) fn in_flight(&self) -> usize {
        self.sent.len() + self.running.len()
    }

    /// How many requests wait for an answer.
    #[cfg(test)]
    pub(crate) fn sent_len(&self) -> usize {
        self.sent.len()
    }
}

fn take<T>(map: &mut HashMap<Key, PendingRequest<T>>, id: &RequestId, serial: Serial) -> Option<T> {
    match map.entry(id.key()) {
        Entry::Occupied(entry) if entry.get().serial == serial => Some(entry.remove().data),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
