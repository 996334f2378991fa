//! Malicious servers.

mod http;
mod script;

use std::{
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    time::timeout,
};

use self::{
    http::{Answers, HTTP_SCRIPTS, Malicious},
    script::{Expected, Framing, SCRIPTS, play},
};
pub(crate) use script::Era;

use crate::{
    attack::{Attack, Bounds, Extent, Kind, Others, Trial},
    process::{ADDRESS_SPACE, limited, spawn},
};

/// The time that the command is given for an answer that does not end.
const SHORT: &str = "2s";
/// The time that it is given for an answer that it has to understand.
const LONG: &str = "20s";
/// The time within which it has to have ended: it gives its server a moment to exit, and a debug build on
/// a busy machine reads slowly.
const ENDED: Duration = Duration::from_secs(30);
/// An attack that a client does not withstand yet: the HTTP library reads informational responses without
/// end in one poll, so that timeouts are late. Only a full run makes it, and fails.
const OPEN: &str = "endless-continue";
/// The longest line or event has 16 MiB; answers to a server take at most 64 connections.
const CLIENT: Bounds =
    Bounds { peak: 320, after: 320, threads: 16, descriptors: 120, others: Others::Served };

/// All attacks of servers.
pub(crate) fn attacks() -> Vec<Attack> {
    let any = SCRIPTS.iter().map(|script| (script.name, Answers::Any(script)));
    let http = HTTP_SCRIPTS.iter().map(|script| (script.name, Answers::Http(script)));
    any.chain(http)
        .map(|(name, answers)| Attack {
            name,
            extent: if name == OPEN { Extent::Full } else { Extent::Quick },
            kind: Kind::Client {
                bounds: CLIENT,
                run: Box::new(move |trial| Box::pin(matrix(trial, answers))),
            },
        })
        .collect()
}

/// Runs an answer over each transport and in each era, all at once.
async fn matrix(trial: Arc<Trial>, answers: Answers) -> Result<(), String> {
    let mut cells = tokio::task::JoinSet::new();
    for era in [Era::Modern, Era::Legacy] {
        let shared = trial.clone();
        cells.spawn(async move { over_http(&shared, answers, era).await });
        if let Answers::Any(script) = answers {
            let shared = trial.clone();
            cells.spawn(async move { over_stdio(&shared, script, era).await });
        }
    }
    let ended = cells.join_all().await;
    let problems: Vec<String> = ended.into_iter().filter_map(Result::err).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

async fn over_http(trial: &Trial, answers: Answers, era: Era) -> Result<(), String> {
    let server = Malicious::start(answers, era).await.map_err(|error| error.to_string())?;
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let expected = match answers {
        Answers::Any(script) => script.expected,
        Answers::Http(script) => script.expected,
    };
    call(trial, &url, &format!("http {era:?}"), expected).await?;
    let (requests, trapped) = server.counts();
    if trapped > 0 {
        return Err(format!("http {era:?}: another server was asked"));
    }
    if requests > 10_000 {
        return Err(format!("http {era:?}: {requests} requests"));
    }
    Ok(())
}

async fn over_stdio(
    trial: &Trial,
    script: &'static script::Script,
    era: Era,
) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let era_name = if era == Era::Modern { "modern" } else { "legacy" };
    let target = format!("'{}' malicious {} {era_name}", program.display(), script.name);
    call(trial, &target, &format!("stdio {era:?}"), script.expected).await
}

/// Calls a tool with the command, and judges how the command ends.
async fn call(trial: &Trial, target: &str, cell: &str, expected: Expected) -> Result<(), String> {
    let mut command = limited(&trial.world.program, ADDRESS_SPACE);
    let time = if expected == Expected::Failure { SHORT } else { LONG };
    command.args(["call", target, "echo", "--timeout", time, "--no-input", "--output", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = spawn(&mut command)?;
    let _watching = trial.observed.watch(child.id().ok_or("the command has ended")?);
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (mut output, mut errors) = (output?, errors?);
        let (_, _) = tokio::join!(output.read_to_end(&mut out), errors.read_to_end(&mut err));
        Some((child.wait().await.ok()?, String::from_utf8_lossy(&err).into_owned()))
    };
    let Ok(Some((status, said))) = timeout(ENDED, ended).await else {
        return Err(format!("{cell}: the command does not end"));
    };
    let took = start.elapsed();
    let sentence = said.lines().next().unwrap_or_default();
    trial.note(format!("{cell}: {:.1} s, {sentence}", took.as_secs_f32()));
    match (status.code(), expected) {
        (Some(0), Expected::Success | Expected::Either) => Ok(()),
        (Some(1 | 3), Expected::Failure | Expected::Either) => Ok(()),
        (code, _) => Err(format!("{cell}: {expected:?} expected, exit status {code:?}: {said}")),
    }
}

/// Serves as a malicious server on standard input and output.
pub(crate) async fn serve_stdio(name: &str, era: Era) -> Result<(), String> {
    let script = SCRIPTS.iter().find(|script| script.name == name).ok_or("no such answer")?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut output = tokio::io::stdout();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        if request.get("id").is_none() || request["method"].is_null() {
            continue;
        }
        let played = play(script.answer(&request, era), Framing::Lines, &mut output);
        // The client has left.
        if played.await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
