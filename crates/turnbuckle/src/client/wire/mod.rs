//! Owns the log of what travels on a client's wires: each message, once, in both directions, with its
//! secrets masked. Does not own the wires: it stands around them and changes nothing.

mod line;
mod tell;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use turnbuckle_types::{
    Raw, RequestId, Revision, RpcError,
    jsonrpc::{Fault, Text},
};

pub use line::{WireDirection, WireKind, WireLine};
pub use tell::WireLog;

use super::{ClientBuilder, redact};
use crate::{
    dispatch::{
        Abandon, BoxFuture, Counters, Event, Exchange, Incoming, Note, Outcome, Outgoing, Peer,
        Reply, Serve, Transport, duplex::Replies, exchange::Drive,
    },
    error::{Closed, Error},
};

impl ClientBuilder {
    /// Shows every message that travels between this client and its server, on every wire and in
    /// both directions, with its secrets masked: see [`WireLog`].
    pub fn wire_log(mut self, log: WireLog) -> ClientBuilder {
        self.wire_log = Some(log);
        self
    }

    /// What this client sends with, and whoever looks on.
    pub(super) fn told(&self, transport: Arc<dyn Transport>) -> Arc<dyn Transport> {
        match &self.wire_log {
            Some(log) => Told::around(transport, log.clone()),
            None => transport,
        }
    }

    /// What this client answers with, and whoever looks on.
    pub(super) fn heard(&self, answers: Arc<dyn Serve>) -> Arc<dyn Serve> {
        match &self.wire_log {
            Some(log) => Arc::new(Heard { answers, log: log.clone() }),
            None => answers,
        }
    }
}

/// A wire that is looked at.
struct Told {
    wire: Arc<dyn Transport>,
    log: WireLog,
    /// Whether its end was told.
    over: Arc<AtomicBool>,
}

impl Told {
    fn around(wire: Arc<dyn Transport>, log: WireLog) -> Arc<dyn Transport> {
        log.tell(|| WireLine::new(WireDirection::Sent, WireKind::Opened));
        Arc::new(Told { wire, log, over: Arc::default() })
    }

    fn closing(&self) {
        if !self.over.swap(true, Relaxed) {
            self.log.tell(|| WireLine::new(WireDirection::Sent, WireKind::Closed));
        }
    }
}

impl Transport for Told {
    fn open(&self, request: Outgoing) -> Exchange {
        if !self.log.is_wanted() {
            return self.wire.open(request);
        }
        let line = WireLine::new(WireDirection::Sent, WireKind::Request)
            .of(&request.method)
            .json(&request.params, &self.log);
        Exchange::new(Watched {
            method: request.method.clone().into_owned(),
            abandon: request.abandon,
            log: self.log.clone(),
            stage: Stage::New(Box::new(line)),
            id: request.id.clone(),
            reason: None,
            exchange: self.wire.open(request),
        })
    }

    fn notify(&self, note: Note) -> BoxFuture<'_, ()> {
        self.log.tell(|| {
            let line = WireLine::new(WireDirection::Sent, WireKind::Notification);
            line.of(&note.method).json(note.params.text(), &self.log)
        });
        self.wire.notify(note)
    }

    fn agreed(&self, revision: Revision) {
        self.wire.agreed(revision);
    }

    fn established(&self) -> BoxFuture<'_, ()> {
        self.wire.established()
    }

    fn fall_back(&self) -> Option<BoxFuture<'_, Result<Arc<dyn Transport>, Error>>> {
        let other = self.wire.fall_back()?;
        let log = self.log.clone();
        Some(Box::pin(async move { Ok(Told::around(other.await?, log)) }))
    }

    fn ended(&self) -> BoxFuture<'static, Closed> {
        let (ended, log, over) = (self.wire.ended(), self.log.clone(), self.over.clone());
        Box::pin(async move {
            let why = ended.await;
            if !over.swap(true, Relaxed) {
                log.tell(|| {
                    let line = WireLine::new(WireDirection::Received, WireKind::Lost);
                    line.plain(&why.to_string(), &log)
                });
            }
            why
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing();
        self.wire.close()
    }

    fn close_now(&self) {
        self.closing();
        self.wire.close_now();
    }

    fn junk(&self) -> Option<String> {
        self.wire.junk()
    }

    fn counters(&self) -> Counters {
        self.wire.counters()
    }
}

/// A request in flight that is looked at.
struct Watched {
    method: String,
    abandon: Abandon,
    log: WireLog,
    stage: Stage,
    id: Option<RequestId>,
    reason: Option<String>,
    exchange: Exchange,
}

enum Stage {
    /// Not sent yet; what will be told when it is.
    New(Box<WireLine>),
    Sent,
    Over,
}

impl Watched {
    fn line(&self, direction: WireDirection, kind: WireKind) -> WireLine {
        WireLine::new(direction, kind).of(&self.method).with_id(self.id.as_ref())
    }

    fn ended(&self, result: &Result<Raw, Error>) -> WireLine {
        let received = |kind| self.line(WireDirection::Received, kind);
        match result {
            Ok(raw) => received(WireKind::Result).json(raw.as_str(), &self.log),
            Err(error) => match error.as_rpc() {
                Some(rpc) => received(WireKind::Error).json(&written(rpc), &self.log),
                None => received(WireKind::Failed).plain(&error.to_string(), &self.log),
            },
        }
    }
}

impl Drive for Watched {
    fn poll_event(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Event> {
        let this = self.get_mut();
        let polled = match std::mem::replace(&mut this.stage, Stage::Sent) {
            Stage::New(line) => {
                // What this very step brings is told after what brought it.
                let held = this.log.hold();
                let polled = this.exchange.poll_event(context);
                this.id = this.exchange.id().cloned().or(this.id.take());
                held.first(line.with_id(this.id.as_ref()));
                polled
            }
            before => {
                this.stage = before;
                this.exchange.poll_event(context)
            }
        };
        if let Poll::Ready(Event::Done(result)) = &polled {
            this.stage = Stage::Over;
            this.log.tell(|| this.ended(result));
        }
        polled
    }

    fn reason(mut self: Pin<&mut Self>, reason: String) {
        self.reason = Some(reason.clone());
        self.exchange.reason(reason);
    }

    fn silence(mut self: Pin<&mut Self>) {
        self.stage = Stage::Over;
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

/// The exchange goes with it: that is the cancel.
impl Drop for Watched {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Sent) && self.abandon == Abandon::Signal {
            let reason = self.reason.as_deref().unwrap_or("caller cancelled");
            self.log.tell(|| {
                self.line(WireDirection::Sent, WireKind::Cancelled).plain(reason, &self.log)
            });
        }
    }
}

/// Answers that are looked at.
struct Heard {
    answers: Arc<dyn Serve>,
    log: WireLog,
}

impl Heard {
    fn noted(&self, note: &Note) {
        self.log.tell(|| {
            let line = WireLine::new(WireDirection::Received, WireKind::Notification);
            line.of(&note.method).json(note.params.text(), &self.log)
        });
    }
}

impl Serve for Heard {
    fn serve(&self, request: Incoming, replies: Replies) -> Reply {
        if !self.log.is_wanted() {
            return self.answers.serve(request, replies);
        }
        let answer = Answer {
            id: request.id.clone(),
            method: request.method.clone(),
            log: self.log.clone(),
        };
        self.log.tell(|| {
            let line = answer.line(WireDirection::Received, WireKind::Request);
            line.json(request.params.text(), &self.log)
        });
        match self.answers.serve(request, replies) {
            Reply::Now(outcome) => {
                answer.told(&outcome);
                Reply::Now(outcome)
            }
            Reply::Later(answering) => Reply::Later(Box::pin(async move {
                let mut unanswered = Unanswered(Some(answer));
                let outcome = answering.await;
                if let Some(answer) = unanswered.0.take() {
                    answer.told(&outcome);
                }
                outcome
            })),
            Reply::Never => Reply::Never,
        }
    }

    fn note(&self, note: Note) {
        self.noted(&note);
        self.answers.note(note);
    }

    #[cfg(feature = "http")]
    fn note_within(&self, note: Note, request: &RequestId) {
        self.noted(&note);
        self.answers.note_within(note, request);
    }

    #[cfg(feature = "http")]
    fn renewed(&self) -> BoxFuture<'static, ()> {
        self.answers.renewed()
    }

    fn gone(&self, why: &Closed) {
        self.answers.gone(why);
    }

    fn answers(&self, fault: &Fault) -> bool {
        self.answers.answers(fault)
    }

    fn stray(&self, error: RpcError) {
        self.log.tell(|| {
            let line = WireLine::new(WireDirection::Received, WireKind::Error);
            line.json(&written(&error), &self.log)
        });
        self.answers.stray(error);
    }

    fn junk(&self, line: &str) {
        self.answers.junk(line);
    }

    fn batches(&self) -> bool {
        self.answers.batches()
    }

    fn connected(&self, peer: Peer) {
        self.answers.connected(peer);
    }
}

/// An answer of this side.
struct Answer {
    id: RequestId,
    method: Text,
    log: WireLog,
}

impl Answer {
    fn line(&self, direction: WireDirection, kind: WireKind) -> WireLine {
        WireLine::new(direction, kind).of(&self.method).with_id(Some(&self.id))
    }

    fn told(&self, outcome: &Outcome) {
        let sent = |kind| self.line(WireDirection::Sent, kind);
        self.log.tell(|| match outcome {
            Ok(raw) => sent(WireKind::Result).json(raw.as_str(), &self.log),
            Err(error) => sent(WireKind::Error).json(&written(error), &self.log),
        });
    }
}

/// A question that the server takes back if this is dropped with an answer in it.
struct Unanswered(Option<Answer>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(answer) = &self.0 {
            answer.log.tell(|| answer.line(WireDirection::Received, WireKind::Cancelled));
        }
    }
}

fn written(error: &RpcError) -> String {
    serde_json::to_string(error).unwrap_or_default()
}

#[cfg(test)]
mod tests;
