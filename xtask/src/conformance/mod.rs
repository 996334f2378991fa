//! `cargo xtask conformance`: which scenarios of the official suite are run, and whether what came
//! out is what was expected.

mod expected;
mod fixtures;
mod install;
mod report;
mod suite;
mod verdict;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use self::{
    expected::Expectations,
    fixtures::Fixtures,
    suite::{Role, Run, Suite},
    verdict::{Row, judge},
};
use crate::workspace;

const USAGE: &str = "\
usage: cargo xtask conformance [--server|--client] [--scenario NAME] [--repeat COUNT] [--all] [--write]

  --server, --client   only scenarios of this role
  --scenario NAME      only this one, whether or not it is expected to pass
  --repeat COUNT       each run of that scenario so often; says how many passed
  --all                also what is not expected to pass yet; an error if it does
  --write              put the table into docs/conformance.md; needs --all and both roles";

/// How long everything may take after the installation.
const TOTAL: Duration = Duration::from_secs(20 * 60);

/// The Node that `conformance/package-lock.json` pins.
pub(crate) fn node(root: &Path) -> Result<PathBuf, String> {
    install::install(root).map(|installed| installed.node)
}

/// Runs the suite; the error says which scenarios did not end as expected.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let root = workspace::root();
    let expectations = Expectations::read(&root.join("conformance/not-yet.toml"))?;
    let suite = Suite::new(install::install(&root)?);
    let fixtures = Fixtures::build()?;
    let deadline = Instant::now() + TOTAL;
    let runs = suite.runs()?;
    let mut surprises = expectations.unknown(&runs);
    let chosen: Vec<&Run> = runs.iter().filter(|run| options.chooses(run, &expectations)).collect();
    if chosen.is_empty() {
        return Err("the suite has no such scenario".to_owned());
    }
    suite.forget_results()?;
    let server = match chosen.iter().any(|run| run.role == Role::Server) {
        true => Some(fixtures.serve()?),
        false => None,
    };
    let mut rows = Vec::new();
    let attempts: Vec<(&Run, u32)> = chosen
        .iter()
        .flat_map(|run| (1..=options.repeat.unwrap_or(1)).map(move |attempt| (*run, attempt)))
        .collect();
    for (index, (run, attempt)) in attempts.iter().enumerate() {
        eprint!("[{}/{}] {run}: ", index + 1, attempts.len());
        let target = suite::Target {
            client: &fixtures.client,
            url: server.as_ref().map_or("", |server| server.url.as_str()),
        };
        let outcome = suite.run(run, *attempt, target, deadline)?;
        let verdict = judge(run, expectations.of(run), &outcome);
        eprintln!("{}", report::word(&verdict));
        rows.push(Row { run: (*run).clone(), verdict, outcome });
    }
    drop(server);
    match options.repeat {
        Some(_) => print!("{}", report::tally(&rows)),
        None => print!("{}", report::table(&rows)),
    }
    surprises.extend(report::surprises(&rows));
    if options.write {
        report::write_page(&root.join("docs/conformance.md"), &rows)?;
    }
    if surprises.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nresults: {}", surprises.join("\n"), suite.results().display()))
}

#[derive(Debug, Default, PartialEq)]
struct Options {
    role: Option<Role>,
    scenario: Option<String>,
    repeat: Option<u32>,
    all: bool,
    write: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--server" if options.role.is_none() => options.role = Some(Role::Server),
                "--client" if options.role.is_none() => options.role = Some(Role::Client),
                "--scenario" => {
                    options.scenario = Some(words.next().ok_or(USAGE)?.to_owned());
                }
                "--repeat" => {
                    let count = words.next().and_then(|word| word.parse().ok());
                    options.repeat = Some(count.filter(|count| *count > 0).ok_or(USAGE)?);
                }
                "--all" => options.all = true,
                "--write" => options.write = true,
                _ => return Err(USAGE.to_owned()),
            }
        }
        let whole = options.all && options.role.is_none() && options.scenario.is_none();
        let repeats_all = options.repeat.is_some() && options.scenario.is_none();
        if (options.write && !whole) || repeats_all {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn chooses(&self, run: &Run, expectations: &Expectations) -> bool {
        let named = match &self.scenario {
            Some(name) => *name == run.scenario,
            None => self.all || !expectations.is_not_yet(run),
        };
        named && self.role.is_none_or(|role| role == run.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_say_what_is_run() {
        let expectations = Expectations::parse(
            "[[not-yet]]\nrole = \"server\"\nrevisions = [\"r\"]\nreason = \"no\"\nscenarios = [\"later\"]\n",
        )
        .unwrap();
        let run = |role, scenario: &str| Run {
            role,
            scenario: scenario.to_owned(),
            revision: "r".to_owned(),
        };
        let chooses = |line: &str, run: &Run| options(line).unwrap().chooses(run, &expectations);
        let (now, later) = (run(Role::Server, "now"), run(Role::Server, "later"));
        assert!(chooses("", &now) && !chooses("", &later));
        assert!(chooses("--all", &now) && chooses("--all", &later));
        assert!(chooses("--scenario later", &later) && !chooses("--scenario later", &now));
        assert!(chooses("--server", &now) && !chooses("--client", &now));
        // The same name in the other role is another scenario.
        assert!(chooses("", &run(Role::Client, "later")));
    }

    #[test]
    fn wrong_options_are_refused() {
        for line in ["--scenario", "--server --client", "--write", "--write --all --client", "-x"] {
            assert!(options(line).is_err(), "{line}");
        }
        for line in ["--repeat 3", "--scenario a --repeat", "--scenario a --repeat 0"] {
            assert!(options(line).is_err(), "{line}");
        }
        assert_eq!(options("--scenario a --repeat 50").unwrap().repeat, Some(50));
        assert!(options("--all --write").is_ok());
    }
}
