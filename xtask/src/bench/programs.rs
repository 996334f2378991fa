//! The programs of `bench/`: builds, paths and commands.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{OURS, home};
use crate::workspace;

/// The end of the names of programs that are built without HTTP.
const STDIO_ONLY: &str = "-stdio-only";

/// Builds the programs to measure these candidates.
pub(crate) fn build(candidates: &[&str]) -> Result<(), String> {
    if candidates.contains(&OURS) {
        // For the bridge. The command belongs to the SDK's own workspace.
        workspace::run(&mut cargo_build_of(&workspace::root(), "turnbuckle-cli"))?;
    }
    build_packages(candidates, &["loadgen", "limit-server"])
}

/// Builds the programs to count these candidates.
pub(crate) fn build_counted(candidates: &[&str]) -> Result<(), String> {
    // Clients are counted while they call it.
    build_packages(candidates, &["limit-server"])
}

/// Returns the path of a program.
pub(crate) fn path(name: &str) -> PathBuf {
    target().join("release").join(name)
}

/// Returns the path of a candidate's server.
pub(crate) fn server(candidate: &str) -> PathBuf {
    path(server_of(candidate))
}

/// Returns the path of a candidate's server without HTTP, if it can be built without it.
pub(crate) fn stdio_only(candidate: &str) -> PathBuf {
    match server_of(candidate) {
        name @ "limit-server" => path(name),
        name => path(&format!("{name}{STDIO_ONLY}")),
    }
}

/// Returns the command of a server over stdio.
pub(crate) fn stdio_server(candidate: &str) -> Command {
    let mut command = server_command(candidate);
    command.arg("--stdio");
    match candidate {
        "limit-pipe" => command.arg("pipe"),
        "limit-spawn" => command.arg("spawn"),
        _ => &mut command,
    };
    command
}

/// Returns the command of a server on a port.
pub(crate) fn http_server(candidate: &str, port: u16) -> Command {
    let mut command = server_command(candidate);
    command.args(["--http", &port.to_string()]);
    command
}

fn server_command(candidate: &str) -> Command {
    let mut command = Command::new(server(candidate));
    match candidate {
        "rmcp-arc-nd" => command.envs([("BENCH_VARIANT", "arc"), ("BENCH_NODELAY", "1")]),
        "rmcp-json-nd" => command.envs([("BENCH_VARIANT", "json"), ("BENCH_NODELAY", "1")]),
        "rmcp-readme" => command.env("BENCH_VARIANT", "readme"),
        _ => &mut command,
    };
    command
}

/// Returns the driver of a candidate as a client over stdio, if there is one.
pub(crate) fn stdio_client(candidate: &str) -> Option<Command> {
    let name = match candidate {
        "limit-pipe" => "limit-client",
        // Its set-ups do not differ over stdio.
        "rmcp-arc-nd" => "rmcp-client",
        OURS => "bench-client",
        _ => return None,
    };
    Some(Command::new(path(name)))
}

/// Returns the driver of a candidate as a client over HTTP, if there is one.
pub(crate) fn http_client(candidate: &str) -> Option<Command> {
    let name = match candidate {
        "limit-hyper" => "limit-client",
        "rmcp-json-nd" | "rmcp-readme" => "rmcp-client",
        OURS => "bench-client",
        _ => return None,
    };
    let mut command = Command::new(path(name));
    if candidate == "rmcp-json-nd" {
        command.envs([("BENCH_POOL", "1"), ("BENCH_MAX_POSTS", "1024")]);
    }
    Some(command)
}

/// Returns the name of the program that serves as this candidate.
fn server_of(candidate: &str) -> &'static str {
    match candidate {
        "limit-pipe" | "limit-spawn" | "limit-hyper" => "limit-server",
        "rmcp-arc-nd" | "rmcp-json-nd" | "rmcp-readme" => "rmcp-server",
        _ => "bench-server",
    }
}

/// Builds one package after another: built together, each would get the features that any of them
/// asks of a shared dependency, and would differ from a user's build.
fn build_packages(candidates: &[&str], others: &[&str]) -> Result<(), String> {
    let mut packages = others.to_vec();
    for candidate in candidates {
        packages.extend(match server_of(candidate) {
            "limit-server" => ["limit-server", "limit-client"].as_slice(),
            "rmcp-server" => &["rmcp-server", "rmcp-client"],
            _ => &["turnbuckle-bench"],
        });
    }
    packages.sort_unstable();
    packages.dedup();
    for package in packages {
        match package {
            "turnbuckle-bench" => {
                build_stdio_only(package, "bench-server")?;
                // With everything that a client does by default.
                let client = ["--features", "validate", "--bin", "bench-client"];
                workspace::run(cargo_build(package).args(client))?;
            }
            "rmcp-server" => build_stdio_only(package, package)?,
            _ => {}
        }
        workspace::run(&mut cargo_build(package))?;
    }
    Ok(())
}

/// Builds a server without HTTP and copies it, because the build with HTTP replaces it.
fn build_stdio_only(package: &str, name: &str) -> Result<(), String> {
    workspace::run(cargo_build(package).args(["--no-default-features", "--bin", name]))?;
    let from = path(name);
    std::fs::copy(&from, path(&format!("{name}{STDIO_ONLY}")))
        .map_err(|error| format!("{} cannot be copied: {error}", from.display()))?;
    Ok(())
}

fn cargo_build(package: &str) -> Command {
    cargo_build_of(&home(), package)
}

fn cargo_build_of(workspace: &Path, package: &str) -> Command {
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--package", package]);
    command.arg("--manifest-path").arg(workspace.join("Cargo.toml"));
    command.arg("--target-dir").arg(target());
    // Build scripts depend on the variables that cargo set for this program, and would run again.
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("CARGO_PKG_") || shown.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Independent of the environment, so that the paths in `candidates.toml` hold.
fn target() -> PathBuf {
    home().join("target")
}
