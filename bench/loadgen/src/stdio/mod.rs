//! The scenarios over pipes.

mod pipe;
mod window;

use std::time::{Duration, Instant};

use bench_util::percentile;
use bench_util::process::{Noise, cpu_ms, resident_kib};
use memchr::memmem;

use self::pipe::{Pipe, id_of};
use crate::candidate::Candidate;
use crate::message::{Load, call, cancelled, echo, request};
use crate::options::Options;
use crate::{Metrics, Outcome};

/// Cycles of the cancel scenario.
const CYCLES: u64 = 20;
/// How long anything may take that should happen at once.
const AT_ONCE: Duration = Duration::from_secs(15);

pub(crate) async fn run(
    kind: &str,
    count: usize,
    candidate: &Candidate,
    options: &Options,
) -> Outcome<Metrics> {
    let kind = kind.strip_prefix("stdio-").ok_or("an unknown scenario")?;
    if kind == "cold" {
        return cold(count, candidate, options).await;
    }
    let tools = if kind == "list" { options.tools } else { 0 };
    let mut pipe = Pipe::spawn(candidate, options, tools)?;
    let hello = pipe.hello().await?;
    if let Some(load) = Load::parse(kind) {
        return window::run(&load, count, &mut pipe, options).await;
    }
    match kind {
        "progress" => progress(count, &mut pipe, options).await,
        "cancel" => cancel(count, &mut pipe).await,
        "listen" => listen(count, &mut pipe).await,
        "smoke" => smoke(&hello, &mut pipe).await,
        _ => Err("an unknown scenario".into()),
    }
}

/// One call after another, each with `count` progress notifications before its answer.
async fn progress(count: usize, pipe: &mut Pipe, options: &Options) -> Outcome<Metrics> {
    let mut id = 10;
    let warm = Instant::now();
    while warm.elapsed().as_secs_f64() < options.warm_up {
        id += 1;
        progress_call(id, count, pipe).await?;
    }
    let noise = Noise::start(pipe.pid);
    let (started, cpu, mut notes) = (Instant::now(), cpu_ms(pipe.pid), 0);
    while started.elapsed().as_secs_f64() < options.seconds {
        id += 1;
        progress_call(id, count, pipe).await?;
        notes += count;
    }
    let notes = notes as f64;
    Ok(vec![
        ("notifications_s", notes / started.elapsed().as_secs_f64()),
        ("cpu_ms_per_1k_notif", (cpu_ms(pipe.pid) - cpu) / notes * 1e3),
        ("rss_mib", resident_kib(pipe.pid) / 1024.0),
        ("other_pct", noise.percent()),
    ])
}

async fn progress_call(id: u64, count: usize, pipe: &mut Pipe) -> Outcome<()> {
    let arguments = format!(r#""n":{count}"#);
    let meta = format!(r#""progressToken":{id}"#);
    let request = call(pipe.era, id, "progress", &arguments, &meta);
    pipe.send(&format!("{request}\n")).await?;
    let mut seen = 0;
    loop {
        let line = pipe.line().await?;
        let text = pipe.text(line);
        if memmem::find(text, b"notifications/progress").is_some() {
            seen += 1;
        } else if id_of(text) == Some(id) {
            break;
        }
    }
    if seen == count {
        return Ok(());
    }
    Err(format!("{seen} of {count} progress notifications came before the answer").into())
}

/// `count` slow calls in flight at once, then all of them cancelled.
///
/// Memory is taken in the first cycle: what the process grew by while the calls were in flight,
/// one-time costs included.
async fn cancel(count: usize, pipe: &mut Pipe) -> Outcome<Metrics> {
    pipe.counter("started").await?;
    let idle = resident_kib(pipe.pid);
    let noise = Noise::start(pipe.pid);
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    let (mut in_flight, mut after_first, mut never_released) = (0.0, 0.0, 0);
    for cycle in 0..CYCLES {
        let ids = 1000 + cycle * 100_000..1000 + cycle * 100_000 + count as u64;
        let before = pipe.counter("released").await?;
        start_slow(ids.clone(), pipe).await?;
        if cycle == 0 {
            in_flight = resident_kib(pipe.pid) - idle;
        }
        let notes: String = ids.map(|id| cancelled(id) + "\n").collect();
        let (started, cpu_before) = (Instant::now(), cpu_ms(pipe.pid));
        pipe.send(&notes).await?;
        let wanted = before + count as i64;
        let mut released = pipe.counter("released").await?;
        while released < wanted && started.elapsed() < AT_ONCE {
            released = pipe.counter("released").await?;
        }
        if released < wanted {
            never_released = wanted - released;
            break;
        }
        times.push(started.elapsed().as_nanos() as u64);
        cpu.push(((cpu_ms(pipe.pid) - cpu_before) * 1e6) as u64);
        if cycle == 0 {
            after_first = resident_kib(pipe.pid);
        }
    }
    let now = resident_kib(pipe.pid);
    Ok(vec![
        ("release_ms_p50", percentile(&mut times, 0.5) / 1e6),
        ("cancel_cpu_ms", percentile(&mut cpu, 0.5) / 1e6),
        ("never_released", never_released as f64),
        ("kib_per_inflight", in_flight / count as f64),
        ("rss_kept_kib_per_call", (after_first - idle) / count as f64),
        ("rss_growth_kib_after_first_cycle", now - after_first),
        ("other_pct", noise.percent()),
    ])
}

/// Starts slow calls and returns when all of their handlers run.
async fn start_slow(ids: std::ops::Range<u64>, pipe: &mut Pipe) -> Outcome<()> {
    let count = (ids.end - ids.start) as i64;
    let before = pipe.counter("started").await?;
    let calls: String = ids.map(|id| call(pipe.era, id, "slow", "", "") + "\n").collect();
    pipe.send(&calls).await?;
    let waiting = Instant::now();
    loop {
        let started = pipe.counter("started").await? - before;
        if started == count {
            return Ok(());
        }
        if waiting.elapsed() > AT_ONCE {
            return Err(format!("only {started} of {count} slow calls run at once").into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// `count` subscriptions, and how long an event takes to reach all of them.
async fn listen(count: usize, pipe: &mut Pipe) -> Outcome<Metrics> {
    // In batches: a server that reads and writes in one loop must not fill both pipes.
    const BATCH: usize = 50;
    const EVENTS: u64 = 5;
    pipe.counter("started").await?;
    let idle = resident_kib(pipe.pid);
    let opening = Instant::now();
    let ids: Vec<u64> = (5000..5000 + count as u64).collect();
    for batch in ids.chunks(BATCH) {
        let params = r#""notifications":{"toolsListChanged":true}"#;
        let requests: String = batch
            .iter()
            .map(|id| request(pipe.era, *id, "subscriptions/listen", params, "") + "\n")
            .collect();
        pipe.send(&requests).await?;
        expect_lines(pipe, b"subscriptions/acknowledged", batch.len()).await?;
    }
    let open = opening.elapsed();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let listening = resident_kib(pipe.pid);
    let mut times = Vec::new();
    for event in 0..EVENTS {
        let started = Instant::now();
        let emit = call(pipe.era, 80_000 + event, "emit", "", "");
        pipe.send(&format!("{emit}\n")).await?;
        expect_lines(pipe, b"notifications/tools/list_changed", count).await?;
        times.push(started.elapsed().as_nanos() as u64);
    }
    Ok(vec![
        ("deliver_all_ms", percentile(&mut times, 0.5) / 1e6),
        ("kib_per_listener", (listening - idle) / count as f64),
        ("open_all_ms", open.as_secs_f64() * 1e3),
    ])
}

async fn expect_lines(pipe: &mut Pipe, containing: &[u8], count: usize) -> Outcome<()> {
    let mut seen = 0;
    while seen < count {
        let Ok(line) = tokio::time::timeout(AT_ONCE, pipe.line()).await else {
            let wanted = String::from_utf8_lossy(containing);
            return Err(format!("{seen} of {count} × {wanted}").into());
        };
        let line = line?;
        if memmem::find(pipe.text(line), containing).is_some() {
            seen += 1;
        }
    }
    Ok(())
}

/// `count` processes one after another: start, handshake, first answer, end of input, exit.
async fn cold(count: usize, candidate: &Candidate, options: &Options) -> Outcome<Metrics> {
    let (mut first, mut result, mut exit) = (Vec::new(), Vec::new(), Vec::new());
    let (mut resident, mut not_exiting) = (0.0, 0);
    for _ in 0..count {
        let started = Instant::now();
        let mut pipe = Pipe::spawn(candidate, options, 0)?;
        pipe.hello().await?;
        first.push(started.elapsed().as_nanos() as u64);
        pipe.ask(7, &echo(options.era, 7)).await?;
        result.push(started.elapsed().as_nanos() as u64);
        resident = resident_kib(pipe.pid);
        let closing = Instant::now();
        match tokio::time::timeout(Duration::from_secs(3), pipe.close()).await {
            Ok(ended) => {
                ended?;
                exit.push(closing.elapsed().as_nanos() as u64);
            }
            Err(_) => not_exiting += 1,
        }
    }
    Ok(vec![
        ("first_response_ms", percentile(&mut first, 0.5) / 1e6),
        ("first_tool_result_ms", percentile(&mut result, 0.5) / 1e6),
        ("exit_after_eof_ms", percentile(&mut exit, 0.5) / 1e6),
        ("not_exiting", f64::from(not_exiting)),
        ("rss_mib", resident / 1024.0),
    ])
}

/// Shows the answers, for somebody who writes a candidate.
async fn smoke(hello: &str, pipe: &mut Pipe) -> Outcome<Metrics> {
    eprintln!("hello: {hello}");
    let calls =
        [("echo", r#""text":"hi""#), ("add", r#""a":1,"b":2"#), ("stats", ""), ("emit", "")];
    for (id, (tool, arguments)) in (5..).zip(calls) {
        let answer = pipe.ask(id, &call(pipe.era, id, tool, arguments, "")).await?;
        eprintln!("{tool}: {answer}");
    }
    let list = pipe.ask(50, &request(pipe.era, 50, "tools/list", "", "")).await?;
    eprintln!("list: {}", list.chars().take(1200).collect::<String>());
    progress_call(60, 3, pipe).await?;
    Ok(vec![("ok", 1.0)])
}
