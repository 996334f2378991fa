//! Owns how far the body of a request has come: whether anyone has taken its first byte, and
//! whether it can still be withdrawn. Does not own the body.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// Shared by a body on its way and whoever may have to take it back.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    state: AtomicU8,
    moved: Notify,
    /// When the last byte was taken.
    since: Mutex<Option<Instant>>,
    /// Nobody waits for an answer, though it was too late to take the request back.
    unwanted: AtomicBool,
}

const NEW: u8 = 0;
const BEGUN: u8 = 1;
const FINISHED: u8 = 2;
const WITHDRAWN: u8 = 3;

impl Progress {
    /// The first byte is being taken. `false`: it was withdrawn before, and must not be sent.
    pub(crate) fn begin(&self) -> bool {
        match self.step(NEW, BEGUN) {
            Ok(_) => true,
            Err(now) => now != WITHDRAWN,
        }
    }

    /// The last byte was taken.
    pub(crate) fn finish(&self) {
        // First: who sees that it is finished looks here.
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if self.step(BEGUN, FINISHED).is_ok() {
            self.moved.notify_waiters();
        }
    }

    /// Takes the request back if nobody has begun to send it. From then on nobody will.
    pub(crate) fn withdraw(&self) -> bool {
        // In this order: whoever starts it anew meanwhile sees the one or is seen by the other.
        self.unwanted.store(true, Ordering::SeqCst);
        self.step(NEW, WITHDRAWN).is_ok()
    }

    /// The server refused it without running it, and it may be sent again. `false`: nobody waits for
    /// that.
    #[cfg(feature = "auth")]
    pub(crate) fn anew(&self) -> bool {
        if self.step(FINISHED, NEW).is_err() {
            let _ = self.step(BEGUN, NEW);
        }
        !self.unwanted.load(Ordering::SeqCst)
    }

    /// Whether nobody waits for an answer.
    #[cfg(feature = "auth")]
    pub(crate) fn is_unwanted(&self) -> bool {
        self.unwanted.load(Ordering::SeqCst)
    }

    /// How long ago the last byte was taken.
    pub(crate) fn age(&self) -> Option<Duration> {
        if self.state.load(Ordering::Acquire) != FINISHED {
            return None;
        }
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.map(|since| since.elapsed())
    }

    /// Waits until the last byte was taken.
    pub(crate) async fn finished(&self) {
        loop {
            let moved = self.moved.notified();
            if self.state.load(Ordering::Acquire) == FINISHED {
                return;
            }
            moved.await;
        }
    }

    fn step(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_not_withdrawn_and_the_reverse() {
        let progress = Progress::default();
        assert!(progress.begin() && progress.begin());
        assert!(!progress.withdraw());
        progress.finish();
        assert!(!progress.withdraw());
        let withdrawn = Progress::default();
        assert!(withdrawn.withdraw() && !withdrawn.withdraw());
        assert!(!withdrawn.begin());
    }

    #[cfg(feature = "auth")]
    #[test]
    fn what_was_refused_can_be_taken_back_again() {
        let progress = Progress::default();
        assert!(progress.begin());
        progress.finish();
        assert!(progress.anew());
        assert!(progress.withdraw() && !progress.begin());

        let late = Progress::default();
        assert!(late.begin() && !late.withdraw());
        assert!(!late.anew());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_told_to_those_who_wait_and_those_who_come_later() {
        let progress = std::sync::Arc::new(Progress::default());
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
        let progress = Progress::default();
        assert!(progress.begin() && progress.age().is_none());
        progress.finish();
        tokio::time::advance(Duration::from_millis(7)).await;
        assert_eq!(progress.age(), Some(Duration::from_millis(7)));
    }
}
