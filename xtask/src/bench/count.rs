//! Owns: instructions and allocations per request, counted by valgrind as the difference of two
//! run lengths. Does not own: what is too many.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::child::Watched;
use super::home;
use super::programs::{Programs, Server};
use super::results::Results;

/// A run under valgrind that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(180);

/// What is sent, and how much of it.
#[derive(Debug)]
struct Workload {
    name: &'static str,
    /// Bytes of text in a call; zero stands for a short greeting.
    text: usize,
    /// Requests at a time.
    window: usize,
    /// Requests of the short and of the long run.
    lengths: [usize; 2],
}

const WORKLOADS: &[Workload] = &[
    Workload { name: "echo", text: 0, window: 64, lengths: [256, 1280] },
    Workload { name: "large", text: 1 << 20, window: 1, lengths: [4, 20] },
];

/// Counts every candidate over every workload.
pub(crate) fn all(programs: &Programs, candidates: &[String]) -> Result<Results, String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Err("valgrind is not installed, and only it can count".to_owned());
    }
    let mut results = Results::default();
    for workload in WORKLOADS {
        for candidate in candidates {
            let server = programs.server(candidate);
            match count(&server, workload) {
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
    Ok(results)
}

fn count(server: &Server, workload: &Workload) -> Result<[(&'static str, f64); 3], String> {
    let [short, long] = workload.lengths;
    let requests = (long - short) as f64;
    let per_request = |short: f64, long: f64| (long - short) / requests;
    let instructions = |length| instructions(server, workload, length);
    let heap = |length| heap(server, workload, length);
    let (short_run, long_run) = (instructions(short)?, instructions(long)?);
    let (short_heap, long_heap) = (heap(short)?, heap(long)?);
    Ok([
        ("instructions", per_request(short_run, long_run)),
        ("allocations", per_request(short_heap.0, long_heap.0)),
        ("bytes", per_request(short_heap.1, long_heap.1)),
    ])
}

fn instructions(server: &Server, workload: &Workload, length: usize) -> Result<f64, String> {
    let file = results_directory()?.join("callgrind.out");
    let option = format!("--callgrind-out-file={}", file.display());
    drive(server, &["--tool=callgrind", &option], workload, length)?;
    let text = read(&file)?;
    total_instructions(&text).ok_or_else(|| "callgrind wrote no total".to_owned())
}

fn heap(server: &Server, workload: &Workload, length: usize) -> Result<(f64, f64), String> {
    let file = results_directory()?.join("memcheck.log");
    let option = format!("--log-file={}", file.display());
    let tool = ["--tool=memcheck", "--leak-check=no", "--undef-value-errors=no", &option];
    drive(server, &tool, workload, length)?;
    heap_usage(&read(&file)?).ok_or_else(|| "memcheck wrote no heap usage".to_owned())
}

/// Runs the server under valgrind until it has answered `length` requests.
fn drive(server: &Server, tool: &[&str], workload: &Workload, length: usize) -> Result<(), String> {
    let mut command = Command::new("valgrind");
    command.args(tool).arg(&server.program).args(&server.arguments);
    // Fixed, so that the counts do not depend on the machine's processors.
    command.env("TOKIO_WORKER_THREADS", "2");
    if let Some(variant) = server.variant {
        command.env("BENCH_VARIANT", variant);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("valgrind could not be started: {error}"))?;
    let mut input = child.stdin.take().ok_or("no stdin")?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let watched = Watched::new(child, PATIENCE);
    let mut talk = || -> Result<(), String> {
        exchange(&mut input, &mut output, &discover(), 1)?;
        let ids: Vec<usize> = (1..=length).collect();
        for window in ids.chunks(workload.window) {
            let lines: String = window.iter().map(|id| echo(*id, workload.text)).collect();
            exchange(&mut input, &mut output, &lines, window.len())?;
        }
        Ok(())
    };
    let talked = talk();
    drop(input);
    let ended = watched.finish();
    talked?;
    if ended { Ok(()) } else { Err("the server did not end well at the end of input".to_owned()) }
}

/// Writes the lines and reads as many results. A server may answer before it has read everything,
/// so a thread writes meanwhile.
fn exchange(
    input: &mut (impl Write + Send),
    output: &mut impl BufRead,
    lines: &str,
    answers: usize,
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let written =
            scope.spawn(|| input.write_all(lines.as_bytes()).and_then(|()| input.flush()));
        let mut seen = 0;
        let mut line = String::new();
        while seen < answers {
            line.clear();
            let count = output.read_line(&mut line).map_err(|error| error.to_string())?;
            if count == 0 {
                return Err("the server closed its output".to_owned());
            }
            if line.contains("\"error\"") {
                return Err(format!("the server refused: {}", line.trim_end()));
            }
            seen += usize::from(line.contains("\"result\""));
        }
        match written.join() {
            Ok(Ok(())) => Ok(()),
            _ => Err("the server closed its input".to_owned()),
        }
    })
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

fn discover() -> String {
    format!(
        "{}\n",
        format_args!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{{{META}}}}}"#
        )
    )
}

fn echo(id: usize, length: usize) -> String {
    let text = match length {
        0 => format!("hello from the neutral load generator #{id:09}"),
        _ => "x".repeat(length),
    };
    format!(
        "{}\n",
        format_args!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}},{META}}}}}"#
        )
    )
}

/// From callgrind's file: `summary: N` or, with several threads, `totals: N`.
fn total_instructions(text: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:"))?;
        rest.split_whitespace().next()?.parse().ok()
    })
}

/// From memcheck's log: `total heap usage: 1,234 allocs, 1,000 frees, 56,789 bytes allocated`.
fn heap_usage(text: &str) -> Option<(f64, f64)> {
    let line = text.lines().find(|line| line.contains("total heap usage"))?;
    let (_, rest) = line.split_once("usage:")?;
    let number = |word: &str| word.replace(',', "").parse::<f64>().ok();
    let words: Vec<&str> = rest.split_whitespace().collect();
    Some((number(words.first()?)?, number(words.get(4)?)?))
}

fn results_directory() -> Result<std::path::PathBuf, String> {
    let directory = home().join("results");
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("{} cannot be made: {error}", directory.display()))?;
    Ok(directory)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrind_output_is_understood() {
        assert_eq!(total_instructions("version: 1\nsummary: 4711\n"), Some(4711.0));
        assert_eq!(total_instructions("events: Ir\ntotals: 12\n"), Some(12.0));
        assert_eq!(total_instructions("events: Ir\n"), None);
        let log = "==1==   total heap usage: 1,234 allocs, 1,000 frees, 56,789 bytes allocated";
        assert_eq!(heap_usage(log), Some((1234.0, 56789.0)));
        assert_eq!(heap_usage("==1== ERROR SUMMARY"), None);
    }

    #[test]
    fn an_exchange_waits_for_its_results_and_sees_refusals() {
        let talk =
            |answers: &str| exchange(&mut Vec::new(), &mut answers.as_bytes(), "a line\n", 2);
        assert_eq!(talk("{\"result\":1}\n{\"method\":2}\n{\"result\":3}\n"), Ok(()));
        assert!(talk("{\"result\":1}\n").unwrap_err().contains("closed"));
        assert!(talk("{\"error\":1}\n").unwrap_err().contains("refused"));
    }

    #[test]
    fn requests_are_lines_of_json() {
        for line in [discover(), echo(3, 0), echo(4, 5)] {
            assert!(line.ends_with('\n'));
            serde_json::from_str::<serde_json::Value>(&line).unwrap();
        }
    }
}
