//! `cargo xtask conformance`: runs scenarios of the official suite and compares the results with the
//! expected ones.

mod expected;
mod report;
mod suite;
mod verdict;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use self::{
    expected::Expectations,
    suite::{Role, Run, Suite},
    verdict::{Row, judge},
};
use crate::{
    common::{
        built::Built,
        process::{RunningServer, command},
    },
    workspace,
};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Run only scenarios of servers
    #[arg(long, conflicts_with = "client")]
    server: bool,
    /// Run only scenarios of clients
    #[arg(long)]
    client: bool,
    /// Run only this scenario, whether or not it is expected to pass
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Repeat that scenario and print how often it passes
    #[arg(long, value_name = "COUNT", requires = "scenario")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Also run scenarios that are not expected to pass yet; an error if one passes
    #[arg(long)]
    all: bool,
    /// Put the table into docs/conformance.md
    #[arg(long, requires = "all", conflicts_with_all = ["server", "client", "scenario"])]
    write: bool,
}

impl Options {
    fn chooses(&self, run: &Run, expectations: &Expectations) -> bool {
        let is_chosen = match &self.scenario {
            Some(name) => *name == run.scenario,
            None => self.all || !expectations.is_not_yet(run),
        };
        is_chosen
            && match run.role {
                Role::Server => !self.client,
                Role::Client => !self.server,
            }
    }
}

/// How long everything may take after the installation.
const TOTAL: Duration = Duration::from_secs(20 * 60);

/// Installs the Node that `conformance/package-lock.json` pins and returns its path.
pub(crate) fn node(root: &Path) -> Result<PathBuf, String> {
    Suite::install(root).map(|suite| suite.node)
}

/// Runs the suite; the error says which scenarios did not end as expected.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let root = workspace::root();
    let expectations = Expectations::read(&root.join("conformance/not-yet.toml"))?;
    let suite = Suite::install(&root)?;
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", "turnbuckle-conformance", "--bins"]);
    let built = Built::build(&mut cargo)?;
    let (server, client) =
        (built.program("everything-server")?, built.program("everything-client")?);
    let deadline = Instant::now() + TOTAL;
    let runs = suite.runs()?;
    let mut surprises = expectations.unknown(&runs);
    let chosen: Vec<&Run> = runs.iter().filter(|run| options.chooses(run, &expectations)).collect();
    if chosen.is_empty() {
        return Err("the suite has no such scenario".to_owned());
    }
    suite.forget_results()?;
    let server = match chosen.iter().any(|run| run.role == Role::Server) {
        true => Some(RunningServer::start(&mut command(&server))?),
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
            client: &client,
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
    Err(format!("{}\nresults: {}", surprises.join("\n"), suite.results.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_runs() {
        let expectations = Expectations::parse(
            "[[not-yet]]\nrole = \"server\"\nrevisions = [\"r\"]\nreason = \"no\"\nscenarios = [\"later\"]\n",
        )
        .unwrap();
        let run = |role, scenario: &str| Run {
            role,
            scenario: scenario.to_owned(),
            revision: "r".to_owned(),
        };
        let chooses = |options: &Options, run: &Run| options.chooses(run, &expectations);
        let (now, later) = (run(Role::Server, "now"), run(Role::Server, "later"));
        let default = Options::default();
        assert!(chooses(&default, &now) && !chooses(&default, &later));
        // The same name in the other role is another scenario.
        assert!(chooses(&default, &run(Role::Client, "later")));
        let all = Options { all: true, ..Options::default() };
        assert!(chooses(&all, &now) && chooses(&all, &later));
        let one = Options { scenario: Some("later".to_owned()), ..Options::default() };
        assert!(chooses(&one, &later) && !chooses(&one, &now));
        let client = Options { client: true, ..Options::default() };
        assert!(!chooses(&client, &now));
    }
}
