//! The sessions in use: a request or a stream of theirs is open. Other sessions cost nothing; their
//! ids carry them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicUsize},
    time::SystemTime,
};

use super::{
    super::{super::server::response_stream::ResponseStream, Session, SessionEndpoint},
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
    sync::{OnceCell, watch},
    task::JoinHandle,
};
use turnbuckle_types::{Revision, RpcError};

/// The sessions in use. When it goes, everything that runs in them is stopped.
#[derive(Default)]
pub(crate) struct Live {
    /// Invariant: an entry removes itself when it is dropped, unless another took its place.
    entries: Mutex<HashMap<SessionId, Weak<ActiveSession>>>,
    /// How many pumps run.
    pumps: watch::Sender<usize>,
    /// How many calls of all sessions are unattended.
    unattended: Arc<AtomicUsize>,
    early: Arc<EarlyCancels>,
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
        let mut entries = self.lock();
        if let Some(entry) = entries.get(&id).and_then(Weak::upgrade) {
            return Ok(entry);
        }
        if entries.len() >= most {
            let message = format!("too many sessions are in use: the limit is {most} (sessions)");
            return Err(Refused::unavailable(RpcError::internal(message)));
        }
        let entry = Arc::new(ActiveSession {
            id,
            in_flight: Arc::new(SessionInFlight::new(in_flight, id, self.early.clone())),
            opened: OnceCell::new(),
            streams: Mutex::default(),
            unattended: Arc::default(),
            live: Arc::downgrade(self),
        });
        entries.insert(id, Arc::downgrade(&entry));
        Ok(entry)
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
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<ActiveSession>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The service is gone: no client can come back.
impl Drop for Live {
    fn drop(&mut self) {
        let entries: Vec<_> =
            self.lock().drain().filter_map(|(_, entry)| entry.upgrade()).collect();
        for entry in entries {
            for task in entry.stop() {
                task.abort();
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

    fn streams(&self) -> MutexGuard<'_, HashMap<StreamNumber, OpenStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveSession {
    fn drop(&mut self) {
        let Some(live) = self.live.upgrade() else { return };
        let mut entries = live.lock();
        if entries.get(&self.id).is_some_and(|entry| std::ptr::eq(entry.as_ptr(), self)) {
            entries.remove(&self.id);
        }
        drop(entries);
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
