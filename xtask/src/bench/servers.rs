//! Running the load generator.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use super::{
    Effort, chosen, home,
    programs::path,
    results::Results,
    wire::{Load, WIRES},
};

/// Runs all scenarios over all candidates, which take turns, and adds the results.
pub(crate) fn measure(
    effort: &Effort,
    candidates: &[&str],
    results: &mut Results,
) -> Result<(), String> {
    for load in WIRES.iter().flat_map(|wire| wire.loads) {
        let candidates = chosen(load.candidates, candidates);
        if !candidates.is_empty() {
            run(effort, load, &candidates, results)?;
        }
    }
    Ok(())
}

/// Runs one load over some of its candidates.
pub(crate) fn run(
    effort: &Effort,
    load: &Load,
    candidates: &[&str],
    results: &mut Results,
) -> Result<(), String> {
    let mut child = std::process::Command::new(path("loadgen"))
        .current_dir(home())
        .args(["--config", "candidates.toml", "--only", &candidates.join(",")])
        .args(["--scenarios", &load.scenarios.join(",")])
        .args(["--rounds", &effort.rounds.to_string(), "--secs", &effort.seconds.to_string()])
        .args(["--retries", &effort.retries.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("loadgen could not be started: {error}"))?;
    let stdout = child.stdout.take().ok_or("loadgen has no stdout")?;
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|error| format!("loadgen printed no text: {error}"))?;
        let line: serde_json::Value = serde_json::from_str(&line)
            .map_err(|error| format!("loadgen printed no JSON: {error}"))?;
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        results.add_line(&text("scenario"), &text("candidate"), &line);
    }
    let status = child.wait().map_err(|error| format!("loadgen is lost: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("loadgen failed: {status}")) }
}
