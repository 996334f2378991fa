//! The course, with a clock that is only a number.

use super::*;

/// Notes what is done to it.
#[derive(Default)]
struct Fake {
    done: Vec<&'static str>,
    has_leftovers: bool,
    is_behind: bool,
    cannot_be_asked: bool,
}

impl ProcessTree for Fake {
    fn terminate(&mut self) -> io::Result<()> {
        if self.cannot_be_asked {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.done.push("terminate");
        Ok(())
    }

    fn kill(&mut self) {
        self.done.push("kill");
    }

    fn reap(&mut self) -> ProcessStatus {
        self.done.push("reap");
        ProcessStatus { code: Some(7), signal: None }
    }

    fn is_empty(&mut self) -> bool {
        !self.has_leftovers
    }

    fn catch_up(&mut self) {
        self.done.push("catch up");
    }

    fn is_caught_up(&self) -> bool {
        !self.is_behind
    }
}

const GRACES: Graces = Graces { close: Duration::from_secs(2), terminate: Duration::from_secs(3) };
const EXIT: ProcessStatus = ProcessStatus { code: Some(7), signal: None };

fn after(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_running_child_is_left_alone() {
    let (mut course, mut tree) = (ChildShutdown::new(GRACES), Fake::default());
    assert_eq!(course.step(Instant::now(), &mut tree), ShutdownStep::default());
    assert!(tree.done.is_empty());
}

#[test]
fn a_child_that_ignores_everything_gets_every_stage_in_its_time() {
    let (mut course, mut tree) = (ChildShutdown::new(GRACES), Fake::default());
    let start = Instant::now();
    course.ask();
    assert_eq!(course.step(start, &mut tree).wake_at, Some(start + after(2)));
    assert!(tree.done.is_empty());
    let terminated = start + after(2);
    assert_eq!(course.step(terminated, &mut tree).wake_at, Some(terminated + after(3)));
    assert_eq!(tree.done, ["terminate"]);
    let killed = terminated + after(3);
    assert_eq!(course.step(killed, &mut tree).wake_at, Some(killed + ChildShutdown::KILL_WAIT));
    assert_eq!(tree.done, ["terminate", "kill"]);

    course.leader_exited();
    let step = course.step(killed, &mut tree);
    assert_eq!(step.ended, Some((EXIT, ExitMethod::Killed)));
    assert!(step.finished);
    assert_eq!(tree.done, ["terminate", "kill", "catch up", "reap"]);
}

#[test]
fn where_nobody_can_be_asked_the_kill_comes_at_once() {
    let mut tree = Fake { cannot_be_asked: true, ..Fake::default() };
    let mut course = ChildShutdown::new(GRACES);
    let start = Instant::now();
    course.ask();
    course.step(start, &mut tree);
    course.step(start + after(2), &mut tree);
    assert_eq!(tree.done, ["kill"]);
}

#[test]
fn asking_again_does_not_start_the_grace_again() {
    let (mut course, mut tree) = (ChildShutdown::new(GRACES), Fake::default());
    let start = Instant::now();
    course.ask();
    let first = course.step(start, &mut tree);
    course.ask();
    assert_eq!(course.step(start + after(1), &mut tree), first);
}

#[test]
fn leftovers_are_signalled_before_the_leader_is_reaped_and_killed_in_the_end() {
    let mut tree = Fake { has_leftovers: true, ..Fake::default() };
    let mut course = ChildShutdown::new(GRACES);
    let start = Instant::now();
    course.leader_exited();
    let step = course.step(start, &mut tree);
    assert_eq!(step.ended, Some((EXIT, ExitMethod::Exited)));
    assert!(!step.gone);
    assert_eq!(step.wake_at, Some(start + ChildShutdown::FIRST_PROBE));
    assert_eq!(tree.done, ["terminate", "catch up", "reap"]);

    let step = course.step(start + after(3), &mut tree);
    assert!(!step.gone && step.ended.is_none());
    assert_eq!(tree.done.last(), Some(&"kill"));
    tree.has_leftovers = false;
    let step = course.step(start + after(3), &mut tree);
    assert!(step.gone && step.finished && step.ended.is_none());
}

#[test]
fn leftovers_that_cannot_be_killed_are_given_up() {
    let mut tree = Fake { has_leftovers: true, ..Fake::default() };
    let mut course = ChildShutdown::new(GRACES);
    let start = Instant::now();
    course.leader_exited();
    course.step(start, &mut tree);
    course.step(start + after(3), &mut tree);
    assert!(course.step(start + after(3) + ChildShutdown::KILL_WAIT, &mut tree).finished);
}

#[test]
fn the_report_waits_for_the_last_words_but_not_for_long() {
    let mut tree = Fake { is_behind: true, ..Fake::default() };
    let mut course = ChildShutdown::new(GRACES);
    let start = Instant::now();
    course.leader_exited();
    let limit = start + ChildShutdown::CATCH_UP_WAIT;
    let waiting = ShutdownStep { wake_at: Some(limit), ..ShutdownStep::default() };
    assert_eq!(course.step(start, &mut tree), waiting);
    let step = course.step(limit, &mut tree);
    assert_eq!(step.ended, Some((EXIT, ExitMethod::Exited)));
    assert!(step.finished);
}

#[test]
fn a_child_that_survives_sigkill_is_reported_and_still_reaped_later() {
    let (mut course, mut tree) = (ChildShutdown::new(GRACES), Fake::default());
    let start = Instant::now();
    course.ask();
    let mut step = course.step(start, &mut tree);
    while let Some(at) = step.wake_at {
        step = course.step(at, &mut tree);
    }
    assert_eq!(step.ended.map(|(_, how)| how), Some(ExitMethod::Stuck));
    assert!(step.gone && !step.finished);

    course.leader_exited();
    let step = course.step(start + after(60), &mut tree);
    assert_eq!(step.ended, Some((EXIT, ExitMethod::Killed)));
    assert!(step.finished);
    assert!(tree.done.ends_with(&["reap"]));
}

#[test]
fn a_grace_without_end_is_no_deadline() {
    let graces = Graces { close: Duration::MAX, ..GRACES };
    let (mut course, mut tree) = (ChildShutdown::new(graces), Fake::default());
    course.ask();
    assert_eq!(course.step(Instant::now(), &mut tree).wake_at, None);
}
