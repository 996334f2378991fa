//! A load of calls, cancellations, progress, listen streams and sessions that lasts for minutes.
//!
//! Clients of both eras use a server over HTTP and servers over stdio. Each answer is checked; memory,
//! descriptors and threads of the servers and of the clients must not grow.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{process::Child, task::JoinSet, time::timeout};
use turnbuckle::{Call, Client, Revision, subscribe::Filter, types::CallToolResult};

use crate::{
    process::{Figures, Server, Socket, spawn},
    random::Random,
    wire::endpoint::Endpoint,
};

#[derive(Debug, clap::Args)]
pub(crate) struct SoakOptions {
    /// The `turnbuckle` command
    #[arg(long)]
    program: PathBuf,
    /// How long it lasts
    #[arg(long)]
    minutes: u32,
    /// The seed of the choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// An answer that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(30);
/// Tasks of each client.
const WORKERS: u64 = 3;
/// The minute in which bounded stores are full at the latest: events are kept for five.
const FULL: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// The growth of the resident memory that an allocator explains, in KiB, beside a quarter.
const GROWTH: u64 = 8 << 10;

/// What happened so far.
#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    cancels: AtomicU64,
    progress: AtomicU64,
    listens: AtomicU64,
    sessions: AtomicU64,
    lost: AtomicU64,
    wrong: AtomicU64,
}

/// What all tasks share.
struct Load {
    counts: Counts,
    stopped: AtomicBool,
    program: PathBuf,
    url: String,
}

impl Load {
    fn lost(&self, error: impl std::fmt::Display) {
        self.counts.lost.fetch_add(1, Relaxed);
        eprintln!("lost: {error}");
    }

    fn wrong(&self, what: &str, found: &str) {
        self.counts.wrong.fetch_add(1, Relaxed);
        eprintln!("wrong: {what}: {found}");
    }
}

/// A server that is observed.
struct Observed {
    name: &'static str,
    pid: u32,
    first: Option<Figures>,
    last: Figures,
}

/// Runs the load; the error says what is lost, wrong or has grown.
pub(crate) async fn run(options: SoakOptions) -> Result<(), String> {
    let SoakOptions { program, minutes, seed } = options;
    let server = Server::start(&program, Socket::Tcp).await?;
    let Endpoint::Tcp(address) = server.endpoint else { return Err("no address".to_owned()) };
    let load = Arc::new(Load {
        counts: Counts::default(),
        stopped: AtomicBool::new(false),
        program,
        url: format!("http://{address}/mcp"),
    });
    let mut observed = vec![watched("http", server.pid), watched("clients", std::process::id())];
    let mut clients = Vec::new();
    let mut children = Vec::new();
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        for _ in 0..2 {
            clients.push(over_http(&load.url, revision).await?);
        }
        let (child, client) = over_stdio(&load.program, revision).await?;
        observed.push(watched("stdio", child.id().ok_or("a server has ended")?));
        children.push(child);
        clients.push(client);
    }
    let mut random = Random::new(seed);
    let mut tasks = JoinSet::new();
    for client in &clients {
        for _ in 0..WORKERS {
            let (load, client) = (load.clone(), client.clone());
            let random = Random::new(random.next());
            tasks.spawn(async move { work(&load, &client, random).await });
        }
    }
    let random = Random::new(random.next());
    let shared = load.clone();
    tasks.spawn(async move { sessions(&shared, random).await });
    println!(
        "| minute | calls | cancels | progress | listens | sessions | lost | wrong | in flight | \
         MiB, descriptors, threads: http | clients | stdio | stdio |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let start = tokio::time::Instant::now();
    for minute in 1..=minutes {
        tokio::time::sleep_until(start + MINUTE * minute).await;
        row(&minute.to_string(), &load, &clients, &mut observed).await;
        if minute == minutes.div_ceil(2).min(FULL) {
            observed.iter_mut().for_each(|server| server.first = Some(server.last));
        }
    }
    load.stopped.store(true, Relaxed);
    let ended = timeout(PATIENCE * 2, async { while tasks.join_next().await.is_some() {} }).await;
    if ended.is_err() {
        return Err("tasks of clients do not end".to_owned());
    }
    let in_flight = settled(&clients).await;
    row("end", &load, &clients, &mut observed).await;
    judge(&load, in_flight, &observed)
}

fn watched(name: &'static str, pid: u32) -> Observed {
    Observed { name, pid, first: None, last: Figures::default() }
}

async fn over_http(url: &str, revision: Revision) -> Result<Client, String> {
    let client = Client::builder().revision(revision).connect(url).await;
    client.map_err(|error| error.to_string())
}

async fn over_stdio(program: &Path, revision: Revision) -> Result<(Child, Client), String> {
    let mut command = tokio::process::Command::new(program);
    command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = spawn(command.stderr(Stdio::null()))?;
    let input = child.stdin.take().ok_or("a server without standard input")?;
    let output = child.stdout.take().ok_or("a server without standard output")?;
    let client = Client::builder().revision(revision).over_halves(output, input).await;
    Ok((child, client.map_err(|error| error.to_string())?))
}

/// Makes one call after another.
async fn work(load: &Load, client: &Client, mut random: Random) {
    while !load.stopped.load(Relaxed) {
        match random.below(20) {
            0..10 => echo(load, client, &mut random).await,
            10..13 => add(load, client, &mut random).await,
            13..17 => cancel(load, client, &mut random).await,
            17..19 => progress(load, client, &mut random).await,
            _ => listen(load, client).await,
        }
    }
}

/// Waits for the result of a call; counts one that does not come.
async fn result(load: &Load, call: Call<CallToolResult>) -> Option<CallToolResult> {
    match timeout(PATIENCE, call).await {
        Ok(Ok(result)) => {
            load.counts.calls.fetch_add(1, Relaxed);
            return Some(result);
        }
        Ok(Err(error)) => load.lost(error),
        Err(_) => load.lost("no answer"),
    }
    None
}

async fn echo(load: &Load, client: &Client, random: &mut Random) {
    let length = if random.below(50) == 0 { 200_000 } else { 200 };
    let length = random.below(length);
    let text: String = random.bytes(length).iter().map(|byte| char::from(byte % 94 + 33)).collect();
    let found = result(load, client.call_tool("echo", json!({"text": text}))).await;
    if let Some(found) = found.map(|found| found.to_text())
        && found != text
    {
        load.wrong("echo", &found);
    }
}

async fn add(load: &Load, client: &Client, random: &mut Random) {
    let (a, b) = (random.below(1_000_000), random.below(1_000_000));
    let found = result(load, client.call_tool("add", json!({"a": a, "b": b}))).await;
    let sum = found.map(|found| found.structured_content.map(|sum| sum.as_str().to_owned()));
    if let Some(sum) = sum
        && sum.as_deref() != Some(&*format!(r#"{{"sum":{}}}"#, a + b))
    {
        load.wrong("add", &format!("{sum:?}"));
    }
}

async fn cancel(load: &Load, client: &Client, random: &mut Random) {
    let call = client.call_tool("sleep", json!({"ms": 3_600_000}));
    let time = Duration::from_micros(random.below(10_000) as u64);
    match timeout(time, call).await {
        Err(_) => {
            load.counts.cancels.fetch_add(1, Relaxed);
        }
        Ok(Ok(found)) => load.wrong("sleep", &found.to_text()),
        Ok(Err(error)) => load.lost(error),
    }
}

async fn progress(load: &Load, client: &Client, random: &mut Random) {
    let from = random.below(20) as u64 + 1;
    let last = Arc::new(AtomicU64::new(0));
    let (heard, ordered) = (last.clone(), Arc::new(AtomicBool::new(true)));
    let order = ordered.clone();
    let call = client.call_tool("countdown", json!({"from": from, "delay_ms": 0}));
    let call = call.on_progress(move |progress| {
        let step = progress.progress as u64;
        if heard.swap(step, Relaxed) >= step {
            order.store(false, Relaxed);
        }
    });
    let Some(found) = result(load, call).await else { return };
    let steps = last.load(Relaxed);
    load.counts.progress.fetch_add(steps, Relaxed);
    if found.to_text() != "done" || steps > from || !ordered.load(Relaxed) {
        load.wrong("countdown", &format!("{steps} of {from}: {}", found.to_text()));
    }
}

async fn listen(load: &Load, client: &Client) {
    let heard = async {
        let mut listening = client.listen(Filter::new().tools()).await?;
        client.call_tool("announce", ()).await?;
        listening.next().await.transpose()
    };
    match timeout(PATIENCE, heard).await {
        Ok(Ok(Some(_))) => {
            load.counts.listens.fetch_add(1, Relaxed);
        }
        Ok(Ok(None)) => load.lost("a listen stream ended"),
        Ok(Err(error)) => load.lost(error),
        Err(_) => load.lost("no event"),
    }
}

/// Opens clients that make a few calls and leave, over HTTP and as child processes.
async fn sessions(load: &Load, mut random: Random) {
    while !load.stopped.load(Relaxed) {
        let revision =
            [Revision::V2026_07_28, Revision::V2025_11_25, Revision::V2025_03_26][random.below(3)];
        let builder = Client::builder().revision(revision);
        let mut command = std::process::Command::new(&load.program);
        command.arg("serve");
        let client = match random.below(10) {
            0 => builder.spawn(command).await,
            _ => builder.connect(&load.url).await,
        };
        match client {
            Ok(client) => {
                for _ in 0..random.below(5) {
                    echo(load, &client, &mut random).await;
                }
                load.counts.sessions.fetch_add(1, Relaxed);
                if random.below(2) == 0 {
                    client.close().await;
                }
            }
            Err(error) => load.lost(error),
        }
    }
}

/// Returns how many handlers run on all servers.
async fn in_flight(clients: &[Client]) -> u64 {
    let mut sum = 0;
    for client in clients {
        let stats = client.call_tool("stats", ()).timeout(PATIENCE).await;
        let stats = stats.ok().and_then(|found| found.structured_content);
        let stats =
            stats.and_then(|raw| serde_json::from_str::<serde_json::Value>(raw.as_str()).ok());
        sum += stats.and_then(|stats| stats["in_flight"].as_u64()).unwrap_or(u64::from(u32::MAX));
    }
    sum
}

/// Waits until no handler runs, for a while; returns how many still do.
async fn settled(clients: &[Client]) -> u64 {
    let start = Instant::now();
    loop {
        let running = in_flight(clients).await;
        if running == 0 || start.elapsed() > PATIENCE {
            return running;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn row(minute: &str, load: &Load, clients: &[Client], observed: &mut [Observed]) {
    let running = in_flight(clients).await;
    let counts = &load.counts;
    let counted = [
        &counts.calls,
        &counts.cancels,
        &counts.progress,
        &counts.listens,
        &counts.sessions,
        &counts.lost,
        &counts.wrong,
    ]
    .map(|count| count.load(Relaxed).to_string());
    let figures: Vec<String> = observed
        .iter_mut()
        .map(|server| {
            server.last = Figures::of(server.pid).unwrap_or_default();
            let Figures { rss, descriptors, threads, .. } = server.last;
            format!("{:.1}, {descriptors}, {threads}", rss as f64 / 1024.0)
        })
        .collect();
    println!("| {minute} | {} | {running} | {} |", counted.join(" | "), figures.join(" | "));
}

fn judge(load: &Load, in_flight: u64, observed: &[Observed]) -> Result<(), String> {
    let mut problems = Vec::new();
    let counts = &load.counts;
    for (count, what) in [(&counts.lost, "lost"), (&counts.wrong, "wrong")] {
        match count.load(Relaxed) {
            0 => {}
            count => problems.push(format!("{count} answers are {what}")),
        }
    }
    if in_flight > 0 {
        problems.push(format!("{in_flight} handlers run although no client waits for them"));
    }
    for Observed { name, first, last, .. } in observed {
        let first = first.unwrap_or_default();
        if last.rss == 0 {
            problems.push(format!("{name}: the process has ended"));
        }
        if last.rss > first.rss + first.rss / 4 + GROWTH {
            problems.push(format!("{name}: memory grew from {} to {} KiB", first.rss, last.rss));
        }
        if last.descriptors > first.descriptors + 16 {
            let (from, to) = (first.descriptors, last.descriptors);
            problems.push(format!("{name}: descriptors grew from {from} to {to}"));
        }
        if last.threads > first.threads + 8 {
            problems
                .push(format!("{name}: threads grew from {} to {}", first.threads, last.threads));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}
