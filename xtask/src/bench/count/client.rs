//! Counts a client while it calls the bare limit.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::workload::{Sends, Talk, Workload};
use crate::{
    bench::{clients::Listening, programs::path, wire::KEPT_LIST},
    workspace,
};

/// Runs the driver until it has made `length` calls.
pub(super) fn drive(
    mut client: Command,
    valgrind: impl Fn(&Command) -> Command,
    workload: &Workload,
    length: usize,
) -> Result<(), String> {
    let mut limit = Command::new(path("limit-server"));
    let mode = match workload.sends {
        Sends::KeptList => {
            limit.args(KEPT_LIST);
            "cached"
        }
        _ => "counted",
    };
    client.args(["--mode", mode, "--conc", &workload.window.to_string()]);
    client.args(["--n", &length.to_string()]);
    // Killed at the end of this function.
    let mut _listening = None;
    if workload.talk == Talk::ClientOverHttp {
        let server = Listening::start(&mut limit)?;
        client.args(["--http", &format!("http://127.0.0.1:{}/mcp", server.port)]);
        _listening = Some(server);
    } else {
        limit.args(["--stdio", "pipe"]);
        client.arg("--stdio").arg(limit.get_program()).args(limit.get_args());
    }
    check(&workspace::output(valgrind(&client).stderr(Stdio::null()))?)
}

/// Whether every answer was right.
fn check(printed: &str) -> Result<(), String> {
    let line = printed.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    match line {
        Some(line) if line["errors"] == 0 => Ok(()),
        Some(line) => Err(format!("the client had wrong answers: {line}")),
        None => Err("the client printed no result".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_answers_are_not_counted() {
        assert_eq!(check("{\"errors\":0}\n"), Ok(()));
        assert!(check("{\"errors\":3}\n").unwrap_err().contains("wrong"));
        assert!(check("").is_err());
    }
}
