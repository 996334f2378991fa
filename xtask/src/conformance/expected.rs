//! `conformance/not-yet.toml`: scenarios that are not expected to pass, and excused checks of others.

use std::path::Path;

use serde::Deserialize;

use super::suite::{Role, Run};
use crate::common::files::read;

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectations {
    /// Scenarios that do not pass.
    #[serde(default, rename = "not-yet")]
    not_yet: Vec<Entry>,
    /// Scenarios that pass except for some checks.
    #[serde(default)]
    excused: Vec<Entry>,
}

/// Scenarios that share a reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    role: Role,
    revisions: Vec<String>,
    reason: String,
    scenarios: Vec<String>,
    /// The checks that do not pass; only of excused scenarios.
    #[serde(default)]
    checks: Vec<String>,
}

/// The expected result of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expectation<'a> {
    /// It passes, except for these checks, which do not.
    Passes {
        excused: &'a [String],
    },
    NotYet {
        reason: &'a str,
    },
}

impl Expectations {
    pub(crate) fn read(path: &Path) -> Result<Expectations, String> {
        Expectations::parse(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn parse(text: &str) -> Result<Expectations, String> {
        let read: Expectations = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut entries = read.not_yet.iter().chain(&read.excused);
        if entries.any(|entry| entry.reason.trim().is_empty()) {
            return Err("an entry gives no reason".to_owned());
        }
        if read.not_yet.iter().any(|entry| !entry.checks.is_empty()) {
            return Err("only excused scenarios name checks".to_owned());
        }
        if read.excused.iter().any(|entry| entry.checks.is_empty()) {
            return Err("an excused scenario names no checks".to_owned());
        }
        if let Some(run) =
            read.excused.iter().flat_map(Entry::runs).find(|run| read.is_not_yet(run))
        {
            return Err(format!("`{run}` is not expected to pass and needs no excuse"));
        }
        Ok(read)
    }

    pub(crate) fn of(&self, run: &Run) -> Expectation<'_> {
        if let Some(entry) = self.not_yet.iter().find(|entry| entry.runs().contains(run)) {
            return Expectation::NotYet { reason: &entry.reason };
        }
        let excused = self.excused.iter().find(|entry| entry.runs().contains(run));
        Expectation::Passes { excused: excused.map_or(&[], |entry| &entry.checks) }
    }

    pub(crate) fn is_not_yet(&self, run: &Run) -> bool {
        matches!(self.of(run), Expectation::NotYet { .. })
    }

    /// Returns a sentence for each run that the suite does not have or that is named twice.
    pub(crate) fn unknown(&self, runs: &[Run]) -> Vec<String> {
        let entries = self.not_yet.iter().chain(&self.excused);
        let named: Vec<Run> = entries.flat_map(Entry::runs).collect();
        let sentence = |(index, run): (usize, &Run)| {
            if !runs.contains(run) {
                return Some(format!("not-yet.toml names `{run}`, which the suite does not have"));
            }
            named[..index]
                .contains(run)
                .then(|| format!("not-yet.toml names `{run}` more than once"))
        };
        named.iter().enumerate().filter_map(sentence).collect()
    }
}

impl Entry {
    fn runs(&self) -> Vec<Run> {
        let of = |scenario: &String| {
            let scenario = scenario.clone();
            let run = move |revision: &String| Run {
                role: self.role,
                scenario: scenario.clone(),
                revision: revision.clone(),
            };
            self.revisions.iter().map(run)
        };
        self.scenarios.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [[not-yet]]
        role = "client"
        revisions = ["old", "new"]
        reason = "no authorization"
        scenarios = ["auth/a", "auth/b"]

        [[excused]]
        role = "server"
        revisions = ["new"]
        scenarios = ["caching"]
        reason = "no prompts"
        checks = ["Prompts"]
    "#;

    fn run(role: Role, scenario: &str, revision: &str) -> Run {
        Run { role, scenario: scenario.to_owned(), revision: revision.to_owned() }
    }

    #[test]
    fn unnamed_scenarios_pass_without_excuses() {
        let expectations = Expectations::parse(FILE).unwrap();
        let of = |run: &Run| expectations.of(run);
        assert_eq!(
            of(&run(Role::Client, "auth/b", "old")),
            Expectation::NotYet { reason: "no authorization" }
        );
        let caching = run(Role::Server, "caching", "new");
        assert_eq!(of(&caching), Expectation::Passes { excused: &["Prompts".to_owned()] });
        let free = Expectation::Passes { excused: &[] };
        assert_eq!(of(&run(Role::Server, "caching", "old")), free);
        assert_eq!(of(&run(Role::Server, "auth/b", "old")), free);
    }

    #[test]
    fn entries_without_a_scenario_are_named() {
        let expectations = Expectations::parse(FILE).unwrap();
        let runs = ["old", "new"].map(|revision| run(Role::Client, "auth/a", revision));
        let unknown = expectations.unknown(&runs);
        assert_eq!(unknown.len(), 3, "{unknown:?}");
        let twice = format!("{FILE}\n{FILE}");
        let all: Vec<Run> = Expectations::parse(&twice)
            .unwrap()
            .not_yet
            .iter()
            .flat_map(Entry::runs)
            .chain([run(Role::Server, "caching", "new")])
            .collect();
        assert_eq!(Expectations::parse(&twice).unwrap().unknown(&all).len(), 5);
    }

    #[test]
    fn entries_have_reasons_and_do_not_contradict() {
        let real = include_str!("../../../conformance/not-yet.toml");
        assert!(!Expectations::parse(real).unwrap().excused.is_empty());
        assert!(Expectations::parse(&FILE.replace("no prompts", " ")).is_err());
        assert!(Expectations::parse(&FILE.replace("reason", "because")).is_err());
        assert!(Expectations::parse(&FILE.replace("checks = [\"Prompts\"]", "")).is_err());
        let both = FILE.replace("\"auth/a\"", "\"caching\"").replace("client", "server");
        assert!(Expectations::parse(&both).unwrap_err().contains("needs no excuse"));
    }
}
