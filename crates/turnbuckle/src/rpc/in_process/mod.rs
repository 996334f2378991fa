//! The dispatcher of the in-process wire: no framing, no tasks, the same contract.
//!
//! Owns: handing a request straight to the other side and polling its handler inside the
//! caller's own future. Does not own: bytes, because there are none.

mod notes;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use tokio::task::AbortHandle;
use turnbuckle_types::{Raw, RequestId, jsonrpc::Params};

use super::{
    Abandon, BoxFuture, Counters, Exchange, ExchangeEvent, Incoming, Note, Outcome, Outgoing, Peer,
    Reply, Serve, Transport, exchange::Drive, outcome_to_result,
};
use crate::{
    error::{Closed, Error, Executed},
    limits::Limits,
    rpc::{
        Permit, Replies, panicked,
        pending::{PendingTable, Serial},
    },
};
use notes::HandlerStopped;
pub(crate) use notes::Notes;

/// One end of an in-process connection.
pub(crate) struct Direct(Arc<InProcessTransport>);

/// What sends to `serve`.
pub(super) struct InProcessTransport {
    serve: Arc<dyn Serve>,
    /// The other end, for what the serving side asks. Only the client's end has one.
    back: OnceLock<Arc<Direct>>,
    table: Mutex<PendingTable<Arc<Notes>, ()>>,
    closed: OnceLock<Closed>,
    /// Of the side that serves.
    limits: Limits,
    in_flight: Arc<AtomicUsize>,
    /// Handlers that no drop of a call stops; the end of the connection does.
    detached: Mutex<Vec<AbortHandle>>,
    dropped_requests: AtomicU64,
}

impl Direct {
    /// Joins a client's answers with a server, each with its own limits; the client's end
    /// is returned.
    pub(crate) fn connect(
        (server, server_limits): (Arc<dyn Serve>, Limits),
        (client, client_limits): (Arc<dyn Serve>, Limits),
    ) -> Arc<Direct> {
        let forth = Arc::new(Direct::new(server.clone(), server_limits));
        let back = Arc::new(Direct::new(client.clone(), client_limits));
        // Each side knows the way to the other without keeping it alive.
        let (to_client, to_server) = (Arc::downgrade(&back), Arc::downgrade(&forth));
        server.connected(Peer::new(to_client));
        client.connected(Peer::new(to_server));
        let _ = forth.0.back.set(back);
        forth
    }

    fn new(serve: Arc<dyn Serve>, limits: Limits) -> Direct {
        Direct(Arc::new(InProcessTransport {
            serve,
            back: OnceLock::new(),
            table: Mutex::new(PendingTable::default()),
            closed: OnceLock::new(),
            limits,
            in_flight: Arc::default(),
            detached: Mutex::default(),
            dropped_requests: AtomicU64::new(0),
        }))
    }
}

impl InProcessTransport {
    fn table(&self) -> MutexGuard<'_, PendingTable<Arc<Notes>, ()>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn detached(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.detached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a handler that nobody's drop may stop as a task of its own, from the start.
    fn detach(&self, handler: BoxFuture<'static, Outcome>) -> BoxFuture<'static, Outcome> {
        let task = tokio::spawn(handler);
        let mut detached = self.detached();
        detached.retain(|task| !task.is_finished());
        detached.push(task.abort_handle());
        Box::pin(async move {
            match task.await {
                Ok(outcome) => outcome,
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => std::panic::resume_unwind(payload),
                    Err(_) => std::future::pending().await,
                },
            }
        })
    }

    fn end(&self, closed: Closed) {
        if self.closed.set(closed).is_err() {
            return;
        }
        let (running, _) = self.table().close();
        running.into_iter().for_each(|notes| notes.stop(HandlerStopped::Closed));
        self.detached().drain(..).for_each(|task| task.abort());
        if let Some(back) = self.back.get() {
            back.0.end(Closed::new("the peer closed the connection"));
        }
    }

    /// Applies a notification as a reader would.
    fn note(&self, note: Note) {
        if self.closed.get().is_some() {
            return tracing::debug!(method = %note.method, "a notification after the close is dropped");
        }
        if &*note.method == "notifications/cancelled"
            && let Some(id) = note.subject()
        {
            let running = self.table().sent(&id).cloned();
            if let Some(notes) = running {
                notes.stop(HandlerStopped::Cancelled);
            }
        }
        if &*note.method == "notifications/progress"
            && let (Some(id), Some(back)) = (note.subject(), self.back.get())
        {
            let asked = back.0.table().sent(&id).cloned();
            if let Some(notes) = asked {
                notes.push(note.clone());
            }
        }
        self.serve.note(note);
    }
}

impl Transport for Direct {
    fn open(&self, request: Outgoing) -> Exchange {
        Exchange::new(Handed { end: self.0.clone(), stage: InProcessStage::New(request) })
    }

    fn notify(&self, note: Note) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.0.note(note) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.close_now();
        Box::pin(async {})
    }

    fn close_now(&self) {
        self.0.end(Closed::new("the connection was closed on this side"));
    }

    fn counters(&self) -> Counters {
        Counters { dropped_requests: self.0.dropped_requests.load(Relaxed), ..Counters::default() }
    }
}

/// A request that was handed over, and the handler that answers it.
struct Handed {
    end: Arc<InProcessTransport>,
    stage: InProcessStage,
}

enum InProcessStage {
    New(Outgoing),
    Running {
        id: RequestId,
        serial: Serial,
        notes: Arc<Notes>,
        /// `None` once it has been cancelled by name: then no answer comes.
        handler: Option<BoxFuture<'static, Outcome>>,
    },
    /// The answer, until the notifications before it are read.
    Answered {
        notes: Arc<Notes>,
        outcome: Option<Outcome>,
    },
    Done,
}

impl Handed {
    /// Hands the request over. An error ends the exchange.
    fn start(&mut self) -> Result<(), Error> {
        let InProcessStage::New(request) = &mut self.stage else { return Ok(()) };
        let end = &self.end;
        if let Some(closed) = end.closed.get() {
            return Err(closed.error(Executed::No));
        }
        let notes = Arc::new(Notes::new(end.back.get().cloned(), end.limits.queued_notifications));
        let (id, serial) = end
            .table()
            .send(request.id.take(), notes.clone())
            .map_err(|collision| Error::id_in_flight(&collision.0))?;
        let incoming = match incoming(end, request, &id) {
            Ok(incoming) => incoming,
            Err(error) => {
                end.table().abandon(&id, serial);
                return Err(error);
            }
        };
        let replies = Replies::direct(notes.clone());
        let reply = catch_unwind(AssertUnwindSafe(|| end.serve.serve(incoming, replies)))
            .unwrap_or_else(|payload| Reply::Now(Err(panicked(&id, payload.as_ref()))));
        let abandon = request.abandon;
        self.stage = match reply {
            Reply::Now(outcome) => {
                end.table().abandon(&id, serial);
                InProcessStage::Answered { notes, outcome: Some(outcome) }
            }
            Reply::Later(handler) => {
                let handler = match abandon {
                    Abandon::Signal => handler,
                    Abandon::Silence => end.detach(handler),
                };
                InProcessStage::Running { id, serial, notes, handler: Some(handler) }
            }
            Reply::Never => {
                end.dropped_requests.fetch_add(1, Relaxed);
                InProcessStage::Running { id, serial, notes, handler: None }
            }
        };
        Ok(())
    }
}

/// What a reader would have made of the request.
fn incoming(
    end: &InProcessTransport,
    request: &mut Outgoing,
    id: &RequestId,
) -> Result<Incoming, Error> {
    let permit = Permit::take(&end.in_flight, end.limits.in_flight)?;
    let mut text = Vec::with_capacity(request.params.len() + 32);
    request.write_params(id, &mut text);
    let params = match Raw::from_encoded(text) {
        Some(raw) if !raw.as_str().is_empty() => Params::of(raw)?,
        _ => Params::default(),
    };
    let method = std::mem::take(&mut request.method).into_owned().into();
    Ok(Incoming::new(id.clone(), method, params, permit))
}

impl Drive for Handed {
    fn poll_event(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        if let Err(error) = self.start() {
            self.stage = InProcessStage::Done;
            return Poll::Ready(ExchangeEvent::Done(Err(error)));
        }
        let this = &mut *self;
        loop {
            match &mut this.stage {
                InProcessStage::Running { id, serial, notes, handler } => {
                    if let Some(note) = notes.pop() {
                        return Poll::Ready(ExchangeEvent::Note(note));
                    }
                    match notes.poll_stopped(context) {
                        Some(HandlerStopped::Cancelled) => *handler = None,
                        Some(HandlerStopped::Closed) => {
                            let closed = this.end.closed.get();
                            let error = closed.map_or_else(
                                || Error::refused("the connection is closed"),
                                |closed| closed.error(Executed::Maybe),
                            );
                            this.stage = InProcessStage::Done;
                            return Poll::Ready(ExchangeEvent::Done(Err(error)));
                        }
                        None => {}
                    }
                    let Some(running) = handler else { return Poll::Pending };
                    let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context)));
                    let outcome = match polled {
                        Ok(Poll::Ready(outcome)) => outcome,
                        Err(payload) => Err(panicked(id, payload.as_ref())),
                        Ok(Poll::Pending) => match notes.pop() {
                            Some(note) => return Poll::Ready(ExchangeEvent::Note(note)),
                            None => return Poll::Pending,
                        },
                    };
                    this.end.table().abandon(id, *serial);
                    this.stage =
                        InProcessStage::Answered { notes: notes.clone(), outcome: Some(outcome) };
                }
                InProcessStage::Answered { notes, outcome } => {
                    if let Some(note) = notes.pop() {
                        return Poll::Ready(ExchangeEvent::Note(note));
                    }
                    if let Some(outcome) = outcome.take() {
                        this.stage = InProcessStage::Done;
                        return Poll::Ready(ExchangeEvent::Done(outcome_to_result(outcome)));
                    }
                    this.stage = InProcessStage::Done;
                }
                InProcessStage::New(_) | InProcessStage::Done => {
                    let error = Error::refused("this call has already ended");
                    return Poll::Ready(ExchangeEvent::Done(Err(error)));
                }
            }
        }
    }

    fn reason(self: Pin<&mut Self>, reason: String) {
        tracing::debug!(reason, "a call is about to be abandoned");
    }

    fn id(&self) -> Option<&RequestId> {
        match &self.stage {
            InProcessStage::New(request) => request.id.as_ref(),
            InProcessStage::Running { id, .. } => Some(id),
            InProcessStage::Answered { .. } | InProcessStage::Done => None,
        }
    }
}

/// The handler's future goes with it: that is the cancel.
impl Drop for Handed {
    fn drop(&mut self) {
        if let InProcessStage::Running { id, serial, notes, .. } = &self.stage {
            self.end.table().abandon(id, *serial);
            notes.stop(HandlerStopped::Cancelled);
        }
    }
}
