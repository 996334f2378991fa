//! Call and return over any connection.
//!
//! [`Transport`] sends requests and [`Serve`] answers them. Methods are strings here, params and
//! results are raw JSON.

pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod in_process;
pub(crate) mod memory;
pub(crate) mod pending;
pub(crate) mod replies;
pub(crate) mod request;

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::task::JoinHandle;
use turnbuckle_types::{
    Raw, RequestId, RpcError,
    jsonrpc::{Fault, Params, Text},
};

pub use exchange::{Exchange, ExchangeEvent};
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) use replies::Replying;
pub(crate) use replies::{Replies, Reply, panicked};
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) use request::HttpHead;
#[cfg(any(feature = "http", feature = "server"))]
pub(crate) use request::RequestOrigin;
pub(crate) use request::{Abandon, Incoming, Outgoing, Permit};
#[cfg(all(feature = "client", feature = "http"))]
pub(crate) use request::{Mark, Mirror};

use crate::error::{Closed, Error};

/// A boxed future, as the traits below need it.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Starts a task that is not started for each request. tokio's tasks are compiled for every type of
/// future and every kind of runtime; all of these are of one type.
pub(crate) fn spawn_boxed(task: BoxFuture<'static, ()>) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// What a request ends with: the result's JSON text, or an error.
pub(crate) type Outcome = Result<Raw, RpcError>;

/// One end of a connection, as whoever sends requests on it sees it.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Nothing is sent until the exchange is polled. Dropping it abandons the request, in
    /// the way this wire abandons requests.
    fn open(&self, request: Outgoing) -> Exchange;
    /// Sends a notification; waits while the peer does not read. Dropped silently after a
    /// close.
    fn notify(&self, note: Note) -> BoxFuture<'_, ()>;
    /// The handshake of the legacy era has agreed on this revision.
    #[cfg(feature = "client")]
    fn agreed(&self, revision: turnbuckle_types::Revision) {
        let _ = revision;
    }
    /// The handshake is over: returns when the peer can speak unasked, or never will.
    #[cfg(feature = "client")]
    fn established(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    /// Another wire to the same peer, for when the handshake was refused on this one.
    #[cfg(feature = "client")]
    fn fall_back(&self) -> Option<BoxFuture<'_, Result<Arc<dyn Transport>, Error>>> {
        None
    }
    /// Resolves when the connection has ended, with why. Never on a wire that has no connection
    /// of its own.
    #[cfg(feature = "client")]
    fn ended(&self) -> BoxFuture<'static, crate::error::Closed> {
        Box::pin(std::future::pending())
    }
    /// Ends the connection: what waits is flushed within a bound, callers are told.
    fn close(&self) -> BoxFuture<'_, ()>;
    /// Ends the connection without waiting for anything.
    fn close_now(&self);
    /// The first thing that the peer sent and that was no message at all, in one short line.
    fn junk(&self) -> Option<String> {
        None
    }
    /// What was dropped and counted so far.
    fn counters(&self) -> Counters;
}

/// One end of a connection, as whoever answers requests on it sees it.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Called by the reader, in wire order: it must not wait and runs no user code.
    /// Returning is answering; the future being dropped is being cancelled.
    fn serve(&self, request: Incoming, replies: Replies) -> Reply;
    /// A notification, after the dispatcher has applied it. Must not wait either.
    fn note(&self, note: Note);
    /// The peer has lost what it knew of this connection, and it was opened anew underneath. Must
    /// not wait either; what it gives is waited for before requests go on.
    #[cfg(all(feature = "http", feature = "client"))]
    fn renewed(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
    /// The same, for one that came on the stream of a request of this side, which has it too.
    #[cfg(all(feature = "http", feature = "client"))]
    fn note_within(&self, note: Note, request: &RequestId) {
        let _ = request;
        self.note(note);
    }
    /// Whether a broken message is to be answered.
    fn answers(&self, fault: &Fault) -> bool;
    /// An error that answers nothing in particular.
    fn stray(&self, error: RpcError) {
        let _ = error;
    }
    /// The first line that was no message at all, short and in one line. Called once at most, by the
    /// reader.
    fn junk(&self, line: &str) {
        let _ = line;
    }
    /// Whether batches exist in what was negotiated.
    fn batches(&self) -> bool {
        false
    }
    /// The wire is gone, and this is why.
    fn gone(&self, why: &Closed) {
        let _ = why;
    }
    /// Returns the memory budget that all connections of a server share.
    fn memory(&self) -> Option<Arc<memory::MemoryBudget>> {
        None
    }
    /// The way back to the peer.
    fn connected(&self, peer: Peer) {
        let _ = peer;
    }
}

/// Where the messages of a stream wire come from, one a line.
pub(crate) trait Lines: Send + 'static {
    /// The next line, or `None` at the end. Loses nothing when it is not polled again.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Line>>>;
}

/// Locks a mutex, even if a thread has panicked under it. In a concurrency model any other thread may
/// run first.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(all(shuttle, feature = "client"))]
    loop {
        connection::models::switch();
        if !matches!(mutex.try_lock(), Err(std::sync::TryLockError::WouldBlock)) {
            break;
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Without its line break and the white space around it; never empty.
    Whole(Bytes),
    /// Longer than the limit; this is how it began. Reading goes on after it.
    TooLong(Bytes),
}

/// A notification, in either direction.
#[derive(Clone, Debug)]
pub struct Note {
    /// The method.
    pub method: Text,
    /// The params.
    pub params: Params,
}

impl Note {
    /// Creates a notification.
    pub fn new(method: impl Into<Text>, params: Option<Raw>) -> Note {
        Note { method: method.into(), params: Params { raw: params, ..Params::default() } }
    }

    /// The request that it speaks of.
    pub fn subject(&self) -> Option<RequestId> {
        RequestId::from_token(self.params.subject.as_ref()?.as_str())
    }
}

/// The way to a peer from the side that serves it. Does not keep the connection alive.
#[derive(Clone)]
pub(crate) struct Peer(std::sync::Weak<dyn Transport>);

impl Peer {
    pub(crate) fn new(transport: std::sync::Weak<dyn Transport>) -> Peer {
        Peer(transport)
    }

    pub(crate) fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.0.upgrade()
    }
}

/// Counts of what a connection dropped, as anyone may look at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(
    not(feature = "client"),
    expect(unreachable_pub, reason = "only a client shows its counters")
)]
pub struct Counters {
    /// Answers to requests that had ended or never were.
    pub late_answers: u64,
    /// Errors that carried no id.
    pub stray_errors: u64,
    /// Requests of the server that were dropped without an answer: in the modern era all of
    /// them, because a client answers none; in the legacy era those of a session that is gone,
    /// and those that could not even be refused because too many refusals were on their way.
    pub dropped_requests: u64,
    /// Lines and messages that could not be read.
    pub unreadable: u64,
    /// Progress that gave way because its call was not being polled.
    pub overflowed: u64,
}

/// Joins an error of this side with the outcome of the other.
pub(crate) fn outcome_to_result(outcome: Outcome) -> Result<Raw, Error> {
    outcome.map_err(Error::from)
}
