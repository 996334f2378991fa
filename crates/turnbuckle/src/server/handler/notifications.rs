//! Owns what a handler says before its answer: progress and log messages.
//! Does not own the queue they go to.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use serde::Serialize;
use turnbuckle_types::{LogLevel, LogMessage, Progress, Raw, RequestId, write_at};

use super::context::Ctx;

/// A number that progress is counted in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount(f64);

macro_rules! amounts {
    ($($number:ty),*) => {$(
        impl From<$number> for Amount {
            fn from(value: $number) -> Amount {
                Amount(value as f64)
            }
        }
    )*};
}

amounts!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

/// A progress report, sent when awaited.
#[must_use = "a report is sent when it is awaited"]
#[derive(Debug)]
#[doc(alias = "notifications/progress")]
#[doc(alias = "ProgressNotification")]
pub struct ProgressUpdate<'a> {
    ctx: &'a Ctx,
    done: f64,
    total: Option<f64>,
    message: Option<String>,
    stage: NotificationStage,
}

#[derive(Debug, PartialEq)]
enum NotificationStage {
    New,
    /// It rises: it waits for its place in the queue.
    Waiting,
}

impl<'a> ProgressUpdate<'a> {
    pub(crate) fn new(ctx: &'a Ctx, done: Amount) -> ProgressUpdate<'a> {
        ProgressUpdate {
            ctx,
            done: done.0,
            total: None,
            message: None,
            stage: NotificationStage::New,
        }
    }

    /// How much there is in all.
    pub fn total(mut self, total: impl Into<Amount>) -> ProgressUpdate<'a> {
        self.total = Some(total.into().0);
        self
    }

    /// What is being done, for people.
    pub fn message(mut self, message: impl Into<String>) -> ProgressUpdate<'a> {
        self.message = Some(message.into());
        self
    }

    /// 2026-07-28 basic/patterns/progress: the value MUST increase with each notification.
    fn rises(&self) -> bool {
        let mut said = self.ctx.said();
        if !self.done.is_finite() || said.progress.is_some_and(|before| self.done <= before) {
            tracing::debug!(progress = self.done, "progress that does not rise is dropped");
            return false;
        }
        said.progress = Some(self.done);
        true
    }

    fn note(&self, token: &RequestId) -> Progress {
        let mut note = Progress::new(token.clone(), self.done);
        note.total = self.total.filter(|total| total.is_finite());
        note.message.clone_from(&self.message);
        note
    }
}

impl Future for ProgressUpdate<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let inner = &self.ctx.0;
        let Some(token) = &inner.token else { return Poll::Ready(()) };
        if self.stage == NotificationStage::New {
            if !self.rises() {
                return Poll::Ready(());
            }
            self.stage = NotificationStage::Waiting;
        }
        let mut render = |out: &mut Vec<u8>| write_at(&self.note(token), inner.revision, out);
        inner.replies.poll_note(context, "notifications/progress", &mut render)
    }
}

pub(crate) async fn log(ctx: &Ctx, level: LogLevel, logger: Option<&str>, data: &impl Serialize) {
    let inner = &ctx.0;
    if inner.log_level.is_none_or(|least| level < least) {
        return;
    }
    let Ok(data) = Raw::new(data) else {
        return tracing::warn!("log data that can't be encoded is dropped");
    };
    let mut message = LogMessage::new(level, data);
    message.logger = logger.map(str::to_owned);
    let mut render = |out: &mut Vec<u8>| write_at(&message, inner.revision, out);
    poll_fn(|context| inner.replies.poll_note(context, "notifications/message", &mut render)).await;
}
