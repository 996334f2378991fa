//! Owns: what is to be reached, row by row, and whether it is. Does not own: how it is shown.

pub(crate) mod http;
pub(crate) mod stdio;

use super::{
    OURS, report,
    results::Results,
    wire::{WIRES, Wire},
};

/// A gate closes this far above a target: counts vary a little with the scheduler.
const TOLERANCE: f64 = 1.1;

/// Instructions for a list of 1,000 tools: twice what the bare limits take, for which it is little
/// more than one copy of the bytes. A number, so that the gate needs no limit beside it.
const LIST_INSTRUCTIONS: f64 = 550_000.0;

/// What a row asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// At most so many times the bare limit.
    TimesLimit(f64),
    /// At least so many times what rmcp reaches at its best.
    TimesRmcp(f64),
    AtMost(f64),
    AtLeast(f64),
    /// Nothing: for information.
    Report,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) scenario: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) reach: Reach,
}

const fn row(
    name: &'static str,
    scenario: &'static str,
    metric: &'static str,
    unit: &'static str,
    reach: Reach,
) -> Row {
    Row { name, scenario, metric, unit, reach }
}

/// Rows that may fail the build: counts and sizes, which no neighbour on the machine disturbs.
pub(crate) fn gated() -> impl Iterator<Item = &'static Row> {
    const SIZES: &[Row] = &[stdio::BINARY, stdio::CRATES];
    let counts = WIRES.iter().flat_map(|wire| wire.counts);
    counts.filter(|row| matches!(row.reach, Reach::AtMost(_))).chain(SIZES)
}

/// What one row came to.
#[derive(Debug, PartialEq)]
pub(crate) struct Standing {
    pub(crate) ours: Option<f64>,
    pub(crate) limit: Option<f64>,
    pub(crate) tuned: Option<f64>,
    pub(crate) readme: Option<f64>,
}

impl Standing {
    pub(crate) fn of(row: &Row, wire: &Wire, results: &Results) -> Self {
        let median = |candidate| results.median(row.scenario, candidate, row.metric);
        Self {
            ours: median(OURS),
            limit: median(wire.limit),
            tuned: wire.tuned.iter().find_map(|candidate| median(candidate)),
            readme: median(wire.readme),
        }
    }

    /// Rmcp at its best, for a row in which more is better.
    pub(crate) fn best_rmcp(&self) -> Option<f64> {
        match (self.tuned, self.readme) {
            (Some(tuned), Some(readme)) => Some(tuned.max(readme)),
            (tuned, readme) => tuned.or(readme),
        }
    }

    /// Whether the row is reached; `None` where nothing can be said.
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

/// Fails when one of ours is above its target by more than the tolerance, or was not counted.
pub(crate) fn gate(results: &Results) -> Result<(), String> {
    let mut complaints = results.failures.clone();
    for row in gated() {
        let Reach::AtMost(most) = row.reach else { continue };
        let complaint = match results.median(row.scenario, OURS, row.metric) {
            Some(value) if value <= most * TOLERANCE => continue,
            Some(value) => {
                let shown = |value| report::value(Some(value), row.unit);
                format!(
                    "{} ({}): {}, and the gate closes at {}",
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

    fn counted(instructions: f64) -> Results {
        let mut results = Results::default();
        results.add("echo", OURS, "instructions", instructions);
        results.add("echo", OURS, "allocations", 15.0);
        results.add("large", OURS, "bytes", 4.4e6);
        results.add("list", OURS, "instructions", 550_000.0);
        results.add("many-tools", OURS, "times", 1.1);
        results.add("typed-handler", OURS, "times", 1.4);
        results.add("conversation", OURS, "times", 3.2);
        results.add("http-echo", OURS, "instructions", 55_000.0);
        results.add("http-echo", OURS, "allocations", 49.0);
        results.add("http-large", OURS, "bytes", 4.4e6);
        results.add("http-list", OURS, "instructions", 550_000.0);
        results.add("http-closed", OURS, "kept_bytes", 0.0);
        results.add("client-echo", OURS, "instructions", 18_700.0);
        results.add("client-cached", OURS, "instructions", 9_500.0);
        results.add("sizes", OURS, "binary_mb", 2.5);
        results.add("sizes", OURS, "crates", 45.0);
        results
    }

    #[test]
    fn the_gate_closes_a_tenth_above_the_target() {
        assert_eq!(gate(&counted(27_000.0)), Ok(()));
        assert!(
            gate(&counted(28_000.0))
                .unwrap_err()
                .contains("instructions per request (echo): 28,000")
        );
    }

    #[test]
    fn the_gate_looks_at_comparisons_too() {
        let mut slow = counted(27_000.0);
        // The second value makes the median 1.5.
        slow.add("typed-handler", OURS, "times", 1.6);
        let complaint = gate(&slow).unwrap_err();
        assert!(complaint.contains("(typed-handler): 1.5"), "{complaint}");
    }

    #[test]
    fn the_tuned_rmcp_is_the_first_that_was_measured() {
        let row = &super::super::wire::HTTP.times[0];
        let mut results = Results::default();
        results.add(row.scenario, "rmcp-arc-nd", row.metric, 9.0);
        let tuned = |results: &Results| Standing::of(row, &super::super::wire::HTTP, results).tuned;
        assert_eq!(tuned(&results), Some(9.0));
        results.add(row.scenario, "rmcp-json-nd", row.metric, 8.0);
        assert_eq!(tuned(&results), Some(8.0));
    }

    #[test]
    fn what_was_not_counted_closes_the_gate() {
        assert_eq!(gate(&Results::default()).unwrap_err().lines().count(), gated().count());
    }
}
