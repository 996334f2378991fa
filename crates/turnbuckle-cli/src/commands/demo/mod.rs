//! `turnbuckle demo`: what is shown, in which words, and whether it really holds.

mod web;

use std::{
    cell::Cell,
    io::{IsTerminal, Write},
    process::Command,
    time::Duration,
};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnbuckle::{
    Call, Client, ClientBuilder, Revision,
    types::{CallToolResult, Era, Progress},
};

use crate::{
    args::{Demo, Format},
    demo_server::{self, Stats},
    exit::Failure,
    interrupt::EndSignals,
    output::{print, print_json, result_text},
    progress::{render, width},
};
use web::Web;

/// How many steps the progress bar has.
const STEPS: u32 = 10;
/// How long a server may take to hear of something.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(arguments: Demo) -> Result<(), Failure> {
    let mut signals = EndSignals::listen()?;
    let report = Report(arguments.output);
    // Programs need no time to read.
    let pace = match arguments.output {
        Format::Text if !arguments.fast => Pace::Calm,
        _ => Pace::Fast,
    };
    tokio::select! {
        biased;
        signal = signals.happened() => Err(signal.failure("the demo was not finished")),
        shown = show(pace, report) => shown,
    }
    .inspect_err(Failure::report)
}

async fn show(pace: Pace, report: Report) -> Result<(), Failure> {
    report.say(
        "This demo starts Turnbuckle's demo server as a child process and talks to it over\n\
         stdio, once in each era of the Model Context Protocol, and then over HTTP.",
    )?;
    for (era, heading, pinned) in [
        (Era::Modern, "The modern era: every request stands for itself", None),
        (
            Era::Legacy,
            "The legacy era: a handshake opens the connection",
            Some(Revision::LATEST_LEGACY),
        ),
    ] {
        report.say(&format!("\n=== {heading} ==="))?;
        pace.pause().await;
        let client = connect(pinned, report).await?;
        holds(client.revision().era() == era, "the connection is of the other era")?;
        let shown = acts(&Caller::new(&client, Order::OfTheWire, report), pace).await;
        client.close().await;
        shown?;
    }
    report.say("\n=== Over HTTP: every call is a POST of its own ===")?;
    pace.pause().await;
    over_http(pace, report).await?;
    report.tell(&json!({"event": "done"}))?;
    report.say(
        "\nThat is what Turnbuckle is for: drop a call, and the work on the other side stops.\n\
         Next: turnbuckle --help, or turnbuckle tools \"turnbuckle serve\"",
    )
}

async fn connect(pinned: Option<Revision>, report: Report) -> Result<Client, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("this program can't find itself: {error}")))?;
    let mut builder = builder();
    if let Some(revision) = pinned {
        builder = builder.revision(revision);
    }
    let client = builder.spawn(Command::new(program).arg("serve")).await?;
    let how = match pinned {
        None => "agreed on by asking the server",
        Some(_) => "as if the client knew no other",
    };
    let revision = client.revision();
    report.tell(&json!({"event": "connected", "over": "stdio", "revision": revision.as_str()}))?;
    report.say(&format!("Connected, speaking revision {revision}, {how}."))?;
    Ok(client)
}

/// The same once more, with the server behind a port of this machine.
async fn over_http(pace: Pace, report: Report) -> Result<(), Failure> {
    let web = Web::start(&demo_server::server()).await?;
    // Whatever proxy this machine has, the way to itself leads through none.
    let client = builder().no_proxy().connect(web.url()).await?;
    let revision = client.revision();
    report
        .tell(&json!({"event": "connected", "over": web.url(), "revision": revision.as_str()}))?;
    report.say(&format!("Connected to {}, speaking revision {revision}.", web.url()))?;
    let before = web.posts();
    let caller = Caller::new(&client, Order::None, report);
    acts(&caller, pace).await?;
    let (calls, posts) = (caller.calls.get(), web.posts() - before);
    report.tell(&json!({"event": "counted", "calls": calls, "posts": posts}))?;
    report.say(&format!(
        "   The client made {calls} calls and the server saw {posts} POSTs: nothing was sent to \
         cancel.\n   Closing the abandoned call's own POST was the cancel."
    ))?;
    holds(posts == calls, "the number of POSTs is not the number of calls")
}

fn builder() -> ClientBuilder {
    Client::builder().info("turnbuckle-demo", env!("CARGO_PKG_VERSION"))
}

/// A client whose calls are counted.
struct Caller<'a> {
    client: &'a Client,
    calls: Cell<u64>,
    order: Order,
    report: Report,
}

/// In which order a server hears what a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// In the order in which it was done: there is one stream for all.
    OfTheWire,
    /// In none: each call has a connection of its own.
    None,
}

impl<'a> Caller<'a> {
    fn new(client: &'a Client, order: Order, report: Report) -> Caller<'a> {
        Caller { client, calls: Cell::new(0), order, report }
    }

    fn call(&self, tool: &str, arguments: impl Serialize) -> Call<CallToolResult> {
        self.calls.set(self.calls.get() + 1);
        self.client.call_tool(tool, arguments)
    }

    async fn stats(&self) -> Result<Stats, Failure> {
        let result = self.call("stats", ()).await?;
        result
            .structured_content
            .and_then(|stats| stats.decode().ok())
            .ok_or_else(|| Failure::failed("the demo server's statistics can't be read"))
    }

    /// The server's counts, once it has heard of what was done: on a stream it has heard of
    /// everything that came before the question, elsewhere it is asked until `heard` holds.
    async fn stats_when(&self, heard: impl Fn(&Stats) -> bool) -> Result<Stats, Failure> {
        let asked = Instant::now();
        loop {
            let stats = self.stats().await?;
            if self.order == Order::OfTheWire || heard(&stats) || asked.elapsed() > PATIENCE {
                return Ok(stats);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn acts(caller: &Caller<'_>, pace: Pace) -> Result<(), Failure> {
    pace.pause().await;
    a_call(caller).await?;
    pace.pause().await;
    a_progress_bar(caller, pace).await?;
    pace.pause().await;
    an_abandoned_call(caller, pace).await
}

async fn a_call(caller: &Caller<'_>) -> Result<(), Failure> {
    caller.report.say("\n1. A call: add a=2 b=40")?;
    let sum = caller.call("add", json!({"a": 2, "b": 40})).await?;
    caller.report.answered("add", &sum)?;
    let answered = sum.structured_content.and_then(|sum| sum.decode::<Value>().ok());
    holds(answered == Some(json!({"sum": 42})), "the server can't add")
}

async fn a_progress_bar(caller: &Caller<'_>, pace: Pace) -> Result<(), Failure> {
    let report = caller.report;
    report.say(&format!("\n2. Progress, reported while the call runs: countdown from={STEPS}"))?;
    let (sender, receiver) = std::sync::mpsc::sync_channel(STEPS as usize);
    let delay = pace.step().as_millis() as u64;
    let call = caller.call("countdown", json!({"from": STEPS, "delay_ms": delay})).on_progress(
        move |progress| {
            report.progressed(&progress);
            // Full only if the server reports more than it should, which is noticed below.
            let _ = sender.try_send(progress.progress);
        },
    );
    let result = call.await;
    if std::io::stdout().is_terminal() {
        report.say("")?;
    }
    let result = result?;
    report.answered("countdown", &result)?;
    let reports: Vec<f64> = receiver.try_iter().collect();
    let expected: Vec<f64> = (1..=STEPS).map(f64::from).collect();
    holds(
        reports == expected && result_text(&result) == "done",
        "the progress was not complete and in order",
    )
}

async fn an_abandoned_call(caller: &Caller<'_>, pace: Pace) -> Result<(), Failure> {
    caller.report.say("\n3. A call that is abandoned halfway: sleep ms=60000")?;
    let before = caller.stats().await?;
    let mut sleeping = caller.call("sleep", json!({"ms": 60_000})).into_future();
    // Sent before the question; on a stream it has then begun before that is answered.
    let running = tokio::select! {
        biased;
        ended = &mut sleeping => {
            return match ended {
                Ok(_) => Err(Failure::failed("the demo does not hold: the server did not sleep")),
                Err(error) => Err(error.into()),
            };
        }
        stats = caller.stats_when(|stats| stats.in_flight == 1) => stats?,
    };
    caller.report.tell(&json!({"event": "running", "tool": "sleep", "counts": running}))?;
    caller.report.say(&format!("   while it runs, the server counts:  {}", counts(&running)))?;
    let expected = Stats { started: before.started + 1, in_flight: 1, ..before };
    holds(running == expected, "the handler did not begin")?;
    pace.pause().await;
    caller
        .report
        .say("   … and now the client drops the call, as if its user had lost interest")?;
    drop(sleeping);
    // On a stream the cancellation is ahead of this question, and is heard first.
    let stopped = caller.stats_when(|stats| stats.in_flight == 0).await?;
    caller.report.tell(&json!({"event": "abandoned", "tool": "sleep", "counts": stopped}))?;
    caller.report.say(&format!("   after that, the server counts:     {}", counts(&stopped)))?;
    let expected = Stats { cancelled: before.cancelled + 1, in_flight: 0, ..running };
    holds(stopped == expected && stopped.cancelled == 1, "the handler did not stop")?;
    caller
        .report
        .say("   The handler is gone: cancelled 1, in flight 0, with most of its minute left.")
}

fn counts(stats: &Stats) -> String {
    let Stats { started, completed, cancelled, in_flight } = stats;
    format!(
        "started {started}, completed {completed}, cancelled {cancelled}, in flight {in_flight}"
    )
}

fn holds(shown: bool, otherwise: &str) -> Result<(), Failure> {
    if shown {
        return Ok(());
    }
    Err(Failure::failed(format!("the demo does not hold: {otherwise}")))
}

/// Draws the bar over itself on a terminal, and below itself elsewhere.
fn draw(bar: &str) {
    let mut stdout = std::io::stdout().lock();
    let drawn = if stdout.is_terminal() {
        write!(stdout, "\r   {bar}\u{1b}[K")
    } else {
        writeln!(stdout, "   {bar}")
    };
    // A reader that has left misses nothing that matters.
    let _ = drawn.and_then(|()| stdout.flush());
}

/// Who is told: people, in sentences, or a program, in objects of a line each.
#[derive(Clone, Copy, Debug)]
struct Report(Format);

impl Report {
    /// Says something to people.
    fn say(self, text: &str) -> Result<(), Failure> {
        if self.0 == Format::Text { print(text) } else { Ok(()) }
    }

    /// Tells a program.
    fn tell(self, event: &Value) -> Result<(), Failure> {
        if self.0 == Format::Json { print_json(event) } else { Ok(()) }
    }

    fn answered(self, tool: &str, result: &CallToolResult) -> Result<(), Failure> {
        self.tell(&json!({"event": "answered", "tool": tool, "result": result}))?;
        self.say(&format!("   the server answers {}", result_text(result)))
    }

    fn progressed(self, progress: &Progress) {
        match self.0 {
            Format::Text => draw(&render(progress, width().saturating_sub(3))),
            Format::Json => {
                let event = json!({"event": "progress", "tool": "countdown",
                    "progress": progress.progress, "total": progress.total});
                // What can't be printed now can't be printed later either, and fails then.
                let _ = self.tell(&event);
            }
        }
    }
}

/// How much time people get to read.
#[derive(Clone, Copy, Debug)]
enum Pace {
    Calm,
    Fast,
}

impl Pace {
    async fn pause(self) {
        if let Pace::Calm = self {
            tokio::time::sleep(Duration::from_millis(800)).await;
        }
    }

    /// Between two steps of the progress bar.
    fn step(self) -> Duration {
        match self {
            Pace::Calm => Duration::from_millis(120),
            Pace::Fast => Duration::ZERO,
        }
    }
}
