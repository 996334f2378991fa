//! Owns: what can be measured and how it is started. Does not own: what is measured.

use std::collections::BTreeMap;
use std::process::Stdio;

use bench_util::process;
use tokio::process::{Child, Command};

use crate::Outcome;
use crate::options::{LOADGEN_CPU, Options, SERVER_CPU};

/// A server under test.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    /// The command that serves HTTP; `{port}` is replaced.
    pub(crate) http: Vec<String>,
    /// The command that serves stdin and stdout.
    pub(crate) stdio: Vec<String>,
    /// A server that runs already, instead of `http`.
    pub(crate) url: Option<String>,
    /// The process of that server.
    pub(crate) pid: Option<u32>,
    /// Where its endpoint is, unless at `/mcp`.
    pub(crate) path: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// Scenarios that it cannot run, by the beginning of their names.
    pub(crate) skip: Vec<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    candidate: Vec<Candidate>,
}

/// Reads a file of candidates.
pub(crate) fn candidates_of(text: &str) -> Outcome<Vec<Candidate>> {
    Ok(toml::from_str::<Config>(text)?.candidate)
}

impl Candidate {
    pub(crate) fn over_http(name: &str, command: &str) -> Self {
        Self { name: name.to_owned(), http: words(command), ..Self::default() }
    }

    pub(crate) fn over_stdio(name: &str, command: &str) -> Self {
        Self { name: name.to_owned(), stdio: words(command), ..Self::default() }
    }

    pub(crate) fn at_url(name: &str, place: &str) -> Self {
        let (url, pid) = place.rsplit_once('@').unwrap_or((place, ""));
        let pid = pid.parse().ok();
        Self { name: name.to_owned(), url: Some(url.to_owned()), pid, ..Self::default() }
    }

    /// Whether the scenario is for this candidate.
    pub(crate) fn runs(&self, scenario: &str) -> bool {
        let has_wire = if scenario.starts_with("http") {
            self.url.is_some() || !self.http.is_empty()
        } else {
            !self.stdio.is_empty()
        };
        has_wire && !self.skip.iter().any(|prefix| scenario.starts_with(prefix))
    }

    /// Starts the command over its pipes.
    pub(crate) fn spawn_stdio(&self, options: &Options, tools: usize) -> std::io::Result<Child> {
        let mut command = self.command(&self.stdio, tools);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        spawn(&mut command, options)
    }

    /// Starts the command on a port.
    pub(crate) fn spawn_http(
        &self,
        options: &Options,
        tools: usize,
        port: u16,
    ) -> std::io::Result<Child> {
        let port = port.to_string();
        let line: Vec<String> =
            self.http.iter().map(|word| word.replace("{port}", &port)).collect();
        let mut command = self.command(&line, tools);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        spawn(&mut command, options)
    }

    fn command(&self, line: &[String], tools: usize) -> Command {
        let shown = std::env::var_os("BENCH_STDERR").is_some();
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .envs(&self.env)
            .env("BENCH_TOOLS", tools.to_string())
            .stderr(if shown { Stdio::inherit() } else { Stdio::null() })
            .kill_on_drop(true);
        command
    }
}

/// A child inherits the processor of the thread that starts it, so we go there and come back.
fn spawn(command: &mut Command, options: &Options) -> std::io::Result<Child> {
    if !options.pinned {
        return command.spawn();
    }
    process::pin_to(SERVER_CPU);
    let child = command.spawn();
    process::pin_to(LOADGEN_CPU);
    child
}

fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_runs_what_its_wires_allow() {
        let text = "[[candidate]]\nname = \"a\"\nstdio = [\"a\"]\nskip = [\"stdio-list\"]\n";
        let candidate = candidates_of(text).unwrap().remove(0);
        assert!(candidate.runs("stdio-echo:1"));
        assert!(!candidate.runs("stdio-list:8"));
        assert!(!candidate.runs("http-echo:1"));
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        assert!(candidates_of("[[candidate]]\nname = \"a\"\nstdoi = [\"a\"]\n").is_err());
    }
}
