//! The rows of `bench/targets.toml`, the value that each has to reach, and whether it is reached.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    OURS, report,
    results::Results,
    wire::{STDIO, WIRES, Wire},
};

/// The gate fails this far above a target: counts vary a little with the scheduler.
const TOLERANCE: f64 = 1.1;

/// The rows of each wire, by its name.
static TARGETS: LazyLock<BTreeMap<String, Rows>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../bench/targets.toml")).expect("a test reads the file")
});

#[derive(Debug, Deserialize)]
pub(crate) struct Rows {
    pub(crate) times: Vec<Row>,
    pub(crate) counts: Vec<Row>,
}

impl Rows {
    pub(crate) fn of(wire: &Wire) -> &'static Rows {
        &TARGETS[wire.name]
    }
}

/// The value that a row has to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reach {
    /// At most so many times the bare limit.
    TimesLimit(f64),
    /// At least so many times the better rmcp.
    TimesRmcp(f64),
    AtMost(f64),
    AtLeast(f64),
    /// None: for information.
    #[default]
    Report,
}

/// One line of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) scenario: String,
    pub(crate) metric: String,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) reach: Reach,
}

/// Returns the rows that may fail the build: counts and sizes, which do not depend on other programs
/// of the machine.
pub(crate) fn gated() -> impl Iterator<Item = &'static Row> {
    let counts = WIRES.iter().flat_map(|wire| &Rows::of(wire).counts);
    let sizes = Rows::of(&STDIO).times.iter().filter(|row| row.scenario == STDIO.sizes);
    counts.chain(sizes).filter(|row| matches!(row.reach, Reach::AtMost(_)))
}

/// The medians of one row.
#[derive(Debug, PartialEq)]
pub(crate) struct Standing {
    pub(crate) ours: Option<f64>,
    pub(crate) limit: Option<f64>,
    pub(crate) tuned: Option<f64>,
    pub(crate) readme: Option<f64>,
}

impl Standing {
    pub(crate) fn of(row: &Row, wire: &Wire, results: &Results) -> Self {
        let median = |candidate| results.median(&row.scenario, candidate, &row.metric);
        Self {
            ours: median(OURS),
            limit: median(wire.limit),
            tuned: wire.tuned.iter().find_map(|candidate| median(candidate)),
            readme: median(wire.readme),
        }
    }

    /// The better rmcp, for a row in which more is better.
    pub(crate) fn best_rmcp(&self) -> Option<f64> {
        match (self.tuned, self.readme) {
            (Some(tuned), Some(readme)) => Some(tuned.max(readme)),
            (tuned, readme) => tuned.or(readme),
        }
    }

    /// Whether the target is reached; `None` if a value is missing.
    pub(crate) fn is_reached(&self, reach: Reach) -> Option<bool> {
        let ours = self.ours?;
        match reach {
            Reach::TimesLimit(times) => Some(ours <= times * self.limit?),
            Reach::TimesRmcp(times) => Some(ours >= times * self.best_rmcp()?),
            Reach::AtMost(most) => Some(ours <= most),
            Reach::AtLeast(least) => Some(ours >= least),
            Reach::Report => None,
        }
    }
}

/// Fails if a count is above its target by more than the tolerance, or is missing.
pub(crate) fn gate(results: &Results) -> Result<(), String> {
    let mut complaints = results.failures.clone();
    for row in gated() {
        let Reach::AtMost(most) = row.reach else { continue };
        let complaint = match results.median(&row.scenario, OURS, &row.metric) {
            Some(value) if value <= most * TOLERANCE => continue,
            Some(value) => {
                let shown = |value| report::value(Some(value), &row.unit);
                format!(
                    "{} ({}): {}, more than {}",
                    row.name,
                    row.scenario,
                    shown(value),
                    shown(most * TOLERANCE)
                )
            }
            None => format!("{} ({}): not counted", row.name, row.scenario),
        };
        complaints.push(complaint);
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(ours: f64, limit: f64, tuned: f64, readme: f64) -> Standing {
        Standing { ours: Some(ours), limit: Some(limit), tuned: Some(tuned), readme: Some(readme) }
    }

    #[test]
    fn ratios_are_taken_to_the_limit_and_to_the_better_rmcp() {
        let standing = with(5.0, 2.0, 80.0, 110.0);
        assert_eq!(standing.is_reached(Reach::TimesLimit(2.5)), Some(true));
        assert_eq!(standing.is_reached(Reach::TimesLimit(2.4)), Some(false));
        assert_eq!(standing.is_reached(Reach::AtMost(5.0)), Some(true));
        assert_eq!(standing.is_reached(Reach::AtLeast(5.5)), Some(false));
        let rate = with(800.0, 900.0, 90.0, 110.0);
        assert_eq!(rate.is_reached(Reach::TimesRmcp(8.0)), Some(false));
        assert_eq!(rate.is_reached(Reach::TimesRmcp(7.0)), Some(true));
        assert_eq!(rate.is_reached(Reach::Report), None);
        let missing = Standing { limit: None, ..with(1.0, 1.0, 1.0, 1.0) };
        assert_eq!(missing.is_reached(Reach::TimesLimit(2.0)), None);
    }

    /// Every gated row at so many times its target.
    fn counted(times: f64) -> Results {
        let mut results = Results::default();
        for row in gated() {
            let Reach::AtMost(most) = row.reach else { continue };
            results.add(&row.scenario, OURS, &row.metric, most * times);
        }
        results
    }

    #[test]
    fn the_gate_fails_a_tenth_above_the_target() {
        assert_eq!(gate(&counted(1.0999)), Ok(()));
        let complaints = gate(&counted(1.12)).unwrap_err();
        assert!(complaints.contains("instructions per request (echo): 28,000, more than 27,500"));
        assert!(complaints.contains("(typed-handler): "), "{complaints}");
    }

    #[test]
    fn a_missing_count_fails_the_gate() {
        assert_eq!(gated().count(), 16);
        assert_eq!(gate(&Results::default()).unwrap_err().lines().count(), gated().count());
    }
}
