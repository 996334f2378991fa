//! The options of `cargo xtask bench` and the order of its steps.

mod bridge;
mod builds;
mod clients;
mod count;
mod programs;
mod report;
mod results;
mod rows;
mod servers;
mod sizes;
mod wire;

use clap::builder::PossibleValuesParser;

use self::results::Results;
use crate::workspace;

/// The candidate that is Turnbuckle.
const OURS: &str = "turnbuckle";

/// The candidates of a run, in the order in which they take turns.
const CANDIDATES: [&str; 7] = [
    "limit-pipe",
    "limit-spawn",
    "limit-hyper",
    "rmcp-arc-nd",
    "rmcp-json-nd",
    "rmcp-readme",
    OURS,
];

/// How much is measured.
#[derive(Debug)]
struct Effort {
    rounds: usize,
    seconds: f64,
    /// How often a measurement is repeated because other programs used the machine.
    retries: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only print a first impression
    #[arg(long, conflicts_with_all = ["count", "build"])]
    quick: bool,
    /// Count instructions and allocations per request with valgrind
    #[arg(long, conflicts_with = "build")]
    count: bool,
    /// Count only Turnbuckle and fail above the targets
    #[arg(long, requires = "count")]
    gate: bool,
    /// Build the README's server cold, beside rmcp's
    #[arg(long)]
    build: bool,
    /// Measure only these candidates
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(CANDIDATES))]
    only: Vec<String>,
    /// Rounds of each measurement [default: 3, with --quick 1]
    #[arg(long)]
    rounds: Option<usize>,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let is_wanted =
        |name: &&str| options.only.is_empty() || options.only.iter().any(|it| it == name);
    let candidates: Vec<&str> = CANDIDATES.into_iter().filter(is_wanted).collect();
    if options.build {
        return report::write_section("builds", &builds::measure()?);
    }
    if options.gate {
        programs::build_counted(&[OURS])?;
        let mut results = count::all(&[OURS])?;
        sizes::crates(&[OURS], &mut results)?;
        sizes::binaries(&[OURS], &mut results)?;
        println!("{}", report::gated(&results));
        return rows::gate(&results);
    }
    if options.count {
        programs::build_counted(&candidates)?;
        let results = count::all(&candidates)?;
        report::write_section("counts", &report::counts(&results))?;
        return results.check();
    }
    let (rounds, seconds, retries) = if options.quick { (1, 0.5, 0) } else { (3, 2.0, 3) };
    let effort = Effort { rounds: options.rounds.unwrap_or(rounds), seconds, retries };
    let results = measure(&effort, &candidates)?;
    let section = report::times(&results, effort.rounds);
    match options.quick {
        true => println!("{section}"),
        false => report::write_section("times", &section)?,
    }
    results.check()
}

fn measure(effort: &Effort, candidates: &[&str]) -> Result<Results, String> {
    programs::build(candidates)?;
    let mut results = Results::default();
    servers::measure(effort, candidates, &mut results)?;
    clients::measure(effort, candidates, &mut results);
    bridge::measure(effort, candidates, &mut results)?;
    sizes::crates(candidates, &mut results)?;
    sizes::binaries(candidates, &mut results)?;
    Ok(results)
}

/// Returns the wanted candidates in the order of `all`.
fn chosen<'a>(all: &[&'a str], wanted: &[&str]) -> Vec<&'a str> {
    all.iter().copied().filter(|name| wanted.contains(name)).collect()
}

/// The directory of the bench workspace.
fn home() -> std::path::PathBuf {
    workspace::root().join("bench")
}
