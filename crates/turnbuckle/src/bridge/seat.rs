//! Owns the connections to the server that sessions of the legacy era have between their requests,
//! and when one is given up. Does not own how one is made.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use serde_json::json;
use tokio::{task::AbortHandle, time::Instant};
use turnbuckle_types::{Method, Raw, RpcError};

use super::{
    far::Far,
    link::{Guest, Link},
    translate::Sharing,
};
use crate::{SessionId, server::forward::Memory};

/// The places of all sessions.
pub(super) struct Seats {
    /// Invariant: whoever uses a place holds it, too.
    all: Mutex<HashMap<SessionId, Arc<Seat>>>,
    /// How long one may go unused.
    idle: Duration,
    sweeping: OnceLock<AbortHandle>,
}

impl Seats {
    pub(super) fn new(idle: Duration) -> Seats {
        Seats { all: Mutex::default(), idle, sweeping: OnceLock::new() }
    }

    /// The place of a session, for as long as what is returned is held and a while longer.
    pub(super) fn seat(self: &Arc<Self>, key: SessionId) -> Arc<Seat> {
        self.sweeping
            .get_or_init(|| tokio::spawn(sweep(Arc::downgrade(self), self.idle)).abort_handle());
        self.lock().entry(key).or_default().clone()
    }

    /// A session has ended.
    pub(super) fn leave(&self, key: SessionId) {
        let seat = self.lock().remove(&key);
        if let Some(seat) = seat {
            seat.leave();
        }
    }

    /// Gives up the place that nobody has used for longest.
    pub(super) fn evict(&self) -> Option<Arc<Seat>> {
        let mut all = self.lock();
        let free = all.iter().filter(|(_, seat)| Arc::strong_count(seat) == 1);
        let oldest = free.min_by_key(|(_, seat)| seat.used()).map(|(key, _)| *key)?;
        all.remove(&oldest)
    }

    /// Gives up those that nobody has used for long.
    fn take_idle(&self) -> Vec<Arc<Seat>> {
        let is_idle =
            |seat: &Arc<Seat>| Arc::strong_count(seat) == 1 && seat.used().elapsed() > self.idle;
        self.lock().extract_if(|_, seat| is_idle(seat)).map(|(_, seat)| seat).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Seat>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        if let Some(sweeping) = self.sweeping.get() {
            sweeping.abort();
        }
    }
}

async fn sweep(seats: Weak<Seats>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 2).await;
        let Some(seats) = seats.upgrade() else { return };
        // Not under the lock: dropping them closes connections.
        drop(seats.take_idle());
    }
}

/// One session's place.
#[derive(Default)]
pub(super) struct Seat {
    /// Locked while it is being made.
    link: tokio::sync::Mutex<Option<Arc<Link>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: Option<Instant>,
    left: bool,
}

impl Seat {
    /// The session's connection; if there is none it is made, and the server told what this client
    /// had told it before. Dropping the future gives that up.
    pub(super) async fn link(
        &self,
        far: &Far,
        guest: Guest<'_>,
        memory: impl FnOnce() -> Memory,
    ) -> Result<Arc<Link>, RpcError> {
        self.use_now()?;
        let mut place = self.link.lock().await;
        if let Some(link) = place.as_ref().filter(|link| !link.is_gone()) {
            return Ok(link.clone());
        }
        // A connection that is lost gives its place to the next.
        *place = None;
        let link = far.own(guest).await?;
        if link.sides(guest.revision).sharing() == Sharing::Own {
            remind(&link, memory()).await;
        }
        // It may have ended meanwhile.
        self.use_now()?;
        *place = Some(link.clone());
        Ok(link)
    }

    /// The session's connection, if there is one at this moment.
    pub(super) fn known(&self) -> Option<Arc<Link>> {
        self.use_now().ok()?;
        self.link.try_lock().ok()?.clone().filter(|link| !link.is_gone())
    }

    fn use_now(&self) -> Result<(), RpcError> {
        let mut state = self.lock();
        if state.left {
            return Err(RpcError::internal("this session has ended"));
        }
        state.used = Some(Instant::now());
        Ok(())
    }

    /// When it was used last.
    pub(super) fn used(&self) -> Instant {
        self.lock().used.unwrap_or_else(Instant::now)
    }

    /// The session has ended: its connection goes.
    pub(super) fn leave(&self) {
        self.lock().left = true;
        if let Ok(mut link) = self.link.try_lock() {
            *link = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a server what the connection before was told.
async fn remind(link: &Link, memory: Memory) {
    let level = memory.level.map(|level| (Method::SetLevel, json!({ "level": level })));
    let uris = memory.subscriptions.into_iter();
    let uris = uris.map(|uri| (Method::Subscribe, json!({ "uri": uri })));
    for (method, params) in level.into_iter().chain(uris) {
        if let Err(error) = link.client.request(method.as_str(), Raw::from(params)).await {
            tracing::warn!(%error, %method, "a connection that was made anew lacks this");
        }
    }
}
