//! Connections that each send a request, wait for the whole answer and send the next.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bench_util::percentile;
use bench_util::process::{Family, Noise, resident_kib};

use super::connection::Connection;
use super::{Client, Server};
use crate::message::{Load, post};
use crate::options::Options;
use crate::{Metrics, Outcome};

/// After so many wrong answers a connection gives up.
const BAD_ANSWERS: u32 = 100;

/// What all connections of a run share.
struct Run {
    load: Load,
    begin: Instant,
    end: Instant,
    next_id: u64,
    /// In nanoseconds, until the body ended and the connection could be used again.
    latencies: Vec<u64>,
    /// In nanoseconds, until the first byte of the body.
    first_bytes: Vec<u64>,
    bytes: usize,
    bad: u32,
}

pub(crate) async fn run(
    load: Load,
    count: usize,
    server: &Server,
    options: &Options,
) -> Outcome<Metrics> {
    let idle = resident_kib(server.pid);
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(Client::new(&server.endpoint, options.era).await?);
    }
    let begin = Instant::now() + Duration::from_secs_f64(options.warm_up);
    let end = begin + Duration::from_secs_f64(options.seconds);
    let run = Rc::new(RefCell::new(Run {
        load,
        begin,
        end,
        next_id: 1000,
        latencies: Vec::with_capacity(1 << 20),
        first_bytes: Vec::with_capacity(1 << 20),
        bytes: 0,
        bad: 0,
    }));
    let (cpu, resident, other) = tokio::task::LocalSet::new()
        .run_until(async {
            let loops: Vec<_> = clients
                .into_iter()
                .map(|client| tokio::task::spawn_local(keep_calling(client, run.clone())))
                .collect();
            let measured = watch(server.pid, begin, end).await;
            for one in loops {
                // A connection that failed has counted its wrong answers.
                let _ = one.await;
            }
            measured
        })
        .await;
    let mut run = run.borrow_mut();
    let answers = run.latencies.len() as f64;
    if answers == 0.0 {
        return Err("there was no right answer".into());
    }
    Ok(vec![
        ("rps", answers / options.seconds),
        ("p50_us", percentile(&mut run.latencies, 0.5) / 1e3),
        ("p99_us", percentile(&mut run.latencies, 0.99) / 1e3),
        ("result_p50_us", percentile(&mut run.first_bytes, 0.5) / 1e3),
        ("cpu_ms_per_1k", cpu / answers * 1e3),
        ("MB_s", run.bytes as f64 / options.seconds / 1e6),
        ("bytes_per_answer", run.bytes as f64 / answers),
        ("rss_idle_mib", idle / 1024.0),
        ("rss_load_mib", resident / 1024.0),
        ("bad", f64::from(run.bad)),
        ("other_pct", other),
    ])
}

/// The server's processor time, its largest memory, and what others used.
async fn watch(server: u32, begin: Instant, end: Instant) -> (f64, f64, f64) {
    tokio::time::sleep_until(begin.into()).await;
    let family = Family::of(server);
    let (cpu, noise) = (family.cpu_ms(), Noise::start(server));
    let mut resident = 0.0f64;
    while Instant::now() < end {
        resident = resident.max(resident_kib(server));
        let next = Instant::now() + Duration::from_millis(100);
        tokio::time::sleep_until(next.min(end).into()).await;
    }
    (family.cpu_ms() - cpu, resident, noise.percent())
}

async fn keep_calling(mut client: Client, run: Rc<RefCell<Run>>) {
    let mut answer = Vec::with_capacity(8192);
    loop {
        let (id, load, end) = {
            let mut run = run.borrow_mut();
            run.next_id += 1;
            (run.next_id, run.load.clone(), run.end)
        };
        let body = load.request(client.era, id);
        let session = client.session.as_deref();
        let request =
            post(&client.endpoint, client.era, session, load.method(), load.tool(), &body);
        let started = Instant::now();
        if started >= end {
            return;
        }
        let exchanged = client.connection.exchange(&request, &mut answer).await;
        let is_right = exchanged.is_ok()
            && client.connection.head.status == 200
            && load.is_answered(id, &answer);
        let first = client.connection.first_data;
        if run.borrow_mut().account(is_right, started, first, &answer) > BAD_ANSWERS {
            return;
        }
        let reopened = match exchanged {
            Ok(()) => client.connection.keep(&client.endpoint).await,
            Err(_) => Connection::open(&client.endpoint)
                .await
                .map(|connection| client.connection = connection),
        };
        if reopened.is_err() {
            return;
        }
    }
}

impl Run {
    /// Returns how many answers were wrong so far.
    fn account(
        &mut self,
        is_right: bool,
        started: Instant,
        first: Option<Instant>,
        answer: &[u8],
    ) -> u32 {
        let now = Instant::now();
        if !is_right {
            if self.bad == 0 {
                let shown = &answer[..answer.len().min(400)];
                eprintln!("    a wrong answer: {}", String::from_utf8_lossy(shown));
            }
            self.bad += 1;
        } else if started >= self.begin && now <= self.end {
            self.latencies.push((now - started).as_nanos() as u64);
            self.first_bytes.extend(first.map(|first| (first - started).as_nanos() as u64));
            self.bytes += answer.len();
        }
        self.bad
    }
}
