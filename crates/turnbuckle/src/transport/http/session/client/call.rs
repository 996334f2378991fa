//! Owns what a call, its POST and whoever reaches it from elsewhere share: what came for it, how
//! far its request is, and whether anyone still waits.
//! Does not own the POST, nor the table that finds it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::Duration,
};

use http::{HeaderName, HeaderValue};
use turnbuckle_types::Raw;

use super::{ClientSession, lock};
use crate::{
    error::Result,
    rpc::{Abandon, ExchangeEvent, Mark, Note},
    transport::http::client::progress::SendProgress,
};

/// One call of the legacy era.
pub(crate) struct CallState {
    /// Headers of this one call: they go with its cancel too.
    pub(super) extra: Vec<(HeaderName, HeaderValue)>,
    /// What the caller is shown again with what is asked on its stream.
    pub(super) mark: Option<Mark>,
    abandon: Abandon,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    notes: VecDeque<Note>,
    /// Whether one of them gave way since this was last asked.
    lost: bool,
    /// An end that came on another stream than its own.
    end: Option<Result<Raw>>,
    waker: Option<Waker>,
    request: RequestStage,
    /// Under which it was sent, and is to be cancelled.
    session: Option<ClientSession>,
    /// Nobody waits any more.
    given_up: bool,
    /// The params of a cancel that the user worded.
    said: Option<String>,
}

/// How far its request is.
#[derive(Default)]
enum RequestStage {
    /// Nothing is on its way that the server could run.
    #[default]
    Unsent,
    Sending(Arc<SendProgress>),
    /// The head of the answer is here.
    Answered,
}

/// What the server may have of a call that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerSaw {
    Nothing,
    Perhaps,
}

impl CallState {
    pub(super) fn new(
        extra: Vec<(HeaderName, HeaderValue)>,
        abandon: Abandon,
        mark: Option<Mark>,
    ) -> CallState {
        CallState { extra, mark, abandon, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether its end, if nobody words it, is told to the server.
    pub(super) fn is_cancelled(&self) -> bool {
        self.abandon == Abandon::Signal
    }

    /// Remembers the session that it is sent under.
    pub(super) fn under(&self, session: &ClientSession) {
        self.lock().session = Some(session.clone());
    }

    pub(super) fn session(&self) -> Option<ClientSession> {
        self.lock().session.clone()
    }

    /// Words the cancel that giving this call up will post.
    pub(crate) fn says(&self, params: &str) {
        self.lock().said = Some(params.to_owned());
    }

    pub(super) fn said(&self) -> Option<String> {
        self.lock().said.take()
    }

    /// What came next, notifications first. Whoever asks is woken by what comes later from
    /// elsewhere.
    pub(super) fn take(&self, context: &mut Context<'_>) -> Option<ExchangeEvent> {
        let mut state = self.lock();
        if let Some(note) = state.notes.pop_front() {
            return Some(ExchangeEvent::Note(note));
        }
        if let Some(end) = state.end.take() {
            return Some(ExchangeEvent::Done(end));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        None
    }

    /// A notification on the call's own stream. Wait for [`drained`](CallState::drained) then.
    pub(super) fn own_note(&self, note: Note) {
        let mut state = self.lock();
        if !state.given_up {
            state.notes.push_back(note);
        }
    }

    /// Waits until what came on its own stream was taken. It needs no waker: whoever takes the
    /// last one goes on with the POST, which waits here.
    pub(super) async fn drained(&self) {
        std::future::poll_fn(|_| {
            if self.lock().notes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// A notification from another stream; past `limit` the oldest gives way. Tells whether one
    /// did.
    pub(super) fn note(&self, note: Note, limit: usize) -> bool {
        let mut state = self.lock();
        if state.given_up {
            return false;
        }
        let full = state.notes.len() >= limit;
        if full {
            state.notes.pop_front();
            state.lost = true;
        }
        state.notes.push_back(note);
        wake(state);
        full
    }

    /// Whether a notification gave way since this was last asked.
    pub(super) fn take_lost(&self) -> bool {
        std::mem::take(&mut self.lock().lost)
    }

    /// The end, from another stream.
    pub(super) fn end(&self, end: Result<Raw>) {
        let mut state = self.lock();
        if !state.given_up {
            state.end.get_or_insert(end);
        }
        wake(state);
    }

    /// Notes that its request is about to be sent. The body reports to the result.
    pub(crate) fn sending(&self) -> Arc<SendProgress> {
        let progress = Arc::new(SendProgress::default());
        self.lock().request = RequestStage::Sending(progress.clone());
        progress
    }

    pub(super) fn answered(&self) {
        self.lock().request = RequestStage::Answered;
    }

    /// The server refused it without running it.
    pub(super) fn unsent(&self) {
        self.lock().request = RequestStage::Unsent;
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.lock().request, RequestStage::Answered)
    }

    pub(super) fn progress(&self) -> Option<Arc<SendProgress>> {
        match &self.lock().request {
            RequestStage::Sending(progress) => Some(progress.clone()),
            _ => None,
        }
    }

    /// How much of this lead its request still needs; nothing once it is answered. `None` if it has
    /// not left.
    pub(super) fn lead_left(&self, lead: Duration) -> Option<Duration> {
        match &self.lock().request {
            RequestStage::Unsent => None,
            RequestStage::Sending(progress) => progress.age().map(|age| lead.saturating_sub(age)),
            RequestStage::Answered => Some(Duration::ZERO),
        }
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.lock().given_up
    }

    /// Nobody waits any more. A request of which nobody has sent a byte is taken back.
    pub(super) fn give_up(&self) -> ServerSaw {
        let mut state = self.lock();
        state.given_up = true;
        let notes = std::mem::take(&mut state.notes);
        let seen = match &state.request {
            RequestStage::Unsent => ServerSaw::Nothing,
            RequestStage::Sending(progress) if progress.withdraw() => ServerSaw::Nothing,
            RequestStage::Sending(_) | RequestStage::Answered => ServerSaw::Perhaps,
        };
        drop(state);
        drop(notes);
        seen
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallState {
        CallState::new(Vec::new(), Abandon::Signal, None)
    }

    fn taken(call: &CallState) -> Option<ExchangeEvent> {
        call.take(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_comes_from_elsewhere_is_bounded_and_in_order() {
        let call = call();
        for (name, full) in [("a", false), ("b", false), ("c", true)] {
            assert_eq!(call.note(Note::new(name, None), 2), full);
        }
        call.end(Ok(Raw::null()));
        for name in ["b", "c"] {
            assert!(
                matches!(taken(&call), Some(ExchangeEvent::Note(note)) if &*note.method == name)
            );
        }
        assert!(matches!(taken(&call), Some(ExchangeEvent::Done(Ok(_)))));
        assert!(taken(&call).is_none());
    }

    #[test]
    fn a_request_is_taken_back_while_nobody_has_begun_to_send_it() {
        let seen = |prepare: &dyn Fn(&CallState)| {
            let call = call();
            prepare(&call);
            call.give_up()
        };
        assert_eq!(seen(&|_| ()), ServerSaw::Nothing);
        assert_eq!(seen(&|call| drop(call.sending())), ServerSaw::Nothing);
        assert_eq!(seen(&|call| assert!(call.sending().begin())), ServerSaw::Perhaps);
        assert_eq!(seen(&CallState::answered), ServerSaw::Perhaps);
    }

    #[test]
    fn nothing_is_kept_for_a_call_that_was_given_up() {
        let call = call();
        call.own_note(Note::new("a", None));
        call.give_up();
        call.own_note(Note::new("b", None));
        call.note(Note::new("c", None), 1);
        call.end(Ok(Raw::null()));
        assert!(taken(&call).is_none());
    }
}
