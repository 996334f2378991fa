//! Owns: the two loops that a client is put through, and the line that is printed at the end.
//! Does not own: the client.

use std::future::Future;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::process::{cpu_ms, resident_kib};
use crate::{Arguments, Mode, Target, counter, percentile};

const WARM_UP: Duration = Duration::from_millis(500);
/// After so many wrong answers a caller gives up.
const ERRORS: u64 = 10;
/// How long all `slow` calls may take to arrive at the server.
const START_LIMIT: Duration = Duration::from_secs(5);
/// How long the server may take to let all of them go.
const RELEASE_LIMIT: Duration = Duration::from_secs(8);
/// How long we look out for cancellations that come late, or twice.
const LATE: Duration = Duration::from_millis(1500);

/// A connected client, as its user would call it.
pub trait Caller: Clone + Send + Sync + 'static {
    /// Calls `echo` and returns the text of the answer.
    fn echo(&self, text: String) -> impl Future<Output = Result<String, String>> + Send;
    /// Calls `slow`, which ends only by being abandoned.
    fn slow(&self) -> impl Future<Output = ()> + Send;
    /// Calls `stats` and returns the text of the answer.
    fn stats(&self) -> impl Future<Output = Result<String, String>> + Send;
}

/// Measures what the arguments ask for, prints one line of JSON and ends the process: how long a
/// client takes to close is not part of the measurement.
pub async fn drive(arguments: &Arguments, client: impl Caller) -> ! {
    match arguments.mode {
        Mode::Calls => calls(arguments, client).await,
        Mode::Cancel => cancel(arguments, client).await,
    }
    std::process::exit(0)
}

async fn calls(arguments: &Arguments, client: impl Caller) {
    let warm = Instant::now() + WARM_UP;
    let end = warm + Duration::from_secs_f64(arguments.seconds);
    let callers: Vec<_> = (0..arguments.callers)
        .map(|number| tokio::spawn(caller(client.clone(), number, warm, end)))
        .collect();
    tokio::time::sleep_until(warm.into()).await;
    let (started, cpu) = (Instant::now(), cpu_ms(std::process::id()));
    let (mut latencies, mut errors) = (Vec::new(), 0);
    for caller in callers {
        let (some, wrong) = caller.await.expect("a caller does not panic");
        latencies.extend(some);
        errors += wrong;
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
            "errors": errors,
        })
    );
}

/// One caller's closed loop: the latencies in nanoseconds, and how many answers were wrong.
async fn caller(
    client: impl Caller,
    number: usize,
    warm: Instant,
    end: Instant,
) -> (Vec<u64>, u64) {
    let (mut latencies, mut errors) = (Vec::with_capacity(1 << 16), 0);
    for turn in 0u64.. {
        let started = Instant::now();
        if started >= end {
            break;
        }
        let text =
            format!("hello from the client under test #{:09}", number as u64 * 1_000_000 + turn);
        match client.echo(text.clone()).await {
            Ok(answer) if answer == text => {
                if started >= warm {
                    latencies.push(started.elapsed().as_nanos() as u64);
                }
            }
            other => {
                if errors == 0 {
                    eprintln!("wrong answer: {other:?}");
                }
                errors += 1;
                if errors > ERRORS {
                    break;
                }
            }
        }
    }
    (latencies, errors)
}

async fn cancel(arguments: &Arguments, client: impl Caller) {
    let own = std::process::id();
    let before = resident_kib(own);
    let running: Vec<_> = (0..arguments.calls)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.slow().await })
        })
        .collect();
    let waiting = Instant::now();
    let mut started = 0;
    while started < arguments.calls as i64 && waiting.elapsed() < START_LIMIT {
        tokio::time::sleep(Duration::from_millis(5)).await;
        started = counter(&statistics(arguments, &client).await, "started").unwrap_or(-1);
    }
    let memory = (resident_kib(own) - before) / arguments.calls as f64;
    let (abandoned, cpu) = (Instant::now(), cpu_ms(own));
    for call in &running {
        call.abort();
    }
    for call in running {
        // Cancelled is what it should be.
        let _ = call.await;
    }
    let returned = abandoned.elapsed();
    while abandoned.elapsed() < RELEASE_LIMIT {
        let text = statistics(arguments, &client).await;
        if counter(&text, "released").is_some_and(|released| released >= started) {
            break;
        }
    }
    let released = abandoned.elapsed();
    let cpu = cpu_ms(own) - cpu;
    tokio::time::sleep(LATE).await;
    let text = statistics(arguments, &client).await;
    let echo = tokio::time::timeout(Duration::from_secs(3), client.echo("still here".into())).await;
    println!(
        "{}",
        json!({
            "n": arguments.calls,
            "started": started,
            "return_ms": returned.as_secs_f64() * 1e3,
            "server_released_ms": released.as_secs_f64() * 1e3,
            "cancel_cpu_ms": cpu,
            "released": counter(&text, "released"),
            "by_close": counter(&text, "by_close"),
            "by_notification": counter(&text, "by_notification"),
            "cancel_notes": counter(&text, "cancel_notes"),
            "usable_after": echo == Ok(Ok("still here".to_owned())),
            "kib_per_inflight": memory,
        })
    );
}

/// The server's counters: over HTTP beside the client under test, on a stream through it.
async fn statistics(arguments: &Arguments, client: &impl Caller) -> String {
    match &arguments.target {
        Target::Http(url) => {
            let url = url.clone();
            let asked = tokio::task::spawn_blocking(move || statistics_over_http(&url)).await;
            asked.ok().and_then(Result::ok).unwrap_or_default()
        }
        Target::Stdio(_) => client.stats().await.unwrap_or_default(),
    }
}

fn statistics_over_http(url: &str) -> std::io::Result<String> {
    let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let mut stream = std::net::TcpStream::connect(host)?;
    write!(stream, "GET /stats HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
