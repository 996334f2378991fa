//! Owns a fetch that several wait for: whoever of them is polled drives it, and when the last one
//! has gone it is dropped, which cancels it. Does not own what is fetched.

use std::{
    any::Any,
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError},
    task::{Context, Poll, Wake, Waker},
};

use tokio::sync::watch;
use turnbuckle_types::Raw;

use crate::{
    client::{answer::Answering, call::Why},
    dispatch::BoxFuture,
    error::{Error, Result},
};

/// A result of any type, shared by those who know which.
pub(super) type Value = Arc<dyn Any + Send + Sync>;

/// What came of a fetch.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) value: Value,
    pub(super) raw: Raw,
    pub(super) sharing: Sharing,
}

/// Who may use what was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Everyone who waits for it.
    Allowed,
    /// Who began the fetch, and nobody else: it was stale when it came.
    Leader,
}

/// A fetch in flight.
pub(super) struct Flight {
    state: Mutex<State>,
    waiting: Arc<Waiting>,
    /// Says when the server gives a sign of life.
    signs: watch::Sender<()>,
    /// Why who left last did.
    why: Arc<Why>,
    /// Stands still while what is asked for it is answered.
    clock: Arc<Answering>,
}

enum State {
    Running(BoxFuture<'static, Result<Fetched>>),
    Done(Result<Fetched>),
    /// A panic went through it.
    Broken,
}

/// Those who wait. All are woken each time: any of them may be one that is not polled again, and
/// then the others would wait for it.
#[derive(Default)]
struct Waiting(Mutex<Wakers>);

#[derive(Default)]
struct Wakers {
    next: u64,
    wakers: HashMap<u64, Waker>,
}

impl Flight {
    /// `fetch` is given what says signs of life, and what says why it is dropped.
    pub(super) fn new(
        fetch: impl FnOnce(watch::Sender<()>, Arc<Why>) -> BoxFuture<'static, Result<Fetched>>,
    ) -> Flight {
        let (signs, _) = watch::channel(());
        let why = Arc::<Why>::default();
        let state = Mutex::new(State::Running(fetch(signs.clone(), why.clone())));
        Flight { state, waiting: Arc::default(), signs, why, clock: Arc::default() }
    }

    /// Has those who wait look at this clock, too.
    pub(super) fn timed_by(mut self, clock: Arc<Answering>) -> Flight {
        self.clock = clock;
        self
    }

    pub(super) fn clock(&self) -> Arc<Answering> {
        self.clock.clone()
    }

    pub(super) fn signs(&self) -> watch::Receiver<()> {
        self.signs.subscribe()
    }

    /// Waits for its end. Dropping this leaves the fetch to the others.
    pub(super) fn outcome(self: &Arc<Flight>) -> Waiter {
        let mut wakers = self.waiting.lock();
        wakers.next += 1;
        Waiter { flight: self.clone(), number: wakers.next, why: None }
    }
}

/// One who waits for a fetch.
pub(super) struct Waiter {
    flight: Arc<Flight>,
    number: u64,
    /// Why it leaves, unless it was simply dropped.
    why: Option<String>,
}

impl Waiter {
    /// Leaves, and says why: the server is told so if nobody else waits.
    pub(super) fn leave(mut self, why: String) {
        self.why = Some(why);
    }
}

impl Future for Waiter {
    type Output = Result<Fetched>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let flight = &*self.flight;
        // Before the look at the state: whoever has it now wakes all that stand here by then.
        flight.waiting.lock().wakers.insert(self.number, context.waker().clone());
        let mut state = match flight.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Someone else drives it at this moment, or this is one of the things that it does.
            Err(TryLockError::WouldBlock) => return Poll::Pending,
        };
        if let State::Running(fetch) = &mut *state {
            let waker = Waker::from(flight.waiting.clone());
            let mut context = Context::from_waker(&waker);
            let polled = catch_unwind(AssertUnwindSafe(|| fetch.as_mut().poll(&mut context)));
            let ended = match polled {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(outcome)) => {
                    *state = State::Done(outcome);
                    None
                }
                Err(panic) => {
                    *state = State::Broken;
                    Some(panic)
                }
            };
            let outcome = state.outcome();
            // In this order: who comes between the two finds the state free.
            drop(state);
            flight.waiting.wake_all();
            return match ended {
                Some(panic) => resume_unwind(panic),
                None => Poll::Ready(outcome),
            };
        }
        Poll::Ready(state.outcome())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.flight.why.set(self.why.take());
        self.flight.waiting.lock().wakers.remove(&self.number);
        // It may have been woken, and not have come to drive the fetch any more.
        self.flight.waiting.wake_all();
    }
}

impl State {
    fn outcome(&self) -> Result<Fetched> {
        match self {
            State::Done(Ok(Fetched { value, raw, sharing })) => {
                Ok(Fetched { value: value.clone(), raw: raw.clone(), sharing: *sharing })
            }
            State::Done(Err(error)) => Err(error.again()),
            State::Running(_) | State::Broken => {
                Err(Error::protocol("a fetch that several callers waited for has panicked"))
            }
        }
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Wakers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        let wakers: Vec<Waker> = self.lock().wakers.drain().map(|(_, waker)| waker).collect();
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    /// Counts the fetches that were given up.
    struct GivenUp(Arc<AtomicUsize>);

    impl Drop for GivenUp {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn flight(gate: oneshot::Receiver<u32>, dropped: &Arc<AtomicUsize>) -> Arc<Flight> {
        let guard = GivenUp(dropped.clone());
        Arc::new(Flight::new(|_, _| {
            Box::pin(async move {
                let value = gate.await.map_err(|_| Error::refused("no gate"));
                std::mem::forget(guard);
                Ok(Fetched { value: Arc::new(value?), raw: Raw::null(), sharing: Sharing::Allowed })
            })
        }))
    }

    fn number(fetched: Result<Fetched>) -> u32 {
        *fetched.unwrap().value.downcast_ref::<u32>().unwrap()
    }

    #[tokio::test]
    async fn all_who_wait_are_given_what_came() {
        let (gate, opened) = oneshot::channel();
        let dropped = Arc::default();
        let flight = flight(opened, &dropped);
        let waiters: Vec<_> = (0..100).map(|_| tokio::spawn(flight.outcome())).collect();
        drop(flight);
        tokio::task::yield_now().await;
        gate.send(7).unwrap();
        for waiter in waiters {
            assert_eq!(number(waiter.await.unwrap()), 7);
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn who_leaves_hands_it_on_and_the_last_one_ends_it() {
        let (gate, opened) = oneshot::channel();
        let dropped = Arc::new(AtomicUsize::new(0));
        let flight = flight(opened, &dropped);
        let leader = tokio::spawn(flight.outcome());
        tokio::task::yield_now().await;
        let follower = tokio::spawn(flight.outcome());
        tokio::task::yield_now().await;
        leader.abort();
        assert!(leader.await.unwrap_err().is_cancelled());
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        gate.send(8).unwrap();
        assert_eq!(number(follower.await.unwrap()), 8);

        let (_gate, opened) = oneshot::channel();
        let flight = self::flight(opened, &dropped);
        let waiters = [flight.outcome(), flight.outcome()];
        drop(flight);
        let [one, other] = waiters;
        drop(one);
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        drop(other);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn who_is_woken_and_leaves_keeps_nobody_waiting() {
        let (gate, opened) = oneshot::channel();
        let flight = flight(opened, &Arc::default());
        let mut leader = flight.outcome();
        // Only this one has driven it.
        std::future::poll_fn(|context| {
            assert!(Pin::new(&mut leader).poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        let follower = tokio::spawn(flight.outcome());
        tokio::task::yield_now().await;
        gate.send(9).unwrap();
        drop(leader);
        assert_eq!(number(follower.await.unwrap()), 9);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn many_threads_drive_it_and_none_is_forgotten() {
        for round in 0..200 {
            let (gate, opened) = oneshot::channel();
            let flight = flight(opened, &Arc::default());
            let waiters: Vec<_> = (0..8).map(|_| tokio::spawn(flight.outcome())).collect();
            gate.send(round).unwrap();
            for waiter in waiters {
                assert_eq!(number(waiter.await.unwrap()), round);
            }
        }
    }

    #[tokio::test]
    async fn a_panic_reaches_who_drove_it_and_an_error_the_others() {
        let flight = Arc::new(Flight::new(|_, _| Box::pin(async { panic!("boom") })));
        let driver = tokio::spawn(flight.outcome());
        assert!(driver.await.unwrap_err().is_panic());
        assert!(flight.outcome().await.is_err());
    }
}
