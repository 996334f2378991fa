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
pub(super) const BACKLOG: usize = 1024;

/// Everyone who listens at one replica of a server. A [bus](crate::SubscriptionBus) is given
/// this once, and [delivers](Listeners::deliver) to it. Clones are the same listeners.
///
/// ```
/// use turnbuckle::{Change, Listeners};
/// let listeners = Listeners::default();
/// listeners.deliver(Change::Tools); // nobody listens
/// ```
#[derive(Clone, Default)]
pub struct Listeners(Arc<Hub>);

#[derive(Default)]
struct Hub(Mutex<Book>);

#[derive(Default)]
struct Book {
    /// Who wants to hear of what. Invariant: no row is empty, and each is sorted by number.
    topics: HashMap<Change, Vec<Entry>>,
    /// Numbers are given out in order and never twice.
    next: u64,
    streams: usize,
}

struct Entry {
    number: u64,
    mailbox: Arc<Mailbox>,
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
    pub(super) fn count(&self) -> usize {
        self.0.lock().streams
    }

    /// A stream, unless `limit` of them are open. Whatever is delivered from now on waits.
    pub(super) fn stream(&self, topics: Vec<Change>, limit: usize) -> Option<Listener> {
        let mut book = self.0.lock();
        if book.streams >= limit {
            return None;
        }
        book.streams += 1;
        Some(self.enter(&mut book, topics, Kind::Stream))
    }

    /// The same for a whole connection, which is no stream and not counted.
    pub(super) fn connection(&self, topics: Vec<Change>) -> Listener {
        self.enter(&mut self.0.lock(), topics, Kind::Connection)
    }

    fn enter(&self, book: &mut Book, topics: Vec<Change>, kind: Kind) -> Listener {
        let number = book.next;
        book.next += 1;
        let mailbox = Arc::new(Mailbox::new(topics.into()));
        for (place, topic) in (0..).zip(&mailbox.topics) {
            let entry = Entry { number, mailbox: mailbox.clone(), place };
            match book.topics.get_mut(topic) {
                Some(row) => row.push(entry),
                None => drop(book.topics.insert(topic.clone(), vec![entry])),
            }
        }
        Listener { hub: self.0.clone(), mailbox, number, kind }
    }
}

impl std::fmt::Debug for Listeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listeners").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn leave(&mut self, number: u64, topics: &[Change]) {
        for topic in topics {
            let Some(row) = self.topics.get_mut(topic) else { continue };
            if let Ok(index) = row.binary_search_by_key(&number, |entry| entry.number) {
                row.remove(index);
            }
            if row.is_empty() {
                self.topics.remove(topic);
            }
        }
    }
}

/// One who listens. Dropping it ends that at once.
pub(super) struct Listener {
    hub: Arc<Hub>,
    mailbox: Arc<Mailbox>,
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
pub(super) struct Behind;

impl Listener {
    /// Ready when something waits. Nothing is taken.
    pub(super) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
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
    pub(super) fn take(&self) -> Result<Option<&Change>, Behind> {
        let mut backlog = self.mailbox.lock();
        if let Some(behind) = backlog.behind {
            return Err(behind);
        }
        let Some(place) = backlog.queue.pop_front() else { return Ok(None) };
        backlog.waits[place as usize] = false;
        Ok(Some(&self.mailbox.topics[place as usize]))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut book = self.hub.lock();
        book.leave(self.number, &self.mailbox.topics);
        if self.kind == Kind::Stream {
            book.streams -= 1;
        }
    }
}

/// What waits for one listener. Made small: there may be many.
struct Mailbox {
    /// Distinct.
    topics: Box<[Change]>,
    backlog: Mutex<Backlog>,
}

struct Backlog {
    /// Places among the topics, in the order in which they changed.
    queue: VecDeque<u32>,
    /// Invariant: a place is true here iff it is in the queue.
    waits: Box<[bool]>,
    behind: Option<Behind>,
    waker: Option<Waker>,
}

impl Mailbox {
    fn new(topics: Box<[Change]>) -> Mailbox {
        let waits = vec![false; topics.len()].into();
        let backlog = Backlog { queue: VecDeque::new(), waits, behind: None, waker: None };
        Mailbox { topics, backlog: Mutex::new(backlog) }
    }

    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a change to the others, unless it waits already. Gives whoever is to be woken.
    fn put(&self, place: u32) -> Option<Waker> {
        let mut backlog = self.lock();
        let waits = &mut backlog.waits[place as usize];
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

#[cfg(test)]
mod tests;
