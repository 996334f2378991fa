//! The throughput of a bridge, compared with the slower of its two sides.

use super::{Effort, OURS, results::Results, servers, wire::Load};

/// The name of the results.
pub(crate) const SCENARIO: &str = "bridge";

/// The bridge, as `candidates.toml` calls it: Turnbuckle's server over stdio behind Streamable HTTP.
const BRIDGE: &str = "bridge";
/// Only the server without the bridge speaks stdio to the load generator.
const SIDES: [&str; 2] = ["http-echo:64", "stdio-echo:64"];

/// Measures the bridge and each of its two sides, in turns, if Turnbuckle is a candidate.
pub(crate) fn measure(
    effort: &Effort,
    candidates: &[&str],
    results: &mut Results,
) -> Result<(), String> {
    if !candidates.contains(&OURS) {
        return Ok(());
    }
    let load = Load { scenarios: &SIDES, candidates: &[OURS, BRIDGE] };
    let mut found = Results::default();
    servers::run(effort, &load, load.candidates, &mut found)?;
    conclude(&found, results);
    Ok(())
}

fn conclude(found: &Results, results: &mut Results) {
    let rate = |scenario, candidate| found.median(scenario, candidate, "rps");
    let sides = SIDES.map(|scenario| rate(scenario, OURS));
    if let (Some(bridge), [Some(one), Some(other)]) = (rate(SIDES[0], BRIDGE), sides) {
        let slower = one.min(other);
        results.add(SCENARIO, OURS, "rps", bridge);
        results.add(SCENARIO, OURS, "slower_rps", slower);
        results.add(SCENARIO, OURS, "times", bridge / slower);
    }
    results.failures.extend(found.failures.iter().map(|failure| format!("bridge: {failure}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_is_compared_with_the_slower_of_its_sides() {
        let (mut found, mut results) = (Results::default(), Results::default());
        found.add("http-echo:64", OURS, "rps", 50_000.0);
        found.add("http-echo:64", BRIDGE, "rps", 30_000.0);
        conclude(&found, &mut results);
        assert_eq!(results.median(SCENARIO, OURS, "times"), None);
        found.add("stdio-echo:64", OURS, "rps", 150_000.0);
        found.failures.push("lost".to_owned());
        conclude(&found, &mut results);
        assert_eq!(results.median(SCENARIO, OURS, "times"), Some(0.6));
        assert_eq!(results.median(SCENARIO, OURS, "slower_rps"), Some(50_000.0));
        assert!(results.check().is_err());
    }
}
