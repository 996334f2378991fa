//! Owns: which measurements the client drivers go through, against the bare limit as server.
//! Does not own: the measurements; the drivers print them.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::Effort;
use super::child::output_within;
use super::programs::Programs;
use super::results::Results;

/// Scenario, mode, callers, calls.
const CELLS: &[(&str, &str, &str, &str)] =
    &[("client-calls:64", "calls", "64", "0"), ("client-cancel:1000", "cancel", "1", "1000")];

/// A driver that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs every driver, one after another in each round, and adds what was found.
pub(crate) fn measure(
    programs: &Programs,
    effort: &Effort,
    candidates: &[String],
    results: &mut Results,
) -> Result<(), String> {
    for (scenario, mode, callers, calls) in CELLS {
        for round in 0..effort.rounds {
            for candidate in candidates {
                let Some(driver) = programs.client(candidate) else { continue };
                let seconds = effort.seconds.to_string();
                let mut command = pinned(programs, "1");
                command.arg(driver).args(["--mode", mode, "--conc", callers, "--n", calls]);
                command.args(["--secs", &seconds, "--stdio"]);
                command.arg(programs.path("loadgen")).args(["--pin", "0"]);
                command.arg(programs.path("limit-server")).args(["--stdio", "pipe"]);
                let line = match output_within(&mut command, PATIENCE) {
                    Ok(text) => metrics(&text),
                    Err(error) => json!({ "error": error }),
                };
                eprintln!("[{round}] {scenario} {candidate}: {line}");
                results.add_line(scenario, candidate, &line);
                if candidate == "rmcp-arc-nd" {
                    // Its client knows no tuned set-up over pipes.
                    results.add_line(scenario, "rmcp-readme", &line);
                }
            }
        }
    }
    Ok(())
}

/// `loadgen --pin` needs no tool of the system.
fn pinned(programs: &Programs, cpu: &str) -> Command {
    let mut command = Command::new(programs.path("loadgen"));
    command.args(["--pin", cpu]);
    command
}

/// The last line of JSON that a driver printed.
fn metrics(output: &str) -> Value {
    let line = output.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    match line {
        Some(line) if line["usable_after"] == json!(false) => {
            json!({ "metrics": line, "error": "the client cannot be used any more" })
        }
        Some(line) => json!({ "metrics": line }),
        None => json!({ "error": "the driver printed no result" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_json_counts() {
        let line = metrics("connected\n{\"calls_s\":5}\n");
        assert_eq!(line["metrics"]["calls_s"], 5);
        assert!(metrics("nothing")["error"].is_string());
        assert!(metrics("{\"usable_after\":false}")["error"].is_string());
    }
}
