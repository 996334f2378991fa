//! Owns: the programs of `bench/`: building them and where they are. Does not own: running them.

use std::path::PathBuf;

use super::{OURS, home};
use crate::workspace;

/// Programs that have been built.
#[derive(Debug)]
pub(crate) struct Programs;

impl Programs {
    /// Builds everything that these candidates need.
    pub(crate) fn build(candidates: &[String]) -> Result<Self, String> {
        let mut packages = vec!["loadgen", "limit-server"];
        packages.extend(candidates.iter().flat_map(|candidate| packages_of(candidate)));
        build(packages)
    }

    /// Builds the candidates and nothing to drive them.
    pub(crate) fn build_servers(candidates: &[String]) -> Result<Self, String> {
        build(candidates.iter().flat_map(|candidate| packages_of(candidate)).copied().collect())
    }

    /// Where a program is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        target().join("release").join(name)
    }

    /// A server over its pipes: the program, its arguments, its environment.
    pub(crate) fn server(&self, candidate: &str) -> Server {
        let (program, arguments, variant) = match candidate {
            "limit-pipe" => ("limit-server", vec!["--stdio", "pipe"], None),
            "limit-spawn" => ("limit-server", vec!["--stdio", "spawn"], None),
            "rmcp-arc-nd" => ("rmcp-server", vec!["--stdio"], Some("arc")),
            "rmcp-readme" => ("rmcp-server", vec!["--stdio"], Some("readme")),
            _ => ("bench-server", vec!["--stdio"], None),
        };
        Server { program: self.path(program), arguments, variant }
    }

    /// The driver that shows a candidate as a client, if it has one of its own.
    pub(crate) fn client(&self, candidate: &str) -> Option<PathBuf> {
        match candidate {
            "limit-pipe" => Some(self.path("limit-client")),
            "rmcp-arc-nd" => Some(self.path("rmcp-client")),
            OURS => Some(self.path("bench-client")),
            _ => None,
        }
    }
}

/// How a candidate serves its pipes.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<&'static str>,
    /// What `BENCH_VARIANT` must be.
    pub(crate) variant: Option<&'static str>,
}

fn packages_of(candidate: &str) -> &'static [&'static str] {
    match candidate {
        "limit-pipe" | "limit-spawn" => &["limit-server", "limit-client"],
        "rmcp-arc-nd" | "rmcp-readme" => &["rmcp-server", "rmcp-client"],
        _ => &["turnbuckle-bench"],
    }
}

/// Builds one package after another: built together, each would get the features that any of them
/// asks of a shared dependency, and a candidate would no longer be what its user builds.
fn build(mut packages: Vec<&str>) -> Result<Programs, String> {
    packages.sort_unstable();
    packages.dedup();
    for package in packages {
        let mut command = workspace::cargo();
        command.args(["build", "--release", "--package", package]);
        command.arg("--manifest-path").arg(home().join("Cargo.toml"));
        command.arg("--target-dir").arg(target());
        workspace::run(&mut command)?;
    }
    Ok(Programs)
}

/// Fixed, so that the paths in `candidates.toml` hold whatever the environment says.
fn target() -> PathBuf {
    home().join("target")
}
