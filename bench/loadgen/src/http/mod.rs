//! The scenarios over HTTP.

mod closed_loop;
mod connection;
mod listen;

use std::time::{Duration, Instant};

use bench_util::process::{Noise, cpu_ms, resident_kib};
use bench_util::{counter, percentile};
use memchr::memmem;
use tokio::process::Child;

use self::connection::Connection;
pub(crate) use self::connection::Endpoint;
use crate::candidate::Candidate;
use crate::message::{Era, INITIALIZED, Load, call, cancelled, initialize, post, request};
use crate::options::Options;
use crate::{Metrics, Outcome};

/// Cycles of the cancel scenario.
const CYCLES: u64 = 4;
/// How long anything may take that should happen at once.
const AT_ONCE: Duration = Duration::from_secs(20);

pub(crate) async fn run(
    kind: &str,
    count: usize,
    candidate: &Candidate,
    options: &Options,
) -> Outcome<Metrics> {
    let kind = kind.strip_prefix("http-").ok_or("an unknown scenario")?;
    let tools = if kind == "list" { options.tools } else { 0 };
    let server = Server::start(candidate, options, tools).await?;
    if let Some(load) = Load::parse(kind) {
        return closed_loop::run(load, count, &server, options).await;
    }
    match kind {
        "progress" => progress(count, &server, options).await,
        "cancel" => cancel(count, &server, options).await,
        "listen" => listen::run(count, &server, options).await,
        "smoke" => smoke(&server, options).await,
        _ => Err("an unknown scenario".into()),
    }
}

struct Server {
    /// Killed when dropped.
    _child: Option<Child>,
    pid: u32,
    endpoint: Endpoint,
}

impl Server {
    async fn start(candidate: &Candidate, options: &Options, tools: usize) -> Outcome<Self> {
        if let Some(url) = &candidate.url {
            let endpoint = Endpoint::parse(url);
            return Ok(Self { _child: None, pid: candidate.pid.unwrap_or(0), endpoint });
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = candidate.spawn_http(options, tools, port)?;
        let pid = child.id().ok_or("the server is gone")?;
        let path = candidate.path.clone().unwrap_or_else(|| "/mcp".to_owned());
        let endpoint = Endpoint { address: format!("127.0.0.1:{port}"), path };
        let waiting = Instant::now();
        while Connection::open(&endpoint).await.is_err() {
            if waiting.elapsed() > AT_ONCE {
                return Err("the server does not listen".into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(Self { _child: Some(child), pid, endpoint })
    }
}

/// One connection and, in the legacy era, its session.
struct Client {
    connection: Connection,
    endpoint: Endpoint,
    era: Era,
    session: Option<String>,
    next_id: u64,
    answer: Vec<u8>,
}

impl Client {
    async fn new(endpoint: &Endpoint, era: Era) -> Outcome<Self> {
        let mut client = Self {
            connection: Connection::open(endpoint).await?,
            endpoint: endpoint.clone(),
            era,
            session: None,
            next_id: 1,
            answer: Vec::new(),
        };
        if era == Era::Legacy {
            client.post("initialize", None, &initialize(0)).await?;
            client.session = client.connection.head.session.clone();
            client.post("notifications/initialized", None, INITIALIZED).await?;
        }
        Ok(client)
    }

    /// One POST; the answer is in `answer`.
    async fn post(&mut self, method: &str, name: Option<&str>, body: &str) -> Outcome<()> {
        let request = post(&self.endpoint, self.era, self.session.as_deref(), method, name, body);
        self.connection.exchange(&request, &mut self.answer).await?;
        let status = self.connection.head.status;
        if !(200..300).contains(&status) {
            let answer = String::from_utf8_lossy(&self.answer);
            return Err(format!("{method}: HTTP {status} {answer}").into());
        }
        let session = self.connection.head.session.clone();
        self.connection.keep(&self.endpoint).await?;
        self.connection.head.session = session;
        Ok(())
    }

    async fn tool(&mut self, name: &str, arguments: &str) -> Outcome<String> {
        self.next_id += 1;
        let body = call(self.era, self.next_id, name, arguments, "");
        self.post("tools/call", Some(name), &body).await?;
        Ok(String::from_utf8_lossy(&self.answer).into_owned())
    }

    async fn counter(&mut self, name: &str) -> Outcome<i64> {
        let answer = self.tool("stats", "").await?;
        counter(&answer, name).ok_or_else(|| format!("no {name} in {answer}").into())
    }
}

/// One call after another, each with `count` progress notifications before its answer.
async fn progress(count: usize, server: &Server, options: &Options) -> Outcome<Metrics> {
    let mut client = Client::new(&server.endpoint, options.era).await?;
    let mut id = 10;
    let warm = Instant::now();
    while warm.elapsed().as_secs_f64() < options.warm_up {
        id += 1;
        progress_call(id, count, &mut client).await?;
    }
    let noise = Noise::start(server.pid);
    let (started, cpu) = (Instant::now(), cpu_ms(server.pid));
    let (mut first, mut notes) = (Vec::new(), 0);
    while started.elapsed().as_secs_f64() < options.seconds {
        id += 1;
        first.push(progress_call(id, count, &mut client).await?.as_nanos() as u64);
        notes += count;
    }
    let notes = notes as f64;
    Ok(vec![
        ("notifications_s", notes / started.elapsed().as_secs_f64()),
        ("cpu_ms_per_1k_notif", (cpu_ms(server.pid) - cpu) / notes * 1e3),
        ("first_event_p50_us", percentile(&mut first, 0.5) / 1e3),
        ("rss_mib", resident_kib(server.pid) / 1024.0),
        ("other_pct", noise.percent()),
    ])
}

/// Returns how long the first event took.
async fn progress_call(id: u64, count: usize, client: &mut Client) -> Outcome<Duration> {
    let arguments = format!(r#""n":{count}"#);
    let meta = format!(r#""progressToken":{id}"#);
    let body = call(client.era, id, "progress", &arguments, &meta);
    let started = Instant::now();
    client.post("tools/call", Some("progress"), &body).await?;
    let first = client.connection.first_data.map_or(Duration::ZERO, |first| first - started);
    let seen = memmem::find_iter(&client.answer, b"notifications/progress").count();
    if seen == count {
        return Ok(first);
    }
    Err(format!("{seen} of {count} progress notifications").into())
}

/// `count` slow calls in flight, each on its own connection, then all of them abandoned.
async fn cancel(count: usize, server: &Server, options: &Options) -> Outcome<Metrics> {
    let mut control = Client::new(&server.endpoint, options.era).await?;
    control.counter("started").await?;
    let idle = resident_kib(server.pid);
    let noise = Noise::start(server.pid);
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    let (mut in_flight, mut after_first, mut never_released) = (0.0, 0.0, 0);
    for cycle in 0..CYCLES {
        let before = control.counter("released").await?;
        let first_id = 1000 + cycle * 100_000;
        let calls = start_slow(first_id, count, server, &mut control).await?;
        if cycle == 0 {
            in_flight = resident_kib(server.pid) - idle;
        }
        let (started, cpu_before) = (Instant::now(), cpu_ms(server.pid));
        let kept = abandon(calls, &mut control).await?;
        let wanted = before + count as i64;
        let mut released = control.counter("released").await?;
        while released < wanted && started.elapsed() < AT_ONCE {
            released = control.counter("released").await?;
        }
        if released < wanted {
            never_released = wanted - released;
            break;
        }
        times.push(started.elapsed().as_nanos() as u64);
        cpu.push(((cpu_ms(server.pid) - cpu_before) * 1e6) as u64);
        drop(kept);
        tokio::time::sleep(Duration::from_millis(300)).await;
        if cycle == 0 {
            after_first = resident_kib(server.pid);
        }
    }
    let now = resident_kib(server.pid);
    Ok(vec![
        ("release_ms_p50", percentile(&mut times, 0.5) / 1e6),
        ("cancel_cpu_ms", percentile(&mut cpu, 0.5) / 1e6),
        ("never_released", never_released as f64),
        ("kib_per_inflight", in_flight / count as f64),
        ("rss_kept_kib_per_call", (after_first - idle) / count as f64),
        ("rss_growth_kib_per_call", (now - after_first) / count as f64),
        ("other_pct", noise.percent()),
    ])
}

/// Starts slow calls and returns when all of their handlers run.
async fn start_slow(
    first_id: u64,
    count: usize,
    server: &Server,
    control: &mut Client,
) -> Outcome<Vec<(u64, Connection)>> {
    let before = control.counter("started").await?;
    let mut calls = Vec::with_capacity(count);
    for id in first_id..first_id + count as u64 {
        let mut connection = Connection::open(&server.endpoint).await?;
        let body = call(control.era, id, "slow", "", "");
        let session = control.session.as_deref();
        let request =
            post(&server.endpoint, control.era, session, "tools/call", Some("slow"), &body);
        connection.send(&request).await?;
        calls.push((id, connection));
    }
    let waiting = Instant::now();
    loop {
        let started = control.counter("started").await? - before;
        if started == count as i64 {
            return Ok(calls);
        }
        if waiting.elapsed() > AT_ONCE {
            return Err(format!("only {started} of {count} slow calls run at once").into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Closes the connections or, in the legacy era, posts the cancellations and keeps them.
async fn abandon(
    calls: Vec<(u64, Connection)>,
    control: &mut Client,
) -> Outcome<Vec<(u64, Connection)>> {
    match control.era {
        Era::Modern => {
            drop(calls);
            Ok(Vec::new())
        }
        Era::Legacy => {
            for (id, _) in &calls {
                control.post("notifications/cancelled", None, &cancelled(*id)).await?;
            }
            Ok(calls)
        }
    }
}

/// Shows the answers, for somebody who writes a candidate.
async fn smoke(server: &Server, options: &Options) -> Outcome<Metrics> {
    let mut client = Client::new(&server.endpoint, options.era).await?;
    eprintln!("session: {:?}", client.session);
    let calls =
        [("echo", r#""text":"hi""#), ("add", r#""a":1,"b":2"#), ("stats", ""), ("emit", "")];
    for (tool, arguments) in calls {
        eprintln!("{tool}: {}", client.tool(tool, arguments).await?);
    }
    client.post("tools/list", None, &request(options.era, 77, "tools/list", "", "")).await?;
    let list = String::from_utf8_lossy(&client.answer);
    eprintln!("list: {}", list.chars().take(1200).collect::<String>());
    progress_call(79, 3, &mut client).await?;
    Ok(vec![("ok", 1.0)])
}
