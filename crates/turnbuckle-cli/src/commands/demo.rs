//! Owns `turnbuckle demo`: what is shown, in which words, and whether it really holds.
//! Does not own the demo server, which runs as a child process.

use std::{
    io::{IsTerminal, Write},
    process::Command,
    time::Duration,
};

use serde_json::json;
use turnbuckle::{Client, Revision, types::Era};

use crate::{
    args::Demo,
    demo_server::Stats,
    exit::{Failure, Status},
    interrupt::Interrupt,
    output::{print, result_text},
    progress::{render, width},
};

/// How many steps the progress bar has.
const STEPS: u32 = 10;

pub(crate) async fn run(arguments: Demo) -> Result<(), Failure> {
    let mut interrupt = Interrupt::listen()?;
    let pace = if arguments.fast { Pace::Fast } else { Pace::Calm };
    tokio::select! {
        biased;
        () = interrupt.happened() => {
            Err(Failure::new(Status::Interrupted, "interrupted: the demo was not finished"))
        }
        shown = show(pace) => shown,
    }
    .inspect_err(Failure::report)
}

async fn show(pace: Pace) -> Result<(), Failure> {
    print(
        "This demo starts Turnbuckle's demo server as a child process and talks to it over\n\
         stdio, once in each era of the Model Context Protocol.",
    )?;
    for (era, heading, pinned) in [
        (Era::Modern, "The modern era: every request stands for itself", None),
        (
            Era::Legacy,
            "The legacy era: a handshake opens the connection",
            Some(Revision::LATEST_LEGACY),
        ),
    ] {
        print(&format!("\n=== {heading} ==="))?;
        pace.pause().await;
        let client = connect(pinned).await?;
        holds(client.revision().era() == era, "the connection is of the other era")?;
        let shown = acts(&client, pace).await;
        client.close().await;
        shown?;
    }
    print(
        "\nThat is what Turnbuckle is for: drop a call, and the work on the other side stops.\n\
         Next: turnbuckle --help, or turnbuckle tools \"turnbuckle serve\"",
    )
}

async fn connect(pinned: Option<Revision>) -> Result<Client, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("this program can't find itself: {error}")))?;
    let mut builder = Client::builder().info("turnbuckle-demo", env!("CARGO_PKG_VERSION"));
    if let Some(revision) = pinned {
        builder = builder.revision(revision);
    }
    let client = builder.spawn(Command::new(program).arg("serve")).await?;
    let how = match pinned {
        None => "agreed on by asking the server",
        Some(_) => "as if the client knew no other",
    };
    print(&format!("Connected, speaking revision {}, {how}.", client.revision()))?;
    Ok(client)
}

async fn acts(client: &Client, pace: Pace) -> Result<(), Failure> {
    pace.pause().await;
    a_call(client).await?;
    pace.pause().await;
    a_progress_bar(client, pace).await?;
    pace.pause().await;
    an_abandoned_call(client, pace).await
}

async fn a_call(client: &Client) -> Result<(), Failure> {
    print("\n1. A call: add a=2 b=40")?;
    let sum = client.call_tool("add", json!({"a": 2, "b": 40})).await?;
    print(&format!("   the server answers {}", result_text(&sum)))?;
    let answered = sum.structured_content.and_then(|sum| sum.decode::<serde_json::Value>().ok());
    holds(answered == Some(json!({"sum": 42})), "the server can't add")
}

async fn a_progress_bar(client: &Client, pace: Pace) -> Result<(), Failure> {
    print(&format!("\n2. Progress, reported while the call runs: countdown from={STEPS}"))?;
    let (sender, receiver) = std::sync::mpsc::sync_channel(STEPS as usize);
    let delay = pace.step().as_millis() as u64;
    let call = client
        .call_tool("countdown", json!({"from": STEPS, "delay_ms": delay}))
        .on_progress(move |progress| {
            draw(&render(&progress, width().saturating_sub(3)));
            // Full only if the server reports more than it should, which is noticed below.
            let _ = sender.try_send(progress.progress);
        });
    let result = call.await;
    if std::io::stdout().is_terminal() {
        print("")?;
    }
    let text = result_text(&result?);
    print(&format!("   the server answers {text}"))?;
    let reports: Vec<f64> = receiver.try_iter().collect();
    let expected: Vec<f64> = (1..=STEPS).map(f64::from).collect();
    holds(reports == expected && text == "done", "the progress was not complete and in order")
}

async fn an_abandoned_call(client: &Client, pace: Pace) -> Result<(), Failure> {
    print("\n3. A call that is abandoned halfway: sleep ms=60000")?;
    let before = stats(client).await?;
    let mut sleeping = client.call_tool("sleep", json!({"ms": 60_000})).into_future();
    // Sent before the question, and so begun before it is answered.
    let running = tokio::select! {
        biased;
        ended = &mut sleeping => {
            return match ended {
                Ok(_) => Err(Failure::failed("the demo does not hold: the server did not sleep")),
                Err(error) => Err(error.into()),
            };
        }
        stats = stats(client) => stats?,
    };
    print(&format!("   while it runs, the server counts:  {}", counts(&running)))?;
    let expected = Stats { started: before.started + 1, in_flight: 1, ..before };
    holds(running == expected, "the handler did not begin")?;
    pace.pause().await;
    print("   … and now the client drops the call, as if its user had lost interest")?;
    drop(sleeping);
    // The cancellation is ahead of this question on the wire, and is heard first.
    let stopped = stats(client).await?;
    print(&format!("   after that, the server counts:     {}", counts(&stopped)))?;
    let expected = Stats { cancelled: before.cancelled + 1, in_flight: 0, ..running };
    holds(stopped == expected && stopped.cancelled == 1, "the handler did not stop")?;
    print("   The handler is gone: cancelled 1, in flight 0, with most of its minute left.")
}

async fn stats(client: &Client) -> Result<Stats, Failure> {
    let result = client.call_tool("stats", ()).await?;
    result
        .structured_content
        .and_then(|stats| stats.decode().ok())
        .ok_or_else(|| Failure::failed("the demo server's statistics can't be read"))
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
