//! A call in flight: its exchange, its deadlines and its progress.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{super::Inner, events::CallNote, request::ProgressCallback};
use crate::{
    client::{
        call::{
            deadlines::{Deadlines, Expired},
            input::{
                ServerInputRequest, {self},
            },
        },
        connection::handle::ClientConnection,
        handlers::answer::{Answering, Clocks},
    },
    error::{Error, Executed, Result},
    rpc::{Exchange, ExchangeEvent, Note},
};
use tokio::{sync::mpsc, time::Instant};
use turnbuckle_types::{LogMessage, Method, Progress};

/// A call in flight.
pub(crate) struct InFlightCall {
    pub(super) client: Arc<Inner>,
    pub(crate) link: Arc<ClientConnection>,
    pub(super) method: Cow<'static, str>,
    pub(crate) exchange: Exchange,
    pub(crate) deadlines: Deadlines,
    pub(super) on_progress: Option<ProgressCallback>,
    pub(super) notes: Option<mpsc::Sender<CallNote>>,
    pub(super) cancel_reason: Option<Arc<OnceLock<String>>>,
    /// The rest of the time for answers.
    pub(super) answer_time: Option<Duration>,
    /// Stands still while this client answers a question of this call.
    pub(super) clock: Option<Arc<Answering>>,
}

impl InFlightCall {
    /// Returns the next event, or an error when a deadline passes.
    pub(crate) async fn next(&mut self) -> Result<ExchangeEvent> {
        let clocks = Clocks { all: &self.link.answering, own: self.clock.as_deref() };
        let event = self.deadlines.limit(clocks, pin!(self.exchange.next())).await;
        match event {
            Ok(event) => {
                if matches!(event, ExchangeEvent::Note(_)) {
                    // Progress does not extend a deadline that has passed.
                    self.check()?;
                    self.sign();
                }
                Ok(event)
            }
            Err(expired) => Err(self.time_out(expired)),
        }
    }

    fn clocks(&self) -> Clocks<'_> {
        Clocks { all: &self.link.answering, own: self.clock.as_deref() }
    }

    /// Returns the rest of the total time; `None` if it is not limited.
    pub(super) fn total_left(&self) -> Option<Duration> {
        let now = Instant::now();
        self.deadlines.total_left(now, self.clocks().paused(now))
    }

    /// Has the callbacks answer the questions, while this call's clocks stand still. Returns the
    /// params of the next round.
    pub(super) async fn answer(
        &mut self,
        asked: ServerInputRequest,
        params: &str,
    ) -> Result<String> {
        let revision = self.link.revision();
        let paused = self.clock.get_or_insert_default().pause();
        let callbacks = &self.client.settings().callbacks;
        let answered = asked.answered((&self.method, params), callbacks, revision);
        let params = match &mut self.answer_time {
            None => answered.await?,
            Some(left) => {
                let begun = Instant::now();
                let answered = tokio::time::timeout(*left, answered).await;
                *left = left.saturating_sub(begun.elapsed());
                answered.map_err(|_| input::unanswered_in_time(&self.method))??
            }
        };
        drop(paused);
        self.check()?;
        Ok(params)
    }

    /// Lists the server's tools again, within this call's deadlines.
    #[cfg(feature = "http")]
    pub(super) async fn relist(&mut self) -> Result<()> {
        // Middleware that admits one call at a time has admitted this one.
        let tools = super::super::Client(self.client.clone()).tools().skip_middleware();
        let tools = tools.cache(super::super::CacheMode::Refresh).all();
        self.limit(tools).await.map(drop)
    }

    /// Waits for a usable connection, within this call's deadlines.
    pub(super) async fn reconnect(&mut self, since: Since<'_>) -> Result<()> {
        let (client, than) = (self.client.clone(), self.link.generation);
        let supervisor = &client.supervisor;
        let executed = if since.may_have_run() { Executed::Maybe } else { Executed::No };
        let link = match since {
            Since::Begin => self.limit(supervisor.present()).await,
            Since::Lost(error) => self.limit(supervisor.newer_because(than, error)).await,
        };
        self.link = link.map_err(|error| error.with_executed(executed))?;
        self.sign();
        Ok(())
    }

    /// Runs another operation within this call's deadlines.
    async fn limit<U>(&mut self, operation: impl Future<Output = Result<U>>) -> Result<U> {
        let limited = self.deadlines.limit(self.clocks(), pin!(operation)).await;
        limited.unwrap_or_else(|expired| Err(self.time_out(expired)))
    }

    /// Restarts the idle clock.
    pub(super) fn sign(&mut self) {
        let now = Instant::now();
        self.deadlines.sign(now, self.clocks().paused(now));
    }

    /// Fails if a deadline has passed.
    fn check(&mut self) -> Result<()> {
        match self.expired() {
            Some(expired) => Err(self.time_out(expired)),
            None => Ok(()),
        }
    }

    /// Returns the deadline that has passed, if one has.
    pub(super) fn expired(&self) -> Option<Expired> {
        let now = Instant::now();
        self.deadlines.expired(now, self.clocks().paused(now))
    }

    /// Returns the error, and tells the server the reason when the exchange is dropped.
    fn time_out(&mut self, expired: Expired) -> Error {
        let reason = expired.reason();
        let error = Error::timeout(&self.method, &reason);
        self.exchange.reason(reason);
        error
    }

    /// Forwards a notification to the stream of events. The reader of that stream determines how
    /// long it takes, so that the idle clock restarts afterwards.
    pub(super) async fn forward(&mut self, note: Box<Note>) {
        if let Some(notes) = &self.notes {
            // It fails when the reader has gone.
            if self.exchange.take_lost() {
                let _ = notes.send(CallNote::Missed).await;
            }
            if let Some(note) = decode_note(&note) {
                let _ = notes.send(note).await;
            }
            self.sign();
        }
        self.report_progress(&note);
    }

    /// Calls the progress callback.
    pub(super) fn report_progress(&mut self, note: &Note) {
        let Some(callback) = self.on_progress.as_ref().filter(|_| is_progress(note)) else {
            return;
        };
        let Some(CallNote::Progress(progress)) = decode_note(note) else { return };
        // A poisoned lock means that it panicked in another attempt at this call.
        let report = || callback.lock().map(|mut callback| callback(progress)).is_ok();
        match catch_unwind(AssertUnwindSafe(report)) {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) => {
                tracing::error!(method = %self.method, "a progress callback panicked and is not called again");
            }
        }
        self.on_progress = None;
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        // The callers of a shared call can't reach the exchange.
        if let Some(reason) = self.cancel_reason.as_ref().and_then(|reason| reason.get()) {
            self.exchange.reason(reason.clone());
        }
    }
}

fn is_progress(note: &Note) -> bool {
    &*note.method == Method::Progress.as_str()
}

/// Decodes a notification that belongs to the events of a call.
fn decode_note(note: &Note) -> Option<CallNote> {
    let text = note.params.text();
    let said = if is_progress(note) {
        serde_json::from_str::<Progress>(text).map(CallNote::Progress)
    } else if &*note.method == Method::LogMessage.as_str() {
        serde_json::from_str::<LogMessage>(text).map(CallNote::Log)
    } else {
        return None;
    };
    said.inspect_err(|error| tracing::debug!(%error, "an invalid {} is dropped", note.method)).ok()
}

/// Since when a call has no connection.
#[derive(Clone, Copy)]
pub(super) enum Since<'a> {
    /// There was none when the call began.
    Begin,
    /// It was lost with this error.
    Lost(&'a Error),
}

impl Since<'_> {
    /// Returns `true` if the request that was sent before may have run.
    pub(super) fn may_have_run(self) -> bool {
        matches!(self, Since::Lost(error) if error.maybe_executed())
    }
}
