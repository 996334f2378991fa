//! The one thread that owns all children.
//!
//! Owns: every child from its start until it is reaped and its group is gone, and
//! the clock of the staged end. Does not own: the stages (`course`), signals (the
//! platform module), or a child's pipes.
//!
//! The thread starts with the first child and ends with the last. It needs no
//! runtime, so a child ends in order when its handle is dropped on a plain thread
//! or long after the runtime. It sleeps on a condition variable: each child has a
//! small thread of its own that blocks in the operating system until the leader
//! exits, and rings. That is one idle thread per child, and in return works the
//! same on every Unix, needs no signal handler and polls nothing.
//!
//! Everything a child can be asked is a flag on its entry, so there is no queue
//! that could fill up, and asking is one short lock.

use std::{
    collections::BTreeMap,
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    platform::{CatchUp, ExitWaiter, ProcessGroup},
    report::{ExitMethod, ExitReport, ProcessStatus},
    stderr::Tail,
};
use crate::transport::child_process::shutdown::{ChildShutdown, Graces, ProcessTree, ShutdownStep};
use tokio::sync::watch;

static REAPER: Reaper =
    Reaper { roster: Mutex::new(Roster::new()), bell: Condvar::new(), settled: Condvar::new() };

/// A child as its reaper holds it.
pub(super) struct Charge {
    pub(super) group: ProcessGroup,
    pub(super) graces: Graces,
    pub(super) catch_up: CatchUp,
    pub(super) tail: Arc<Tail>,
    pub(super) progress: watch::Sender<ChildStatus>,
}

/// What the world may know about a child.
#[derive(Debug, Clone, Default)]
pub(super) struct ChildStatus {
    /// Set when the leader has ended.
    pub(super) report: Option<ExitReport>,
    /// Set when its group is gone too. Invariant: never before `report`.
    pub(super) gone: bool,
}

/// The name of a child at its reaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChildTicket(u64);

/// Hands a child over. On failure nothing is left of it.
pub(super) fn adopt(charge: Charge, waiter: ExitWaiter) -> io::Result<ChildTicket> {
    let mut roster = REAPER.lock();
    let ticket = roster.next_ticket();
    if !roster.is_running {
        named("turnbuckle-reap").spawn(|| REAPER.run())?;
        roster.is_running = true;
    }
    let watching = named("turnbuckle-wait").spawn(move || {
        waiter.wait();
        REAPER.tell(ticket, ChildShutdown::leader_exited);
    });
    if let Err(error) = watching {
        // The reaper may be running for nobody now: it looks, and leaves.
        REAPER.bell.notify_all();
        return Err(error);
    }
    let course = ChildShutdown::new(charge.graces);
    roster.entries.insert(ticket, Entry { charge, course });
    Ok(ticket)
}

/// Starts the staged end of a child. Does not wait, does not fail; asking twice, or
/// for a child that is gone, changes nothing.
pub(super) fn ask_to_end(ticket: ChildTicket) {
    REAPER.tell(ticket, ChildShutdown::ask);
}

/// Makes the reaper look again at what it is waiting for.
pub(super) fn ring() {
    // With the lock, or the bell could ring between its look and its wait.
    let _roster = REAPER.lock();
    REAPER.bell.notify_all();
}

/// Blocks until every child that was asked to end is gone, or the time is over.
/// Says whether all are.
pub(super) fn settle(limit: Duration) -> Settled {
    let roster = REAPER.lock();
    let is_busy = |roster: &mut Roster| roster.entries.values().any(|e| e.course.is_asked());
    let (_roster, outcome) = REAPER
        .settled
        .wait_timeout_while(roster, limit, is_busy)
        .unwrap_or_else(PoisonError::into_inner);
    if outcome.timed_out() { Settled::StillWaiting } else { Settled::AllGone }
}

/// Whether all children that were asked to end are gone.
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::transport::child_process::{Settled, settle};
///
/// // Nobody was asked.
/// assert_eq!(settle(Duration::ZERO), Settled::AllGone);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Settled {
    /// All are gone.
    AllGone,
    /// Some were left when the time was over.
    StillWaiting,
}

pub(super) fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

struct Reaper {
    roster: Mutex<Roster>,
    /// Rings when a flag on an entry has changed.
    bell: Condvar,
    /// Rings when an entry has left.
    settled: Condvar,
}

struct Roster {
    /// Invariant: not empty while a child of ours lives or is unreaped.
    entries: BTreeMap<ChildTicket, Entry>,
    last_ticket: u64,
    /// Invariant: the thread runs whenever `entries` is not empty.
    is_running: bool,
}

impl Roster {
    const fn new() -> Self {
        Self { entries: BTreeMap::new(), last_ticket: 0, is_running: false }
    }

    fn next_ticket(&mut self) -> ChildTicket {
        self.last_ticket += 1;
        ChildTicket(self.last_ticket)
    }
}

struct Entry {
    charge: Charge,
    course: ChildShutdown,
}

impl Reaper {
    /// A panic while the lock was held leaves flags, and any flag is a valid state.
    fn lock(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, ticket: ChildTicket, what: impl FnOnce(&mut ChildShutdown)) {
        let mut roster = self.lock();
        if let Some(entry) = roster.entries.get_mut(&ticket) {
            what(&mut entry.course);
            self.bell.notify_all();
        }
    }

    fn run(&self) {
        let mut roster = self.lock();
        loop {
            let now = Instant::now();
            let round = roster.step_all(now);
            if !round.news.is_empty() {
                // Wakers are foreign code and may come back to ask for something.
                drop(roster);
                round.news.into_iter().for_each(ExitNotice::publish);
                self.settled.notify_all();
                roster = self.lock();
                continue;
            }
            if roster.entries.is_empty() {
                roster.is_running = false;
                self.settled.notify_all();
                return;
            }
            roster = match round.wake_at {
                None => self.bell.wait(roster).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let wait = at.saturating_duration_since(now);
                    let woken = self.bell.wait_timeout(roster, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

#[derive(Default)]
struct ReaperRound {
    news: Vec<ExitNotice>,
    wake_at: Option<Instant>,
}

impl Roster {
    fn step_all(&mut self, now: Instant) -> ReaperRound {
        let mut round = ReaperRound::default();
        for (ticket, mut entry) in mem::take(&mut self.entries) {
            // A mistake of ours about one child must not cost the others their reaper.
            let stepped = catch_unwind(AssertUnwindSafe(|| entry.step(now)));
            let Ok(step) = stepped else {
                // Whoever waits learns that by the end of the channel, outside the lock.
                round.news.push(ExitNotice::new(&entry.charge, &ShutdownStep::default()));
                continue;
            };
            if step.ended.is_some() || step.gone {
                round.news.push(ExitNotice::new(&entry.charge, &step));
            }
            round.wake_at = [round.wake_at, step.wake_at].into_iter().flatten().min();
            if !step.finished {
                self.entries.insert(ticket, entry);
            }
        }
        round
    }
}

impl Entry {
    fn step(&mut self, now: Instant) -> ShutdownStep {
        self.course.step(now, &mut self.charge)
    }
}

impl ProcessTree for Charge {
    fn terminate(&mut self) -> io::Result<()> {
        self.group.terminate()
    }

    fn kill(&mut self) {
        self.group.kill();
    }

    fn reap(&mut self) -> ProcessStatus {
        self.group.reap()
    }

    fn is_empty(&mut self) -> bool {
        self.group.is_empty()
    }

    fn catch_up(&mut self) {
        self.catch_up.request();
    }

    fn is_caught_up(&self) -> bool {
        self.tail.is_caught_up()
    }
}

/// Something to tell those who wait for a child, once the lock is released.
struct ExitNotice {
    progress: watch::Sender<ChildStatus>,
    tail: Arc<Tail>,
    ended: Option<(ProcessStatus, ExitMethod)>,
    gone: bool,
}

impl ExitNotice {
    fn new(charge: &Charge, step: &ShutdownStep) -> Self {
        let (progress, tail) = (charge.progress.clone(), Arc::clone(&charge.tail));
        Self { progress, tail, ended: step.ended, gone: step.gone }
    }

    fn publish(self) {
        // A waker that panics must not end the thread that everybody's children need.
        // `self` moves in because dropping the last sender wakes, too.
        let _ = catch_unwind(AssertUnwindSafe(move || {
            let Self { progress, tail, ended, gone } = self;
            progress.send_modify(|progress| {
                if let Some((status, how)) = ended {
                    progress.report = Some(ExitReport::new(status, how, Vec::new()));
                }
                if let Some(report) = &mut progress.report {
                    report.last_stderr = tail.lines();
                }
                progress.gone |= gone;
            });
        }));
    }
}
