//! Running the client drivers, against the bare limit as server.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    Effort, chosen,
    programs::{http_client, path, stdio_client},
    results::Results,
    wire::{ClientLoad, HTTP, STDIO, Wire},
};
use crate::{
    common::process::{Family, connect, through, within},
    workspace,
};

/// A driver that takes longer is killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the server may take to listen.
const START: Duration = Duration::from_secs(10);

/// Runs one driver once; `None` if the candidate has none.
type Run = fn(&str, &ClientLoad, &Effort) -> Option<Result<String, String>>;

/// Runs every driver, one after another in each round, and adds the results.
pub(crate) fn measure(effort: &Effort, candidates: &[&str], results: &mut Results) {
    let wires: [(&Wire, Run); 2] = [(&STDIO, over_pipes), (&HTTP, over_http)];
    for (wire, run) in wires {
        let candidates = chosen(wire.candidates, candidates);
        for load in wire.clients {
            for round in 0..effort.rounds {
                for candidate in candidates.iter().filter(|one| !load.without.contains(*one)) {
                    let Some(printed) = run(candidate, load, effort) else { continue };
                    let line = printed
                        .map_or_else(|error| json!({ "error": error }), |text| metrics(&text));
                    eprintln!("[{round}] {} {candidate}: {line}", load.scenario);
                    results.add_line(load.scenario, candidate, &line);
                    if wire.name == STDIO.name && *candidate == "rmcp-arc-nd" {
                        results.add_line(load.scenario, wire.readme, &line);
                    }
                }
            }
        }
    }
}

fn over_pipes(
    candidate: &str,
    load: &ClientLoad,
    effort: &Effort,
) -> Option<Result<String, String>> {
    let mut command = driver(stdio_client(candidate)?, load, effort);
    let mut server = limit_server(load);
    server.args(["--stdio", "pipe"]);
    command.arg("--stdio").arg(server.get_program()).args(server.get_args());
    Some(printed(&command))
}

fn over_http(
    candidate: &str,
    load: &ClientLoad,
    effort: &Effort,
) -> Option<Result<String, String>> {
    let mut command = driver(http_client(candidate)?, load, effort);
    Some(Listening::start(&mut limit_server(load)).and_then(|server| {
        command.arg("--http").arg(format!("http://127.0.0.1:{}/mcp", server.port));
        printed(&command)
    }))
}

/// The bare limit on its processor, with all of its arguments but its address.
fn limit_server(load: &ClientLoad) -> Command {
    let mut command = Command::new(path("limit-server"));
    command.args(load.server_arguments());
    pinned("0", &command)
}

/// The driver on its processor, with all of its arguments but the address of the server.
fn driver(mut command: Command, load: &ClientLoad, effort: &Effort) -> Command {
    if load.mode == "unwritten" {
        // With more threads a call could be written between its beginning and its end.
        command.env("TOKIO_WORKER_THREADS", "1");
    }
    command.args(["--era", load.era]);
    command.args(["--mode", load.mode, "--conc", load.callers, "--n", load.calls]);
    command.args(["--secs", &effort.seconds.to_string()]);
    pinned("1", &command)
}

/// A command on one processor: `loadgen --pin` needs no tool of the system.
fn pinned(cpu: &str, command: &Command) -> Command {
    let mut loadgen = Command::new(path("loadgen"));
    loadgen.args(["--pin", cpu]);
    through(loadgen, command)
}

fn printed(command: &Command) -> Result<String, String> {
    workspace::output(within(PATIENCE, command).stderr(Stdio::inherit()))
}

/// The bare limit on a port, with counters that begin at zero; killed when dropped.
pub(crate) struct Listening {
    _family: Family,
    pub(crate) port: u16,
}

impl Listening {
    /// Starts a command that lacks only its address.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let port = free_port()?;
        let server =
            Self { _family: Family::start(command.args(["--http", &port.to_string()]))?, port };
        connect(port, START).map(|_| server)
    }
}

/// Returns a port of the loopback address that is free now.
pub(crate) fn free_port() -> Result<u16, String> {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("there is no free port: {error}"))
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
