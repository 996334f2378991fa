//! How far the body of a request has come: whether its first byte was taken, and whether it can
//! still be withdrawn.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// Shared by a body on its way and the call that may have to withdraw it.
#[derive(Debug, Default)]
pub(crate) struct SendProgress {
    sent: Mutex<SentState>,
    finished: Notify,
}

#[derive(Debug, Default)]
struct SentState {
    stage: UploadStage,
    /// The call was dropped, whether or not the request could be withdrawn.
    unwanted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum UploadStage {
    #[default]
    New,
    Begun,
    /// The last byte was taken at this time.
    Finished(Instant),
    Withdrawn,
}

impl SendProgress {
    fn lock(&self) -> MutexGuard<'_, SentState> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the first byte is being taken. Returns `false` if the request was withdrawn and
    /// must not be sent.
    pub(crate) fn begin(&self) -> bool {
        let stage = &mut self.lock().stage;
        if *stage == UploadStage::New {
            *stage = UploadStage::Begun;
        }
        *stage != UploadStage::Withdrawn
    }

    /// Notes that the last byte was taken.
    pub(crate) fn finish(&self) {
        let mut sent = self.lock();
        if sent.stage == UploadStage::Begun {
            sent.stage = UploadStage::Finished(Instant::now());
            drop(sent);
            self.finished.notify_waiters();
        }
    }

    /// Withdraws the request if no byte of it was taken. It is never sent then.
    pub(crate) fn withdraw(&self) -> bool {
        let mut sent = self.lock();
        sent.unwanted = true;
        let withdrawn = sent.stage == UploadStage::New;
        if withdrawn {
            sent.stage = UploadStage::Withdrawn;
        }
        withdrawn
    }

    /// Lets a request be sent again that the server refused without running it. Returns `false` if
    /// its call was dropped.
    #[cfg(feature = "auth")]
    pub(crate) fn anew(&self) -> bool {
        let mut sent = self.lock();
        if sent.stage != UploadStage::Withdrawn {
            sent.stage = UploadStage::New;
        }
        !sent.unwanted
    }

    /// Returns whether the call was dropped.
    #[cfg(feature = "auth")]
    pub(crate) fn is_unwanted(&self) -> bool {
        self.lock().unwanted
    }

    /// Returns how long ago the last byte was taken.
    pub(crate) fn age(&self) -> Option<Duration> {
        match self.lock().stage {
            UploadStage::Finished(at) => Some(at.elapsed()),
            _ => None,
        }
    }

    /// Waits until the last byte was taken.
    pub(crate) async fn finished(&self) {
        loop {
            let finished = self.finished.notified();
            if self.age().is_some() {
                return;
            }
            finished.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_not_withdrawn_and_the_reverse() {
        let progress = SendProgress::default();
        assert!(progress.begin() && progress.begin());
        assert!(!progress.withdraw());
        progress.finish();
        assert!(!progress.withdraw());
        let withdrawn = SendProgress::default();
        assert!(withdrawn.withdraw() && !withdrawn.withdraw());
        assert!(!withdrawn.begin());
    }

    #[cfg(feature = "auth")]
    #[test]
    fn what_was_refused_can_be_taken_back_again() {
        let progress = SendProgress::default();
        assert!(progress.begin());
        progress.finish();
        assert!(progress.anew());
        assert!(progress.withdraw() && !progress.begin());

        let late = SendProgress::default();
        assert!(late.begin() && !late.withdraw());
        assert!(!late.anew());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_told_to_those_who_wait_and_those_who_come_later() {
        let progress = std::sync::Arc::new(SendProgress::default());
        let waiting = tokio::spawn({
            let progress = progress.clone();
            async move { progress.finished().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        progress.begin();
        progress.finish();
        waiting.await.unwrap();
        progress.finished().await;
    }

    #[tokio::test(start_paused = true)]
    async fn its_age_counts_from_the_last_byte() {
        let progress = SendProgress::default();
        assert!(progress.begin() && progress.age().is_none());
        progress.finish();
        tokio::time::advance(Duration::from_millis(7)).await;
        assert_eq!(progress.age(), Some(Duration::from_millis(7)));
    }
}
