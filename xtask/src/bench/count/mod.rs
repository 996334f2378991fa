//! Instructions and allocations per request, counted by valgrind as the difference of two run
//! lengths.

mod client;
mod message;
mod pipes;
mod web;
mod workload;

use std::{path::PathBuf, process::Command, time::Duration};

use self::workload::{COMPARISONS, Counts, Sends, Talk, WORKLOADS, Workload};
use super::{
    OURS, chosen,
    clients::free_port,
    home,
    programs::{http_client, http_server, path, stdio_client, stdio_server},
    results::Results,
    wire::{HTTP, STDIO},
};
use crate::common::{
    files::{create, read},
    process::{through, within},
};

/// A run under valgrind that takes longer is killed.
const PATIENCE: Duration = Duration::from_secs(180);

/// Counts every candidate over every workload.
pub(crate) fn all(candidates: &[&str]) -> Result<Results, String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err("valgrind is not installed, and only it can count".to_owned());
    }
    let mut results = Results::default();
    for workload in WORKLOADS {
        for candidate in chosen(compared(workload), candidates) {
            match count(candidate, workload) {
                Ok(counts) => {
                    for (metric, value) in counts {
                        eprintln!("{} {candidate}: {metric} {value:.1}", workload.name);
                        results.add(workload.name, candidate, metric, value);
                    }
                }
                Err(error) => {
                    eprintln!("{} {candidate}: FAILED: {error}", workload.name);
                    results.failures.push(format!("{} {candidate}: {error}", workload.name));
                }
            }
        }
    }
    compare(&mut results, candidates);
    Ok(results)
}

/// The candidates whose counts are compared.
fn compared(workload: &Workload) -> &'static [&'static str] {
    match (workload.talk, workload.sends) {
        (Talk::Pipes, _) => STDIO.candidates,
        (Talk::Http, _) => HTTP.candidates,
        (Talk::Handlers, _) => &[OURS],
        // The bare limit keeps no list.
        (Talk::ClientOverPipes, Sends::KeptList) => &["rmcp-arc-nd", OURS],
        (Talk::ClientOverPipes, _) => &["limit-pipe", "rmcp-arc-nd", OURS],
        (Talk::ClientOverHttp, _) => &["limit-hyper", "rmcp-json-nd", "rmcp-readme", OURS],
    }
}

/// Adds the ratio of instructions for workloads that are compared with another.
fn compare(results: &mut Results, candidates: &[&str]) {
    for (scenario, reference) in COMPARISONS {
        for candidate in candidates {
            let instructions = |name| results.median(name, candidate, "instructions");
            if let (Some(ours), Some(other)) = (instructions(scenario), instructions(reference)) {
                results.add(scenario, candidate, "times", ours / other);
            }
        }
    }
}

fn count(candidate: &str, workload: &Workload) -> Result<Vec<(&'static str, f64)>, String> {
    let [short, long] = workload.lengths_of(candidate);
    let requests = (long - short) as f64;
    let per_request = |short: f64, long: f64| (long - short) / requests;
    let instructions = |length| {
        let file = result_file("callgrind.out")?;
        let option = format!("--callgrind-out-file={}", file.display());
        drive(candidate, &["--tool=callgrind", &option], workload, length)?;
        total_instructions(&read(&file)?).ok_or_else(|| "callgrind wrote no total".to_owned())
    };
    let heap = |length| {
        let file = result_file("memcheck.log")?;
        let option = format!("--log-file={}", file.display());
        let tool = ["--tool=memcheck", "--leak-check=no", "--undef-value-errors=no", &option];
        drive(candidate, &tool, workload, length)?;
        heap_usage(&read(&file)?).ok_or_else(|| "memcheck wrote no heap usage".to_owned())
    };
    let mut counts = Vec::new();
    if !matches!(workload.counts, Counts::Remains) {
        counts.push(("instructions", per_request(instructions(short)?, instructions(long)?)));
    }
    if matches!(workload.counts, Counts::Instructions) {
        return Ok(counts);
    }
    let (short, long) = (heap(short)?, heap(long)?);
    match workload.counts {
        Counts::Remains => counts.push(("kept_bytes", per_request(short.kept, long.kept))),
        _ => counts.extend([
            ("allocations", per_request(short.allocations, long.allocations)),
            ("bytes", per_request(short.bytes, long.bytes)),
        ]),
    }
    Ok(counts)
}

/// Runs the server under valgrind until it has answered `length` requests.
fn drive(candidate: &str, tool: &[&str], workload: &Workload, length: usize) -> Result<(), String> {
    let valgrind = |command: &Command| under_valgrind(tool, command, workload.tools);
    match workload.talk {
        Talk::Pipes => pipes::drive(valgrind(&stdio_server(candidate)), workload, length),
        Talk::Handlers => {
            let server = Command::new(path("bench-handlers"));
            pipes::drive(valgrind(&server), workload, length)
        }
        Talk::Http => {
            let port = free_port()?;
            web::drive(valgrind(&http_server(candidate, port)), port, workload, length)
        }
        Talk::ClientOverPipes | Talk::ClientOverHttp => {
            let client = match workload.talk {
                Talk::ClientOverPipes => stdio_client(candidate),
                _ => http_client(candidate),
            };
            let client = client.ok_or_else(|| format!("{candidate} has no client"))?;
            client::drive(client, valgrind, workload, length)
        }
    }
}

fn under_valgrind(tool: &[&str], command: &Command, tools: usize) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(tool);
    let mut command = through(valgrind, command);
    // Fixed, so that the counts do not depend on the machine's processors.
    command.env("TOKIO_WORKER_THREADS", "2");
    command.env("BENCH_TOOLS", tools.to_string());
    within(PATIENCE, &command)
}

/// From callgrind's file: `summary: N` or, with several threads, `totals: N`.
fn total_instructions(text: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:"))?;
        rest.split_whitespace().next()?.parse().ok()
    })
}

/// The use of the heap that memcheck reports.
#[derive(Debug, PartialEq)]
struct Heap {
    allocations: f64,
    bytes: f64,
    /// Bytes in use at the end.
    kept: f64,
}

/// From memcheck's log: `in use at exit: 1,234 bytes in 5 blocks` and
/// `total heap usage: 1,234 allocs, 1,000 frees, 56,789 bytes allocated`.
fn heap_usage(text: &str) -> Option<Heap> {
    let words = |label: &str| {
        let rest = text.lines().find_map(|line| Some(line.split_once(label)?.1))?;
        Some(rest.split_whitespace().map(|word| word.replace(',', "")).collect::<Vec<_>>())
    };
    let number = |words: &[String], index: usize| words.get(index)?.parse::<f64>().ok();
    let (total, kept) = (words("total heap usage:")?, words("in use at exit:")?);
    Some(Heap {
        allocations: number(&total, 0)?,
        bytes: number(&total, 4)?,
        kept: number(&kept, 0)?,
    })
}

/// Returns the file that valgrind writes, without an earlier result.
fn result_file(name: &str) -> Result<PathBuf, String> {
    let directory = home().join("results");
    create(&directory)?;
    let file = directory.join(name);
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{} cannot be removed: {error}", file.display()))
        }
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_candidate_is_compared_with_itself() {
        let mut results = Results::default();
        for (candidate, one, many) in [(OURS, 20_000.0, 20_100.0), ("rmcp-readme", 2e5, 4e6)] {
            results.add("one-tool", candidate, "instructions", one);
            results.add("many-tools", candidate, "instructions", many);
        }
        compare(&mut results, &[OURS, "rmcp-readme"]);
        assert_eq!(results.median("many-tools", OURS, "times"), Some(1.005));
        assert_eq!(results.median("many-tools", "rmcp-readme", "times"), Some(20.0));
        assert_eq!(results.median("conversation", OURS, "times"), None);
    }

    #[test]
    fn valgrind_output_is_understood() {
        assert_eq!(total_instructions("version: 1\nsummary: 4711\n"), Some(4711.0));
        assert_eq!(total_instructions("events: Ir\ntotals: 12\n"), Some(12.0));
        assert_eq!(total_instructions("events: Ir\n"), None);
        let log = "==1==     in use at exit: 4,321 bytes in 5 blocks\n\
                   ==1==   total heap usage: 1,234 allocs, 1,000 frees, 56,789 bytes allocated";
        let heap = Heap { allocations: 1234.0, bytes: 56789.0, kept: 4321.0 };
        assert_eq!(heap_usage(log), Some(heap));
        assert_eq!(heap_usage("==1== ERROR SUMMARY"), None);
    }
}
