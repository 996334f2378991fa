//! Owns who listens at this replica, and what waits for each of them.
//! Does not own streams: each takes what waits for it when it can send.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use super::bus::Change;

/// How many distinct changes may wait for one stream. Past it the stream is ended: what it
/// would have to leave out is what its client would never learn.
pub(crate) const BACKLOG: usize = 1024;

/// Everyone who listens at one replica of a server. A [bus](crate::server::SubscriptionBus) is given
/// this once, and [delivers](Listeners::deliver) to it. Clones are the same listeners.
///
/// ```
/// use turnbuckle::server::{Change, Listeners};
/// let listeners = Listeners::default();
/// listeners.deliver(Change::Tools); // nobody listens
/// ```
#[derive(Clone, Default)]
pub struct Listeners(Arc<Hub>);

#[derive(Default)]
struct Hub(Mutex<ListenerTable>);

#[derive(Default)]
struct ListenerTable {
    /// Who wants to hear of what. Invariant: no row is empty, and each is sorted by number.
    topics: HashMap<Change, Vec<Entry>>,
    /// Numbers are given out in order and never twice.
    next: u64,
    streams: usize,
}

struct Entry {
    number: u64,
    mailbox: Arc<ListenerMailbox>,
    /// Where among the mailbox's topics this one stands.
    place: u32,
}

impl Listeners {
    /// Tells those who asked for it of a change. It waits for nobody, and wakes nobody else.
    pub fn deliver(&self, change: Change) {
        let woken: Vec<Waker> = match self.0.lock().topics.get(&change) {
            None => return,
            Some(row) => row.iter().filter_map(|entry| entry.mailbox.put(entry.place)).collect(),
        };
        // After the lock: a waker is foreign code, and may drop or open a listener.
        woken.into_iter().for_each(Waker::wake);
    }

    /// How many streams are open.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().streams
    }

    /// Whether nobody listens to anything, a connection included.
    #[cfg(test)]
    pub(crate) fn is_deserted(&self) -> bool {
        self.0.lock().topics.is_empty()
    }

    /// A stream, unless `limit` of them are open. Whatever is delivered from now on waits.
    pub(crate) fn stream(&self, topics: Vec<Change>, limit: usize) -> Option<ListenerHandle> {
        let mut book = self.0.lock();
        if book.streams >= limit {
            return None;
        }
        book.streams += 1;
        Some(self.enter(&mut book, topics, Kind::Stream))
    }

    /// The same for a whole connection, which is no stream and not counted. What it listens to may
    /// change: see [`ListenerHandle::add`].
    pub(crate) fn connection(&self, topics: Vec<Change>) -> ListenerHandle {
        self.enter(&mut self.0.lock(), topics, Kind::Connection)
    }

    fn enter(&self, book: &mut ListenerTable, topics: Vec<Change>, kind: Kind) -> ListenerHandle {
        let number = book.next;
        book.next += 1;
        let mailbox = Arc::new(ListenerMailbox::new(topics.clone()));
        for (place, topic) in (0..).zip(topics) {
            let entry = Entry { number, mailbox: mailbox.clone(), place };
            match book.topics.get_mut(&topic) {
                Some(row) => row.push(entry),
                None => drop(book.topics.insert(topic, vec![entry])),
            }
        }
        ListenerHandle { hub: self.0.clone(), mailbox, number, kind }
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listeners").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, ListenerTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListenerTable {
    /// Takes a listener out of the row of a topic, if it is in it.
    fn leave(&mut self, number: u64, topic: &Change) -> Option<Entry> {
        let row = self.topics.get_mut(topic)?;
        let index = row.binary_search_by_key(&number, |entry| entry.number).ok()?;
        let entry = row.remove(index);
        if row.is_empty() {
            self.topics.remove(topic);
        }
        Some(entry)
    }
}

/// One who listens. Dropping it ends that at once.
pub(crate) struct ListenerHandle {
    hub: Arc<Hub>,
    mailbox: Arc<ListenerMailbox>,
    number: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stream,
    Connection,
}

/// More waited than may wait, and has been thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behind;

impl ListenerHandle {
    /// Ready when something waits. Nothing is taken.
    pub(crate) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut backlog = self.mailbox.lock();
        if backlog.behind.is_some() || !backlog.queue.is_empty() {
            return Poll::Ready(());
        }
        match &mut backlog.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Takes what has waited longest.
    pub(crate) fn take(&self) -> Result<Option<Change>, Behind> {
        let mut backlog = self.mailbox.lock();
        if let Some(behind) = backlog.behind {
            return Err(behind);
        }
        let Some(place) = backlog.queue.pop_front() else { return Ok(None) };
        let slot = &mut backlog.slots[place as usize];
        slot.waits = false;
        Ok(slot.topic.clone())
    }

    /// Listens to one thing more from now on, unless it listens to `limit` others already. Says
    /// whether it does.
    #[must_use]
    pub(crate) fn add(&self, topic: &Change, limit: usize) -> bool {
        let mut book = self.hub.lock();
        let row = book.topics.get(topic).map(Vec::as_slice).unwrap_or_default();
        let Err(index) = row.binary_search_by_key(&self.number, |entry| entry.number) else {
            return true;
        };
        let mut backlog = self.mailbox.lock();
        if backlog.topics().count() >= limit {
            return false;
        }
        let entry = Entry {
            number: self.number,
            mailbox: self.mailbox.clone(),
            place: backlog.enter(topic),
        };
        book.topics.entry(topic.clone()).or_default().insert(index, entry);
        true
    }

    /// Does not listen to this any more. If it waits it is not told.
    pub(crate) fn remove(&self, topic: &Change) {
        let mut book = self.hub.lock();
        if let Some(entry) = book.leave(self.number, topic) {
            self.mailbox.lock().leave(entry.place);
        }
    }

    /// What it listens to.
    #[cfg(any(test, feature = "http"))]
    pub(crate) fn topics(&self) -> Vec<Change> {
        self.mailbox.lock().topics().cloned().collect()
    }
}

impl Drop for ListenerHandle {
    fn drop(&mut self) {
        let mut book = self.hub.lock();
        for topic in self.mailbox.lock().topics() {
            book.leave(self.number, topic);
        }
        if self.kind == Kind::Stream {
            book.streams -= 1;
        }
    }
}

/// What waits for one listener. Made small: there may be many.
///
/// Whoever needs both locks takes the hub's first.
struct ListenerMailbox(Mutex<Backlog>);

struct Backlog {
    slots: Vec<TopicSlot>,
    /// Places of slots that are taken, in the order in which their topics changed.
    queue: VecDeque<u32>,
    behind: Option<Behind>,
    waker: Option<Waker>,
}

/// Place of one topic. Topics are distinct.
struct TopicSlot {
    /// `None` if it is free.
    topic: Option<Change>,
    /// Invariant: true iff its place is in the queue, unless the listener is behind.
    waits: bool,
}

impl ListenerMailbox {
    fn new(topics: Vec<Change>) -> ListenerMailbox {
        let slots = topics.into_iter().map(|topic| TopicSlot { topic: Some(topic), waits: false });
        ListenerMailbox(Mutex::new(Backlog {
            slots: slots.collect(),
            queue: VecDeque::new(),
            behind: None,
            waker: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a change to the others, unless it waits already. Gives whoever is to be woken.
    fn put(&self, place: u32) -> Option<Waker> {
        let mut backlog = self.lock();
        let waits = &mut backlog.slots[place as usize].waits;
        if std::mem::replace(waits, true) || backlog.behind.is_some() {
            return None;
        }
        if backlog.queue.len() < BACKLOG {
            backlog.queue.push_back(place);
        } else {
            backlog.behind = Some(Behind);
            backlog.queue = VecDeque::new();
        }
        backlog.waker.take()
    }
}

impl Backlog {
    fn topics(&self) -> impl Iterator<Item = &Change> {
        self.slots.iter().filter_map(|slot| slot.topic.as_ref())
    }

    /// Gives a topic a place.
    fn enter(&mut self, topic: &Change) -> u32 {
        let slot = TopicSlot { topic: Some(topic.clone()), waits: false };
        let place = match self.slots.iter().position(|slot| slot.topic.is_none()) {
            Some(free) => {
                self.slots[free] = slot;
                free
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        // Their number is bounded far below.
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    fn leave(&mut self, place: u32) {
        self.slots[place as usize] = TopicSlot { topic: None, waits: false };
        self.queue.retain(|waiting| *waiting != place);
    }
}

#[cfg(test)]
mod tests;
