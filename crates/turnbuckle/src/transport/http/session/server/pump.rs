//! The task of a stream of a session: it polls the handler, keeps messages in the event store, and
//! then writes them for the reader. The handler goes on while the client is away.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::SystemTime,
};

use super::{
    super::{
        super::{
            server::{
                response_stream::{Format, ResponseStream, Unstored},
                running::{Done, Polled, RunningHttpRequest},
            },
            timing::{GET_STREAM_GRACE, UNATTENDED, UNATTENDED_OF_SESSION, UNREAD_QUESTION},
        },
        events::{EventStore, StoredEvent, StreamKey},
    },
    in_flight::SessionInFlight,
    live::{ActiveSession, PumpPermit},
};
use crate::{
    rpc::{BoxFuture, Outcome, Permit, memory::MemoryBudget, pending::Serial},
    transport::http::server::shutdown::{Drain, RequestEnding},
};
use tokio::{
    task::{JoinSet, coop::consume_budget},
    time::{Sleep, sleep},
};
use turnbuckle_types::{Raw, RequestId, RpcError, jsonrpc};

/// The task of one stream. It keeps the session in use.
pub(super) struct Pump {
    pub(super) session: Arc<ActiveSession>,
    pub(super) stream: Arc<ResponseStream>,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) drain: Arc<Drain>,
    /// When the session expires.
    pub(super) expires: SystemTime,
    /// How many calls of all sessions may be unattended.
    pub(super) most_unattended: usize,
    /// The memory of all messages of the server.
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) permit: PumpPermit,
}

/// A call that no client attends: none reads its stream.
struct Unattended {
    until: Pin<Box<Sleep>>,
    _permits: [Permit; 2],
}

/// Why a pump has ended.
enum End {
    /// All requests have their response.
    Finished,
    /// The stream was stopped: by a cancel, a DELETE, or another GET.
    Stopped,
    /// The session has expired: the client can't come back.
    Expired,
}

impl Pump {
    /// Runs the stream until its handler has ended. Dropping the future drops the handler.
    pub(super) async fn run(self, handler: Option<RunningHttpRequest>) {
        let end = tokio::select! {
            biased;
            () = poll_fn(|context| self.stream.poll_stopped(context)) => End::Stopped,
            () = self.expired() => End::Expired,
            () = self.drive(handler) => End::Finished,
        };
        // The handler was dropped with the future that polled it.
        match end {
            End::Finished => {}
            // The GET that took its place may have resumed it.
            End::Stopped if self.stream.number().is_of_get() => {}
            End::Stopped => self.forget().await,
            End::Expired => {
                for (id, serial) in self.stream.requests() {
                    self.session.in_flight.finish(&id, serial);
                    self.stream.leave(serial);
                }
                self.flush().await;
                self.forget().await;
            }
        }
    }

    async fn expired(&self) {
        sleep(self.expires.duration_since(SystemTime::now()).unwrap_or_default()).await;
    }

    async fn drive(&self, handler: Option<RunningHttpRequest>) {
        if let Some(handler) = handler {
            let done = self.poll_to_end(handler).await;
            self.finish(&done);
        }
        self.flush().await;
    }

    async fn poll_to_end(&self, mut handler: RunningHttpRequest) -> Done {
        let mut unread: Option<Pin<Box<Sleep>>> = None;
        let mut unattended = None;
        loop {
            // A handler that always has messages, and no reader, would never yield.
            consume_budget().await;
            let polled = poll_fn(|context| {
                let polled = handler.poll(context);
                if polled.is_pending() {
                    self.poll_unread_question(&mut unread, context);
                    if self.poll_unattended(&mut unattended, context).is_ready() {
                        return Poll::Ready(None);
                    }
                }
                polled.map(Some)
            });
            let Some(polled) = polled.await else {
                let message = "the call was cancelled: its client did not come back";
                return Done::cancelled(RpcError::internal(message));
            };
            match polled {
                Polled::Done(done) => return done,
                Polled::Messages | Polled::Quiet => self.flush().await,
            }
        }
    }

    /// Returns `Ready` once no client has read the stream for a while, or at once if too many calls
    /// are unattended or messages use half of the memory: others need the permits and the memory.
    fn poll_unattended(
        &self,
        unattended: &mut Option<Unattended>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        if self.stream.has_reader() || self.stream.number().is_of_get() {
            *unattended = None;
            return Poll::Pending;
        }
        let waiting = match unattended {
            Some(waiting) => waiting,
            None if self.memory.is_half_used() => return Poll::Ready(()),
            None => {
                let (of_session, of_all) = (&self.session.unattended, self.permit.unattended());
                let session = Permit::take(of_session, UNATTENDED_OF_SESSION);
                let all = Permit::take(of_all, self.most_unattended);
                let (Ok(session), Ok(all)) = (session, all) else { return Poll::Ready(()) };
                let until = Box::pin(sleep(UNATTENDED));
                unattended.insert(Unattended { until, _permits: [session, all] })
            }
        };
        waiting.until.as_mut().poll(context)
    }

    /// Gives a question up once no client has read its stream for a while.
    fn poll_unread_question(&self, timer: &mut Option<Pin<Box<Sleep>>>, context: &mut Context<'_>) {
        let in_flight = &self.session.in_flight;
        if !in_flight.has_unread_question(&self.stream) {
            *timer = None;
            return;
        }
        let sleep = timer.get_or_insert_with(|| Box::pin(sleep(UNREAD_QUESTION)));
        if sleep.as_mut().poll(context).is_ready() {
            *timer = None;
            // This wakes the handler.
            in_flight.give_up(&self.stream);
        }
    }

    /// Responds to the requests that are left: the only one, or at shutdown those of a batch.
    fn finish(&self, done: &Done) {
        if done.ended == RequestEnding::Farewell {
            self.drain.count(done.ended);
        }
        for (id, serial) in self.stream.requests() {
            respond(&self.session.in_flight, &self.stream, &self.drain, (id, serial), done);
        }
    }

    /// Stores all messages, and then writes them for the reader.
    async fn flush(&self) {
        while let Some((number, message)) = self.stream.take_unstored() {
            consume_budget().await;
            let Unstored::Message { text, .. } = message else {
                self.stream.let_reader_go();
                continue;
            };
            let event = StoredEvent { number, data: text.clone() };
            if let Err(error) = self.events.append(&self.key(), event).await {
                tracing::warn!(%error, "an event can't be resumed: the event store failed");
            }
            self.stream.deliver(number, &text);
        }
    }

    async fn forget(&self) {
        if self.stream.format() != Format::Json
            && let Err(error) = self.events.forget(&self.key()).await
        {
            tracing::warn!(%error, "the events of a cancelled request could not be forgotten");
        }
    }

    fn key(&self) -> StreamKey {
        StreamKey { session: self.session.id, stream: self.stream.number().value() }
    }
}

/// Runs after a panic of the event store, too.
impl Drop for Pump {
    fn drop(&mut self) {
        let in_flight = &self.session.in_flight;
        for (id, serial) in self.stream.requests() {
            in_flight.finish(&id, serial);
        }
        in_flight.end(&self.stream);
        self.session.remove(&self.stream);
    }
}

/// The end of a handler of a batch.
pub(super) type BatchEnd = (RequestId, Serial, Outcome);

/// Creates the handler of a batch. It sends the response of each of its requests.
pub(super) fn batch_handler(
    mut handlers: JoinSet<BatchEnd>,
    in_flight: Arc<SessionInFlight>,
    stream: Arc<ResponseStream>,
    drain: Arc<Drain>,
) -> BoxFuture<'static, Outcome> {
    Box::pin(async move {
        while let Some(end) = handlers.join_next().await {
            // The task of a cancelled request was aborted.
            let Ok((id, serial, outcome)) = end else { continue };
            let done = Done::finished(outcome);
            respond(&in_flight, &stream, &drain, (id, serial), &done);
        }
        Ok(Raw::empty_object())
    })
}

/// Sends the response of a request, unless it was cancelled.
fn respond(
    in_flight: &SessionInFlight,
    stream: &Arc<ResponseStream>,
    drain: &Drain,
    (id, serial): (RequestId, Serial),
    done: &Done,
) {
    if in_flight.finish(&id, serial) {
        drain.count(done.ended);
        in_flight.reply(stream, serial, frame(&id, &done.outcome));
    }
}

/// Creates the handler of a GET stream: it ends once no client has read the stream for a while, or
/// with the shutdown of the server.
pub(super) fn get_handler(stream: Arc<ResponseStream>) -> BoxFuture<'static, Outcome> {
    let mut grace: Option<Pin<Box<Sleep>>> = None;
    Box::pin(poll_fn(move |context| {
        if stream.has_reader() {
            grace = None;
            return Poll::Pending;
        }
        let grace = grace.get_or_insert_with(|| Box::pin(sleep(GET_STREAM_GRACE)));
        grace.as_mut().poll(context).map(|()| Ok(Raw::empty_object()))
    }))
}

/// Writes a response.
pub(super) fn frame(id: &RequestId, outcome: &Outcome) -> Vec<u8> {
    let mut text = Vec::new();
    match outcome {
        Ok(result) => jsonrpc::write_result(&mut text, id, result.as_str().as_bytes()),
        Err(error) => jsonrpc::write_error(&mut text, Some(id), error),
    }
    text
}
