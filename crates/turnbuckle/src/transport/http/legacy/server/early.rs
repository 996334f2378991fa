//! Owns cancels that came before what they cancel. Each message has a connection of its own here, and
//! on a busy machine one overtakes another; a cancel that was lost that way would leave a handler
//! running for nobody. Does not own requests, nor cancels of those that are known.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_types::Key;

use crate::SessionId;

/// How late a request may be after its cancel. Whoever numbers requests anew can use an id again
/// afterwards, whatever was said of it before.
const LATE: Duration = Duration::from_secs(5);
/// How many cancels wait for their request, of one session and in all. Past that the oldest is
/// forgotten.
const OF_ONE: usize = 64;
const IN_ALL: usize = 1024;
/// How many requests that have ended are known, so that a cancel that comes after the end waits for
/// nothing: an id can be used again.
const ENDED: usize = 1024;

/// Of all sessions.
#[derive(Default)]
pub(super) struct Early(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Seen>,
    ended: VecDeque<Seen>,
}

struct Seen {
    session: SessionId,
    id: Key,
    at: Instant,
}

impl Early {
    /// A request has ended, in any way.
    pub(super) fn ended(&self, session: SessionId, id: Key) {
        self.with(|state, at| {
            if state.ended.len() >= ENDED {
                state.ended.pop_front();
            }
            state.ended.push_back(Seen { session, id, at });
        });
    }

    /// A cancel names a request that is not in flight.
    pub(super) fn cancelled(&self, session: SessionId, id: Key) {
        self.with(|state, at| {
            if state.ended.iter().any(|seen| seen.is(session, &id)) {
                return;
            }
            let mut own = state.waiting.iter().filter(|seen| seen.session == session);
            if own.clone().any(|seen| seen.id == id) {
                return;
            }
            let oldest = own.next().map(|seen| seen.id.clone());
            if own.count() + 1 >= OF_ONE
                && let Some(oldest) = oldest
            {
                state.waiting.retain(|seen| !seen.is(session, &oldest));
            } else if state.waiting.len() >= IN_ALL {
                state.waiting.pop_front();
            }
            state.waiting.push_back(Seen { session, id, at });
        });
    }

    /// A request has come. `true`: so has its cancel, before it.
    pub(super) fn was_cancelled(&self, session: SessionId, id: &Key) -> bool {
        self.with(|state, _| {
            let place = state.waiting.iter().position(|seen| seen.is(session, id));
            place.and_then(|place| state.waiting.remove(place)).is_some()
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let State { waiting, ended } = &mut *state;
        for list in [waiting, ended] {
            while list.front().is_some_and(|seen| now.duration_since(seen.at) >= LATE) {
                list.pop_front();
            }
        }
        change(&mut state, now)
    }
}

impl Seen {
    fn is(&self, session: SessionId, id: &Key) -> bool {
        self.session == session && self.id == *id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SessionId = SessionId([1; 16]);
    const OTHER: SessionId = SessionId([2; 16]);

    #[tokio::test(start_paused = true)]
    async fn a_cancel_waits_for_its_request_and_for_nothing_else() {
        let early = Early::default();
        early.cancelled(ONE, Key::Int(1));
        early.cancelled(ONE, Key::Int(1));
        assert!(!early.was_cancelled(ONE, &Key::Int(2)));
        assert!(!early.was_cancelled(OTHER, &Key::Int(1)));
        assert!(early.was_cancelled(ONE, &Key::Int(1)));
        assert!(!early.was_cancelled(ONE, &Key::Int(1)), "it was for the one");
        early.cancelled(ONE, Key::Int(3));
        tokio::time::advance(LATE).await;
        assert!(!early.was_cancelled(ONE, &Key::Int(3)), "nothing is that late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancel_of_what_has_ended_waits_for_nothing() {
        let early = Early::default();
        early.ended(ONE, Key::Int(1));
        early.cancelled(ONE, Key::Int(1));
        assert!(!early.was_cancelled(ONE, &Key::Int(1)));
        early.cancelled(OTHER, Key::Int(1));
        assert!(early.was_cancelled(OTHER, &Key::Int(1)), "it is another's");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_fills_it_up() {
        let early = Early::default();
        early.cancelled(OTHER, Key::Int(1));
        for id in 0..1000 {
            early.cancelled(ONE, Key::Int(id));
            early.ended(ONE, Key::Int(-id - 1));
        }
        let last = i64::try_from(1000 - OF_ONE).unwrap();
        assert!(!early.was_cancelled(ONE, &Key::Int(last - 1)));
        assert!(early.was_cancelled(ONE, &Key::Int(last)));
        assert!(early.was_cancelled(OTHER, &Key::Int(1)), "the other's place is its own");
        for session in 0..=u8::MAX {
            for id in 0..16 {
                early.cancelled(SessionId([session; 16]), Key::Int(id));
                early.ended(SessionId([session; 16]), Key::Int(-id - 1));
            }
        }
        early.with(|state, _| {
            assert_eq!((state.waiting.len(), state.ended.len()), (IN_ALL, ENDED));
        });
    }
}
