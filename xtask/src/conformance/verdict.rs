//! Decides whether a scenario passed, strictly, and whether that was expected.

use super::{
    expected::Expectation,
    suite::{Outcome, Role, Run, Status},
};

/// A run and its result.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) run: Run,
    pub(crate) outcome: Outcome,
    pub(crate) verdict: Verdict,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// It passed but for checks that are excused.
    PassedWithExcuses,
    /// It did not pass, as expected, for this reason.
    NotYet(String),
    /// It should have passed; each sentence is a reason why it did not.
    Failed(Vec<String>),
    /// It was not expected to pass, and did.
    PassedAlready,
}

/// Compares the outcome with the expectation.
pub(crate) fn judge(run: &Run, expectation: Expectation<'_>, outcome: &Outcome) -> Verdict {
    match expectation {
        Expectation::NotYet { reason } => match problems(run.role, outcome, &[]).is_empty() {
            true => Verdict::PassedAlready,
            false => Verdict::NotYet(reason.to_owned()),
        },
        Expectation::Passes { excused } => {
            let problems = problems(run.role, outcome, excused);
            match (problems.is_empty(), excused.is_empty()) {
                (false, _) => Verdict::Failed(problems),
                (true, true) => Verdict::Passed,
                (true, false) => Verdict::PassedWithExcuses,
            }
        }
    }
}

/// The reasons against a pass. Warnings and skipped checks are among them.
fn problems(role: Role, outcome: &Outcome, excused: &[String]) -> Vec<String> {
    let Some(exit) = outcome.exit else { return vec!["it took too long".to_owned()] };
    let Some(checks) = &outcome.checks else {
        return vec![format!("the suite left no result and ended with code {exit}")];
    };
    let missed: Vec<_> = checks
        .iter()
        .filter(|check| matches!(check.status, Status::Failure | Status::Warning | Status::Skipped))
        .collect();
    let mut problems: Vec<String> = missed
        .iter()
        .filter(|check| !excused.contains(&check.name))
        .map(|check| {
            let message = check.message.as_deref().unwrap_or_default();
            format!("{:?}: {}: {}", check.status, check.name, message.trim())
        })
        .collect();
    let needless = excused.iter().filter(|name| !missed.iter().any(|check| check.name == **name));
    problems.extend(needless.map(|name| format!("`{name}` no longer needs an excuse")));
    if !checks.iter().any(|check| check.status == Status::Success) {
        problems.push("no check succeeded".to_owned());
    }
    // The suite's exit code says more than the checks only where these give it no reason: then the
    // client ended badly, and that was not part of the scenario.
    let counts = |status| match role {
        Role::Server => status == Status::Failure,
        Role::Client => matches!(status, Status::Failure | Status::Warning),
    };
    let explained = missed.iter().any(|check| counts(check.status));
    match &outcome.client_complaint {
        Some(complaint) if exit != 0 => problems.push(complaint.clone()),
        None if exit != 0 && !explained => {
            problems.push(format!("the suite ended with code {exit}"))
        }
        _ => {}
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::{super::suite::Check, *};

    const FREE: Expectation<'_> = Expectation::Passes { excused: &[] };
    const LATER: Expectation<'_> = Expectation::NotYet { reason: "later" };

    fn run(role: Role) -> Run {
        Run { role, scenario: "s".to_owned(), revision: "r".to_owned() }
    }

    fn outcome(exit: i32, statuses: &[(&str, Status)]) -> Outcome {
        let check = |(name, status): &(&str, Status)| Check {
            name: (*name).to_owned(),
            status: *status,
            message: None,
        };
        let checks = Some(statuses.iter().map(check).collect());
        Outcome { checks, exit: Some(exit), client_complaint: None }
    }

    fn passes(role: Role, outcome: &Outcome) -> bool {
        let strict = judge(&run(role), FREE, outcome);
        let already = judge(&run(role), LATER, outcome);
        assert_eq!(strict == Verdict::Passed, already == Verdict::PassedAlready);
        strict == Verdict::Passed
    }

    #[test]
    fn only_successes_pass() {
        let good = ("A", Status::Success);
        assert!(passes(Role::Server, &outcome(0, &[good, ("B", Status::Info)])));
        for bad in [Status::Failure, Status::Warning, Status::Skipped] {
            assert!(!passes(Role::Server, &outcome(0, &[good, ("B", bad)])), "{bad:?}");
        }
        assert!(!passes(Role::Server, &outcome(0, &[("B", Status::Info)])));
        assert!(!passes(Role::Server, &outcome(0, &[])));
    }

    #[test]
    fn a_run_without_an_end_or_without_a_result_fails() {
        let good = outcome(0, &[("A", Status::Success)]);
        assert!(!passes(Role::Client, &Outcome { exit: None, ..good.clone() }));
        assert!(!passes(Role::Client, &Outcome { checks: None, ..good.clone() }));
        assert!(!passes(Role::Client, &Outcome { exit: Some(1), ..good }));
    }

    #[test]
    fn a_client_that_ends_badly_fails_unless_the_suite_expects_it() {
        let complaint = Some("Client exited with code 1".to_owned());
        let good = outcome(0, &[("A", Status::Success)]);
        let tolerated = Outcome { client_complaint: complaint.clone(), ..good };
        assert!(passes(Role::Client, &tolerated));
        let excused = ["B".to_owned()];
        let expectation = Expectation::Passes { excused: &excused };
        let warned = outcome(1, &[("A", Status::Success), ("B", Status::Warning)]);
        let judged = |outcome: &Outcome| judge(&run(Role::Client), expectation, outcome);
        assert_eq!(judged(&warned), Verdict::PassedWithExcuses);
        let crashed = Outcome { client_complaint: complaint, ..warned };
        assert!(matches!(judged(&crashed), Verdict::Failed(problems) if problems.len() == 1));
    }

    #[test]
    fn an_excuse_covers_its_check_and_must_be_needed() {
        let excused = ["B".to_owned()];
        let expectation = Expectation::Passes { excused: &excused };
        let judged = |statuses: &[(&str, Status)]| {
            judge(&run(Role::Server), expectation, &outcome(0, statuses))
        };
        let good = ("A", Status::Success);
        assert_eq!(judged(&[good, ("B", Status::Skipped)]), Verdict::PassedWithExcuses);
        assert!(
            matches!(judged(&[good, ("C", Status::Skipped)]), Verdict::Failed(p) if p.len() == 2)
        );
        assert!(
            matches!(judged(&[good, ("B", Status::Success)]), Verdict::Failed(p) if p.len() == 1)
        );
    }
}
