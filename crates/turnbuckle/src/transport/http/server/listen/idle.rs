//! A window of silence, for keep-alive comments and for bodies that pause.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use crate::transport::http::timing::{LONGEST_WINDOW, SHORTEST_WINDOW};
use tokio::time::{Instant, Sleep, sleep_until};

/// A window of silence. The timer is created with the first wait, and moved only when it has run
/// out.
pub(crate) struct Idle {
    window: Duration,
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Idle {
    pub(crate) fn new(window: Duration) -> Idle {
        Idle { window: window.clamp(SHORTEST_WINDOW, LONGEST_WINDOW), since: None, timer: None }
    }

    /// Starts the window again.
    pub(crate) fn touch(&mut self) {
        if self.timer.is_some() {
            self.since = Some(Instant::now());
        }
    }

    /// Returns `Ready` each time that the whole window has passed in silence.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let window = self.window;
        let timer = self.timer.get_or_insert_with(|| {
            let now = Instant::now();
            self.since = Some(now);
            Box::pin(sleep_until(now + window))
        });
        while timer.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let end = self.since.map_or(now, |since| since + window);
            if end <= now {
                self.since = Some(now);
                timer.as_mut().reset(now + window);
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn the_window_begins_with_the_first_wait_and_again_with_each_event() {
        let mut idle = Idle::new(WINDOW);
        let start = Instant::now();
        poll_fn(|context| idle.poll(context)).await;
        assert_eq!(start.elapsed(), WINDOW);
        tokio::time::advance(Duration::from_secs(10)).await;
        idle.touch();
        poll_fn(|context| idle.poll(context)).await;
        assert_eq!(start.elapsed(), WINDOW * 2 + Duration::from_secs(10));
        poll_fn(|context| idle.poll(context)).await;
        assert_eq!(start.elapsed(), WINDOW * 3 + Duration::from_secs(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_of_no_length_and_one_without_end_are_windows_too() {
        let mut idle = Idle::new(Duration::ZERO);
        let start = Instant::now();
        poll_fn(|context| idle.poll(context)).await;
        assert!(start.elapsed() >= SHORTEST_WINDOW);
        let mut idle = Idle::new(Duration::MAX);
        let first = poll_fn(|context| Poll::Ready(idle.poll(context))).await;
        assert!(first.is_pending());
    }
}
