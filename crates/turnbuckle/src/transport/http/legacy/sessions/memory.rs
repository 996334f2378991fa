//! Owns the records of one process: how many, for how long, and which go first.
//! Does not own what is in them.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use super::{SessionId, SessionRecord, SessionStore, StoreFuture};
use crate::transport::http::timing::{SESSION_RECORD_BYTES, SESSION_RECORD_IDLE, SESSION_RECORDS};

/// What a record costs besides its subscriptions, and each of those besides its text.
const OVERHEAD: usize = 128;

/// Keeps records in memory: 10,000 of them, 64 MiB in all, each for 4 hours after it was last
/// looked at. The mark that a session has ended is kept until the session would have expired.
///
/// Where there is no room, the record goes that was not looked at for longest. There may be as many
/// marks besides, which take no room from records; of them the one goes that expires first.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::MemorySessions;
/// let sessions = MemorySessions::new(1_000).idle(Duration::from_secs(600));
/// # let _ = sessions;
/// ```
pub struct MemorySessions {
    book: Mutex<Book>,
}

impl MemorySessions {
    /// Keeps at most so many records.
    pub fn new(most: usize) -> MemorySessions {
        let limits =
            Limits { records: most, bytes: SESSION_RECORD_BYTES, idle: SESSION_RECORD_IDLE };
        MemorySessions { book: Mutex::new(Book::new(limits)) }
    }

    /// For how long a record is kept that nobody looks at.
    #[must_use]
    pub fn idle(self, time: Duration) -> MemorySessions {
        self.limited(|limits| limits.idle = time)
    }

    /// How many bytes all records may have together.
    #[must_use]
    pub fn bytes(self, bytes: usize) -> MemorySessions {
        self.limited(|limits| limits.bytes = bytes)
    }

    fn limited(self, change: impl FnOnce(&mut Limits)) -> MemorySessions {
        self.with(|book| change(&mut book.limits));
        self
    }

    fn with<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        change(&mut self.book.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for MemorySessions {
    fn default() -> MemorySessions {
        MemorySessions::new(SESSION_RECORDS)
    }
}

impl SessionStore for MemorySessions {
    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<SessionRecord>> {
        let record = self.with(|book| book.load(session, SystemTime::now()));
        Box::pin(std::future::ready(Ok(record)))
    }

    fn save(
        &self,
        session: SessionId,
        record: SessionRecord,
        until: SystemTime,
    ) -> StoreFuture<'_, ()> {
        self.with(|book| book.save(session, record, until, SystemTime::now()));
        Box::pin(std::future::ready(Ok(())))
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.with(|book| book.records.len());
        f.debug_struct("MemorySessions").field("records", &records).finish_non_exhaustive()
    }
}

struct Limits {
    records: usize,
    bytes: usize,
    idle: Duration,
}

/// The records, and the order in which they go.
struct Book {
    limits: Limits,
    /// Invariant: each has its place in the order, under the time at which it goes.
    records: HashMap<SessionId, Kept>,
    /// The first of each kind goes first, in the order of their times.
    order: BTreeSet<Place>,
    /// The bytes of all but the marks.
    bytes: usize,
    marks: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    kind: Kind,
    goes: SystemTime,
    session: SessionId,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Record,
    Ended,
}

struct Kept {
    record: SessionRecord,
    until: SystemTime,
    goes: SystemTime,
}

impl Book {
    fn new(limits: Limits) -> Book {
        Book { limits, records: HashMap::new(), order: BTreeSet::new(), bytes: 0, marks: 0 }
    }

    fn load(&mut self, session: SessionId, now: SystemTime) -> Option<SessionRecord> {
        self.expire(now);
        let Kept { record, until, .. } = self.remove(session)?;
        self.enter(session, record.clone(), until, now);
        Some(record)
    }

    fn save(
        &mut self,
        session: SessionId,
        mut record: SessionRecord,
        until: SystemTime,
        now: SystemTime,
    ) {
        self.expire(now);
        self.remove(session);
        if record.ended {
            // Nobody asks what it listened to, and marks are many.
            record = SessionRecord { ended: true, ..SessionRecord::default() };
        }
        if weight(&record) > self.limits.bytes {
            return;
        }
        self.enter(session, record, until, now);
        while self.records.len() - self.marks > self.limits.records
            || self.bytes > self.limits.bytes
        {
            let Some(first) = self.first(Kind::Record) else { break };
            self.remove(first.session);
        }
        while self.marks > self.limits.records {
            let Some(first) = self.first(Kind::Ended) else { break };
            self.remove(first.session);
        }
    }

    /// The next of a kind to go.
    fn first(&self, kind: Kind) -> Option<Place> {
        let begin = Place { kind, goes: SystemTime::UNIX_EPOCH, session: SessionId([0; 16]) };
        self.order.range(begin..).next().copied().filter(|place| place.kind == kind)
    }

    fn enter(
        &mut self,
        session: SessionId,
        record: SessionRecord,
        until: SystemTime,
        now: SystemTime,
    ) {
        let goes = match kind(&record) {
            Kind::Ended => until,
            Kind::Record => now.checked_add(self.limits.idle).map_or(until, |idle| idle.min(until)),
        };
        match kind(&record) {
            Kind::Ended => self.marks += 1,
            Kind::Record => self.bytes += weight(&record),
        }
        self.order.insert(Place { kind: kind(&record), goes, session });
        self.records.insert(session, Kept { record, until, goes });
    }

    fn remove(&mut self, session: SessionId) -> Option<Kept> {
        let kept = self.records.remove(&session)?;
        match kind(&kept.record) {
            Kind::Ended => self.marks -= 1,
            Kind::Record => self.bytes -= weight(&kept.record),
        }
        self.order.remove(&Place { kind: kind(&kept.record), goes: kept.goes, session });
        Some(kept)
    }

    /// Lets go of those whose time is over: the first of each kind, until one's is not.
    fn expire(&mut self, now: SystemTime) {
        for kind in [Kind::Record, Kind::Ended] {
            while let Some(first) = self.first(kind)
                && first.goes <= now
            {
                self.remove(first.session);
            }
        }
    }
}

fn kind(record: &SessionRecord) -> Kind {
    if record.ended { Kind::Ended } else { Kind::Record }
}

fn weight(record: &SessionRecord) -> usize {
    OVERHEAD + record.subscriptions.iter().map(|uri| OVERHEAD + uri.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn book(records: usize) -> Book {
        let limits = Limits { records, bytes: usize::MAX, idle: Duration::from_secs(100) };
        Book::new(limits)
    }

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn id(number: u8) -> SessionId {
        SessionId([number; 16])
    }

    fn record(uri: &str) -> SessionRecord {
        SessionRecord { subscriptions: [uri.to_owned()].into(), ..SessionRecord::default() }
    }

    fn ended() -> SessionRecord {
        SessionRecord { ended: true, ..SessionRecord::default() }
    }

    impl Book {
        fn known(&self) -> Vec<u8> {
            let mut known: Vec<u8> = self.records.keys().map(|session| session.0[0]).collect();
            known.sort_unstable();
            let records = self.records.values().filter(|kept| !kept.record.ended);
            let bytes = records.map(|kept| weight(&kept.record)).sum::<usize>();
            assert_eq!((self.order.len(), self.bytes), (known.len(), bytes));
            known
        }
    }

    #[test]
    fn what_was_saved_last_is_what_is_loaded() {
        let mut book = book(10);
        assert_eq!(book.load(id(1), at(0)), None);
        book.save(id(1), record("a:1"), at(1000), at(0));
        book.save(id(2), record("a:2"), at(1000), at(0));
        book.save(id(1), record("a:3"), at(1000), at(1));
        assert_eq!(book.load(id(1), at(2)), Some(record("a:3")));
        assert_eq!(book.load(id(2), at(2)), Some(record("a:2")));
        assert_eq!(book.known(), [1, 2]);
    }

    #[test]
    fn a_record_goes_when_nobody_looks_at_it_or_its_session_expires() {
        let mut book = book(10);
        for number in 1..=3 {
            book.save(id(number), record("a:1"), at(150), at(0));
        }
        assert!(book.load(id(1), at(99)).is_some(), "looked at, it stays");
        assert_eq!(book.load(id(2), at(100)), None);
        assert_eq!(book.known(), [1], "the third too, though nobody asked");
        assert_eq!(book.load(id(1), at(150)), None);
        assert_eq!(book.known(), [0; 0]);
    }

    #[test]
    fn the_mark_of_an_end_stays_until_the_session_has_expired() {
        let mut book = book(10);
        book.save(id(1), record("a:1"), at(1000), at(0));
        book.save(id(1), ended(), at(1000), at(1));
        assert_eq!(book.load(id(1), at(999)), Some(ended()));
        assert_eq!(book.load(id(1), at(1000)), None);
        assert_eq!(book.known(), [0; 0]);
    }

    #[test]
    fn beyond_the_limit_the_longest_unused_goes_and_marks_have_room_of_their_own() {
        let mut book = book(2);
        book.save(id(1), ended(), at(500), at(0));
        book.save(id(2), record("a:1"), at(1000), at(1));
        book.save(id(3), record("a:1"), at(1000), at(2));
        assert!(book.load(id(2), at(3)).is_some());
        book.save(id(4), record("a:1"), at(1000), at(4));
        assert_eq!(book.known(), [1, 2, 4]);
        book.save(id(5), ended(), at(400), at(5));
        assert_eq!(book.known(), [1, 2, 4, 5]);
        book.save(id(6), ended(), at(600), at(6));
        assert_eq!(book.known(), [1, 2, 4, 6], "the mark that is worth nothing soonest");
        book.save(id(2), ended(), at(700), at(7));
        assert_eq!(book.known(), [2, 4, 6]);
        book.save(id(7), record("a:1"), at(1000), at(8));
        assert_eq!(book.known(), [2, 4, 6, 7]);
    }

    #[test]
    fn long_records_count_by_their_bytes() {
        let mut book = book(100);
        book.limits.bytes = 3000;
        let long = record(&"x".repeat(1000));
        for number in 1..=3 {
            book.save(id(number), long.clone(), at(1000), at(number.into()));
        }
        assert_eq!(book.known(), [2, 3]);
        book.save(id(4), record(&"x".repeat(5000)), at(1000), at(4));
        assert_eq!(book.known(), [2, 3], "one that is longer than all may be is not kept");
        book.save(id(3), SessionRecord { ended: true, ..long }, at(1000), at(5));
        assert_eq!(book.load(id(3), at(6)), Some(ended()));
    }

    #[tokio::test]
    async fn through_the_trait() {
        let sessions = MemorySessions::default();
        let later = SystemTime::now() + Duration::from_secs(1000);
        sessions.save(id(1), record("a:1"), later).await.unwrap();
        sessions.save(id(2), record("a:1"), SystemTime::now()).await.unwrap();
        assert_eq!(sessions.load(id(1)).await.unwrap(), Some(record("a:1")));
        assert_eq!(sessions.load(id(2)).await.unwrap(), None);
        let short = MemorySessions::new(5).idle(Duration::ZERO);
        short.save(id(1), record("a:1"), later).await.unwrap();
        assert_eq!(short.load(id(1)).await.unwrap(), None);
    }
}
