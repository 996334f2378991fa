//! Cancels that arrive before the request that they name.
//!
//! Each message has an own connection, and on a busy machine one overtakes another. A cancel that is
//! lost this way would leave a handler running for no client.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;
use turnbuckle_types::{Key, RequestId};

use super::super::super::timing::{EARLY_CANCEL, EARLY_CANCELS, EARLY_CANCELS_OF_SESSION};
use crate::{
    http::SessionId,
    transport::http::session::expiring::{Expire, ExpiringStore},
};

/// The early cancels of all sessions.
#[derive(Default)]
pub(super) struct EarlyCancels(ExpiringStore<State>);

#[derive(Default)]
struct State {
    cancels: VecDeque<EndedRequest>,
    /// Requests that have ended: a late cancel does not wait, so that the id can be used again.
    ended: VecDeque<EndedRequest>,
}

impl Expire for State {
    fn expire(&mut self) {
        expire(&mut self.cancels);
        expire(&mut self.ended);
    }

    fn is_empty(&self) -> bool {
        self.cancels.is_empty() && self.ended.is_empty()
    }

    fn interval(&self) -> Duration {
        EARLY_CANCEL
    }
}

struct EndedRequest {
    session: SessionId,
    id: Key,
    at: Instant,
}

impl EarlyCancels {
    /// Remembers that a request has ended.
    pub(super) fn ended(&self, session: SessionId, id: &RequestId) {
        self.0.with(|state| push(&mut state.ended, EndedRequest::new(session, id)));
    }

    /// Keeps a cancel whose request is not in flight, unless that has ended.
    pub(super) fn add(&self, session: SessionId, id: &RequestId) {
        let new = EndedRequest::new(session, id);
        self.0.with(|state| {
            state.expire();
            let State { cancels, ended } = state;
            if ended.iter().chain(&*cancels).any(|known| known.is(session, &new.id)) {
                return;
            }
            let is_own = |known: &EndedRequest| known.session == session;
            if cancels.iter().filter(|known| is_own(known)).count() >= EARLY_CANCELS_OF_SESSION
                && let Some(oldest) = cancels.iter().position(is_own)
            {
                cancels.remove(oldest);
            }
            push(cancels, new);
        });
    }

    /// Takes the cancel of a request that has arrived. Returns whether there was one.
    pub(super) fn take(&self, session: SessionId, id: &RequestId) -> bool {
        self.0.with(|state| {
            if state.cancels.is_empty() {
                return false;
            }
            expire(&mut state.cancels);
            let id = id.key();
            let Some(place) = state.cancels.iter().position(|known| known.is(session, &id)) else {
                return false;
            };
            state.cancels.remove(place);
            push(&mut state.ended, EndedRequest { session, id, at: Instant::now() });
            true
        })
    }
}

/// Adds one to a list; the oldest makes room.
fn push(list: &mut VecDeque<EndedRequest>, new: EndedRequest) {
    if list.len() >= EARLY_CANCELS {
        list.pop_front();
    }
    list.push_back(new);
}

fn expire(list: &mut VecDeque<EndedRequest>) {
    let now = Instant::now();
    while list.front().is_some_and(|known| now.duration_since(known.at) >= EARLY_CANCEL) {
        list.pop_front();
    }
}

impl EndedRequest {
    fn new(session: SessionId, id: &RequestId) -> EndedRequest {
        EndedRequest { session, id: id.key(), at: Instant::now() }
    }

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
        let early = EarlyCancels::default();
        early.add(ONE, &(1).into());
        early.add(ONE, &(1).into());
        assert!(!early.take(ONE, &(2).into()));
        assert!(!early.take(OTHER, &(1).into()));
        assert!(early.take(ONE, &(1).into()));
        assert!(!early.take(ONE, &(1).into()), "it was for the one");
        early.add(ONE, &(3).into());
        tokio::time::advance(EARLY_CANCEL).await;
        assert!(!early.take(ONE, &(3).into()), "nothing is that late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancel_of_what_has_ended_waits_for_nothing() {
        let early = EarlyCancels::default();
        early.ended(ONE, &(1).into());
        early.add(ONE, &(1).into());
        assert!(!early.take(ONE, &(1).into()));
        early.add(OTHER, &(1).into());
        assert!(early.take(OTHER, &(1).into()), "it is another's");
    }

    #[tokio::test(start_paused = true)]
    async fn cancels_and_ends_are_freed_when_their_time_is_over() {
        let early = EarlyCancels::default();
        for id in [1, 2] {
            early.add(ONE, &(id).into());
            early.ended(ONE, &(-id).into());
            for _ in 0..3 {
                // The task runs before this goes on.
                tokio::task::yield_now().await;
                tokio::time::advance(EARLY_CANCEL).await;
            }
            early.0.with(|state| assert!(state.is_empty(), "{id}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_fills_it_up() {
        let early = EarlyCancels::default();
        early.add(OTHER, &(1).into());
        for id in 0..1000 {
            early.add(ONE, &(id).into());
            early.ended(ONE, &(-id - 1).into());
        }
        let last = i64::try_from(1000 - EARLY_CANCELS_OF_SESSION).unwrap();
        assert!(!early.take(ONE, &(last - 1).into()));
        assert!(early.take(ONE, &(last).into()));
        assert!(early.take(OTHER, &(1).into()), "the other's place is its own");
        for session in 0..=u8::MAX {
            for id in 0..16 {
                early.add(SessionId([session; 16]), &(id).into());
                early.ended(SessionId([session; 16]), &(-id - 1).into());
            }
        }
        early.0.with(|state| {
            assert_eq!((state.cancels.len(), state.ended.len()), (EARLY_CANCELS, EARLY_CANCELS));
        });
    }
}
