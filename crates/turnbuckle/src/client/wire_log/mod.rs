//! The wire log: reports each message of a client's connections once, in both directions, with its
//! secrets redacted. [`LoggedTransport`] reports what the client sends, and `Answers` what it receives
//! beside that.

mod log;
pub(crate) mod redact;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use turnbuckle_types::{RequestId, Revision};

pub use log::{WireDirection, WireKind, WireLine, WireLog};

use self::{
    WireDirection::{Received, Sent},
    log::Content,
};
use super::ClientBuilder;
use crate::{
    error::{Closed, Error},
    rpc::{
        Abandon, BoxFuture, Counters, Exchange, ExchangeEvent, Incoming, Note, Outcome, Outgoing,
        Reply, Transport, exchange::Drive,
    },
};

impl ClientBuilder {
    /// Reports every message between this client and its server, see [`WireLog`].
    pub fn wire_log(mut self, log: WireLog) -> ClientBuilder {
        self.wire_log = Some(log);
        self
    }

    pub(super) fn log_transport(&self, transport: Arc<dyn Transport>) -> Arc<dyn Transport> {
        match &self.wire_log {
            Some(log) => LoggedTransport::open(transport, log.clone()),
            None => transport,
        }
    }
}

struct LoggedTransport {
    transport: Arc<dyn Transport>,
    log: WireLog,
    /// Whether the end was reported.
    is_over: Arc<AtomicBool>,
}

impl LoggedTransport {
    fn open(transport: Arc<dyn Transport>, log: WireLog) -> Arc<dyn Transport> {
        log.write(Sent, WireKind::Opened, None, None, Content::Empty);
        Arc::new(LoggedTransport { transport, log, is_over: Arc::default() })
    }

    fn report_close(&self) {
        if !self.is_over.swap(true, Relaxed) {
            self.log.write(Sent, WireKind::Closed, None, None, Content::Empty);
        }
    }
}

impl Transport for LoggedTransport {
    fn open(&self, request: Outgoing) -> Exchange {
        if !self.log.is_enabled() {
            return self.transport.open(request);
        }
        let method = request.method.clone().into_owned();
        Exchange::new(LoggedExchange {
            request: LoggedRequest { log: self.log.clone(), id: request.id.clone(), method },
            abandon: request.abandon,
            stage: WireStage::New { params: request.params.clone() },
            reason: None,
            exchange: self.transport.open(request),
        })
    }

    fn notify(&self, note: Note) -> BoxFuture<'_, ()> {
        self.log.write_note(Sent, &note);
        self.transport.notify(note)
    }

    fn agreed(&self, revision: Revision) {
        self.transport.agreed(revision);
    }

    fn established(&self) -> BoxFuture<'_, ()> {
        self.transport.established()
    }

    fn fall_back(&self) -> Option<BoxFuture<'_, Result<Arc<dyn Transport>, Error>>> {
        let (other, log) = (self.transport.fall_back()?, self.log.clone());
        Some(Box::pin(async move { Ok(LoggedTransport::open(other.await?, log)) }))
    }

    fn ended(&self) -> BoxFuture<'static, Closed> {
        let (ended, log) = (self.transport.ended(), self.log.clone());
        let is_over = self.is_over.clone();
        Box::pin(async move {
            let why = ended.await;
            if !is_over.swap(true, Relaxed) {
                let reason = why.to_string();
                log.write(Received, WireKind::Lost, None, None, Content::Plain(&reason));
            }
            why
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.report_close();
        self.transport.close()
    }

    fn close_now(&self) {
        self.report_close();
        self.transport.close_now();
    }

    fn junk(&self) -> Option<String> {
        self.transport.junk()
    }

    fn counters(&self) -> Counters {
        self.transport.counters()
    }
}

/// A request, of either side, and the log that it is reported to.
struct LoggedRequest {
    log: WireLog,
    id: Option<RequestId>,
    method: String,
}

impl LoggedRequest {
    fn write(&self, direction: WireDirection, kind: WireKind, content: Content<'_>) {
        self.log.write(direction, kind, self.id.as_ref(), Some(&self.method), content);
    }
}

struct LoggedExchange {
    request: LoggedRequest,
    abandon: Abandon,
    stage: WireStage,
    reason: Option<String>,
    exchange: Exchange,
}

enum WireStage {
    /// The request is reported when it is sent, because it has no id before.
    New {
        params: String,
    },
    Sent,
    Over,
}

impl Drive for LoggedExchange {
    fn poll_event(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExchangeEvent> {
        let this = self.get_mut();
        let request = &mut this.request;
        let polled = if let WireStage::New { params } = &mut this.stage {
            let params = std::mem::take(params);
            this.stage = WireStage::Sent;
            // In process the server answers within this poll: that is reported after the request.
            let log = request.log.clone();
            let held = log.hold();
            let polled = this.exchange.poll_event(context);
            request.id = this.exchange.id().cloned().or(request.id.take());
            held.release(request.id.as_ref(), &request.method, &params);
            polled
        } else {
            this.exchange.poll_event(context)
        };
        if let Poll::Ready(ExchangeEvent::Done(result)) = &polled {
            this.stage = WireStage::Over;
            match result.as_ref().map_err(|error| (error, error.as_rpc())) {
                Ok(raw) => request.write(Received, WireKind::Result, Content::Json(raw.as_str())),
                Err((_, Some(rpc))) => {
                    request.write(Received, WireKind::Error, Content::Error(rpc));
                }
                Err((error, None)) => {
                    let reason = error.to_string();
                    request.write(Received, WireKind::Failed, Content::Plain(&reason));
                }
            }
        }
        polled
    }

    fn reason(mut self: Pin<&mut Self>, reason: String) {
        self.reason = Some(reason.clone());
        self.exchange.reason(reason);
    }

    fn silence(mut self: Pin<&mut Self>) {
        self.stage = WireStage::Over;
        self.exchange.silence();
    }

    fn arrived(&self) -> Option<u64> {
        self.exchange.arrived()
    }

    fn take_lost(&self) -> bool {
        self.exchange.take_lost()
    }

    fn id(&self) -> Option<&RequestId> {
        self.exchange.id()
    }
}

/// Dropping the exchange cancels the request.
impl Drop for LoggedExchange {
    fn drop(&mut self) {
        if matches!(self.stage, WireStage::Sent) && self.abandon == Abandon::Signal {
            let reason = self.reason.as_deref().unwrap_or("caller cancelled");
            self.request.write(Sent, WireKind::Cancelled, Content::Plain(reason));
        }
    }
}

/// The reply to a request of the server.
pub(super) struct LoggedReply {
    request: LoggedRequest,
    /// Whether it is dropped because the server has cancelled the request.
    is_open: bool,
}

impl LoggedReply {
    /// Reports a request of the server. Returns `None` if the log is off.
    pub(super) fn open(log: Option<&WireLog>, request: &Incoming) -> Option<LoggedReply> {
        let log = log.filter(|log| log.is_enabled())?.clone();
        let (id, method) = (Some(request.id.clone()), request.method.to_string());
        let logged = LoggedRequest { log, id, method };
        logged.write(Received, WireKind::Request, Content::Json(request.params.text()));
        Some(LoggedReply { request: logged, is_open: false })
    }

    /// Reports the reply when it is there.
    pub(super) fn log(mut self, reply: Reply) -> Reply {
        match reply {
            Reply::Now(outcome) => {
                self.report(&outcome);
                Reply::Now(outcome)
            }
            Reply::Later(reply) => Reply::Later(Box::pin(async move {
                self.is_open = true;
                let outcome = reply.await;
                self.report(&outcome);
                outcome
            })),
            Reply::Never => Reply::Never,
        }
    }

    fn report(&mut self, outcome: &Outcome) {
        self.is_open = false;
        match outcome {
            Ok(raw) => self.request.write(Sent, WireKind::Result, Content::Json(raw.as_str())),
            Err(error) => self.request.write(Sent, WireKind::Error, Content::Error(error)),
        }
    }
}

impl Drop for LoggedReply {
    fn drop(&mut self) {
        if self.is_open {
            self.request.write(Received, WireKind::Cancelled, Content::Empty);
        }
    }
}
