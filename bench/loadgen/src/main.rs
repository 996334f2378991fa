//! A neutral load generator: it speaks raw HTTP/1.1 and raw lines of JSON and links no SDK.
//!
//! Owns: the order of the measurements and the lines that report them. Does not own: what a
//! scenario does, and any judgement; `cargo xtask bench` draws the conclusions.

mod candidate;
mod http;
mod message;
mod options;
mod stdio;

use std::os::unix::process::CommandExt;
use std::time::Duration;

use bench_util::process;
use serde_json::{Map, Value, json};

use self::candidate::Candidate;
use self::options::{LOADGEN_CPU, Options};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
/// What one measurement found, by name.
type Metrics = Vec<(&'static str, f64)>;

/// A scenario that takes so much longer than its own seconds is given up.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, cpu, program, arguments @ ..] = words.as_slice()
        && first == "--pin"
    {
        process::pin_to(cpu.parse()?);
        return Err(std::process::Command::new(program).args(arguments).exec().into());
    }
    let options = Options::parse(words)?;
    if options.pinned {
        process::pin_to(LOADGEN_CPU);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for scenario in &options.scenarios {
        for round in 0..options.rounds {
            // Candidates take turns inside a round, so that a change in the machine's mood
            // reaches all of them.
            for candidate in options.candidates.iter().filter(|one| one.runs(scenario)) {
                let found = quiet_run(&runtime, scenario, candidate, &options);
                report(scenario, candidate, round, &options, found);
            }
        }
    }
    Ok(())
}

/// Measures again when somebody else used the machine meanwhile.
fn quiet_run(
    runtime: &tokio::runtime::Runtime,
    scenario: &str,
    candidate: &Candidate,
    options: &Options,
) -> Outcome<Metrics> {
    let mut retries = 0;
    loop {
        let found = runtime.block_on(run(scenario, candidate, options));
        let is_noisy = found.as_ref().is_ok_and(|metrics| {
            metrics.iter().any(|(name, value)| *name == "other_pct" && *value > options.max_other)
        });
        if !is_noisy || retries == options.retries {
            return found;
        }
        retries += 1;
        eprintln!("{scenario} {}: others used the processors, once more", candidate.name);
        std::thread::sleep(Duration::from_secs(2));
    }
}

async fn run(scenario: &str, candidate: &Candidate, options: &Options) -> Outcome<Metrics> {
    let (kind, count) = scenario.split_once(':').unwrap_or((scenario, "1"));
    let count: usize = count.parse()?;
    let limit = Duration::from_secs_f64(options.seconds + options.warm_up) + PATIENCE;
    let measured = async {
        if scenario.starts_with("http") {
            http::run(kind, count, candidate, options).await
        } else {
            stdio::run(kind, count, candidate, options).await
        }
    };
    tokio::time::timeout(limit, measured).await.map_err(|_| "the scenario timed out")?
}

fn report(
    scenario: &str,
    candidate: &Candidate,
    round: usize,
    options: &Options,
    found: Outcome<Metrics>,
) {
    let mut line = json!({
        "scenario": scenario,
        "era": options.era.name(),
        "candidate": candidate.name,
        "round": round,
    });
    let shown = match found {
        Ok(metrics) => {
            let shown: Vec<String> =
                metrics.iter().map(|(name, value)| format!("{name}={value:.2}")).collect();
            let values: Map<String, Value> =
                metrics.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            line["metrics"] = Value::Object(values);
            shown.join(" ")
        }
        Err(error) => {
            line["error"] = json!(error.to_string());
            format!("FAILED: {error}")
        }
    };
    eprintln!("[{round}] {scenario} {}: {shown}", candidate.name);
    println!("{line}");
}
