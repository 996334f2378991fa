//! Owns the sessions that something uses at the moment: a place for each, made on first use and
//! gone with the last user. Does not own sessions that nobody uses: their ids carry those.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use http::StatusCode;
use tokio::{
    sync::{Notify, OnceCell},
    task::JoinHandle,
};
use turnbuckle_types::{Revision, RpcError};

use super::{
    super::{
        Host, Session,
        sessions::{SessionId, SessionRecord, SessionStore, StoreError},
        token::Ticket,
    },
    Refused,
    aside::Aside,
    desk::Desk,
    early::Early,
    event::StreamNumber,
    stream::Stream,
};

/// The sessions in use. When it goes, everything that runs in them is stopped.
#[derive(Default)]
pub(crate) struct Live {
    /// Invariant: an entry removes itself when it is dropped, unless another took its place.
    entries: Mutex<HashMap<SessionId, Weak<Entry>>>,
    running: Arc<Running>,
    early: Arc<Early>,
}

/// How many streams run.
#[derive(Default)]
struct Running {
    count: AtomicUsize,
    none: Notify,
}

/// One stream that runs, for as long as this lives.
pub(super) struct Busy(Arc<Running>);

/// A session in use. Whoever uses it holds it.
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) desk: Arc<Desk>,
    pub(super) aside: Arc<Aside>,
    /// What serves it, once it was loaded; nothing if it had ended.
    opened: OnceCell<Option<Arc<Opened>>>,
    /// The streams that run.
    streams: Mutex<HashMap<StreamNumber, Open>>,
    live: Weak<Live>,
}

struct Open {
    stream: Arc<Stream>,
    /// Its pump.
    task: Option<JoinHandle<()>>,
}

/// What serves a session in use.
pub(super) struct Opened {
    pub(super) session: Arc<dyn Session>,
    pub(super) revision: Revision,
    pub(super) expires: SystemTime,
    /// What the store has. Held while it is changed there, so that the latest is written last.
    saved: tokio::sync::Mutex<SessionRecord>,
}

impl Live {
    /// The entry of a session; a new one if it has none and there is room.
    pub(super) fn entry(
        self: &Arc<Self>,
        id: SessionId,
        most: usize,
        in_flight: usize,
    ) -> Result<Arc<Entry>, Refused> {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(&id).and_then(Weak::upgrade) {
            return Ok(entry);
        }
        if entries.len() >= most {
            let message = format!("too many sessions are in use: the limit is {most} (sessions)");
            let error = RpcError::internal(message);
            return Err(Refused { status: StatusCode::SERVICE_UNAVAILABLE, error });
        }
        let desk = Arc::new(Desk::new(in_flight, id, self.early.clone()));
        let entry = Arc::new(Entry {
            id,
            aside: Arc::new(Aside::new(desk.clone())),
            desk,
            opened: OnceCell::new(),
            streams: Mutex::default(),
            live: Arc::downgrade(self),
        });
        entries.insert(id, Arc::downgrade(&entry));
        Ok(entry)
    }

    /// Counts a stream that runs.
    pub(super) fn busy(&self) -> Busy {
        self.running.count.fetch_add(1, Ordering::AcqRel);
        Busy(self.running.clone())
    }

    /// Resolves when no stream runs.
    pub(crate) async fn quiet(&self) {
        loop {
            let mut none = std::pin::pin!(self.running.none.notified());
            none.as_mut().enable();
            if self.running.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }

    /// How many sessions are in use.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The service is gone: nobody could come back for what still runs.
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

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

impl Entry {
    /// What serves the session: made from its record the first time.
    pub(super) async fn open(
        &self,
        ticket: Ticket,
        host: &dyn Host,
        store: &dyn SessionStore,
    ) -> Result<Arc<Opened>, Refused> {
        let load = async || {
            let record = store.load(self.id).await.map_err(unavailable)?.unwrap_or_default();
            if record.ended {
                return Ok(None);
            }
            let revision = ticket.handshake.revision;
            let session = host.session(Some(self.id), ticket.handshake, record.clone());
            let saved = tokio::sync::Mutex::new(record);
            Ok(Some(Arc::new(Opened { session, revision, expires: ticket.expires, saved })))
        };
        self.opened.get_or_try_init(load).await?.clone().ok_or_else(super::unknown_session)
    }

    /// Starts a stream, whose pump this is.
    pub(super) fn start(
        &self,
        stream: &Arc<Stream>,
        pump: impl Future<Output = ()> + Send + 'static,
    ) {
        // First, so that a pump that ends at once finds what it has to remove.
        let open = Open { stream: stream.clone(), task: None };
        self.streams().insert(stream.number, open);
        // Under no lock: where the runtime is shutting down, this drops the pump.
        let task = tokio::spawn(pump);
        if let Some(open) = self.streams().get_mut(&stream.number)
            && Arc::ptr_eq(&open.stream, stream)
        {
            open.task = Some(task);
        }
    }

    /// A stream that runs.
    pub(super) fn stream(&self, number: StreamNumber) -> Option<Arc<Stream>> {
        self.streams().get(&number).map(|open| open.stream.clone())
    }

    /// The pump of a stream.
    pub(super) fn task(&self, stream: &Stream) -> Option<JoinHandle<()>> {
        self.streams().get_mut(&stream.number)?.task.take()
    }

    /// A stream has ended.
    pub(super) fn remove(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams();
        if streams.get(&stream.number).is_some_and(|open| Arc::ptr_eq(&open.stream, stream)) {
            streams.remove(&stream.number);
        }
        drop(streams);
        self.aside.remove(stream);
    }

    /// Stops everything, for good. What is given back are the pumps, which end by themselves.
    pub(super) fn stop(&self) -> Vec<JoinHandle<()>> {
        self.desk.close();
        let open: Vec<_> = self.streams().drain().map(|(_, open)| open).collect();
        open.into_iter()
            .filter_map(|open| {
                self.desk.kill(&open.stream);
                open.task
            })
            .collect()
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<StreamNumber, Open>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
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
        // Most requests change nothing, and wait for nobody.
        let record = self.session.record();
        if self.saved.try_lock().is_ok_and(|saved| saved.ended || *saved == record) {
            return Ok(());
        }
        let mut saved = self.saved.lock().await;
        let record = self.session.record();
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

fn unavailable(error: StoreError) -> Refused {
    tracing::error!(%error, "the session store failed");
    let error = RpcError::internal("the session can't be looked up at the moment");
    Refused { status: StatusCode::SERVICE_UNAVAILABLE, error }
}
