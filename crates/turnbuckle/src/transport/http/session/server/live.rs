//! The sessions in use: a request or a stream of theirs is open. A session that was in use a moment
//! ago is kept idle for its next request. Other sessions cost nothing; their ids carry them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicUsize},
    time::SystemTime,
};

use super::{
    super::{
        super::{
            server::response_stream::ResponseStream,
            timing::{IDLE_SESSION, IDLE_SESSIONS},
        },
        Session, SessionEndpoint,
    },
    Refused,
    early::EarlyCancels,
    event::StreamNumber,
    in_flight::SessionInFlight,
};
use crate::transport::http::session::{
    id::Ticket,
    store::{SessionId, SessionRecord, SessionStore, StoreError},
};
use tokio::{
    runtime::Handle,
    sync::{OnceCell, watch},
    task::{AbortHandle, JoinHandle},
};
use turnbuckle_types::{Revision, RpcError};

/// The sessions in use. When it goes, everything that runs in them is stopped.
#[derive(Default)]
pub(crate) struct Live {
    table: Mutex<SessionTable>,
    /// How many pumps run.
    pumps: watch::Sender<usize>,
    /// How many calls of all sessions are unattended.
    unattended: Arc<AtomicUsize>,
    early: Arc<EarlyCancels>,
}

#[derive(Default)]
struct SessionTable {
    entries: HashMap<SessionId, SessionEntry>,
    /// How many of the entries are idle.
    idle: usize,
    /// How many times idle sessions were removed.
    sweeps: u64,
    /// The task that removes idle sessions. Invariant: it runs while there are any.
    sweeper: Option<AbortHandle>,
}

enum SessionEntry {
    /// Invariant: the session removes it or makes it idle when it is dropped, unless another took
    /// its place.
    InUse(Weak<ActiveSession>),
    Idle(IdleSession),
}

/// The service of a session, which its next use takes over.
struct IdleSession {
    opened: Arc<Opened>,
    /// The number of sweeps when it became idle.
    since: u64,
}

/// Counts a pump for as long as it lives.
pub(super) struct PumpPermit {
    pumps: watch::Sender<usize>,
    unattended: Arc<AtomicUsize>,
}

impl PumpPermit {
    /// Returns the counter of unattended calls of all sessions.
    pub(super) fn unattended(&self) -> &Arc<AtomicUsize> {
        &self.unattended
    }
}

/// A session in use. Its requests and pumps hold it.
pub(super) struct ActiveSession {
    pub(super) id: SessionId,
    pub(super) in_flight: Arc<SessionInFlight>,
    /// The service of the last use.
    last: Option<Arc<Opened>>,
    /// Set once the record was loaded; `None` if the session has ended.
    opened: OnceCell<Option<Arc<Opened>>>,
    /// The streams that run.
    streams: Mutex<HashMap<StreamNumber, OpenStream>>,
    /// How many of its calls are unattended.
    pub(super) unattended: Arc<AtomicUsize>,
    live: Weak<Live>,
}

struct OpenStream {
    stream: Arc<ResponseStream>,
    /// Its pump.
    task: Option<JoinHandle<()>>,
}

/// The service of a session in use.
pub(super) struct Opened {
    pub(super) service: Arc<dyn Session>,
    pub(super) revision: Revision,
    pub(super) expires: SystemTime,
    /// The record in the store. Locked while that is written, so that the latest is written last.
    saved: tokio::sync::Mutex<SessionRecord>,
}

impl Live {
    /// Returns a session, which is in use from now on.
    pub(super) fn session(
        self: &Arc<Self>,
        id: SessionId,
        most: usize,
        in_flight: usize,
    ) -> Result<Arc<ActiveSession>, Refused> {
        let mut table = self.lock();
        let in_use = table.in_use();
        let SessionTable { entries, idle: count, .. } = &mut *table;
        let known = entries.get_mut(&id);
        if let Some(SessionEntry::InUse(session)) = &known
            && let Some(session) = session.upgrade()
        {
            return Ok(session);
        }
        if in_use >= most {
            let message = format!("too many sessions are in use: the limit is {most} (sessions)");
            return Err(Refused::unavailable(RpcError::internal(message)));
        }
        let last = match &known {
            Some(SessionEntry::Idle(idle)) => {
                *count -= 1;
                Some(idle.opened.clone())
            }
            _ => None,
        };
        let session = Arc::new(ActiveSession {
            id,
            in_flight: Arc::new(SessionInFlight::new(in_flight, id, self.early.clone())),
            last,
            opened: OnceCell::new(),
            streams: Mutex::default(),
            unattended: Arc::default(),
            live: Arc::downgrade(self),
        });
        let entry = SessionEntry::InUse(Arc::downgrade(&session));
        match known {
            Some(known) => *known = entry,
            None => drop(entries.insert(id, entry)),
        }
        Ok(session)
    }

    /// Keeps a session that is no longer in use for its next request, or removes it.
    fn release(self: &Arc<Self>, session: &ActiveSession) {
        let idle = session.idle();
        let mut table = self.lock();
        let SessionTable { entries, idle: count, sweeps, sweeper } = &mut *table;
        let Some(entry) = entries.get_mut(&session.id) else { return };
        match entry {
            SessionEntry::InUse(other) if std::ptr::eq(other.as_ptr(), session) => {}
            _ => return,
        }
        if let Some(opened) = idle
            && *count < IDLE_SESSIONS
            && self.is_swept(sweeper)
        {
            *entry = SessionEntry::Idle(IdleSession { opened, since: *sweeps });
            *count += 1;
        } else {
            entries.remove(&session.id);
        }
        drop(table);
    }

    /// Starts the task that removes idle sessions, unless it runs. Returns `false` if it can't.
    fn is_swept(self: &Arc<Self>, sweeper: &mut Option<AbortHandle>) -> bool {
        if sweeper.as_ref().is_some_and(|sweeper| !sweeper.is_finished()) {
            return true;
        }
        let Ok(runtime) = Handle::try_current() else { return false };
        let live = Arc::downgrade(self);
        let task = runtime.spawn(async move {
            loop {
                tokio::time::sleep(IDLE_SESSION).await;
                match live.upgrade() {
                    Some(live) if live.sweep() => {}
                    _ => return,
                }
            }
        });
        *sweeper = Some(task.abort_handle());
        true
    }

    /// Removes the sessions that were idle at the last sweep. Returns `false` if none is left.
    fn sweep(&self) -> bool {
        let mut table = self.lock();
        let sweeps = table.sweeps;
        let is_old = |entry: &SessionEntry| match entry {
            SessionEntry::Idle(idle) => idle.since < sweeps,
            SessionEntry::InUse(_) => false,
        };
        let removed: Vec<_> = table.entries.extract_if(|_, entry| is_old(entry)).collect();
        table.idle -= removed.len();
        table.sweeps += 1;
        let is_left = table.idle > 0;
        if !is_left {
            table.sweeper = None;
        }
        // Services are dropped without the lock.
        drop(table);
        drop(removed);
        is_left
    }

    /// Counts a pump.
    pub(super) fn pump_permit(&self) -> PumpPermit {
        self.pumps.send_modify(|pumps| *pumps += 1);
        PumpPermit { pumps: self.pumps.clone(), unattended: self.unattended.clone() }
    }

    /// Waits until no pump runs.
    pub(crate) async fn quiet(&self) {
        // It fails only without a sender, which `self` has.
        let _ = self.pumps.subscribe().wait_for(|pumps| *pumps == 0).await;
    }

    /// How many sessions are in use.
    pub(crate) fn len(&self) -> usize {
        self.lock().in_use()
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    fn in_use(&self) -> usize {
        self.entries.len() - self.idle
    }
}

/// The service is gone: no client can come back.
impl Drop for Live {
    fn drop(&mut self) {
        let SessionTable { entries, sweeper, .. } = std::mem::take(&mut *self.lock());
        if let Some(sweeper) = sweeper {
            sweeper.abort();
        }
        for entry in entries.into_values() {
            if let SessionEntry::InUse(session) = entry
                && let Some(session) = session.upgrade()
            {
                session.stop().iter().for_each(JoinHandle::abort);
            }
        }
    }
}

impl Drop for PumpPermit {
    fn drop(&mut self) {
        self.pumps.send_modify(|pumps| *pumps -= 1);
    }
}

impl ActiveSession {
    /// Returns the service of the session, which the first use creates from the record.
    pub(super) async fn open(
        &self,
        ticket: &Ticket,
        host: &dyn SessionEndpoint,
        store: &dyn SessionStore,
    ) -> Result<Arc<Opened>, Refused> {
        let load = async || {
            let record = store.load(self.id).await.map_err(unavailable)?.unwrap_or_default();
            if record.ended {
                return Ok(None);
            }
            if let Some(last) = self.last.as_ref().filter(|last| last.service.record() == record) {
                return Ok(Some(last.clone()));
            }
            let revision = ticket.hello.revision;
            let service = host.session(Some(self.id), ticket.hello.clone(), record.clone());
            let saved = tokio::sync::Mutex::new(record);
            Ok(Some(Arc::new(Opened { service, revision, expires: ticket.expires, saved })))
        };
        self.opened.get_or_try_init(load).await?.clone().ok_or_else(super::unknown_session)
    }

    /// Starts the pump of a stream.
    pub(super) fn start(
        &self,
        stream: &Arc<ResponseStream>,
        pump: impl Future<Output = ()> + Send + 'static,
    ) {
        // First, so that a pump that ends at once finds what it has to remove.
        let open = OpenStream { stream: stream.clone(), task: None };
        self.streams().insert(stream.number(), open);
        // Under no lock: where the runtime is shutting down, this drops the pump.
        let task = tokio::spawn(pump);
        if let Some(open) = self.streams().get_mut(&stream.number())
            && Arc::ptr_eq(&open.stream, stream)
        {
            open.task = Some(task);
        }
    }

    /// A stream that runs.
    pub(super) fn stream(&self, number: StreamNumber) -> Option<Arc<ResponseStream>> {
        self.streams().get(&number).map(|open| open.stream.clone())
    }

    /// The pump of a stream.
    pub(super) fn task(&self, stream: &ResponseStream) -> Option<JoinHandle<()>> {
        self.streams().get_mut(&stream.number())?.task.take()
    }

    /// A stream has ended.
    pub(super) fn remove(&self, stream: &Arc<ResponseStream>) {
        let mut streams = self.streams();
        if streams.get(&stream.number()).is_some_and(|open| Arc::ptr_eq(&open.stream, stream)) {
            streams.remove(&stream.number());
        }
        drop(streams);
        self.in_flight.forget_get_stream(stream);
    }

    /// Stops everything. Returns the tasks of the pumps, which end on their own.
    pub(super) fn stop(&self) -> Vec<JoinHandle<()>> {
        self.in_flight.close();
        let open: Vec<_> = self.streams().drain().map(|(_, open)| open).collect();
        open.into_iter()
            .filter_map(|open| {
                self.in_flight.kill(&open.stream);
                open.task
            })
            .collect()
    }

    /// Returns the service, if the next use can take it over.
    fn idle(&self) -> Option<Arc<Opened>> {
        let opened = self.opened.get()?.as_ref()?;
        (!self.in_flight.is_closed() && opened.service.can_wait()).then(|| opened.clone())
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<StreamNumber, OpenStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveSession {
    fn drop(&mut self) {
        if let Some(live) = self.live.upgrade() {
            live.release(self);
        }
    }
}

impl Opened {
    /// Keeps the record, if the session has changed it.
    pub(super) async fn save(
        &self,
        id: SessionId,
        store: &dyn SessionStore,
    ) -> Result<(), Refused> {
        // Most requests change nothing, and do not wait.
        let record = self.service.record();
        if self.saved.try_lock().is_ok_and(|saved| saved.ended || *saved == record) {
            return Ok(());
        }
        let mut saved = self.saved.lock().await;
        let record = self.service.record();
        if saved.ended || *saved == record {
            return Ok(());
        }
        store.save(id, record.clone(), self.expires).await.map_err(unavailable)?;
        *saved = record;
        Ok(())
    }

    /// Keeps that the session has ended. Tells whether it had already.
    pub(super) async fn save_end(
        &self,
        id: SessionId,
        store: &dyn SessionStore,
    ) -> Result<AlreadyEnded, Refused> {
        let mut saved = self.saved.lock().await;
        if saved.ended {
            return Ok(AlreadyEnded::Yes);
        }
        let record = SessionRecord { ended: true, ..SessionRecord::default() };
        store.save(id, record.clone(), self.expires).await.map_err(unavailable)?;
        *saved = record;
        Ok(AlreadyEnded::No)
    }
}

/// Whether a session had ended before.
#[derive(Debug, PartialEq)]
pub(super) enum AlreadyEnded {
    Yes,
    No,
}

pub(super) fn unavailable(error: StoreError) -> Refused {
    tracing::error!(%error, "the session store failed");
    Refused::unavailable(RpcError::internal("the session can't be looked up at the moment"))
}

#[cfg(test)]
mod tests {
    use turnbuckle_types::{
        ClientCapabilities, Implementation, Initialize, Raw,
        jsonrpc::{Fault, Params},
    };

    use super::*;
    use crate::{
        protocol::{classify::ClientHello, sealed::KeyRing},
        rpc::{Incoming, Note, Replies, Reply, Serve},
        transport::http::session::{
            id::{SessionIds, SessionOwner},
            store::MemorySessions,
        },
    };

    struct Plain(SessionRecord);

    impl Session for Plain {
        fn record(&self) -> SessionRecord {
            self.0.clone()
        }

        fn can_wait(&self) -> bool {
            true
        }
    }

    impl Serve for Plain {
        fn serve(&self, _: Incoming, _: Replies) -> Reply {
            Reply::Never
        }

        fn note(&self, _: Note) {}

        fn answers(&self, _: &Fault) -> bool {
            false
        }
    }

    impl SessionEndpoint for Plain {
        fn served(&self) -> &[Revision] {
            &[]
        }

        fn stateless(&self) -> Arc<dyn Serve> {
            Arc::new(Plain(SessionRecord::default()))
        }

        fn initialize(&self, _: &Params) -> Result<(Raw, ClientHello), RpcError> {
            Err(RpcError::internal(""))
        }

        #[cfg(feature = "sse-2024")]
        fn has_handshake(&self) -> bool {
            true
        }

        #[cfg(feature = "sse-2024")]
        fn connection(&self, _: crate::rpc::HttpHead) -> Arc<dyn Serve> {
            self.stateless()
        }

        fn session(
            &self,
            _: Option<SessionId>,
            _: Arc<ClientHello>,
            record: SessionRecord,
        ) -> Arc<dyn Session> {
            Arc::new(Plain(record))
        }
    }

    fn ticket() -> Arc<Ticket> {
        let ids = SessionIds::new(KeyRing::new([1; 32]));
        let client = Implementation::new("c", "1");
        let client = Initialize::new("2025-11-25", ClientCapabilities::default(), client);
        let hello = ClientHello { revision: Revision::V2025_11_25, client };
        let (owner, now) = (SessionOwner::new(None), SystemTime::now());
        let (_, id) = ids.create(&hello, owner, now + IDLE_SESSION);
        ids.open(id.as_bytes(), owner, now).unwrap()
    }

    /// Uses a session once. Returns its service.
    async fn used(
        live: &Arc<Live>,
        ticket: &Ticket,
        store: &MemorySessions,
    ) -> Result<Weak<dyn Session>, Refused> {
        let session = live.session(ticket.session, 1, 1)?;
        assert_eq!(live.len(), 1);
        let host = Plain(SessionRecord::default());
        let opened = session.open(ticket, &host, store).await?;
        Ok(Arc::downgrade(&opened.service))
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_kept_for_its_next_request_and_no_longer() {
        let (live, store) = (Arc::<Live>::default(), MemorySessions::default());
        let (one, other) = (ticket(), ticket());
        let first = used(&live, &one, &store).await.unwrap();
        assert_eq!(live.len(), 0, "an idle session is not in use");
        let second = used(&live, &one, &store).await.unwrap();
        assert!(first.ptr_eq(&second) && second.strong_count() == 1);
        let another = used(&live, &other, &store).await.unwrap();
        for _ in 0..3 {
            // The task that removes it runs before this goes on.
            tokio::time::advance(IDLE_SESSION).await;
            tokio::task::yield_now().await;
        }
        assert_eq!((second.strong_count(), another.strong_count()), (0, 0));
        assert!(live.lock().sweeper.is_none() && live.lock().entries.is_empty());
        let third = used(&live, &one, &store).await.unwrap();
        assert_eq!(third.strong_count(), 1);
        drop(live);
        assert_eq!(third.strong_count(), 0);
    }

    #[tokio::test]
    async fn a_session_that_ended_or_changed_elsewhere_is_not_taken_up() {
        let (live, store, ticket) = (Arc::<Live>::default(), MemorySessions::default(), ticket());
        let first = used(&live, &ticket, &store).await.unwrap();
        let log_level = Some(turnbuckle_types::LogLevel::Error);
        let changed = SessionRecord { log_level, ..SessionRecord::default() };
        store.save(ticket.session, changed.clone(), ticket.expires).await.unwrap();
        let second = used(&live, &ticket, &store).await.unwrap();
        assert!(!first.ptr_eq(&second));
        assert_eq!(second.upgrade().unwrap().record(), changed);
        let ended = SessionRecord { ended: true, ..SessionRecord::default() };
        store.save(ticket.session, ended, ticket.expires).await.unwrap();
        assert!(used(&live, &ticket, &store).await.is_err());
        assert!(live.lock().entries.is_empty());
    }
}
