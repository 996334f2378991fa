//! `cargo xtask hostile` and `cargo xtask soak`: build the `turnbuckle` command and the program in
//! `hostile/` that attacks it or puts it under load, and run them.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    common::{
        built::Built,
        process::{self, Family},
    },
    workspace,
};

/// The longest run.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Leave out attacks and sizes that take long
    #[arg(long)]
    quick: bool,
    /// The seed of attacks with random bytes
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run only attacks whose name contains this text
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Attack a release build
    #[arg(long)]
    release: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SoakOptions {
    /// How long it lasts
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Use a release build
    #[arg(long)]
    release: bool,
}

/// Runs the attacks.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut command = prepare("attack", options.release)?;
    if options.quick {
        command.arg("--quick");
    }
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(name) = &options.only {
        command.args(["--only", name]);
    }
    finish(&mut command)
}

/// Runs the soak.
pub(crate) fn soak(options: &SoakOptions) -> Result<(), String> {
    let mut command = prepare("soak", options.release)?;
    finish(command.args(["--minutes", &options.minutes.to_string()]))
}

/// Builds both programs and returns the command that runs a task of the second on the first.
fn prepare(task: &str, release: bool) -> Result<Command, String> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--bins"]);
    // With the packages of `cargo xtask interop` the libraries have the same features as there, and are
    // compiled once for both.
    for package in ["turnbuckle-cli", "turnbuckle-hostile", "turnbuckle-interop"] {
        cargo.args(["--package", package]);
    }
    if release {
        cargo.arg("--release");
    }
    let built = Built::build(&mut cargo)?;
    let mut command = process::command(&built.program("turnbuckle-hostile")?);
    command.arg(task).arg("--program").arg(built.program("turnbuckle")?);
    Ok(command)
}

/// Runs the command; everything that it started ends with it.
fn finish(command: &mut Command) -> Result<(), String> {
    let mut family = Family::start(command)?;
    // Not `Child::wait`: it closes the standard input of the child, which ends with it.
    let ended = family.wait_until(Instant::now() + LONGEST);
    match ended.map_err(|error| format!("a child is lost: {error}"))? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("it failed: {status}")),
        None => Err(format!("it runs for more than {} s", LONGEST.as_secs())),
    }
}
