//! Owns the two loops that move bytes. Does not own what the bytes do.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{ConnectionPhase, ConnectionShared, Duplex, FLUSH};
use crate::{
    error::{Closed, ErrorKind},
    limits::Limits,
    rpc::{
        BoxFuture, Line, Lines, Peer, Serve,
        connection::{inbound::Received, write_queue::Batch},
        spawn_boxed,
    },
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    task::JoinHandle,
};

/// After this many handlers were started or stopped, the reader lets them run or go before it
/// reads on.
const BURST: usize = 64;
/// How long running handlers have to finish once the peer has stopped sending.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(250);

/// The time for which a peer may read nothing while messages wait. A server that runs one request at
/// a time does not read while it runs one, so that this is longer than over HTTP.
const WRITE_STALL: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// How long a failed write leaves the word to the reader.
const VERDICT: std::time::Duration = std::time::Duration::from_millis(500);

/// Asked once, when the peer stopped sending: why the connection ended.
pub(crate) type Obituary = BoxFuture<'static, Closed>;

/// The tasks of one connection.
pub(crate) struct ConnectionTasks {
    pub(crate) transport: Arc<Duplex>,
    /// Ends when the connection has ended.
    pub(crate) reader: JoinHandle<()>,
}

/// Starts a connection on a running runtime.
pub(crate) fn start<L, W>(
    lines: L,
    write: W,
    serve: Arc<dyn Serve>,
    limits: Limits,
    obituary: Option<Obituary>,
) -> ConnectionTasks
where
    L: Lines,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let shared = Arc::new(ConnectionShared::new(serve.clone(), limits));
    let transport = Arc::new(Duplex { shared: shared.clone() });
    let weak = Arc::downgrade(&transport);
    serve.connected(Peer::new(weak));
    let writer = spawn_boxed(Box::pin(write_loop(shared.clone(), write)));
    // If this task is aborted, even before it has begun, everyone is still told.
    let guard = CloseConnectionOnDrop { shared: shared.clone(), writer: writer.abort_handle() };
    let reader = spawn_boxed(Box::pin(async move {
        let _guard = guard;
        read_loop(shared, lines, obituary).await;
    }));
    ConnectionTasks { transport, reader }
}

struct CloseConnectionOnDrop {
    shared: Arc<ConnectionShared>,
    writer: tokio::task::AbortHandle,
}

impl Drop for CloseConnectionOnDrop {
    fn drop(&mut self) {
        self.shared.close(Closed::new("the connection ended"));
        // A writer that a peer has wedged would hold its descriptor for ever.
        self.writer.abort();
    }
}

async fn read_loop(
    shared: Arc<ConnectionShared>,
    mut lines: impl Lines,
    obituary: Option<Obituary>,
) {
    let (mut burst, mut stopped) = (0, false);
    let failure = loop {
        let Some(line) = next_or_closed(&shared, &mut lines).await else {
            return finish_writing(&shared).await;
        };
        match line {
            Ok(Some(Line::Whole(line))) => {
                let read = shared.read(line);
                // Handlers that were given up are gone before anything else is begun.
                if stopped && !read.is_cancel() {
                    stopped = false;
                    tokio::task::yield_now().await;
                }
                match shared.apply(read) {
                    Received::Spawned => burst += 1,
                    Received::Stopped => (stopped, burst) = (true, burst + 1),
                    // Whoever keeps up loses nothing: it gets its turn before more is read.
                    Received::Crowded => burst = BURST,
                    Received::Applied => {}
                }
            }
            Ok(Some(Line::TooLong(began))) => shared.too_long(&began),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
        if burst >= BURST {
            burst = 0;
            tokio::task::yield_now().await;
        }
    };
    let closed = match (failure, obituary) {
        (_, Some(obituary)) => obituary.await,
        (None, None) => Closed::new("the peer closed the connection"),
        (Some(error), None) => {
            Closed::of(ErrorKind::Closed, format!("reading from the peer failed: {error}"), vec![])
        }
    };
    wind_down(&shared, closed).await;
}

/// The next line; `None` when this side closed the connection meanwhile.
async fn next_or_closed(
    shared: &ConnectionShared,
    lines: &mut impl Lines,
) -> Option<std::io::Result<Option<Line>>> {
    std::future::poll_fn(|context| {
        if shared.lock().closed().is_some() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(line) = lines.poll_next(context) {
            return Poll::Ready(Some(line));
        }
        let mut state = shared.lock();
        if state.closed().is_some() {
            return Poll::Ready(None);
        }
        match &mut state.reader {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    })
    .await
}

/// The peer sends no more. It may still read: what runs gets a moment to finish, the rest
/// is told that this side is leaving.
async fn wind_down(shared: &Arc<ConnectionShared>, closed: Closed) {
    shared.end_sent(&closed);
    let _ = tokio::time::timeout(LAST_WORDS, shared.idle()).await;
    shared.flush_and_close(closed, "server is shutting down");
    finish_writing(shared).await;
}

/// Lets the writer finish, then closes for good.
async fn finish_writing(shared: &Arc<ConnectionShared>) {
    let _ = tokio::time::timeout(FLUSH, crate::rpc::connection::outbound::closed(shared)).await;
    shared.close(Closed::new("the connection was closed on this side"));
}

impl ConnectionShared {
    /// Tells everyone who waits for the peer that no answer can come.
    fn end_sent(&self, closed: &Closed) {
        let mut state = self.lock();
        state.deaf = Some(closed.clone());
        let slots = state.table.close_sent();
        drop(state);
        for slot in slots {
            slot.end(Err(closed.error(crate::error::Executed::Maybe)), None, u64::MAX);
        }
    }

    /// Resolves when no handler runs, or nobody could be told of its answer any more.
    async fn idle(self: &Arc<Self>) {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.table.running_len() == 0 || state.closed().is_some() {
                return Poll::Ready(());
            }
            state.idle = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

pub(super) async fn write_loop<W: AsyncWrite + Unpin>(shared: Arc<ConnectionShared>, mut write: W) {
    let mut batch = Batch::default();
    loop {
        WaitForFrames(&shared).await;
        // Whatever is ready to be said now goes out together: whoever else is about to
        // speak on this connection does so first. A lone frame waits for nobody.
        if shared.lock().table.in_flight() > 1 {
            tokio::task::yield_now().await;
        }
        match take(&shared, &mut batch) {
            Taken::Frames => {}
            Taken::Nothing => continue,
            Taken::End => break,
        }
        if let Err(error) = write_batch(&shared, &mut write, &mut batch).await {
            // A peer that is gone is known better by the reader, which learns how it ended.
            let _ =
                tokio::time::timeout(VERDICT, crate::rpc::connection::outbound::closed(&shared))
                    .await;
            let message = format!("writing to the peer failed: {error}");
            return shared.close(Closed::of(ErrorKind::Closed, message, Vec::new()));
        }
    }
    let _ = write.shutdown().await;
    let closed = shared.lock().closed().cloned();
    shared.close(closed.unwrap_or_else(|| Closed::new("the connection was closed on this side")));
}

/// Writes a batch. What has not been begun when the peer stops reading goes back, so that
/// it can still be taken back. Fails if the peer reads nothing for [`WRITE_STALL`].
async fn write_batch<W: AsyncWrite + Unpin>(
    shared: &ConnectionShared,
    write: &mut W,
    batch: &mut Batch,
) -> std::io::Result<()> {
    let mut written = 0;
    let mut stall: Option<Pin<Box<tokio::time::Sleep>>> = None;
    std::future::poll_fn(|context| {
        loop {
            let rest = batch.rest(written);
            if rest.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match Pin::new(&mut *write).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Ok(count)) => {
                    written += count;
                    stall = None;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    shared.lock().outbox.put_back(batch, written);
                    let stall =
                        stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_STALL)));
                    return stall.as_mut().poll(context).map(|()| Err(stalled()));
                }
            }
        }
    })
    .await?;
    write.flush().await
}

#[cold]
fn stalled() -> std::io::Error {
    let message = format!("it has read nothing for {} s", WRITE_STALL.as_secs());
    std::io::Error::new(std::io::ErrorKind::TimedOut, message)
}

enum Taken {
    Frames,
    /// What had been there was taken back.
    Nothing,
    /// Nothing waits and nothing will.
    End,
}

fn take(shared: &ConnectionShared, batch: &mut Batch) -> Taken {
    let mut state = shared.lock();
    if matches!(state.phase, ConnectionPhase::Closed(_)) {
        return Taken::End;
    }
    if state.outbox.is_empty() {
        return if state.closed().is_some() { Taken::End } else { Taken::Nothing };
    }
    state.outbox.take(batch);
    state.nameless = 0;
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_iter().for_each(std::task::Waker::wake);
    Taken::Frames
}

/// Resolves when there is something to write, or never will be.
struct WaitForFrames<'a>(&'a ConnectionShared);

impl Future for WaitForFrames<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if !state.outbox.is_empty() || state.closed().is_some() {
            return Poll::Ready(());
        }
        match &mut state.writer {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}
