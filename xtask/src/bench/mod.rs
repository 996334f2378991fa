//! The options of `cargo xtask bench` and the order of its steps.

mod bridge;
mod builds;
mod child;
mod clients;
mod count;
mod programs;
mod report;
mod results;
mod rows;
mod servers;
mod sizes;
mod wire;

use self::{programs::Programs, results::Results};
use crate::workspace;

/// Our own candidate.
const OURS: &str = "turnbuckle";

/// The candidates of a run, in the order in which they take turns.
const CANDIDATES: &[&str] = &[
    "limit-pipe",
    "limit-spawn",
    "limit-hyper",
    "rmcp-arc-nd",
    "rmcp-json-nd",
    "rmcp-readme",
    OURS,
];

/// How much is measured.
#[derive(Clone, Debug, PartialEq)]
struct Effort {
    rounds: usize,
    seconds: f64,
    /// How often a measurement is repeated because others used the machine.
    retries: usize,
}

#[derive(Debug, PartialEq)]
enum Task {
    /// Times and sizes, into the page.
    Measure(Effort),
    /// The same in little time, only shown.
    Glance(Effort),
    /// Counts of every candidate, into the page.
    Count,
    /// Counts of ours, which may fail the build.
    Gate,
    /// The cost of builds, into the page.
    Build,
}

#[derive(Debug, PartialEq)]
struct Options {
    task: Task,
    candidates: Vec<String>,
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let options = parse(words)?;
    match &options.task {
        Task::Measure(effort) => {
            let results = measure(effort, &options.candidates)?;
            let page = report::times(&results, effort.rounds);
            report::write_section("times", &page)?;
            results.check()
        }
        Task::Glance(effort) => {
            let results = measure(effort, &options.candidates)?;
            println!("{}", report::times(&results, effort.rounds));
            results.check()
        }
        Task::Count => {
            let programs = Programs::build_counted(&options.candidates)?;
            let results = count::all(&programs, &options.candidates)?;
            report::write_section("counts", &report::counts(&results))?;
            results.check()
        }
        Task::Build => report::write_section("builds", &builds::measure()?),
        Task::Gate => {
            let ours = [OURS.to_owned()];
            let programs = Programs::build_counted(&ours)?;
            let mut results = count::all(&programs, &ours)?;
            sizes::crates(&ours, &mut results)?;
            sizes::binaries(&programs, &ours, &mut results)?;
            println!("{}", report::gated(&results));
            rows::gate(&results)
        }
    }
}

fn measure(effort: &Effort, candidates: &[String]) -> Result<Results, String> {
    let programs = Programs::build(candidates)?;
    let mut results = Results::default();
    servers::measure(&programs, effort, candidates, &mut results)?;
    clients::measure(&programs, effort, candidates, &mut results);
    bridge::measure(&programs, effort, candidates, &mut results)?;
    sizes::crates(candidates, &mut results)?;
    sizes::binaries(&programs, candidates, &mut results)?;
    Ok(results)
}

fn parse(words: &[String]) -> Result<Options, String> {
    let (mut quick, mut count, mut gate, mut build) = (false, false, false, false);
    let mut rounds = None;
    let mut candidates: Vec<String> = CANDIDATES.iter().map(|name| (*name).to_owned()).collect();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--quick" => quick = true,
            "--count" => count = true,
            "--gate" => gate = true,
            "--build" => build = true,
            "--rounds" => {
                let value = value()?;
                let number =
                    value.parse().map_err(|_| format!("{value} is no number of rounds"))?;
                rounds = Some(number);
            }
            "--only" => {
                let wanted: Vec<&str> = value()?.split(',').collect();
                if let Some(unknown) = wanted.iter().find(|name| !CANDIDATES.contains(name)) {
                    let known = CANDIDATES.join(", ");
                    return Err(format!("there is no candidate {unknown}, only {known}"));
                }
                candidates.retain(|name| wanted.contains(&name.as_str()));
            }
            _ => return Err(format!("bench does not know {word}")),
        }
    }
    let task = match (quick, count, gate, build) {
        (false, true, true, false) => Task::Gate,
        (false, true, false, false) => Task::Count,
        (false, false, false, true) => Task::Build,
        (true, false, false, false) => {
            Task::Glance(Effort { rounds: rounds.unwrap_or(1), seconds: 0.5, retries: 0 })
        }
        (false, false, false, false) => {
            Task::Measure(Effort { rounds: rounds.unwrap_or(3), seconds: 2.0, retries: 3 })
        }
        _ => return Err("--gate goes with --count; --quick and --build go with neither".to_owned()),
    };
    Ok(Options { task, candidates })
}

/// Those of `all` that were asked for.
fn chosen<'a>(all: &[&'a str], wanted: &[String]) -> Vec<&'a str> {
    all.iter().copied().filter(|name| wanted.iter().any(|one| one == name)).collect()
}

/// The directory of the bench workspace.
fn home() -> std::path::PathBuf {
    workspace::root().join("bench")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_options_choose_the_task() {
        assert!(matches!(options("").unwrap().task, Task::Measure(_)));
        assert!(matches!(options("--quick").unwrap().task, Task::Glance(_)));
        assert_eq!(options("--count").unwrap().task, Task::Count);
        assert_eq!(options("--count --gate").unwrap().task, Task::Gate);
        assert_eq!(options("--build").unwrap().task, Task::Build);
        assert!(options("--gate").is_err());
        assert!(options("--build --quick").is_err());
        assert!(options("--quick --count").is_err());
        assert!(options("--fast").is_err());
    }

    #[test]
    fn only_takes_known_candidates_in_their_order() {
        let options_of = options("--rounds 5 --only turnbuckle,limit-pipe").unwrap();
        assert_eq!(options_of.candidates, ["limit-pipe", "turnbuckle"]);
        assert!(matches!(options_of.task, Task::Measure(Effort { rounds: 5, .. })));
        assert!(options("--only nobody").unwrap_err().contains("nobody"));
    }
}
