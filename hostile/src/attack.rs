//! An attack: its name, its bounds, and how it is run and judged.

use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    process::{Figures, Server, Socket},
    random::Random,
    wire::{endpoint::Endpoint, http1::Http1, message::modern_call},
    witness::{Testimony, WITNESS, Witness},
};

/// The function of an attack.
pub(crate) type Run = Box<dyn Fn(Arc<Trial>) -> Running + Send + Sync>;
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// What all attacks share.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The `turnbuckle` command.
    pub(crate) program: PathBuf,
    pub(crate) seed: u64,
    pub(crate) extent: Extent,
}

/// Whether attacks may take their time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Extent {
    Quick,
    Full,
}

/// An attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// Whether it takes longer than a quick run permits.
    pub(crate) extent: Extent,
    pub(crate) kind: Kind,
}

/// The side that is attacked.
pub(crate) enum Kind {
    /// The demo server over HTTP, with a witness.
    Http { socket: Socket, bounds: Bounds, run: Run },
    /// A process that the attack starts itself.
    Process { bounds: Bounds, run: Run },
    /// A client in processes that the attack starts itself, which mostly wait.
    Client { bounds: Bounds, run: Run },
}

/// The figures that an attack must not exceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The largest peak of the resident memory, in MiB.
    pub(crate) peak: u64,
    /// The largest resident memory after the attack, in MiB.
    pub(crate) after: u64,
    pub(crate) threads: u64,
    pub(crate) descriptors: u64,
    pub(crate) others: Others,
}

/// What an attack may do to others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Others {
    /// Every request is served.
    Served,
    /// Requests may be refused with status 503, but each is answered.
    MayBeRefused,
    /// Connections may wait while the attack lasts.
    MayWait,
}

/// The default. The demo server needs 27 MiB and one thread; one address has at most 1,024 connections.
pub(crate) const BOUNDS: Bounds =
    Bounds { peak: 160, after: 160, threads: 4, descriptors: 1_100, others: Others::Served };
/// Attacks that fill the memory budget of 256 MiB. Buffers that grow double it at most; the allocator
/// keeps a part of the freed memory.
pub(crate) const BUDGET: Bounds = Bounds { peak: 640, after: 320, ..BOUNDS };

/// An attack that runs.
pub(crate) struct Trial {
    pub(crate) world: World,
    pub(crate) endpoint: Endpoint,
    /// The process of the server, if it is served over HTTP.
    pub(crate) pid: u32,
    /// Observes the processes that the attack starts or that the server is.
    pub(crate) observed: Observed,
    notes: Mutex<Vec<String>>,
}

impl Trial {
    /// Returns the first number in a quick run, otherwise the second.
    pub(crate) fn scale<T>(&self, quick: T, full: T) -> T {
        if self.world.extent == Extent::Quick { quick } else { full }
    }

    pub(crate) fn random(&self) -> Random {
        Random::new(self.world.seed)
    }

    /// Adds a figure to the report.
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    /// Calls the tool `stats` of the demo server.
    pub(crate) async fn stats(&self) -> Result<Value, String> {
        stats(&self.endpoint).await
    }

    /// Waits until a condition on the `stats` of the server holds.
    pub(crate) async fn until(
        &self,
        what: &str,
        patience: Duration,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<Duration, String> {
        let start = Instant::now();
        loop {
            let stats = self.stats().await;
            if stats.as_ref().is_ok_and(&holds) {
                return Ok(start.elapsed());
            }
            if start.elapsed() > patience {
                return Err(format!("not {what} after {patience:?}: {stats:?}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The largest figures of some processes so far.
#[derive(Clone, Default)]
pub(crate) struct Observed(Arc<Mutex<Figures>>);

impl Observed {
    /// Observes a process until it ends or the returned value is dropped.
    pub(crate) fn watch(&self, pid: u32) -> Watching {
        let largest = self.clone();
        Watching(tokio::spawn(async move {
            while let Some(figures) = Figures::of(pid) {
                largest.lock().raise(figures);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }))
    }

    pub(crate) fn largest(&self) -> Figures {
        *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The observation of a process.
pub(crate) struct Watching(tokio::task::JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The result of an attack.
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) before: Figures,
    pub(crate) largest: Figures,
    pub(crate) after: Figures,
    pub(crate) others: Option<Testimony>,
    pub(crate) notes: Vec<String>,
    pub(crate) problems: Vec<String>,
}

/// How long a server has to release everything after an attack.
const RELEASE: Duration = Duration::from_secs(15);

impl Attack {
    /// Returns whether others may run beside it.
    pub(crate) fn is_light(&self) -> bool {
        matches!(self.kind, Kind::Client { .. })
    }

    pub(crate) async fn run(&self, world: &World) -> Report {
        let mut report = Report {
            name: self.name,
            took: Duration::ZERO,
            before: Figures::default(),
            largest: Figures::default(),
            after: Figures::default(),
            others: None,
            notes: Vec::new(),
            problems: Vec::new(),
        };
        let start = Instant::now();
        let ended = match &self.kind {
            Kind::Http { socket, bounds, run } => {
                over_http(world, *socket, bounds, run, &mut report).await
            }
            Kind::Process { bounds, run } | Kind::Client { bounds, run } => {
                alone(world, bounds, run, &mut report).await
            }
        };
        report.problems.extend(ended.err());
        report.took = start.elapsed();
        report
    }
}

async fn over_http(
    world: &World,
    socket: Socket,
    bounds: &Bounds,
    run: &Run,
    report: &mut Report,
) -> Result<(), String> {
    let mut server = Server::start(&world.program, socket).await?;
    let trial = Arc::new(Trial {
        world: world.clone(),
        endpoint: server.endpoint.clone(),
        pid: server.pid,
        observed: Observed::default(),
        notes: Mutex::default(),
    });
    let watching = trial.observed.watch(server.pid);
    let witness = Witness::start(server.endpoint.clone());
    witness.served_again(RELEASE).await?;
    witness.served_again(RELEASE).await?;
    report.before = Figures::of(server.pid).ok_or("the server has ended")?;
    let attacked = run(trial.clone()).await;
    report.problems.extend(attacked.err());
    report.problems.extend(server.check().err());
    if report.problems.iter().any(|problem| problem.starts_with("the server ended")) {
        report.largest = trial.observed.largest();
        report.notes = trial.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        return Ok(());
    }
    report.problems.extend(witness.served_again(RELEASE).await.err());
    let released = trial.until("released", RELEASE, |stats| stats["in_flight"] == 0).await;
    report.problems.extend(released.err());
    let connections = report.before.descriptors + 8;
    let start = Instant::now();
    while Figures::of(server.pid).is_some_and(|now| now.descriptors > connections) {
        if start.elapsed() > RELEASE {
            report.problems.push("the server keeps descriptors after the attack".to_owned());
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    report.others = Some(witness.so_far());
    drop((witness, watching));
    report.after = Figures::of(server.pid).ok_or("the server has ended")?;
    report.largest = trial.observed.largest();
    report.largest.raise(report.after);
    report.notes = trial.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    judge(report, bounds);
    Ok(())
}

async fn alone(
    world: &World,
    bounds: &Bounds,
    run: &Run,
    report: &mut Report,
) -> Result<(), String> {
    let trial = Arc::new(Trial {
        world: world.clone(),
        endpoint: Endpoint::Unix(PathBuf::new()),
        pid: 0,
        observed: Observed::default(),
        notes: Mutex::default(),
    });
    let ended = run(trial.clone()).await;
    report.largest = trial.observed.largest();
    report.notes = trial.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    judge(report, bounds);
    ended
}

fn judge(report: &mut Report, bounds: &Bounds) {
    let mut exceeds = |what: &str, found: u64, bound: u64| {
        if found > bound {
            report.problems.push(format!("{what}: {found}, more than {bound}"));
        }
    };
    exceeds("peak of the memory in MiB", report.largest.peak >> 10, bounds.peak);
    exceeds("memory afterwards in MiB", report.after.rss >> 10, bounds.after);
    exceeds("threads", report.largest.threads, bounds.threads);
    exceeds("descriptors", report.largest.descriptors, bounds.descriptors);
    let Some(others) = &report.others else { return };
    if others.refused > 0 && bounds.others == Others::Served {
        report.problems.push(format!("{} requests of others were refused", others.refused));
    }
    if others.failed > 0 && bounds.others != Others::MayWait {
        let first = others.failure.as_deref().unwrap_or_default();
        report.problems.push(format!("{} requests of others failed: {first}", others.failed));
    }
}

/// Checks that a client of another address is served.
pub(crate) async fn served(trial: &Trial) -> Result<(), String> {
    trial.stats().await.map(drop)
}

/// Calls the tool `stats` of a demo server.
async fn stats(endpoint: &Endpoint) -> Result<Value, String> {
    let asked = async {
        let mut connection = Http1::new(endpoint.connect(WITNESS + 1).await?);
        connection.ask(&modern_call("stats", "stats", json!({}))).await
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), asked).await;
    let answer = answer.map_err(|_| "`stats` was not answered in 10 s".to_owned())?;
    let answer = answer.map_err(|error| format!("`stats` was not answered: {error}"))?;
    match answer.message()["result"]["structuredContent"].take() {
        Value::Null => Err(format!("`stats` got status {}: {}", answer.status, answer.body)),
        stats => Ok(stats),
    }
}
