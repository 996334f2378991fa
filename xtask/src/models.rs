//! `cargo xtask models`: the concurrency models in `models/`, in a build of their own.

use crate::workspace;

/// Runs every model under many schedules.
pub(crate) fn run() -> Result<(), String> {
    let mut command = workspace::cargo();
    command.args(["test", "--quiet", "--locked", "--manifest-path", "models/Cargo.toml"]);
    command.arg("--target-dir").arg(workspace::target().join("models"));
    // Compiles the seam, and calls the model before each lock.
    workspace::run(command.env("RUSTFLAGS", "--cfg=shuttle -Dwarnings"))
}
