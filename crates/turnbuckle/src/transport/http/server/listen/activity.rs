//! The life of an HTTP/2 connection: when it is unused, and when its peer does not read.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::transport::http::timing::{CONNECTION_AGE, CONNECTION_IDLE, WRITE_PAUSE};

/// The requests of one HTTP/2 connection. Its other frames do not count: answers to PINGs are no
/// reason to keep it.
pub(crate) struct ConnectionActivity(Mutex<State>);

struct State {
    opened: Instant,
    /// When the last request ended.
    idle_since: Instant,
    /// Since when the connection accepts no more requests.
    retired: Option<Instant>,
    /// Since when each response waits for its peer; `None` while it waits for its handler.
    responses: Vec<Place>,
}

enum Place {
    Free,
    Taken { unread_since: Option<Instant> },
}

/// What has to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConnectionVerdict {
    Keep,
    /// It accepts no more requests, and ends with the last one.
    Retire,
    /// Its peer does not read.
    Close,
}

/// A request on an HTTP/2 connection, until its response is written or dropped.
pub(crate) struct ActiveRequest {
    connection: Arc<ConnectionActivity>,
    place: usize,
}

impl ConnectionActivity {
    pub(crate) fn new() -> Arc<ConnectionActivity> {
        let now = Instant::now();
        let state = State { opened: now, idle_since: now, retired: None, responses: Vec::new() };
        Arc::new(ConnectionActivity(Mutex::new(state)))
    }

    /// How often the connection has to be judged.
    pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

    pub(crate) fn begin(self: &Arc<Self>) -> ActiveRequest {
        let mut state = self.lock();
        let taken = Place::Taken { unread_since: None };
        let free = state.responses.iter().position(|place| matches!(place, Place::Free));
        let place = match free {
            Some(place) => {
                state.responses[place] = taken;
                place
            }
            None => {
                state.responses.push(taken);
                state.responses.len() - 1
            }
        };
        drop(state);
        ActiveRequest { connection: self.clone(), place }
    }

    pub(crate) fn judge(&self, now: Instant) -> ConnectionVerdict {
        let mut state = self.lock();
        let mut is_used = false;
        for place in &state.responses {
            let Place::Taken { unread_since } = place else { continue };
            is_used = true;
            if unread_since.is_some_and(|since| now.duration_since(since) >= WRITE_PAUSE) {
                return ConnectionVerdict::Close;
            }
        }
        let is_idle = !is_used && now.duration_since(state.idle_since) >= CONNECTION_IDLE;
        if is_idle && state.retired.is_some_and(|since| now.duration_since(since) >= WRITE_PAUSE) {
            // The last bytes of its responses are not read.
            return ConnectionVerdict::Close;
        }
        if is_idle || now.duration_since(state.opened) >= CONNECTION_AGE {
            state.retired.get_or_insert(now);
            return ConnectionVerdict::Retire;
        }
        ConnectionVerdict::Keep
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveRequest {
    /// The peer has to read before the response continues.
    pub(crate) fn waits_for_peer(&self) {
        self.set(Some(Instant::now()));
    }

    /// The peer has read everything.
    pub(crate) fn is_read(&self) {
        self.set(None);
    }

    fn set(&self, unread_since: Option<Instant>) {
        self.connection.lock().responses[self.place] = Place::Taken { unread_since };
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        state.responses[self.place] = Place::Free;
        state.idle_since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_kept_while_it_is_used_and_read() {
        let connection = ConnectionActivity::new();
        let judge = |connection: &ConnectionActivity| connection.judge(Instant::now());
        tokio::time::advance(CONNECTION_IDLE - Duration::from_millis(1)).await;
        assert_eq!(judge(&connection), ConnectionVerdict::Keep);
        let request = connection.begin();
        tokio::time::advance(CONNECTION_IDLE).await;
        assert_eq!(judge(&connection), ConnectionVerdict::Keep, "a handler may take its time");
        request.waits_for_peer();
        tokio::time::advance(WRITE_PAUSE / 2).await;
        let other = connection.begin();
        request.is_read();
        tokio::time::advance(WRITE_PAUSE).await;
        assert_eq!(judge(&connection), ConnectionVerdict::Keep);
        other.waits_for_peer();
        tokio::time::advance(WRITE_PAUSE).await;
        assert_eq!(judge(&connection), ConnectionVerdict::Close);
        drop(other);
        drop(request);
        assert_eq!(judge(&connection), ConnectionVerdict::Keep);
        tokio::time::advance(CONNECTION_IDLE).await;
        assert_eq!(judge(&connection), ConnectionVerdict::Retire);
        tokio::time::advance(WRITE_PAUSE).await;
        assert_eq!(judge(&connection), ConnectionVerdict::Close, "it did not end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_a_maximum_age() {
        let connection = ConnectionActivity::new();
        let _request = connection.begin();
        tokio::time::advance(CONNECTION_AGE).await;
        assert_eq!(connection.judge(Instant::now()), ConnectionVerdict::Retire);
    }
}
