//! The command line of the suite: its list of scenarios, one run, and the results.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde::Deserialize;

use crate::{
    common::{
        files::{create, read, read_all},
        named, npm,
        process::{self, file},
    },
    workspace,
};

/// The revisions whose wires differ; a scenario that is older runs on the first.
const STATEFUL: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

/// The suite gives a scenario 30 seconds.
const ONE: Duration = Duration::from_secs(45);

named! {
    /// The side that a scenario tests.
    Role {
        Server = "server",
        Client = "client",
    }
}

/// One scenario on one revision's wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) role: Role,
    pub(crate) scenario: String,
    pub(crate) revision: String,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.role, self.scenario, self.revision)
    }
}

/// The programs under test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) client: &'a Path,
    pub(crate) url: &'a str,
}

/// One check of a scenario, as the suite's result file has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Check {
    /// Unlike the check's id, no two have the same.
    pub(crate) name: String,
    pub(crate) status: Status,
    #[serde(default, rename = "errorMessage")]
    pub(crate) message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Status {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// `None` without a result file.
    pub(crate) checks: Option<Vec<Check>>,
    /// `None` if the suite took too long or was killed.
    pub(crate) exit: Option<i32>,
    /// The suite's message about the end of the client.
    pub(crate) client_complaint: Option<String>,
}

/// The installed suite.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) node: PathBuf,
    program: PathBuf,
    /// Where each run leaves a folder.
    pub(crate) results: PathBuf,
}

impl Suite {
    /// Installs the packages of `conformance/package-lock.json`, unless that has been done.
    pub(crate) fn install(root: &Path) -> Result<Suite, String> {
        let home = root.join("target/conformance");
        npm::install(&root.join("conformance"), &home, "the conformance suite")?;
        Ok(Suite {
            node: home.join("node_modules/node/bin/node"),
            program: home.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"),
            results: home.join("results"),
        })
    }

    /// Removes earlier results.
    pub(crate) fn forget_results(&self) -> Result<(), String> {
        // The folder may not exist yet.
        let _ = fs::remove_dir_all(&self.results);
        create(&self.results)
    }

    /// Returns all runs of the suite.
    pub(crate) fn runs(&self) -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        for role in [Role::Server, Role::Client] {
            let mut command = Command::new(&self.node);
            command.arg(&self.program).args(["list", &format!("--{role}")]);
            let list = workspace::output(&mut command)?;
            runs.extend(list.lines().filter_map(parse_line).flat_map(|(scenario, revisions)| {
                wires(role, revisions).iter().map(move |revision| Run {
                    role,
                    scenario: scenario.to_owned(),
                    revision: (*revision).to_owned(),
                })
            }));
        }
        if runs.is_empty() { Err("the suite lists no scenarios".to_owned()) } else { Ok(runs) }
    }

    /// Runs one scenario alone: only then does the suite check the exit of the client. Each attempt
    /// has a folder of its own.
    pub(crate) fn run(
        &self,
        run: &Run,
        attempt: u32,
        target: Target<'_>,
        deadline: Instant,
    ) -> Result<Outcome, String> {
        let deadline = deadline.min(Instant::now() + ONE);
        let folder = self.results.join(folder_name(run, attempt));
        create(&folder)?;
        let mut command = process::command(&self.node);
        command.arg(&self.program).env("NO_COLOR", "1");
        command.args([run.role.to_string().as_str(), "--scenario", &run.scenario]);
        // Forced, because an extension belongs to no revision.
        command.args(["--spec-version", &run.revision, "--force", "--output-dir"]).arg(&folder);
        match run.role {
            Role::Server => command.args(["--url", target.url]),
            // The suite splits the command at spaces, which a path may have.
            Role::Client => command
                .current_dir(target.client.parent().unwrap_or(Path::new(".")))
                .args(["--command", &format!("./{}", file_name(target.client))]),
        };
        let log = folder.join("suite.log");
        let stdout = file(&log)?;
        let stderr = stdout.try_clone().map_err(|error| error.to_string())?;
        let status = process::run_until(&mut command, stdout, stderr, deadline)?;
        // The suite names the folder of its results after the scenario and the time.
        let results = read_all(&folder, "", "json")?;
        let checks = results.iter().find(|(path, _)| path.ends_with("checks.json"));
        let checks = checks.map(|(_, text)| parse_checks(text)).transpose()?;
        let client_complaint = complaint(&read(&log)?);
        Ok(Outcome { checks, exit: status.and_then(|status| status.code()), client_complaint })
    }
}

fn folder_name(run: &Run, attempt: u32) -> String {
    let name = run.to_string().replace(['/', ' '], ".");
    if attempt == 1 { name } else { format!("{name}.{attempt}") }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A line of the list: `  - name [revision,revision]`.
fn parse_line(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.trim().strip_prefix("- ")?.split_once(" [")?;
    Some((name, rest.strip_suffix(']')?))
}

/// The wires on which a scenario of these revisions runs.
fn wires(role: Role, revisions: &str) -> &'static [&'static str] {
    let stateless = revisions.split(',').any(|revision| revision == STATELESS);
    let stateful = revisions.split(',').any(|revision| revision < STATELESS);
    match (role, revisions) {
        (Role::Server, "extension") => &[STATELESS],
        (Role::Client, "extension") => &[STATEFUL, STATELESS],
        _ if stateful && stateless => &[STATEFUL, STATELESS],
        _ if stateless => &[STATELESS],
        _ => &[STATEFUL],
    }
}

fn parse_checks(text: &str) -> Result<Vec<Check>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("the suite's checks are unreadable: {error}"))
}

/// No result file has the client's exit code.
fn complaint(log: &str) -> Option<String> {
    let told = ["Client exited with code ", "Client timed out after "];
    log.lines().find(|line| told.iter().any(|told| line.starts_with(told))).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_runs_on_each_wire_that_its_revisions_have() {
        let both: &[&str] = &[STATEFUL, STATELESS];
        assert_eq!(wires(Role::Server, "2025-06-18,2025-11-25,2026-07-28"), both);
        assert_eq!(wires(Role::Server, "2026-07-28"), [STATELESS]);
        assert_eq!(wires(Role::Client, "2025-03-26"), [STATEFUL]);
        assert_eq!(wires(Role::Server, "extension"), [STATELESS]);
        assert_eq!(wires(Role::Client, "extension"), both);
    }

    #[test]
    fn checks_are_read_from_the_result_file() {
        let text = r#"[{"id":"a","name":"A","status":"SUCCESS","timestamp":"t"},
            {"id":"a","name":"B","status":"WARNING","errorMessage":"should"}]"#;
        let checks = parse_checks(text).unwrap();
        assert_eq!(checks[0].status, Status::Success);
        assert_eq!(checks[1].name, "B");
        assert_eq!(checks[1].message.as_deref(), Some("should"));
        // An unknown status is an error.
        assert!(parse_checks(r#"[{"name":"A","status":"MAYBE"}]"#).is_err());
    }

    #[test]
    fn the_log_says_how_the_client_ended() {
        let log = "Starting scenario: x\n\nClient exited with code 101\n\nStderr:\nboom";
        assert_eq!(complaint(log).as_deref(), Some("Client exited with code 101"));
        assert_eq!(complaint("Passed: 3/3"), None);
    }
}
