//! The course of ending one child, as a machine without I/O.
//!
//! Owns: which step follows which, and when. Does not own: signals, clocks,
//! threads; it is handed a [`ProcessTree`] and the time.

use std::{
    io,
    time::{Duration, Instant},
};

use super::report::{ExitMethod, ProcessStatus};

/// How long each stage of an orderly end may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Graces {
    /// From the end of the child's input to SIGTERM.
    pub(super) close: Duration,
    /// From SIGTERM to SIGKILL.
    pub(super) terminate: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self { close: Duration::from_secs(2), terminate: Duration::from_secs(2) }
    }
}

/// A process (the leader) and all its descendants that stayed in its group.
pub(super) trait ProcessTree {
    /// Asks the group to end. Fails where the platform has no way to ask.
    fn terminate(&mut self) -> io::Result<()>;
    /// Ends the group.
    fn kill(&mut self);
    /// Collects the leader. Called once, after it is known to have exited.
    fn reap(&mut self) -> ProcessStatus;
    /// Whether nobody is left. Called only after `reap`.
    fn is_empty(&mut self) -> bool;
    /// Asks for everything that the leader wrote to its standard error.
    fn catch_up(&mut self);
    /// Whether that has been read.
    fn is_caught_up(&self) -> bool;
}

/// One child on its way from running to gone.
#[derive(Debug)]
pub(super) struct ChildShutdown {
    graces: Graces,
    phase: ShutdownPhase,
    leader: Leader,
    /// Whether somebody wants the child to end.
    asked: bool,
    /// Invariant: once set, the group's id is never used again, as it may have a new owner.
    is_gone: bool,
    /// The wait before the next look at what outlived its leader.
    probe: Duration,
}

/// What one step brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShutdownStep {
    /// The leader's end, at most once (twice if it was stuck first).
    pub(super) ended: Option<(ProcessStatus, ExitMethod)>,
    /// Nobody is left, or nobody that more waiting would help with.
    pub(super) gone: bool,
    /// The course is over; there is no further step.
    pub(super) finished: bool,
    /// When the next step is due, if nothing happens before.
    pub(super) wake_at: Option<Instant>,
}

/// How far the staged end has come. `until` is `None` for "no limit".
#[derive(Debug, Clone, Copy)]
enum ShutdownPhase {
    Running,
    Closing { until: Option<Instant> },
    Terminating { until: Option<Instant> },
    Killing { until: Option<Instant> },
}

#[derive(Debug, Clone, Copy)]
enum Leader {
    Alive,
    /// It has exited and still holds its process id, and with it the group's id.
    Exited,
    Reaped {
        status: ProcessStatus,
        how: ExitMethod,
        report: ShutdownSteps,
    },
}

#[derive(Debug, Clone, Copy)]
enum ShutdownSteps {
    /// Waiting for the last of its standard error, at most until then.
    DueBy(Option<Instant>),
    Given,
}

impl ChildShutdown {
    /// For something that a killed process should do at once, and may not.
    const KILL_WAIT: Duration = Duration::from_secs(1);
    /// How long a report waits for a standard error whose reader is busy elsewhere.
    const CATCH_UP_WAIT: Duration = Duration::from_millis(250);
    const FIRST_PROBE: Duration = Duration::from_millis(1);
    const LAST_PROBE: Duration = Duration::from_millis(50);

    pub(super) fn new(graces: Graces) -> Self {
        let (phase, leader) = (ShutdownPhase::Running, Leader::Alive);
        Self { graces, phase, leader, asked: false, is_gone: false, probe: Self::FIRST_PROBE }
    }

    /// Somebody wants the child to end.
    pub(super) fn ask(&mut self) {
        self.asked = true;
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked
    }

    /// The leader has exited and has not been reaped.
    pub(super) fn leader_exited(&mut self) {
        if let Leader::Alive = self.leader {
            self.leader = Leader::Exited;
        }
    }

    /// Does what is due.
    pub(super) fn step(&mut self, now: Instant, tree: &mut dyn ProcessTree) -> ShutdownStep {
        if let Leader::Exited = self.leader {
            self.collect_leader(now, tree);
        }
        match self.leader {
            Leader::Reaped { status, how, report } => {
                self.after_leader(now, tree, (status, how), report)
            }
            Leader::Alive | Leader::Exited => self.with_leader(now, tree),
        }
    }

    fn collect_leader(&mut self, now: Instant, tree: &mut dyn ProcessTree) {
        let how = match self.phase {
            ShutdownPhase::Running | ShutdownPhase::Closing { .. } => ExitMethod::Exited,
            ShutdownPhase::Terminating { .. } => ExitMethod::Terminated,
            ShutdownPhase::Killing { .. } => ExitMethod::Killed,
        };
        if how == ExitMethod::Exited {
            // Whoever outlived the leader is asked to go now, before the leader is
            // reaped: an unreaped leader keeps the group's id from being given to
            // a stranger.
            self.terminate(now, tree);
        }
        tree.catch_up();
        let status = tree.reap();
        let report = ShutdownSteps::DueBy(now.checked_add(Self::CATCH_UP_WAIT));
        self.leader = Leader::Reaped { status, how, report };
    }

    fn with_leader(&mut self, now: Instant, tree: &mut dyn ProcessTree) -> ShutdownStep {
        if let (ShutdownPhase::Running, true) = (self.phase, self.asked) {
            self.phase = ShutdownPhase::Closing { until: now.checked_add(self.graces.close) };
        }
        if !self.is_due(now) {
            return ShutdownStep { wake_at: self.deadline(), ..ShutdownStep::default() };
        }
        match self.phase {
            ShutdownPhase::Running => {}
            ShutdownPhase::Closing { .. } => self.terminate(now, tree),
            ShutdownPhase::Terminating { .. } => self.kill(now, tree),
            ShutdownPhase::Killing { .. } => {
                self.phase = ShutdownPhase::Killing { until: None };
                let ended = Some((ProcessStatus::default(), ExitMethod::Stuck));
                return ShutdownStep { ended, gone: true, ..ShutdownStep::default() };
            }
        }
        ShutdownStep { wake_at: self.deadline(), ..ShutdownStep::default() }
    }

    fn after_leader(
        &mut self,
        now: Instant,
        tree: &mut dyn ProcessTree,
        (status, how): (ProcessStatus, ExitMethod),
        report: ShutdownSteps,
    ) -> ShutdownStep {
        let mut step = ShutdownStep::default();
        if let ShutdownSteps::DueBy(limit) = report {
            if !tree.is_caught_up() && limit.is_none_or(|limit| now < limit) {
                step.wake_at = limit;
                return self.look_after_group(now, tree, step);
            }
            step.ended = Some((status, how));
            self.leader = Leader::Reaped { status, how, report: ShutdownSteps::Given };
        }
        step = self.look_after_group(now, tree, step);
        step.gone = self.is_gone;
        step.finished = self.is_gone;
        step
    }

    fn look_after_group(
        &mut self,
        now: Instant,
        tree: &mut dyn ProcessTree,
        mut step: ShutdownStep,
    ) -> ShutdownStep {
        self.is_gone = self.is_gone || tree.is_empty();
        if !self.is_gone && self.is_due(now) {
            match self.phase {
                ShutdownPhase::Running | ShutdownPhase::Closing { .. } => self.terminate(now, tree),
                ShutdownPhase::Terminating { .. } => self.kill(now, tree),
                ShutdownPhase::Killing { .. } => self.is_gone = true,
            }
        }
        if self.is_gone {
            return step;
        }
        // Nothing tells a process when a grandchild ends, so this one case is looked
        // at again and again, ever less often and never for longer than the graces.
        let probe_at = now.checked_add(self.probe);
        self.probe = (self.probe * 2).min(Self::LAST_PROBE);
        step.wake_at = [step.wake_at, self.deadline(), probe_at].into_iter().flatten().min();
        step
    }

    fn terminate(&mut self, now: Instant, tree: &mut dyn ProcessTree) {
        match tree.terminate() {
            Ok(()) => {
                self.phase =
                    ShutdownPhase::Terminating { until: now.checked_add(self.graces.terminate) };
            }
            Err(_) => self.kill(now, tree),
        }
    }

    fn kill(&mut self, now: Instant, tree: &mut dyn ProcessTree) {
        tree.kill();
        self.phase = ShutdownPhase::Killing { until: now.checked_add(Self::KILL_WAIT) };
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            ShutdownPhase::Running => None,
            ShutdownPhase::Closing { until }
            | ShutdownPhase::Terminating { until }
            | ShutdownPhase::Killing { until } => until,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|until| until <= now)
    }
}

#[cfg(test)]
mod tests;
