//! Clients that misuse standard input and output.

use std::{process::Stdio, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

use super::memory::{line, said};
use crate::{
    attack::{Trial, Watching},
    process::{ADDRESS_SPACE, limited, spawn},
    wire::message::{legacy_call, modern_call, padded},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// The demo server on pipes.
struct Pipes {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _watching: Watching,
}

impl Pipes {
    fn start(trial: &Trial) -> Result<Pipes, String> {
        let mut command = limited(&trial.world.program, ADDRESS_SPACE);
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = spawn(&mut command)?;
        let watching = trial.observed.watch(child.id().ok_or("the server has ended")?);
        let input = child.stdin.take().ok_or("a server without standard input")?;
        let output = child.stdout.take().ok_or("a server without standard output")?;
        Ok(Pipes { child, input, output: BufReader::new(output).lines(), _watching: watching })
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = timeout(PATIENCE, self.input.write_all(bytes)).await;
        sent.map_err(|_| "the server does not read".to_owned())?.map_err(said)
    }

    async fn next(&mut self) -> Result<Value, String> {
        let read = timeout(PATIENCE, self.output.next_line()).await;
        let read = read.map_err(|_| "the server does not answer".to_owned())?.map_err(said)?;
        let read = read.ok_or("the server ended")?;
        serde_json::from_str(&read).map_err(|error| format!("no JSON: {error}"))
    }

    /// Reads until the answer with this id.
    async fn answer(&mut self, id: &str) -> Result<Value, String> {
        loop {
            let message = self.next().await?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    /// Asks for an echo, as a client of the same connection.
    async fn echo(&mut self) -> Result<Value, String> {
        let echo = modern_call("echo", "echo", json!({"text": "still there"}));
        self.send(format!("{}\n", echo.text).as_bytes()).await?;
        self.answer("echo").await
    }

    /// Closes the input, after which the server has to exit by itself.
    async fn end(self) -> Result<(), String> {
        let Pipes { mut child, input, mut output, .. } = self;
        drop(input);
        let ended = async {
            while let Ok(Some(_)) = output.next_line().await {}
            child.wait().await
        };
        let ended = timeout(PATIENCE, ended).await;
        ended.map_err(|_| "the server does not exit".to_owned())?.map_err(said).map(drop)
    }
}

/// 40 calls in flight with arguments of 15 MiB.
pub(crate) async fn calls_in_flight(trial: Arc<Trial>) -> Result<(), String> {
    let mut pipes = Pipes::start(&trial)?;
    let text = modern_call("ID", "sleep", padded(json!({"ms": 3_600_000}), 15 << 20)).text;
    for number in 0..trial.scale(12, 40) {
        let text = text.replacen("\"ID\"", &format!("\"{number}\""), 1);
        pipes.send(format!("{text}\n").as_bytes()).await?;
    }
    let answered = pipes.echo().await?;
    trial.note(format!("echo: {}", kind_of(&answered)));
    // Cancelled calls give their memory back.
    for number in 0..40 {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
            "requestId": number.to_string(),
        }});
        pipes.send(&line(&cancel)).await?;
    }
    served_again(&mut pipes).await?;
    pipes.end().await
}

/// The same from a legacy client.
pub(crate) async fn legacy_calls_in_flight(trial: Arc<Trial>) -> Result<(), String> {
    let mut pipes = Pipes::start(&trial)?;
    let initialize = crate::wire::message::initialize();
    pipes.send(format!("{}\n", initialize.text).as_bytes()).await?;
    pipes.next().await?;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    pipes.send(&line(&ready)).await?;
    let call = legacy_call("ID", "sleep", padded(json!({"ms": 3_600_000}), 15 << 20)).to_string();
    for number in 0..trial.scale(12, 40) {
        let call = call.replacen("\"ID\"", &format!("\"{number}\""), 1);
        pipes.send(format!("{call}\n").as_bytes()).await?;
    }
    pipes.end().await
}

/// Waits until an echo is served: cancellations take effect one after another.
async fn served_again(pipes: &mut Pipes) -> Result<(), String> {
    for _ in 0..1_000 {
        let answer = pipes.echo().await?;
        if answer["result"]["content"][0]["text"] == "still there" {
            return Ok(());
        }
    }
    Err("an echo is refused after all calls were cancelled".to_owned())
}

fn kind_of(answer: &Value) -> String {
    match answer["error"]["message"].as_str() {
        Some(message) => format!("refused: {message}"),
        None => "served".to_owned(),
    }
}
