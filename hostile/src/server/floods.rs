//! Clients that flood an HTTP/2 connection with frames.

use std::{io, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{io::AsyncReadExt, time::timeout};

use super::memory::said;
use crate::{
    attack::Trial,
    wire::{
        endpoint::Stream,
        http2::{
            CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, Http2, PING, PRIORITY,
            RST_STREAM, SETTINGS, WINDOW_UPDATE, block, frame, request_block, settings, status,
        },
        message::modern_call,
    },
};

/// How long a flood may wait for a server that does not read.
const BLOCKED: Duration = Duration::from_secs(3);

async fn connected(trial: &Trial) -> Result<Http2, String> {
    let stream = trial.endpoint.connect(1).await.map_err(said)?;
    let mut connection = Http2::start(stream, &[]).await.map_err(said)?;
    // The settings of the server.
    connection.next().await.map_err(said)?;
    Ok(connection)
}

/// How a flood ended.
enum Ended {
    /// The server accepted everything.
    Accepted,
    /// The server closed the connection or stopped reading after so many pieces.
    Stopped(usize),
}

/// Writes pieces without reading anything.
async fn flood(
    connection: &mut Http2,
    count: usize,
    mut piece: impl FnMut(usize) -> Vec<u8>,
) -> Ended {
    for number in 0..count {
        match timeout(BLOCKED, connection.send(&piece(number))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Ended::Stopped(number),
        }
    }
    Ended::Accepted
}

fn note(trial: &Trial, count: usize, ended: &Ended) {
    match ended {
        Ended::Accepted => trial.note(format!("{count} accepted")),
        Ended::Stopped(number) => trial.note(format!("stopped after {number}")),
    }
}

/// Requests that are reset at once, on connection after connection.
pub(crate) async fn rapid_reset(trial: Arc<Trial>) -> Result<(), String> {
    let call = modern_call(1, "sleep", json!({"ms": 3_600_000}));
    let head = request_block(&call);
    let mut sent = 0;
    for _ in 0..trial.scale(4, 20) {
        let mut connection = connected(&trial).await?;
        let ended = flood(&mut connection, 5_000, |number| {
            let stream = number as u32 * 2 + 1;
            let mut bytes = frame(HEADERS, END_HEADERS, stream, &head);
            bytes.extend(frame(DATA, END_STREAM, stream, call.text.as_bytes()));
            bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
            bytes
        });
        sent += match ended.await {
            Ended::Accepted => 5_000,
            Ended::Stopped(number) => number,
        };
    }
    let waited =
        trial.until("idle", Duration::from_secs(10), |stats| stats["in_flight"] == 0).await?;
    let stats = trial.stats().await?;
    trial.note(format!(
        "{sent} requests reset, {} begun, all cancelled after {} ms",
        stats["started"],
        waited.as_millis()
    ));
    Ok(())
}

/// A header block without an end.
pub(crate) async fn continuation(trial: Arc<Trial>) -> Result<(), String> {
    let mut connection = connected(&trial).await?;
    let head = request_block(&modern_call(1, "echo", json!({"text": "a"})));
    connection.send(&frame(HEADERS, 0, 1, &head)).await.map_err(said)?;
    let more = block([("x-more", &*"m".repeat(1_000))]);
    let ended = flood(&mut connection, 100_000, |_| frame(CONTINUATION, 0, 1, &more)).await;
    note(&trial, 100_000, &ended);
    match ended {
        Ended::Accepted => Err("an endless header block is accepted".to_owned()),
        Ended::Stopped(_) => Ok(()),
    }
}

/// Frames that ask for a reply each, which is not read.
pub(crate) async fn replies(trial: Arc<Trial>) -> Result<(), String> {
    for kind in [PING, SETTINGS] {
        let mut connection = connected(&trial).await?;
        let count = trial.scale(200_000, 2_000_000);
        let piece = match kind {
            PING => frame(PING, 0, 0, &[0; 8]),
            _ => settings(&[]),
        };
        // Many in a piece, or writing would take longer than reading.
        let many = piece.repeat(100);
        let ended = flood(&mut connection, count / 100, |_| many.clone()).await;
        note(&trial, count / 100, &ended);
    }
    Ok(())
}

/// Frames that say nothing.
pub(crate) async fn nothing(trial: Arc<Trial>) -> Result<(), String> {
    let head = request_block(&modern_call(1, "echo", json!({"text": "a"})));
    for kind in [DATA, PRIORITY, WINDOW_UPDATE, 0x20] {
        let mut connection = connected(&trial).await?;
        connection.send(&frame(HEADERS, END_HEADERS, 1, &head)).await.map_err(said)?;
        let piece = match kind {
            DATA => frame(DATA, 0, 1, &[]),
            PRIORITY => frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 7]),
            // The window of the connection overflows after a while, which ends it.
            WINDOW_UPDATE => frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()),
            unknown => frame(unknown, 0, 0, &[0; 100]),
        };
        let count = trial.scale(1_000, 10_000);
        let many = piece.repeat(100);
        let ended = flood(&mut connection, count, |_| many.clone()).await;
        note(&trial, count, &ended);
    }
    Ok(())
}

/// A long header in the dynamic table that is repeated thousands of times.
pub(crate) async fn header_table(trial: Arc<Trial>) -> Result<(), String> {
    let mut head = request_block(&modern_call(1, "echo", json!({"text": "a"})));
    // A literal that is added to the table, then its index again and again.
    head.extend([0x40, 1, b'x', 127]);
    let length: u32 = 3_900 - 127;
    head.extend([(length % 128) as u8 | 128, (length / 128) as u8]);
    head.extend([b'y'; 3_900]);
    head.extend([0xbe; 8_000]);
    let mut refused = std::collections::BTreeMap::<String, u32>::new();
    for _ in 0..trial.scale(50, 500) {
        let bytes = frame(HEADERS, END_HEADERS | END_STREAM, 1, &head);
        let mut connection = connected(&trial).await?;
        connection.send(&bytes).await.map_err(said)?;
        let reaction = loop {
            match timeout(BLOCKED, connection.next()).await {
                Ok(Ok(frame)) if frame.kind == GOAWAY => break format!("GOAWAY {}", frame.code()),
                Ok(Ok(frame)) if frame.kind == RST_STREAM => break "RST_STREAM".to_owned(),
                Ok(Ok(frame)) if frame.kind == HEADERS => {
                    break format!("status {}", status(&frame.payload).unwrap_or(0));
                }
                Ok(Ok(_)) => {}
                Ok(Err(_)) => break "closed".to_owned(),
                Err(_) => return Err("no reaction to a long list of headers".to_owned()),
            }
        };
        *refused.entry(reaction).or_default() += 1;
    }
    trial.note(format!("{refused:?}"));
    if refused.contains_key("status 200") {
        Err("31 MB of headers are accepted".to_owned())
    } else {
        Ok(())
    }
}

/// Requests without an end, more of them than a connection may have.
pub(crate) async fn open_streams(trial: Arc<Trial>) -> Result<(), String> {
    let head = request_block(&modern_call(1, "echo", json!({"text": "a"})));
    let mut connections = Vec::new();
    for _ in 0..trial.scale(20, 200) {
        let mut connection = connected(&trial).await?;
        let ended = flood(&mut connection, 1_000, |number| {
            frame(HEADERS, END_HEADERS, number as u32 * 2 + 1, &head)
        });
        ended.await;
        connections.push(connection);
    }
    trial.note(format!("{} connections", connections.len()));
    Ok(())
}

/// Random bytes behind the preface and in place of a request.
pub(crate) async fn noise(trial: Arc<Trial>) -> Result<(), String> {
    let mut random = trial.random();
    let mut closed = 0;
    let count: usize = trial.scale(200, 2_000);
    for number in 0..count {
        let mut stream = trial.endpoint.connect(1).await.map_err(said)?;
        let length = random.below(4_000) + 100;
        let noise = random.bytes(length);
        let preface: &[u8] =
            if number.is_multiple_of(2) { crate::wire::http2::PREFACE } else { b"" };
        let sent = async {
            tokio::io::AsyncWriteExt::write_all(&mut stream, &[preface, &noise].concat()).await?;
            tokio::io::AsyncWriteExt::shutdown(&mut stream).await
        };
        let _ = sent.await;
        closed += usize::from(is_closed(&mut stream).await.is_ok());
    }
    trial.note(format!("{closed} of {count} closed"));
    if closed < count { Err("a connection with random bytes is open".to_owned()) } else { Ok(()) }
}

async fn is_closed(stream: &mut Stream) -> io::Result<()> {
    let mut rest = Vec::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
    // A reset is an end, too.
    read.map(drop).map_err(|_| io::ErrorKind::TimedOut.into())
}
