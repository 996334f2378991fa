//! Owns how far the body of a request has come: whether anyone has taken its first byte, and
//! whether it can still be withdrawn. Does not own the body.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// Shared by a body on its way and whoever may have to take it back.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    state: AtomicU8,
    moved: Notify,
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
        if self.step(BEGUN, FINISHED).is_ok() {
            self.moved.notify_waiters();
        }
    }

    /// Takes the request back if nobody has begun to send it. From then on nobody will.
    pub(crate) fn withdraw(&self) -> bool {
        self.step(NEW, WITHDRAWN).is_ok()
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
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
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
}
