//! The programs of `bench/`: building them and where they are.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{OURS, home};
use crate::workspace;

/// Programs that have been built.
#[derive(Debug)]
pub(crate) struct Programs;

impl Programs {
    /// Builds everything that these candidates need.
    pub(crate) fn build(candidates: &[&str]) -> Result<Self, String> {
        let mut packages = vec!["loadgen", "limit-server"];
        packages.extend(candidates.iter().flat_map(|candidate| packages_of(candidate)));
        if candidates.contains(&OURS) {
            build_command()?;
        }
        build(packages)
    }

    /// Builds what is needed to count these candidates.
    pub(crate) fn build_counted(candidates: &[&str]) -> Result<Self, String> {
        // Clients are counted while they speak to it.
        let mut packages = vec!["limit-server"];
        packages.extend(candidates.iter().flat_map(|candidate| packages_of(candidate)));
        build(packages)
    }

    /// Where a program is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        target().join("release").join(name)
    }

    /// The server of a candidate without HTTP, where it can be built so.
    pub(crate) fn stdio_only(&self, candidate: &str) -> PathBuf {
        match server_of(candidate) {
            name @ "limit-server" => self.path(name),
            name => self.path(&format!("{name}{STDIO_ONLY}")),
        }
    }

    /// A server over its pipes.
    pub(crate) fn stdio_server(&self, candidate: &str) -> Server {
        let mode = match candidate {
            "limit-pipe" => Some("pipe"),
            "limit-spawn" => Some("spawn"),
            _ => None,
        };
        let arguments = ["--stdio"].into_iter().chain(mode).map(str::to_owned).collect();
        self.server(candidate, arguments)
    }

    /// A server on a port.
    pub(crate) fn http_server(&self, candidate: &str, port: u16) -> Server {
        self.server(candidate, vec!["--http".to_owned(), port.to_string()])
    }

    /// Our tools that are compared with each other, over pipes.
    pub(crate) fn handlers(&self) -> Server {
        let program = self.path("bench-handlers");
        Server { program, arguments: Vec::new(), environment: &[] }
    }

    fn server(&self, candidate: &str, arguments: Vec<String>) -> Server {
        let environment: &[_] = match candidate {
            "rmcp-arc-nd" => &[("BENCH_VARIANT", "arc"), ("BENCH_NODELAY", "1")],
            "rmcp-json-nd" => &[("BENCH_VARIANT", "json"), ("BENCH_NODELAY", "1")],
            "rmcp-readme" => &[("BENCH_VARIANT", "readme")],
            _ => &[],
        };
        Server { program: self.path(server_of(candidate)), arguments, environment }
    }

    /// The driver that shows a candidate as a client over pipes, if it has one of its own.
    pub(crate) fn stdio_client(&self, candidate: &str) -> Option<Client> {
        let name = match candidate {
            "limit-pipe" => "limit-client",
            // It knows no tuned set-up over pipes, so one of rmcp's is enough.
            "rmcp-arc-nd" => "rmcp-client",
            OURS => "bench-client",
            _ => return None,
        };
        Some(Client { program: self.path(name), environment: &[] })
    }

    /// The same over HTTP.
    pub(crate) fn http_client(&self, candidate: &str) -> Option<Client> {
        let (name, environment): (_, &[_]) = match candidate {
            "limit-hyper" => ("limit-client", &[]),
            "rmcp-json-nd" => ("rmcp-client", &[("BENCH_POOL", "1"), ("BENCH_MAX_POSTS", "1024")]),
            "rmcp-readme" => ("rmcp-client", &[]),
            OURS => ("bench-client", &[]),
            _ => return None,
        };
        Some(Client { program: self.path(name), environment })
    }
}

type Environment = &'static [(&'static str, &'static str)];

/// How a candidate is started as a server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Environment,
}

/// How a candidate is started as a client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) program: PathBuf,
    pub(crate) environment: Environment,
}

/// The program that serves as this candidate.
fn server_of(candidate: &str) -> &'static str {
    match candidate {
        "limit-pipe" | "limit-spawn" | "limit-hyper" => "limit-server",
        "rmcp-arc-nd" | "rmcp-json-nd" | "rmcp-readme" => "rmcp-server",
        _ => "bench-server",
    }
}

/// Ends the names of programs that were built without HTTP.
const STDIO_ONLY: &str = "-stdio-only";

fn packages_of(candidate: &str) -> &'static [&'static str] {
    match server_of(candidate) {
        "limit-server" => &["limit-server", "limit-client"],
        "rmcp-server" => &["rmcp-server", "rmcp-client"],
        _ => &["turnbuckle-bench"],
    }
}

/// The server in a package that can also be built without HTTP.
fn without_http(package: &str) -> Option<&'static str> {
    match package {
        "turnbuckle-bench" => Some("bench-server"),
        "rmcp-server" => Some("rmcp-server"),
        _ => None,
    }
}

/// Builds one package after another: built together, each would get the features that any of them
/// asks of a shared dependency, and a candidate would no longer be what its user builds.
fn build(mut packages: Vec<&str>) -> Result<Programs, String> {
    packages.sort_unstable();
    packages.dedup();
    let programs = Programs;
    for package in packages {
        if let Some(name) = without_http(package) {
            build_apart(&programs, package, name, &[], &format!("{name}{STDIO_ONLY}"))?;
        }
        if package == "turnbuckle-bench" {
            // With everything that a client does by default.
            let client = ["--features", "validate", "--bin", "bench-client"];
            workspace::run(cargo_build(package).args(client))?;
        }
        workspace::run(&mut cargo_build(package))?;
    }
    Ok(programs)
}

/// Builds a server without HTTP and keeps it under a name of its own: the build with HTTP is about to
/// take its place.
fn build_apart(
    programs: &Programs,
    package: &str,
    name: &str,
    features: &[&str],
    kept_as: &str,
) -> Result<(), String> {
    let arguments = ["--no-default-features", "--bin", name];
    workspace::run(cargo_build(package).args(arguments).args(features))?;
    let from = programs.path(name);
    std::fs::copy(&from, programs.path(kept_as))
        .map_err(|error| format!("{} cannot be copied: {error}", from.display()))?;
    Ok(())
}

/// Builds our command, whose bridge is measured. It belongs to the SDK's own workspace.
fn build_command() -> Result<(), String> {
    workspace::run(&mut cargo_build_of(&workspace::root(), "turnbuckle-cli"))
}

fn cargo_build(package: &str) -> Command {
    cargo_build_of(&home(), package)
}

fn cargo_build_of(workspace: &Path, package: &str) -> Command {
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--package", package]);
    command.arg("--manifest-path").arg(workspace.join("Cargo.toml"));
    command.arg("--target-dir").arg(target());
    // Build scripts look at what cargo told us about ourselves, and would run again.
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("CARGO_PKG_") || shown.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Fixed, so that the paths in `candidates.toml` hold whatever the environment says.
fn target() -> PathBuf {
    home().join("target")
}
