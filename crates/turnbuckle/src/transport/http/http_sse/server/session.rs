//! Owns which sessions are open, whose they are, what runs in them, and their end.
//! Does not own their streams, nor what is said.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use crate::{
    principal::Principal,
    protocol::sealed::random,
    rpc::{
        BoxFuture, HttpHead, Incoming, Line, Lines, Note, Outcome, Peer, Permit, Replies, Reply,
        RequestOrigin, Serve,
    },
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use tokio::sync::mpsc;
use turnbuckle_types::{RpcError, jsonrpc::Fault};

/// How many messages may wait to be read. They do not wait long: reading waits for nobody.
const WAITING: usize = 4;

/// The sessions of a service.
#[derive(Default)]
pub(super) struct SseSessions {
    table: Mutex<Table>,
    /// Requests that run, in all sessions.
    in_flight: Arc<AtomicUsize>,
    finished: AtomicU64,
    cancelled: AtomicU64,
}

#[derive(Default)]
struct Table {
    open: HashMap<String, Arc<SseSession>>,
    phase: SessionPhase,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum SessionPhase {
    #[default]
    Open,
    /// A session ends when nothing runs in it.
    Draining,
    Over,
}

/// Why no session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Closed,
    Most,
}

impl SseSessions {
    /// Opens a session: the name by which it is found, which nobody can guess, and what is posted.
    pub(super) fn open(
        &self,
        owner: Option<Principal>,
        most: usize,
    ) -> Result<(String, Arc<SseSession>, Inbox), Full> {
        let (sender, messages) = mpsc::channel(WAITING);
        let session = Arc::new(SseSession {
            owner,
            posted: sender,
            peer: OnceLock::new(),
            state: Mutex::default(),
        });
        let mut table = self.lock();
        if table.phase > SessionPhase::Open {
            return Err(Full::Closed);
        }
        if table.open.len() >= most {
            return Err(Full::Most);
        }
        let id = URL_SAFE_NO_PAD.encode(random::<16>());
        table.open.insert(id.clone(), session.clone());
        Ok((id, session.clone(), Inbox { messages, session }))
    }

    /// A session, if it is theirs.
    pub(super) fn find(&self, id: &str, owner: Option<&Principal>) -> Option<Arc<SseSession>> {
        let table = self.lock();
        table.open.get(id).filter(|session| session.owner.as_ref() == owner).cloned()
    }

    /// Keeps a session in the table; dropping it takes it out.
    pub(super) fn place(self: &Arc<Self>, id: String) -> InTable {
        InTable { id, sessions: self.clone() }
    }

    /// Lets each session end when nothing runs in it.
    pub(super) fn drain(&self) {
        self.advance(SessionPhase::Draining);
    }

    /// Ends each session now.
    pub(super) fn end(&self) {
        for session in self.advance(SessionPhase::Over) {
            self.cancelled.fetch_add(session.lock().running, Relaxed);
            if let Some(transport) = session.peer.get().and_then(Peer::transport) {
                transport.close_now();
            }
        }
    }

    /// How many calls ended while the sessions were drained, and how many by their end.
    pub(super) fn ended(&self) -> (u64, u64) {
        (self.finished.load(Relaxed), self.cancelled.load(Relaxed))
    }

    fn advance(&self, phase: SessionPhase) -> Vec<Arc<SseSession>> {
        let mut table = self.lock();
        table.phase = table.phase.max(phase);
        let open: Vec<_> = table.open.values().cloned().collect();
        drop(table);
        for session in &open {
            let mut state = session.lock();
            state.phase = state.phase.max(phase);
            let reader = state.reader.take();
            drop(state);
            reader.into_iter().for_each(Waker::wake);
        }
        open
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes its session out of the table when it is dropped.
pub(super) struct InTable {
    id: String,
    sessions: Arc<SseSessions>,
}

impl Drop for InTable {
    fn drop(&mut self) {
        self.sessions.lock().open.remove(&self.id);
    }
}

/// One session.
pub(super) struct SseSession {
    owner: Option<Principal>,
    posted: mpsc::Sender<Posted>,
    peer: OnceLock<Peer>,
    state: Mutex<State>,
}

/// A message, and the request that carried it: who sent it, and what came with it.
pub(super) struct Posted {
    pub(super) message: Bytes,
    pub(super) head: Arc<HttpHead>,
}

#[derive(Default)]
struct State {
    /// What carried the message that was read last. It is applied before the next one is read.
    carrier: Option<Arc<HttpHead>>,
    /// Handlers that have not ended.
    running: u64,
    phase: SessionPhase,
    /// Who reads what is posted, when nothing is.
    reader: Option<Waker>,
}

impl SseSession {
    /// Takes a message in; an error if the session has ended. Dropping the future before it is done
    /// drops the message.
    pub(super) async fn take_in(
        &self,
        posted: Posted,
    ) -> Result<(), mpsc::error::SendError<Posted>> {
        self.posted.send(posted).await
    }

    /// Ready when nothing more is to be read.
    fn poll_end(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        match state.phase {
            SessionPhase::Over => return Poll::Ready(()),
            SessionPhase::Draining if state.running == 0 => return Poll::Ready(()),
            SessionPhase::Draining | SessionPhase::Open => {}
        }
        match &mut state.reader {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is posted to a session, as the lines of a stream wire.
pub(super) struct Inbox {
    messages: mpsc::Receiver<Posted>,
    session: Arc<SseSession>,
}

impl Inbox {
    fn line(&self, posted: Option<Posted>) -> Option<Line> {
        let Posted { message, head } = posted?;
        self.session.lock().carrier = Some(head);
        Some(Line::Whole(message))
    }
}

impl Lines for Inbox {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Line>>> {
        if let Poll::Ready(posted) = self.messages.poll_recv(context) {
            return Poll::Ready(Ok(self.line(posted)));
        }
        std::task::ready!(self.session.poll_end(context));
        // Whoever posts from now on learns that it is too late. What was taken in before is read.
        self.messages.close();
        self.messages.poll_recv(context).map(|posted| Ok(self.line(posted)))
    }
}

/// Serves a session, and knows whether anything runs in it.
pub(super) struct Attended {
    serve: Arc<dyn Serve>,
    session: Arc<SseSession>,
    sessions: Arc<SseSessions>,
    /// How many requests may run at once in all sessions.
    limit: usize,
}

impl Attended {
    pub(super) fn new(
        serve: Arc<dyn Serve>,
        session: Arc<SseSession>,
        sessions: Arc<SseSessions>,
        limit: usize,
    ) -> Attended {
        Attended { serve, session, sessions, limit }
    }

    fn begin(&self, handler: BoxFuture<'static, Outcome>) -> Reply {
        let limit = self.limit;
        let Ok(permit) = Permit::take(&self.sessions.in_flight, limit) else {
            return Reply::Now(Err(RpcError::internal(format!(
                "too many requests in flight: the limit is {limit} (http_in_flight)"
            ))));
        };
        self.session.lock().running += 1;
        let (session, sessions) = (self.session.clone(), self.sessions.clone());
        let running = RunningSseHandler { session, sessions, finished: false, _permit: permit };
        Reply::Later(Box::pin(async move {
            let outcome = handler.await;
            running.finish();
            outcome
        }))
    }
}

impl Serve for Attended {
    fn serve(&self, mut request: Incoming, replies: Replies) -> Reply {
        // Whoever opened the stream may have another token by now.
        if let Some(head) = &self.session.lock().carrier {
            request.came = RequestOrigin::InSession(head.clone());
        }
        match self.serve.serve(request, replies) {
            Reply::Later(handler) => self.begin(handler),
            reply => reply,
        }
    }

    fn note(&self, note: Note) {
        self.serve.note(note);
    }

    fn answers(&self, fault: &Fault) -> bool {
        self.serve.answers(fault)
    }

    fn stray(&self, error: RpcError) {
        self.serve.stray(error);
    }

    fn batches(&self) -> bool {
        self.serve.batches()
    }

    fn connected(&self, peer: Peer) {
        let _ = self.session.peer.set(peer.clone());
        self.serve.connected(peer);
    }
}

/// A handler that has not ended.
struct RunningSseHandler {
    session: Arc<SseSession>,
    sessions: Arc<SseSessions>,
    finished: bool,
    _permit: Permit,
}

impl RunningSseHandler {
    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for RunningSseHandler {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.running -= 1;
        let phase = state.phase;
        let reader = if state.running == 0 { state.reader.take() } else { None };
        drop(state);
        if self.finished && phase == SessionPhase::Draining {
            self.sessions.finished.fetch_add(1, Relaxed);
        }
        reader.into_iter().for_each(Waker::wake);
    }
}
