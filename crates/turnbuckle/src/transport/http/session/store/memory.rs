//! Keeps the records of sessions in the memory of one process.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    time::{Duration, SystemTime},
};

use lru::LruCache;

use super::{SessionId, SessionRecord, SessionStore, StoreError, StoreFuture};
use crate::transport::http::{
    session::expiring::{Expire, ExpiringStore},
    timing::{
        LONGEST_SWEEP, SESSION_ENDS, SESSION_RECORD_BYTES, SESSION_RECORD_IDLE, SESSION_RECORDS,
        SHORTEST_SWEEP,
    },
};

/// What a record costs besides its subscriptions, and each of those besides its text.
const OVERHEAD: usize = 128;

/// Keeps records in memory: 10,000 of them, 64 MiB in all, each for 4 hours after it was last
/// looked at. The mark that a session has ended is kept until the session would have expired.
///
/// Beyond the limits the record goes that was not used for longest. Marks of ended sessions do not
/// count as records and never go early: beyond 262,144 of them no session can be opened or ended
/// until one of them expires.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::http::MemorySessions;
/// let sessions = MemorySessions::new(1_000).idle(Duration::from_secs(600));
/// # let _ = sessions;
/// ```
#[doc(alias = "LocalSessionManager")]
pub struct MemorySessions {
    book: ExpiringStore<SessionBook>,
}

impl MemorySessions {
    /// Keeps at most so many records.
    pub fn new(most: usize) -> MemorySessions {
        let limits = SessionLimits {
            records: most,
            ends: SESSION_ENDS,
            bytes: SESSION_RECORD_BYTES,
            idle: SESSION_RECORD_IDLE,
        };
        MemorySessions { book: ExpiringStore::new(SessionBook::new(limits)) }
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

    fn limited(self, change: impl FnOnce(&mut SessionLimits)) -> MemorySessions {
        self.book.with(|book| change(&mut book.limits));
        self
    }
}

impl Default for MemorySessions {
    fn default() -> MemorySessions {
        MemorySessions::new(SESSION_RECORDS)
    }
}

impl SessionStore for MemorySessions {
    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<SessionRecord>> {
        let record = self.book.with(|book| book.load(session, SystemTime::now()));
        Box::pin(std::future::ready(Ok(record)))
    }

    fn save(
        &self,
        session: SessionId,
        record: SessionRecord,
        until: SystemTime,
    ) -> StoreFuture<'_, ()> {
        let saved = self.book.with(|book| book.save(session, record, until, SystemTime::now()));
        Box::pin(std::future::ready(saved))
    }

    fn has_room(&self) -> StoreFuture<'_, bool> {
        let has_room = self.book.with(|book| book.has_room(SystemTime::now()));
        Box::pin(std::future::ready(Ok(has_room)))
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.book.with(|book| book.records.len());
        f.debug_struct("MemorySessions").field("records", &records).finish_non_exhaustive()
    }
}

struct SessionLimits {
    records: usize,
    ends: usize,
    bytes: usize,
    idle: Duration,
}

struct SessionBook {
    limits: SessionLimits,
    records: LruCache<SessionId, Kept>,
    /// The bytes of all records.
    bytes: usize,
    /// The sessions that have ended, and when they would have expired.
    ended: HashMap<SessionId, SystemTime>,
    /// The same, ordered by time.
    ended_order: BTreeSet<(SystemTime, SessionId)>,
}

struct Kept {
    record: SessionRecord,
    /// When the session expires.
    until: SystemTime,
    /// When the record is forgotten.
    goes: SystemTime,
}

impl SessionBook {
    fn new(limits: SessionLimits) -> SessionBook {
        SessionBook {
            limits,
            records: LruCache::unbounded(),
            bytes: 0,
            ended: HashMap::new(),
            ended_order: BTreeSet::new(),
        }
    }

    fn load(&mut self, session: SessionId, now: SystemTime) -> Option<SessionRecord> {
        self.expire_at(now);
        if self.ended.contains_key(&session) {
            return Some(SessionRecord { ended: true, ..SessionRecord::default() });
        }
        let idle = now.checked_add(self.limits.idle);
        let kept = self.records.get_mut(&session).filter(|kept| kept.until > now)?;
        kept.goes = idle.map_or(kept.until, |idle| idle.min(kept.until));
        Some(kept.record.clone())
    }

    fn save(
        &mut self,
        session: SessionId,
        record: SessionRecord,
        until: SystemTime,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        self.expire_at(now);
        if record.ended && !self.has_room(now) && !self.ended.contains_key(&session) {
            return Err("too many sessions have ended".into());
        }
        self.remove(session);
        if record.ended {
            self.ended.insert(session, until);
            self.ended_order.insert((until, session));
        } else if weight(&record) <= self.limits.bytes {
            let idle = now.checked_add(self.limits.idle);
            let goes = idle.map_or(until, |idle| idle.min(until));
            self.bytes += weight(&record);
            self.records.put(session, Kept { record, until, goes });
        }
        while self.records.len() > self.limits.records || self.bytes > self.limits.bytes {
            self.remove_oldest();
        }
        Ok(())
    }

    /// Whether the end of another session can be kept.
    fn has_room(&mut self, now: SystemTime) -> bool {
        self.expire_at(now);
        self.ended.len() < self.limits.ends
    }

    fn remove(&mut self, session: SessionId) {
        self.bytes -= self.records.pop(&session).map_or(0, |kept| weight(&kept.record));
        if let Some(until) = self.ended.remove(&session) {
            self.ended_order.remove(&(until, session));
        }
    }

    fn remove_oldest(&mut self) {
        self.bytes -= self.records.pop_lru().map_or(0, |(_, kept)| weight(&kept.record));
    }

    fn expire_at(&mut self, now: SystemTime) {
        while self.records.peek_lru().is_some_and(|(_, kept)| kept.goes <= now) {
            self.remove_oldest();
        }
        while let Some((until, first)) = self.ended_order.first().copied()
            && until <= now
        {
            self.remove(first);
        }
    }
}

impl Expire for SessionBook {
    fn expire(&mut self) {
        self.expire_at(SystemTime::now());
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.ended.is_empty()
    }

    fn interval(&self) -> Duration {
        self.limits.idle.clamp(SHORTEST_SWEEP, LONGEST_SWEEP)
    }
}

fn weight(record: &SessionRecord) -> usize {
    OVERHEAD + record.subscriptions.iter().map(|uri| OVERHEAD + uri.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn book(records: usize) -> SessionBook {
        let limits =
            SessionLimits { records, ends: 3, bytes: usize::MAX, idle: Duration::from_secs(100) };
        SessionBook::new(limits)
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

    impl SessionBook {
        fn known(&self) -> Vec<u8> {
            let records = self.records.iter().map(|(session, _)| session);
            let mut known: Vec<u8> =
                records.chain(self.ended.keys()).map(|session| session.0[0]).collect();
            known.sort_unstable();
            let records = self.records.iter().map(|(_, kept)| weight(&kept.record));
            assert_eq!(self.bytes, records.sum::<usize>());
            assert_eq!(self.ended.len(), self.ended_order.len());
            known
        }
    }

    #[test]
    fn what_was_saved_last_is_what_is_loaded() {
        let mut book = book(10);
        assert_eq!(book.load(id(1), at(0)), None);
        book.save(id(1), record("a:1"), at(1000), at(0)).unwrap();
        book.save(id(2), record("a:2"), at(1000), at(0)).unwrap();
        book.save(id(1), record("a:3"), at(1000), at(1)).unwrap();
        assert_eq!(book.load(id(1), at(2)), Some(record("a:3")));
        assert_eq!(book.load(id(2), at(2)), Some(record("a:2")));
        assert_eq!(book.known(), [1, 2]);
    }

    #[test]
    fn a_record_goes_when_nobody_looks_at_it_or_its_session_expires() {
        let mut book = book(10);
        for number in 1..=3 {
            book.save(id(number), record("a:1"), at(150), at(0)).unwrap();
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
        book.save(id(1), record("a:1"), at(1000), at(0)).unwrap();
        book.save(id(1), ended(), at(1000), at(1)).unwrap();
        assert_eq!(book.load(id(1), at(999)), Some(ended()));
        assert_eq!(book.load(id(1), at(1000)), None);
        assert_eq!(book.known(), [0; 0]);
    }

    #[test]
    fn beyond_the_limit_the_longest_unused_record_goes_and_no_mark_does() {
        let mut book = book(2);
        book.save(id(1), ended(), at(500), at(0)).unwrap();
        book.save(id(2), record("a:1"), at(1000), at(1)).unwrap();
        book.save(id(3), record("a:1"), at(1000), at(2)).unwrap();
        assert!(book.load(id(2), at(3)).is_some());
        book.save(id(4), record("a:1"), at(1000), at(4)).unwrap();
        assert_eq!(book.known(), [1, 2, 4]);
        book.save(id(5), ended(), at(400), at(5)).unwrap();
        assert_eq!(book.known(), [1, 2, 4, 5]);
        book.save(id(6), ended(), at(600), at(6)).unwrap();
        assert_eq!(book.known(), [1, 2, 4, 5, 6]);
        assert!(!book.has_room(at(7)));
        book.save(id(2), ended(), at(700), at(7)).unwrap_err();
        assert!(book.load(id(2), at(8)).is_some_and(|record| !record.ended), "it goes on");
        book.save(id(6), ended(), at(600), at(9)).unwrap();
        assert!(book.has_room(at(400)), "one has expired");
        book.save(id(2), ended(), at(700), at(401)).unwrap();
        assert_eq!(book.known(), [1, 2, 6]);
    }

    #[test]
    fn long_records_count_by_their_bytes() {
        let mut book = book(100);
        book.limits.bytes = 3000;
        let long = record(&"x".repeat(1000));
        for number in 1..=3 {
            book.save(id(number), long.clone(), at(1000), at(number.into())).unwrap();
        }
        assert_eq!(book.known(), [2, 3]);
        book.save(id(4), record(&"x".repeat(5000)), at(1000), at(4)).unwrap();
        assert_eq!(book.known(), [2, 3], "one that is longer than all may be is not kept");
        book.save(id(3), SessionRecord { ended: true, ..long }, at(1000), at(5)).unwrap();
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
