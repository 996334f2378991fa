//! Owns: which loop a client is put through, and the closed loop of calls.
//! Does not own: the client, nor how it abandons calls.

use std::future::Future;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::process::{cpu_ms, resident_kib};
use crate::{Arguments, Mode, cached, cancel, percentile};

const WARM_UP: Duration = Duration::from_millis(500);
/// After so many wrong answers a caller gives up.
const ERRORS: u64 = 10;

/// A connected client, as its user would call it.
pub trait Caller: Clone + Send + Sync + 'static {
    /// Calls `echo` and returns the text of the answer.
    fn echo(&self, text: String) -> impl Future<Output = Result<String, String>> + Send;
    /// Calls `slow`, which ends only by being abandoned.
    fn slow(&self) -> impl Future<Output = ()> + Send;
    /// Calls `stats` and returns the text of the answer.
    fn stats(&self) -> impl Future<Output = Result<String, String>> + Send;
    /// Reads the list of tools, as often from what it keeps as it may, and returns how many there
    /// are.
    fn list(&self) -> impl Future<Output = Result<usize, String>> + Send;
}

/// Measures what the arguments ask for, prints one line of JSON and ends the process: how long a
/// client takes to close is not part of the measurement.
pub async fn drive(arguments: &Arguments, client: impl Caller) -> ! {
    match arguments.mode {
        Mode::Calls => calls(arguments, client).await,
        Mode::Counted => counted(arguments, client).await,
        Mode::Cached => cached::reads(arguments, client).await,
        Mode::Cancel => cancel::in_flight(arguments, client).await,
        Mode::Unwritten => cancel::unwritten(arguments, client).await,
    }
    std::process::exit(0)
}

async fn calls(arguments: &Arguments, client: impl Caller) {
    know_tools(&client).await;
    let warm = Instant::now() + WARM_UP;
    let end = warm + Duration::from_secs_f64(arguments.seconds);
    let callers: Vec<_> = (0..arguments.callers)
        .map(|number| tokio::spawn(caller(client.clone(), number, warm, end)))
        .collect();
    tokio::time::sleep_until(warm.into()).await;
    let (started, cpu) = (Instant::now(), cpu_ms(std::process::id()));
    let (mut latencies, mut turns, mut errors) = (Vec::new(), 0, 0);
    for caller in callers {
        let done = caller.await.expect("a caller does not panic");
        latencies.extend(done.latencies);
        turns += done.turns;
        errors += done.errors;
    }
    let seconds = started.elapsed().as_secs_f64();
    let cpu = cpu_ms(std::process::id()) - cpu;
    let count = latencies.len() as f64;
    println!(
        "{}",
        json!({
            "calls_s": count / seconds,
            "p50_us": percentile(&mut latencies, 0.5) / 1e3,
            "p99_us": percentile(&mut latencies, 0.99) / 1e3,
            "cpu_ms_per_1k": cpu / count * 1e3,
            "rss_mib": resident_kib(std::process::id()) / 1024.0,
            "calls_in_all": turns,
            "errors": errors,
        })
    );
}

/// So many calls, shared out among the callers.
async fn counted(arguments: &Arguments, client: impl Caller) {
    know_tools(&client).await;
    let (callers, calls) = (arguments.callers.max(1), arguments.calls);
    let callers: Vec<_> = (0..callers)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut errors = 0;
                for turn in (number..calls).step_by(callers) {
                    let text = format!("hello from the client under test #{turn:09}");
                    if client.echo(text.clone()).await != Ok(text) {
                        errors += 1;
                    }
                }
                errors
            })
        })
        .collect();
    let mut errors = 0;
    for caller in callers {
        errors += caller.await.expect("a caller does not panic");
    }
    println!("{}", json!({ "calls_in_all": calls, "errors": errors }));
}

/// A client that looks at a tool's description when it calls it should have one to look at.
async fn know_tools(client: &impl Caller) {
    // The bare limit has no use for it.
    let _ = client.list().await;
}

/// What one caller did.
#[derive(Default)]
struct Done {
    /// In nanoseconds, after the warm-up.
    latencies: Vec<u64>,
    /// Calls, those of the warm-up included: what a profile of the whole process is of.
    turns: u64,
    /// Answers that were wrong.
    errors: u64,
}

/// One caller's closed loop.
async fn caller(client: impl Caller, number: usize, warm: Instant, end: Instant) -> Done {
    let mut done = Done { latencies: Vec::with_capacity(1 << 16), ..Done::default() };
    loop {
        let started = Instant::now();
        if started >= end {
            return done;
        }
        let turn = number as u64 * 1_000_000 + done.turns;
        let text = format!("hello from the client under test #{turn:09}");
        done.turns += 1;
        match client.echo(text.clone()).await {
            Ok(answer) if answer == text => {
                if started >= warm {
                    done.latencies.push(started.elapsed().as_nanos() as u64);
                }
            }
            other => {
                if done.errors == 0 {
                    eprintln!("wrong answer: {other:?}");
                }
                done.errors += 1;
                if done.errors > ERRORS {
                    return done;
                }
            }
        }
    }
}
