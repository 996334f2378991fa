//! Owns the connections to the server behind a bridge: which there are, whose they are, when one is
//! made anew. Does not own what they carry.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};
use turnbuckle_types::{Raw, Revision, RpcError};

use super::{
    Settings, failed,
    held::Held,
    link::{Guest, Link, Plan},
    parking::Parking,
    router::Clients,
    translate::{Facts, Sharing},
};
use crate::{
    error::{Closed, Error, Result},
    server::forward::{Forward, Line, Near},
};

/// A server that ends again and again is started no more often than this.
const STARTS: usize = 5;
const WITHIN: Duration = Duration::from_secs(60);
/// How much may wait for connections of sessions to be made.
const UNSENT: usize = 64;
/// How long those who wait for a server that has ended may take to tell their clients.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// The server behind a bridge.
pub(super) struct Far {
    me: Weak<Far>,
    settings: Settings,
    /// Who is on the other side of the bridge.
    pub(super) clients: Clients,
    /// For all requests that stand for themselves.
    shared: RwLock<Option<Arc<Link>>>,
    /// Held while the shared connection is made.
    making: tokio::sync::Mutex<()>,
    /// Places for connections that are one client's own.
    places: Arc<Semaphore>,
    #[cfg(feature = "http")]
    seats: Arc<super::seat::Seats>,
    facts: RwLock<Option<Facts>>,
    starts: Mutex<VecDeque<Instant>>,
    pub(super) parking: Arc<Parking>,
    /// Places for what is done for sessions once they have a connection.
    pub(super) unsent: Arc<Semaphore>,
    lost: watch::Sender<Option<Closed>>,
}

impl Far {
    pub(super) fn new(settings: Settings, clients: Clients) -> Arc<Far> {
        let parking = Parking::new(settings.waiting_calls, settings.answer_within);
        Arc::new_cyclic(|me| Far {
            me: me.clone(),
            clients,
            shared: RwLock::default(),
            making: tokio::sync::Mutex::default(),
            places: Arc::new(Semaphore::new(settings.connections)),
            #[cfg(feature = "http")]
            seats: Arc::new(super::seat::Seats::new(settings.idle)),
            facts: RwLock::default(),
            starts: Mutex::default(),
            parking: Arc::new(parking),
            unsent: Arc::new(Semaphore::new(UNSENT)),
            lost: watch::Sender::new(None),
            settings,
        })
    }

    /// Connects, so that a server that can't be reached is known before anyone is served. Dropping
    /// the future gives that up.
    pub(super) async fn begin(&self) -> Result<()> {
        let _making = self.making.lock().await;
        let link = self.open(None, None).await?;
        *self.place_of_all() = Some(link);
        Ok(())
    }

    /// The connection that all share; it is made if there is none. Dropping the future gives that
    /// up.
    pub(super) async fn shared(&self) -> Result<Arc<Link>, RpcError> {
        if let Some(link) = self.known() {
            return Ok(link);
        }
        let _making = self.making.lock().await;
        if let Some(link) = self.known() {
            return Ok(link);
        }
        let link = self.start(None, None).await?;
        *self.place_of_all() = Some(link.clone());
        Ok(link)
    }

    /// The connection that all share, if there is one.
    pub(super) fn known(&self) -> Option<Arc<Link>> {
        self.last().filter(|link| !link.is_gone())
    }

    /// The connection that all share, or did last.
    fn last(&self) -> Option<Arc<Link>> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn place_of_all(&self) -> RwLockWriteGuard<'_, Option<Arc<Link>>> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection for a client that has shaken hands: its own, if the server tells its clients
    /// apart by their connections. Dropping the future gives up making it.
    pub(super) async fn own(&self, guest: Guest<'_>) -> Result<Arc<Link>, RpcError> {
        let is_shared = |link: &Arc<Link>| link.sides(guest.revision).sharing() == Sharing::Shared;
        let last = self.last();
        // Also if it has ended meanwhile: what is made anew is for all again.
        if last.as_ref().is_some_and(is_shared) {
            return self.shared().await;
        }
        drop(last);
        self.make_room().await;
        let place = self.place()?;
        let link = self.start(Some(guest), Some(place)).await?;
        if !is_shared(&link) {
            return Ok(link);
        }
        // One that introduced itself as one of many clients is not for the others.
        if self.clients == Clients::Any {
            drop(link);
            return self.shared().await;
        }
        let mut shared = self.place_of_all();
        match &*shared {
            Some(known) if !known.is_gone() => Ok(known.clone()),
            _ => Ok(shared.insert(link).clone()),
        }
    }

    /// Ends the connection that was made before the only client was known: it gets its own, and no
    /// server has to run twice for it.
    async fn make_room(&self) {
        if self.clients == Clients::Any {
            return;
        }
        let spare = {
            let mut shared = self.place_of_all();
            shared.take_if(|link| link.router.is_quiet()).map(|link| link.client.clone())
        };
        if let Some(spare) = spare {
            spare.close().await;
        }
    }

    async fn start(
        &self,
        guest: Option<Guest<'_>>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Arc<Link>, RpcError> {
        self.may_start()?;
        self.open(guest, place).await.map_err(failed)
    }

    async fn open(
        &self,
        guest: Option<Guest<'_>>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Arc<Link>, Error> {
        let Settings { dial, limits, .. } = &self.settings;
        let clients = if guest.is_some() { Clients::One } else { self.clients };
        let client = guest.map(|guest| guest.client);
        let opened = Link::open(Plan { dial, limits, client, clients, place }).await;
        let link = opened.inspect_err(|_| self.started())?;
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = Some(link.facts.clone());
        self.observe(&link);
        Ok(link)
    }

    /// Tells of the end of a connection that was still in use.
    fn observe(&self, link: &Arc<Link>) {
        let (mut ended, link, far) = (link.router.ended(), Arc::downgrade(link), self.me.clone());
        tokio::spawn(async move {
            let why = match ended.wait_for(Option::is_some).await {
                Ok(why) => why.clone(),
                Err(_) => return,
            };
            // One that nobody held was let go.
            let (Some(link), Some(far)) = (link.upgrade(), far.upgrade()) else { return };
            far.started();
            // Whoever waits for it is told first.
            let _ = tokio::time::timeout(LAST_WORDS, link.router.quiet()).await;
            far.lost.send_replace(why);
        });
    }

    /// Why a connection that was in use has ended, once one has.
    pub(super) fn lost(&self) -> watch::Receiver<Option<Closed>> {
        self.lost.subscribe()
    }

    /// Whether another start is bearable.
    fn may_start(&self) -> Result<(), RpcError> {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        while starts.front().is_some_and(|start| start.elapsed() > WITHIN) {
            starts.pop_front();
        }
        if starts.len() < STARTS {
            return Ok(());
        }
        Err(RpcError::internal(format!(
            "the server behind this bridge has ended {STARTS} times within {} s, and is not \
             started again for a while",
            WITHIN.as_secs()
        )))
    }

    /// Counts a start that came to nothing.
    fn started(&self) {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).push_back(Instant::now());
    }

    /// A place for another connection; one that nobody uses gives way.
    fn place(&self) -> Result<OwnedSemaphorePermit, RpcError> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        #[cfg(feature = "http")]
        drop(self.seats.evict());
        self.places.clone().try_acquire_owned().map_err(|_| {
            RpcError::internal(format!(
                "too many clients are connected: the limit is {} (connections)",
                self.settings.connections
            ))
        })
    }

    /// What is kept for a session between its requests.
    #[cfg(feature = "http")]
    pub(super) fn seat(&self, key: crate::SessionId) -> Arc<super::seat::Seat> {
        self.seats.seat(key)
    }

    /// The session has ended.
    #[cfg(feature = "http")]
    pub(super) fn leave(&self, key: crate::SessionId) {
        self.seats.leave(key);
    }
}

impl Forward for Far {
    fn line(&self, near: Near) -> Arc<dyn Line> {
        Arc::new(Held::open(self.me.clone(), near))
    }

    fn initialize(&self, revision: Revision) -> Result<Raw, RpcError> {
        let facts = self.facts.read().unwrap_or_else(PoisonError::into_inner);
        match &*facts {
            Some(facts) => Ok(facts.initialize(revision)),
            None => Err(RpcError::internal("the server behind this bridge is not there yet")),
        }
    }
}
