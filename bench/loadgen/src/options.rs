//! The command line.

use crate::Outcome;
use crate::candidate::{Candidate, candidates_of};
use crate::message::Era;

/// Where the server runs, when pinned.
pub(crate) const SERVER_CPU: usize = 0;
/// Where we run, when pinned.
pub(crate) const LOADGEN_CPU: usize = 1;

const USAGE: &str = "\
usage: loadgen --scenarios A,B,…  [--config FILE] [--only NAME,…]
               [--http NAME='COMMAND … {port}'] [--stdio NAME='COMMAND …'] [--url NAME=URL@PID]
               [--era modern|legacy] [--rounds N] [--secs S] [--warm S] [--tools N]
               [--no-pin] [--max-other PERCENT] [--retries N]
       loadgen --pin CPU COMMAND …    runs the command on one processor

  http-echo:C http-add:C http-large:C http-list:C      C connections, each in a closed loop
  http-progress:N http-cancel:N http-listen:N http-smoke
  stdio-echo:W stdio-add:W stdio-large:W stdio-list:W  W requests in flight
  stdio-progress:N stdio-cancel:N stdio-listen:N stdio-cold:K stdio-smoke";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) scenarios: Vec<String>,
    pub(crate) era: Era,
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    pub(crate) warm_up: f64,
    /// Tools of the server in the `*-list` scenarios.
    pub(crate) tools: usize,
    pub(crate) pinned: bool,
    /// A measurement is repeated when others used more than so many percent of the machine,
    pub(crate) max_other: f64,
    /// at most so many times.
    pub(crate) retries: usize,
}

impl Options {
    pub(crate) fn parse(words: Vec<String>) -> Outcome<Self> {
        let mut options = Self {
            candidates: Vec::new(),
            scenarios: Vec::new(),
            era: Era::Modern,
            rounds: 1,
            seconds: 3.0,
            warm_up: 0.5,
            tools: 1000,
            // Two processors are needed to keep server and generator apart.
            pinned: std::thread::available_parallelism().is_ok_and(|count| count.get() > 1),
            max_other: 8.0,
            retries: 3,
        };
        let mut only = None;
        let mut words = words.into_iter();
        while let Some(option) = words.next() {
            if option == "--no-pin" {
                options.pinned = false;
                continue;
            }
            let value = words.next().ok_or(USAGE)?;
            match option.as_str() {
                "--config" => {
                    options.candidates.extend(candidates_of(&std::fs::read_to_string(value)?)?);
                }
                "--http" => options.candidates.push(named(&value, Candidate::over_http)?),
                "--stdio" => options.candidates.push(named(&value, Candidate::over_stdio)?),
                "--url" => options.candidates.push(named(&value, Candidate::at_url)?),
                "--scenarios" => options.scenarios = list(&value),
                "--only" => only = Some(list(&value)),
                "--era" => options.era = Era::parse(&value).ok_or(USAGE)?,
                "--rounds" => options.rounds = value.parse()?,
                "--secs" => options.seconds = value.parse()?,
                "--warm" => options.warm_up = value.parse()?,
                "--tools" => options.tools = value.parse()?,
                "--max-other" => options.max_other = value.parse()?,
                "--retries" => options.retries = value.parse()?,
                _ => return Err(USAGE.into()),
            }
        }
        if let Some(only) = only {
            options.candidates.retain(|candidate| only.contains(&candidate.name));
        }
        if options.candidates.is_empty() || options.scenarios.is_empty() {
            return Err(USAGE.into());
        }
        Ok(options)
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).collect()
}

fn named(value: &str, build: fn(&str, &str) -> Candidate) -> Outcome<Candidate> {
    let (name, rest) = value.split_once('=').ok_or(USAGE)?;
    Ok(build(name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Outcome<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn candidates_and_scenarios_are_needed() {
        assert!(parse("--scenarios stdio-echo:1").is_err());
        assert!(parse("--stdio a=server").is_err());
        let options = parse("--stdio a=server --scenarios stdio-echo:1,stdio-echo:64").unwrap();
        assert_eq!(options.scenarios, ["stdio-echo:1", "stdio-echo:64"]);
    }

    #[test]
    fn only_filters_every_candidate() {
        let line = "--stdio a=x --stdio b=y --url c=http://h/mcp@7 --scenarios s --only a,c";
        let names: Vec<String> =
            parse(line).unwrap().candidates.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["a", "c"]);
    }
}
