//! Counts a client while it calls the bare limit.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::workload::{Sends, Talk, Workload};
use crate::{
    bench::{
        clients::Listening,
        programs::{Client, Programs, Server},
        wire::KEPT_LIST,
    },
    workspace,
};

/// Runs the driver until it has made `length` calls.
pub(super) fn drive(
    programs: &Programs,
    client: Client,
    valgrind: impl Fn(&Server) -> Command,
    workload: &Workload,
    length: usize,
) -> Result<(), String> {
    let mut limit = Command::new(programs.path("limit-server"));
    let mode = match workload.sends {
        Sends::KeptList => {
            limit.args(KEPT_LIST);
            "cached"
        }
        _ => "counted",
    };
    let (callers, length) = (workload.window.to_string(), length.to_string());
    let arguments = ["--mode", mode, "--conc", &callers, "--n", &length];
    let mut arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
    // Ended at the end of this function, if there is one.
    let mut _listening = None;
    if workload.talk == Talk::ClientOverHttp {
        let server = Listening::start(&mut limit)?;
        arguments.extend(["--http".to_owned(), format!("http://127.0.0.1:{}/mcp", server.port)]);
        _listening = Some(server);
    } else {
        limit.args(["--stdio", "pipe"]);
        let words = [limit.get_program()].into_iter().chain(limit.get_args());
        arguments.push("--stdio".to_owned());
        arguments.extend(words.map(|word| word.to_string_lossy().into_owned()));
    }
    let Client { program, environment } = client;
    let mut command = valgrind(&Server { program, arguments, environment });
    check(&workspace::output(command.stderr(Stdio::null()))?)
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
