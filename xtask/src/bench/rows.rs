//! Owns: what is to be reached, row by row, and whether it is. Does not own: how it is shown.

use super::OURS;
use super::results::Results;

/// The reference of a ratio.
const LIMIT: &str = "limit-pipe";
const TUNED: &str = "rmcp-arc-nd";
const README: &str = "rmcp-readme";

/// A gate closes this far above a target: counts vary a little with the scheduler.
const TOLERANCE: f64 = 1.1;

/// What a row asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// At most so many times the bare limit.
    TimesLimit(f64),
    /// At least so many times what rmcp reaches at its best.
    TimesRmcp(f64),
    AtMost(f64),
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

/// Rows that a clock or a scale decides. Milliseconds for a thousand are microseconds for one.
pub(crate) const TIMES: &[Row] = &[
    row(
        "64 in flight, CPU per request",
        "stdio-echo:64",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(2.5),
    ),
    row("64 in flight, requests/s", "stdio-echo:64", "rps", "/s", Reach::TimesRmcp(8.0)),
    row("1 in flight, p50", "stdio-echo:1", "p50_us", "µs", Reach::TimesLimit(1.2)),
    row(
        "1,000 progress notifications in a call, CPU each",
        "stdio-progress:1000",
        "cpu_ms_per_1k_notif",
        "µs",
        Reach::TimesLimit(5.0),
    ),
    row(
        "1,000 calls in flight cancelled, until every handler is gone",
        "stdio-cancel:1000",
        "release_ms_p50",
        "ms",
        Reach::TimesLimit(3.0),
    ),
    row(
        "memory per call in flight",
        "stdio-cancel:1000",
        "kib_per_inflight",
        "KiB",
        Reach::AtMost(2.0),
    ),
    row(
        "1 MiB argument echoed, CPU",
        "stdio-large:1",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(1.2),
    ),
    row(
        "client, 64 concurrent calls, CPU per call",
        "client-calls:64",
        "cpu_ms_per_1k",
        "µs",
        Reach::TimesLimit(1.6),
    ),
    row(
        "client, 1,000 calls abandoned, until the server let go",
        "client-cancel:1000",
        "server_released_ms",
        "ms",
        Reach::Report,
    ),
    row(
        "start to first tool result",
        "stdio-cold:10",
        "first_tool_result_ms",
        "ms",
        Reach::AtMost(2.1),
    ),
    BINARY,
    CRATES,
    row(
        "crates of a stdio-only server with `validate`",
        "sizes",
        "crates_with_validate",
        "",
        Reach::Report,
    ),
];

const BINARY: Row = row("stripped binary", "sizes", "binary_mb", "MB", Reach::AtMost(3.0));
const CRATES: Row = row(
    "crates of a stdio-only server without `validate`",
    "sizes",
    "crates",
    "",
    Reach::AtMost(45.0),
);

/// Rows that valgrind counts.
pub(crate) const COUNTS: &[Row] = &[
    row("instructions per request", "echo", "instructions", "", Reach::AtMost(25_000.0)),
    row("allocations per request", "echo", "allocations", "", Reach::AtMost(15.0)),
    row("bytes allocated per request", "echo", "bytes", "B", Reach::Report),
    row("1 MiB argument echoed, instructions", "large", "instructions", "", Reach::Report),
    row("1 MiB argument echoed, allocations", "large", "allocations", "", Reach::Report),
    row("1 MiB argument echoed, bytes allocated", "large", "bytes", "B", Reach::AtMost(4.5e6)),
];

/// Rows that may fail the build: counts and sizes, which no neighbour on the machine disturbs.
pub(crate) fn gated() -> impl Iterator<Item = &'static Row> {
    const SIZES: &[Row] = &[BINARY, CRATES];
    COUNTS.iter().filter(|row| matches!(row.reach, Reach::AtMost(_))).chain(SIZES)
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
    pub(crate) fn of(row: &Row, results: &Results) -> Self {
        let median = |candidate| results.median(row.scenario, candidate, row.metric);
        Self {
            ours: median(OURS),
            limit: median(LIMIT),
            tuned: median(TUNED),
            readme: median(README),
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
                format!("{}: {value:.0}, and the gate closes at {:.0}", row.name, most * TOLERANCE)
            }
            None => format!("{}: not counted", row.name),
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
        results.add("sizes", OURS, "binary_mb", 2.5);
        results.add("sizes", OURS, "crates", 45.0);
        results
    }

    #[test]
    fn the_gate_closes_a_tenth_above_the_target() {
        assert_eq!(gate(&counted(27_000.0)), Ok(()));
        assert!(gate(&counted(28_000.0)).unwrap_err().contains("instructions per request: 28000"));
    }

    #[test]
    fn what_was_not_counted_closes_the_gate() {
        assert_eq!(gate(&Results::default()).unwrap_err().lines().count(), gated().count());
    }
}
