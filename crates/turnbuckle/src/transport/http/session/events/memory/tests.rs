//! What is kept, and what is given back, whatever is done in whatever order.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn limits() -> EventLimits {
    EventLimits { bytes: 1 << 20, stream_bytes: 1 << 20, streams: 100, retention: EVENT_RETENTION }
}

fn book(change: impl FnOnce(&mut EventLimits)) -> EventBook {
    let mut limits = limits();
    change(&mut limits);
    EventBook::new(limits)
}

fn key(session: u8, stream: u64) -> StreamKey {
    StreamKey::new(SessionId([session; 16]), stream)
}

/// An event that weighs so much.
fn event(number: u64, weight: usize) -> StoredEvent {
    StoredEvent::new(number, vec![b'x'; weight - OVERHEAD])
}

fn numbers(events: &[StoredEvent]) -> Vec<u64> {
    events.iter().map(|event| event.number).collect()
}

impl EventBook {
    fn numbers(&mut self, key: &StreamKey, after: u64, now: Instant) -> Vec<u64> {
        numbers(&self.after(key, after, now))
    }

    /// Checks the invariants.
    fn check(&self) {
        let streams = || self.streams.iter().map(|(_, stream)| stream);
        let weights = streams().flat_map(|stream| &stream.events).map(weight);
        assert_eq!(self.bytes, weights.sum::<usize>());
        assert!(streams().all(|stream| !stream.events.is_empty()));
    }
}

#[test]
fn a_stream_gives_its_own_events_after_a_number_in_order() {
    let (mut book, now) = (book(|_| {}), Instant::now());
    for number in [1, 2, 5] {
        book.append(&key(1, 1), event(number, 100), now);
        book.append(&key(1, 2), event(number + 10, 100), now);
        book.append(&key(2, 1), event(number + 20, 100), now);
    }
    assert_eq!(book.numbers(&key(1, 1), 0, now), [1, 2, 5]);
    assert_eq!(book.numbers(&key(1, 1), 2, now), [5]);
    assert_eq!(book.numbers(&key(1, 1), 3, now), [5]);
    assert_eq!(book.numbers(&key(1, 1), u64::MAX, now), [0; 0]);
    assert_eq!(book.numbers(&key(1, 2), 0, now), [11, 12, 15]);
    assert_eq!(book.numbers(&key(3, 1), 0, now), [0; 0]);
    book.append(&key(1, 1), event(4, 100), now);
    assert_eq!(book.numbers(&key(1, 1), 0, now), [1, 2, 5], "numbers rise");
    book.check();
}

#[test]
fn a_stream_that_has_too_much_loses_its_oldest_events_but_never_its_last() {
    let (mut book, now) = (book(|limits| limits.stream_bytes = 300), Instant::now());
    for number in 1..=4 {
        book.append(&key(1, 1), event(number, 100), now);
    }
    assert_eq!(book.numbers(&key(1, 1), 0, now), [2, 3, 4]);
    book.append(&key(1, 1), event(5, 1000), now);
    assert_eq!(book.numbers(&key(1, 1), 0, now), [5]);
    book.append(&key(1, 1), event(6, 100), now);
    assert_eq!(book.numbers(&key(1, 1), 0, now), [6]);
    book.check();
}

#[test]
fn where_all_have_too_much_the_stream_goes_that_said_nothing_for_longest() {
    let (mut book, now) = (book(|limits| limits.bytes = 500), Instant::now());
    for (stream, number) in [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)] {
        book.append(&key(1, stream), event(number, 100), now);
    }
    book.append(&key(1, 4), event(1, 100), now);
    assert_eq!(book.numbers(&key(1, 3), 0, now), [0; 0]);
    assert_eq!(book.numbers(&key(1, 1), 0, now), [1, 2]);
    book.append(&key(1, 4), event(2, 100), now);
    assert_eq!(book.numbers(&key(1, 1), 0, now), [0; 0], "whole streams go");
    assert_eq!(book.numbers(&key(1, 2), 0, now), [1, 2]);
    assert_eq!(book.numbers(&key(1, 4), 0, now), [1, 2]);
    book.append(&key(1, 4), event(3, 501), now);
    assert_eq!(book.numbers(&key(1, 4), 0, now), [0; 0], "what is longer than all may be");
    assert_eq!(book.numbers(&key(1, 2), 0, now), [1, 2], "costs nobody else");
    book.check();
}

#[test]
fn there_are_no_more_streams_than_there_may_be() {
    let (mut book, now) = (book(|limits| limits.streams = 2), Instant::now());
    for stream in 1..=3 {
        book.append(&key(1, stream), event(1, 100), now);
    }
    assert_eq!(book.numbers(&key(1, 1), 0, now), [0; 0]);
    assert_eq!(book.streams.len(), 2);
    book.check();
}

#[test]
fn a_stream_is_kept_for_a_time_after_its_last_event() {
    let (mut book, start) = (book(|_| {}), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    book.append(&key(1, 1), event(1, 100), at(0));
    book.append(&key(1, 2), event(1, 100), at(0));
    book.append(&key(1, 1), event(2, 100), at(200));
    assert_eq!(book.numbers(&key(1, 2), 0, at(299)), [1]);
    assert_eq!(book.numbers(&key(1, 2), 0, at(300)), [0; 0]);
    assert_eq!(book.numbers(&key(1, 1), 0, at(499)), [1, 2]);
    book.append(&key(2, 1), event(1, 100), at(500));
    assert_eq!(book.streams.len(), 1, "it goes though nobody asks for it");
    book.check();
}

#[test]
fn what_is_forgotten_leaves_nothing() {
    let (mut book, now) = (book(|_| {}), Instant::now());
    for (session, stream) in [(1, 1), (1, 2), (1, 3), (2, 1)] {
        book.append(&key(session, stream), event(1, 100), now);
    }
    book.forget(&key(1, 2));
    book.forget(&key(1, 2));
    assert_eq!(book.streams.len(), 3);
    book.check();
    book.forget_session(SessionId([1; 16]));
    assert_eq!(book.streams.iter().map(|(key, _)| key).collect::<Vec<_>>(), [&key(2, 1)]);
    book.check();
    book.forget_session(SessionId([2; 16]));
    assert_eq!((book.bytes, book.streams.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn through_the_trait() {
    let events = MemoryEvents::default();
    events.append(&key(1, 1), StoredEvent::new(1, "a")).await.unwrap();
    events.append(&key(1, 1), StoredEvent::new(2, "b")).await.unwrap();
    assert_eq!(events.after(&key(1, 1), 1).await.unwrap(), [StoredEvent::new(2, "b")]);
    tokio::time::advance(EVENT_RETENTION).await;
    assert_eq!(events.after(&key(1, 1), 0).await.unwrap(), []);
    events.append(&key(1, 1), StoredEvent::new(3, "c")).await.unwrap();
    events.forget(&key(1, 1)).await.unwrap();
    events.append(&key(1, 2), StoredEvent::new(1, "d")).await.unwrap();
    events.forget_session(SessionId([1; 16])).await.unwrap();
    assert_eq!(events.after(&key(1, 2), 0).await.unwrap(), []);
}

#[derive(Clone, Debug)]
enum Step {
    Append { session: u8, stream: u64, weight: usize },
    After { session: u8, stream: u64, number: u64 },
    Forget { session: u8, stream: u64 },
    ForgetSession(u8),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (session, stream) = (0..3_u8, 0..4_u64);
    prop_oneof![
        8 => (session.clone(), stream.clone(), OVERHEAD..400)
            .prop_map(|(session, stream, weight)| Step::Append { session, stream, weight }),
        4 => (session.clone(), stream.clone(), 0..12_u64)
            .prop_map(|(session, stream, number)| Step::After { session, stream, number }),
        1 => (session.clone(), stream).prop_map(|(session, stream)| Step::Forget { session, stream }),
        1 => session.prop_map(Step::ForgetSession),
        1 => (0..200_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// A replay is the end of what was appended to that very stream, and the limits hold.
    #[test]
    fn a_replay_is_the_end_of_what_was_appended(steps in prop::collection::vec(step(), 1..120)) {
        let mut book = book(|limits| {
            (limits.bytes, limits.stream_bytes, limits.streams) = (2000, 800, 6);
        });
        let mut appended: HashMap<StreamKey, Vec<StoredEvent>> = HashMap::new();
        let mut now = Instant::now();
        for step in steps {
            match step {
                Step::Append { session, stream, weight } => {
                    let key = key(session, stream);
                    let all = appended.entry(key.clone()).or_default();
                    let event = event(all.len() as u64 + 1, weight);
                    all.push(event.clone());
                    book.append(&key, event.clone(), now);
                    prop_assert_eq!(book.after(&key, event.number - 1, now), [event]);
                }
                Step::After { session, stream, number } => {
                    let key = key(session, stream);
                    let replayed = book.after(&key, number, now);
                    let all = appended.get(&key).cloned().unwrap_or_default();
                    prop_assert!(all.ends_with(&replayed));
                    prop_assert!(replayed.iter().all(|event| event.number > number));
                }
                Step::Forget { session, stream } => {
                    book.forget(&key(session, stream));
                    prop_assert_eq!(book.after(&key(session, stream), 0, now), []);
                }
                Step::ForgetSession(session) => book.forget_session(SessionId([session; 16])),
                Step::Wait(seconds) => now += Duration::from_secs(seconds),
            }
            book.check();
            prop_assert!(book.bytes <= 2000 && book.streams.len() <= 6);
            let mut streams = book.streams.iter().map(|(_, stream)| stream);
            prop_assert!(streams.all(|stream| stream.bytes <= 800 || stream.events.len() == 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_freed_when_their_time_is_over() {
    let events = MemoryEvents::default();
    events.append(&key(1, 1), event(1, 100)).await.unwrap();
    for _ in 0..10 {
        // The task runs before this goes on.
        tokio::task::yield_now().await;
        tokio::time::advance(LONGEST_SWEEP).await;
    }
    events.book.with(|book| assert!(book.is_empty()));
}
