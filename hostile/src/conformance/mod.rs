//! HTTP/2 as RFC 9113 and RFC 7541 want it from a server: a table of frames and of the reactions to them.

mod cases;

use std::{io, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use crate::{
    attack::Trial,
    wire::{
        http2::{ACK, GOAWAY, HEADERS, Http2, PING, RST_STREAM, frame, status},
        message::{Message, modern_call},
    },
};

/// How long a reaction may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The payload of the PING behind frames that have to be ignored.
const MARK: [u8; 8] = *b"the mark";

/// The reaction that a server has to show.
#[derive(Clone, Copy, Debug)]
enum Reaction {
    /// GOAWAY with one of these codes, or the end of the connection.
    Connection(&'static [u32]),
    /// RST_STREAM with one of these codes; or an error of the connection, which is stricter.
    Stream(&'static [u32]),
    /// The frames are ignored: the connection is used as before.
    Ignored,
    /// The request gets a response with this status.
    Status(u16),
}

/// Frames that are sent behind the preface and the settings, and the reaction.
struct Case {
    section: &'static str,
    name: &'static str,
    frames: fn(&Message) -> Vec<u8>,
    reaction: Reaction,
}

/// Runs all cases, each on a connection of its own.
pub(crate) async fn run(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "echo", json!({"text": "hello"}));
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in cases::all() {
        count += 1;
        let found = match timeout(PATIENCE, react(&trial, case, &call)).await {
            Ok(Ok(())) => continue,
            Ok(Err(found)) => found,
            Err(_) => "nothing".to_owned(),
        };
        let Case { section, name, reaction, .. } = case;
        wrong.push(format!("{section} {name}: {reaction:?} expected, {found} found"));
    }
    if let Err(found) = preface(&trial).await {
        wrong.push(format!("3.4 a bad preface: {found}"));
    }
    trial.note(format!("{} of {} cases", count + 1 - wrong.len(), count + 1));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

async fn react(trial: &Trial, case: &Case, call: &Message) -> Result<(), String> {
    let said = |error: io::Error| format!("`{error}`");
    let stream = trial.endpoint.connect(1).await.map_err(said)?;
    let mut connection = Http2::start(stream, &[]).await.map_err(said)?;
    connection.next().await.map_err(said)?;
    // The server may close before it has read everything.
    let _ = connection.send(&(case.frames)(call)).await;
    if matches!(case.reaction, Reaction::Ignored) {
        let _ = connection.send(&frame(PING, 0, 0, &MARK)).await;
    }
    let is_among = |codes: &[u32], code: u32| codes.contains(&code);
    loop {
        let Ok(frame) = connection.next().await else {
            return match case.reaction {
                Reaction::Connection(_) | Reaction::Stream(_) => Ok(()),
                _ => Err("the end of the connection".to_owned()),
            };
        };
        let found = format!("{} with {}", name(frame.kind), frame.code());
        match (frame.kind, case.reaction) {
            (GOAWAY, Reaction::Connection(codes) | Reaction::Stream(codes))
                if is_among(codes, frame.code()) =>
            {
                return Ok(());
            }
            (RST_STREAM, Reaction::Stream(codes)) if is_among(codes, frame.code()) => return Ok(()),
            (GOAWAY, _) => return Err(found),
            (RST_STREAM, Reaction::Status(_)) => return Err(found),
            (PING, Reaction::Ignored) if frame.flags & ACK != 0 && frame.payload == MARK => {
                return Ok(());
            }
            (HEADERS, Reaction::Status(expected)) => {
                let found = status(&frame.payload);
                let right = found == Some(expected);
                return if right { Ok(()) } else { Err(format!("status {found:?}")) };
            }
            _ => {}
        }
    }
}

fn name(kind: u8) -> &'static str {
    match kind {
        GOAWAY => "GOAWAY",
        RST_STREAM => "RST_STREAM",
        _ => "a frame",
    }
}

/// A connection that begins with anything but the preface is one of HTTP/1.1.
async fn preface(trial: &Trial) -> Result<(), String> {
    for bytes in [&b"INVALID CONNECTION PREFACE\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"] {
        let mut stream = trial.endpoint.connect(1).await.map_err(|error| error.to_string())?;
        let mut read = Vec::new();
        let exchange = async {
            stream.write_all(bytes).await?;
            stream.read_to_end(&mut read).await
        };
        let closed = timeout(PATIENCE, exchange).await;
        closed
            .map_err(|_| "the connection is open".to_owned())?
            .map_err(|error| error.to_string())?;
        if !read.is_empty() && !read.starts_with(b"HTTP/1.1 400") {
            return Err(String::from_utf8_lossy(&read).into_owned());
        }
    }
    Ok(())
}
