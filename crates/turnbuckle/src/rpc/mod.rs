//! Turns a wire into call-and-return.
//!
//! Owns: the seam between protocol and transport, and the two dispatchers that stand on
//! it. Does not own: what any method means; methods are strings here, params and results
//! raw JSON.

pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod in_process;
pub(crate) mod pending;

use std::{
    borrow::Cow,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use turnbuckle_types::{
    Raw, RequestId, RpcError,
    jsonrpc::{self, Fault, Params, Text},
};

pub use exchange::{Exchange, ExchangeEvent};

#[cfg(all(feature = "http", feature = "server"))]
use crate::rpc::pending::Serial;
use crate::{
    error::{Closed, Error},
    rpc::connection::{Permit, Replies},
};

/// A boxed future, as the traits below need it.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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
    /// The way back to the peer.
    fn connected(&self, peer: Peer) {
        let _ = peer;
    }
}

/// The outgoing messages of an HTTP response: the seam to the transport, which implements it once.
///
/// `request` names one of several requests that share the response; `None` where there is only one.
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) trait Replying: Send + Sync + 'static {
    /// Queues a notification whose params `render` appends. Pending while too many wait; a
    /// no-op once the request has ended.
    fn poll_note(
        &self,
        request: Option<Serial>,
        context: &mut Context<'_>,
        method: &str,
        render: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Poll<()>;
    /// Ready when no notification of this request waits to be sent, or it has ended.
    fn poll_clear(&self, context: &mut Context<'_>) -> Poll<()>;
    /// Sets the result that an orderly shutdown gives, instead of an error.
    fn at_shutdown(&self, farewell: Raw);
    /// Asks the peer something that belongs to this request.
    fn ask(self: Arc<Self>, request: Option<Serial>, question: Outgoing) -> Exchange;
    /// Ends the connection on which the answer travels, but not the request: the client comes back
    /// for the rest. Does nothing where the client can't.
    fn release(&self);
}

/// Where the messages of a stream wire come from, one a line.
pub(crate) trait Lines: Send + 'static {
    /// The next line, or `None` at the end. Loses nothing when it is not polled again.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Line>>>;
}

/// One line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Without its line break and the white space around it; never empty.
    Whole(Bytes),
    /// Longer than the limit; this is how it began. Reading goes on after it.
    TooLong(Bytes),
}

/// How a request is answered.
pub(crate) enum Reply {
    /// At once: nothing had to run.
    Now(Outcome),
    /// By a handler, which the dispatcher runs as a task of its own.
    Later(BoxFuture<'static, Outcome>),
    /// Not at all: it was dropped, and is counted.
    Never,
}

#[cfg(feature = "server")]
impl Reply {
    /// The same, for whoever waits for it.
    pub(crate) fn into_outcome(self) -> BoxFuture<'static, Outcome> {
        match self {
            Reply::Now(outcome) => Box::pin(std::future::ready(outcome)),
            Reply::Later(running) => running,
            Reply::Never => Box::pin(std::future::pending()),
        }
    }
}

/// A request to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Cow<'static, str>,
    /// JSON text of the params, or empty for none.
    pub(crate) params: String,
    /// Where in `params` the progress token, which is the id, goes.
    pub(crate) token_at: Option<usize>,
    /// The id that the caller chose.
    pub(crate) id: Option<RequestId>,
    pub(crate) abandon: Abandon,
    #[cfg(feature = "http")]
    pub(crate) mirror: Mirror,
    #[cfg(feature = "http")]
    pub(crate) mark: Option<Mark>,
}

/// What a caller is shown again with whatever the peer asks on the stream of its request.
#[cfg(feature = "http")]
pub(crate) type Mark = Arc<dyn std::any::Any + Send + Sync>;

/// What a request repeats outside its body: facts, which only HTTP spells as headers.
#[cfg(feature = "http")]
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    /// The revision under which this very request is sent.
    pub(crate) revision: Option<turnbuckle_types::Revision>,
    /// What it is about, where the sender knows; else it is looked up in the params.
    pub(crate) name: Option<String>,
    /// Which member of the params that is, for a method that the protocol does not know.
    pub(crate) named_by: Option<&'static str>,
    /// A tool's arguments: header and encoded value.
    pub(crate) params: Vec<(String, String)>,
    /// Headers that the caller added to this one request.
    pub(crate) extra: Vec<(http::HeaderName, http::HeaderValue)>,
}

/// What dropping a written request tells the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandon {
    /// The wire's own signal.
    Signal,
    /// Nothing: `initialize`, `server/discover`, or the caller's wish.
    Silence,
}

impl Outgoing {
    pub(crate) fn new(method: impl Into<Cow<'static, str>>, params: String) -> Outgoing {
        Outgoing {
            method: method.into(),
            params,
            token_at: None,
            id: None,
            abandon: Abandon::Signal,
            #[cfg(feature = "http")]
            mirror: Mirror::default(),
            #[cfg(feature = "http")]
            mark: None,
        }
    }

    /// Appends the whole request.
    pub(crate) fn write(&self, id: &RequestId, out: &mut Vec<u8>) {
        if self.token_at.is_none() {
            return jsonrpc::write_request(out, id, &self.method, &self.params);
        }
        jsonrpc::write_request(out, id, &self.method, "");
        // The envelope closes with a brace; the params go before it.
        out.pop();
        out.extend_from_slice(br#","params":"#);
        self.write_params(id, out);
        out.push(b'}');
    }

    /// Appends the params with the progress token in its place.
    pub(crate) fn write_params(&self, id: &RequestId, out: &mut Vec<u8>) {
        let Some(at) = self.token_at else {
            return out.extend_from_slice(self.params.as_bytes());
        };
        let (before, after) = self.params.split_at(at);
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(br#""progressToken":"#);
        id.write_to(out);
        if !after.starts_with('}') {
            out.push(b',');
        }
        out.extend_from_slice(after.as_bytes());
    }
}

/// A request that arrived.
pub(crate) struct Incoming {
    pub(crate) id: RequestId,
    pub(crate) method: Text,
    pub(crate) params: Params,
    /// Held for as long as the request counts as in flight.
    pub(crate) permit: Permit,
    /// How it came, and what came with it outside its body.
    pub(crate) came: RequestOrigin,
}

/// How a request came, and what came with it outside its body.
#[derive(Clone, Debug, Default)]
pub(crate) enum RequestOrigin {
    /// On a wire where each message is all there is.
    #[default]
    Alone,
    /// On the stream of a request of this side, which had this mark.
    #[cfg(feature = "http")]
    Within(RequestId, Option<Mark>),
    /// By a POST of its own, whose headers have to agree with the body.
    #[cfg(feature = "http")]
    ByPost(Arc<HttpHead>),
    /// In a session, or as if in one, whose headers say nothing of the message.
    #[cfg(feature = "http")]
    InSession(Arc<HttpHead>),
}

/// What HTTP carries beside a body.
#[cfg(feature = "http")]
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpHead {
    pub(crate) headers: http::HeaderMap,
    pub(crate) extensions: http::Extensions,
}

#[cfg(feature = "http")]
impl RequestOrigin {
    pub(crate) fn head(&self) -> Option<&HttpHead> {
        match self {
            RequestOrigin::Alone | RequestOrigin::Within(..) => None,
            RequestOrigin::ByPost(head) | RequestOrigin::InSession(head) => Some(head),
        }
    }
}

impl Incoming {
    pub(crate) fn new(id: RequestId, method: Text, params: Params, permit: Permit) -> Incoming {
        Incoming { id, method, params, permit, came: RequestOrigin::default() }
    }
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
