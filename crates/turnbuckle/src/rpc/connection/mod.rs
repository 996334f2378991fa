//! The dispatcher of stream wires: one reader, one writer, a task per handler.
//!
//! Owns: the state that reader, writer, callers and handlers share, and what each inbound
//! message does to it. Does not own: framing and bytes (`driver` moves them), meaning.

mod batch;
mod inbound;
pub(crate) mod io;
#[cfg(all(shuttle, feature = "client"))]
pub(crate) mod models;
mod outbound;
mod task;
mod waiter;
pub(crate) mod write_queue;

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::Waker,
    time::Duration,
};

#[cfg(all(feature = "sse-2024", feature = "client"))]
pub(crate) use crate::rpc::connection::inbound::id_of;
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) use crate::rpc::connection::outbound::write_cancel;
pub(crate) use crate::rpc::connection::task::ConnectionReplies;

use super::{
    BoxFuture, Counters, Exchange, Note, Outgoing, Serve, Transport, memory::MemoryBudget,
};
use crate::{
    error::{Closed, Executed},
    limits::Limits,
    rpc::{
        connection::{task::RunningHandler, waiter::ResponseWaiter, write_queue::Outbox},
        pending::{PendingTable, Serial},
    },
};
use turnbuckle_types::{RequestId, RpcError, jsonrpc};

/// How long a close may take to write what still waits.
pub(crate) const FLUSH: Duration = Duration::from_secs(1);
/// Owner of frames that belong to no request.
const NOBODY: Serial = Serial(0);
/// Above this share of the limit, whoever wants to send waits for the writer.
const HIGH_WATER: usize = 64;

/// One end of a stream connection.
pub(crate) struct Duplex {
    shared: Arc<ConnectionShared>,
}

pub(crate) struct ConnectionShared {
    state: Mutex<State>,
    serve: Arc<dyn Serve>,
    limits: Limits,
    /// Requests of the peer that count as in flight, also those that outlive their answer.
    in_flight: Arc<AtomicUsize>,
    memory: Arc<MemoryBudget>,
    /// Numbers the answers of the peer in the order in which they came.
    arrivals: AtomicU64,
    counts: ConnectionCounts,
}

struct State {
    table: PendingTable<Arc<ResponseWaiter>, RunningHandler>,
    outbox: Outbox,
    phase: ConnectionPhase,
    /// The writer, when it has nothing to do.
    writer: Option<Waker>,
    /// The reader, so that a local close can end it.
    reader: Option<Waker>,
    /// Those who wait for room in the outbox.
    waiting: Vec<Waker>,
    /// Those who wait for the connection to be gone.
    closing: Vec<Waker>,
    /// The end of reading, when it waits for the last handler.
    idle: Option<Waker>,
    /// Set once the peer sends no more: nothing new can be asked of it.
    deaf: Option<Closed>,
    /// The first line that was no message at all, as it is quoted: often the best hint there is.
    junk: Option<String>,
    /// Errors without an id sent since the last batch, so that junk costs little.
    nameless: usize,
}

enum ConnectionPhase {
    Open,
    /// Nothing more is read or begun; what waits is written.
    Flushing(Closed),
    Closed(Closed),
}

#[derive(Default)]
struct ConnectionCounts {
    late_answers: AtomicU64,
    stray_errors: AtomicU64,
    dropped_requests: AtomicU64,
    unreadable: AtomicU64,
    overflowed: AtomicU64,
}

impl ConnectionShared {
    fn new(serve: Arc<dyn Serve>, limits: Limits) -> ConnectionShared {
        let memory = match serve.memory() {
            Some(server) => server.share(),
            None => MemoryBudget::new(limits.memory_bytes),
        };
        ConnectionShared {
            state: Mutex::new(State {
                table: PendingTable::default(),
                outbox: Outbox::default(),
                phase: ConnectionPhase::Open,
                writer: None,
                reader: None,
                waiting: Vec::new(),
                closing: Vec::new(),
                idle: None,
                deaf: None,
                junk: None,
                nameless: 0,
            }),
            serve,
            limits,
            in_flight: Arc::default(),
            memory,
            arrivals: AtomicU64::new(0),
            counts: ConnectionCounts::default(),
        }
    }

    /// No code that can panic runs under this lock, so poison would only hide the state
    /// from the callers who must be told of the close.
    fn lock(&self) -> MutexGuard<'_, State> {
        super::lock(&self.state)
    }

    /// Changes the state, then wakes the writer if there is something for it.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let value = change(&mut state);
        let writer = if state.outbox.is_empty() { None } else { state.writer.take() };
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        value
    }

    /// Above this, whoever wants to send waits.
    fn high_water(&self) -> usize {
        self.limits.unsent_bytes / HIGH_WATER
    }

    /// Sends the answer of a request unless it was cancelled meanwhile.
    fn finish(&self, id: &RequestId, serial: Serial, outcome: super::Outcome) {
        self.update(|state| {
            let Some(handler) = state.table.finish(id, serial) else { return };
            match handler.batch {
                Some(batch) => batch.answer(state, id, outcome),
                None => state.push_outcome(serial, id, outcome),
            }
            if handler.farewell.is_some() {
                // 2026-07-28 basic/patterns/cancellation: a server MUST name the stream it ends.
                state.outbox.push(NOBODY, |out| {
                    outbound::write_cancel(out, id, "the server ended this stream");
                });
            }
            if state.table.running_len() == 0
                && let Some(idle) = state.idle.take()
            {
                idle.wake();
            }
        });
    }

    /// Ends everything that waits or runs. Callers are told `closed`; handlers are dropped.
    fn close(&self, closed: Closed) {
        let mut state = self.lock();
        if matches!(state.phase, ConnectionPhase::Closed(_)) {
            return;
        }
        // Whatever ended it first is why it ended.
        let first = state.closed().or(state.deaf.as_ref()).cloned();
        let closed = first.unwrap_or(closed);
        state.phase = ConnectionPhase::Closed(closed.clone());
        let (sent, running) = state.table.close();
        let wakers = state.take_wakers();
        drop(state);
        for (_, handler) in running {
            handler.stop();
        }
        for slot in sent {
            slot.end(Err(closed.error(Executed::Maybe)), None, u64::MAX);
        }
        wakers.into_iter().for_each(Waker::wake);
        self.serve.gone(&closed);
    }

    /// Begins an orderly end: running requests are answered that this side shuts down, and
    /// what waits is still written.
    fn flush_and_close(&self, closed: Closed, unanswered: &'static str) {
        let mut state = self.lock();
        if !matches!(state.phase, ConnectionPhase::Open) {
            return;
        }
        state.phase = ConnectionPhase::Flushing(closed);
        let mut running = state.table.close_running();
        for (serial, handler) in &mut running {
            let farewell = handler.farewell.take();
            let listen = farewell.is_some();
            // Progress that waits is still in order before this.
            let outcome =
                farewell.map(|farewell| *farewell).ok_or_else(|| RpcError::internal(unanswered));
            match &handler.batch {
                Some(batch) => batch.answer(&mut state, &handler.id, outcome),
                None => state.push_outcome(*serial, &handler.id, outcome),
            }
            if listen {
                // 2026-07-28 basic/patterns/cancellation: a server MUST name the stream it ends.
                state.outbox.push(NOBODY, |out| {
                    outbound::write_cancel(out, &handler.id, unanswered);
                });
            }
        }
        let wakers = state.take_wakers();
        drop(state);
        for (_, handler) in running {
            handler.stop();
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl State {
    fn push_outcome(&mut self, owner: Serial, id: &RequestId, outcome: super::Outcome) {
        match outcome {
            Ok(result) => self.outbox.push_body(owner, result.into_bytes(), |out| {
                jsonrpc::write_result_head(out, id);
            }),
            Err(error) => {
                self.outbox.push(owner, |out| jsonrpc::write_error(out, Some(id), &error))
            }
        }
    }

    /// Wakes whoever this is when the writer has taken what waits.
    fn wait_for_room(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }

    /// Why nothing can be sent any more.
    fn closed(&self) -> Option<&Closed> {
        match &self.phase {
            ConnectionPhase::Open => None,
            ConnectionPhase::Flushing(closed) | ConnectionPhase::Closed(closed) => Some(closed),
        }
    }

    /// Everyone who sleeps on this connection.
    fn take_wakers(&mut self) -> Vec<Waker> {
        let mut wakers = std::mem::take(&mut self.waiting);
        wakers.extend(self.writer.take());
        wakers.extend(self.reader.take());
        wakers.extend(self.idle.take());
        if matches!(self.phase, ConnectionPhase::Closed(_)) {
            wakers.append(&mut self.closing);
        }
        wakers
    }
}

/// For a wire that is moved on by HTTP requests, each of which may fail alone.
#[cfg(all(feature = "sse-2024", feature = "client"))]
impl Duplex {
    /// Ends the call with this id, whose request was lost.
    pub(crate) fn lost(&self, id: &RequestId, error: crate::error::Error) {
        self.shared.end(id, Err(error));
    }

    /// Tells whom a message of the peer concerns that was too long; this is how it began.
    /// Returns whether it tells whom.
    pub(crate) fn too_long(&self, began: &[u8]) -> bool {
        let named = inbound::id_of(began, self.shared.limits.json_depth).is_some();
        if named {
            self.shared.too_long(began);
        }
        named
    }
}

impl Transport for Duplex {
    fn open(&self, request: Outgoing) -> Exchange {
        Exchange::new(outbound::OutboundRequest::new(self.shared.clone(), request))
    }

    fn notify(&self, note: Note) -> BoxFuture<'_, ()> {
        Box::pin(outbound::notify(&self.shared, note))
    }

    #[cfg(feature = "client")]
    fn ended(&self) -> BoxFuture<'static, Closed> {
        let shared = self.shared.clone();
        Box::pin(async move {
            outbound::closed(&shared).await;
            let closed = shared.lock().closed().cloned();
            closed.unwrap_or_else(|| Closed::new("the connection ended"))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.shared.flush_and_close(
            Closed::new("the connection was closed on this side"),
            "server is shutting down",
        );
        Box::pin(outbound::closed(&self.shared))
    }

    fn close_now(&self) {
        self.shared.flush_and_close(
            Closed::new("the connection was closed on this side"),
            "server is shutting down",
        );
    }

    fn junk(&self) -> Option<String> {
        self.shared.lock().junk.clone()
    }

    fn counters(&self) -> Counters {
        let counts = &self.shared.counts;
        Counters {
            late_answers: counts.late_answers.load(Relaxed),
            stray_errors: counts.stray_errors.load(Relaxed),
            dropped_requests: counts.dropped_requests.load(Relaxed),
            unreadable: counts.unreadable.load(Relaxed),
            overflowed: counts.overflowed.load(Relaxed),
        }
    }
}
