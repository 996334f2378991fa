//! Owns the task of a stream: it polls the handler, keeps what is said in the store, and hands it
//! to whoever reads. Does not own the reader: that one may come and go.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use tokio::{
    task::coop::consume_budget,
    time::{Sleep, sleep},
};
use turnbuckle_types::{RequestId, RpcError, jsonrpc};

use super::{
    super::{
        super::server::drain::{Drain, Ended, Phase},
        events::{EventStore, StoredEvent, StreamKey},
    },
    live::{Busy, Entry},
    stream::{Said, Shape, Stream, Turn},
};
use crate::dispatch::{BoxFuture, Outcome, duplex::panicked, table::Serial};

/// For how long the stream of no request is kept for a client that went away.
const GRACE: Duration = Duration::from_secs(60);

/// For how long questions wait for a client that went away.
const UNHEARD: Duration = Duration::from_secs(5 * 60);

/// What runs one stream. It holds the session's entry for as long as it runs.
pub(super) struct Pump {
    pub(super) entry: Arc<Entry>,
    pub(super) stream: Arc<Stream>,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) drain: Arc<Drain>,
    /// When the session's id is worth nothing any more.
    pub(super) expires: SystemTime,
    pub(super) _busy: Busy,
}

/// The handler of a request.
pub(super) struct Handler {
    pub(super) id: RequestId,
    pub(super) serial: Serial,
    pub(super) future: BoxFuture<'static, Outcome>,
}

/// Why a pump has come to its end.
enum End {
    /// There is nothing left to do.
    Over,
    /// The stream was stopped: nobody is to hear of it again.
    Stopped,
    /// The session has expired: nobody can come back.
    Expired,
    /// The endpoint ends.
    Shutdown,
}

impl Handler {
    /// Polls the handler; a panic is an error of its own.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        match catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(context))) {
            Ok(polled) => polled,
            Err(payload) => Poll::Ready(Err(panicked(&self.id, payload.as_ref()))),
        }
    }
}

impl Pump {
    /// Runs the stream of requests until all have ended. Dropping the future drops the handler.
    pub(super) async fn run(self, handler: Option<Handler>) {
        let end = tokio::select! {
            biased;
            () = self.stream.stopped() => End::Stopped,
            () = self.drain.reached(Phase::Over) => End::Shutdown,
            () = self.expired() => End::Expired,
            () = self.drive(handler) => End::Over,
        };
        // The handler is gone: it was dropped with the future that polled it.
        match end {
            End::Over => {}
            End::Stopped => self.forget().await,
            End::Expired => {
                self.dismiss();
                self.flush().await;
                self.forget().await;
            }
            End::Shutdown => {
                self.farewell();
                self.flush().await;
            }
        }
    }

    /// Runs the stream of no request until it is replaced, or nobody has read it for a while.
    pub(super) async fn run_aside(self) {
        let end = tokio::select! {
            biased;
            () = self.stream.stopped() => End::Stopped,
            () = self.drain.reached(Phase::Draining) => End::Shutdown,
            () = self.expired() => End::Expired,
            () = self.listen() => End::Over,
        };
        match end {
            End::Over => {}
            // Another took its place, which may be the same stream taken up again.
            End::Stopped => {}
            End::Expired => self.forget().await,
            End::Shutdown => self.drain.count(Ended::Farewell),
        }
    }

    async fn expired(&self) {
        sleep(self.expires.duration_since(SystemTime::now()).unwrap_or_default()).await;
    }

    async fn drive(&self, mut handler: Option<Handler>) {
        let mut unheard: Option<Pin<Box<Sleep>>> = None;
        loop {
            // A handler that speaks without end to nobody never waits. It can be stopped here.
            consume_budget().await;
            let turn = poll_fn(|context| {
                if let Some(running) = &mut handler
                    && let Poll::Ready(outcome) = running.poll(context)
                {
                    self.finish(running, outcome);
                    handler = None;
                }
                let turn = self.stream.poll_turn(context);
                if !self.stream.asks_nobody() {
                    unheard = None;
                } else if turn.is_pending()
                    && unheard
                        .get_or_insert_with(|| Box::pin(sleep(UNHEARD)))
                        .as_mut()
                        .poll(context)
                        .is_ready()
                {
                    // This wakes who asked.
                    unheard = None;
                    self.entry.desk.give_up(&self.stream);
                }
                turn
            })
            .await;
            if turn == Turn::Over {
                return;
            }
            self.flush().await;
        }
    }

    async fn listen(&self) {
        let mut grace: Option<Pin<Box<Sleep>>> = None;
        loop {
            let turn = poll_fn(|context| match self.stream.poll_turn(context) {
                Poll::Ready(Turn::Alone) => {
                    let grace = grace.get_or_insert_with(|| Box::pin(sleep(GRACE)));
                    grace.as_mut().poll(context).map(|()| Turn::Over)
                }
                Poll::Ready(turn) => Poll::Ready(turn),
                Poll::Pending => {
                    grace = None;
                    Poll::Pending
                }
            })
            .await;
            if turn == Turn::Over {
                return;
            }
            self.flush().await;
        }
    }

    fn finish(&self, handler: &Handler, outcome: Outcome) {
        // A cancel that came first has stopped the stream as well.
        if self.entry.desk.finish(&handler.id, handler.serial) {
            self.drain.count(Ended::Finished);
            self.entry.desk.reply(&self.stream, handler.serial, frame(&handler.id, outcome));
        }
    }

    /// Keeps everything that was said, and hands it on.
    async fn flush(&self) {
        while let Some((number, said)) = self.stream.take() {
            consume_budget().await;
            let Said::Frame { text, .. } = said else {
                self.stream.let_go();
                continue;
            };
            if self.stream.shape() != Shape::Json {
                let event = StoredEvent { number, data: text.clone() };
                if let Err(error) = self.events.append(&self.key(), event).await {
                    tracing::warn!(%error, "an event could not be kept; it can't be resumed");
                }
            }
            self.stream.deliver(number, &text);
        }
    }

    /// Answers whatever still runs that this is the end.
    fn farewell(&self) {
        for (id, serial) in self.stream.members() {
            let Some(flight) = self.entry.desk.take(&id, serial) else { continue };
            flight.stop();
            self.drain.count(Ended::Cancelled);
            let error = RpcError::internal("server is shutting down");
            self.entry.desk.reply(&self.stream, serial, frame(&id, Err(error)));
        }
    }

    /// Stops whatever still runs, without an answer.
    fn dismiss(&self) {
        for (id, serial) in self.stream.members() {
            if let Some(flight) = self.entry.desk.take(&id, serial) {
                flight.stop();
            }
            self.stream.leave(serial);
        }
    }

    async fn forget(&self) {
        if self.stream.shape() != Shape::Json
            && let Err(error) = self.events.forget(&self.key()).await
        {
            tracing::warn!(%error, "the events of a cancelled request could not be forgotten");
        }
    }

    fn key(&self) -> StreamKey {
        StreamKey { session: self.entry.id, stream: self.stream.number.value() }
    }
}

/// However it ends, by a panic of the store too: nobody waits for it any more.
impl Drop for Pump {
    fn drop(&mut self) {
        for (id, serial) in self.stream.members() {
            self.entry.desk.finish(&id, serial);
        }
        self.entry.desk.end(&self.stream);
        self.entry.remove(&self.stream);
    }
}

/// One request of a batch: it has a task of its own, and a pump that it shares.
pub(super) async fn run_member(
    mut handler: Handler,
    entry: Arc<Entry>,
    stream: Arc<Stream>,
    drain: Arc<Drain>,
) {
    let outcome = poll_fn(|context| handler.poll(context)).await;
    if entry.desk.finish(&handler.id, handler.serial) {
        drain.count(Ended::Finished);
        entry.desk.reply(&stream, handler.serial, frame(&handler.id, outcome));
    }
}

/// The text of an answer.
pub(super) fn frame(id: &RequestId, outcome: Outcome) -> Vec<u8> {
    let mut text = Vec::new();
    match outcome {
        Ok(result) => jsonrpc::write_result(&mut text, id, result.as_str().as_bytes()),
        Err(error) => jsonrpc::write_error(&mut text, Some(id), &error),
    }
    text
}
