//! Owns a call in flight: its exchange, its clocks, its progress, and what it waits for meanwhile.
//! Does not own the loop of its rounds: `run` does.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use turnbuckle_types::{LogMessage, Method, Progress};

use super::{
    super::{
        Inner,
        answer::{Answering, Clocks},
        clock::Deadlines,
        input::{self, Asked},
        link::Link,
    },
    OnProgress, Why,
    events::{Outlet, Said},
};
use crate::{
    dispatch::{Event, Exchange, Note},
    error::{Error, Executed, Result},
};

#[cfg(feature = "http")]
use super::Passes;

/// A call in flight.
pub(crate) struct Running {
    pub(super) client: Arc<Inner>,
    pub(crate) link: Arc<Link>,
    pub(super) method: Cow<'static, str>,
    pub(crate) exchange: Exchange,
    pub(crate) deadlines: Deadlines,
    pub(super) on_progress: Option<OnProgress>,
    pub(super) outlet: Option<Arc<Outlet>>,
    pub(super) why: Option<Arc<Why>>,
    /// What is left of the time for answers.
    pub(super) answer_time: Option<Duration>,
    /// Stands still while this side answers what is asked for this call.
    pub(super) clock: Option<Arc<Answering>>,
}

impl Running {
    /// The next event, or the end of the time given.
    pub(crate) async fn next(&mut self) -> Result<Event> {
        loop {
            let paused = self.clocks().paused_by_now();
            let Some(deadline) = self.deadlines.next(paused) else {
                return Ok(self.exchange.next().await);
            };
            tokio::select! {
                biased;
                event = self.exchange.next() => {
                    if matches!(event, Event::Note(_)) {
                        self.noted(deadline)?;
                    }
                    return Ok(event);
                }
                () = tokio::time::sleep_until(deadline) => {}
            }
            // While this side answers a question the clocks stand still.
            let clocks = Clocks { all: &self.link.answering, own: self.clock.as_deref() };
            tokio::select! {
                biased;
                event = self.exchange.next() => {
                    self.sign();
                    return Ok(event);
                }
                () = clocks.over() => {}
            }
            self.check(Instant::now())?;
        }
    }

    /// Something was said before the end.
    fn noted(&mut self, deadline: Instant) -> Result<()> {
        let now = Instant::now();
        // Progress is no excuse for a call whose time is up.
        if now >= deadline {
            self.check(now)?;
        }
        self.deadlines.sign(now, self.clocks().paused(now));
        Ok(())
    }

    fn clocks(&self) -> Clocks<'_> {
        Clocks { all: &self.link.answering, own: self.clock.as_deref() }
    }

    /// What is left of the time in all; `None` where that has no end.
    pub(super) fn total_left(&self) -> Option<Duration> {
        let now = Instant::now();
        self.deadlines.total_left(now, self.clocks().paused(now))
    }

    /// Has the questions answered, while this call's clocks stand still: the params of the next round.
    pub(super) async fn answered(&mut self, asked: Asked, params: &str) -> Result<String> {
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
        self.check(Instant::now())?;
        Ok(params)
    }

    /// Lists the server's tools anew, in the time that this call has left.
    #[cfg(feature = "http")]
    pub(super) async fn relist(&mut self) -> Result<()> {
        // Layers that let one call through at a time have let this one through.
        let listing = super::super::Client(self.client.clone()).tools().passing(Passes::Nothing);
        let listing = listing.cache(super::super::CacheMode::Refresh).all();
        self.in_time(listing).await.map(drop)
    }

    /// Waits for a connection that is of use, in the time that this call has left.
    pub(super) async fn reconnected(&mut self, since: Since<'_>) -> Result<()> {
        let (client, than) = (self.client.clone(), self.link.generation);
        let supervisor = &client.supervisor;
        let executed = if since.may_have_run() { Executed::Maybe } else { Executed::No };
        let link = match since {
            Since::Begin => self.in_time(supervisor.present()).await,
            Since::Lost(error) => self.in_time(supervisor.newer_because(than, error)).await,
        };
        self.link = link.map_err(|error| error.with_executed(executed))?;
        self.sign();
        Ok(())
    }

    /// Does something else for this call, in the time that it has left.
    async fn in_time<U>(&mut self, doing: impl Future<Output = Result<U>>) -> Result<U> {
        let mut doing = std::pin::pin!(doing);
        loop {
            let deadline = self.deadlines.next(self.clocks().paused_by_now());
            let Some(deadline) = deadline else { return doing.await };
            if let Ok(done) = tokio::time::timeout_at(deadline, doing.as_mut()).await {
                return done;
            }
            tokio::select! {
                biased;
                done = doing.as_mut() => return done,
                () = self.clocks().over() => {}
            }
            self.check(Instant::now())?;
        }
    }

    /// Any event is a sign of life. The end needs none, unless the call goes on after it.
    pub(super) fn sign(&mut self) {
        let now = Instant::now();
        self.deadlines.sign(now, self.clocks().paused(now));
    }

    /// Ends the call if its time is up; the drop then tells the server why.
    fn check(&mut self, now: Instant) -> Result<()> {
        match self.deadlines.ran_out(now, self.clocks().paused(now)) {
            Some(_) => Err(self.ran_out(now)),
            None => Ok(()),
        }
    }

    /// Whether the time that this call has is over.
    #[cfg(feature = "http")]
    pub(super) fn has_run_out(&self) -> bool {
        let now = Instant::now();
        self.deadlines.ran_out(now, self.clocks().paused(now)).is_some()
    }

    fn ran_out(&mut self, now: Instant) -> Error {
        let ran_out = self.deadlines.ran_out(now, self.clocks().paused(now));
        let reason = ran_out.map_or_else(|| "timed out".to_owned(), |clock| clock.reason());
        let error = Error::timeout(&self.method, &reason);
        self.exchange.reason(reason);
        error
    }

    /// Hands on what the server said about this call. Whoever takes the events decides how long
    /// that lasts, so that the server is not blamed for it.
    pub(super) async fn told(&mut self, note: Box<Note>) {
        if let Some(outlet) = self.outlet.clone() {
            if self.exchange.take_lost() {
                outlet.say(Said::Missed).await;
            }
            if let Some(said) = said(&note) {
                outlet.say(said).await;
            }
            self.sign();
        }
        self.progress(&note);
    }

    /// Tells who waits for progress alone.
    pub(super) fn progress(&mut self, note: &Note) {
        let Some(callback) = self.on_progress.as_ref().filter(|_| is_progress(note)) else {
            return;
        };
        let Some(Said::Progress(progress)) = said(note) else { return };
        // Poisoned by another attempt at this call, it is not called again either.
        let told = || callback.lock().map(|mut callback| callback(progress)).is_ok();
        match catch_unwind(AssertUnwindSafe(told)) {
            Ok(true) => return,
            Ok(false) => {}
            Err(_) => {
                tracing::error!(method = %self.method, "a progress callback panicked and is not called again");
            }
        }
        self.on_progress = None;
    }
}

/// Whoever gave it up and could not tell the exchange has left word.
impl Drop for Running {
    fn drop(&mut self) {
        if let Some(reason) = self.why.as_ref().and_then(|why| why.take()) {
            self.exchange.reason(reason);
        }
    }
}

fn is_progress(note: &Note) -> bool {
    &*note.method == Method::Progress.as_str()
}

/// What a notification says, where a call has a place for it.
fn said(note: &Note) -> Option<Said> {
    let text = note.params.text();
    let said = if is_progress(note) {
        serde_json::from_str::<Progress>(text).map(Said::Progress)
    } else if &*note.method == Method::LogMessage.as_str() {
        serde_json::from_str::<LogMessage>(text).map(Said::Log)
    } else {
        return None;
    };
    said.inspect_err(
        |error| tracing::debug!(%error, "a {} that can't be read is dropped", note.method),
    )
    .ok()
}

/// Since when a call has no connection.
#[derive(Clone, Copy)]
pub(super) enum Since<'a> {
    /// There was none when it was made.
    Begin,
    /// It was lost, and this is how the call on it ended.
    Lost(&'a Error),
}

impl Since<'_> {
    /// Not what waiting ends with, but what was sent before decides what may have run.
    pub(super) fn may_have_run(self) -> bool {
        matches!(self, Since::Lost(error) if error.maybe_executed())
    }
}
