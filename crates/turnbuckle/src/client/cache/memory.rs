//! Owns the answers that one client has at hand, decoded, and the fetches that are under way.
//! Does not own stores, nor asking the server.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::SystemTime,
};

use tokio::time::Instant;
use turnbuckle_types::LogLevel;

use super::{
    Fetch,
    evicted::{Evicted, Order},
    flight::{Flight, Value},
    key::{Request, Topic},
    lru::{Bounds, Lru},
};
use crate::{
    client::{connect::FIRST, link::Link, supervise::Retry},
    dispatch::Abandon,
};

/// How many requests are remembered because their answers must not be kept.
const MOST_UNKEPT: usize = 256;

pub(super) struct Memory {
    answers: Lru<Request, Remembered>,
    /// Whose last answer was stale when it came: nobody waits for another's.
    unkept: Lru<Request, ()>,
    pub(super) evicted: Evicted,
    flights: HashMap<Request, Vec<Boarding>>,
    /// The newest connection that was used.
    generation: u64,
}

/// An answer at hand.
pub(super) struct Remembered {
    pub(super) value: Value,
    pub(super) begun: Order,
    /// What a connection was told it has learned from; another has not.
    pub(super) generation: u64,
    /// By both clocks: one stands still while a machine sleeps, the other can be set.
    pub(super) until: (Instant, SystemTime),
}

/// A fetch that others may wait for, too.
struct Boarding {
    begun: Order,
    likeness: Likeness,
    flight: Weak<Flight>,
}

/// How a request is made, besides what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Likeness {
    pub(super) rounds: Option<usize>,
    pub(super) retry: Retry,
    pub(super) abandon: Abandon,
    pub(super) log_level: Option<LogLevel>,
    pub(super) signs: Signs,
}

/// Whether the server is asked for signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signs {
    Wanted,
    Unwanted,
}

impl Memory {
    pub(super) fn new(bounds: Bounds) -> Memory {
        Memory {
            answers: Lru::new(bounds),
            unkept: Lru::new(Bounds { entries: MOST_UNKEPT, weight: usize::MAX }),
            evicted: Evicted::default(),
            flights: HashMap::new(),
            generation: FIRST,
        }
    }

    /// Takes note of the connection that is used now. What happened between two connections nobody
    /// has heard of.
    pub(super) fn on(&mut self, generation: u64, now: impl FnOnce() -> SystemTime) {
        if generation > self.generation {
            self.generation = generation;
            self.missed(now());
        }
    }

    /// Whatever is kept may be stale.
    pub(super) fn missed(&mut self, now: SystemTime) {
        self.evicted.everything(now);
        self.answers.clear();
    }

    /// An answer that is still fresh.
    pub(super) fn recall(&mut self, request: &Request, generation: u64) -> Option<Value> {
        let found = self.answers.get(request)?;
        let (until, until_wall) = found.until;
        let fresh = found.generation == generation
            && Instant::now() < until
            && SystemTime::now() < until_wall;
        if fresh {
            return Some(found.value.clone());
        }
        self.answers.remove(request);
        None
    }

    /// Keeps an answer, unless it is stale or older than the one that is there. Returns whether it
    /// may be kept anywhere.
    pub(super) fn remember(&mut self, request: &Request, answer: Remembered, bytes: usize) -> bool {
        self.unkept.remove(request);
        let newer = self.answers.peek(request).is_some_and(|kept| kept.begun > answer.begun);
        if newer || self.evicted.since(&request.topic()).order > answer.begun {
            return false;
        }
        self.answers.insert(request.clone(), answer, bytes);
        true
    }

    /// Takes note of an answer that must not be kept. Returns whether an older one was there.
    pub(super) fn outdate(&mut self, request: &Request, begun: Order) -> bool {
        self.unkept.insert(request.clone(), (), 1);
        let older = self.answers.peek(request).is_some_and(|kept| kept.begun < begun);
        if older {
            self.answers.remove(request);
        }
        older
    }

    /// Whether answers to this are known to be stale when they come.
    pub(super) fn is_unkept(&self, request: &Request) -> bool {
        self.unkept.peek(request).is_some()
    }

    pub(super) fn evict(&mut self, topic: &Topic, now: SystemTime) {
        self.evicted.evict(topic, now);
        self.answers.retain(|request| request.topic() != *topic);
    }

    #[cfg(all(feature = "auth", feature = "http"))]
    pub(super) fn forget_all(&mut self, now: SystemTime) {
        self.evicted.everything(now);
        self.answers.retain(|_| false);
    }

    /// A fetch that begins now.
    pub(super) fn fetch(&mut self, request: Request, link: &Link) -> Fetch {
        let begun = self.evicted.order();
        Fetch { request, revision: link.revision(), generation: link.generation, begun }
    }

    /// A fetch of the same that is under way, and was begun after the last event.
    pub(super) fn aboard(&self, request: &Request, likeness: &Likeness) -> Option<Arc<Flight>> {
        let since = self.evicted.since(&request.topic()).order;
        let flights = self.flights.get(request)?;
        let mut alike = flights.iter().filter(|one| one.begun > since && one.likeness == *likeness);
        alike.find_map(|one| one.flight.upgrade())
    }

    pub(super) fn board(
        &mut self,
        request: Request,
        begun: Order,
        likeness: Likeness,
        flight: &Arc<Flight>,
    ) {
        let flights = self.flights.entry(request).or_default();
        flights.push(Boarding { begun, likeness, flight: Arc::downgrade(flight) });
    }

    /// A fetch is over, one way or the other.
    pub(super) fn landed(&mut self, request: &Request, begun: Order) {
        let Some(flights) = self.flights.get_mut(request) else { return };
        flights.retain(|one| one.begun != begun);
        if flights.is_empty() {
            self.flights.remove(request);
        }
    }
}
